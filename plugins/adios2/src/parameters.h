/* The parameters of the engine line. */
#ifndef SIEVA_ADIOS2_PARAMETERS_H
#define SIEVA_ADIOS2_PARAMETERS_H

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace sieva_adios2
{

class Parameters
{
public:
    /* What was given for the engine that opens `name`; `known` are the parameters that it has. Fails for others. */
    Parameters(const std::map<std::string, std::string> &given, const std::vector<std::string> &known);

    bool has(const std::string &key) const;
    std::optional<std::string> text(const std::string &key) const;
    /* Fails where it is not there. */
    std::string needed(const std::string &key, const std::string &why) const;
    /* A number that is not negative. */
    std::optional<double> number(const std::string &key) const;
    /* Bytes, such as 512MiB. */
    uint64_t bytes(const std::string &key) const;
    uint64_t count(const std::string &key) const;
    bool flag(const std::string &key) const;

    /* Where the group is: Group, or Place and Group. */
    std::string place() const;
    /* Names of dimensions: `T=y,x; flags=y`. */
    std::map<std::string, std::vector<std::string>> dims() const;

private:
    std::map<std::string, std::string> m_Given;
};

} // namespace sieva_adios2

#endif
