/*
 * Reads steps and prints all of each: a line for each variable, its type, shape, and bytes in hexadecimal digits, and one for each
 * attribute.
 *
 *   dump CONFIG [TIMEOUT]
 */
#include <adios2.h>

#include <cstdlib>
#include <cstring>
#include <iomanip>
#include <iostream>
#include <string>
#include <vector>

namespace
{

template <class T>
void print(adios2::IO &io, adios2::Engine &engine, const std::string &name)
{
    auto variable = io.InquireVariable<T>(name);
    std::cout << "variable " << name << " " << variable.Type() << " ";
    size_t elements = 1;
    for (const size_t n : variable.Shape()) {
        std::cout << n << ",";
        elements *= n;
    }
    std::cout << " ";
    if constexpr (std::is_same_v<T, std::string>) {
        std::string text;
        engine.Get(variable, text, adios2::Mode::Sync);
        std::cout << text;
    } else {
        std::vector<T> values(elements + 1);
        std::vector<T> again(elements + 1);
        // Both ways of asking.
        engine.Get(variable, values.data());
        engine.PerformGets();
        engine.Get(variable, again.data(), adios2::Mode::Sync);
        if (std::memcmp(values.data(), again.data(), elements * sizeof(T)) != 0)
            std::cout << "DIFFERENT ";
        const auto *bytes = reinterpret_cast<const unsigned char *>(values.data());
        for (size_t i = 0; i < elements * sizeof(T); i++)
            std::cout << std::hex << std::setw(2) << std::setfill('0') << int(bytes[i]) << std::dec;
        // A part of it, by a selection, is the same.
        if (variable.Shape().size() == 1 && elements > 2) {
            std::vector<T> part(elements - 2);
            variable.SetSelection({{1}, {elements - 2}});
            engine.Get(variable, part.data(), adios2::Mode::Sync);
            variable.SetSelection({{0}, {elements}});
            if (std::memcmp(part.data(), values.data() + 1, part.size() * sizeof(T)) != 0)
                std::cout << " DIFFERENT";
        }
    }
    std::cout << "\n";
}

} // namespace

int main(int argc, char **argv)
{
    if (argc < 2)
        return 2;
    const float timeout = argc > 2 ? static_cast<float>(std::atof(argv[2])) : -1.0F;
    try {
        adios2::ADIOS adios(argv[1]);
        adios2::IO io = adios.DeclareIO("reader");
        adios2::Engine engine = io.Open("values.bp", adios2::Mode::Read);
        adios2::StepStatus status;
        while ((status = engine.BeginStep(adios2::StepMode::Read, timeout)) == adios2::StepStatus::OK) {
            std::cout << "step " << engine.CurrentStep() << "\n";
            for (const auto &[name, about] : io.AvailableVariables(true)) {
                const std::string type = io.VariableType(name);
#define print_one(T)                                                                                                   \
    if (type == adios2::GetType<T>())                                                                                  \
        print<T>(io, engine, name);
                ADIOS2_FOREACH_STDTYPE_1ARG(print_one)
#undef print_one
            }
            for (const auto &[name, about] : io.AvailableAttributes())
                std::cout << "attribute " << name << " " << about.at("Type") << " " << about.at("Value") << "\n";
            engine.EndStep();
        }
        std::cout << (status == adios2::StepStatus::EndOfStream ? "end" : "not ready") << "\n";
        engine.Close();
    } catch (const std::exception &e) {
        std::cerr << e.what() << "\n";
        return 1;
    }
    return 0;
}
