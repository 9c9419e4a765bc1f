//! Functions of users (DR8 of Huang et al., *Scibox: Online Sharing of Scientific Data via the Cloud*): text of a C subset, or
//! WebAssembly modules of any language, run where the data lie, without trust.
//!
//! Text is compiled to WebAssembly by [`Function::compile`], for columns of known types; modules are checked first. A [`Run`]
//! has memory and time of its own and sees nothing but the values that it is handed.
//!
//! ```
//! # fn main() -> sieva_types::Result<()> {
//! use sieva_usercode::{Code, Element, Function, Input, Limits, Slice};
//!
//! let text = "double map(double celsius) { return celsius * 1.8 + 32; }";
//! let inputs = [Input { name: "TEMP".to_owned(), element: Element::F64 }];
//! let function = Function::compile(Code::C(text), &inputs)?;
//! let mut run = function.start(2, &Limits::default())?;
//! let data: Vec<u8> = [20.0_f64, 100.0].iter().flat_map(|v| v.to_le_bytes()).collect();
//! run.push(&[Slice { data: &data, valid: None }])?;
//! let values = run.finish(0)?;
//! assert_eq!(values[0].data[8..], 212.0_f64.to_le_bytes());
//! # Ok(())
//! # }
//! ```
//!
//! What code can say, its limits and the interface of modules: docs/reference/user-code.md.

mod c;
mod code;
mod element;
mod limits;
mod module;
mod run;

pub use c::Input;
pub use code::{Code, Function};
pub use element::Element;
pub use limits::Limits;
pub use run::{Each, Reduce, Run, Slice, States, Values, Wrong};
