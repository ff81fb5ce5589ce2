//! The ledger in a SQLite file survives what happens to programs: they are killed, disks are
//! full, others write at the same time.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use tyrex_ledger::database::Database;
use tyrex_ledger::ledger::Ledger;

use crate::common::crash::{
    ARGUMENTS, Acknowledged, ballast, environment, only_recording, recorder,
};
use crate::common::{Dice, keep_counts, promise};

fn run<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(work)
}

async fn open(file: &Path) -> Ledger {
    Ledger::new(Database::open(file.to_str().unwrap()).await.unwrap())
}

#[test]
fn killed_a_hundred_times_the_ledger_loses_nothing() {
    const KILLS: usize = 100;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("advice.db");
    let mut dice = Dice(2023);
    let mut acknowledged = Acknowledged::default();
    let mut idle_kills = 0;
    let started = Instant::now();
    let mut entries = 0;
    for kill in 0..KILLS {
        let mut child = recorder(file.to_str().unwrap(), kill as u64, None).spawn().unwrap();
        // One in eight is killed while it starts; the others somewhere behind an acknowledgement,
        // however slow the machine is.
        let mut said = Vec::new();
        if kill % 8 != 0 {
            let mut lines = BufReader::new(child.stdout.as_mut().unwrap());
            let wanted = dice.below(25);
            let mut heard = 0;
            while heard <= wanted && lines.read_until(b'\n', &mut said).unwrap() > 0 {
                heard += u64::from(said.ends_with(b"\n") && is_acknowledgement(&said));
            }
            said.extend_from_slice(lines.buffer());
        }
        std::thread::sleep(Duration::from_micros(dice.below(20_000)));
        child.kill().unwrap();
        let output = child.wait_with_output().unwrap();
        assert!(!output.status.success(), "the child ended by itself");
        let before = acknowledged.recorded.len();
        said.extend(output.stdout);
        acknowledged.add(&said);
        idle_kills += usize::from(acknowledged.recorded.len() == before);
        entries = run(async {
            let ledger = open(&file).await;
            let entries = acknowledged.check(&ledger).await;
            ledger.database().close().await;
            entries
        });
    }
    let recorded = acknowledged.recorded.len();
    assert!(recorded > KILLS, "only {recorded} were recorded: the test killed too early");
    keep_counts(
        "crash-kill",
        &format!(
            "{KILLS} kills ({idle_kills} before the first acknowledgement of that run), \
             {recorded} promises acknowledged, {} closed, {} forgotten, 0 lost, {entries} entries, \
             chain sound after every kill, {:.1} s",
            acknowledged.closed.len(),
            acknowledged.forgotten.len(),
            started.elapsed().as_secs_f64()
        ),
    );
}

/// Whether the last line is one, and not what the test harness says.
fn is_acknowledgement(lines: &[u8]) -> bool {
    let last = lines[..lines.len() - 1].rsplit(|&byte| byte == b'\n').next().unwrap_or_default();
    [&b"recorded "[..], b"closed ", b"forgot "].iter().any(|word| last.starts_with(word))
}

#[test]
fn four_writers_at_once_make_one_chain() {
    const WRITERS: u64 = 4;
    const EACH: usize = 40;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("advice.db");
    let started = Instant::now();
    // The file does not exist yet, so the processes also compete to create it.
    let children: Vec<_> = (0..WRITERS)
        .map(|seed| recorder(file.to_str().unwrap(), seed, Some(EACH)).spawn().unwrap())
        .collect();
    let mut acknowledged = Acknowledged::default();
    children.into_iter().for_each(|child| acknowledged.finish(child));
    let entries = run(async { acknowledged.check(&open(&file).await).await });
    let counted = acknowledged.recorded.len() + acknowledged.closed.len();
    let forgotten = acknowledged.forgotten.len();
    assert_eq!(entries as usize, counted + forgotten, "every entry was acknowledged once");
    assert!(acknowledged.recorded.len() >= WRITERS as usize * EACH);
    keep_counts(
        "crash-writers",
        &format!(
            "{WRITERS} processes, {entries} entries, 0 lost, chain sound, {:.1} s",
            started.elapsed().as_secs_f64()
        ),
    );
}

/// Runs a script where a small disk is mounted at `$DISK`, if this machine lets us.
fn on_small_disk(disk: &Path, script: &str) -> Option<Command> {
    let mount = "mount -t tmpfs -o size=4m tmpfs \"$DISK\"";
    let ways: [&[&str]; 2] = [&["--mount"], &["--user", "--map-root-user", "--mount"]];
    for way in ways {
        let command = |script: &str| {
            let mut command = Command::new("unshare");
            command.args(way).args(["--", "sh", "-c", script]).env("DISK", disk);
            command.stdin(Stdio::null());
            command
        };
        if command(mount).output().is_ok_and(|output| output.status.success()) {
            return Some(command(&format!("{mount} && {script}")));
        }
    }
    None
}

#[test]
fn a_full_disk_is_said_and_nothing_is_lost() {
    let folder = tempfile::tempdir().unwrap();
    let disk = folder.path().join("disk");
    std::fs::create_dir(&disk).unwrap();
    let ledger = disk.join("advice.db");
    let weight = disk.join("ballast");
    let exe = std::env::current_exe().unwrap();
    let child = format!("{} {}", exe.display(), ARGUMENTS.join(" "));
    let out = folder.path().display();
    // Most of the disk is a file that is removed when the ledger has filled the rest. The
    // checks here read a copy of the ledger.
    let fill = format!(
        "head -c 3400000 /dev/zero > \"$DISK/ballast\" && {child} && cp \"$DISK\"/advice.db* {out}"
    );
    let (mut command, how) = match on_small_disk(&disk, &fill) {
        Some(mut command) => {
            ballast(&mut command, &weight);
            (command, "recording went on in the same process")
        }
        // A limit on the size of files looks much the same to SQLite; another process goes on.
        None => {
            let limited = format!("(trap '' XFSZ; ulimit -f 1000; {child})");
            let mut command = Command::new("sh");
            command
                .args(["-c", &format!("{limited} && {child} && cp {}* {out}", ledger.display())]);
            (command, "recording went on in another process (no disk could be mounted)")
        }
    };
    environment(&mut command, ledger.to_str().unwrap(), 7, Some(100));
    only_recording(&mut command);
    let mut acknowledged = Acknowledged::default();
    acknowledged.finish(command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap());
    assert_eq!(acknowledged.words[0], "full");
    let entries = run(async {
        let ledger = open(&folder.path().join("advice.db")).await;
        acknowledged.check(&ledger).await
    });
    let counted = acknowledged.recorded.len() + acknowledged.closed.len();
    assert_eq!(entries as usize, counted + acknowledged.forgotten.len());
    keep_counts(
        "crash-full-disk",
        &format!(
            "1 full disk, {} promises acknowledged, 0 lost, {how}, {entries} entries, chain sound",
            acknowledged.recorded.len()
        ),
    );
}

/// Writers of one process share the connections.
#[test]
fn many_tasks_of_one_process_make_one_chain() {
    let folder = tempfile::tempdir().unwrap();
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(4).enable_all().build().unwrap();
    runtime.block_on(async {
        let ledger = open(&folder.path().join("advice.db")).await;
        let tasks: Vec<_> = (0..20)
            .map(|task| {
                let ledger = ledger.clone();
                tokio::spawn(async move {
                    for number in 0..3 {
                        ledger.record(&[promise(&format!("{task}"), number)]).await.unwrap();
                    }
                })
            })
            .collect();
        for task in tasks {
            task.await.unwrap();
        }
        let verification = ledger.verify(None).await.unwrap();
        assert!(verification.is_sound(), "{verification:?}");
        assert_eq!(verification.entries, 60);
    });
}
