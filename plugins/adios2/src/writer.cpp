#include "writer.h"

#include "attributes.h"

#include <cstdio>
#include <iostream>

namespace sieva_adios2
{

namespace
{

const std::vector<std::string> KNOWN = {"Group",   "Place",      "Producer", "Dims",  "FirstStep", "Memory", "AskMemory",
                                        "AskTime", "ResultSize", "Threads",  "Spool"};

} // namespace

Writer::Writer(adios2::IO io, const std::string &name, adios2::Mode mode)
: PluginEngineInterface(io, name, mode), m_Parameters(io.Parameters(), KNOWN), m_Dims(m_Parameters.dims()),
  m_Producer(m_Parameters.text("Producer").value_or(io.Name())), m_Spool(m_Parameters.text("Spool").value_or(""))
{
    m_Options.memory = m_Parameters.bytes("Memory");
    m_Options.ask_memory = m_Parameters.bytes("AskMemory");
    m_Options.result_size = m_Parameters.bytes("ResultSize");
    m_Options.ask_time = m_Parameters.number("AskTime").value_or(0);
    m_Options.threads = static_cast<uint32_t>(m_Parameters.count("Threads"));
    m_Options.spool = m_Spool.empty() ? nullptr : m_Spool.c_str();
    m_First = m_Parameters.count("FirstStep");
    const std::string place = m_Parameters.place();
    sieva_group *group = nullptr;
    check(sieva_group_create(place.c_str(), nullptr, nullptr, 0, 0, &group), "opening the group at '" + place + "'");
    m_Group.reset(group);
    check(sieva_group_register(group, m_Producer.c_str()), "becoming the producer '" + m_Producer + "'");
}

adios2::StepStatus Writer::BeginStep(adios2::StepMode, float)
{
    if (m_IsBegun)
        fail("a step begins before the one before it has ended");
    if (!m_IsFirst)
        m_Current++;
    m_IsBegun = true, m_IsFirst = false;
    return adios2::StepStatus::OK;
}

void Writer::EndStep()
{
    if (!m_IsBegun)
        fail("a step ends that was not begun");
    m_IsBegun = false;
    give();
}

void Writer::PerformPuts()
{
    m_Given.copy_all();
    check_room();
}

void Writer::DoClose(int)
{
    // A program without steps puts, and closes.
    if (m_IsBegun || !m_Given.is_empty()) {
        m_IsBegun = false;
        give();
    }
    check(sieva_group_end(m_Group.get(), m_Producer.c_str()), "saying that no step comes any more");
}

void Writer::check_room() const
{
    if (m_Options.memory > 0 && m_Given.copied() > m_Options.memory)
        fail("the copies of what was put synchronously take " + std::to_string(m_Given.copied()) + " bytes, Memory allows " +
             std::to_string(m_Options.memory) + ": put large arrays deferred, which copies nothing, or allow more");
}

void Writer::no_span(const std::string &name)
{
    fail("'" + name + "' is put as a span, for which an engine of this kind has no memory: put it from memory of your own");
}

void Writer::give()
{
    char number[32];
    std::snprintf(number, sizeof number, ".%06zu", m_First + m_Current);
    const std::string name = m_Producer + number;
    sieva_produced done = SIEVA_PRODUCED_INIT;
    {
        const Step step = m_Given.step(name, m_Dims);
        give_attributes(m_IO, step.get());
        const int32_t code = sieva_group_produce_step(m_Group.get(), m_Producer.c_str(), step.get(), &m_Options, &done);
        const std::string told = code == SIEVA_OK ? "" : sieva_error_message();
        m_Given.clear();
        if (code != SIEVA_OK)
            fail("the step '" + name + "': " + sieva_error_name(code) + ": " + told);
    }
    if (done.troubles > 0)
        // What is wrong with the records of one member is no fault of the program.
        std::cerr << "sieva, the step '" << name << "': "
                  << text_of([&](char *text, uint64_t room, uint64_t *needed) {
                         return sieva_group_troubles(m_Group.get(), text, room, needed);
                     }, "asking what could not be done")
                  << std::endl;
}

} // namespace sieva_adios2
