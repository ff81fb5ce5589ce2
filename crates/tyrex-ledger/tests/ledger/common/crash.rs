//! A program that records, is watched, and may be killed.
//!
//! The test executable starts itself: its test `child` does nothing unless the environment names
//! a task. Everything that was acknowledged is one line on its standard output, written after the
//! ledger's method returned.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write as _;
use std::process::{Child, Command, Stdio};

use tyrex_ledger::database::{self, Database};
use tyrex_ledger::ledger::{Closing, Error, Filter, Hash, Ledger, Status, Uuid};

use super::{Dice, promise};

/// Where the ledger is, for a child.
pub(crate) const ADDRESS: &str = "TYREX_TEST_ADDRESS";
/// How many promises a child records; without it, until it is killed.
const COUNT: &str = "TYREX_TEST_COUNT";
/// The file to remove to make room when the disk is full.
const BALLAST: &str = "TYREX_TEST_BALLAST";
/// Whether a child only records.
const ONLY_RECORDING: &str = "TYREX_TEST_ONLY_RECORDING";
/// The file that tells a child to stop.
const STOP: &str = "TYREX_TEST_STOP";
/// The seed of a child.
const SEED: &str = "TYREX_TEST_SEED";

/// The arguments that make this executable a child.
pub(crate) const ARGUMENTS: [&str; 3] = ["--exact", "child", "--nocapture"];

/// A child that records so many promises, or until it is killed.
pub(crate) fn recorder(address: &str, seed: u64, count: Option<usize>) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(ARGUMENTS).stdout(Stdio::piped()).stderr(Stdio::piped());
    environment(&mut command, address, seed, count);
    command
}

/// The environment of a child.
pub(crate) fn environment(command: &mut Command, address: &str, seed: u64, count: Option<usize>) {
    command.env(ADDRESS, address).env(SEED, seed.to_string());
    if let Some(count) = count {
        command.env(COUNT, count.to_string());
    }
}

/// The same with a file that is removed when the disk is full.
pub(crate) fn ballast(command: &mut Command, file: &std::path::Path) {
    command.env(BALLAST, file);
}

/// Lets a child end by itself, as soon as this file is there.
pub(crate) fn stop_at(command: &mut Command, file: &std::path::Path) {
    command.env(STOP, file);
}

/// Neither closing nor forgetting: forgetting tidies up, and the disk never fills.
pub(crate) fn only_recording(command: &mut Command) {
    command.env(ONLY_RECORDING, "yes");
}

/// The work of a child: it records, and now and then closes a promise or erases a subject.
pub(crate) fn act_as_child() {
    let Ok(address) = std::env::var(ADDRESS) else { return };
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let count = number(COUNT).map_or(usize::MAX, |count| count as usize);
    let dice = Dice(number(SEED).unwrap_or(0));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(work(&address, count, dice));
}

/// A line on standard output, in one piece.
fn acknowledge(line: &str) {
    let mut out = std::io::stdout().lock();
    out.write_all(format!("{line}\n").as_bytes()).and_then(|()| out.flush()).unwrap();
}

async fn work(address: &str, count: usize, mut dice: Dice) {
    let ledger = Ledger::new(patiently(address).await);
    let process = std::process::id();
    let only_recording = std::env::var_os(ONLY_RECORDING).is_some();
    let mut last: Option<(Uuid, String)> = None;
    let stop = std::env::var_os(STOP).map(std::path::PathBuf::from);
    for round in 0..count {
        if stop.as_ref().is_some_and(|file| file.exists()) {
            return;
        }
        let subject = format!("person {process} {round}");
        let promises: Vec<_> =
            (0..=dice.below(2)).map(|n| promise(&subject, round as u32 + n as u32)).collect();
        let recorded = match ledger.record(&promises).await {
            Err(Error::Database(database::Error::Full | database::Error::Disk { .. })) => {
                acknowledge("full");
                let Ok(ballast) = std::env::var(BALLAST) else { return };
                std::fs::remove_file(ballast).unwrap();
                // The same promises again, from the same process.
                let recorded = ledger.record(&promises).await.unwrap();
                acknowledge("room");
                recorded
            }
            other => other.unwrap(),
        };
        for one in &recorded {
            acknowledge(&format!("recorded {} {} {}", one.id, one.sequence, one.hash));
        }
        match (dice.below(12), last.take()) {
            _ if only_recording => {}
            (0 | 1, Some((id, _))) => {
                ledger.close(id, Closing::Fulfilled).await.unwrap();
                acknowledge(&format!("closed {id}"));
            }
            (2, Some((id, subject))) => {
                ledger.forget(&subject).await.unwrap();
                acknowledge(&format!("forgot {id}"));
            }
            _ => last = Some((recorded[0].id, subject)),
        }
    }
}

/// Opens the database, also while its server is coming back from a crash.
async fn patiently(address: &str) -> Database {
    for _ in 0..100 {
        match Database::open(address).await {
            Err(error)
                if error.is_lost_connection()
                    || matches!(error, database::Error::Unreachable { .. }) =>
            {
                tokio::time::sleep(std::time::Duration::from_millis(200)).await;
            }
            other => return other.unwrap(),
        }
    }
    panic!("the database does not answer");
}

/// The entries that child processes have acknowledged.
#[derive(Debug, Default)]
pub(crate) struct Acknowledged {
    pub(crate) recorded: BTreeMap<Uuid, (u64, Hash)>,
    pub(crate) closed: BTreeSet<Uuid>,
    pub(crate) forgotten: BTreeSet<Uuid>,
    /// Other words, such as `full`.
    pub(crate) words: Vec<String>,
}

impl Acknowledged {
    /// Adds the whole lines of a child's output.
    pub(crate) fn add(&mut self, output: &[u8]) {
        let text = String::from_utf8_lossy(output);
        for line in text.split_inclusive('\n').filter_map(|line| line.strip_suffix('\n')) {
            let words: Vec<&str> = line.split(' ').collect();
            match *words {
                ["recorded", id, sequence, hash] => {
                    let place = (sequence.parse().unwrap(), hash.parse().unwrap());
                    assert!(self.recorded.insert(id.parse().unwrap(), place).is_none());
                }
                ["closed", id] => assert!(self.closed.insert(id.parse().unwrap())),
                ["forgot", id] => assert!(self.forgotten.insert(id.parse().unwrap())),
                ["full" | "room"] => self.words.push(line.to_owned()),
                // Output of the test harness.
                _ => {}
            }
        }
    }

    /// Waits for a child to end by itself and adds what it said.
    pub(crate) fn finish(&mut self, child: Child) {
        let output = child.wait_with_output().unwrap();
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "a child failed: {errors}\n{said}");
        self.add(&output.stdout);
    }

    /// Checks that all of it is in the ledger, and that the chain is sound. Returns how many
    /// entries there are.
    pub(crate) async fn check(&self, ledger: &Ledger) -> u64 {
        let verification = ledger.verify(None).await.unwrap();
        assert!(verification.is_sound(), "{verification:?}");
        let entries = ledger.list(&Filter::default()).await.unwrap();
        let entries: BTreeMap<Uuid, _> = entries.iter().map(|entry| (entry.id, entry)).collect();
        for (id, (sequence, hash)) in &self.recorded {
            let entry = entries.get(id).unwrap_or_else(|| panic!("{id} was acknowledged"));
            assert_eq!((entry.sequence, entry.hash), (*sequence, *hash));
            let status = entry.promise().unwrap().status;
            let expected = if self.forgotten.contains(id) { Status::Forgotten } else { status };
            assert_eq!(status, expected, "{id}");
            if self.closed.contains(id) {
                assert_eq!(status, Status::Fulfilled, "{id}");
            }
        }
        verification.entries
    }
}
