//! The tyrex command.

fn main() {}
