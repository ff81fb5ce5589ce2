//! Ctrl-C leaves no half files: the program ends at once, but not inside [`whole`] unless it
//! is asked twice.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The exit code shells give to a program that was interrupted.
const INTERRUPTED: i32 = 130;

static REQUESTED: AtomicBool = AtomicBool::new(false);
static WRITING: Mutex<()> = Mutex::new(());

/// From now on an interrupt ends the program as soon as nothing is being written.
pub(crate) fn listen() -> Result<(), ctrlc::Error> {
    ctrlc::set_handler(|| {
        // Whoever asks twice does not want to wait.
        if REQUESTED.swap(true, Ordering::SeqCst) {
            std::process::exit(INTERRUPTED);
        }
        std::thread::spawn(|| {
            let _nothing_is_written = writing();
            std::process::exit(INTERRUPTED);
        });
    })
}

/// Work that an interrupt may not cut in two.
pub(crate) fn whole<T>(work: impl FnOnce() -> T) -> T {
    let _writing = writing();
    work()
}

/// Whether an interrupt waits for [`whole`] to end. Long work inside it should ask.
pub(crate) fn requested() -> bool {
    REQUESTED.load(Ordering::SeqCst)
}

fn writing() -> MutexGuard<'static, ()> {
    WRITING.lock().unwrap_or_else(PoisonError::into_inner)
}
