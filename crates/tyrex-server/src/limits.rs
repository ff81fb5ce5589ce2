//! How much one caller may ask for.
