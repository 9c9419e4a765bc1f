//! What a producer has and what consumers ask for as documents: `writer.xml` and `reader.xml` (Scibox, Figure 2), or TOML.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use sieva::{Error, ErrorKind, Result, printable};
use sieva_reduce::forms::{Config, Group as Variables, Variable};
use sieva_reduce::{Function, Reduction};

use crate::asks::{Asking, checked};
use crate::code;
use crate::group::Group;
use crate::record::Ask;

/// What is wanted of a schema in JSON.
#[derive(Deserialize)]
struct Schema {
    logical: Logical,
}

#[derive(Deserialize)]
struct Logical {
    arrays: Vec<Array>,
}

#[derive(Deserialize)]
struct Array {
    path: String,
    dtype: String,
    dimensions: Vec<String>,
}

impl Group {
    /// What a producer's newest file holds, as `writer.xml` has it.
    ///
    /// # Errors
    /// `file-not-found` before the producer's first pass; `corrupt-file`.
    pub fn document(&self, producer: &str) -> Result<Config> {
        let Some(arrays) = self.arrays(producer)? else {
            let message = format!("nothing is known yet of the files of '{}'", printable(producer));
            return Err(Error::new(ErrorKind::FileNotFound, message)
                .hint("its first pass tells: sieva share produce PLACE"));
        };
        let variable = |array: Array| Variable {
            name: array.path,
            value_type: adios_type(&array.dtype).map(str::to_owned),
            dimensions: array.dimensions,
            ..Variable::default()
        };
        let variables = arrays.into_iter().map(variable).collect();
        let group = Variables { name: producer.to_owned(), variables, ..Variables::default() };
        Ok(Config { groups: vec![group], ..Config::default() })
    }

    /// Asks for all that a document asks for (`reader.xml`): its functions, and whole the variables without one. Names are made
    /// of the function and the variable.
    ///
    /// # Errors
    /// As [`Group::ask`]; `unknown-array` for a variable that no producer has; those of code (DR8) that is none. Nothing is
    /// asked then.
    pub fn ask_all(&self, user: &str, document: &Config, format: &str, only_new: bool) -> Result<Vec<Ask>> {
        let mut dims = BTreeMap::new();
        for producer in self.producers()? {
            let arrays = self.arrays(&producer)?.into_iter().flatten();
            dims.extend(arrays.map(|array| (array.path, array.dimensions)));
        }
        let dims_of = |name: &str| dims.get(name).cloned().ok_or_else(|| unknown(name, &dims));
        let (mut taken, mut asks) = (BTreeSet::new(), Vec::new());
        for reduction in document.asked() {
            let name = name_of(&reduction, &mut taken);
            let (sql, code) = code::of_reduction(&reduction, &dims_of)?;
            asks.push((name, checked(&sql)?, code));
        }
        let askings = asks
            .iter()
            .map(|(name, sql, code)| (name.as_str(), Asking { sql, format, only_new }, code.clone()));
        self.ask_kept(user, askings.collect())
    }

    fn arrays(&self, producer: &str) -> Result<Option<Vec<Array>>> {
        let Some(text) = self.schema(producer)? else { return Ok(None) };
        let schema: Schema = serde_json::from_str(&text).map_err(|e| {
            Error::new(ErrorKind::CorruptFile, format!("the schema of '{producer}' is damaged: {e}"))
        })?;
        Ok(Some(schema.logical.arrays))
    }
}

fn unknown(name: &str, dims: &BTreeMap<String, Vec<String>>) -> Error {
    let known: Vec<&str> = dims.keys().take(20).map(String::as_str).collect();
    let message = format!("no producer has an array '{}'", printable(name));
    let hint = match &known[..] {
        [] => "what producers have is known after their first pass: sieva share produce PLACE".to_owned(),
        known => format!("there is {}", known.join(", ")),
    };
    Error::new(ErrorKind::UnknownArray, message).hint(hint)
}

/// The name of a reduction, that none of `taken` has.
fn name_of(reduction: &Reduction, taken: &mut BTreeSet<String>) -> String {
    let what = match reduction {
        Reduction::Select(select) => match select.function {
            Function::Values => "values",
            Function::Max => "max",
            Function::Min => "min",
            Function::Mean => "mean",
            Function::Count => "count",
            Function::Sum => "sum",
            Function::Variance | Function::SampleVariance => "variance",
            Function::StdDev | Function::SampleStdDev => "std",
            Function::Quantile(_) => "quantile",
            Function::Histogram { .. } => "histogram",
        },
        Reduction::Code(_) => "code",
        Reduction::Sql(_) => "sql",
    };
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '_' { c } else { '-' };
    let of: String = reduction.variable().unwrap_or_default().chars().take(40).map(plain).collect();
    let name = format!("{what}-{of}").trim_end_matches('-').to_owned();
    let numbered = (2..).map(|n| format!("{name}-{n}"));
    let free = std::iter::once(name.clone()).chain(numbered).find(|name| !taken.contains(name));
    let free = free.unwrap_or(name);
    taken.insert(free.clone());
    free
}

/// The type of values as ADIOS calls it.
fn adios_type(dtype: &str) -> Option<&'static str> {
    Some(match dtype {
        "int8" => "byte",
        "int16" => "short",
        "int32" => "integer",
        "int64" => "long",
        "uint8" => "unsigned byte",
        "uint16" => "unsigned short",
        "uint32" => "unsigned integer",
        "uint64" => "unsigned long",
        "float32" => "real",
        "float64" => "double",
        "str" => "string",
        _ => return None,
    })
}
