//! How to reach a server: what libpq's programs understand, understood the same way.
//!
//! Sources in order of precedence: the connection string or URI, the options `-h -p -U`, the
//! service file, the environment, the defaults; then the password file for a password that is
//! still missing. PostgreSQL: `src/interfaces/libpq/fe-connect.c`.

use std::collections::BTreeMap;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use postgres::config::SslMode;
use postgres::{Client, NoTls};

use crate::error::{Error, Result};
use crate::sys::credentials::{self, ActingAs};

/// Where servers put their sockets unless told otherwise: Debian's libpq looks into the first,
/// PostgreSQL's own into the second.
const SOCKET_DIRECTORIES: [&str; 2] = ["/var/run/postgresql", "/tmp"];

/// The keywords of libpq that this program acts on or may ignore without harm.
const KEYWORDS: [(&str, Option<&str>); 31] = [
    ("host", Some("PGHOST")),
    ("hostaddr", Some("PGHOSTADDR")),
    ("port", Some("PGPORT")),
    ("dbname", Some("PGDATABASE")),
    ("user", Some("PGUSER")),
    ("password", Some("PGPASSWORD")),
    ("passfile", Some("PGPASSFILE")),
    ("service", Some("PGSERVICE")),
    ("servicefile", Some("PGSERVICEFILE")),
    ("options", Some("PGOPTIONS")),
    ("application_name", Some("PGAPPNAME")),
    ("fallback_application_name", None),
    ("connect_timeout", Some("PGCONNECT_TIMEOUT")),
    ("client_encoding", None),
    ("sslmode", Some("PGSSLMODE")),
    ("sslnegotiation", None),
    ("sslcompression", None),
    ("sslcert", None),
    ("sslkey", None),
    ("sslrootcert", None),
    ("sslcrl", None),
    ("requirepeer", None),
    ("gssencmode", Some("PGGSSENCMODE")),
    ("krbsrvname", None),
    ("channel_binding", None),
    ("target_session_attrs", None),
    ("load_balance_hosts", None),
    ("keepalives", None),
    ("keepalives_idle", None),
    ("keepalives_interval", None),
    ("keepalives_count", None),
];

/// The environment as a function, so that tests have their own.
pub type Environment<'a> = &'a dyn Fn(&str) -> Option<String>;

/// The process's environment; a variable that is empty counts as unset, as in libpq.
pub fn process_environment(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|v| !v.is_empty())
}

/// What the command line says of the connection.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ConnectOptions {
    /// `-d`: a database name, a connection string or a URI.
    pub dbname: Option<String>,
    /// `-h`
    pub host: Option<String>,
    /// `-p`
    pub port: Option<String>,
    /// `-U`
    pub user: Option<String>,
}

/// Resolved connection parameters; connects as often as wanted.
#[derive(Clone)]
pub struct Conninfo {
    config: postgres::Config,
    /// The Unix-domain socket, when the connection uses one.
    socket: Option<PathBuf>,
}

impl std::fmt::Debug for Conninfo {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // postgres::Config hides the password in its own output.
        f.debug_struct("Conninfo")
            .field("config", &self.config)
            .finish_non_exhaustive()
    }
}

impl Conninfo {
    /// Resolves options and environment to parameters.
    ///
    /// # Errors
    /// `42601` for a connection string that cannot be read or an unknown keyword; `0A000` for
    /// TLS that is required.
    pub fn resolve(options: &ConnectOptions, env: Environment<'_>) -> Result<Conninfo> {
        let given = gather(options, env)?;
        build(&given, env)
    }

    /// Parameters for a server on this host's socket directory.
    pub fn for_socket(directory: &Path, port: u16, user: &str, dbname: &str) -> Conninfo {
        let mut config = postgres::Config::new();
        config
            .host_path(directory)
            .port(port)
            .user(user)
            .dbname(dbname)
            .application_name("pgpagewrite");
        Conninfo {
            config,
            socket: Some(socket_path(directory, port)),
        }
    }

    /// The same for another database.
    #[must_use]
    pub fn with_database(&self, dbname: &str) -> Conninfo {
        let mut other = self.clone();
        other.config.dbname(dbname);
        other
    }

    /// The database's name.
    pub fn database(&self) -> &str {
        self.config.get_dbname().unwrap_or_default()
    }

    /// Connects. When root runs us, the socket is opened as its owner, who is the server's
    /// and the data directory's: so that peer authentication sees that user.
    pub fn connect(&self) -> Result<Client> {
        let _guard = match self.socket.as_deref().map(std::fs::metadata) {
            Some(Ok(meta)) if meta.file_type().is_socket() => {
                Some(ActingAs::new(meta.uid(), meta.gid()).map_err(|e| {
                    Error::environment("42501", format!("could not act as the server's owner: {e}"))
                })?)
            }
            _ => None,
        };
        // The synchronous client connects on this thread (a runtime of one thread), so the
        // guard covers it.
        let mut client = self.config.connect(NoTls).map_err(|e| {
            let mut error = Error::from(e);
            if error.sqlstate == "08006" {
                "08001".clone_into(&mut error.sqlstate);
                if let Some(socket) = &self.socket {
                    error.message = error.message.replacen(
                        "connection to the server failed",
                        &format!(
                            "connection to server on socket \"{}\" failed",
                            socket.display()
                        ),
                        1,
                    );
                    error.hint = Some(
                        "Is the server running locally and accepting connections on that socket?"
                            .into(),
                    );
                }
            }
            error.class = crate::error::Class::Environment;
            error
        })?;
        client.batch_execute(SESSION_SETTINGS)?;
        Ok(client)
    }
}

/// Holds from the first statement on, which would else be under the limit that a role or a database
/// has: what comes with the start-up packet wins over theirs.
const STARTUP_OPTIONS: &str = "-c statement_timeout=0";

/// What a role, a database or PGOPTIONS may have set and a load cannot live with: limits in time,
/// and names quoted where we compare them.
const SESSION_SETTINGS: &str = "SELECT pg_catalog.set_config(s.name, s.value, false)
      FROM (VALUES ('statement_timeout', '0'), ('lock_timeout', '0'),
                   ('idle_in_transaction_session_timeout', '0'), ('idle_session_timeout', '0'),
                   ('transaction_timeout', '0'), ('quote_all_identifiers', 'off')) AS s(name, value)
     WHERE pg_catalog.current_setting(s.name, true) IS NOT NULL";

fn socket_path(directory: &Path, port: u16) -> PathBuf {
    directory.join(format!(".s.PGSQL.{port}"))
}

type Parameters = BTreeMap<String, String>;

/// Connection string, options, service file, environment: the first that says something wins.
fn gather(options: &ConnectOptions, env: Environment<'_>) -> Result<Parameters> {
    let mut given = match &options.dbname {
        Some(text) if is_uri(text) => parse_uri(text)?,
        Some(text) if text.contains('=') => parse_keywords(text)?,
        Some(name) if !name.is_empty() => Parameters::from([("dbname".to_owned(), name.clone())]),
        _ => Parameters::new(),
    };
    for (keyword, value) in [
        ("host", &options.host),
        ("port", &options.port),
        ("user", &options.user),
    ] {
        if let Some(value) = value {
            given.entry(keyword.into()).or_insert_with(|| value.clone());
        }
    }
    given.retain(|_, value| !value.is_empty());
    if let Some(service) = given.get("service").cloned().or_else(|| env("PGSERVICE")) {
        let file = given.get("servicefile").cloned();
        for (keyword, value) in read_service(&service, file, env)? {
            given.entry(keyword).or_insert(value);
        }
    }
    for (keyword, variable) in KEYWORDS {
        if let Some(value) = variable.and_then(env) {
            given.entry(keyword.into()).or_insert(value);
        }
    }
    // libpq sends these as parameters of the session, over the same in PGOPTIONS.
    for (variable, setting) in [
        ("PGTZ", "timezone"),
        ("PGDATESTYLE", "datestyle"),
        ("PGGEQO", "geqo"),
    ] {
        if let Some(value) = env(variable).filter(|v| v != "default") {
            let all = given.entry("options".into()).or_default();
            if !all.is_empty() {
                all.push(' ');
            }
            all.push_str("-c ");
            for c in format!("{setting}={value}").chars() {
                if c.is_whitespace() || c == '\\' {
                    all.push('\\');
                }
                all.push(c);
            }
        }
    }
    Ok(given)
}

fn build(given: &Parameters, env: Environment<'_>) -> Result<Conninfo> {
    let get = |keyword: &str| given.get(keyword).map(String::as_str);
    let mut config = postgres::Config::new();
    let ports = get("port").unwrap_or("5432");
    let ports = ports
        .split(',')
        .map(|p| match p.trim().parse::<u16>() {
            Ok(port) if port > 0 => Ok(port),
            _ => Err(Error::usage(format!("invalid port number: \"{p}\""))),
        })
        .collect::<Result<Vec<u16>>>()?;
    for port in &ports {
        config.port(*port);
    }
    let hosts: Vec<String> = match get("host") {
        Some(hosts) => hosts.split(',').map(str::to_owned).collect(),
        None if get("hostaddr").is_some() => Vec::new(),
        None => vec![String::new()],
    };
    let mut first_host = None;
    let mut socket = None;
    for host in &hosts {
        let host = if host.is_empty() {
            default_socket_directory(ports[0])
        } else {
            host.clone()
        };
        if host.starts_with('/') {
            socket.get_or_insert_with(|| socket_path(Path::new(&host), ports[0]));
        }
        config.host(&host);
        first_host.get_or_insert(host);
    }
    for address in get("hostaddr").into_iter().flat_map(|a| a.split(',')) {
        let parsed = address
            .parse()
            .map_err(|_| Error::usage(format!("could not parse network address \"{address}\"")))?;
        config.hostaddr(parsed);
        first_host.get_or_insert_with(|| address.to_owned());
    }
    let user = match get("user") {
        Some(user) => user.to_owned(),
        None => default_user(socket.as_deref())?,
    };
    let dbname = get("dbname").unwrap_or(&user).to_owned();
    config.user(&user).dbname(&dbname);
    config.application_name(get("application_name").unwrap_or("pgpagewrite"));
    let options = get("options").unwrap_or_default();
    config.options(&format!("{options} {STARTUP_OPTIONS}"));
    if let Some(seconds) = get("connect_timeout") {
        let seconds: i64 = seconds.trim().parse().map_err(|_| {
            Error::usage(format!(
                "invalid integer value \"{seconds}\" for connection option \"connect_timeout\""
            ))
        })?;
        if seconds > 0 {
            config.connect_timeout(Duration::from_secs((seconds as u64).max(2)));
        }
    }
    // The server is on this host; a connection with TLS gains nothing. On a socket libpq
    // ignores the setting.
    match get("sslmode").unwrap_or("prefer") {
        "disable" | "allow" | "prefer" => {}
        "require" | "verify-ca" | "verify-full" if socket.is_some() => {}
        mode @ ("require" | "verify-ca" | "verify-full") => {
            return Err(
                Error::unsupported(format!("sslmode \"{mode}\" is not supported")).with_hint(
                    "The server must be on this host: connect by its Unix-domain socket.",
                ),
            );
        }
        mode => {
            return Err(Error::usage(format!("invalid sslmode value: \"{mode}\"")));
        }
    }
    config.ssl_mode(SslMode::Disable);
    let password = match get("password") {
        Some(password) => Some(password.to_owned()),
        None => password_from_file(
            get("passfile"),
            first_host.as_deref().unwrap_or_default(),
            ports[0],
            &dbname,
            &user,
            env,
        ),
    };
    if let Some(password) = password {
        config.password(password);
    }
    Ok(Conninfo { config, socket })
}

fn default_socket_directory(port: u16) -> String {
    SOCKET_DIRECTORIES
        .into_iter()
        .find(|d| socket_path(Path::new(d), port).exists())
        .unwrap_or(SOCKET_DIRECTORIES[0])
        .to_owned()
}

/// The name of who runs us; for root on a socket, that of the server's owner, as whom the
/// connection is made.
fn default_user(socket: Option<&Path>) -> Result<String> {
    let me = credentials::effective_uid();
    let uid = match socket.map(std::fs::metadata) {
        Some(Ok(meta)) if me == 0 => meta.uid(),
        _ => me,
    };
    credentials::user_by_uid(uid)
        .map(|u| u.name)
        .ok_or_else(|| {
            Error::environment("42704", format!("local user with ID {uid} does not exist"))
        })
}

/// The database that a name, a connection string or a URI means.
///
/// # Errors
/// `42601` for what cannot be read.
pub fn database_of(text: &str) -> Result<Option<String>> {
    let mut given = if is_uri(text) {
        parse_uri(text)?
    } else if text.contains('=') {
        parse_keywords(text)?
    } else {
        return Ok(Some(text.to_owned()));
    };
    Ok(given.remove("dbname"))
}

fn is_uri(text: &str) -> bool {
    text.starts_with("postgresql://") || text.starts_with("postgres://")
}

fn check_keyword(keyword: &str) -> Result<()> {
    if KEYWORDS.iter().any(|(k, _)| *k == keyword) {
        Ok(())
    } else {
        Err(Error::usage(format!(
            "invalid connection option \"{keyword}\""
        )))
    }
}

/// `host=localhost dbname='my db'`. PostgreSQL: `conninfo_parse`.
fn parse_keywords(text: &str) -> Result<Parameters> {
    let mut given = Parameters::new();
    let mut chars = text.chars().peekable();
    loop {
        while chars.next_if(|c| c.is_whitespace()).is_some() {}
        if chars.peek().is_none() {
            return Ok(given);
        }
        let mut keyword = String::new();
        while let Some(c) = chars.next_if(|c| !c.is_whitespace() && *c != '=') {
            keyword.push(c);
        }
        while chars.next_if(|c| c.is_whitespace()).is_some() {}
        if chars.next() != Some('=') {
            return Err(Error::usage(format!(
                "missing \"=\" after \"{keyword}\" in connection info string"
            )));
        }
        while chars.next_if(|c| c.is_whitespace()).is_some() {}
        let mut value = String::new();
        if chars.next_if_eq(&'\'').is_some() {
            loop {
                match chars.next() {
                    Some('\'') => break,
                    Some('\\') => value.extend(chars.next()),
                    Some(c) => value.push(c),
                    None => {
                        return Err(Error::usage(
                            "unterminated quoted string in connection info string",
                        ));
                    }
                }
            }
        } else {
            while let Some(c) = chars.next_if(|c| !c.is_whitespace()) {
                if c == '\\' {
                    value.extend(chars.next());
                } else {
                    value.push(c);
                }
            }
        }
        check_keyword(&keyword)?;
        given.insert(keyword, value);
    }
}

/// `postgresql://user:password@host:port,host:port/dbname?keyword=value`.
/// PostgreSQL: `conninfo_uri_parse_options`.
fn parse_uri(text: &str) -> Result<Parameters> {
    let mut given = Parameters::new();
    let rest = text
        .strip_prefix("postgresql://")
        .or_else(|| text.strip_prefix("postgres://"))
        .unwrap_or(text);
    let (rest, query) = match rest.split_once('?') {
        Some((rest, query)) => (rest, Some(query)),
        None => (rest, None),
    };
    let (authority, dbname) = match rest.split_once('/') {
        Some((authority, dbname)) => (authority, Some(dbname)),
        None => (rest, None),
    };
    let (who, hosts) = match authority.rsplit_once('@') {
        Some((who, hosts)) => (Some(who), hosts),
        None => (None, authority),
    };
    if let Some(who) = who {
        let (user, password) = match who.split_once(':') {
            Some((user, password)) => (user, Some(password)),
            None => (who, None),
        };
        given.insert("user".into(), percent_decode(user)?);
        if let Some(password) = password {
            given.insert("password".into(), percent_decode(password)?);
        }
    }
    let mut names = Vec::new();
    let mut ports = Vec::new();
    for part in hosts.split(',') {
        let (host, port) = if let Some(rest) = part.strip_prefix('[') {
            let (host, rest) = rest.split_once(']').ok_or_else(|| {
                Error::usage(format!(
                    "end of string reached when looking for matching \"]\" in IPv6 host address in URI: \"{text}\""
                ))
            })?;
            (host, rest.strip_prefix(':').unwrap_or(""))
        } else {
            part.split_once(':').unwrap_or((part, ""))
        };
        names.push(percent_decode(host)?);
        ports.push(percent_decode(port)?);
    }
    if names.iter().any(|n| !n.is_empty()) {
        given.insert("host".into(), names.join(","));
    }
    if ports.iter().any(|p| !p.is_empty()) {
        let filled: Vec<String> = ports
            .into_iter()
            .map(|p| if p.is_empty() { "5432".into() } else { p })
            .collect();
        given.insert("port".into(), filled.join(","));
    }
    if let Some(dbname) = dbname.filter(|d| !d.is_empty()) {
        given.insert("dbname".into(), percent_decode(dbname)?);
    }
    for pair in query.into_iter().flat_map(|q| q.split('&')) {
        let (keyword, value) = pair.split_once('=').ok_or_else(|| {
            Error::usage(format!(
                "missing key/value separator \"=\" in URI query parameter: \"{pair}\""
            ))
        })?;
        let (keyword, value) = (percent_decode(keyword)?, percent_decode(value)?);
        if keyword == "ssl" && value == "true" {
            given.insert("sslmode".into(), "require".into());
            continue;
        }
        if check_keyword(&keyword).is_err() {
            return Err(Error::usage(format!(
                "invalid URI query parameter: \"{keyword}\""
            )));
        }
        given.insert(keyword, value);
    }
    Ok(given)
}

fn percent_decode(text: &str) -> Result<String> {
    let invalid = || Error::usage(format!("invalid percent-encoded token: \"{text}\""));
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let mut digit = || {
            rest.next()
                .and_then(|b| (b as char).to_digit(16))
                .ok_or_else(invalid)
        };
        let byte = (digit()? * 16 + digit()?) as u8;
        if byte == 0 {
            return Err(Error::usage(format!(
                "forbidden value %00 in percent-encoded value: \"{text}\""
            )));
        }
        bytes.push(byte);
    }
    String::from_utf8(bytes).map_err(|_| invalid())
}

/// A group of the service file. PostgreSQL: `parseServiceInfo`.
fn read_service(service: &str, file: Option<String>, env: Environment<'_>) -> Result<Parameters> {
    let mut files: Vec<PathBuf> = Vec::new();
    match file.or_else(|| env("PGSERVICEFILE")) {
        Some(path) => files.push(path.into()),
        None => files.extend(home(env).map(|h| h.join(".pg_service.conf"))),
    }
    files.push(
        PathBuf::from(env("PGSYSCONFDIR").unwrap_or_else(|| "/etc/postgresql-common".into()))
            .join("pg_service.conf"),
    );
    for path in files {
        let Ok(text) = std::fs::read_to_string(&path) else {
            continue;
        };
        if let Some(given) = service_group(&text, service, &path)? {
            return Ok(given);
        }
    }
    Err(Error::usage(format!(
        "definition of service \"{service}\" not found"
    )))
}

fn service_group(text: &str, service: &str, path: &Path) -> Result<Option<Parameters>> {
    let mut found: Option<Parameters> = None;
    for (number, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        if let Some(name) = line.strip_prefix('[') {
            if found.is_some() {
                break;
            }
            if name.strip_suffix(']') == Some(service) {
                found = Some(Parameters::new());
            }
            continue;
        }
        let Some(given) = &mut found else { continue };
        let pair = line
            .split_once('=')
            .filter(|(keyword, _)| *keyword != "service" && check_keyword(keyword).is_ok());
        let Some((keyword, value)) = pair else {
            return Err(Error::usage(format!(
                "syntax error in service file \"{}\", line {}",
                path.display(),
                number + 1
            )));
        };
        given.insert(keyword.into(), value.into());
    }
    Ok(found)
}

fn home(env: Environment<'_>) -> Option<PathBuf> {
    env("HOME")
        .map(PathBuf::from)
        .or_else(|| credentials::user_by_uid(credentials::effective_uid()).map(|u| u.home))
}

/// The password file's answer. PostgreSQL: `passwordFromFile`. A file that others can read is
/// left alone, as libpq does.
fn password_from_file(
    passfile: Option<&str>,
    host: &str,
    port: u16,
    dbname: &str,
    user: &str,
    env: Environment<'_>,
) -> Option<String> {
    let path = match passfile {
        Some(path) => PathBuf::from(path),
        None => home(env)?.join(".pgpass"),
    };
    let meta = std::fs::metadata(&path).ok()?;
    if !meta.is_file() || meta.mode() & 0o077 != 0 {
        return None;
    }
    // For the default socket directory the file says localhost.
    let host = if SOCKET_DIRECTORIES.contains(&host) {
        "localhost"
    } else {
        host
    };
    let text = std::fs::read_to_string(&path).ok()?;
    let port = port.to_string();
    text.lines()
        .filter(|line| !line.starts_with('#'))
        .find_map(|line| {
            let mut rest = line;
            for wanted in [host, port.as_str(), dbname, user] {
                rest = match_field(rest, wanted)?;
            }
            let mut password = String::new();
            let mut chars = rest.chars();
            while let Some(c) = chars.next() {
                match c {
                    '\\' => password.extend(chars.next()),
                    ':' => break,
                    _ => password.push(c),
                }
            }
            Some(password)
        })
}

/// What follows `wanted:` or `*:`; colons and backslashes in the field stand behind a backslash.
fn match_field<'a>(line: &'a str, wanted: &str) -> Option<&'a str> {
    if let Some(rest) = line.strip_prefix("*:") {
        return Some(rest);
    }
    let mut field = String::new();
    let mut chars = line.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '\\' => field.push(chars.next()?.1),
            ':' => return (field == wanted).then(|| &line[at + 1..]),
            _ => field.push(c),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn no_env(_: &str) -> Option<String> {
        None
    }

    fn options(dbname: &str) -> ConnectOptions {
        ConnectOptions {
            dbname: Some(dbname.into()),
            ..ConnectOptions::default()
        }
    }

    fn pairs(given: &Parameters) -> Vec<(&str, &str)> {
        given
            .iter()
            .map(|(k, v)| (k.as_str(), v.as_str()))
            .collect()
    }

    #[test]
    fn a_connection_string_knows_quotes_and_backslashes() {
        let given =
            parse_keywords(r"host = /tmp dbname='my \'db\'' user=a\ b password=''").unwrap();
        assert_eq!(
            pairs(&given),
            [
                ("dbname", "my 'db'"),
                ("host", "/tmp"),
                ("password", ""),
                ("user", "a b")
            ]
        );
        assert_eq!(
            parse_keywords("hots=x").unwrap_err().message,
            "invalid connection option \"hots\""
        );
        assert_eq!(
            parse_keywords("host").unwrap_err().message,
            "missing \"=\" after \"host\" in connection info string"
        );
    }

    #[test]
    fn a_uri_knows_percent_signs_ipv6_and_several_hosts() {
        let given =
            parse_uri("postgresql://us%40r:p%3Aw@[::1]:5433,other/db%20x?application_name=a%26b")
                .unwrap();
        assert_eq!(
            pairs(&given),
            [
                ("application_name", "a&b"),
                ("dbname", "db x"),
                ("host", "::1,other"),
                ("password", "p:w"),
                ("port", "5433,5432"),
                ("user", "us@r")
            ]
        );
        let given = parse_uri("postgres://%2Fvar%2Flib/db").unwrap();
        assert_eq!(pairs(&given), [("dbname", "db"), ("host", "/var/lib")]);
        assert_eq!(
            parse_uri("postgres:///db?x=%0").unwrap_err().message,
            "invalid percent-encoded token: \"%0\""
        );
    }

    #[test]
    fn a_connection_string_wins_over_options_and_these_over_the_environment() {
        let env = |name: &str| match name {
            "PGHOST" => Some("/env".to_owned()),
            "PGPORT" => Some("1".to_owned()),
            "PGUSER" => Some("env".to_owned()),
            "PGTZ" => Some("Europe/Some where".to_owned()),
            "PGOPTIONS" => Some("-c geqo=off".to_owned()),
            _ => None,
        };
        let mut given = options("dbname=d user=string");
        given.user = Some("flag".into());
        given.port = Some("2".into());
        let given = gather(&given, &env).unwrap();
        assert_eq!(
            pairs(&given),
            [
                ("dbname", "d"),
                ("host", "/env"),
                ("options", "-c geqo=off -c timezone=Europe/Some\\ where"),
                ("port", "2"),
                ("user", "string")
            ]
        );
    }

    #[test]
    fn the_database_is_named_as_the_user_unless_told() {
        let mut given = ConnectOptions {
            host: Some("/tmp".into()),
            user: Some("u".into()),
            ..ConnectOptions::default()
        };
        let info = Conninfo::resolve(&given, &no_env).unwrap();
        assert_eq!(info.database(), "u");
        assert_eq!(info.socket, Some("/tmp/.s.PGSQL.5432".into()));
        given.dbname = Some("d".into());
        assert_eq!(Conninfo::resolve(&given, &no_env).unwrap().database(), "d");
    }

    #[test]
    fn tls_is_refused_on_tcp_and_ignored_on_a_socket() {
        let e = Conninfo::resolve(&options("host=localhost user=u sslmode=require"), &no_env)
            .unwrap_err();
        assert_eq!(e.sqlstate, "0A000");
        Conninfo::resolve(&options("host=/tmp user=u sslmode=require"), &no_env).unwrap();
    }

    #[test]
    fn a_service_gives_what_nothing_else_gives() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("services");
        std::fs::write(
            &file,
            "# c\n[other]\nhost=/no\n[mine]\nhost=/svc\nuser=svc\ndbname=db\n[next]\nhost=/no\n",
        )
        .unwrap();
        let env = move |name: &str| match name {
            "PGSERVICE" => Some("mine".to_owned()),
            "PGSERVICEFILE" => Some(file.display().to_string()),
            "PGUSER" => Some("env".to_owned()),
            _ => None,
        };
        let given = gather(&options("dbname=other"), &env).unwrap();
        assert_eq!(given["host"], "/svc");
        assert_eq!(given["user"], "svc");
        assert_eq!(given["dbname"], "other");
        assert_eq!(
            gather(&options("service=none"), &env).unwrap_err().message,
            "definition of service \"none\" not found"
        );
    }

    #[test]
    fn a_password_file_is_read_only_when_nobody_else_can() {
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("pass");
        std::fs::write(
            &file,
            "#x\nlocalhost:5432:d:o:wrong\nlocalhost:5432:d:u:s\\:cr\\\\t\n*:*:*:*:any\n",
        )
        .unwrap();
        let path = file.display().to_string();
        let ask = |host: &str| password_from_file(Some(&path), host, 5432, "d", "u", &no_env);
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o644)).unwrap();
        assert_eq!(ask("localhost"), None);
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
        assert_eq!(ask("/tmp").as_deref(), Some("s:cr\\t"));
        assert_eq!(ask("elsewhere").as_deref(), Some("any"));
    }
}
