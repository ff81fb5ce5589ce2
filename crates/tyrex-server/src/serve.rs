//! The service from start to graceful end.
