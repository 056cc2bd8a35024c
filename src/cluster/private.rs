//! A server of our own for a stopped cluster, and new clusters.
//!
//! The server listens on a socket in a directory of mode 0700 that belongs to the cluster's
//! owner, nowhere else, with an access file of its own. It is stopped when the
//! [`PrivateServer`] is dropped, on errors and panics too; should we be killed, the kernel
//! tells it to stop.

use std::fs::File;
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::conninfo::Conninfo;
use super::owner::FileOwner;
use super::programs::Programs;
use crate::error::{Error, Result};
use crate::sys::credentials;

/// The port names the socket's file; nothing listens on it.
const PORT: u16 = 5432;

/// Starting includes recovery of a cluster that crashed.
const START_TIMEOUT: Duration = Duration::from_secs(3600);

/// Stopping includes a checkpoint.
const STOP_TIMEOUT: Duration = Duration::from_secs(1800);

/// Enough for some ten thousand tables in one transaction; the memory it takes is small.
const MAX_LOCKS_PER_TRANSACTION: u32 = 1024;

/// A private server that runs.
#[derive(Debug)]
pub struct PrivateServer {
    child: Option<Child>,
    data_directory: PathBuf,
    /// Socket, access file and log; removed last.
    directory: tempfile::TempDir,
}

impl PrivateServer {
    /// Starts a server on a stopped cluster. `settings` are further `name=value`s.
    ///
    /// # Errors
    /// `55000` when a server already runs there; else with the last lines of the server's log.
    pub fn start(
        programs: &Programs,
        data_directory: &Path,
        owner: FileOwner,
        settings: &[String],
    ) -> Result<PrivateServer> {
        refuse_running(data_directory)?;
        let directory = private_directory(owner)?;
        let hba = directory.path().join("pg_hba.conf");
        write_file(owner, &hba, "local all all trust\n")?;
        let ident = directory.path().join("pg_ident.conf");
        write_file(owner, &ident, "")?;
        let log = directory.path().join("log");
        let log_file = owner
            .create_new(&log)
            .map_err(|e| Error::io("create file", &log, &e))?;

        let mut command = owner.command(&programs.path("postgres"));
        command.arg("-D").arg(data_directory);
        if let Some(config) = configuration_file(data_directory, owner, directory.path())? {
            command.arg(format!("--config_file={}", config.display()));
            command.arg(format!("--data_directory={}", data_directory.display()));
        }
        let socket_directory = directory.path().display().to_string();
        for setting in [
            "listen_addresses=",
            &format!("unix_socket_directories={socket_directory}"),
            "unix_socket_permissions=0700",
            "unix_socket_group=",
            &format!("port={PORT}"),
            &format!("hba_file={}", hba.display()),
            &format!("ident_file={}", ident.display()),
            "external_pid_file=",
            "ssl=off",
            "bonjour=off",
            "logging_collector=off",
            "log_destination=stderr",
            "cluster_name=pgpagewrite",
            "autovacuum=off",
            "fsync=on",
            &format!("max_locks_per_transaction={MAX_LOCKS_PER_TRANSACTION}"),
        ] {
            command.arg("-c").arg(setting);
        }
        if programs.major() == 14 {
            // Debian's lies where only its own start script makes it; later versions have none.
            command.args(["-c", "stats_temp_directory=pg_stat_tmp"]);
        }
        for setting in settings {
            command.arg("-c").arg(setting);
        }
        clean_environment(&mut command);
        let err_file = log_file
            .try_clone()
            .map_err(|e| Error::io("open file", &log, &e))?;
        command
            .current_dir("/")
            .stdin(Stdio::null())
            .stdout(log_file)
            .stderr(err_file)
            // A group of its own: an interrupt from the terminal is for us, and we stop it.
            .process_group(0);
        credentials::die_with_parent(&mut command, libc::SIGINT);
        let child = command
            .spawn()
            .map_err(|e| Error::io("run", programs.path("postgres"), &e))?;
        let mut server = PrivateServer {
            child: Some(child),
            data_directory: data_directory.to_owned(),
            directory,
        };
        server.wait_until_ready(&log)?;
        Ok(server)
    }

    /// How to connect.
    pub fn conninfo(&self, user: &str, dbname: &str) -> Conninfo {
        Conninfo::for_socket(self.directory.path(), PORT, user, dbname)
    }

    /// The postmaster's process id.
    pub fn pid(&self) -> Option<u32> {
        self.child.as_ref().map(Child::id)
    }

    /// Stops the server (the "fast" way: sessions are ended, a checkpoint is made).
    ///
    /// # Errors
    /// `57P01` when it does not end, or ends with a failure.
    pub fn stop(mut self) -> Result<()> {
        self.stop_now()
    }

    fn stop_now(&mut self) -> Result<()> {
        let Some(mut child) = self.child.take() else {
            return Ok(());
        };
        let failed = |what: String| {
            Error::environment(
                "57P01",
                format!(
                    "the private server on \"{}\" {what}",
                    self.data_directory.display()
                ),
            )
        };
        credentials::signal(child.id(), libc::SIGINT)
            .map_err(|e| failed(format!("could not be stopped: {e}")))?;
        let begin = Instant::now();
        loop {
            match child.try_wait() {
                Ok(Some(status)) if status.success() => return Ok(()),
                Ok(Some(status)) => return Err(failed(format!("ended with {status}"))),
                Ok(None) if begin.elapsed() > STOP_TIMEOUT => {
                    return Err(failed("does not stop".into()));
                }
                Ok(None) => std::thread::sleep(Duration::from_millis(5)),
                Err(e) => return Err(failed(format!("could not be waited for: {e}"))),
            }
        }
    }

    /// The postmaster writes `ready` into the last line of postmaster.pid.
    fn wait_until_ready(&mut self, log: &Path) -> Result<()> {
        let begin = Instant::now();
        loop {
            if let Some(child) = &mut self.child {
                let ended = child
                    .try_wait()
                    .map_err(|e| Error::io("wait for", "postgres", &e))?;
                if let Some(status) = ended {
                    self.child = None;
                    return Err(Error::environment(
                        "57P03",
                        format!(
                            "could not start a server on \"{}\": {status}",
                            self.data_directory.display()
                        ),
                    )
                    .with_detail(last_lines(log)));
                }
                let ready = PostmasterFile::read(&self.data_directory)
                    .is_some_and(|p| p.pid == child.id() && p.ready);
                if ready {
                    return Ok(());
                }
            }
            if begin.elapsed() > START_TIMEOUT {
                return Err(Error::environment(
                    "57P03",
                    format!(
                        "the server on \"{}\" does not become ready",
                        self.data_directory.display()
                    ),
                )
                .with_detail(last_lines(log)));
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Drop for PrivateServer {
    fn drop(&mut self) {
        // An error of stopping has nobody left to go to; `stop` reports it.
        let _ = self.stop_now();
    }
}

/// What postmaster.pid says. PostgreSQL: `src/include/utils/pidfile.h`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PostmasterFile {
    /// The postmaster's process id.
    pub pid: u32,
    /// Its port.
    pub port: Option<u16>,
    /// The first socket directory.
    pub socket_directory: Option<PathBuf>,
    /// It accepts connections.
    pub ready: bool,
}

impl PostmasterFile {
    /// Reads the file of a data directory; `None` when there is none or it says nothing.
    pub fn read(data_directory: &Path) -> Option<PostmasterFile> {
        let text = std::fs::read_to_string(data_directory.join("postmaster.pid")).ok()?;
        PostmasterFile::parse(&text)
    }

    fn parse(text: &str) -> Option<PostmasterFile> {
        let lines: Vec<&str> = text.lines().map(str::trim).collect();
        Some(PostmasterFile {
            // A standalone backend writes its id as a negative number.
            pid: lines.first()?.trim_start_matches('-').parse().ok()?,
            port: lines.get(3).and_then(|l| l.parse().ok()),
            socket_directory: lines.get(4).filter(|l| !l.is_empty()).map(PathBuf::from),
            ready: lines.get(7) == Some(&"ready"),
        })
    }

    /// The process is there and works in that data directory (or does not let us look).
    pub fn is_alive(&self, data_directory: &Path) -> bool {
        let process = PathBuf::from(format!("/proc/{}", self.pid));
        if !process.exists() {
            return false;
        }
        match (
            std::fs::read_link(process.join("cwd")),
            std::fs::canonicalize(data_directory),
        ) {
            (Ok(cwd), Ok(directory)) => cwd == directory,
            _ => true,
        }
    }
}

/// # Errors
/// `55000` when a server runs on the cluster.
pub fn refuse_running(data_directory: &Path) -> Result<()> {
    match PostmasterFile::read(data_directory) {
        Some(file) if file.is_alive(data_directory) => Err(Error::environment(
            "55000",
            format!(
                "a server (PID {}) runs on data directory \"{}\"",
                file.pid,
                data_directory.display()
            ),
        )
        .with_hint("Stop it, or load into it with -d instead of -D.")),
        _ => Ok(()),
    }
}

/// The major version of a cluster, from PG_VERSION.
///
/// # Errors
/// `58P01` or `42501` when there is no cluster to be read.
pub fn cluster_version(data_directory: &Path) -> Result<u32> {
    let path = data_directory.join("PG_VERSION");
    let text = std::fs::read_to_string(&path).map_err(|e| {
        let mut error = Error::io("open file", &path, &e);
        if e.kind() == std::io::ErrorKind::NotFound {
            error.hint = Some(format!(
                "\"{}\" is not a database cluster directory; --create-cluster makes one.",
                data_directory.display()
            ));
        }
        error
    })?;
    text.trim().parse().map_err(|_| {
        Error::environment(
            "22023",
            format!("file \"{}\" has no valid data", path.display()),
        )
    })
}

/// Runs initdb as the owner: data checksums, peer for local connections, scram for others.
/// `options` are further options of initdb.
///
/// The directory must be absent or empty; when initdb fails, what was made is removed.
pub fn create_cluster(
    programs: &Programs,
    data_directory: &Path,
    owner: FileOwner,
    superuser: &str,
    options: &[String],
) -> Result<CreatedCluster> {
    let was_there = match std::fs::read_dir(data_directory) {
        Ok(mut entries) => {
            if entries.next().is_some() {
                return Err(Error::environment(
                    "58P02",
                    format!(
                        "directory \"{}\" exists but is not empty",
                        data_directory.display()
                    ),
                )
                .with_hint("--create-cluster wants a directory that is absent or empty."));
            }
            true
        }
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => false,
        Err(e) => return Err(Error::io("access directory", data_directory, &e)),
    };
    let created = CreatedCluster {
        data_directory: data_directory.to_owned(),
        was_there,
        keep: false,
    };
    if !was_there {
        // Root makes it, since the owner may not write to the parent.
        std::fs::create_dir(data_directory)
            .map_err(|e| Error::io("create directory", data_directory, &e))?;
    }
    if credentials::effective_uid() == 0 {
        std::os::unix::fs::chown(data_directory, Some(owner.uid), Some(owner.gid))
            .map_err(|e| Error::io("change owner of", data_directory, &e))?;
    }
    let mut command = owner.command(&programs.path("initdb"));
    command
        .arg("-D")
        .arg(data_directory)
        .args(["-k", "--auth-local=peer", "--auth-host=scram-sha-256"])
        .args(["-U", superuser]);
    if locale_has_no_encoding(&super::conninfo::process_environment)
        && !options.iter().any(|o| o.contains("encoding") || o == "-E")
    {
        command.args(["--encoding", "UTF8"]);
    }
    command.args(options).current_dir("/");
    clean_environment(&mut command);
    let output = command
        .stdin(Stdio::null())
        .output()
        .map_err(|e| Error::io("run", programs.path("initdb"), &e))?;
    if output.status.success() {
        Ok(created)
    } else {
        Err(
            Error::environment("58000", format!("initdb failed: {}", output.status))
                .with_detail(String::from_utf8_lossy(&output.stderr).trim().to_owned()),
        )
    }
}

/// A cluster that initdb made; removed when dropped, unless kept.
#[derive(Debug)]
pub struct CreatedCluster {
    data_directory: PathBuf,
    was_there: bool,
    keep: bool,
}

impl CreatedCluster {
    /// The cluster stays.
    pub fn keep(mut self) {
        self.keep = true;
    }
}

impl Drop for CreatedCluster {
    fn drop(&mut self) {
        if self.keep {
            return;
        }
        // What remains after an error here is seen by the next run, which refuses it.
        if self.was_there {
            for entry in std::fs::read_dir(&self.data_directory)
                .into_iter()
                .flatten()
                .flatten()
            {
                let path = entry.path();
                let _ = if entry.file_type().is_ok_and(|t| t.is_dir()) {
                    std::fs::remove_dir_all(path)
                } else {
                    std::fs::remove_file(path)
                };
            }
        } else {
            let _ = std::fs::remove_dir_all(&self.data_directory);
        }
    }
}

/// Under the locale C, or none, initdb would choose SQL_ASCII.
fn locale_has_no_encoding(env: super::conninfo::Environment<'_>) -> bool {
    let locale = ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().find_map(env);
    locale.is_none_or(|l| l == "C" || l == "POSIX")
}

/// The server's programs take nothing from the variables meant for clients.
fn clean_environment(command: &mut Command) {
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("PG") {
            command.env_remove(&name);
        }
    }
}

/// A directory of mode 0700 of the owner's. The path of a socket is short (107 bytes), so it
/// lies in /tmp, whatever TMPDIR says.
fn private_directory(owner: FileOwner) -> Result<tempfile::TempDir> {
    let directory = tempfile::Builder::new()
        .prefix("pgpagewrite.")
        .tempdir_in("/tmp")
        .map_err(|e| Error::io("create directory", "/tmp/pgpagewrite.*", &e))?;
    if credentials::effective_uid() == 0 {
        std::os::unix::fs::chown(directory.path(), Some(owner.uid), Some(owner.gid))
            .map_err(|e| Error::io("change owner of", directory.path(), &e))?;
    }
    Ok(directory)
}

fn write_file(owner: FileOwner, path: &Path, text: &str) -> Result<()> {
    owner
        .create_new(path)
        .and_then(|mut f: File| f.write_all(text.as_bytes()))
        .map_err(|e| Error::io("write file", path, &e))
}

/// The cluster's configuration when it does not lie in the data directory: Debian's, found by
/// what it says of the data directory; else an empty one of ours.
fn configuration_file(
    data_directory: &Path,
    owner: FileOwner,
    private: &Path,
) -> Result<Option<PathBuf>> {
    if data_directory.join("postgresql.conf").exists() {
        return Ok(None);
    }
    let wanted = std::fs::canonicalize(data_directory)
        .map_err(|e| Error::io("access directory", data_directory, &e))?;
    for config in glob::glob("/etc/postgresql/*/*/postgresql.conf")
        .into_iter()
        .flatten()
        .flatten()
    {
        let text = std::fs::read_to_string(&config).unwrap_or_default();
        let directory = configured_data_directory(&text);
        if directory.is_some_and(|d| std::fs::canonicalize(d).is_ok_and(|d| d == wanted)) {
            return Ok(Some(config));
        }
    }
    let path = private.join("postgresql.conf");
    write_file(owner, &path, "")?;
    Ok(Some(path))
}

/// `data_directory = '/var/lib/postgresql/15/main'` in a configuration file.
fn configured_data_directory(text: &str) -> Option<&str> {
    text.lines().rev().find_map(|line| {
        let rest = line.trim().strip_prefix("data_directory")?.trim_start();
        let rest = rest.strip_prefix('=').unwrap_or(rest).trim_start();
        let rest = rest.strip_prefix('\'')?;
        rest.split('\'').next()
    })
}

fn last_lines(log: &Path) -> String {
    let text = std::fs::read(log).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(8)..].join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pid_file_tells_process_port_socket_and_state() {
        let text = "4711\n/data\n1700000000\n5433\n/run/pg\n\n  123  456\nready   \n";
        assert_eq!(
            PostmasterFile::parse(text),
            Some(PostmasterFile {
                pid: 4711,
                port: Some(5433),
                socket_directory: Some("/run/pg".into()),
                ready: true
            })
        );
        assert_eq!(PostmasterFile::parse(""), None);
        assert!(!PostmasterFile::parse("1\n/data\n").unwrap().ready);
    }

    #[test]
    fn a_pid_file_of_a_process_elsewhere_is_stale() {
        let directory = tempfile::tempdir().unwrap();
        let own = std::process::id();
        std::fs::write(directory.path().join("postmaster.pid"), format!("{own}\n")).unwrap();
        refuse_running(directory.path()).unwrap();
        let here = std::env::current_dir().unwrap();
        let file = PostmasterFile::read(directory.path()).unwrap();
        assert!(file.is_alive(&here));
    }

    #[test]
    fn debians_configuration_names_its_data_directory() {
        let text = "#data_directory = 'x'\ndata_directory = '/var/lib/pg/15'\t# use data\n";
        assert_eq!(configured_data_directory(text), Some("/var/lib/pg/15"));
        assert_eq!(configured_data_directory("port = 1"), None);
    }

    #[test]
    fn without_a_locale_a_new_cluster_would_have_no_encoding() {
        assert!(locale_has_no_encoding(&|_| None));
        assert!(locale_has_no_encoding(
            &|n| (n == "LANG").then(|| "C".into())
        ));
        assert!(!locale_has_no_encoding(&|n| {
            (n == "LANG").then(|| "en_US.UTF-8".into())
        }));
    }
}
