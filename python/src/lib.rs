//! The binding `tyrex._native`. It only translates between Python and the library.

#![allow(clippy::needless_pass_by_value, reason = "arguments arrive converted")]
#![allow(clippy::too_many_arguments, reason = "they are Python's keywords")]

mod adviser;
mod arrow;
mod batchwise;
mod certify;
mod data;
mod ensemble;
mod error;
mod explainer;
mod function;
mod gate;
mod ledger;
mod metric;
mod model;
mod network;
mod retrained;
mod run;
mod stability;
mod table;

/// The native half of the package.
#[pyo3::pymodule]
mod _native {
    // Data
    #[pymodule_export]
    use crate::data::{Data, Schema, change_words, dataset_names};
    #[pymodule_export]
    use crate::table::Table;

    // Models
    #[pymodule_export]
    use crate::ensemble::Ensemble;
    #[pymodule_export]
    use crate::model::Model;
    #[pymodule_export]
    use crate::network::Network;
    #[pymodule_export]
    use crate::retrained::Retrained;

    // Questions
    #[pymodule_export]
    use crate::explainer::{Explainer, defaults, method_names};
    #[pymodule_export]
    use crate::gate::{gate_html, judge};

    // Batches
    #[pymodule_export]
    use crate::adviser::{retrained_member, retraining_terms};
    #[pymodule_export]
    use crate::arrow::{Batch, Batches};
    #[pymodule_export]
    use crate::batchwise::Batchwise;

    // Ledger
    #[pymodule_export]
    use crate::ledger::record_answers;

    // Metrics
    #[pymodule_export]
    use crate::metric::local_outlier_factors;

    // Threads
    #[pymodule_export]
    use crate::run::set_threads;

    #[pymodule_export]
    #[allow(non_upper_case_globals)]
    const __version__: &str = env!("CARGO_PKG_VERSION");
}
