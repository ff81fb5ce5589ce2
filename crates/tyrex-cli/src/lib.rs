//! The `tyrex` command: it translates arguments into calls of the library, and the library's
//! answers into text.
//!
//! Exit codes: 0 done; 1 the answer is "no"; 2 bad input.

pub mod args;
mod commands;
mod help;
mod interrupt;
mod printer;
mod progress;
mod version;

use std::process::ExitCode;

use anyhow::Context as _;

#[cfg(feature = "service")]
use args::TokenCommand;
use args::{
    Args, Command, DataCommand, ExperimentCommand, LedgerCommand, ModelCommand, SchemaCommand,
};
use commands::{Answer, Context};
use printer::Printer;

/// The answer is "no".
const NO: u8 = 1;
/// Bad input: a file, an argument, or a failed write.
const BAD_INPUT: u8 = 2;

/// Runs the command line. Errors are printed here.
pub fn run(args: Args) -> ExitCode {
    let mut printer = Printer::new(args.global.json, args.global.quiet);
    match dispatch(args, &mut printer) {
        Ok(Answer::Yes) => ExitCode::SUCCESS,
        Ok(Answer::No) => ExitCode::from(NO),
        // The handler of the interrupt may not have ended the program yet.
        Err(_) if interrupt::requested() => ExitCode::from(interrupt::INTERRUPTED),
        Err(error) => {
            printer::error(&error);
            ExitCode::from(BAD_INPUT)
        }
    }
}

fn dispatch(args: Args, printer: &mut Printer) -> anyhow::Result<Answer> {
    // The service handles signals itself, and shuts down gracefully.
    if !matches!(args.command, Command::Serve(_)) {
        interrupt::listen().context("cannot listen for interrupts")?;
    }
    if let Some(threads) = args.global.threads {
        rayon::ThreadPoolBuilder::new()
            .num_threads(threads.into())
            .build_global()
            .with_context(|| format!("cannot start {threads} threads"))?;
    }
    let context = &mut Context { global: args.global, printer };
    match args.command {
        Command::Train(args) => commands::train::run(context, &args),
        Command::Retrain(args) => commands::retrain::run(context, &args),
        Command::Stability(args) => commands::stability::run(context, &args),
        Command::Report(args) => commands::report::run(context, &args),
        // The answer of these commands may be "no".
        Command::Explain(args) => return commands::explain::run(context, &args),
        Command::Certify(args) => return commands::certify::run(context, &args),
        Command::Calibrate(args) => return commands::calibrate::run(context, &args),
        Command::Audit(args) => return commands::audit::run(context, &args),
        Command::Ledger(LedgerCommand::List(args)) => commands::ledger::list(context, &args),
        Command::Ledger(LedgerCommand::Show(args)) => commands::ledger::show(context, &args),
        Command::Ledger(LedgerCommand::Export(args)) => commands::ledger::export(context, &args),
        Command::Ledger(LedgerCommand::Record(args)) => commands::ledger::record(context, &args),
        Command::Ledger(LedgerCommand::Close(args)) => {
            commands::ledger::close_promise(context, &args)
        }
        Command::Ledger(LedgerCommand::Verify(args)) => {
            return commands::ledger::verify(context, &args);
        }
        Command::Ledger(LedgerCommand::Forget(args)) => {
            return commands::ledger::forget(context, &args);
        }
        Command::Experiment(ExperimentCommand::Run(args)) => {
            commands::experiment::run(context, &args)
        }
        Command::Experiment(ExperimentCommand::Show(args)) => {
            commands::experiment::show(context, &args)
        }
        Command::Data(DataCommand::List) => commands::data::list(context),
        Command::Data(DataCommand::Show(args)) => commands::data::show(context, &args),
        Command::Data(DataCommand::Fetch(args)) => commands::data::fetch(context, &args),
        Command::Schema(SchemaCommand::Infer(args)) => commands::schema::infer(context, &args),
        Command::Schema(SchemaCommand::Check(args)) => commands::schema::check(context, &args),
        Command::Model(ModelCommand::Show(args)) => commands::model::show(context, &args),
        #[cfg(feature = "service")]
        Command::Serve(args) => commands::serve::run(context, &args),
        #[cfg(feature = "service")]
        Command::Token(TokenCommand::Create(args)) => commands::token::create(context, &args),
        #[cfg(feature = "service")]
        Command::Token(TokenCommand::List(args)) => commands::token::list(context, &args),
        #[cfg(feature = "service")]
        Command::Token(TokenCommand::Revoke(args)) => commands::token::revoke(context, &args),
        #[cfg(not(feature = "service"))]
        Command::Serve(_) => Err(help::no_service("serve").into()),
        #[cfg(not(feature = "service"))]
        Command::Token(_) => Err(help::no_service("token").into()),
        Command::Completions { shell } => commands::completions::run(shell),
    }
    .map(|()| Answer::Yes)
}
