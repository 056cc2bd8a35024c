//! Memory stays within its bound however large the input is.

use generate::Workload;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::Duration;
use support::Server;

const PROGRAM: &str = env!("CARGO_BIN_EXE_pgpagewrite");
const DB: &str = "postgres";
/// A little over 2 GB of CSV.
const ROWS: u64 = 3_500_000;
const MAX_RSS_KB: u64 = 768 << 10;

/// The most memory that a process had resident so far, in kB; `None` when it has ended.
fn peak_rss_kb(pid: u32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().strip_suffix("kB")?.trim().parse().ok()
}

#[test]
fn two_gigabytes_with_four_indexes_load_in_half_a_gigabyte() {
    let server = Server::start(15, &[("wal_level", "minimal"), ("max_wal_senders", "0")]);
    let path = server.dir().join("customer.csv");
    let mut out = BufWriter::with_capacity(1 << 20, File::create(&path).expect("the input"));
    Workload::Customer { rows: ROWS }
        .write(&mut out)
        .expect("the input");
    out.flush().expect("the input");
    let bytes = std::fs::metadata(&path).expect("its size").len();
    assert!(bytes > 2_000_000_000, "{bytes} bytes");
    server.execute(DB, include_str!("../fixtures/schemas/customer.sql"));
    server.execute(
        DB,
        "CREATE INDEX ON customer (c_last COLLATE \"C\", c_first COLLATE \"C\");
         CREATE INDEX ON customer (c_phone COLLATE \"C\")",
    );
    let mut child = Command::new(PROGRAM)
        .args(["build", "--no-analyze", "--memory", "512MB", "-d"])
        .arg(server.conninfo(DB))
        .arg(format!("customer={}", path.display()))
        .stdout(Stdio::null())
        .spawn()
        .expect("the program starts");
    let mut peak = 0;
    let status = loop {
        peak = peak.max(peak_rss_kb(child.id()).unwrap_or(0));
        if let Some(status) = child.try_wait().expect("its status") {
            break status;
        }
        sleep(Duration::from_millis(20));
    };
    assert!(status.success(), "{status}");
    assert!((1..MAX_RSS_KB).contains(&peak), "{peak} kB resident");
    assert_eq!(
        server.value(
            DB,
            "SELECT format('%s|%s', count(*), sum(c_id)) FROM customer"
        ),
        format!("{ROWS}|{}", ROWS * (ROWS + 1) / 2)
    );
}
