//! A reference set from its JSON.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use serde_json::{Map, Value};
use sieva_types::{Error, ErrorKind, Result};

use super::{Reference, References, base64};

/// The reference set of a JSON text: of version 0 (keys and references alone) or 1, with plain templates.
///
/// # Errors
/// `corrupt-file` where it is no reference set; `unsupported` for generated references and for templates that are
/// programs.
pub fn import(json: &str) -> Result<References> {
    let root: Value = serde_json::from_str(json).map_err(|e| senseless(format!("not JSON: {e}")))?;
    let Value::Object(root) = root else { return Err(senseless("not a JSON object")) };
    let Some(version) = root.get("version") else { return Importer::default().entries(&root) };
    if version.as_u64() != Some(1) {
        let message = format!("reference set of version {version}, versions 0 and 1 can be read");
        return Err(Error::new(ErrorKind::Unsupported, message));
    }
    if root.get("gen").and_then(Value::as_array).is_some_and(|gen_| !gen_.is_empty()) {
        return Err(Error::new(ErrorKind::Unsupported, "reference set with generated references (\"gen\")")
            .hint("write it out once: fsspec's ReferenceFileSystem(...).save_json"));
    }
    let Some(Value::Object(refs)) = root.get("refs") else {
        return Err(senseless("no object \"refs\""));
    };
    let mut importer = Importer::default();
    if let Some(Value::Object(templates)) = root.get("templates") {
        for (name, text) in templates {
            let text = text.as_str().ok_or_else(|| senseless(format!("template '{name}' is no text")))?;
            if text.contains("{{") {
                return Err(program(text));
            }
            importer.templates.insert(name.clone(), text.to_owned());
        }
    }
    importer.entries(refs)
}

fn senseless(what: impl std::fmt::Display) -> Error {
    Error::corrupt(format!("reference set: {what}")).hint("expected is kerchunk's JSON, version 0 or 1")
}

/// The longest URL that a template may make: nobody serves longer ones, and each reference has its own.
const LONGEST_URL: usize = 8192;

fn program(text: &str) -> Error {
    let message = format!("reference set with the template '{text}', which is a program");
    Error::new(ErrorKind::Unsupported, message).hint(
        "only templates of the form {{name}} are filled in; write the set out once with fsspec's save_json",
    )
}

#[derive(Default)]
struct Importer {
    templates: HashMap<String, String>,
    /// Each url once, by how it is written.
    urls: HashMap<String, Arc<str>>,
}

impl Importer {
    fn entries(mut self, refs: &Map<String, Value>) -> Result<References> {
        let mut entries = BTreeMap::new();
        for (key, value) in refs {
            let reference = self.reference(value).map_err(|e| e.at(format!("'{key}'")))?;
            entries.insert(key.clone(), reference);
        }
        Ok(References { entries })
    }

    fn reference(&mut self, value: &Value) -> Result<Reference> {
        match value {
            Value::String(text) => match text.strip_prefix(base64::PREFIX) {
                Some(coded) => {
                    base64::decode(coded).map(Reference::Inline).ok_or_else(|| senseless("not base64"))
                }
                None => Ok(Reference::Inline(text.clone().into_bytes())),
            },
            // Metadata that are not quoted.
            Value::Object(_) => Ok(Reference::Inline(value.to_string().into_bytes())),
            Value::Array(parts) => match &parts[..] {
                [Value::String(url)] => Ok(Reference::Whole { url: self.url(url)? }),
                [Value::String(url), offset, len] => match (offset.as_u64(), len.as_u64()) {
                    (Some(offset), Some(len)) if offset.checked_add(len).is_some() => {
                        Ok(Reference::Range { url: self.url(url)?, offset, len })
                    }
                    _ => Err(senseless(format!("range {offset}, {len} is none"))),
                },
                _ => Err(senseless("neither [url] nor [url, offset, length]")),
            },
            other => Err(senseless(format!("{other} is no reference"))),
        }
    }

    fn url(&mut self, written: &str) -> Result<Arc<str>> {
        if let Some(url) = self.urls.get(written) {
            return Ok(Arc::clone(url));
        }
        let url: Arc<str> = Arc::from(self.fill_in(written)?);
        self.urls.insert(written.to_owned(), Arc::clone(&url));
        Ok(url)
    }

    /// `text` with each `{{name}}` replaced.
    fn fill_in(&self, text: &str) -> Result<String> {
        let (mut out, mut rest) = (String::new(), text);
        while let Some((before, after)) = rest.split_once("{{") {
            let (name, after) = after.split_once("}}").ok_or_else(|| program(text))?;
            let filling = self.templates.get(name.trim()).ok_or_else(|| program(text))?;
            out.push_str(before);
            out.push_str(filling);
            rest = after;
            if out.len() > LONGEST_URL {
                let message = format!("a template makes a URL of more than {LONGEST_URL} bytes");
                return Err(Error::corrupt(message));
            }
        }
        out.push_str(rest);
        Ok(out)
    }
}
