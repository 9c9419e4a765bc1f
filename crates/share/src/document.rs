//! What a producer has and what consumers ask for as documents: `writer.xml` and `reader.xml` (Scibox, Figure 2), or TOML.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use sieva::{Error, ErrorKind, Result, printable};
use sieva_reduce::forms::{Config, Group as Variables, Variable};
use sieva_reduce::{Function, Reduction};

use crate::asks::{Asking, checked};
use crate::code;
use crate::group::Group;
use crate::record::{Ask, MOST_ASKS};

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
        let wanted = document.asked();
        if wanted.len() > MOST_ASKS {
            let message =
                format!("the document asks for {} things, and {MOST_ASKS} are the most", wanted.len());
            return Err(Error::new(ErrorKind::InvalidValue, message).hint("ask for fewer at once"));
        }
        let mut dims = BTreeMap::new();
        for producer in self.producers()? {
            let arrays = self.arrays(&producer)?.into_iter().flatten();
            dims.extend(arrays.map(|array| (array.path, array.dimensions)));
        }
        let dims_of = |name: &str| dims.get(name).cloned().ok_or_else(|| unknown(name, &dims));
        let (mut taken, mut asks) = (Taken::default(), Vec::new());
        for reduction in wanted {
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

/// Names that reductions have.
#[derive(Default)]
struct Taken {
    names: BTreeSet<String>,
    /// Of a name that many would have the number that is tried next.
    next: BTreeMap<String, u64>,
}

impl Taken {
    /// The name, or with a number behind it the first that none has.
    fn take(&mut self, name: String) -> String {
        if self.names.insert(name.clone()) {
            return name;
        }
        let next = self.next.entry(name.clone()).or_insert(2);
        loop {
            let numbered = format!("{name}-{next}");
            *next += 1;
            if self.names.insert(numbered.clone()) {
                return numbered;
            }
        }
    }
}

/// The name of a reduction, that none of `taken` has.
fn name_of(reduction: &Reduction, taken: &mut Taken) -> String {
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
    taken.take(format!("{what}-{of}").trim_end_matches('-').to_owned())
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_numbered_where_many_would_have_one() {
        let mut taken = Taken::default();
        let mut name = |variable: &str| name_of(&Reduction::max(variable), &mut taken);
        assert_eq!([name("v"), name("v-3"), name("v")], ["max-v", "max-v-3", "max-v-2"]);
        assert_eq!([name("v"), name("v-3"), name("v")], ["max-v-4", "max-v-3-2", "max-v-5"]);
        // Without looking through all of those before.
        for _ in 1..200_000 {
            name("w");
        }
        assert_eq!(name("w"), "max-w-200000");
    }
}
