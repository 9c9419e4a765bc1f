//! Where the members of a JSON object are, without parsing them. What is found is parsed afterwards, which checks it.

use std::ops::Range;

use sieva_types::Result;

/// Where the value at `path` is in the object at `text`; `None` where there is none, or the text is no JSON. Of members of
/// one name the last counts, as everywhere.
pub(crate) fn value_at(bytes: &[u8], text: &Range<usize>, path: &[&str]) -> Option<Range<usize>> {
    let mut at = text.clone();
    for name in path {
        let mut found = None;
        let whole = each_member(bytes, &at, &mut |key, value| {
            if is_named(&bytes[key], name) {
                found = Some(value);
            }
            Ok(())
        });
        at = found.filter(|_| matches!(whole, Ok(true)))?;
    }
    Some(at)
}

/// Whether a key, with its quotation marks, says `name`.
fn is_named(key: &[u8], name: &str) -> bool {
    let plain = key.len() == name.len() + 2 && key.get(1..=name.len()) == Some(name.as_bytes());
    // Escaped or not.
    plain || key.contains(&b'\\') && serde_json::from_slice::<String>(key).is_ok_and(|k| k == name)
}

/// Calls `each` with the places of key (with its quotation marks) and value of each member of the object at `text`; false
/// where there is no such object.
///
/// # Errors
/// Those of `each`.
pub(crate) fn each_member(
    bytes: &[u8],
    text: &Range<usize>,
    each: &mut dyn FnMut(Range<usize>, Range<usize>) -> Result<()>,
) -> Result<bool> {
    let Some(bytes) = bytes.get(..text.end) else { return Ok(false) };
    let mut scan = Scan { bytes, at: text.start };
    if !scan.take(b'{') {
        return Ok(false);
    }
    if scan.take(b'}') {
        return Ok(true);
    }
    loop {
        let Some(key) = scan.text() else { return Ok(false) };
        if !scan.take(b':') {
            return Ok(false);
        }
        let Some(value) = scan.value() else { return Ok(false) };
        each(key, value)?;
        if !scan.take(b',') {
            return Ok(scan.take(b'}'));
        }
    }
}

struct Scan<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Scan<'_> {
    /// The next byte that is no space.
    fn peek(&mut self) -> Option<u8> {
        while self.bytes.get(self.at).is_some_and(|b| b" \t\r\n".contains(b)) {
            self.at += 1;
        }
        self.bytes.get(self.at).copied()
    }

    /// Goes past this byte, where it comes next.
    fn take(&mut self, byte: u8) -> bool {
        let is_next = self.peek() == Some(byte);
        self.at += usize::from(is_next);
        is_next
    }

    /// Goes past a text.
    fn text(&mut self) -> Option<Range<usize>> {
        self.peek().filter(|&b| b == b'"')?;
        let start = self.at;
        self.at += 1;
        loop {
            let byte = *self.bytes.get(self.at)?;
            self.at += if byte == b'\\' { 2 } else { 1 };
            if byte == b'"' {
                return Some(start..self.at);
            }
        }
    }

    /// Goes past a value of any kind.
    fn value(&mut self) -> Option<Range<usize>> {
        self.peek()?;
        let start = self.at;
        let mut depth = 0_usize;
        loop {
            match self.bytes.get(self.at)? {
                b'"' => {
                    self.text()?;
                    if depth == 0 {
                        break;
                    }
                }
                b'{' | b'[' => {
                    depth += 1;
                    self.at += 1;
                }
                b'}' | b']' if depth <= 1 => {
                    // That of the value itself, or after a number that of what it is in.
                    self.at += depth;
                    break;
                }
                b'}' | b']' => {
                    depth -= 1;
                    self.at += 1;
                }
                b',' if depth == 0 => break,
                _ => self.at += 1,
            }
        }
        (self.at > start).then_some(start..self.at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at<'a>(text: &'a str, path: &[&str]) -> Option<&'a str> {
        value_at(text.as_bytes(), &(0..text.len()), path).map(|range| text[range].trim_end())
    }

    #[test]
    fn members_are_found_where_they_are() {
        let text =
            r#" { "a" : {"x": [1, {"y": "}\""}], "x\u0062" : -1.5e3 } , "b":NaN, "c" : "t,}" , "b": [ ] }  "#;
        assert_eq!(at(text, &["a", "x"]), Some(r#"[1, {"y": "}\""}]"#));
        assert_eq!(at(text, &["a", "xb"]), Some("-1.5e3"));
        assert_eq!(at(text, &["b"]), Some("[ ]"));
        assert_eq!(at(text, &["c"]), Some("\"t,}\""));
        assert_eq!(at(text, &["a", "x", "y"]), None);
        assert_eq!(at(text, &["d"]), None);
        assert_eq!(at("{}", &["d"]), None);
        assert_eq!(at("{}", &[]), Some("{}"));
    }

    #[test]
    fn what_is_no_json_has_no_members() {
        for text in [
            "",
            "{",
            "[1]",
            "{\"a\"",
            "{\"a\":",
            "{\"a\":1",
            "{\"a\" 1}",
            "{a:1}",
            "{\"a\":[1}",
            "{\"a\":\"\\\"",
            "{\"a\":}",
        ] {
            assert_eq!(at(text, &["a"]), None, "{text}");
        }
    }

    #[test]
    fn deep_nesting_takes_no_stack() {
        let text = format!("{{\"a\":{}1{}}}", "[".repeat(1_000_000), "]".repeat(1_000_000));
        assert_eq!(at(&text, &["a"]).map(str::len), Some(2_000_001));
    }
}
