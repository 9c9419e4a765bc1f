//! Code as a user gives it, and as it is once it was compiled.

use std::fmt;
use std::sync::Arc;

use sieva_types::{Error, ErrorKind, Result};
use wasmtime::Module;

use crate::c::{self, Emitted, Input};
use crate::limits::Limits;
use crate::module::{self, Form};
use crate::run::{Kind, Run, engine};

/// The most columns that code sees.
pub(crate) const MOST_COLUMNS: usize = 32;

/// Code of a user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Code<'a> {
    /// Text of the C subset.
    C(&'a str),
    /// A WebAssembly module with the columnar interface.
    Wasm(&'a [u8]),
}

impl<'a> Code<'a> {
    /// The code that bytes are: a module by its first bytes, else text.
    ///
    /// # Errors
    /// `invalid-value` for what is longer than code may be; `syntax-error` for what is neither.
    pub fn of_bytes(bytes: &'a [u8]) -> Result<Self> {
        if bytes.len() > module::MOST_BYTES {
            let message = format!("code of {} bytes: at most {}", bytes.len(), module::MOST_BYTES);
            return Err(Error::new(ErrorKind::InvalidValue, message));
        }
        if bytes.starts_with(b"\0asm") {
            return Ok(Self::Wasm(bytes));
        }
        let text = std::str::from_utf8(bytes).map_err(|_| {
            let message = "the code is no text and no WebAssembly module";
            Error::new(ErrorKind::Syntax, message).hint("give a file of C or a .wasm file")
        })?;
        Ok(Self::C(text))
    }
}

impl Code<'_> {
    /// Looks at code before it is known what columns it gets.
    ///
    /// # Errors
    /// Those of [`Function::compile`] that no column could change.
    pub fn check(self) -> Result<()> {
        self.is_reduction().map(drop)
    }

    /// Whether it is a reduction: `step` and `finish`.
    ///
    /// # Errors
    /// As [`Code::check`].
    pub fn is_reduction(self) -> Result<bool> {
        match self {
            Self::C(text) => c::look(text),
            Self::Wasm(bytes) => match engine(Kind::Foreign) {
                Ok(_) => Ok(matches!(form_of_module(bytes)?.1, Form::Reduce { .. })),
                // A machine that runs no code can still send some to one that does.
                Err(_) => module::bounded(bytes).map(|()| false),
            },
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Language {
    C,
    Wasm,
}

/// Compiled code, for columns of known types. Cheap to clone, and to run many times, from any thread.
#[derive(Clone)]
pub struct Function(pub(crate) Arc<Compiled>);

/// What there is of compiled code.
pub(crate) struct Compiled {
    pub(crate) module: Module,
    pub(crate) form: Form,
    pub(crate) language: Language,
    pub(crate) inputs: Vec<Input>,
    pub(crate) emitted: Option<Emitted>,
    /// More rows are refused.
    pub(crate) most_rows: u64,
}

impl fmt::Debug for Function {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Function({:?} of {:?})", self.0.form, self.0.inputs)
    }
}

/// A module, compiled, and its form.
fn form_of_module(bytes: &[u8]) -> Result<(Module, Form)> {
    module::bounded(bytes)?;
    let module = Module::from_binary(engine(Kind::Foreign)?, bytes)
        .map_err(|e| Error::new(ErrorKind::Unsupported, format!("the module cannot be compiled: {e:#}")))?;
    let form = module::form(&module)?;
    Ok((module, form))
}

impl Function {
    /// Compiles code for columns.
    ///
    /// # Errors
    /// `syntax-error` and `type-mismatch` with line and column, for text; `corrupt-file`, `unsupported`, `type-mismatch` for
    /// modules; `invalid-value` for what is larger than code may be.
    pub fn compile(code: Code<'_>, inputs: &[Input]) -> Result<Self> {
        if inputs.is_empty() || inputs.len() > MOST_COLUMNS {
            let message = format!("code of {} columns: 1 to {MOST_COLUMNS}", inputs.len());
            return Err(Error::new(ErrorKind::InvalidValue, message));
        }
        let inputs = inputs.to_vec();
        let compiled = match code {
            Code::C(text) => {
                let compiled = c::compile(text, &inputs)?;
                let form = match compiled.form {
                    c::Form::Map(_) => Form::Map,
                    c::Form::Filter(_) => Form::Filter,
                    c::Form::Proc { .. } => Form::Proc,
                    c::Form::Reduce { merge, .. } => Form::Reduce { merges: merge.is_some() },
                    c::Form::Stream { .. } => Form::Reduce { merges: false },
                };
                // What we emit is valid; that it is, is said where it is not.
                let module =
                    Module::from_binary(engine(Kind::Own)?, &compiled.emitted.bytes).map_err(|e| {
                        Error::new(ErrorKind::Internal, format!("code was compiled to no module: {e:#}"))
                    })?;
                // Rows of a 'proc' are counted by an int.
                let counts = matches!(compiled.form, c::Form::Stream { .. });
                let most_rows = if counts { i32::MAX as u64 } else { u64::MAX };
                let emitted = Some(compiled.emitted);
                Compiled { module, form, language: Language::C, inputs, emitted, most_rows }
            }
            Code::Wasm(bytes) => {
                let (module, form) = form_of_module(bytes)?;
                let most_rows = u64::MAX;
                Compiled { module, form, language: Language::Wasm, inputs, emitted: None, most_rows }
            }
        };
        Ok(Self(Arc::new(compiled)))
    }

    /// Begins a run. A function of all rows has to know how many there are; others are told for nothing.
    ///
    /// # Errors
    /// What the code fails of; `memory-limit` where the rows do not fit.
    pub fn start(&self, rows: u64, limits: &Limits) -> Result<Run> {
        Run::start(self, rows, limits)
    }

    /// Whether it selects rows of its columns, rather than giving values of its own.
    pub fn selects(&self) -> bool {
        self.0.form == Form::Filter
    }

    /// Whether it takes all rows at once, and has to know how many there are before it begins.
    pub fn is_whole(&self) -> bool {
        self.0.form == Form::Proc
    }

    /// Whether states of several runs can be merged.
    pub fn merges(&self) -> bool {
        self.0.form == Form::Reduce { merges: true }
    }
}
