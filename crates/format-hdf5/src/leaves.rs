//! The leaves of a datatype: one leaf is one array.

use std::ffi::CString;

use sieva_types::{DType, Endian};

use crate::types::{Kind, Member, TypeInfo};

/// Most leaves of one type.
const LEAF_LIMIT: usize = 4096;

/// One step from a dataset's type down to a leaf.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Step {
    /// Into the member of this name.
    Member(CString),
    /// Into the items of a block of this shape.
    Items(Vec<u64>),
    /// Into the real (0) or imaginary (1) part.
    Part(usize),
}

/// One array of a dataset: the dataset itself, or a member of its compound.
#[derive(Clone, Debug)]
pub(crate) struct Leaf {
    /// What to add to the dataset's path: empty, or `.member.member`.
    pub(crate) suffix: String,
    /// Its element.
    pub(crate) element: TypeInfo,
    /// Offset of the first element in an item of the dataset.
    pub(crate) base: u64,
    /// Length and byte stride of each dimension within an item.
    pub(crate) inner: Vec<(u64, u64)>,
    /// The way from the dataset's type to the element's.
    pub(crate) steps: Vec<Step>,
}

impl Leaf {
    /// The type of the elements; `None` for what is not a number or text.
    pub(crate) fn dtype(&self) -> Option<DType> {
        match self.element.kind {
            Kind::Number { dtype, .. } => Some(dtype),
            Kind::Odd(ref number) => Some(number.dtype()),
            Kind::Text { .. } | Kind::VlenText => Some(DType::Str),
            _ => None,
        }
    }

    /// Bytes of one element as the layout counts them: 0 for text of any length.
    pub(crate) fn element_size(&self) -> usize {
        match self.element.kind {
            Kind::Number { dtype, .. } => dtype.size(),
            Kind::Odd(ref number) => number.dtype().size(),
            Kind::Text { .. } => self.element.size as usize,
            _ => 0,
        }
    }

    /// The stored type as numpy writes it.
    pub(crate) fn numpy_name(&self) -> String {
        match &self.element.kind {
            Kind::Number { dtype, endian } => {
                let code = match dtype {
                    DType::Bool => 'b',
                    d if d.is_float() => 'f',
                    d if d.as_unsigned() == *d => 'u',
                    _ => 'i',
                };
                let order = match (dtype.size(), endian) {
                    (1, _) => '|',
                    (_, Endian::Little) => '<',
                    (_, Endian::Big) => '>',
                };
                format!("{order}{code}{}", dtype.size())
            }
            Kind::Text { .. } => format!("|S{}", self.element.size),
            Kind::VlenText => "|O".into(),
            Kind::Odd(number) => number.name(),
            Kind::Other(what) => what.clone(),
            Kind::Reference => "references".into(),
            Kind::Sequence(_) => "sequences".into(),
            Kind::Complex(_) | Kind::Compound(_) | Kind::Array(..) => format!("|V{}", self.element.size),
        }
    }
}

/// The leaves of a type, and in words what was left out.
pub(crate) fn leaves(info: &TypeInfo) -> (Vec<Leaf>, Vec<String>) {
    let mut found = Vec::new();
    let mut left_out = Vec::new();
    let root =
        Leaf { suffix: String::new(), element: info.clone(), base: 0, inner: Vec::new(), steps: Vec::new() };
    let mut todo = vec![root];
    while let Some(leaf) = todo.pop() {
        if found.len() + todo.len() > LEAF_LIMIT {
            left_out.push(format!("members beyond the first {LEAF_LIMIT}"));
            break;
        }
        match leaf.element.kind.clone() {
            Kind::Compound(members) => todo.extend(members.iter().rev().filter_map(|m| leaf.member(m))),
            Kind::Array(dims, item) => todo.push(leaf.items(dims, *item)),
            Kind::Complex(item) => todo.extend([leaf.part(1, "i", &item), leaf.part(0, "r", &item)]),
            Kind::Sequence(_) => {
                left_out.push(format!("{}: variable-length sequences, not numbers or text", leaf.suffix));
            }
            Kind::Reference => left_out.push(format!("{}: references, not numbers or text", leaf.suffix)),
            Kind::Other(what) => left_out.push(format!("{}: {what}, not numbers or text", leaf.suffix)),
            _ => found.push(leaf),
        }
    }
    for text in &mut left_out {
        *text = text.trim_start_matches(": ").to_owned();
    }
    (found, left_out)
}

impl Leaf {
    fn member(&self, member: &Member) -> Option<Leaf> {
        let step = Step::Member(CString::new(member.name.clone()).ok()?);
        let name = String::from_utf8_lossy(&member.name).into_owned();
        Some(self.child(&name, member.offset, &member.info, step))
    }

    fn part(&self, part: usize, name: &str, item: &TypeInfo) -> Leaf {
        self.child(name, part as u64 * item.size, item, Step::Part(part))
    }

    fn child(&self, name: &str, offset: u64, element: &TypeInfo, step: Step) -> Leaf {
        let mut steps = self.steps.clone();
        steps.push(step);
        Leaf {
            suffix: format!("{}.{name}", self.suffix),
            element: element.clone(),
            base: self.base + offset,
            inner: self.inner.clone(),
            steps,
        }
    }

    fn items(mut self, dims: Vec<u64>, item: TypeInfo) -> Leaf {
        let strides = sieva_format::layout::c_strides(&dims, item.size);
        self.inner.extend(dims.iter().copied().zip(strides));
        self.steps.push(Step::Items(dims));
        self.element = item;
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(dtype: DType) -> TypeInfo {
        TypeInfo::new(dtype.size() as u64, Kind::Number { dtype, endian: Endian::Little })
    }

    fn member(name: &str, offset: u64, info: TypeInfo) -> Member {
        Member { name: name.into(), offset, info }
    }

    #[test]
    fn leaves_of_nested_compounds_keep_file_order_and_offsets() {
        let position = Kind::Compound(vec![
            member("x", 0, number(DType::F32)),
            member("v", 4, TypeInfo::new(24, Kind::Array(vec![2, 3], Box::new(number(DType::F32))))),
        ]);
        let info = TypeInfo::new(
            36,
            Kind::Compound(vec![
                member("id", 0, number(DType::I64)),
                member("p", 8, TypeInfo::new(28, position)),
                member("ref", 8, TypeInfo::new(8, Kind::Reference)),
            ]),
        );
        let (found, left_out) = leaves(&info);
        let got: Vec<_> = found.iter().map(|l| (l.suffix.as_str(), l.base, l.inner.clone())).collect();
        assert_eq!(got, [(".id", 0, vec![]), (".p.x", 8, vec![]), (".p.v", 12, vec![(2, 12), (3, 4)])]);
        assert_eq!(left_out, [".ref: references, not numbers or text"]);
    }

    #[test]
    fn members_move_by_what_heap_items_take_in_the_file() {
        let reference = |size| TypeInfo::new(size, Kind::Reference);
        let inner = TypeInfo::new(
            16,
            Kind::Compound(vec![
                member("text", 0, TypeInfo::new(8, Kind::VlenText)),
                member("n", 8, number(DType::I64)),
            ]),
        );
        let info = TypeInfo::new(
            64,
            Kind::Compound(vec![
                member("last", 56, number(DType::I64)),
                member("id", 0, number(DType::I32)),
                member("pair", 8, TypeInfo::new(32, Kind::Array(vec![2], Box::new(inner)))),
                member("region", 40, reference(12)),
            ]),
        );
        let places = |info: &TypeInfo| -> Vec<_> {
            leaves(info).0.iter().map(|l| (l.suffix.clone(), l.base, l.inner.clone())).collect()
        };
        let at = |name: &str, base, inner| (name.to_owned(), base, inner);
        let wide = info.in_file(8).unwrap();
        assert_eq!(wide.size, 80);
        let pair = [at(".pair.text", 8, vec![(2, 24)]), at(".pair.n", 24, vec![(2, 24)])];
        assert_eq!(places(&wide), [&[at(".last", 72, vec![]), at(".id", 0, vec![])][..], &pair].concat());
        let narrow = info.in_file(4).unwrap();
        assert_eq!(narrow.size, 68);
        let pair = [at(".pair.text", 8, vec![(2, 20)]), at(".pair.n", 20, vec![(2, 20)])];
        assert_eq!(places(&narrow), [&[at(".last", 60, vec![]), at(".id", 0, vec![])][..], &pair].concat());
        assert_eq!(reference(64).in_file(8), None);
        assert_eq!(number(DType::I32).in_file(4), Some(number(DType::I32)));
    }

    #[test]
    fn complex_numbers_are_two_leaves() {
        let info = TypeInfo::new(16, Kind::Complex(Box::new(number(DType::F64))));
        let (found, _) = leaves(&info);
        assert_eq!(
            found.iter().map(|l| (l.suffix.as_str(), l.base)).collect::<Vec<_>>(),
            [(".r", 0), (".i", 8)]
        );
        assert_eq!(found[0].numpy_name(), "<f8");
    }
}
