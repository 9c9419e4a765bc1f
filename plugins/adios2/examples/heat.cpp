/*
 * A simulation that writes its temperatures, two blocks in each step. Where they go is the matter of adios2.xml alone: into a BP
 * file, or into a group of sieva, where of each step nothing is kept but what was asked for.
 *
 *   heat CONFIG STEPS
 */
#include <adios2.h>

#include <cstdlib>
#include <iostream>
#include <vector>

int main(int argc, char **argv)
{
    if (argc != 3) {
        std::cerr << "usage: heat CONFIG STEPS\n";
        return 2;
    }
    try {
        const size_t ny = 40, nx = 50, half = ny / 2;
        const int steps = std::atoi(argv[2]);
        adios2::ADIOS adios(argv[1]);
        adios2::IO io = adios.DeclareIO("heat");
        auto T = io.DefineVariable<double>("T", {ny, nx}, {0, 0}, {half, nx});
        auto time = io.DefineVariable<double>("time");
        io.DefineAttribute<std::string>("units", "K", "T");
        adios2::Engine engine = io.Open("heat.bp", adios2::Mode::Write);
        std::vector<double> values(ny * nx);
        for (int step = 0; step < steps; step++) {
            for (size_t i = 0; i < values.size(); i++)
                values[i] = 1000.0 * step + static_cast<double>(i);
            engine.BeginStep();
            T.SetSelection({{0, 0}, {half, nx}});
            engine.Put(T, values.data());
            T.SetSelection({{half, 0}, {ny - half, nx}});
            engine.Put(T, values.data() + half * nx);
            engine.Put(time, 0.5 * step);
            engine.EndStep();
        }
        engine.Close();
    } catch (const std::exception &e) {
        std::cerr << "heat: " << e.what() << "\n";
        return 1;
    }
    return 0;
}
