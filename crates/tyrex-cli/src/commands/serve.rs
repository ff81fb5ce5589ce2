//! `tyrex serve`

use super::Context;
use crate::args::ServeArgs;

pub(crate) fn run(_context: &mut Context<'_>, _args: &ServeArgs) -> anyhow::Result<()> {
    Ok(())
}
