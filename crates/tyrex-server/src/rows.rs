//! Rows in and documents out, as JSON and as Arrow.
