#include "attributes.h"

#include "types.h"

#include <adios2/cxx/Types.h>

namespace sieva_adios2
{

namespace
{

template <class T>
void give(adios2::IO &io, sieva_step *step, const std::string &name)
{
    const auto attribute = io.InquireAttribute<T>(name);
    if (!attribute)
        return;
    const std::vector<T> values = attribute.Data();
    const std::string what = "the attribute '" + name + "'";
    if constexpr (std::is_same_v<T, std::string>) {
        std::vector<const char *> texts;
        for (const auto &text : values)
            texts.push_back(text.c_str());
        check(sieva_step_attribute(step, name.c_str(), SIEVA_STR, texts.size(), texts.data()), what);
    } else {
        check(sieva_step_attribute(step, name.c_str(), number_of<T>(), values.size(), values.data()), what);
    }
}

/* Texts of an attribute of a source. */
std::vector<std::string> texts_of(const sieva_source *source, const char *owner, const sieva_attribute &attribute)
{
    std::vector<std::string> texts;
    for (uint64_t i = 0; i < attribute.count; i++) {
        const char *text = nullptr;
        check(sieva_attribute_text(source, owner, attribute.name, i, &text), "reading an attribute");
        texts.emplace_back(text);
    }
    return texts;
}

/* Gives an IO the attributes of an array, whose names then begin with its path, or of the whole source. */
void take_of(const sieva_source *source, const char *owner, adios2::IO &io)
{
    uint64_t count = 0;
    check(sieva_attribute_count(source, owner, &count), "counting attributes");
    for (uint64_t i = 0; i < count; i++) {
        sieva_attribute attribute;
        check(sieva_attribute_describe(source, owner, i, &attribute), "describing an attribute");
        const std::string name = (owner ? std::string(owner) + "/" : "") + attribute.name;
        if (attribute.count == 0)
            continue;
        with_type(attribute.type, [&](auto zero) {
            using T = decltype(zero);
            std::vector<T> values(attribute.count);
            if constexpr (std::is_same_v<T, std::string>) {
                values = texts_of(source, owner, attribute);
            } else {
                uint64_t got = 0;
                check(sieva_attribute_read(source, owner, attribute.name, number_of<T>(), values.data(), values.size(), &got),
                      "reading an attribute");
            }
            if (values.size() == 1)
                io.DefineAttribute<T>(name, values[0]);
            else
                io.DefineAttribute<T>(name, values.data(), values.size());
        });
    }
}

} // namespace

void give_attributes(adios2::IO &io, sieva_step *step)
{
    for (const auto &[name, about] : io.AvailableAttributes("", "/", true)) {
        const std::string type = io.AttributeType(name);
#define give_one(T)                                                                                                    \
    if (number_of<T>() != 0 && type == adios2::GetType<T>())                                                           \
        give<T>(io, step, name);
        ADIOS2_FOREACH_ATTRIBUTE_STDTYPE_1ARG(give_one)
#undef give_one
    }
}

void take_attributes(const sieva_source *source, adios2::IO &io)
{
    io.RemoveAllAttributes();
    take_of(source, nullptr, io);
    uint64_t arrays = 0, dimensions = 0;
    check(sieva_source_count(source, &arrays, &dimensions), "counting arrays");
    for (uint64_t i = 0; i < arrays; i++) {
        sieva_array array;
        check(sieva_array_describe(source, i, &array), "describing an array");
        take_of(source, array.path, io);
    }
}

} // namespace sieva_adios2
