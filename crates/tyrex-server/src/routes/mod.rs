//! One file per resource: translate, call the engine, answer.
