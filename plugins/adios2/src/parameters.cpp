#include "parameters.h"

#include "calls.h"

#include <algorithm>
#include <cctype>
#include <cmath>

namespace sieva_adios2
{

namespace
{

std::string lower(std::string text)
{
    std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return std::tolower(c); });
    return text;
}

std::string trimmed(const std::string &text)
{
    const auto first = text.find_first_not_of(" \t\n"), last = text.find_last_not_of(" \t\n");
    return first == std::string::npos ? "" : text.substr(first, last - first + 1);
}

std::vector<std::string> split(const std::string &text, char at)
{
    std::vector<std::string> parts;
    size_t begin = 0;
    for (size_t end; (end = text.find(at, begin)) != std::string::npos; begin = end + 1)
        parts.push_back(trimmed(text.substr(begin, end - begin)));
    parts.push_back(trimmed(text.substr(begin)));
    return parts;
}

} // namespace

Parameters::Parameters(const std::map<std::string, std::string> &given, const std::vector<std::string> &known)
{
    for (const auto &[key, value] : given) {
        const auto is = [&key](const std::string &name) { return lower(name) == lower(key); };
        // Those that ADIOS2 itself reads.
        if (is("PluginName") || is("PluginLibrary") || is("Verbose"))
            continue;
        if (std::none_of(known.begin(), known.end(), is)) {
            std::string all;
            for (const auto &name : known)
                all += (all.empty() ? "" : ", ") + name;
            fail("there is no parameter '" + key + "': there are " + all);
        }
        m_Given[lower(key)] = trimmed(value);
    }
}

bool Parameters::has(const std::string &key) const { return m_Given.count(lower(key)) > 0; }

std::optional<std::string> Parameters::text(const std::string &key) const
{
    const auto found = m_Given.find(lower(key));
    return found == m_Given.end() ? std::nullopt : std::optional(found->second);
}

std::string Parameters::needed(const std::string &key, const std::string &why) const
{
    const auto value = text(key);
    if (!value || value->empty())
        fail("the parameter " + key + " is missing: " + why);
    return *value;
}

std::optional<double> Parameters::number(const std::string &key) const
{
    const auto value = text(key);
    if (!value)
        return std::nullopt;
    size_t end = 0;
    double number = -1;
    try {
        number = std::stod(*value, &end);
    } catch (const std::exception &) {
        end = 0;
    }
    if (end != value->size() || end == 0 || !(number >= 0) || std::isinf(number))
        fail("the parameter " + key + " is '" + *value + "': it should be a number from 0 on");
    return number;
}

uint64_t Parameters::count(const std::string &key) const
{
    const double value = number(key).value_or(0);
    if (value != std::floor(value) || value > 1e15)
        fail("the parameter " + key + " is '" + text(key).value_or("") + "': it should be a whole number");
    return static_cast<uint64_t>(value);
}

uint64_t Parameters::bytes(const std::string &key) const
{
    const auto value = text(key);
    if (!value)
        return 0;
    const auto digits = value->find_first_not_of("0123456789");
    const std::string unit = digits == std::string::npos ? "" : trimmed(value->substr(digits));
    const std::map<std::string, int> shifts = {{"", 0}, {"B", 0}, {"KiB", 10}, {"MiB", 20}, {"GiB", 30}, {"TiB", 40}};
    const auto shift = shifts.find(unit);
    const std::string number = value->substr(0, digits);
    if (shift == shifts.end() || number.empty() || number.size() > 6 + (shift->second == 0 ? 9 : 0))
        fail("the parameter " + key + " is '" + *value + "': it should be bytes, such as 512MiB");
    return std::stoull(number) << shift->second;
}

bool Parameters::flag(const std::string &key) const
{
    const std::string value = lower(text(key).value_or("false"));
    if (value == "true" || value == "yes" || value == "on" || value == "1")
        return true;
    if (value == "false" || value == "no" || value == "off" || value == "0")
        return false;
    fail("the parameter " + key + " is '" + value + "': it should be true or false");
}

std::string Parameters::place() const
{
    const auto place = text("Place"), group = text("Group");
    if (place && group)
        return *place + (place->back() == '/' ? "" : "/") + *group;
    if (place || group)
        return place ? *place : *group;
    fail("the parameter Group is missing: the directory of the group, or its address in a store, such as s3://bucket/heat");
}

std::map<std::string, std::vector<std::string>> Parameters::dims() const
{
    std::map<std::string, std::vector<std::string>> named;
    const auto value = text("Dims");
    if (!value)
        return named;
    for (const auto &one : split(*value, ';')) {
        if (one.empty())
            continue;
        const auto equals = one.find('=');
        if (equals == std::string::npos)
            fail("the parameter Dims has '" + one + "': it should be as T=y,x; flags=y");
        named[trimmed(one.substr(0, equals))] = split(one.substr(equals + 1), ',');
    }
    return named;
}

} // namespace sieva_adios2
