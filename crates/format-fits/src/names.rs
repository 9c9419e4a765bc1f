//! Names of HDUs and columns as parts of paths.

use std::collections::HashSet;

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
}

impl Unique {
    /// `name`, or where it is taken `name_N` with N from `next` on.
    pub(crate) fn name(&mut self, name: String, next: u64) -> String {
        if self.taken.insert(name.clone()) {
            return name;
        }
        let mut n = next.max(2);
        loop {
            let other = format!("{name}_{n}");
            if self.taken.insert(other.clone()) {
                return other;
            }
            // A file of equal names asks for as many numbers as it has names, whichever it begins with.
            n = if n == next && next > 2 { 2 } else { n + 1 };
        }
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
