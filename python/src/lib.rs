//! The native module `sieva._native`: the engine's types for Python, thin wrappers only.

use pyo3::prelude::*;

/// The engine, as Python sees it.
#[pymodule]
#[pyo3(name = "_native")]
mod native {
    use super::*;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
