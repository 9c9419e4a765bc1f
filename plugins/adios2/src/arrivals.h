/* The results that come for an ask of a member, in order: files in a folder, each taken once. */
#ifndef SIEVA_ADIOS2_ARRIVALS_H
#define SIEVA_ADIOS2_ARRIVALS_H

#include "calls.h"
#include "parameters.h"

#include <deque>
#include <filesystem>
#include <string>

namespace sieva_adios2
{

class Arrivals
{
public:
    /* Of the ask that the parameters name; asks for it where they have SQL. */
    explicit Arrivals(const Parameters &parameters);
    ~Arrivals();
    Arrivals(const Arrivals &) = delete;
    Arrivals &operator=(const Arrivals &) = delete;

    enum class Found { File, Later, Over };

    /* Looks for the next result, for so many seconds; below 0: until there is one, or no more comes. Fails by what an answer that is
     * an error says; the next call goes on behind it. */
    Found next(double timeout);

    /* The file that was found. */
    const std::filesystem::path &file() const { return m_Files.front(); }

    /* The file was read, and is not needed any more. */
    void took();

private:
    std::string m_Place, m_Member, m_Ask, m_Producer;
    std::filesystem::path m_Folder;
    /* Whether the folder is removed in the end. */
    bool m_IsOwn = false;
    double m_Poll;
    Group m_Group;
    std::deque<std::filesystem::path> m_Files;
    /* What could not be answered and was not told yet. */
    std::string m_Told;

    void ask(const Parameters &parameters);
    void fill_from_folder();
    /* One pass: what is new is in the folder then, and what went wrong is kept until the next step is asked for. */
    void look();
    bool is_over() const;
};

} // namespace sieva_adios2

#endif
