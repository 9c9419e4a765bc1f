//! Names of HDUs and columns as parts of paths.

use std::collections::{HashMap, HashSet};

/// The longest name that is taken over, in characters.
const MAX_NAME: usize = 256;

/// A name that can stand in a path: without slashes and control characters, and no `.` or `..`.
pub(crate) fn sanitised(name: &str) -> String {
    let clean = |c: char| if c == '/' || c == '\\' || c.is_control() { '_' } else { c };
    let name: String = name.trim().chars().take(MAX_NAME).map(clean).collect();
    if !name.is_empty() && name.bytes().all(|b| b == b'.') { "_".repeat(name.len()) } else { name }
}

/// Names that are given once.
#[derive(Debug, Default)]
pub(crate) struct Unique {
    taken: HashSet<String>,
    /// The number to try next behind a name: a file of equal names must not cost the square of their count.
    next: HashMap<String, u64>,
}

impl Unique {
    /// `name`; where it is taken `name_N` with N = `wanted`, or the first number that is free.
    pub(crate) fn name(&mut self, name: String, wanted: u64) -> String {
        if self.taken.insert(name.clone()) {
            return name;
        }
        let numbered = |n: u64| format!("{name}_{n}");
        if wanted > 1 && self.taken.insert(numbered(wanted)) {
            return numbered(wanted);
        }
        let mut n = self.next.get(&name).copied().unwrap_or(2);
        while !self.taken.insert(numbered(n)) {
            n += 1;
        }
        self.next.insert(name.clone(), n + 1);
        numbered(n)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_stay_whole() {
        assert_eq!(sanitised(" SCI "), "SCI");
        assert_eq!(sanitised("a/b\n.c"), "a_b_.c");
        assert_eq!(sanitised(".."), "__");
        assert_eq!(sanitised(""), "");
    }

    #[test]
    fn a_name_given_twice_gets_its_version() {
        let mut names = Unique::default();
        let mut sci = |version| names.name("SCI".into(), version);
        assert_eq!(sci(1), "SCI");
        assert_eq!(sci(2), "SCI_2");
        assert_eq!(sci(7), "SCI_7");
        assert_eq!(sci(7), "SCI_3");
        assert_eq!(sci(1), "SCI_4");
    }
}
