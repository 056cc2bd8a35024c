//! `build --stage-only`, `register` and `plan`: what is staged and registered later equals what is
//! built at once; what does not fit any more is refused; a plan writes nothing and keeps its word.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use pgpagewrite::cluster::faults;
use serde_json::Value;
use support::{Fork, Kind, Ran, Server, SmallDisk, ValueIds};

const PROGRAM: &str = env!("CARGO_BIN_EXE_pgpagewrite");
const DB: &str = "postgres";
const MANIFEST: &str = "pgpagewrite.manifest";

/// A table with values out of line, native and other indexes; and one that it stands beside.
const SCHEMA: &str = "
    CREATE TABLE t (id int PRIMARY KEY, v text, big text, n numeric(10,2));
    ALTER TABLE t ALTER big SET STORAGE EXTERNAL;
    CREATE INDEX t_v ON t (v DESC, id);
    CREATE INDEX t_hash ON t USING hash (v);
    CREATE TABLE other (a int NOT NULL, b text);
    CREATE UNIQUE INDEX other_a ON other (a);";

fn input(server: &Server) -> [PathBuf; 2] {
    let mut t = String::new();
    let mut other = String::new();
    for i in 0..3000 {
        let big = if i % 50 == 0 {
            format!("{i}-").repeat(2000)
        } else {
            String::new()
        };
        writeln!(t, "{},value {},{big},{i}.25", (i * 7) % 3001, i % 13).expect("memory");
        writeln!(other, "{i},x{i}").expect("memory");
    }
    let (t_path, other_path) = (server.dir().join("t.csv"), server.dir().join("other.csv"));
    fs::write(&t_path, t).expect("the input");
    fs::write(&other_path, other).expect("the input");
    [t_path, other_path]
}

fn program(server: &Server, command: &str, args: &[&str]) -> Command {
    let mut program = Command::new(PROGRAM);
    program
        .args([command, "-d"])
        .arg(server.conninfo(DB))
        .args(args);
    program
}

fn sources(paths: &[PathBuf; 2]) -> [String; 2] {
    [
        format!("t={}", paths[0].display()),
        format!("other={}", paths[1].display()),
    ]
}

/// A server with the tables, its inputs, and where a stage is to lie.
fn prepared(version: u32) -> (Server, [String; 2], PathBuf) {
    let server = Server::start(version, &[]);
    server.execute(DB, SCHEMA);
    let sources = sources(&input(&server));
    let stage = server.dir().join("stage");
    (server, sources, stage)
}

fn stage(server: &Server, sources: &[String; 2], directory: &Path) -> Ran {
    let mut command = program(server, "build", &["--stage-only"]);
    support::run(command.arg(directory).args(sources))
}

fn register(server: &Server, directory: &Path, args: &[&str]) -> Ran {
    support::run(program(server, "register", args).arg(directory))
}

/// A stage of both tables.
fn staged(version: u32) -> (Server, [String; 2], PathBuf) {
    let (server, sources, directory) = prepared(version);
    stage(&server, &sources, &directory).expect_success();
    (server, sources, directory)
}

fn counts(server: &Server) -> (String, String) {
    (
        server.value(DB, "SELECT count(*) FROM t"),
        server.value(DB, "SELECT count(*) FROM other"),
    )
}

fn assert_untouched(server: &Server) {
    assert_eq!(counts(server), ("0".to_owned(), "0".to_owned()));
}

/// Every page of both tables, masked, with a name for each fork.
fn masked(server: &Server) -> Vec<(String, Kind, Vec<support::Page>)> {
    let toast = server.value(
        DB,
        "SELECT reltoastrelid::regclass FROM pg_class WHERE oid = 't'::regclass",
    );
    let toast_index = format!("{toast}_index");
    let heap = |table| Kind::Heap(support::attributes(server, DB, table));
    let mut ids = ValueIds::default();
    [
        ("t", Fork::Main, heap("t")),
        ("t", Fork::VisibilityMap, Kind::Map),
        (&toast, Fork::Main, Kind::Toast),
        (&toast, Fork::VisibilityMap, Kind::Map),
        (&toast_index, Fork::Main, Kind::ToastIndex),
        ("t_pkey", Fork::Main, Kind::Btree),
        ("t_v", Fork::Main, Kind::Btree),
        ("other", Fork::Main, heap("other")),
        ("other", Fork::VisibilityMap, Kind::Map),
        ("other_a", Fork::Main, Kind::Btree),
    ]
    .into_iter()
    .map(|(relation, fork, kind)| {
        let mut pages = server.pages(DB, relation, fork);
        support::mask(&mut pages, &kind, &mut ids);
        (format!("{relation} {fork:?}"), kind, pages)
    })
    .collect()
}

/// Every file below a directory with its size and time of modification.
fn listing(directory: &Path) -> BTreeMap<PathBuf, (u64, std::time::SystemTime)> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(directory).expect("a directory") {
        let path = entry.expect("an entry").path();
        let metadata = fs::symlink_metadata(&path).expect("its metadata");
        if metadata.is_dir() {
            found.extend(listing(&path));
        }
        found.insert(path, (metadata.len(), metadata.modified().expect("a time")));
    }
    found
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|e| panic!("{e}: {text}"))
}

#[test]
fn a_stage_that_is_registered_equals_what_is_built_at_once() {
    for version in support::VERSIONS {
        let (server, sources, directory) = prepared(version);
        let told = stage(&server, &sources, &directory).expect_success();
        assert!(told.contains("NOTE: staged, not loaded"), "{told}");
        assert_untouched(&server);
        let told = register(&server, &directory, &[]).expect_success();
        assert!(told.contains("index t_hash: by the server"), "{told}");
        assert!(!directory.exists(), "a registered stage goes");
        assert_eq!(counts(&server), ("3000".to_owned(), "3000".to_owned()));
        assert_eq!(
            server.value(DB, "SELECT count(*) FROM pg_stats WHERE tablename = 't'"),
            "4"
        );
        support::assert_healthy(&server, DB);
        let ours = masked(&server);
        support::run(program(&server, "build", &["--truncate"]).args(&sources)).expect_success();
        for ((name, kind, ours), (_, _, direct)) in ours.iter().zip(&masked(&server)) {
            assert!(!direct.is_empty(), "{name}");
            support::assert_same_pages(name, kind, ours, direct);
        }
    }
}

#[test]
fn a_registered_table_is_a_table_like_any_other() {
    let (mut server, _, directory) = staged(17);
    register(&server, &directory, &["--no-analyze"]).expect_success();
    server.stop_immediate();
    server.restart();
    server.execute(
        DB,
        "UPDATE t SET big = big || 'x' WHERE big <> ''; DELETE FROM t WHERE id % 3 = 0;
         INSERT INTO t SELECT i, 'v', repeat('z', 9000) FROM generate_series(10000, 10100) i",
    );
    server.execute(DB, "VACUUM t");
    support::assert_healthy(&server, DB);
    support::assert_checksums(&mut server, DB);
}

#[test]
fn a_stage_is_kept_on_demand_and_its_rows_replace_others_on_demand() {
    let (server, _, directory) = staged(15);
    let before = listing(&directory);
    register(&server, &directory, &["--keep"]).expect_success();
    assert_eq!(listing(&directory), before);
    let again = register(&server, &directory, &["--keep"]);
    assert_eq!(again.sqlstate(), Some("55000"), "{}", again.stderr);
    let stderr = again.expect_failure(1);
    assert!(stderr.contains("table public.t is not empty"), "{stderr}");
    server.execute(DB, "DELETE FROM other WHERE a > 5");
    register(&server, &directory, &["--truncate"]).expect_success();
    assert_eq!(counts(&server), ("3000".to_owned(), "3000".to_owned()));
    assert!(!directory.exists());
    support::assert_healthy(&server, DB);
}

#[test]
fn a_stage_may_be_built_for_a_table_that_has_rows() {
    let (server, sources, directory) = prepared(15);
    server.execute(DB, "INSERT INTO t VALUES (1, 'old')");
    stage(&server, &sources, &directory).expect_success();
    register(&server, &directory, &[]).expect_failure(1);
    register(&server, &directory, &["--truncate"]).expect_success();
    assert_eq!(counts(&server).0, "3000");
}

#[test]
fn a_table_that_changed_since_is_refused_with_what_changed() {
    let (server, _, directory) = staged(16);
    let refused = |change: &str, told: &str, undo: &str| {
        server.execute(DB, change);
        let ran = register(&server, &directory, &[]);
        assert_eq!(ran.sqlstate(), Some("55000"), "{change}: {}", ran.stderr);
        let stderr = ran.expect_failure(1);
        assert!(stderr.contains(told), "{change}: {stderr}");
        server.execute(DB, undo);
    };
    refused("INSERT INTO t VALUES (1)", "is not empty", "TRUNCATE t");
    refused(
        "ALTER TABLE t RENAME TO u",
        "DETAIL: its name changed",
        "ALTER TABLE u RENAME TO t",
    );
    refused(
        "CREATE INDEX extra ON t (n)",
        "index \"extra\" is new",
        "DROP INDEX extra",
    );
    refused(
        "ALTER TABLE t SET (fillfactor = 50)",
        "its kind or storage parameters changed",
        "ALTER TABLE t RESET (fillfactor)",
    );
    refused(
        "ALTER TABLE t ADD CHECK (id > 0)",
        "its triggers, rules or constraints changed",
        "ALTER TABLE t DROP CONSTRAINT t_id_check",
    );
    refused(
        "ALTER TABLE t ALTER v SET NOT NULL",
        "column \"v\" changed",
        "ALTER TABLE t ALTER v DROP NOT NULL",
    );
    refused(
        "ALTER TABLE t ALTER big SET STORAGE EXTENDED",
        "column \"big\" changed",
        "ALTER TABLE t ALTER big SET STORAGE EXTERNAL",
    );
    // What all those left is the table of the stage again: only then does a refusal mean anything.
    register(&server, &directory, &["--keep"]).expect_success();
    server.execute(DB, "TRUNCATE t, other");
    // Nothing undoes these: each shows before those that came earlier.
    refused(
        "DROP INDEX other_a",
        "index \"other_a\" is gone",
        "SELECT 1",
    );
    refused(
        "ALTER TABLE t ADD COLUMN more int",
        "column \"more\" is new",
        "SELECT 1",
    );
    refused(
        "ALTER TABLE t ALTER n TYPE bigint",
        "column \"n\" changed",
        "SELECT 1",
    );
    refused(
        "ALTER TABLE t DROP COLUMN v",
        "column \"v\" is gone",
        "SELECT 1",
    );
    refused("DROP TABLE t", "DETAIL: it is gone", "SELECT 1");
    assert_eq!(server.value(DB, "SELECT count(*) FROM other"), "0");
}

#[test]
fn another_server_is_refused() {
    let (server, _, directory) = staged(15);
    let refused = |other: &Server, told: &str| {
        other.execute(DB, SCHEMA);
        let ran = register(other, &directory, &[]);
        assert_eq!(ran.sqlstate(), Some("55000"), "{}", ran.stderr);
        let stderr = ran.expect_failure(1);
        assert!(stderr.contains(told), "{stderr}");
        assert_untouched(other);
    };
    refused(&Server::start(16, &[]), "The major version was 15;");
    let new = server.dir().join("new");
    let mut initdb = server.server_program("initdb");
    initdb
        .args(["--no-sync", "--username=postgres", "-D"])
        .arg(&new);
    support::run(&mut initdb).expect_success();
    let mut command = Command::new(PROGRAM);
    command.args(["register", "-U", "postgres", "-D"]).arg(&new);
    command.arg("--pg-bin").arg(server.bin_dir());
    let ran = support::run(command.arg(&directory));
    assert_eq!(ran.sqlstate(), Some("55000"), "{}", ran.stderr);
    let stderr = ran.expect_failure(1);
    assert!(stderr.contains("The system identifier was "), "{stderr}");
    // Servers of the tests are copies of one cluster: this one differs in the database alone.
    let twin = Server::start(15, &[]);
    twin.execute(DB, "CREATE DATABASE second");
    twin.execute("second", SCHEMA);
    let mut command = Command::new(PROGRAM);
    command
        .args(["register", "-d"])
        .arg(twin.conninfo("second"));
    let ran = support::run(command.arg(&directory));
    assert_eq!(ran.sqlstate(), Some("55000"), "{}", ran.stderr);
    let stderr = ran.expect_failure(1);
    assert!(stderr.contains("The database was "), "{stderr}");
    assert_eq!(twin.value("second", "SELECT count(*) FROM t"), "0");
    register(&server, &directory, &[]).expect_success();
}

/// Damages a file of a stage, expects the refusal, and mends it.
fn refused_when(server: &Server, directory: &Path, file: &str, damage: impl Fn(&mut Vec<u8>)) {
    let path = directory.join(file);
    let whole = fs::read(&path).expect("a file of the stage");
    let mut damaged = whole.clone();
    damage(&mut damaged);
    fs::write(&path, &damaged).expect("a file of the stage");
    let ran = register(server, directory, &[]);
    assert_eq!(ran.sqlstate(), Some("XX001"), "{file}: {}", ran.stderr);
    let stderr = ran.expect_failure(4);
    assert!(stderr.contains(file), "{stderr}");
    assert_untouched(server);
    fs::write(&path, &whole).expect("a file of the stage");
}

#[test]
fn a_damaged_stage_is_refused_whatever_the_file() {
    let (server, _, directory) = staged(18);
    let toast = server.value(
        DB,
        "SELECT reltoastrelid FROM pg_class WHERE oid = 't'::regclass",
    );
    let files: Vec<String> = fs::read_dir(&directory)
        .expect("the stage")
        .map(|entry| {
            entry
                .expect("an entry")
                .file_name()
                .into_string()
                .expect("UTF-8")
        })
        .collect();
    assert!(files.contains(&MANIFEST.to_owned()));
    assert!(files.contains(&toast), "{files:?}");
    assert!(files.contains(&format!("{toast}_vm")), "{files:?}");
    assert_eq!(files.len(), 11, "{files:?}");
    for file in &files {
        refused_when(&server, &directory, file, |bytes| {
            let middle = bytes.len() / 2;
            bytes[middle] ^= 4;
        });
        refused_when(&server, &directory, file, |bytes| {
            bytes.pop();
        });
        refused_when(&server, &directory, file, |bytes| bytes.push(0));
        refused_when(&server, &directory, file, Vec::clear);
        let path = directory.join(file);
        let away = directory.join("away");
        fs::rename(&path, &away).expect("a file of the stage");
        let ran = register(&server, &directory, &[]);
        let status = if file == MANIFEST { 3 } else { 4 };
        let stderr = ran.expect_failure(status);
        assert!(stderr.contains(file.as_str()), "{stderr}");
        std::os::unix::fs::symlink(&away, &path).expect("a link");
        if file != MANIFEST {
            register(&server, &directory, &[]).expect_failure(4);
        }
        fs::rename(&away, &path).expect("a file of the stage");
        assert_untouched(&server);
    }
    register(&server, &directory, &[]).expect_success();
    support::assert_healthy(&server, DB);
}

#[test]
fn a_registration_that_dies_at_any_step_leaves_the_stage_and_the_old_state() {
    let (server, _, directory) = staged(15);
    let before = listing(&directory);
    for point in faults::POINTS {
        let mut command = program(&server, "register", &[]);
        command.arg(&directory).env("PGPAGEWRITE_FAULT", point);
        assert_eq!(support::run(&mut command).status, None, "{point}");
        while server.value(
            DB,
            "SELECT count(*) FROM pg_locks WHERE relation = 't'::regclass
                AND pid <> pg_backend_pid()",
        ) != "0"
        {
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        assert_untouched(&server);
        assert_eq!(listing(&directory), before, "{point}");
    }
    register(&server, &directory, &[]).expect_success();
    assert_eq!(counts(&server), ("3000".to_owned(), "3000".to_owned()));
    support::assert_healthy(&server, DB);
}

#[test]
fn a_stage_is_all_or_nothing() {
    let (server, sources, directory) = prepared(15);
    let refused = |sources: &[String], status: i32, sqlstate: &str| {
        let mut command = program(&server, "build", &["--stage-only"]);
        let ran = support::run(command.arg(&directory).args(sources));
        assert_eq!(ran.sqlstate(), Some(sqlstate), "{}", ran.stderr);
        ran.expect_failure(status)
    };
    let bad = server.dir().join("bad.csv");
    fs::write(&bad, "1,a\n1,b\n").expect("the input");
    refused(
        &[sources[0].clone(), format!("other={}", bad.display())],
        1,
        "23505",
    );
    assert!(!directory.exists(), "what was built goes");
    server.execute(DB, "CREATE TABLE m (a money)");
    let stderr = refused(&[format!("m={}", bad.display())], 1, "0A000");
    assert!(
        stderr.contains(
            "public.m cannot be staged: the server's COPY must load it: column a: type money"
        ),
        "{stderr}"
    );
    assert!(!directory.exists());
    // A directory that was there stays, empty; one with something in it is left alone.
    fs::create_dir(&directory).expect("a directory");
    refused(&[format!("other={}", bad.display())], 1, "23505");
    assert_eq!(fs::read_dir(&directory).expect("the directory").count(), 0);
    fs::write(directory.join("mine"), "x").expect("a file");
    refused(&sources, 3, "58P02");
    assert!(directory.join("mine").exists());
    fs::remove_file(directory.join("mine")).expect("a file");
    stage(&server, &sources, &directory).expect_success();
    assert_untouched(&server);
    register(&server, &directory, &[]).expect_success();
}

#[test]
fn a_stage_is_for_its_owner_alone() {
    use std::os::unix::fs::{MetadataExt, PermissionsExt};
    let (server, _, directory) = staged(15);
    let owner = fs::metadata(server.data_dir()).expect("the cluster").uid();
    let metadata = fs::metadata(&directory).expect("the stage");
    assert_eq!(metadata.permissions().mode() & 0o777, 0o700);
    assert_eq!(metadata.uid(), owner);
    for path in listing(&directory).keys() {
        let metadata = fs::metadata(path).expect("a file of the stage");
        assert_eq!(
            metadata.permissions().mode() & 0o777,
            0o600,
            "{}",
            path.display()
        );
        assert_eq!(metadata.uid(), owner);
    }
}

#[test]
fn a_stage_goes_to_the_tablespaces_of_its_tables_and_to_a_stopped_cluster() {
    let mut server = Server::start(16, &[]);
    let place = server.dir().join("place");
    support::run(
        Command::new("install")
            .args(["-d", "-o", "postgres"])
            .arg(&place),
    )
    .expect_success();
    server.execute(
        DB,
        &format!("CREATE TABLESPACE elsewhere LOCATION '{}'", place.display()),
    );
    server.execute(DB, SCHEMA);
    server.execute(
        DB,
        "ALTER TABLE other SET TABLESPACE elsewhere; ALTER INDEX t_v SET TABLESPACE elsewhere",
    );
    let sources = sources(&input(&server));
    // Another file system than the cluster's.
    let elsewhere = tempfile::tempdir_in("/dev/shm").expect("a directory");
    let directory = elsewhere.path().join("stage");
    stage(&server, &sources, &directory).expect_success();
    server.stop();
    let mut command = Command::new(PROGRAM);
    command.args(["register", "-D"]).arg(server.data_dir());
    command.arg("--pg-bin").arg(server.bin_dir());
    support::run(command.arg(&directory)).expect_success();
    server.restart();
    assert_eq!(counts(&server), ("3000".to_owned(), "3000".to_owned()));
    support::assert_healthy(&server, DB);
}

#[test]
fn the_wal_is_looked_at_when_a_stage_is_registered() {
    let (server, _, directory) = staged(15);
    server.execute(DB, "SELECT pg_create_physical_replication_slot('s')");
    let ran = register(&server, &directory, &[]);
    assert_eq!(ran.sqlstate(), Some("55000"), "{}", ran.stderr);
    assert_untouched(&server);
    let told = register(&server, &directory, &["--wal", "bypass"]).expect_success();
    assert!(told.contains("NOTE: the load is not in the WAL"), "{told}");
    server.execute(DB, "SELECT pg_drop_replication_slot('s')");
}

/// What a plan must leave as it is: the cluster's files of relations and its catalogs.
fn state(server: &Server) -> (Vec<PathBuf>, String) {
    server.execute(DB, "CHECKPOINT");
    let files = listing(&server.data_dir().join("base"));
    let files = files
        .into_keys()
        .filter(|p| !p.ends_with("pg_internal.init"));
    let catalogs = "SELECT (SELECT md5(string_agg(c::text, '' ORDER BY oid)) FROM pg_class c)
        || (SELECT md5(string_agg(a::text, '' ORDER BY attrelid, attnum)) FROM pg_attribute a)
        || (SELECT md5(string_agg(n::text, '' ORDER BY oid)) FROM pg_namespace n)
        || (SELECT md5(string_agg(i::text, '' ORDER BY indexrelid)) FROM pg_index i)";
    (files.collect(), server.value(DB, catalogs))
}

#[test]
fn a_plan_writes_nothing_and_a_build_keeps_its_word() {
    for version in support::VERSIONS {
        let (server, sources, _) = prepared(version);
        server.execute(
            DB,
            "CREATE TABLE m (a money, b int CHECK (b > 0)); CREATE INDEX m_b ON m (b)",
        );
        let m = server.dir().join("m.csv");
        fs::write(&m, "1.50,1\n").expect("the input");
        let m = format!("m={}", m.display());
        let before = state(&server);
        let run = |command: &str| {
            let mut command = program(&server, command, &["--report", "json"]);
            json(&support::run(command.args(&sources).arg(&m)).expect_success())
        };
        let plan = run("plan");
        support::run(program(&server, "plan", &[]).args(&sources).arg(&m)).expect_success();
        assert_eq!(state(&server), before, "on {version}");
        let built = run("build");
        let (planned, built) = (&plan["tables"], &built["tables"]);
        for table in 0..3 {
            assert_eq!(planned[table]["table"], built[table]["table"]);
            assert_eq!(planned[table]["loaded"], built[table]["loaded"]);
            let indexes = built[table]["indexes"].as_array().expect("indexes");
            for (number, index) in indexes.iter().enumerate() {
                let planned = &planned[table]["indexes"][number];
                assert_eq!(planned["index"], index["index"]);
                assert_eq!(planned["built"], index["built"]);
            }
        }
        // All of the input was looked at, so the figures are right and not merely likely.
        let estimate = &planned[0]["estimate"];
        assert_eq!(estimate["rows"], 3000);
        let heap = |value: &Value| value.as_f64().expect("a number");
        let (about, was) = (heap(&estimate["heap_bytes"]), heap(&built[0]["heap_bytes"]));
        assert!(about > was * 0.9 && about < was * 1.1, "{about} {was}");
        let (about, was) = (
            heap(&estimate["toast_bytes"]),
            heap(&built[0]["toast_bytes"]),
        );
        assert!(about > was * 0.9 && about < was * 1.1, "{about} {was}");
        let (at_most, was) = (
            heap(&planned[0]["indexes"][0]["bytes"]),
            heap(&built[0]["indexes"][0]["bytes"]),
        );
        assert!(
            at_most > was * 0.7 && at_most < was * 1.3,
            "{at_most} {was}"
        );
        assert_eq!(planned[0]["columns"][0]["encoder"], "int4");
        assert_eq!(planned[2]["columns"][0]["encoder"], Value::Null);
    }
}

#[test]
fn a_plan_tells_a_person_what_will_happen() {
    let (server, sources, _) = prepared(15);
    let told = support::run(program(&server, "plan", &[]).args(&sources)).expect_success();
    for line in [
        "public.t: native\n",
        "t.csv: csv, ",
        "  columns: id integer (int4), v text (text), big text (text), n numeric(10,2) (numeric)\n",
        "  about 3000 rows, heap ",
        "  index t_pkey: native, at most about ",
        "  index t_hash: by the server: its access method is hash\n",
        "  primary key t_pkey: while the files are built\n",
        "WAL: bypassed: wal_level is replica; no standby, slot, archive or base backup depends on it\n",
        "space in the file system of ",
        "locks: ",
        "threads: ",
    ] {
        assert!(told.contains(line), "{line}\nis not in\n{told}");
    }
}

#[test]
fn a_plan_with_a_schema_leaves_no_trace_of_it() {
    let server = Server::start(15, &[]);
    let schema = server.dir().join("schema.sql");
    fs::write(&schema, SCHEMA).expect("the schema");
    let sources = sources(&input(&server));
    let before = state(&server);
    let mut command = program(&server, "plan", &["--report", "json", "--schema"]);
    let ran = support::run(command.arg(&schema).args(&sources));
    let plan = json(&ran.expect_success());
    assert_eq!(plan["tables"][0]["loaded"]["by"], "native");
    assert_eq!(state(&server), before);
    let absent = server.dir().join("new");
    let mut command = Command::new(PROGRAM);
    command
        .args(["plan", "--create-cluster", "-D"])
        .arg(&absent);
    command.arg("--pg-bin").arg(server.bin_dir());
    command.arg("--schema").arg(&schema).args(&sources);
    let told = support::run(&mut command).expect_success();
    assert!(told.contains("wal_level is minimal"), "{told}");
    assert!(!absent.exists());
}

#[test]
fn a_plan_ends_as_the_build_would() {
    let (server, sources, _) = prepared(15);
    let bad = server.dir().join("bad.csv");
    fs::write(&bad, "1,a\nx,b\n").expect("the input");
    let bad = format!("other={}", bad.display());
    server.execute(DB, "CREATE TABLE full_one AS SELECT 1 AS a");
    let full = format!("full_one={}", server.dir().join("other.csv").display());
    let ruled = "CREATE TABLE r (a int, b text); CREATE RULE no AS ON INSERT TO r DO NOTHING";
    server.execute(DB, ruled);
    let cases: [&[&str]; 8] = [
        &["nowhere=x.csv"],
        &["t=/nonexistent.csv"],
        &["t"],
        &[&bad],
        &[&full],
        &["--delimiter", "long", &sources[0]],
        &["--native-only", &sources[0]],
        &["r=/nonexistent.csv"],
    ];
    for args in cases {
        let plan = support::run(&mut program(&server, "plan", args));
        let build = support::run(&mut program(&server, "build", args));
        assert_ne!(plan.status, Some(0), "{args:?}");
        assert_eq!(
            (plan.status, plan.sqlstate()),
            (build.status, build.sqlstate()),
            "{args:?}\n{}\n{}",
            plan.stderr,
            build.stderr
        );
    }
    server.execute(DB, "SELECT pg_create_physical_replication_slot('s')");
    let plan = support::run(program(&server, "plan", &[]).args(&sources));
    assert_eq!(plan.sqlstate(), Some("55000"));
    assert!(
        plan.stdout.contains("WAL: refused: wal_level is replica"),
        "{}",
        plan.stdout
    );
    plan.expect_failure(1);
    server.execute(DB, "SELECT pg_drop_replication_slot('s')");
}

#[test]
fn a_plan_takes_nothing_from_standard_input() {
    let (server, _, _) = prepared(15);
    let mut command = program(&server, "plan", &["--format", "csv", "other=-"]);
    let (reader, writer) = std::io::pipe().expect("a pipe");
    // The writer stays open: a plan that reads would not end.
    let told = support::run(command.stdin(reader)).expect_success();
    drop(writer);
    assert!(told.contains("input stdin: csv, size unknown"), "{told}");
}

/// So many rows of a number and another one.
fn numbers(count: u64) -> String {
    let mut rows = String::new();
    for i in 0..count {
        writeln!(rows, "{i},{}", i * 7919).expect("memory");
    }
    rows
}

/// A server with a tablespace `small` on a disk of so many megabytes.
fn with_small_tablespace(megabytes: u64) -> (Server, SmallDisk) {
    let server = Server::start(15, &[("wal_level", "minimal")]);
    let disk = SmallDisk::mount(server.dir().join("small"), megabytes << 20);
    let place = disk.path().join("place");
    support::run(
        Command::new("install")
            .args(["-d", "-o", "postgres"])
            .arg(&place),
    )
    .expect_success();
    let location = place.display();
    server.execute(
        DB,
        &format!("CREATE TABLESPACE small LOCATION '{location}'"),
    );
    (server, disk)
}

#[test]
fn what_surely_does_not_fit_is_refused_before_anything_is_written() {
    let (server, disk) = with_small_tablespace(8);
    server.execute(
        DB,
        "CREATE TABLE t (a int, b text) TABLESPACE small;
         CREATE TABLE thin (a text) TABLESPACE small",
    );
    let path = server.dir().join("t.csv");
    fs::write(&path, numbers(700_000)).expect("the input");
    let source = format!("t={}", path.display());
    let before = listing(disk.path());
    for command in ["plan", "build"] {
        let ran = support::run(program(&server, command, &[]).arg(&source));
        assert_eq!(ran.sqlstate(), Some("53100"), "{}", ran.stderr);
        let stderr = ran.expect_failure(3);
        assert!(
            stderr.contains("not enough room in the file system"),
            "{stderr}"
        );
        assert_eq!(listing(disk.path()), before, "{command}");
    }
    // Ten times as much that is pressed together does fit, and is not refused.
    let wide = format!("{}\n", "abc".repeat(30_000)).repeat(300);
    fs::write(&path, wide).expect("the input");
    let source = format!("thin={}", path.display());
    support::run(program(&server, "build", &[]).arg(source)).expect_success();
    assert_eq!(
        server.value(DB, "SELECT sum(length(a)) FROM thin"),
        "27000000"
    );
    server.execute(DB, "DROP TABLE t, thin");
    server.execute(DB, "DROP TABLESPACE small");
}

#[test]
fn a_stage_that_does_not_fit_is_refused_by_its_exact_size() {
    let (server, _disk) = with_small_tablespace(4);
    server.execute(DB, "CREATE TABLE t (a int, b text) TABLESPACE small");
    let path = server.dir().join("t.csv");
    fs::write(&path, numbers(200_000)).expect("the input");
    let directory = server.dir().join("stage");
    let mut command = program(&server, "build", &["--stage-only"]);
    command.arg(&directory).arg(format!("t={}", path.display()));
    support::run(&mut command).expect_success();
    let ran = register(&server, &directory, &[]);
    assert_eq!(ran.sqlstate(), Some("53100"), "{}", ran.stderr);
    ran.expect_failure(3);
    assert!(directory.join(MANIFEST).exists());
    assert_eq!(server.value(DB, "SELECT count(*) FROM t"), "0");
    server.execute(DB, "DROP TABLE t");
    server.execute(DB, "DROP TABLESPACE small");
}

#[test]
fn constraints_are_checked_when_a_stage_is_registered() {
    let server = Server::start(15, &[]);
    server.execute(
        DB,
        "CREATE TABLE p (id int PRIMARY KEY); INSERT INTO p VALUES (1), (2);
         CREATE DOMAIN d AS text CHECK (VALUE <> 'w');
         CREATE TABLE c (a int CHECK (a < 100), b d, p int REFERENCES p)",
    );
    let directory = server.dir().join("stage");
    let put = |rows: &str| {
        let path = server.dir().join("c.csv");
        fs::write(&path, rows).expect("the input");
        let _ = fs::remove_dir_all(&directory);
        let mut command = program(&server, "build", &["--stage-only"]);
        command.arg(&directory).arg(format!("c={}", path.display()));
        support::run(&mut command).expect_success();
    };
    let refused = |sqlstate: &str, line: &str| {
        let ran = register(&server, &directory, &[]);
        assert_eq!(ran.sqlstate(), Some(sqlstate), "{}", ran.stderr);
        let stderr = ran.expect_failure(1);
        assert!(stderr.contains(line), "{stderr}");
        assert_eq!(server.value(DB, "SELECT count(*) FROM c"), "0");
    };
    put("1,x,1\n2,\"y\ny\",2\n100,z,1\n");
    refused("23514", "c.csv, line 4");
    put("1,x,1\n2,w,2\n");
    refused("23514", "c.csv, line 2, column b: \"w\"");
    put("1,x,1\n2,y,3\n");
    refused("23503", "c.csv, line 2");
    let told = register(&server, &directory, &["--trust-constraints"]).expect_success();
    assert!(told.contains("not checked"), "{told}");
    server.execute(DB, "TRUNCATE c");
    put("1,x,1\n2,y,2\n");
    let told = register(&server, &directory, &[]).expect_success();
    assert!(told.contains("checked in"), "{told}");
    assert_eq!(server.value(DB, "SELECT count(*) FROM c"), "2");
    support::assert_healthy(&server, DB);
}

/// Stages CSV of tables, each with its columns.
fn stage_rows(server: &Server, directory: &Path, tables: &[(&str, &str)]) -> Ran {
    let mut command = program(server, "build", &["--format", "csv", "--stage-only"]);
    command.arg(directory);
    for (number, (table, rows)) in tables.iter().enumerate() {
        let path = server.dir().join(format!("rows{number}.csv"));
        fs::write(&path, rows).expect("the input");
        command.arg(format!("{table}={}", path.display()));
    }
    support::run(&mut command)
}

/// A partitioned table of two levels in a schema, one of its leaves with other columns.
fn partitioned(schema: &str) -> String {
    format!(
        "CREATE SCHEMA {schema}; SET search_path = {schema};
         CREATE TABLE p (id int, kind text, v numeric CONSTRAINT small CHECK (v < 1000),
                         PRIMARY KEY (id, kind)) PARTITION BY RANGE (id);
         CREATE TABLE low (dropped int, v numeric CONSTRAINT small CHECK (v < 1000),
                           kind text NOT NULL, id int NOT NULL);
         ALTER TABLE low DROP dropped;
         ALTER TABLE p ATTACH PARTITION low FOR VALUES FROM (MINVALUE) TO (1000);
         CREATE TABLE high PARTITION OF p FOR VALUES FROM (1000) TO (3000)
             PARTITION BY LIST (kind);
         CREATE TABLE high_a PARTITION OF high FOR VALUES IN ('a');
         CREATE TABLE high_rest PARTITION OF high DEFAULT;
         CREATE TABLE empty PARTITION OF p FOR VALUES FROM (3000) TO (MAXVALUE);
         CREATE INDEX ON p USING hash (kind);
         RESET search_path;"
    )
}

/// Rows that alternate between the leaves, one of them with two lines.
fn routed_rows() -> String {
    let mut rows = String::new();
    for i in 0..3000 {
        let kind = match i {
            17 => "\"x\ny\"",
            _ if i % 3 == 0 => "a",
            _ => "b",
        };
        writeln!(rows, "{},{kind},{}", (i * 7) % 3000, i % 1000).expect("memory");
    }
    rows
}

#[test]
fn a_partitioned_table_is_staged_with_its_leaves() {
    for version in [14, 18] {
        let server = Server::start(version, &[]);
        server.execute(DB, &partitioned("ours"));
        server.execute(DB, &partitioned("theirs"));
        let directory = server.dir().join("stage");
        let rows = routed_rows();
        stage_rows(&server, &directory, &[("ours.p", &rows)]).expect_success();
        assert_eq!(server.value(DB, "SELECT count(*) FROM ours.p"), "0");
        let told = register(&server, &directory, &[]).expect_success();
        assert!(told.contains("ours.p: 3000 rows"), "{told}");
        let path = server.dir().join("rows0.csv");
        server.execute(
            DB,
            &format!("COPY theirs.p FROM '{}' (FORMAT csv)", path.display()),
        );
        let rows_of = |schema: &str| {
            server.value(
                DB,
                &format!(
                    "SELECT string_agg(concat_ws('|', c.relname, p.ctid, id, kind, v), E'\\n'
                                       ORDER BY c.relname, p.ctid)
                       FROM {schema}.p JOIN pg_class c ON c.oid = p.tableoid"
                ),
            )
        };
        assert_eq!(rows_of("ours"), rows_of("theirs"));
        support::assert_healthy(&server, DB);
    }
}

#[test]
fn rows_of_leaves_are_checked_when_a_stage_is_registered_and_their_lines_told() {
    let server = Server::start(15, &[]);
    server.execute(DB, &partitioned("ours"));
    let directory = server.dir().join("stage");
    let bad = format!("{}1,z,1\n2001,z,1000\n3,z,1000\n", routed_rows());
    stage_rows(&server, &directory, &[("ours.p", &bad)]).expect_success();
    let ran = register(&server, &directory, &[]);
    assert_eq!(ran.sqlstate(), Some("23514"), "{}", ran.stderr);
    // One row before has two lines.
    let stderr = ran.expect_failure(1);
    assert!(stderr.contains("rows0.csv, line 3003"), "{stderr}");
    assert_eq!(server.value(DB, "SELECT count(*) FROM ours.p"), "0");
}

#[test]
fn a_stage_is_refused_when_partitions_changed() {
    let server = Server::start(15, &[]);
    server.execute(DB, &partitioned("ours"));
    let directory = server.dir().join("stage");
    stage_rows(&server, &directory, &[("ours.p", &routed_rows())]).expect_success();
    for (change, what, undo) in [
        (
            "CREATE TABLE ours.high_b PARTITION OF ours.high FOR VALUES IN ('q')",
            "its partitions are others",
            "DROP TABLE ours.high_b",
        ),
        (
            "ALTER TABLE ours.p DETACH PARTITION ours.empty",
            "its partitions are others",
            "ALTER TABLE ours.p ATTACH PARTITION ours.empty FOR VALUES FROM (3000) TO (MAXVALUE)",
        ),
        (
            "ALTER TABLE ours.high DETACH PARTITION ours.high_a;
             ALTER TABLE ours.high ATTACH PARTITION ours.high_a FOR VALUES IN ('a', 'b')",
            "its triggers, rules or constraints changed",
            "ALTER TABLE ours.high DETACH PARTITION ours.high_a;
             ALTER TABLE ours.high ATTACH PARTITION ours.high_a FOR VALUES IN ('a')",
        ),
        (
            "ALTER TABLE ours.low SET (fillfactor = 50)",
            "its kind or storage parameters changed",
            "ALTER TABLE ours.low RESET (fillfactor)",
        ),
    ] {
        server.execute(DB, change);
        let ran = register(&server, &directory, &[]);
        assert_eq!(ran.sqlstate(), Some("55000"), "{change}: {}", ran.stderr);
        let stderr = ran.expect_failure(1);
        assert!(stderr.contains(what), "{change}: {stderr}");
        server.execute(DB, undo);
    }
    register(&server, &directory, &[]).expect_success();
    assert_eq!(server.value(DB, "SELECT count(*) FROM ours.p"), "3000");
}

/// A table whose columns take values of all kinds, and a function that leaves traces.
const VALUES: &str = "CREATE TABLE traces (n int);
    CREATE FUNCTION traced() RETURNS int VOLATILE LANGUAGE sql
        AS $$ INSERT INTO traces VALUES (1) RETURNING n $$;
    CREATE TABLE t (id serial PRIMARY KEY, other int GENERATED ALWAYS AS IDENTITY (CACHE 5),
                    a int, at timestamptz DEFAULT now(), r float8 DEFAULT random(),
                    twice int GENERATED ALWAYS AS (a * 2) STORED, n int DEFAULT traced())";

#[test]
fn staged_rows_have_the_values_of_their_build() {
    for version in [14, 18] {
        let server = Server::start(version, &[]);
        server.execute(DB, VALUES);
        let directory = server.dir().join("stage");
        let told = stage_rows(&server, &directory, &[("t(a)", "10\n20\n30\n")]).expect_success();
        let note = "NOTE: public.t: defaults and generated columns have the values of this build";
        assert!(told.contains(note), "{told}");
        // What was taken is taken, and what functions did is done.
        let sequences = "SELECT concat(nextval('t_id_seq'), ' ', nextval('t_other_seq'))";
        assert_eq!(server.value(DB, sequences), "4 6");
        assert_eq!(server.value(DB, "SELECT count(*) FROM traces"), "3");
        let staged = server.value(DB, "SELECT now()");
        register(&server, &directory, &[]).expect_success();
        let rows = "SELECT string_agg(concat_ws(' ', id, other, a, twice, n), ',' ORDER BY id),
                           count(DISTINCT at), count(DISTINCT r), max(at) < $1 FROM t";
        let rows = rows.replace("$1", &format!("'{staged}'"));
        let rows = rows
            .replace("SELECT ", "SELECT concat_ws(';', ")
            .replace(" FROM t", ") FROM t");
        assert_eq!(
            server.value(DB, &rows),
            "1 1 10 20 1,2 2 20 40 1,3 3 30 60 1;1;3;t"
        );
        // The registration takes no values and leaves no traces.
        // Each session takes five values of the second.
        assert_eq!(server.value(DB, sequences), "5 11");
        assert_eq!(server.value(DB, "SELECT count(*) FROM traces"), "3");
        support::assert_healthy(&server, DB);
    }
}

#[test]
fn a_stage_that_fails_takes_no_values() {
    let server = Server::start(15, &[]);
    server.execute(DB, VALUES);
    server.execute(DB, "CREATE UNIQUE INDEX ON t (a)");
    let directory = server.dir().join("stage");
    let ran = stage_rows(&server, &directory, &[("t(a)", "1\n2\n1\n")]);
    assert_eq!(ran.sqlstate(), Some("23505"), "{}", ran.stderr);
    assert!(!directory.exists());
    assert_eq!(server.value(DB, "SELECT nextval('t_id_seq')"), "1");
    assert_eq!(server.value(DB, "SELECT count(*) FROM traces"), "0");
}

#[test]
fn nulls_of_columns_that_the_input_lacks_are_held_against_nothing_later_either() {
    let server = Server::start(15, &[]);
    server.execute(
        DB,
        "CREATE DOMAIN d AS int CHECK (VALUE IS NOT NULL); CREATE TABLE n (a int, b text, c d)",
    );
    let directory = server.dir().join("stage");
    stage_rows(&server, &directory, &[("n(a, b)", "1,x\n")]).expect_success();
    register(&server, &directory, &[]).expect_success();
    assert_eq!(
        server.value(DB, "SELECT count(*) FROM n WHERE c IS NULL"),
        "1"
    );
    // Where the input has the column, its nulls are refused as COPY refuses them.
    stage_rows(&server, &directory, &[("n(c, a)", "1,1\n,2\n")]).expect_success();
    let ran = register(&server, &directory, &["--truncate"]);
    assert_eq!(ran.sqlstate(), Some("23514"), "{}", ran.stderr);
    let stderr = ran.expect_failure(1);
    assert!(stderr.contains("rows0.csv, line 2, column c"), "{stderr}");
}
