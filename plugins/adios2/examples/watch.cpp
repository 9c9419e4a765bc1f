/*
 * An analysis that reads what comes, step by step, and prints the least and the greatest value of each variable of real numbers. What
 * it reads is the matter of adios2.xml alone: a BP file, or what a member asked of a group of sieva.
 *
 *   watch CONFIG
 */
#include <adios2.h>

#include <algorithm>
#include <iostream>
#include <vector>

int main(int argc, char **argv)
{
    if (argc != 2) {
        std::cerr << "usage: watch CONFIG\n";
        return 2;
    }
    try {
        adios2::ADIOS adios(argv[1]);
        adios2::IO io = adios.DeclareIO("watch");
        adios2::Engine engine = io.Open("heat.bp", adios2::Mode::Read);
        while (engine.BeginStep() == adios2::StepStatus::OK) {
            std::cout << "step " << engine.CurrentStep() << ":";
            for (const auto &[name, about] : io.AvailableVariables(true)) {
                auto variable = io.InquireVariable<double>(name);
                std::vector<double> values;
                if (!variable)
                    continue;
                engine.Get(variable, values, adios2::Mode::Sync);
                std::cout << " " << name << " of " << values.size();
                if (!values.empty()) {
                    const auto [least, most] = std::minmax_element(values.begin(), values.end());
                    std::cout << " from " << *least << " to " << *most;
                }
            }
            std::cout << std::endl;
            engine.EndStep();
        }
        engine.Close();
    } catch (const std::exception &e) {
        std::cerr << "watch: " << e.what() << "\n";
        return 1;
    }
    return 0;
}
