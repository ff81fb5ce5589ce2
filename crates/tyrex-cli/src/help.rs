//! Hints for errors with a known remedy.

use std::io::ErrorKind;

use tyrex::Error;
use tyrex::change::PLAN;
use tyrex_ledger::{database, ledger};
#[cfg(feature = "service")]
use tyrex_server::serve;

/// A problem with the arguments that the parser cannot detect.
#[derive(Debug)]
pub(crate) struct Usage {
    /// The problem.
    pub(crate) problem: String,
    /// The remedy.
    pub(crate) help: String,
}

impl std::fmt::Display for Usage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.problem)
    }
}

impl std::error::Error for Usage {}

/// A command of the service in a build without the service.
#[cfg(not(feature = "service"))]
pub(crate) fn no_service(verb: &str) -> Usage {
    Usage {
        problem: format!("this build of tyrex has no service, and so no command `{verb}`"),
        help: format!(
            "build with the feature `service`: `cargo run --release --features service -- {verb} \
             ...`, or `cargo install --path crates/tyrex-cli --features service`"
        ),
    }
}

/// The remedy, where one is known.
pub(crate) fn remedy(error: &anyhow::Error) -> Option<String> {
    if let Some(usage) = error.downcast_ref::<Usage>() {
        return Some(usage.help.clone());
    }
    if let Some(error) = error.downcast_ref::<ledger::Error>() {
        return ledger_remedy(error);
    }
    if let Some(error) = error.downcast_ref::<database::Error>() {
        return database_remedy(error);
    }
    #[cfg(feature = "service")]
    if let Some(error) = error.downcast_ref::<serve::Error>() {
        return serve_remedy(error);
    }
    Some(match error.downcast_ref::<Error>()? {
        Error::Exists { .. } => {
            "pass --force to overwrite it, or choose another name with --out".to_owned()
        }
        Error::Model { file, .. } if file.ends_with(PLAN) => {
            "pass --force to replace them, or choose another folder with --out".to_owned()
        }
        Error::Io { action: "read", path, source } => match source.kind() {
            ErrorKind::NotFound => format!(
                "paths are relative to the current folder; `ls {}` lists the files",
                path.parent()
                    .filter(|p| !p.as_os_str().is_empty())
                    .map_or_else(|| ".".to_owned(), |folder| folder.display().to_string())
            ),
            ErrorKind::IsADirectory => "name a file, not a folder".to_owned(),
            _ => return None,
        },
        Error::Io { action: "write", source, .. } => match source.kind() {
            ErrorKind::NotFound => "create the folder first: `mkdir -p FOLDER`".to_owned(),
            ErrorKind::PermissionDenied => "choose a folder with write permission".to_owned(),
            ErrorKind::StorageFull => {
                "free space on the disk, then repeat the command; no file was written in part"
                    .to_owned()
            }
            ErrorKind::IsADirectory => "name a file, not a folder".to_owned(),
            _ => return None,
        },
        Error::Cell { expected, .. } if expected.starts_with("an amount") => {
            "correct the cell, or choose another column with --amount".to_owned()
        }
        Error::Cell { column, .. } => {
            format!("correct the cell, or change feature `{column}` in the schema to allow it")
        }
        Error::Table { problem, .. } if problem.starts_with("no row to train on") => {
            "pass --reference FILE with the labelled rows that the model was trained on, so that \
             it can be trained again"
                .to_owned()
        }
        Error::Table { file, problem } if problem.contains("no column") => format!(
            "`tyrex schema infer {} --label COLUMN` drafts a schema for the file",
            file.display()
        ),
        Error::SchemaFile { file, .. } => {
            format!("correct the schema, then `tyrex schema check {}`", file.display())
        }
        Error::Param { name: "reference", .. } => {
            "pass --reference FILE with the rows that the model was trained on, or choose a method \
             that needs none"
                .to_owned()
        }
        Error::Param { name: "by" | "amount", .. } => {
            "name a column of the file with the applicants".to_owned()
        }
        Error::Param { name: "models", expected, .. } if expected.contains("for a promise") => {
            "pass more --models or a lower --promise, or choose a method without a promise with \
             --method"
                .to_owned()
        }
        Error::Param { .. } | Error::Field { .. } | Error::ParamFile { .. } => {
            "--help lists the parameters of a command; `tyrex train --help` those of training"
                .to_owned()
        }
        Error::Dimension { what, .. } if what.starts_with("inputs of the model") => {
            "use the schema the model was trained with; `tyrex model show` lists its inputs, and \
             `[model] input` in the schema says whether they are raw or encoded columns"
                .to_owned()
        }
        Error::InvalidModel(problem) if problem.contains("the wrong way round") => {
            "name the favourable class with --model-class or --model-class-number, or correct the \
             schema"
                .to_owned()
        }
        Error::Model { problem, .. } => match problem {
            it if it.starts_with("its own schema") => {
                "leave --schema out to use the model's own, or correct the `[label]` of one of them"
            }
            it if it.contains("favourable") || it.contains("no class") => {
                "name the favourable class with --model-class or --model-class-number"
            }
            it if it.contains("logits") => "pass --model-logits if they are logits",
            it if it.contains("several outputs") => "name the output with --model-output",
            _ => return None,
        }
        .to_owned(),
        Error::Catalogue { problem, .. } if problem.starts_with("unknown") => {
            "`tyrex data list` shows the data sets; for your own file use --data and --schema"
                .to_owned()
        }
        Error::Download { .. } => {
            "repeat the command to resume the download; TYREX_DATA_MIRROR names another server"
                .to_owned()
        }
        _ => return None,
    })
}

fn ledger_remedy(error: &ledger::Error) -> Option<String> {
    Some(match error {
        ledger::Error::Database(error) => return database_remedy(error),
        ledger::Error::Absent(_) | ledger::Error::Beyond(_) => {
            "`tyrex ledger list` shows the entries".to_owned()
        }
        ledger::Error::Damaged { .. } | ledger::Error::Unsound { .. } => {
            "`tyrex ledger verify` reports the damage; restore the ledger from a backup".to_owned()
        }
        ledger::Error::Unfinished { job } => {
            format!("nothing was removed; DELETE /v1/jobs/{job} of the service cancels the job")
        }
        _ => return None,
    })
}

fn database_remedy(error: &database::Error) -> Option<String> {
    Some(
        match error {
            database::Error::Absent { .. } | database::Error::Empty { .. } => {
                "name an existing ledger; `tyrex explain --ledger` creates a new one"
            }
            database::Error::Foreign { .. } | database::Error::NotADatabase { .. } => {
                "name another file with --ledger; nothing was changed"
            }
            database::Error::Newer { .. } => {
                "use the version of tyrex that wrote it, or a later one; nothing was changed"
            }
            database::Error::Unreachable { address, .. } if address.starts_with("postgres") => {
                "check that the server runs, and check host, port, user, password and database"
            }
            database::Error::Unreachable { problem, .. } if problem.contains("malformed") => {
                "restore the file from a backup"
            }
            database::Error::Unreachable { .. } => {
                "name a file in an existing folder with write permission"
            }
            database::Error::Address => {
                "percent-encode the special characters of a password: @ as %40"
            }
            database::Error::NoPostgres => {
                "build with the feature `postgres`: `cargo run --release --features postgres -- \
                 ...`; or name a file for a SQLite database"
            }
            database::Error::Full => {
                "nothing was recorded; free space on the disk, then repeat the command"
            }
            database::Error::Claimed { .. } => {
                "use that service, or stop it first; or name another database with --ledger"
            }
            database::Error::Linked { .. } => {
                "SQLite keeps its log beside one name; remove the other links, or copy the file \
                 with `sqlite3 FILE \".backup COPY\"` and name the copy"
            }
            database::Error::ReadOnly => {
                "run the command as a user with write permission for the file and its folder"
            }
            database::Error::Busy => "repeat the command when the other programs have finished",
            _ => return None,
        }
        .to_owned(),
    )
}

/// The remedy for a service that does not start.
#[cfg(feature = "service")]
fn serve_remedy(error: &serve::Error) -> Option<String> {
    match error {
        serve::Error::Bind { source, .. } => match source.kind() {
            ErrorKind::AddrInUse => Some(
                "another program uses this port; choose another --port, or 0 for any".to_owned(),
            ),
            ErrorKind::AddrNotAvailable => {
                Some("this machine has no such address; use 0.0.0.0 for all addresses".to_owned())
            }
            ErrorKind::PermissionDenied => {
                Some("ports below 1024 need privileges; choose another --port".to_owned())
            }
            _ => None,
        },
        serve::Error::NoTokens { .. } => Some(
            "create one with `tyrex token create --role admin --ledger ADDRESS`, where ADDRESS is \
             the --ledger of `tyrex serve`"
                .to_owned(),
        ),
        serve::Error::Database(error) => database_remedy(error),
        _ => None,
    }
}
