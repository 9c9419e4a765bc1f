/*
 * An engine of this kind is not told of memory selections, and would take the wrong values. ADIOS2's core says it of its own variable,
 * to which the public one has a private pointer: that is had by explicit instantiation, for which the language does not check access.
 */
#include "ghosts.h"

#include <adios2/common/Selection.h>

namespace sieva_adios2
{

namespace
{

template <class T>
using Inner = adios2::core::Variable<typename adios2::TypeInfo<T>::IOType> *;

template <class T, Inner<T> adios2::Variable<T>::*member>
struct Opened
{
    friend Inner<T> inner_of(const adios2::Variable<T> &variable) { return variable.*member; }
};

#define open(T)                                                                                                        \
    Inner<T> inner_of(const adios2::Variable<T> &variable);                                                            \
    template struct Opened<T, &adios2::Variable<T>::m_Variable>;
ADIOS2_FOREACH_STDTYPE_1ARG(open)
#undef open

} // namespace

#define define(T)                                                                                                      \
    bool has_ghosts(const adios2::Variable<T> &variable)                                                               \
    {                                                                                                                  \
        /* A core variable begins with its base, the only one that it has. */                                          \
        const auto *base = reinterpret_cast<const adios2::core::VariableBase *>(inner_of(variable));                   \
        return adios2::core::InferSelection(*base).HasMemorySelection();                                               \
    }
ADIOS2_FOREACH_STDTYPE_1ARG(define)
#undef define

} // namespace sieva_adios2
