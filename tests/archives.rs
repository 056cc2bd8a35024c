//! The readers of pg_dump's archives against pg_dump and pg_restore of 15 to 18: every format and
//! compression, with and without places of the data.

use memchr::memmem;
use pgpagewrite::source::dump::archive::{Archive, ArchiveFormat, Entry};
use pgpagewrite::source::dump::{DumpKind, MemberData, recognise};
use std::io::Read;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use support::{Server, run};

const PROGRAM: &str = env!("CARGO_BIN_EXE_pgpagewrite");
const DB: &str = "dumped";

const TABLES: &str = r#"
CREATE SCHEMA "Sch ""ema";
CREATE TABLE "Sch ""ema"."Tab
le" ("a b" int PRIMARY KEY, "C""d" text, "ü" text);
INSERT INTO "Sch ""ema"."Tab
le" VALUES (1, '\.', E'\\N'), (2, NULL, ''), (3, E'\r\n', E'\u00fc');
COMMENT ON TABLE "Sch ""ema"."Tab
le" IS E'line one;\n-- line two ''quoted''';
CREATE TABLE wide (id int PRIMARY KEY, t text, e bytea);
INSERT INTO wide
SELECT i, repeat(md5(i::text) || E'\n\\', i * 5), CASE WHEN i % 3 > 0 THEN decode(repeat(md5(i::text), i * 5), 'hex') END
  FROM generate_series(1, 150) AS i;
CREATE TABLE many (a int, b numeric, c timestamptz);
INSERT INTO many SELECT i, i / 7.0, timestamptz '2020-01-01 00:00:00+00' + i * interval '1 min' FROM generate_series(1, 40000) AS i;
CREATE INDEX many_b ON many (b DESC) WHERE a > 3;
CREATE TABLE empty (a int);
CREATE TABLE no_columns ();
CREATE UNLOGGED TABLE parts (a int, b text) PARTITION BY LIST (a);
CREATE TABLE parts_1 PARTITION OF parts FOR VALUES IN (1);
INSERT INTO parts VALUES (1, 'one');
CREATE SEQUENCE numbers START 7;
CREATE FUNCTION twice(int) RETURNS int LANGUAGE sql AS 'SELECT $1 * 2;';
GRANT SELECT ON many TO PUBLIC;
CREATE MATERIALIZED VIEW sums AS SELECT sum(a) FROM many;
ANALYZE;
SELECT lo_from_bytea(4711, repeat('large object ', 30000)::bytea), lo_from_bytea(4712, ''), lo_from_bytea(3000000000, '\x0001');
COMMENT ON LARGE OBJECT 4711 IS 'a large one';
"#;

/// Entries that are settings of the archive: they are not listed, and are written in other words.
const SETTINGS: [&str; 3] = ["ENCODING", "STDSTRINGS", "SEARCHPATH"];

/// From 17 on an entry of the table of contents holds no more large objects than this.
const LARGE_OBJECTS_OF_AN_ENTRY: usize = 1000;

/// A server with the test database, which has this number of large objects and three more.
fn server(small_objects: usize) -> Server {
    // All versions of pg_dump dump it.
    let server = Server::start(15, &[("max_locks_per_transaction", "128")]);
    server.execute("postgres", &format!("CREATE DATABASE {DB}"));
    server.execute(DB, TABLES);
    let objects = format!(
        "SELECT lo_from_bytea((5000 + i)::oid, decode(md5(i::text), 'hex')) FROM generate_series(1, {small_objects}) AS i"
    );
    server.execute(DB, &objects);
    server
}

/// An archive of the test database.
struct Dump {
    path: PathBuf,
    /// The version of pg_dump.
    version: u32,
}

fn dump(server: &Server, version: u32, name: &str, args: &[&str]) -> Dump {
    let path = server.dir().join(format!("{version}-{name}"));
    let mut command = server.client(version, "pg_dump", DB);
    run(command.args(args).arg("-f").arg(&path)).expect_success();
    Dump { path, version }
}

/// An archive that was written to a pipe, where its writer could not go back.
fn piped(server: &Server, version: u32, name: &str, args: &[&str]) -> Dump {
    let path = server.dir().join(format!("{version}-{name}"));
    let mut dump = server.client(version, "pg_dump", DB);
    let mut dump = dump
        .args(args)
        .stdout(std::process::Stdio::piped())
        .spawn()
        .expect("pg_dump");
    let mut from = dump.stdout.take().expect("a pipe");
    let mut to = std::fs::File::create(&path).expect("a file");
    std::io::copy(&mut from, &mut to).expect("a dump");
    assert!(dump.wait().expect("pg_dump ends").success());
    Dump { path, version }
}

/// What pg_restore of the same version makes of it, as a script.
fn script(server: &Server, dump: &Dump) -> Vec<u8> {
    let path = server.dir().join("script.sql");
    let mut restore = server.client(dump.version, "pg_restore", DB);
    restore.args(["--no-owner", "-f"]).arg(&path);
    run(restore.arg(&dump.path)).expect_success();
    std::fs::read(&path).expect("the script")
}

fn bytes_of(archive: &Archive, entry: &Entry) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    match archive.member(entry).expect("a member")? {
        MemberData::Range { path, pos, len } => {
            bytes.resize(len as usize, 0);
            let file = std::fs::File::open(path).expect("a file");
            file.read_exact_at(&mut bytes, pos).expect("a range");
        }
        MemberData::Stream(mut stream) => {
            stream.read_to_end(&mut bytes).expect("a stream");
        }
    }
    Some(bytes)
}

/// A script that things are taken out of.
struct Script {
    bytes: Vec<u8>,
    /// Behind what was taken last: the next mostly follows.
    pos: usize,
}

impl Script {
    /// Takes bytes out, which must be there; empty lines remain.
    #[track_caller]
    fn take(&mut self, bytes: &[u8], what: &str) {
        let behind = memmem::find(&self.bytes[self.pos..], bytes).map(|at| self.pos + at);
        let Some(at) = behind.or_else(|| memmem::find(&self.bytes, bytes)) else {
            let shown = String::from_utf8_lossy(&bytes[..bytes.len().min(300)]);
            panic!("{what} is not in the script of pg_restore: {shown}");
        };
        self.pos = at + bytes.len();
        self.bytes[at..self.pos].fill(b'\n');
    }
}

/// The large objects that a script writes.
fn large_objects(script: &str) -> Vec<(u32, Vec<u8>)> {
    let mut objects: Vec<(u32, Vec<u8>)> = Vec::new();
    for line in script.lines() {
        if let Some(rest) = line.strip_prefix("SELECT pg_catalog.lo_open('") {
            let (oid, _) = rest.split_once('\'').expect("an OID");
            objects.push((oid.parse().expect("an OID"), Vec::new()));
        } else if let Some(rest) = line.strip_prefix("SELECT pg_catalog.lowrite(0, '\\x") {
            let (hex, _) = rest.split_once('\'').expect("bytes");
            let bytes = (0..hex.len())
                .step_by(2)
                .map(|i| u8::from_str_radix(&hex[i..i + 2], 16).expect("hexadecimal"));
            objects.last_mut().expect("an open object").1.extend(bytes);
        }
    }
    objects
}

/// Compares all that the readers find with the script and the list of pg_restore.
fn assert_same_as_pg_restore(
    server: &Server,
    dump: &Dump,
    expected_objects: usize,
    format: ArchiveFormat,
) {
    let name = dump.path.display().to_string();
    assert_eq!(recognise(&dump.path).expect("a dump"), DumpKind::Archive);
    let archive = Archive::open(&dump.path, "the dump").unwrap_or_else(|e| panic!("{name}: {e:?}"));
    assert_eq!(archive.header.format, format, "{name}");
    assert_eq!(archive.header.dbname, DB);
    let version = match dump.version {
        15 => (1, 14, 0),
        16 => (1, 15, 0),
        _ => (1, 16, 0),
    };
    assert_eq!(archive.header.version, version, "{name}");

    let mut script = Script {
        bytes: script(server, dump),
        pos: 0,
    };
    let mut objects = Vec::new();
    let mut tables = 0;
    for entry in &archive.entries {
        let what = format!("{name}: {} {}", entry.desc, entry.tag);
        if SETTINGS.contains(&entry.desc.as_str()) || entry.desc == "DATABASE" {
            continue;
        }
        if entry.desc == "BLOBS" {
            archive
                .large_objects(entry, &mut |oid, data| {
                    let mut bytes = Vec::new();
                    data.read_to_end(&mut bytes).expect("a large object");
                    objects.push((oid, bytes));
                    Ok(())
                })
                .unwrap_or_else(|e| panic!("{what}: {e:?}"));
            continue;
        }
        if let Some(bytes) = bytes_of(&archive, entry) {
            let whole = [entry.copy_statement.as_bytes(), &bytes].concat();
            script.take(&whole, &what);
            tables += 1;
        }
        // Those of large objects are lists of OIDs.
        if entry.desc != "BLOB METADATA" {
            script.take(entry.definition.as_bytes(), &what);
        }
    }
    assert_eq!(tables, 6, "{name}");
    let rest = String::from_utf8_lossy(&script.bytes);
    let theirs = large_objects(&rest);
    assert_eq!(theirs.len(), expected_objects, "{name}");
    let entries = archive.entries.iter().filter(|e| e.desc == "BLOBS").count();
    let most = if dump.version >= 17 {
        LARGE_OBJECTS_OF_AN_ENTRY
    } else {
        usize::MAX
    };
    assert_eq!(entries, expected_objects.div_ceil(most), "{name}");
    assert!(objects == theirs, "{name}: large objects differ");
    for line in rest.lines() {
        let frame = [
            "--",
            "SET ",
            "SELECT pg_catalog.",
            "BEGIN;",
            "COMMIT;",
            "\\restrict ",
            "\\unrestrict ",
        ];
        assert!(
            line.is_empty() || frame.iter().any(|f| line.starts_with(f)),
            "{name}: left over: {line}"
        );
    }

    let listed: Vec<&Entry> = archive
        .entries
        .iter()
        .filter(|e| !SETTINGS.contains(&e.desc.as_str()) && e.desc != "DATABASE")
        .collect();
    for version in [16, 17, 18].into_iter().filter(|v| *v >= dump.version) {
        let mut restore = server.client(version, "pg_restore", DB);
        let theirs = run(restore.arg("-l").arg(&dump.path)).expect_success();
        assert_eq!(archive.list(&listed), theirs, "{name}");
    }
}

fn every_format(version: u32, compressions: &[&str]) {
    let small_objects = if version >= 17 {
        LARGE_OBJECTS_OF_AN_ENTRY
    } else {
        20
    };
    let server = server(small_objects);
    let same =
        |dump: &Dump, format| assert_same_as_pg_restore(&server, dump, small_objects + 3, format);
    for compression in compressions {
        let name = |format: &str| format!("{format}-{compression}");
        let level = if version == 15 && *compression == "none" {
            "-Z0".to_owned()
        } else if version == 15 {
            "-Z6".to_owned()
        } else {
            format!("-Z{compression}")
        };
        let custom = dump(&server, version, &name("custom"), &["-Fc", &level]);
        same(&custom, ArchiveFormat::Custom);
        let custom = piped(&server, version, &name("piped"), &["-Fc", &level]);
        same(&custom, ArchiveFormat::Custom);
        let directory = dump(
            &server,
            version,
            &name("directory"),
            &["-Fd", "-j2", &level],
        );
        same(&directory, ArchiveFormat::Directory);
    }
    let tar = dump(&server, version, "tar", &["-Ft"]);
    same(&tar, ArchiveFormat::Tar);
    let tar = piped(&server, version, "tar-piped", &["-Ft"]);
    same(&tar, ArchiveFormat::Tar);
    for format in ["-Fc", "-Fd", "-Ft"] {
        let name = format!("inserts{format}");
        let mut args = vec![format, "--inserts"];
        if format != "-Ft" && compressions.contains(&"lz4") {
            // An empty table is no rows at all.
            args.push("-Zlz4");
        }
        let inserts = dump(&server, version, &name, &args);
        let format = match format {
            "-Fc" => ArchiveFormat::Custom,
            "-Fd" => ArchiveFormat::Directory,
            _ => ArchiveFormat::Tar,
        };
        same(&inserts, format);
    }
}

#[test]
fn archives_of_pg_dump_15_hold_what_pg_restore_finds() {
    every_format(15, &["none", "gzip"]);
}

#[test]
fn archives_of_pg_dump_16_hold_what_pg_restore_finds() {
    every_format(16, &["none", "gzip"]);
}

#[test]
fn archives_of_pg_dump_17_hold_what_pg_restore_finds() {
    every_format(17, &["none", "gzip", "lz4", "zstd"]);
}

#[test]
fn archives_of_pg_dump_18_hold_what_pg_restore_finds() {
    every_format(18, &["none", "gzip"]);
}

#[test]
fn lists_tell_the_time_in_the_zone_of_the_reader() {
    let server = server(0);
    let dump = dump(&server, 18, "zones", &["-Fc", "-s"]);
    for zone in ["UTC", "America/New_York", "Asia/Kolkata", "Pacific/Chatham"] {
        let mut restore = server.client(18, "pg_restore", DB);
        restore.env("TZ", zone).arg("-l").arg(&dump.path);
        let mut ours = Command::new(PROGRAM);
        ours.env("TZ", zone).args(["build", "-l"]).arg(&dump.path);
        assert_eq!(
            run(&mut ours).expect_success(),
            run(&mut restore).expect_success(),
            "{zone}"
        );
    }
}

/// Replaces bytes that must be there with as many others.
fn replace(path: &Path, old: &[u8], new: &[u8]) {
    assert_eq!(old.len(), new.len());
    let mut bytes = std::fs::read(path).expect("a file");
    let places: Vec<usize> = memmem::find_iter(&bytes, old).collect();
    assert!(!places.is_empty(), "{}", path.display());
    for at in places {
        bytes[at..at + old.len()].copy_from_slice(new);
    }
    std::fs::write(path, bytes).expect("a file");
}

#[test]
fn no_name_leads_out_of_an_archive() {
    let server = server(0);
    let directory = dump(&server, 17, "outside", &["-Fd", "-Z0"]);
    let archive = Archive::open(&directory.path, "the dump").expect("an archive");
    let entry = archive
        .entries
        .iter()
        .find(|e| e.tag == "many" && e.desc == "TABLE DATA");
    let file = format!("{}.dat", entry.expect("the rows of many").dump_id);
    let contents = directory.path.join("toc.dat");
    let original = std::fs::read(&contents).expect("the table of contents");
    for start in ["../", "/x/"] {
        let outside = format!("{start}{}", &file[3..]);
        replace(&contents, file.as_bytes(), outside.as_bytes());
        let error = Archive::open(&directory.path, "the dump").expect_err("a name outside");
        assert_eq!(error.sqlstate, "22P04");
        assert!(error.message.contains(&outside), "{}", error.message);
        std::fs::write(&contents, &original).expect("the table of contents");
    }
    let archive = Archive::open(&directory.path, "the dump").expect("an archive");
    let entry = archive
        .entries
        .iter()
        .find(|e| e.desc == "BLOBS")
        .expect("large objects");
    let list = std::fs::read_dir(&directory.path)
        .expect("the directory")
        .map(|f| f.expect("a file").path())
        .filter(|p| p.to_string_lossy().contains("blobs_"));
    for list in list {
        replace(&list, b" blob_", b" ../b_");
    }
    let error = archive
        .large_objects(entry, &mut |_, _| Ok(()))
        .expect_err("a name outside");
    assert_eq!(error.sqlstate, "22P04");
    assert!(
        error
            .message
            .contains("invalid line in large object TOC file"),
        "{}",
        error.message
    );
}
