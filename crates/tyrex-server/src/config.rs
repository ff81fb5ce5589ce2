//! What can be set about the service.
