//! Servers that live as long as a test.
//!
//! `target/servers/N` holds the programs of version N (`tools/setup` puts them there). A
//! cluster is made once per version by initdb, kept in `target/templates`, and copied into a
//! private directory under /tmp for each server. Servers listen on a socket in that directory
//! only. PostgreSQL refuses to run as root, so as root everything of the server runs as the
//! user postgres.

use crate::program::{Ran, run};
use postgres::{Client, NoTls};
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// The versions that every test that needs a server must hold on.
pub const VERSIONS: [u32; 5] = [14, 15, 16, 17, 18];

/// Bytes of a page (BLCKSZ).
pub const PAGE_BYTES: usize = 8192;

/// A page.
pub type Page = [u8; PAGE_BYTES];

/// How long a server may take to start or to stop.
const PATIENCE: Duration = Duration::from_secs(120);

/// A fork of a relation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fork {
    /// The pages themselves.
    Main,
    /// The free space map.
    FreeSpaceMap,
    /// The visibility map.
    VisibilityMap,
    /// What an unlogged relation becomes after a crash.
    Init,
}

impl Fork {
    fn suffix(self) -> &'static str {
        match self {
            Fork::Main => "",
            Fork::FreeSpaceMap => "_fsm",
            Fork::VisibilityMap => "_vm",
            Fork::Init => "_init",
        }
    }
}

/// Runs a test on a new server of each version, one after the other.
///
/// # Panics
/// When the test does; standard error then says on which version.
pub fn each_version(settings: &[(&str, &str)], test: impl Fn(&mut Server)) {
    for version in VERSIONS {
        let mut server = Server::start(version, settings);
        test(&mut server);
    }
}

/// Where `tools/setup` puts the servers.
pub fn servers_dir() -> PathBuf {
    target_dir().join("servers")
}

fn target_dir() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target")
}

/// A running server with a cluster of its own; dropped, it stops and its files go.
///
/// The superuser is `postgres`; encoding UTF8, locale C.UTF-8, data checksums on, autovacuum and
/// fsync off.
#[derive(Debug)]
pub struct Server {
    version: u32,
    programs: PathBuf,
    /// Holds the socket, the log and `data`.
    dir: TempDir,
    settings: Vec<(String, String)>,
    postmaster: Option<Child>,
}

impl Server {
    /// Starts a server of this major version. `settings` go to the command line of the
    /// server; `wal_level=minimal` brings `max_wal_senders=0` with it.
    ///
    /// # Panics
    /// When the server is not installed or does not start.
    pub fn start(version: u32, settings: &[(&str, &str)]) -> Server {
        Server::start_in(Path::new("/tmp"), version, settings)
    }

    /// The same with its private directory under `parent`, which others must be able to enter.
    ///
    /// # Panics
    /// When the server is not installed or does not start.
    pub fn start_in(parent: &Path, version: u32, settings: &[(&str, &str)]) -> Server {
        let mut server = Server::prepare_in(parent, version, settings);
        server.launch();
        server
    }

    /// The same, not started: a stopped cluster.
    ///
    /// # Panics
    /// When the server is not installed.
    pub fn prepare(version: u32, settings: &[(&str, &str)]) -> Server {
        Server::prepare_in(Path::new("/tmp"), version, settings)
    }

    fn prepare_in(parent: &Path, version: u32, settings: &[(&str, &str)]) -> Server {
        let installed = servers_dir().join(version.to_string());
        let programs = installed.canonicalize().unwrap_or_else(|e| {
            panic!(
                "PostgreSQL {version} is not installed in {} ({e}): run tools/setup",
                installed.display()
            )
        });
        let dir = private_dir(parent);
        let template = template(version, &programs);
        copy_tree(&template, &dir.path().join("data"));
        let mut all: Vec<(String, String)> = vec![
            ("autovacuum".into(), "off".into()),
            ("fsync".into(), "off".into()),
            ("shared_buffers".into(), "32MB".into()),
            ("max_connections".into(), "20".into()),
            ("jit".into(), "off".into()),
        ];
        for (name, value) in settings {
            if (*name, *value) == ("wal_level", "minimal") {
                all.push(("max_wal_senders".into(), "0".into()));
            }
            all.push(((*name).into(), (*value).into()));
        }
        Server {
            version,
            programs: programs.join("bin"),
            dir,
            settings: all,
            postmaster: None,
        }
    }

    /// The major version.
    pub fn version(&self) -> u32 {
        self.version
    }

    /// The data directory.
    pub fn data_dir(&self) -> PathBuf {
        self.dir.path().join("data")
    }

    /// The directory of the socket: private, of the server's user. A test may keep files here.
    pub fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// The directory of the server's programs.
    pub fn bin_dir(&self) -> &Path {
        &self.programs
    }

    /// The log so far.
    pub fn log(&self) -> String {
        fs::read_to_string(self.dir.path().join("log")).unwrap_or_default()
    }

    /// A connection string in keyword form.
    pub fn conninfo(&self, database: &str) -> String {
        format!(
            "host={} port=5432 user=postgres dbname={database}",
            self.dir.path().display()
        )
    }

    /// Connects as the superuser.
    ///
    /// # Panics
    /// When the server refuses.
    #[track_caller]
    pub fn connect(&self, database: &str) -> Client {
        Client::connect(&self.conninfo(database), NoTls)
            .unwrap_or_else(|e| panic!("could not connect to {database}: {e}\n{}", self.log()))
    }

    /// Runs SQL (several statements may stand in it) as the superuser.
    ///
    /// # Panics
    /// When a statement fails.
    #[track_caller]
    pub fn execute(&self, database: &str, sql: &str) {
        if let Err(e) = self.connect(database).batch_execute(sql) {
            panic!("PostgreSQL {}: {}\nin: {sql}", self.version, describe(&e));
        }
    }

    /// The first column of the first row of a query, as text.
    ///
    /// # Panics
    /// When the query fails, gives no row or a null.
    #[track_caller]
    pub fn value(&self, database: &str, sql: &str) -> String {
        for message in self
            .connect(database)
            .simple_query(sql)
            .unwrap_or_else(|e| panic!("{}\nin: {sql}", describe(&e)))
        {
            if let postgres::SimpleQueryMessage::Row(row) = message {
                return row.get(0).expect("a value that is not null").to_owned();
            }
        }
        panic!("no row from: {sql}");
    }

    /// Runs psql with these arguments, without a psqlrc, as the superuser.
    pub fn psql(&self, database: &str, args: &[&str]) -> Ran {
        let mut command = Command::new("psql");
        self.connection_environment(&mut command, database);
        run(command.arg("-X").args(args))
    }

    /// A client program (`pg_dump`, `pg_restore`, `psql`) of a version from 15 to 18, led to this server.
    /// That of a newer version speaks to an older server.
    ///
    /// # Panics
    /// When it is not installed.
    pub fn client(&self, version: u32, program: &str, database: &str) -> Command {
        let place = match version {
            15 => "15/bin".to_owned(),
            18 => "client/bin".to_owned(),
            version => format!("client{version}/bin"),
        };
        let path = servers_dir().join(place).join(program);
        assert!(
            path.exists(),
            "{} is not installed: run tools/setup",
            path.display()
        );
        let mut command = Command::new(path);
        self.connection_environment(&mut command, database);
        command
    }

    /// The whole database as text, as pg_dump 18 writes it, with the rows of each table in the order
    /// of their text: COPY without FREEZE fills gaps in earlier pages.
    ///
    /// # Panics
    /// When pg_dump fails.
    pub fn dump(&self, database: &str) -> Vec<String> {
        let mut command = self.client(18, "pg_dump", database);
        command.args(["--restrict-key=none", "--no-sync"]);
        let text = crate::run(&mut command).expect_success();
        let mut lines: Vec<String> = text.lines().filter_map(without_version).collect();
        let mut at = 0;
        while let Some(begin) = lines[at..].iter().position(|l| l.starts_with("COPY ")) {
            let begin = at + begin + 1;
            let rows = lines[begin..].iter().position(|l| l == "\\.");
            at = begin + rows.expect("the end of the rows");
            lines[begin..at].sort();
        }
        lines
    }

    /// Gives a client program the environment that leads it to this server.
    pub fn connection_environment(&self, command: &mut Command, database: &str) {
        command
            .env("PGHOST", self.dir.path())
            .env("PGPORT", "5432")
            .env("PGUSER", "postgres")
            .env("PGDATABASE", database)
            .env("PGCLIENTENCODING", "UTF8")
            .stdin(Stdio::null());
    }

    /// A program of the server, to be run as the user that owns the cluster.
    pub fn server_program(&self, name: &str) -> Command {
        server_command(&self.programs.join(name))
    }

    /// All blocks of a fork, over all segments, read from the files after a checkpoint;
    /// none when there is no such file.
    ///
    /// # Panics
    /// When there is no such relation, or a file is no whole number of pages.
    #[track_caller]
    pub fn pages(&self, database: &str, relation: &str, fork: Fork) -> Vec<Page> {
        let mut client = self.connect(database);
        client.batch_execute("CHECKPOINT").expect("a checkpoint");
        let path: String = client
            .query_one(
                "SELECT pg_relation_filepath($1::text::regclass)",
                &[&relation],
            )
            .unwrap_or_else(|e| panic!("no file of {relation}: {}", describe(&e)))
            .get(0);
        let base = format!("{}{}", self.data_dir().join(path).display(), fork.suffix());
        let mut pages = Vec::new();
        for segment in 0.. {
            let file = match segment {
                0 => base.clone(),
                n => format!("{base}.{n}"),
            };
            let Ok(bytes) = fs::read(&file) else { break };
            let (whole, rest) = bytes.as_chunks::<PAGE_BYTES>();
            assert!(rest.is_empty(), "{file} is no whole number of pages");
            pages.extend_from_slice(whole);
        }
        pages
    }

    /// Stops as a crash does: no checkpoint, recovery at the next start.
    ///
    /// # Panics
    /// When the server does not stop.
    pub fn stop_immediate(&mut self) {
        self.stop_by("QUIT");
    }

    /// Stops in an orderly way.
    ///
    /// # Panics
    /// When the server does not stop.
    pub fn stop(&mut self) {
        self.stop_by("INT");
    }

    /// Starts again after a stop; stops first when it runs.
    ///
    /// # Panics
    /// When the server does not start.
    pub fn restart(&mut self) {
        if self.postmaster.is_some() {
            self.stop();
        }
        self.launch();
    }

    /// The same with other settings on the command line, added to those it was made with.
    ///
    /// # Panics
    /// When the server does not start.
    pub fn restart_with(&mut self, settings: &[(&str, &str)]) {
        for (name, value) in settings {
            self.settings.push(((*name).into(), (*value).into()));
        }
        self.restart();
    }

    fn launch(&mut self) {
        let log = fs::File::options()
            .create(true)
            .append(true)
            .open(self.dir.path().join("log"))
            .expect("the server's log");
        let mut command = server_command(&self.programs.join("postgres"));
        command
            .arg("-D")
            .arg(self.data_dir())
            .arg("-k")
            .arg(self.dir.path())
            .args(["-p", "5432", "-c", "listen_addresses="]);
        for (name, value) in &self.settings {
            command.arg("-c").arg(format!("{name}={value}"));
        }
        let child = command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .unwrap_or_else(|e| panic!("could not start {command:?}: {e}"));
        let child = self.postmaster.insert(child);
        let since = Instant::now();
        let conninfo = format!(
            "host={} port=5432 user=postgres dbname=postgres",
            self.dir.path().display()
        );
        loop {
            match Client::connect(&conninfo, NoTls) {
                Ok(_) => return,
                Err(_) if since.elapsed() < PATIENCE => {}
                Err(e) => panic!("PostgreSQL {} does not answer: {e}", self.version),
            }
            if let Some(status) = child.try_wait().expect("the postmaster's status") {
                self.postmaster = None;
                panic!(
                    "PostgreSQL {} ended at once ({status}):\n{}",
                    self.version,
                    self.log()
                );
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    fn stop_by(&mut self, signal: &str) {
        let Some(mut child) = self.postmaster.take() else {
            return;
        };
        send(&child, signal);
        let since = Instant::now();
        while child.try_wait().expect("the postmaster's status").is_none() {
            if since.elapsed() > PATIENCE {
                // Leaves nothing behind, then fails.
                send(&child, "KILL");
                let _ = child.wait();
                panic!("PostgreSQL {} did not stop:\n{}", self.version, self.log());
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("this was on PostgreSQL {}", self.version);
            if let Some(child) = self.postmaster.take() {
                let mut child = child;
                send(&child, "QUIT");
                let _ = child.wait();
            }
        } else {
            self.stop_immediate();
        }
    }
}

fn send(child: &Child, signal: &str) {
    let _ = Command::new("kill")
        .arg(format!("-{signal}"))
        .arg(child.id().to_string())
        .status();
}

/// An error of the server with what psql would show of it.
pub(crate) fn describe(error: &postgres::Error) -> String {
    match error.as_db_error() {
        Some(e) => format!(
            "{} {}: {}{}",
            e.severity(),
            e.code().code(),
            e.message(),
            e.detail().map(|d| format!("\n{d}")).unwrap_or_default()
        ),
        None => error.to_string(),
    }
}

fn own_uid() -> u32 {
    fs::metadata("/proc/self").expect("/proc").uid()
}

/// The uid and gid that the servers' programs run under, when we are root.
fn server_user() -> Option<(u32, u32)> {
    if own_uid() != 0 {
        return None;
    }
    let passwd = fs::read_to_string("/etc/passwd").expect("/etc/passwd");
    let line = passwd
        .lines()
        .find(|l| l.starts_with("postgres:"))
        .expect("a user postgres, for servers do not run as root: run tools/setup");
    let mut fields = line.split(':').skip(2);
    let mut number = || fields.next().and_then(|f| f.parse().ok()).expect("an id");
    Some((number(), number()))
}

fn server_command(program: &Path) -> Command {
    let mut command = Command::new(program);
    if let Some((uid, gid)) = server_user() {
        command.uid(uid).gid(gid);
    }
    command.env("LC_ALL", "C").current_dir("/");
    command
}

fn private_dir(parent: &Path) -> TempDir {
    let dir = tempfile::Builder::new()
        .prefix("pgpagewrite-")
        .permissions(fs::Permissions::from_mode(0o700))
        .tempdir_in(parent)
        .expect("a private directory");
    if let Some((uid, gid)) = server_user() {
        chown(dir.path(), Some(uid), Some(gid)).expect("the directory given to the server");
    }
    dir
}

/// The cluster that servers of this version start from; made when it is not there yet.
fn template(version: u32, programs: &Path) -> PathBuf {
    let exact = run(Command::new(programs.join("bin/postgres")).arg("--version")).expect_success();
    let exact = exact.split_whitespace().nth(2).expect("a version number");
    let templates = target_dir().join("templates");
    let uid = server_user().map_or_else(own_uid, |(uid, _)| uid);
    let name = format!("{version}-{exact}-{uid}");
    let template = templates.join(&name);
    if template.exists() {
        return template;
    }
    fs::create_dir_all(&templates).expect("target/templates");
    let dir = private_dir(Path::new("/tmp"));
    let data = dir.path().join("data");
    run(server_command(&programs.join("bin/initdb"))
        .arg("-D")
        .arg(&data)
        .args([
            "--username=postgres",
            "--auth=trust",
            "--encoding=UTF8",
            "--locale=C.UTF-8",
            "--data-checksums",
            "--no-sync",
        ])
        .stdin(Stdio::null()))
    .expect_success();
    // Several tests may make it at once: whoever renames first has made it.
    let ours = tempfile::tempdir_in(&templates).expect("room in target/templates");
    let copy = ours.path().join("data");
    copy_tree(&data, &copy);
    if fs::rename(&copy, &template).is_err() {
        assert!(template.exists(), "target/templates cannot be filled");
    }
    template
}

/// Copies with owners and modes.
fn copy_tree(from: &Path, to: &Path) {
    run(Command::new("cp")
        .args(["-a", "--reflink=auto"])
        .arg(from)
        .arg(to))
    .expect_success();
}

/// A line without the numbers that servers of late 2026 give to columns: they are new with every
/// table. `None` where there was nothing else.
fn without_version(line: &str) -> Option<String> {
    const OPTION: &str = "pg_attver=";
    let Some(at) = line.find(OPTION) else {
        return Some(line.to_owned());
    };
    let (before, rest) = line.split_at(at);
    let after = rest[OPTION.len()..].trim_start_matches(|c: char| c.is_ascii_digit());
    let options = before.ends_with(", ") || after.starts_with(", ");
    options.then(|| {
        let after = after.strip_prefix(", ").unwrap_or(after);
        if after.starts_with(')') {
            before.trim_end_matches(", ").to_owned() + after
        } else {
            before.to_owned() + after
        }
    })
}
