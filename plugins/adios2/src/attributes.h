/* Attributes of an IO, as those of a step. */
#ifndef SIEVA_ADIOS2_ATTRIBUTES_H
#define SIEVA_ADIOS2_ATTRIBUTES_H

#include "calls.h"

#include <adios2/cxx/IO.h>

namespace sieva_adios2
{

/* Gives a step all attributes of an IO that have plain values. */
void give_attributes(adios2::IO &io, sieva_step *step);

/* Gives an IO the attributes of a source, in place of those that it has. */
void take_attributes(const sieva_source *source, adios2::IO &io);

} // namespace sieva_adios2

#endif
