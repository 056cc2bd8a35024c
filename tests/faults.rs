//! What goes wrong around a load: signals, a server that goes, disks that are full, inputs that
//! change. Whatever it is, it ends soon with an error that says so, and the cluster is as it was.

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::time::{Duration, Instant};
use support::{Ran, Server, SmallDisk};

const PROGRAM: &str = env!("CARGO_BIN_EXE_pgpagewrite");
const DB: &str = "postgres";
/// Far more than any of these ends takes.
const SOON: Duration = Duration::from_secs(20);

fn server() -> Server {
    let server = Server::start(15, &[("wal_level", "minimal")]);
    server.execute(DB, "CREATE TABLE t (a int PRIMARY KEY, b text)");
    server
}

fn build(server: &Server, args: &[&str]) -> Command {
    let mut command = Command::new(PROGRAM);
    command.args(["build", "--progress", "none", "-d"]);
    command.arg(server.conninfo(DB)).args(args);
    command
}

/// A program that is in the middle of its work, since its standard input has not ended.
struct Working {
    child: Child,
    stdin: Option<ChildStdin>,
}

impl Working {
    /// Starts it, feeds it `input`, and waits until the server's directory shows its staged files.
    fn start(server: &Server, args: &[&str], input: &[u8]) -> Working {
        let mut child = build(server, args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program starts");
        let mut stdin = child.stdin.take().expect("a pipe");
        stdin.write_all(input).expect("the program reads");
        stdin.flush().expect("the program reads");
        wait_for("staged files", || !staged(server).is_empty());
        Working {
            child,
            stdin: Some(stdin),
        }
    }

    fn signal(&self, name: &str) {
        signal(&self.child, name);
    }

    /// Ends its input.
    fn end_input(&mut self) {
        self.stdin = None;
    }

    /// Waits for its end, which is to come though its input stays open.
    fn end(mut self) -> Ran {
        wait_for("the program's end", || {
            self.child.try_wait().expect("a child").is_some()
        });
        let output = self.child.wait_with_output().expect("a child");
        Ran {
            status: output.status.code(),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }
}

fn signal(child: &Child, name: &str) {
    let pid = child.id().to_string();
    let status = Command::new("kill").args(["-s", name, &pid]).status();
    assert!(status.expect("kill runs").success());
}

#[track_caller]
fn wait_for(what: &str, mut there: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !there() {
        assert!(begun.elapsed() < SOON, "waited too long for {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// What lies in the server's directory for temporary files.
fn staged(server: &Server) -> Vec<PathBuf> {
    fs::read_dir(server.data_dir().join("base/pgsql_tmp"))
        .map(|entries| entries.map(|e| e.expect("an entry").path()).collect())
        .unwrap_or_default()
}

/// The table is empty, works, and nothing is left in the data directory.
#[track_caller]
fn check_as_it_was(server: &Server) {
    assert_eq!(staged(server), Vec::<PathBuf>::new());
    assert!(!server.data_dir().join("pgpagewrite.journal").exists());
    assert_eq!(server.value(DB, "SELECT count(*) FROM t"), "0");
    server.execute(DB, "INSERT INTO t VALUES (1, 'one'); DELETE FROM t");
    server.execute(DB, "VACUUM t");
    let run = build(server, &["t=-"])
        .stdin(Stdio::null())
        .output()
        .expect("the program runs");
    assert!(run.status.success(), "{run:?}");
}

fn rows(from: u32, to: u32) -> Vec<u8> {
    use std::fmt::Write;
    let mut text = String::new();
    for i in from..to {
        let _ = writeln!(text, "{i}\tvalue {i}");
    }
    text.into_bytes()
}

#[test]
fn a_signal_ends_a_load_that_waits_for_its_input() {
    let server = server();
    for name in ["INT", "TERM", "HUP"] {
        let working = Working::start(&server, &["t=-"], &rows(0, 100_000));
        working.signal(name);
        let stderr = working.end().expect_failure(3);
        assert!(
            stderr.starts_with("ERROR 57014: canceling the load due to user request"),
            "{stderr}"
        );
        assert!(stderr.contains("Nothing was loaded"), "{stderr}");
        check_as_it_was(&server);
    }
}

#[test]
fn a_signal_ends_a_load_that_the_servers_copy_does() {
    let server = server();
    server.execute(DB, "ALTER TABLE t ADD c point");
    let mut child = build(&server, &["t=-"])
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let mut stdin = child.stdin.take().expect("a pipe");
    stdin
        .write_all(b"1\tx\t(1,2)\n")
        .expect("the program reads");
    stdin.flush().expect("the program reads");
    let copying = "SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'COPY%FROM STDIN%'";
    wait_for("the server's COPY", || server.value(DB, copying) == "1");
    signal(&child, "INT");
    let stderr = Working {
        child,
        stdin: Some(stdin),
    }
    .end()
    .expect_failure(3);
    assert!(stderr.starts_with("ERROR 57014: "), "{stderr}");
    server.execute(DB, "ALTER TABLE t DROP c");
    check_as_it_was(&server);
}

#[test]
fn a_signal_ends_a_load_that_waits_for_a_lock() {
    let server = server();
    let mut other = server.connect(DB);
    let mut holds = other.transaction().expect("a transaction");
    holds
        .batch_execute("LOCK TABLE t IN ROW EXCLUSIVE MODE")
        .expect("the lock");
    let mut working = Working::start(&server, &["t=-"], &rows(0, 10));
    working.end_input();
    let waiting = "SELECT count(*) FROM pg_locks WHERE NOT granted";
    wait_for("the lock's queue", || server.value(DB, waiting) == "1");
    working.signal("INT");
    let stderr = working.end().expect_failure(3);
    assert!(stderr.contains("ERROR 57014: "), "{stderr}");
    holds.rollback().expect("the end");
    check_as_it_was(&server);
}

#[test]
fn a_bad_row_ends_a_load_though_more_input_may_come() {
    let server = server();
    let mut input = rows(0, 200_000);
    input.extend_from_slice(b"x\ty\n");
    input.extend(rows(200_000, 400_000));
    let mut child = build(&server, &["t=-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let mut stdin = child.stdin.take().expect("a pipe");
    // It may have ended before it has read all.
    let _ = stdin.write_all(&input);
    let stderr = Working {
        child,
        stdin: Some(stdin),
    }
    .end()
    .expect_failure(1);
    assert!(stderr.contains("stdin, line 200001, column a"), "{stderr}");
    check_as_it_was(&server);
}

#[test]
fn a_killed_load_is_cleaned_up_by_recover_and_by_the_next_load() {
    let mut server = server();
    for way in ["recover", "load", "restart"] {
        let working = Working::start(&server, &["t=-"], &rows(0, 100_000));
        working.signal("KILL");
        assert_eq!(working.end().status, None);
        assert_ne!(staged(&server), Vec::<PathBuf>::new());
        match way {
            "recover" => {
                let mut recover = Command::new(PROGRAM);
                recover.args(["recover", "-D"]).arg(server.data_dir());
                support::run(&mut recover).expect_success();
            }
            "load" => {
                let mut next = Working::start(&server, &["t=-"], &rows(0, 10));
                next.end_input();
                next.end().expect_success();
                server.execute(DB, "TRUNCATE t");
            }
            _ => server.restart(),
        }
        check_as_it_was(&server);
    }
}

#[test]
fn a_server_that_goes_during_the_build_is_an_error() {
    let mut server = server();
    for immediate in [true, false] {
        let mut working = Working::start(&server, &["t=-"], &rows(0, 100_000));
        if immediate {
            server.stop_immediate();
        } else {
            server.stop();
        }
        working.end_input();
        let stderr = working.end().expect_failure(3);
        assert!(stderr.starts_with("ERROR "), "{stderr}");
        server.restart();
        check_as_it_was(&server);
    }
}

#[test]
fn a_connection_that_is_lost_during_the_build_is_an_error() {
    let server = server();
    let mut working = Working::start(&server, &["t=-"], &rows(0, 100_000));
    let ended = server.value(
        DB,
        "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
         WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'",
    );
    assert_eq!(ended, "1");
    working.end_input();
    let stderr = working.end().expect_failure(3);
    assert!(stderr.starts_with("ERROR "), "{stderr}");
    check_as_it_was(&server);
}

/// A file that is changed after the program opened it, while the program waits for another input.
#[track_caller]
fn a_file_changes(change: impl Fn(&Path)) {
    let server = server();
    let path = server.dir().join("input.txt");
    fs::write(&path, rows(1_000_000, 1_200_000)).expect("the input");
    let file = format!("t={}", path.display());
    let mut working = Working::start(&server, &["t=-", &file], &rows(0, 100_000));
    change(&path);
    working.end_input();
    let stderr = working.end().expect_failure(3);
    let expected = format!(
        "ERROR 55006: file \"{}\" changed while it was being read",
        path.display()
    );
    assert!(stderr.starts_with(&expected), "{stderr}");
    check_as_it_was(&server);
}

#[test]
fn an_input_that_shrinks_is_an_error() {
    a_file_changes(|path| {
        let file = OpenOptions::new().write(true).open(path).expect("the file");
        file.set_len(1000).expect("a shorter file");
    });
}

#[test]
fn an_input_that_grows_is_an_error() {
    a_file_changes(|path| {
        let mut file = OpenOptions::new()
            .append(true)
            .open(path)
            .expect("the file");
        file.write_all(&rows(2_000_000, 2_000_001))
            .expect("a longer file");
    });
}

#[test]
fn an_input_that_is_written_over_is_an_error() {
    a_file_changes(|path| {
        let mut file = OpenOptions::new().write(true).open(path).expect("the file");
        file.write_all(b"9").expect("a changed file");
    });
}

#[test]
fn a_full_temporary_disk_is_an_error() {
    let server = server();
    let disk = SmallDisk::mount(server.dir().join("temp"), 1 << 20);
    let path = server.dir().join("input.txt");
    fs::write(&path, rows(0, 1_000_000)).expect("the input");
    let run = support::run(&mut build(
        &server,
        &[
            "--memory=64MB",
            "--temp-dir",
            disk.path().to_str().expect("UTF-8"),
            &format!("t={}", path.display()),
        ],
    ));
    let stderr = run.expect_failure(3);
    assert!(
        stderr.starts_with("ERROR 53100: could not write a temporary file in"),
        "{stderr}"
    );
    assert!(stderr.contains("No space left on device"), "{stderr}");
    check_as_it_was(&server);
}

#[test]
fn a_full_data_disk_is_an_error() {
    let dir = tempfile::tempdir_in("/tmp").expect("a directory");
    fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755)).expect("a mode");
    let disk = SmallDisk::mount(dir.path().join("disk"), 300 << 20);
    let server = Server::start_in(disk.path(), 15, &[("wal_level", "minimal")]);
    server.execute(DB, "CREATE TABLE t (a int PRIMARY KEY, b text)");
    // The input is 48 MB, the table's files are more.
    let path = dir.path().join("input.txt");
    fs::write(&path, rows(0, 2_000_000)).expect("the input");
    let ballast = disk.path().join("ballast");
    fill(&ballast, disk.path(), 20 << 20);
    let run = support::run(&mut build(&server, &[&format!("t={}", path.display())]));
    let stderr = run.expect_failure(3);
    assert!(stderr.starts_with("ERROR 53100: "), "{stderr}");
    check_as_it_was(&server);
    fs::remove_file(&ballast).expect("room again");
    let run = support::run(&mut build(&server, &[&format!("t={}", path.display())]));
    run.expect_success();
    assert_eq!(server.value(DB, "SELECT count(*) FROM t"), "2000000");
    drop(server);
    drop(disk);
}

/// Writes a file until so many bytes are left on its disk.
fn fill(path: &Path, disk: &Path, leave_bytes: u64) {
    let output = Command::new("df")
        .args(["--output=avail", "-B1"])
        .arg(disk)
        .output()
        .expect("df runs");
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    let free: u64 = text
        .lines()
        .nth(1)
        .and_then(|line| line.trim().parse().ok())
        .expect("a number");
    let mut file = File::create(path).expect("a file");
    let megabyte = vec![1; 1 << 20];
    for _ in 0..free.saturating_sub(leave_bytes) >> 20 {
        file.write_all(&megabyte).expect("room for ballast");
    }
}
