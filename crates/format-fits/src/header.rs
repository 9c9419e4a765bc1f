//! A header: its keywords by name, and its commentary.

use std::collections::HashMap;

use sieva_format::schema::{Attr, AttrValue};

use crate::card::{self, CARD, Card, Value};

/// The longest text that `CONTINUE` cards may build, in bytes.
const MAX_TEXT: usize = 1 << 20;

/// A parsed header. Of a keyword that is written twice the first counts.
#[derive(Debug, Default)]
pub(crate) struct Header {
    cards: Vec<(String, Value)>,
    by_name: HashMap<String, usize>,
    commentary: Vec<(String, String)>,
    /// The text of the last card goes on in the next one.
    open: bool,
}

impl Header {
    /// Adds the cards of a block; true once the header has ended.
    pub(crate) fn add_block(&mut self, block: &[u8]) -> bool {
        for bytes in block.chunks_exact(CARD) {
            match card::parse(bytes) {
                Card::End => return true,
                Card::Keyword(name, value) => self.add(name, value),
                Card::Continue(piece) => self.go_on(&piece),
                Card::Commentary(keyword, line) => {
                    self.open = false;
                    if !line.is_empty() && matches!(keyword.as_str(), "COMMENT" | "HISTORY") {
                        self.commentary.push((keyword, line));
                    }
                }
            }
        }
        false
    }

    fn add(&mut self, name: String, value: Value) {
        self.open = false;
        if self.by_name.contains_key(&name) {
            return;
        }
        self.open = matches!(&value, Value::Text(t) if t.ends_with('&'));
        self.by_name.insert(name.clone(), self.cards.len());
        self.cards.push((name, value));
    }

    fn go_on(&mut self, piece: &str) {
        if let (true, Some((_, Value::Text(text)))) = (self.open, self.cards.last_mut())
            && text.len() < MAX_TEXT
        {
            text.pop();
            text.push_str(piece);
            self.open = piece.ends_with('&');
        }
    }

    /// The value of a keyword.
    pub(crate) fn get(&self, name: &str) -> Option<&Value> {
        self.by_name.get(name).and_then(|&i| self.cards.get(i)).map(|(_, v)| v)
    }

    /// An integer; a real number without a fraction is one too.
    pub(crate) fn int(&self, name: &str) -> Option<i128> {
        match self.get(name)? {
            Value::Int(i) => Some(*i),
            Value::Float(f) if f.fract() == 0.0 && f.abs() < 1e30 => Some(*f as i128),
            _ => None,
        }
    }

    /// A number.
    pub(crate) fn float(&self, name: &str) -> Option<f64> {
        match self.get(name)? {
            Value::Int(i) => Some(*i as f64),
            Value::Float(f) => Some(*f),
            _ => None,
        }
    }

    /// A text without spaces around it.
    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        match self.get(name)? {
            Value::Text(t) => Some(t.trim()),
            _ => None,
        }
    }

    /// Whether a logical keyword is there and true.
    pub(crate) fn is_true(&self, name: &str) -> bool {
        self.get(name) == Some(&Value::Logical(true))
    }

    /// The keywords that `keep` wants, and the commentary, as attributes in the order of the file.
    pub(crate) fn attrs(&self, keep: impl Fn(&str) -> bool) -> Vec<Attr> {
        let kept = self.cards.iter().filter(|(name, _)| keep(name));
        let mut attrs: Vec<Attr> = kept.map(|(name, value)| (name.clone(), value.to_attr())).collect();
        for name in ["COMMENT", "HISTORY"] {
            let lines = self.commentary.iter().filter(|(keyword, _)| keyword == name);
            let lines: Vec<String> = lines.map(|(_, line)| line.clone()).collect();
            if !lines.is_empty() && !self.by_name.contains_key(name) {
                attrs.push((name.into(), AttrValue::Texts(lines)));
            }
        }
        attrs
    }

    /// The keywords and values in the order of the file.
    pub(crate) fn keywords(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.cards.iter().map(|(name, value)| (name.as_str(), value))
    }
}

/// Keywords that say how data are stored, which the schema says in its own way.
pub(crate) fn is_structural(name: &str) -> bool {
    let numbered = |stem: &str| {
        name.strip_prefix(stem).is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()))
    };
    let plain = [
        "SIMPLE", "XTENSION", "BITPIX", "NAXIS", "EXTEND", "PCOUNT", "GCOUNT", "GROUPS", "TFIELDS", "THEAP",
        "CHECKSUM", "DATASUM", "ZIMAGE", "ZSIMPLE", "ZTENSION", "ZBITPIX", "ZNAXIS", "ZEXTEND", "ZPCOUNT",
        "ZGCOUNT", "ZHECKSUM", "ZDATASUM", "ZCMPTYPE", "ZQUANTIZ", "ZDITHER0", "ZBLANK", "ZBLOCKED",
    ];
    let stems = ["NAXIS", "ZNAXIS", "ZTILE", "ZNAME", "ZVAL", "TFORM", "TBCOL"];
    plain.contains(&name) || stems.iter().any(|stem| numbered(stem))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(lines: &[&str]) -> Header {
        let block: String = lines.iter().map(|line| format!("{line:<80}")).collect();
        let mut header = Header::default();
        header.add_block(block.as_bytes());
        header
    }

    #[test]
    fn a_long_text_goes_on() {
        let h = header(&["A       = 'one &'", "CONTINUE  'two&' / c", "CONTINUE  ' three'", "CONTINUE  'x'"]);
        assert_eq!(h.text("A"), Some("one two three"));
    }

    #[test]
    fn an_ampersand_at_the_end_of_a_short_text_stays() {
        assert_eq!(header(&["A       = 'B&'", "C       = 1"]).text("A"), Some("B&"));
    }

    #[test]
    fn the_first_of_a_keyword_counts() {
        let h = header(&["A       = 1", "A       = 'two&'", "CONTINUE  'x'", "F       = 16.0"]);
        assert_eq!(h.int("A"), Some(1));
        assert_eq!(h.int("F"), Some(16));
    }

    #[test]
    fn commentary_is_gathered_and_structure_left_out() {
        let h = header(&["NAXIS1  = 4", "COMMENT a", "HISTORY h", "COMMENT b", "OBJECT  = 'M31'", "END"]);
        let attrs = h.attrs(|name| !is_structural(name));
        assert_eq!(
            attrs,
            [
                ("OBJECT".to_string(), AttrValue::Text("M31".into())),
                ("COMMENT".to_string(), AttrValue::Texts(vec!["a".into(), "b".into()])),
                ("HISTORY".to_string(), AttrValue::Texts(vec!["h".into()])),
            ]
        );
    }
}
