//! Opens a ledger some of whose bytes are changed.
//!
//! Three bytes of input change one byte of the file: two of them are its place among the bytes that
//! are not 0, the third is what it is combined with.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use tempfile::TempDir;
use tokio::runtime::{Builder, Runtime};
use tyrex_ledger::database::Database;
use tyrex_ledger::ledger::{self, Entry, Filter, Ledger};

const LEDGER: &[u8] = include_bytes!("../seeds/ledger.db");

/// A folder, in memory if the system has one there.
pub fn folder() -> TempDir {
    let memory = tempfile::tempdir_in("/dev/shm");
    memory.or_else(|_| tempfile::tempdir()).expect("a folder")
}

struct State {
    folder: TempDir,
    places: Vec<usize>,
    runtime: Runtime,
}

fn state() -> &'static State {
    static STATE: OnceLock<State> = OnceLock::new();
    STATE.get_or_init(|| State {
        folder: folder(),
        places: (0..LEDGER.len()).filter(|&place| LEDGER[place] != 0).collect(),
        runtime: Builder::new_current_thread().enable_all().build().expect("a runtime"),
    })
}

pub fn read(data: &[u8]) {
    let State { folder, places, runtime } = state();
    let mut bytes = LEDGER.to_vec();
    for change in data.chunks_exact(3) {
        let place = usize::from(u16::from_be_bytes([change[0], change[1]]));
        bytes[places[place % places.len()]] ^= change[2];
    }
    let path: PathBuf = folder.path().join("ledger.db");
    fs::write(&path, bytes).expect("a file");
    runtime.block_on(open(&path));
    for end in ["", "-wal", "-shm", "-journal"] {
        let _ = fs::remove_file(folder.path().join(format!("ledger.db{end}")));
    }
}

async fn open(path: &Path) {
    let Ok(database) = Database::open_existing(&path.display().to_string()).await else { return };
    let own = Ledger::new(database);
    let _ = own.verify(None).await;
    let all = Filter { all_kinds: true, ..Filter::default() };
    if let Ok(entries) = own.list(&all).await {
        let _ = ledger::table(&entries);
    }
    if let Ok(promises) = own.open_promises().await {
        promises.iter().filter_map(Entry::written).for_each(drop);
    }
    let _ = own.head().await;
    let _ = own.forget("loans.csv#row 0").await;
    own.database().close().await;
}
