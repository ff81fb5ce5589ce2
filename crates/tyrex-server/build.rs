//! Migrations are compiled in; a new one must be noticed.

#![allow(clippy::print_stdout, reason = "that is how a build script speaks")]

fn main() {
    println!("cargo::rerun-if-changed=migrations");
}
