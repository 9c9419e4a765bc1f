/* What ADIOS2 looks for in the library of an engine: who makes one, and who ends it. */
#include "reader.h"
#include "writer.h"

#if ADIOS2_PLUGIN_ENGINE_INTERFACE < 2
#error "engines of this kind need ADIOS2 2.12 or newer"
#endif
#if ADIOS2_USE_MPI
#error "this engine is for programs of one process: compile it without ADIOS2_USE_MPI"
#endif

/* All that others see of this library. */
#pragma GCC visibility push(default)
extern "C" {

adios2::plugin::PluginEngineInterface *EngineCreate(adios2::IO io, const std::string &name, const adios2::Mode mode)
{
    switch (mode) {
    case adios2::Mode::Write: return new sieva_adios2::Writer(io, name, mode);
    case adios2::Mode::Read: return new sieva_adios2::Reader(io, name, mode);
    case adios2::Mode::Append:
        sieva_adios2::fail("steps cannot be appended: open for writing, and say the number of the first one by the parameter FirstStep");
    default: sieva_adios2::fail("steps come one after the other: open for reading, and go from step to step");
    }
}

void EngineDestroy(adios2::plugin::PluginEngineInterface *engine) { delete engine; }
}
#pragma GCC visibility pop
