//! XML to nodes. What is not well-formed is refused, and so is all that can grow: document types and their entities.

use quick_xml::Reader;
use quick_xml::XmlVersion;
use quick_xml::events::{BytesDecl, BytesStart, Event};
use sieva_types::{Error, ErrorKind, Result};

use super::super::node::{Field, Node, short};
use super::super::{MAX_ATTRIBUTES, MAX_DEPTH, MAX_ELEMENTS, MAX_TEXT, MAX_VALUE};
use super::{CODE, ESCAPES, is_possible};

/// The one element of a text, and its name.
pub(in super::super) fn read(text: &str) -> Result<(String, Node)> {
    if text.len() > MAX_TEXT {
        return Err(wrong(format!("XML of {} bytes, at most {MAX_TEXT} are read", text.len())));
    }
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut reader = Reader::from_str(text);
    reader.config_mut().check_comments = true;
    let mut tree = Tree { lines: Lines { text, at: 0, line: 1 }, open: Vec::new(), root: None, elements: 0 };
    let mut is_first = true;
    loop {
        tree.lines.advance(reader.buffer_position());
        let event = reader.read_event();
        let here = |e: Error| e.at(format!("XML, line {}", tree.lines.line));
        let event = event.map_err(|e| here(wrong(format!("not well-formed: {e}"))))?;
        match event {
            Event::Eof => break,
            Event::Start(element) => tree.start(&element, false)?,
            Event::Empty(element) => tree.start(&element, true)?,
            Event::End(_) => tree.end(),
            Event::Comment(_) => {}
            Event::Decl(decl) if is_first => declared(&decl).map_err(here)?,
            Event::Text(t) if t.iter().all(u8::is_ascii_whitespace) => {}
            Event::DocType(_) => {
                return Err(here(wrong("a document type, whose entities could grow, is refused")));
            }
            _ => return Err(here(wrong("elements with attributes are expected, and nothing between them"))),
        }
        is_first = false;
    }
    if let Some((name, _)) = tree.open.last() {
        return Err(wrong(format!("XML: not well-formed: the text ends within '{}'", short(name))));
    }
    tree.root.ok_or_else(|| wrong("XML without an element"))
}

/// The declaration: the text was decoded already.
fn declared(decl: &BytesDecl<'_>) -> Result<()> {
    if let Some(encoding) = decl.encoding() {
        let encoding = encoding.map_err(|e| wrong(format!("not well-formed: {e}")))?;
        let encoding = String::from_utf8_lossy(&encoding).to_ascii_lowercase();
        if !["utf-8", "utf8", "us-ascii", "ascii"].contains(&encoding.as_str()) {
            return Err(wrong(format!("XML in UTF-8 is read, not in {}", short(&encoding))));
        }
    }
    match decl.version() {
        Ok(version) if *version == *b"1.0" => Ok(()),
        _ => Err(wrong("XML of version 1.0 is read")),
    }
}

/// The elements while they are read.
struct Tree<'a> {
    lines: Lines<'a>,
    open: Vec<(String, Node)>,
    root: Option<(String, Node)>,
    elements: usize,
}

impl Tree<'_> {
    fn start(&mut self, element: &BytesStart<'_>, is_empty: bool) -> Result<()> {
        let place = format!("XML, line {}", self.lines.line);
        let wrong = |message: String| wrong(message).at(&place);
        self.elements += 1;
        if self.elements > MAX_ELEMENTS {
            return Err(wrong(format!("more than {MAX_ELEMENTS} elements")));
        }
        if self.open.len() >= MAX_DEPTH {
            return Err(wrong(format!("elements deeper in one another than {MAX_DEPTH}")));
        }
        if self.open.is_empty() && self.root.is_some() {
            return Err(wrong("not well-formed: a second element beside the first".to_owned()));
        }
        let name = String::from_utf8_lossy(element.name().as_ref()).into_owned();
        let mut node = Node::new(format!("{place}, {}", short(&name)));
        attributes(element, &mut node)?;
        self.open.push((name, node));
        if is_empty {
            self.end();
        }
        Ok(())
    }

    /// Closes the innermost element; the reader made sure that its name is right.
    fn end(&mut self) {
        let Some(done) = self.open.pop() else { return };
        match self.open.last_mut() {
            Some((_, parent)) => parent.children.push(done),
            None => self.root = Some(done),
        }
    }
}

fn attributes(element: &BytesStart<'_>, node: &mut Node) -> Result<()> {
    for (n, attribute) in element.attributes().enumerate() {
        if n >= MAX_ATTRIBUTES {
            return Err(node.wrong(format!("more than {MAX_ATTRIBUTES} attributes")));
        }
        let attribute = attribute.map_err(|e| {
            node.wrong(format!("not well-formed: {e}"))
                .hint("values of attributes stand in quotes, each attribute once")
        })?;
        let key = String::from_utf8_lossy(attribute.key.as_ref()).into_owned();
        if attribute.value.len() > MAX_VALUE {
            let n = attribute.value.len();
            return Err(node.wrong(format!("'{}' of {n} bytes, at most {MAX_VALUE} are read", short(&key))));
        }
        if attribute.value.contains(&b'<') {
            return Err(node.wrong(format!("not well-formed: '<' in '{}' is written &lt;", short(&key))));
        }
        // Knows the five entities of XML and numbers of characters: nothing that grows.
        let value = attribute
            .normalized_value(XmlVersion::Explicit1_0)
            .map_err(|e| node.wrong(format!("'{}' is not well-formed: {e}", short(&key))))?;
        if let Some(c) = value.chars().find(|&c| !is_possible(c)) {
            return Err(node.wrong(format!("'{}' has a character that XML does not: {c:?}", short(&key))));
        }
        let value = if key == CODE { code(&value, node)? } else { value.into_owned() };
        node.fields.insert(key, Field::Written(value));
    }
    Ok(())
}

/// Code, in which `\n` is a line feed, as in Figure 2: XML makes blanks of line feeds in attributes.
fn code(text: &str, node: &Node) -> Result<String> {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        if c != '\\' {
            out.push(c);
            continue;
        }
        let letter = chars.next();
        match ESCAPES.iter().find(|(_, l)| Some(*l) == letter) {
            Some((meant, _)) => out.push(*meant),
            None => {
                let given: String = letter.into_iter().collect();
                return Err(node
                    .wrong(format!("'{CODE}' has '\\{given}', which stands for nothing"))
                    .hint("\\n is a line feed, \\t a tab, \\r a carriage return, \\\\ a backslash"));
            }
        }
    }
    Ok(out)
}

/// Counts lines while a text is read.
struct Lines<'a> {
    text: &'a str,
    at: usize,
    line: usize,
}

impl Lines<'_> {
    fn advance(&mut self, to: u64) {
        let to = usize::try_from(to).unwrap_or(usize::MAX).min(self.text.len());
        if let Some(passed) = self.text.as_bytes().get(self.at..to) {
            self.line += passed.iter().filter(|&&b| b == b'\n').count();
            self.at = to;
        }
    }
}

fn wrong(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::InvalidValue, message)
}
