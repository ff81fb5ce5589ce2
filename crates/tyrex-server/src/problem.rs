//! Errors as `application/problem+json`.
