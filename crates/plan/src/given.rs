//! Names of functions that came with a question: what they do is no part of the plan, so that a name says which code it is of.

use sha2::{Digest, Sha256};

/// The name in plans of a function that came as code: its own, and half of the SHA-256 of the code.
#[must_use]
pub fn given_name(name: &str, code: &[u8]) -> String {
    let digest: String = Sha256::digest(code).iter().take(16).map(|b| format!("{b:02x}")).collect();
    format!("{name}:{digest}")
}

/// The name that a function of a plan has in text.
pub fn written_name(function: &str) -> &str {
    function.split_once(':').map_or(function, |(name, _)| name)
}

/// Whether a name has the form of one in plans: of letters, digits and `_`, with the code after a colon where it came as such.
pub(crate) fn is_function(name: &str) -> bool {
    let is_word = |name: &str| {
        name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
            && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    };
    let is_digest = |of: &str| of.len() == 32 && of.chars().all(|c| matches!(c, '0'..='9' | 'a'..='f'));
    match name.split_once(':') {
        Some((name, of)) => is_word(name) && is_digest(of),
        None => is_word(name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_tells_codes_apart() {
        let (one, two) = (given_name("f", b"one"), given_name("f", b"two"));
        assert_ne!(one, two);
        assert_eq!(one, given_name("f", b"one"));
        assert_eq!((written_name(&one), written_name("sqrt")), ("f", "sqrt"));
        assert!(is_function(&one) && is_function("sqrt"));
        for wrong in ["f:", "f:12", ":", "f:ABCDEFABCDEFABCDEFABCDEFABCDEFAB", "1f", "", "a b"] {
            assert!(!is_function(wrong), "{wrong}");
        }
    }
}
