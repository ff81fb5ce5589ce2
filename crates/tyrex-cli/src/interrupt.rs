//! Ctrl-C leaves no partial files: the program exits at once, but inside [`whole`] only at the
//! second interrupt.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The exit code shells give to a program that was interrupted.
pub(crate) const INTERRUPTED: u8 = 130;

static REQUESTED: AtomicBool = AtomicBool::new(false);
static WRITING: Mutex<()> = Mutex::new(());

/// Installs the handler: an interrupt ends the program as soon as nothing is being written.
pub(crate) fn listen() -> Result<(), ctrlc::Error> {
    ctrlc::set_handler(|| {
        // The second interrupt ends the program without waiting.
        if REQUESTED.swap(true, Ordering::SeqCst) {
            std::process::exit(INTERRUPTED.into());
        }
        std::thread::spawn(|| {
            let _nothing_is_written = writing();
            std::process::exit(INTERRUPTED.into());
        });
    })
}

/// Runs work that an interrupt must not split.
pub(crate) fn whole<T>(work: impl FnOnce() -> T) -> T {
    let _writing = writing();
    work()
}

/// Whether an interrupt waits for [`whole`] to end. Long work inside it should check this.
pub(crate) fn requested() -> bool {
    REQUESTED.load(Ordering::SeqCst)
}

fn writing() -> MutexGuard<'static, ()> {
    WRITING.lock().unwrap_or_else(PoisonError::into_inner)
}
