#include "reader.h"

#include "attributes.h"

#include <algorithm>

namespace sieva_adios2
{

namespace
{

const std::vector<std::string> KNOWN = {"Group", "Place", "Member", "Ask", "SQL", "New", "Folder", "Producer", "Poll"};

} // namespace

Reader::Reader(adios2::IO io, const std::string &name, adios2::Mode mode)
: PluginEngineInterface(io, name, mode), m_Parameters(io.Parameters(), KNOWN), m_Arrivals(new Arrivals(m_Parameters))
{
}

adios2::StepStatus Reader::BeginStep(adios2::StepMode, float timeout)
{
    if (m_Source)
        fail("a step begins before the one before it has ended");
    switch (m_Arrivals->next(timeout)) {
    case Arrivals::Found::Over: return adios2::StepStatus::EndOfStream;
    case Arrivals::Found::Later: return adios2::StepStatus::NotReady;
    case Arrivals::Found::File: break;
    }
    const std::string path = m_Arrivals->file().string();
    sieva_options options = SIEVA_OPTIONS_INIT;
    options.no_learning = 1;
    sieva_source *source = nullptr;
    check(sieva_open(path.c_str(), &options, &source), "opening the result '" + path + "' (ask for netcdf or hdf5)");
    m_Source.reset(source);
    if (!m_IsFirst)
        m_Current++;
    m_IsFirst = false;
    define();
    return adios2::StepStatus::OK;
}

void Reader::EndStep()
{
    if (!m_Source)
        fail("a step ends that was not begun");
    m_Source.reset();
    m_Arrivals->took();
}

void Reader::DoClose(int)
{
    m_Source.reset();
    m_Arrivals.reset();
}

void Reader::define()
{
    uint64_t arrays = 0, dimensions = 0;
    check(sieva_source_count(m_Source.get(), &arrays, &dimensions), "counting arrays");
    std::map<std::string, std::vector<size_t>> shapes;
    take_attributes(m_Source.get(), m_IO);
    for (uint64_t i = 0; i < arrays; i++) {
        sieva_array array;
        check(sieva_array_describe(m_Source.get(), i, &array), "describing an array");
        const std::vector<size_t> shape(array.shape, array.shape + array.rank);
        if (array.stored_type == SIEVA_STR && std::any_of(shape.begin(), shape.end(), [](size_t n) { return n != 1; })) {
            m_IO.DefineAttribute<std::string>(std::string(array.path) + "/left_out",
                                              "an array of texts, which ADIOS2 has for single values only");
            continue;
        }
        shapes[array.path] = shape;
    }
    for (const auto &[name, shape] : m_Shapes)
        if (!shapes.count(name))
            m_IO.RemoveVariable(name);
    m_Shapes = std::move(shapes);
    for (uint64_t i = 0; i < arrays; i++) {
        sieva_array array;
        check(sieva_array_describe(m_Source.get(), i, &array), "describing an array");
        if (m_Shapes.count(array.path))
            with_type(array.stored_type, [&](auto zero) { define_as<decltype(zero)>(array); });
    }
    m_IO.DefineAttribute<std::string>("sieva_step", m_Arrivals->file().stem().string());
}

template <class T>
void Reader::define_as(const sieva_array &array)
{
    const std::string name = array.path;
    const std::vector<size_t> &shape = m_Shapes[name], none(shape.size(), 0);
    auto variable = m_IO.InquireVariable<T>(name);
    const bool is_single = std::is_same_v<T, std::string> || shape.empty();
    if (variable && is_single == (variable.ShapeID() == adios2::ShapeID::GlobalValue) &&
        (is_single || variable.Shape().size() == shape.size())) {
        if (!is_single && adios2::Dims(shape) != variable.Shape()) {
            variable.SetShape(shape);
            variable.SetSelection({none, shape});
        }
        return;
    }
    m_IO.RemoveVariable(name);
    if (is_single)
        m_IO.DefineVariable<T>(name);
    else
        m_IO.DefineVariable<T>(name, shape, none, shape);
}

void Reader::check_box(const std::string &name, const adios2::core::Selection &box)
{
    if (box.HasBlockSelection() && box.GetBlockID() != 0)
        fail("'" + name + "' has one block, not block " + std::to_string(box.GetBlockID()));
    if (box.HasMemorySelection())
        fail("'" + name + "' is read into a part of the memory (a memory selection): read it into memory of its own");
}

template <class T>
void Reader::get(const std::string &name, T *values, const adios2::Dims &start, const adios2::Dims &count)
{
    const auto shape = m_Shapes.find(name);
    if (!m_Source || shape == m_Shapes.end())
        fail("'" + name + "' is not in this step");
    const std::string what = "reading '" + name + "'";
    if constexpr (std::is_same_v<T, std::string>) {
        const auto rank = static_cast<uint32_t>(shape->second.size());
        uint64_t needed = 0, offsets[2] = {0, 0};
        check(sieva_read_box_texts(m_Source.get(), name.c_str(), rank, nullptr, nullptr, nullptr, 0, nullptr, &needed), what);
        values->assign(needed, '\0');
        check(sieva_read_box_texts(m_Source.get(), name.c_str(), rank, nullptr, nullptr, &(*values)[0], needed, offsets, &needed),
              what);
    } else if constexpr (number_of<T>() == 0) {
        fail("'" + name + "' has no values of this type");
    } else {
        // Without a box all of it.
        const std::vector<uint64_t> from(start.begin(), start.end());
        const std::vector<uint64_t> n = count.empty() ? std::vector<uint64_t>(shape->second.begin(), shape->second.end())
                                                       : std::vector<uint64_t>(count.begin(), count.end());
        uint64_t elements = 1, got = 0;
        for (const uint64_t length : n)
            elements *= length;
        const bool is_whole = count.empty();
        check(sieva_read_box(m_Source.get(), name.c_str(), static_cast<uint32_t>(n.size()), is_whole ? nullptr : from.data(),
                             n.data(), 1, number_of<T>(), values, elements, nullptr, &got),
              what);
    }
}

adios2::MinVarInfo *Reader::MinBlocksInfo(const std::string &name, size_t) const
{
    const auto found = m_Shapes.find(name);
    if (found == m_Shapes.end())
        return nullptr;
    static const std::vector<size_t> ZEROS(64, 0);
    const std::vector<size_t> &shape = found->second;
    auto *info = new adios2::MinVarInfo(static_cast<int>(shape.size()), shape.data());
    info->Step = m_Current;
    info->WasLocalValue = false;
    info->IsValue = shape.empty();
    adios2::MinBlockInfo block;
    block.Start = ZEROS.data();
    block.Count = shape.data();
    block.MinMax = {};
    info->BlocksInfo.push_back(block);
    return info;
}

} // namespace sieva_adios2
