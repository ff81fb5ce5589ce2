//! Who may do what: roles and tokens.
