/* The engine of a program that writes: what is asked of a group is made of each step, from the program's memory. */
#ifndef SIEVA_ADIOS2_WRITER_H
#define SIEVA_ADIOS2_WRITER_H

#include "calls.h"
#include "given.h"
#include "parameters.h"

#include <adios2/plugin/PluginEngineInterface.h>

namespace sieva_adios2
{

class Writer final : public adios2::plugin::PluginEngineInterface
{
public:
    Writer(adios2::IO io, const std::string &name, adios2::Mode mode);

    adios2::StepStatus BeginStep(adios2::StepMode mode, float timeout) override;
    void EndStep() override;
    size_t CurrentStep() const override { return m_Current; }
    void PerformPuts() override;
    void DoClose(int transport) override;

#define declare(T)                                                                                                     \
    void DoPutSync(adios2::Variable<T> variable, const T *values) override { put(variable, values, true); }            \
    void DoPutDeferred(adios2::Variable<T> variable, const T *values) override { put(variable, values, false); }
    ADIOS2_FOREACH_STDTYPE_1ARG(declare)
#undef declare

#define declare(T)                                                                                                     \
    void DoPut(adios2::Variable<T> variable, adios2::Variable<T>::Span &, bool, const T &) override                   \
    {                                                                                                                  \
        no_span(variable.Name());                                                                                      \
    }
    ADIOS2_FOREACH_PRIMITIVE_STDTYPE_1ARG(declare)
#undef declare

private:
    const Parameters m_Parameters;
    const std::map<std::string, std::vector<std::string>> m_Dims;
    std::string m_Producer, m_Spool;
    Group m_Group;
    sieva_produce_options m_Options = SIEVA_PRODUCE_INIT;
    GivenStep m_Given;
    size_t m_Current = 0, m_First = 0;
    bool m_IsBegun = false, m_IsFirst = true;

    template <class T>
    void put(adios2::Variable<T> &variable, const T *values, bool copy)
    {
        m_Given.put(variable, values, copy);
        check_room();
    }

    void check_room() const;
    [[noreturn]] static void no_span(const std::string &name);
    /* Gives the group what it asks of what was put. */
    void give();
};

} // namespace sieva_adios2

#endif
