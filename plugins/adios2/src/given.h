/* What a program gave of a step: blocks of variables, in its memory or copied. */
#ifndef SIEVA_ADIOS2_GIVEN_H
#define SIEVA_ADIOS2_GIVEN_H

#include "calls.h"
#include "ghosts.h"
#include "types.h"

#include <adios2/cxx/Variable.h>

#include <cstring>
#include <map>
#include <string>
#include <vector>

namespace sieva_adios2
{

/* A block: where it lies, and its values. */
struct Block
{
    std::vector<uint64_t> start, count;
    const void *values = nullptr;
    size_t bytes = 0;
    /* Where values is of this memory. */
    std::vector<char> copy;
    std::vector<std::string> texts;
};

/* A variable of a step. */
struct Given
{
    int32_t type = 0;
    std::vector<uint64_t> shape;
    std::vector<Block> blocks;
    /* The dimension that blocks are joined along, as they come; -1: they say where they lie. */
    int joined = -1;
    /* Why it is no array; empty where it is one. */
    std::string why_not;
};

/* The variables that a program gave of a step. */
class GivenStep
{
public:
    /* Notes values of a variable; where the program may change them before the step ends they are copied. */
    template <class T>
    void put(adios2::Variable<T> &variable, const T *values, bool copy);

    /* Copies all that was noted so far: the program may change its memory now. */
    void copy_all();

    /* The step of this name for sieva, with names for dimensions. What was given stays until it is freed. */
    Step step(const std::string &name, const std::map<std::string, std::vector<std::string>> &dims) const;

    bool is_empty() const { return m_Variables.empty(); }
    void clear() { m_Variables.clear(), m_Copied = 0; }
    /* Bytes that were copied. */
    uint64_t copied() const { return m_Copied; }

private:
    std::map<std::string, Given> m_Variables;
    uint64_t m_Copied = 0;

    static void copy(Block &block);
    static void place(Given &given, Block &block, const std::string &name);
};

/* Why a variable of this kind is no array; empty where it is one. */
inline std::string why_not(adios2::ShapeID kind, int32_t type)
{
    if (type == 0)
        return "is of complex numbers or long doubles, which have no type here";
    if (kind == adios2::ShapeID::LocalArray || kind == adios2::ShapeID::LocalValue)
        return kind == adios2::ShapeID::LocalArray ? "is a LocalArray: its blocks have no places in one array"
                                                   : "is a LocalValue: its blocks have no places in one array";
    return "";
}

template <class T>
void GivenStep::put(adios2::Variable<T> &variable, const T *values, bool copy)
{
    const std::string name = variable.Name();
    const adios2::ShapeID kind = variable.ShapeID();
    Given &given = m_Variables[name];
    given.type = number_of<T>();
    given.why_not = why_not(kind, given.type);
    if (!given.why_not.empty())
        return;
    Block block;
    if (kind != adios2::ShapeID::GlobalValue) {
        const adios2::Dims shape = variable.Shape(), start = variable.Start(), count = variable.Count();
        given.shape.assign(shape.begin(), shape.end());
        block.start.assign(start.begin(), start.end());
        block.count.assign(count.begin(), count.end());
    }
    size_t elements = 1;
    for (const uint64_t n : block.count)
        elements *= n;
    if (has_ghosts(variable))
        fail("'" + name + "' has a memory selection (ghost cells): give the values of the block alone");
    if (kind == adios2::ShapeID::JoinedArray)
        place(given, block, name);
    if constexpr (std::is_same_v<T, std::string>) {
        block.texts.assign(values, values + elements);
    } else {
        block.values = values;
        block.bytes = elements * sizeof(T);
        if (copy) {
            GivenStep::copy(block);
            m_Copied += block.bytes;
        }
    }
    given.blocks.push_back(std::move(block));
}

} // namespace sieva_adios2

#endif
