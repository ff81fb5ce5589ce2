//! The binding: what `tyrex._native` holds. Translation only; the library thinks.

mod error;

use pyo3::prelude::*;

/// The native half of the package.
#[pymodule(name = "_native")]
mod native {
    use pyo3::prelude::*;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
