/* Whether a variable has a memory selection: its block lies within larger memory, with ghost cells around it. */
#ifndef SIEVA_ADIOS2_GHOSTS_H
#define SIEVA_ADIOS2_GHOSTS_H

#include <adios2/common/ADIOSMacros.h>
#include <adios2/cxx/Variable.h>

namespace sieva_adios2
{

#define declare(T) bool has_ghosts(const adios2::Variable<T> &variable);
ADIOS2_FOREACH_STDTYPE_1ARG(declare)
#undef declare

} // namespace sieva_adios2

#endif
