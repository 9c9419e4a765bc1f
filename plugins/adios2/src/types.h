/* Element types of ADIOS2 and their numbers in sieva. */
#ifndef SIEVA_ADIOS2_TYPES_H
#define SIEVA_ADIOS2_TYPES_H

#include <sieva.h>

#include <cstdint>
#include <string>
#include <type_traits>

namespace sieva_adios2
{

/* The number of a type; 0 for those that sieva has not: complex numbers, long double. */
template <class T>
constexpr int32_t number_of()
{
    if constexpr (std::is_same_v<T, std::string>)
        return SIEVA_STR;
    else if constexpr (std::is_same_v<T, float>)
        return SIEVA_F32;
    else if constexpr (std::is_same_v<T, double>)
        return SIEVA_F64;
    else if constexpr (!std::is_integral_v<T>)
        return 0;
    else if constexpr (std::is_same_v<T, char> || std::is_signed_v<T>)
        return sizeof(T) == 1 ? SIEVA_I8 : sizeof(T) == 2 ? SIEVA_I16 : sizeof(T) == 4 ? SIEVA_I32 : SIEVA_I64;
    else
        return sizeof(T) == 1 ? SIEVA_U8 : sizeof(T) == 2 ? SIEVA_U16 : sizeof(T) == 4 ? SIEVA_U32 : SIEVA_U64;
}

/* Calls f with a value of the type that ADIOS2 has for what sieva stores by this number; false where it has none. */
template <class F>
bool with_type(int32_t type, F &&f)
{
    switch (type) {
    case SIEVA_I8: f(int8_t()); return true;
    case SIEVA_I16: f(int16_t()); return true;
    case SIEVA_I32: f(int32_t()); return true;
    case SIEVA_I64: f(int64_t()); return true;
    case SIEVA_BOOL:
    case SIEVA_U8: f(uint8_t()); return true;
    case SIEVA_U16: f(uint16_t()); return true;
    case SIEVA_U32: f(uint32_t()); return true;
    case SIEVA_U64: f(uint64_t()); return true;
    case SIEVA_F16:
    case SIEVA_F32: f(float()); return true;
    case SIEVA_F64: f(double()); return true;
    case SIEVA_STR: f(std::string()); return true;
    default: return false;
    }
}

} // namespace sieva_adios2

#endif
