//! The tabular world: what a person reads, and how it becomes what a model sees.
