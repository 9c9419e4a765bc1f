#include "given.h"

namespace sieva_adios2
{

void GivenStep::copy(Block &block)
{
    const char *from = static_cast<const char *>(block.values);
    block.copy.assign(from, from + block.bytes);
    block.values = block.copy.data();
}

void GivenStep::copy_all()
{
    for (auto &[name, given] : m_Variables)
        for (Block &block : given.blocks)
            if (block.bytes > 0 && block.copy.empty()) {
                copy(block);
                m_Copied += block.bytes;
            }
}

/* The place of a block of a joined array: behind those before it. */
void GivenStep::place(Given &given, Block &block, const std::string &name)
{
    for (size_t d = 0; d < given.shape.size(); d++)
        if (given.shape[d] == adios2::JoinedDim)
            given.joined = static_cast<int>(d);
    block.start.assign(block.count.size(), 0);
    if (given.joined < 0 || static_cast<size_t>(given.joined) >= block.count.size())
        fail("'" + name + "' is a JoinedArray without a dimension to join");
    for (const Block &before : given.blocks)
        block.start[given.joined] += before.count[given.joined];
}

Step GivenStep::step(const std::string &name, const std::map<std::string, std::vector<std::string>> &dims) const
{
    sieva_step *made = nullptr;
    check(sieva_step_create(name.c_str(), &made), "making a step");
    Step step(made);
    for (const auto &[path, given] : m_Variables) {
        const std::string what = "the variable '" + path + "'";
        if (!given.why_not.empty()) {
            check(sieva_step_leave_out(made, path.c_str(), given.why_not.c_str()), what);
            continue;
        }
        std::vector<uint64_t> shape = given.shape;
        if (given.joined >= 0) {
            shape[given.joined] = 0;
            for (const Block &block : given.blocks)
                shape[given.joined] += block.count[given.joined];
        }
        std::vector<const char *> names;
        const auto named = dims.find(path);
        if (named != dims.end()) {
            for (const auto &dim : named->second)
                names.push_back(dim.c_str());
            if (names.size() != shape.size())
                fail(what + " has " + std::to_string(shape.size()) + " dimensions, the parameter Dims names " +
                     std::to_string(names.size()));
        }
        const auto rank = static_cast<uint32_t>(shape.size());
        check(sieva_step_array(made, path.c_str(), given.type, rank, shape.data(), names.empty() ? nullptr : names.data()),
              what);
        for (const Block &block : given.blocks) {
            std::vector<const char *> texts;
            for (const auto &text : block.texts)
                texts.push_back(text.c_str());
            const void *values = given.type == SIEVA_STR ? static_cast<const void *>(texts.data()) : block.values;
            const bool is_single = shape.empty();
            check(sieva_step_block(made, path.c_str(), is_single ? nullptr : block.start.data(),
                                   is_single ? nullptr : block.count.data(), values),
                  what);
        }
    }
    return step;
}

} // namespace sieva_adios2
