//! Types of the C subset, and how the text names them.

use crate::element::Element;

/// The type of a value, or none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ty {
    Void,
    Of(Element),
}

/// Whether a type can begin with this word.
pub(crate) fn is_type_word(word: &str) -> bool {
    matches!(
        word,
        "void"
            | "int"
            | "long"
            | "short"
            | "char"
            | "float"
            | "double"
            | "signed"
            | "unsigned"
            | "const"
            | "static"
    ) || alias(word).is_some()
}

fn alias(word: &str) -> Option<Element> {
    Some(match word {
        "int8_t" => Element::I8,
        "uint8_t" => Element::U8,
        "int16_t" => Element::I16,
        "uint16_t" => Element::U16,
        "int32_t" => Element::I32,
        "uint32_t" => Element::U32,
        "int64_t" => Element::I64,
        "uint64_t" | "size_t" => Element::U64,
        _ => return None,
    })
}

/// The type of words as `unsigned long`, in any order; `None` for what is no type.
pub(crate) fn of_words(words: &[String]) -> Option<Ty> {
    if let [word] = words {
        if word == "void" {
            return Some(Ty::Void);
        }
        if let Some(element) = alias(word) {
            return Some(Ty::Of(element));
        }
    }
    let count = |of: &str| words.iter().filter(|w| *w == of).count();
    let (unsigned, signed, long) = (count("unsigned"), count("signed"), count("long"));
    let known = unsigned + signed + long + count("int") + count("short") + count("char");
    if unsigned + signed > 1 || count("int") > 1 || long > 2 || words.is_empty() {
        return None;
    }
    let pick = |s: Element, u: Element| Some(Ty::Of(if unsigned == 1 { u } else { s }));
    match (count("char"), count("short"), long, count("float"), count("double")) {
        (0, 0, 0, 1, 0) if words.len() == 1 => Some(Ty::Of(Element::F32)),
        (0, 0, 0, 0, 1) if words.len() == 1 => Some(Ty::Of(Element::F64)),
        _ if known != words.len() => None,
        (1, 0, 0, 0, 0) if count("int") == 0 => pick(Element::I8, Element::U8),
        (0, 1, 0, 0, 0) => pick(Element::I16, Element::U16),
        (0, 0, 1 | 2, 0, 0) => pick(Element::I64, Element::U64),
        (0, 0, 0, 0, 0) => pick(Element::I32, Element::U32),
        _ => None,
    }
}
