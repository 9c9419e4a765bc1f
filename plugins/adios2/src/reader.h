/* The engine of a program that reads: each result that comes for what a member asks of a group is a step. */
#ifndef SIEVA_ADIOS2_READER_H
#define SIEVA_ADIOS2_READER_H

#include "arrivals.h"
#include "calls.h"
#include "parameters.h"
#include "types.h"

#include <adios2/plugin/PluginEngineInterface.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

namespace sieva_adios2
{

class Reader final : public adios2::plugin::PluginEngineInterface
{
public:
    Reader(adios2::IO io, const std::string &name, adios2::Mode mode);

    adios2::StepStatus BeginStep(adios2::StepMode mode, float timeout) override;
    void EndStep() override;
    size_t CurrentStep() const override { return m_Current; }
    void DoClose(int transport) override;
    adios2::MinVarInfo *MinBlocksInfo(const std::string &name, size_t step) const override;

#define declare(T)                                                                                                     \
    void DoGetSync(adios2::Variable<T> variable, T *values) override                                                   \
    {                                                                                                                  \
        get(variable.Name(), values, variable.Start(), variable.Count());                                              \
    }                                                                                                                  \
    void DoGetDeferred(adios2::Variable<T> variable, T *values) override { DoGetSync(variable, values); }              \
    void DoGetSync(adios2::Variable<T> variable, T *values, const adios2::core::Selection &box) override               \
    {                                                                                                                  \
        check_box(variable.Name(), box);                                                                               \
        get(variable.Name(), values, box.GetStart(), box.GetCount());                                                  \
    }                                                                                                                  \
    void DoGetDeferred(adios2::Variable<T> variable, T *values, const adios2::core::Selection &box) override           \
    {                                                                                                                  \
        DoGetSync(variable, values, box);                                                                              \
    }
    ADIOS2_FOREACH_STDTYPE_1ARG(declare)
#undef declare

private:
    const Parameters m_Parameters;
    std::unique_ptr<Arrivals> m_Arrivals;
    Source m_Source;
    /* Shapes of the variables of this step. */
    std::map<std::string, std::vector<size_t>> m_Shapes;
    size_t m_Current = 0;
    bool m_IsFirst = true;

    /* Defines the variables and attributes of the step. */
    void define();
    template <class T>
    void define_as(const sieva_array &array);
    template <class T>
    void get(const std::string &name, T *values, const adios2::Dims &start, const adios2::Dims &count);
    static void check_box(const std::string &name, const adios2::core::Selection &box);
};

} // namespace sieva_adios2

#endif
