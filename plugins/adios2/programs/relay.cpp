/*
 * Hands the steps of a stream of ADIOS2 on, each once and when it is complete: of a BP file that is still written, of SST, of whatever
 * engine the IO "in" has, to that of the IO "out", which is a group of sieva.
 *
 *   sieva-adios2-relay CONFIG NAME [SKIP]   NAME: what the stream is called; SKIP: steps that were handed on before
 *
 * A step is held in memory while it is handed on.
 */
#include <adios2.h>

#include <cstdlib>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

namespace
{

/* What has to stay until a step ends. */
using Kept = std::vector<std::shared_ptr<void>>;

template <class T>
void hand_on(adios2::IO &in_io, adios2::Engine &in, adios2::IO &out_io, adios2::Engine &out, const std::string &name, Kept &kept)
{
    auto from = in_io.InquireVariable<T>(name);
    auto to = out_io.InquireVariable<T>(name);
    const auto values = std::make_shared<std::vector<T>>();
    kept.push_back(values);
    switch (from.ShapeID()) {
    case adios2::ShapeID::GlobalValue:
        values->resize(1);
        in.Get(from, values->data(), adios2::Mode::Sync);
        if (!to)
            to = out_io.DefineVariable<T>(name);
        out.Put(to, values->front());
        return;
    case adios2::ShapeID::GlobalArray:
    case adios2::ShapeID::JoinedArray: {
        const adios2::Dims shape = from.Shape(), none(shape.size(), 0);
        from.SetSelection({none, shape});
        size_t elements = 1;
        for (const size_t n : shape)
            elements *= n;
        values->resize(elements);
        if (elements > 0)
            in.Get(from, values->data(), adios2::Mode::Sync);
        if (!to)
            to = out_io.DefineVariable<T>(name, shape, none, shape);
        to.SetShape(shape);
        to.SetSelection({none, shape});
        out.Put(to, values->data());
        return;
    }
    default:
        // The group says why it has none.
        values->resize(1);
        if (!to)
            to = out_io.DefineVariable<T>(name, {}, {}, {1});
        out.Put(to, values->data());
    }
}

template <class T>
void hand_on_attribute(adios2::IO &in_io, adios2::IO &out_io, const std::string &name)
{
    const auto from = in_io.InquireAttribute<T>(name);
    if (!from || out_io.InquireAttribute<T>(name))
        return;
    const std::vector<T> values = from.Data();
    if (values.size() == 1)
        out_io.DefineAttribute<T>(name, values.front());
    else if (!values.empty())
        out_io.DefineAttribute<T>(name, values.data(), values.size());
}

void hand_on_step(adios2::IO &in_io, adios2::Engine &in, adios2::IO &out_io, adios2::Engine &out)
{
    Kept kept;
    out.BeginStep();
    for (const auto &[name, about] : in_io.AvailableAttributes("", "/", true)) {
        const std::string type = in_io.AttributeType(name);
#define hand_on_one(T)                                                                                                 \
    if (type == adios2::GetType<T>())                                                                                  \
        hand_on_attribute<T>(in_io, out_io, name);
        ADIOS2_FOREACH_ATTRIBUTE_STDTYPE_1ARG(hand_on_one)
#undef hand_on_one
    }
    for (const auto &[name, about] : in_io.AvailableVariables(true)) {
        const std::string type = in_io.VariableType(name);
#define hand_on_one(T)                                                                                                 \
    if (type == adios2::GetType<T>())                                                                                  \
        hand_on<T>(in_io, in, out_io, out, name, kept);
        ADIOS2_FOREACH_STDTYPE_1ARG(hand_on_one)
#undef hand_on_one
    }
    out.EndStep();
}

void relay(const std::string &config, const std::string &name, size_t skip)
{
    adios2::ADIOS adios(config);
    adios2::IO in_io = adios.DeclareIO("in"), out_io = adios.DeclareIO("out");
    if (skip > 0)
        out_io.SetParameter("FirstStep", std::to_string(skip));
    // First: who asks meanwhile gets the first step.
    adios2::Engine out = out_io.Open(name, adios2::Mode::Write);
    adios2::Engine in = in_io.Open(name, adios2::Mode::Read);
    for (size_t step = 0; in.BeginStep() == adios2::StepStatus::OK; step++) {
        if (step >= skip)
            hand_on_step(in_io, in, out_io, out);
        in.EndStep();
    }
    in.Close();
    out.Close();
}

} // namespace

int main(int argc, char **argv)
{
    const std::string skip = argc > 3 ? argv[3] : "0";
    if (argc < 3 || argc > 4 || skip.empty() || skip.size() > 9 || skip.find_first_not_of("0123456789") != std::string::npos) {
        std::cerr << "usage: sieva-adios2-relay CONFIG NAME [SKIP]\n";
        return 2;
    }
    try {
        relay(argv[1], argv[2], std::stoul(skip));
    } catch (const std::exception &e) {
        std::cerr << "sieva-adios2-relay: " << e.what() << "\n";
        return 1;
    }
    return 0;
}
