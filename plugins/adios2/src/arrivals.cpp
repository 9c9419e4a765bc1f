#include "arrivals.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <thread>

namespace fs = std::filesystem;

namespace sieva_adios2
{

namespace
{

/* Seconds between two looks at the group. */
const double POLL = 0.2;

fs::path new_folder()
{
    std::string name = (fs::temp_directory_path() / "sieva-adios2-XXXXXX").string();
    if (!mkdtemp(&name[0]))
        fail("no folder for results can be made in '" + fs::temp_directory_path().string() + "': give one by the parameter Folder");
    return name;
}

} // namespace

Arrivals::Arrivals(const Parameters &parameters)
: m_Place(parameters.place()), m_Member(parameters.needed("Member", "as whom the program asks")),
  m_Ask(parameters.needed("Ask", "the name of what the member asks for")), m_Producer(parameters.text("Producer").value_or("")),
  m_Poll(parameters.number("Poll").value_or(POLL))
{
    sieva_group *group = nullptr;
    check(sieva_group_open(m_Place.c_str(), &group), "opening the group at '" + m_Place + "'");
    m_Group.reset(group);
    if (parameters.has("SQL"))
        ask(parameters);
    const auto folder = parameters.text("Folder");
    m_IsOwn = !folder;
    m_Folder = folder ? fs::path(*folder) : new_folder();
    try {
        fill_from_folder();
        look();
    } catch (...) {
        // Nobody calls the destructor of what was not made.
        std::error_code ignored;
        if (m_IsOwn)
            fs::remove_all(m_Folder, ignored);
        throw;
    }
}

Arrivals::~Arrivals()
{
    std::error_code ignored;
    if (m_IsOwn)
        fs::remove_all(m_Folder, ignored);
}

void Arrivals::ask(const Parameters &parameters)
{
    const std::string sql = *parameters.text("SQL");
    const char *name = m_Ask.c_str(), *text = sql.c_str();
    const int32_t only_new = parameters.flag("New") ? 1 : 0;
    check(sieva_group_ask(m_Group.get(), m_Member.c_str(), &name, &text, 1, "netcdf", only_new), "asking for '" + m_Ask + "'");
}

/* What an earlier program fetched and did not read. */
void Arrivals::fill_from_folder()
{
    if (!fs::is_directory(m_Folder))
        return;
    std::vector<std::pair<fs::file_time_type, fs::path>> found;
    for (const auto &entry : fs::directory_iterator(m_Folder))
        if (entry.is_regular_file() && entry.path().filename().string()[0] != '.')
            found.emplace_back(entry.last_write_time(), entry.path());
    std::sort(found.begin(), found.end());
    for (auto &[time, path] : found)
        m_Files.push_back(std::move(path));
}

void Arrivals::look()
{
    sieva_followed done = SIEVA_FOLLOWED_INIT;
    check(sieva_group_follow(m_Group.get(), m_Member.c_str(), m_Ask.c_str(), m_Folder.c_str(), nullptr, &done),
          "following '" + m_Ask + "' of '" + m_Member + "'");
    for (uint64_t i = 0; i < done.files; i++) {
        const auto path = text_of([&](char *text, uint64_t room, uint64_t *needed) {
            return sieva_group_followed(m_Group.get(), i, text, room, needed);
        }, "asking for a file");
        // One that came anew takes the place of the one that was not read yet.
        m_Files.erase(std::remove(m_Files.begin(), m_Files.end(), fs::path(path)), m_Files.end());
        m_Files.push_back(path);
    }
    if (done.failures > 0 || done.troubles > 0)
        m_Told = "'" + m_Ask + "' of '" + m_Member + "' could not be answered: " +
                 text_of([&](char *text, uint64_t room, uint64_t *needed) {
                     return sieva_group_troubles(m_Group.get(), text, room, needed);
                 }, "asking what could not be done");
}

bool Arrivals::is_over() const
{
    int32_t over = 0;
    check(sieva_group_is_over(m_Group.get(), m_Producer.empty() ? nullptr : m_Producer.c_str(), &over),
          "asking whether more is to come");
    return over != 0;
}

Arrivals::Found Arrivals::next(double timeout)
{
    using clock = std::chrono::steady_clock;
    const auto begun = clock::now();
    while (m_Files.empty() && m_Told.empty()) {
        // Asked before the pass: what was put until then is found by it.
        const bool over = is_over();
        look();
        if (!m_Files.empty() || !m_Told.empty())
            break;
        if (over)
            return Found::Over;
        const double waited = std::chrono::duration<double>(clock::now() - begun).count();
        if (timeout >= 0 && waited >= timeout)
            return Found::Later;
        const double left = timeout >= 0 ? timeout - waited : m_Poll;
        std::this_thread::sleep_for(std::chrono::duration<double>(std::min(m_Poll, left)));
    }
    // First what came, then what did not: it is told once nothing else is left to be read.
    if (!m_Files.empty())
        return Found::File;
    const std::string told = std::move(m_Told);
    m_Told.clear();
    fail(told);
}

void Arrivals::took()
{
    std::error_code ignored;
    fs::remove(m_Files.front(), ignored);
    m_Files.pop_front();
}

} // namespace sieva_adios2
