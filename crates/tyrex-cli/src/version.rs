//! The text of `--version`.

use std::sync::LazyLock;

/// The version, the commit it was built from, the machine it was built for, and the vector
/// instructions it uses on this machine.
pub(crate) fn version() -> &'static str {
    static VERSION: LazyLock<String> = LazyLock::new(|| {
        let commit = match env!("TYREX_COMMIT") {
            "" => "commit unknown",
            commit => commit,
        };
        format!(
            "{} ({commit}), {}, {} instructions",
            env!("CARGO_PKG_VERSION"),
            env!("TYREX_TARGET"),
            tyrex::model::instruction_set()
        )
    });
    &VERSION
}
