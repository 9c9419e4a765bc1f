/*
 * Writes steps of every kind of variable, with values that are easily lost: NaN, infinities, -0.0, the greatest integers. What they
 * are is computed again by the test that starts this.
 *
 *   values CONFIG STEPS [kill|span|ghosts]
 *
 * kill: the process ends in the middle of the last step, without a word. span, ghosts: it puts in a way that is refused.
 */
#include <adios2.h>

#include <chrono>
#include <cmath>
#include <complex>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <limits>
#include <string>
#include <thread>
#include <vector>

namespace
{

const size_t N = 30, ROWS = 6, COLUMNS = 5;

double value(size_t step, size_t i)
{
    const double odd[] = {NAN, INFINITY, -INFINITY, -0.0, 0.0, 5e-324, 1e308, -1e308};
    const size_t place = (i + step) % 16;
    return place < 8 ? odd[place] : 1000.0 * static_cast<double>(step) + static_cast<double>(i);
}

template <class T>
T integer(size_t step, size_t i)
{
    return i % 3 == 0   ? std::numeric_limits<T>::max()
           : i % 3 == 1 ? std::numeric_limits<T>::min()
                        : static_cast<T>(step * 7 + i);
}

/* All of an integer type in one block. */
template <class T>
void integers(adios2::IO &io, adios2::Engine &engine, const std::string &name, size_t step, std::vector<T> &kept)
{
    auto variable = io.InquireVariable<T>(name);
    if (!variable)
        variable = io.DefineVariable<T>(name, {N}, {0}, {N});
    kept.resize(N);
    for (size_t i = 0; i < N; i++)
        kept[i] = integer<T>(step, i);
    engine.Put(variable, kept.data());
}

/* The memory of a step, which deferred puts need until its end. */
struct Memory
{
    std::vector<int8_t> i8;
    std::vector<int16_t> i16;
    std::vector<int32_t> i32;
    std::vector<int64_t> i64;
    std::vector<uint8_t> u8;
    std::vector<uint16_t> u16;
    std::vector<uint32_t> u32;
    std::vector<uint64_t> u64;
    std::vector<double> doubles;
    std::vector<std::complex<double>> waves;
};

void put_step(adios2::IO &io, adios2::Engine &engine, size_t step, Memory &memory)
{
    integers(io, engine, "int/i8", step, memory.i8);
    integers(io, engine, "int/i16", step, memory.i16);
    integers(io, engine, "int/i32", step, memory.i32);
    integers(io, engine, "int/i64", step, memory.i64);
    integers(io, engine, "int/u8", step, memory.u8);
    integers(io, engine, "int/u16", step, memory.u16);
    integers(io, engine, "int/u32", step, memory.u32);
    integers(io, engine, "int/u64", step, memory.u64);

    // Blocks of two dimensions, of memory that is used again at once.
    auto f = io.InquireVariable<double>("f64");
    std::vector<double> block;
    for (size_t row = 0; row < ROWS; row += 4) {
        const size_t rows = std::min<size_t>(4, ROWS - row);
        block.clear();
        for (size_t i = row * COLUMNS; i < (row + rows) * COLUMNS; i++)
            block.push_back(value(step, i));
        f.SetSelection({{row, 0}, {rows, COLUMNS}});
        engine.Put(f, block.data(), adios2::Mode::Sync);
    }
    // Memory that is used again after PerformPuts.
    memory.doubles.resize(N);
    std::vector<float> floats(N);
    for (size_t i = 0; i < N; i++)
        floats[i] = static_cast<float>(value(step, i));
    engine.Put(io.InquireVariable<float>("f32"), floats.data());
    engine.PerformPuts();
    floats.assign(N, 7);
    // Blocks that follow one another.
    auto joined = io.InquireVariable<int32_t>("joined");
    for (const size_t count : {size_t(3), size_t(0), size_t(2)}) {
        joined.SetSelection({{}, {count}});
        engine.Put(joined, memory.i32.data(), adios2::Mode::Sync);
    }
    engine.Put(io.InquireVariable<int64_t>("number"), static_cast<int64_t>(step));
    engine.Put(io.InquireVariable<std::string>("name"), std::string("step ") + std::to_string(step) + " \xc3\xbc");
    // In every second step.
    if (step % 2 == 1)
        engine.Put(io.InquireVariable<double>("seldom"), 0.5 * static_cast<double>(step));
    memory.waves.assign(4, {1, 2});
    engine.Put(io.InquireVariable<std::complex<double>>("wave"), memory.waves.data());
    engine.Put(io.InquireVariable<int32_t>("local"), memory.i32.data());
}

void define(adios2::IO &io)
{
    io.DefineVariable<double>("f64", {ROWS, COLUMNS}, {0, 0}, {ROWS, COLUMNS});
    io.DefineVariable<float>("f32", {N}, {0}, {N});
    io.DefineVariable<int32_t>("joined", {adios2::JoinedDim}, {}, {3});
    io.DefineVariable<int64_t>("number");
    io.DefineVariable<std::string>("name");
    io.DefineVariable<double>("seldom");
    io.DefineVariable<std::complex<double>>("wave", {4}, {0}, {4});
    io.DefineVariable<int32_t>("local", {}, {}, {3});
    const double fill = 1000 + 12;
    io.DefineAttribute<double>("_FillValue", fill, "f64");
    io.DefineAttribute<std::string>("units", "m", "f64");
    const std::vector<std::string> texts = {"a", "b"};
    io.DefineAttribute<std::string>("authors", texts.data(), texts.size());
}

} // namespace

int main(int argc, char **argv)
{
    const std::string how = argc > 3 ? argv[3] : "";
    if (argc < 3)
        return 2;
    try {
        adios2::ADIOS adios(argv[1]);
        adios2::IO io = adios.DeclareIO("writer");
        define(io);
        adios2::Engine engine = io.Open("values.bp", adios2::Mode::Write);
        const auto steps = static_cast<size_t>(std::atoi(argv[2]));
        for (size_t step = 0; step < steps; step++) {
            Memory memory;
            engine.BeginStep();
            auto f = io.InquireVariable<double>("f64");
            if (how == "span")
                engine.Put(f);
            if (how == "ghosts") {
                const std::vector<double> wide((ROWS + 2) * (COLUMNS + 2));
                f.SetMemorySelection({{1, 1}, {ROWS + 2, COLUMNS + 2}});
                engine.Put(f, wide.data());
            }
            // One step of them is empty.
            if (step != 3)
                put_step(io, engine, step, memory);
            if (how == "kill" && step + 1 == steps) {
                // While it is given to the group.
                std::thread([] {
                    std::this_thread::sleep_for(std::chrono::milliseconds(3));
                    std::raise(SIGKILL);
                }).detach();
            }
            engine.EndStep();
        }
        if (how == "kill")
            std::raise(SIGKILL);
        engine.Close();
    } catch (const std::exception &e) {
        std::cerr << e.what() << "\n";
        return 1;
    }
    return 0;
}
