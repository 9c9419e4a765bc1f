/* Calls of sieva as C++ has them: an error is an exception, and handles free themselves. */
#ifndef SIEVA_ADIOS2_CALLS_H
#define SIEVA_ADIOS2_CALLS_H

#include <sieva.h>

#include <functional>
#include <memory>
#include <stdexcept>
#include <string>

namespace sieva_adios2
{

/* What a program gets to see: who says it, what was done, and why that failed. */
[[noreturn]] inline void fail(const std::string &what)
{
    throw std::runtime_error("sieva, as an engine of ADIOS2: " + what);
}

/* Fails where a call of sieva did. */
inline void check(int32_t status, const std::string &what)
{
    if (status != SIEVA_OK)
        fail(what + ": " + sieva_error_name(status) + ": " + sieva_error_message());
}

template <class T, void (*release)(T *)>
struct Release
{
    void operator()(T *handle) const { release(handle); }
};

using Group = std::unique_ptr<sieva_group, Release<sieva_group, sieva_group_close>>;
using Step = std::unique_ptr<sieva_step, Release<sieva_step, sieva_step_free>>;
using Source = std::unique_ptr<sieva_source, Release<sieva_source, sieva_close>>;

/* A text that a call gives in two steps: its length, and its bytes. */
inline std::string text_of(const std::function<int32_t(char *, uint64_t, uint64_t *)> &call, const std::string &what)
{
    uint64_t needed = 0;
    check(call(nullptr, 0, &needed), what);
    std::string text(needed, '\0');
    check(call(&text[0], needed, nullptr), what);
    text.resize(needed - 1);
    return text;
}

} // namespace sieva_adios2

#endif
