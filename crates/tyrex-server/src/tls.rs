//! Certificates and keys.
