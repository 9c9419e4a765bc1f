//! Functions that come with a query as code (DR8 of Scibox): by name in SQL, compiled once for each list of types.
//!
//! A map is a function of numbers, a filter a condition. They are asked as any function is, a column at a time; see
//! [`Called`]. A reduction is an aggregate: see [`Reducer`]. In plans they have the name of [`sieva_plan::given_name`], so that other code is another question.

mod called;
mod columns;
mod reducer;

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use sieva_plan::{given_name, written_name};
use sieva_types::{Error, ErrorKind, Result};
use sieva_usercode::{Code, Element, Function, Input, Limits};

use crate::aggregate::Aggregate;
use crate::bind::date_part;
use crate::values;
pub use called::Called;
pub use reducer::{Reducer, Reduction, Rows};

/// Names that mean something in queries, besides those of functions, aggregates and parts of dates.
const TAKEN: [&str; 5] = ["idx", "raw", "attr", "tag", "glob"];

/// Functions by name, in lower case, and what they may take. Cheap to clone.
#[derive(Clone, Default)]
pub struct Functions {
    all: Arc<BTreeMap<String, Given>>,
    limits: Limits,
}

/// A function as it came.
struct Given {
    /// Its name in plans.
    identity: Arc<str>,
    is_reduction: bool,
    code: Vec<u8>,
    compiled: Mutex<HashMap<Vec<Element>, Function>>,
}

impl fmt::Debug for Functions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.all.values().map(|g| &g.identity)).finish()
    }
}

impl Functions {
    /// Functions of these names: text of the C subset, or WebAssembly modules.
    ///
    /// # Errors
    /// `invalid-value` for a name that is none, is taken, or stands there twice; those of [`Code::check`].
    pub fn new<N: AsRef<str>>(given: impl IntoIterator<Item = (N, Vec<u8>)>) -> Result<Self> {
        let mut all = BTreeMap::new();
        for (name, code) in given {
            let name = name.as_ref().to_lowercase();
            check_name(&name)?;
            let looked_at = Code::of_bytes(&code).and_then(Code::is_reduction);
            let is_reduction = looked_at.map_err(|e| e.at(format!("function '{name}'")))?;
            let identity = given_name(&name, &code).into();
            let of = Given { identity, is_reduction, code, compiled: Mutex::default() };
            if all.insert(name.clone(), of).is_some() {
                return Err(Error::new(ErrorKind::InvalidValue, format!("two functions '{name}'"))
                    .hint("upper and lower case are the same in the names of functions"));
            }
        }
        Ok(Self { all: Arc::new(all), limits: Limits::default() })
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// The same functions, of which an instance may take so much memory.
    #[must_use]
    pub fn within(&self, memory: u64) -> Self {
        Self { all: Arc::clone(&self.all), limits: Limits { memory, output: memory, ..self.limits.clone() } }
    }

    /// The name in plans of a function, if there is one of this name.
    pub fn identity(&self, name: &str) -> Option<&str> {
        self.all.get(name).map(|given| &*given.identity)
    }

    /// Whether a text or a plan means a reduction by this name.
    pub fn is_reduction(&self, function: &str) -> bool {
        self.all.get(written_name(function)).is_some_and(|given| given.is_reduction)
    }

    /// The function that a text or a plan calls so; none where there is none of the name. The types of its arguments
    /// are asked for where there is one.
    ///
    /// # Errors
    /// `unknown-function` where a plan was made of other code; those of `elements`, of [`Function::compile`] and of
    /// [`Called`].
    pub(crate) fn called(
        &self,
        function: &str,
        elements: impl FnOnce() -> Result<Vec<Element>>,
    ) -> Result<Option<Called>> {
        self.made(function, elements, Called::new)
    }

    /// The same of a reduction.
    ///
    /// # Errors
    /// As [`Functions::called`], and of [`Reducer`].
    pub(crate) fn reducer(
        &self,
        function: &str,
        elements: impl FnOnce() -> Result<Vec<Element>>,
    ) -> Result<Option<Reducer>> {
        self.made(function, elements, Reducer::new)
    }

    fn made<T>(
        &self,
        function: &str,
        elements: impl FnOnce() -> Result<Vec<Element>>,
        make: impl FnOnce(Arc<str>, &Function, Vec<Element>, &Limits) -> Result<T>,
    ) -> Result<Option<T>> {
        let name = written_name(function);
        let Some(given) = self.all.get(name) else {
            return if name == function { Ok(None) } else { Err(not_given(name)) };
        };
        if name != function && *given.identity != *function {
            let message = format!("the plan calls '{name}' of other code than that which is given");
            return Err(Error::new(ErrorKind::UnknownFunction, message)
                .hint("give the code that it was made with, or make the plan anew"));
        }
        let elements = elements()?;
        let made = given
            .compiled(&elements)
            .and_then(|of| make(Arc::clone(&given.identity), &of, elements, &self.limits));
        made.map(Some).map_err(|e| e.at(format!("function '{name}'")))
    }
}

impl Given {
    fn compiled(&self, elements: &[Element]) -> Result<Function> {
        let mut compiled = self.compiled.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = compiled.get(elements) {
            return Ok(known.clone());
        }
        let input = |(i, &element)| Input { name: format!("argument {}", i + 1), element };
        let inputs: Vec<Input> = elements.iter().enumerate().map(input).collect();
        let function = Function::compile(Code::of_bytes(&self.code)?, &inputs)?;
        compiled.insert(elements.to_vec(), function.clone());
        Ok(function)
    }
}

/// The error of a plan whose code is not there.
fn not_given(name: &str) -> Error {
    Error::new(ErrorKind::UnknownFunction, format!("the plan calls '{name}', whose code is not given"))
        .hint("give it: --function NAME=FILE, or functions= in Python")
}

fn check_name(name: &str) -> Result<()> {
    let wrong = |why: &str| {
        let message = format!("'{name}' is no name for a function: {why}");
        Err(Error::new(ErrorKind::InvalidValue, message))
    };
    let is_word = name.starts_with(|c: char| c.is_ascii_lowercase() || c == '_')
        && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
    if !is_word {
        return wrong("it is made of letters, digits and '_', and begins with no digit");
    }
    let is_taken = values::Function::from_name(name).is_some()
        || Aggregate::is_name(name)
        || date_part(name).is_some()
        || TAKEN.contains(&name);
    if is_taken {
        return wrong("there is a function of that name");
    }
    // Words of the language are no names.
    match crate::parse::parse_condition(&format!("{name}(x) = 1")) {
        Ok(crate::ast::Expr::Compare { left, .. }) if matches!(*left, crate::ast::Expr::Call { .. }) => {
            Ok(())
        }
        _ => wrong("it is a word of the language"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DOUBLE: &str = "double map(double x) { return 2 * x; }";

    fn given(names: &[(&str, &str)]) -> Result<Functions> {
        Functions::new(names.iter().map(|(name, code)| (*name, code.as_bytes().to_vec())))
    }

    #[test]
    fn names_that_mean_something_else_are_refused() {
        for name in
            ["sqrt", "LOG", "avg", "count", "month", "idx", "tag", "and", "NOT", "between", "1a", "", "a-b"]
        {
            let e = given(&[(name, DOUBLE)]).unwrap_err();
            assert_eq!(e.kind(), ErrorKind::InvalidValue, "{name}: {e}");
            assert!(e.message().contains("is no name for a function"), "{e}");
        }
        assert!(given(&[("my_fn2", DOUBLE), ("_x", DOUBLE)]).is_ok());
        assert_eq!(given(&[("f", DOUBLE), ("F", DOUBLE)]).unwrap_err().message(), "two functions 'f'");
    }

    #[test]
    fn wrong_code_is_told_when_it_is_given() {
        let e = given(&[("f", "double map(double x) { return }")]).unwrap_err();
        assert_eq!(e.kind(), ErrorKind::Syntax);
        assert!(e.message().contains("function 'f'") && e.message().contains("line 1"), "{e}");
    }

    #[test]
    fn reductions_are_told_apart_by_the_names_of_their_functions() {
        let sum = "double s; void step(double x) { s += x; } double finish() { return s; }";
        let given = given(&[("total", sum), ("double_it", DOUBLE)]).unwrap();
        assert!(given.is_reduction("total") && given.is_reduction(given.identity("total").unwrap()));
        assert!(!given.is_reduction("double_it") && !given.is_reduction("other"));
        let doubles = || Ok(vec![Element::F64]);
        assert!(given.reducer("total", doubles).unwrap().is_some());
        let e = given.reducer("double_it", doubles).err().unwrap();
        assert_eq!(e.kind(), ErrorKind::Unsupported);
        let e = given.called("total", doubles).err().unwrap();
        assert_eq!(e.kind(), ErrorKind::Unsupported);
    }

    #[test]
    fn plans_name_the_code() {
        let (one, other) =
            (given(&[("f", DOUBLE)]).unwrap(), given(&[("f", "int map(int x) { return x; }")]));
        let (one, other) = (one, other.unwrap());
        let (this, that) = (one.identity("f").unwrap(), other.identity("f").unwrap());
        assert!(this.starts_with("f:") && this != that);
        assert!(one.called(this, || Ok(vec![Element::F64])).unwrap().is_some());
        assert!(one.called("f", || Ok(vec![Element::F64])).unwrap().is_some());
        assert!(one.called("g", || Ok(vec![Element::F64])).unwrap().is_none());
        let e = one.called(that, || Ok(vec![Element::F64])).err().unwrap();
        assert_eq!(e.kind(), ErrorKind::UnknownFunction);
        let e = Functions::default().called(this, || Ok(vec![Element::F64])).err().unwrap();
        assert_eq!(e.message(), "the plan calls 'f', whose code is not given");
    }
}
