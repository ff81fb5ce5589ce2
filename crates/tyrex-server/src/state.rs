//! What every handler is given.
