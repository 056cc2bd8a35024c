//! Registration proved on real servers, with files that the server itself wrote.
//!
//! The files of a twin table, loaded by COPY FREEZE, are staged as if we had built them; then
//! everything that can happen between BEGIN and the moment after COMMIT happens.

use std::cell::RefCell;
use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;

use pgformat::page::checksum;
use pgpagewrite::catalog::{Relation, read};
use pgpagewrite::cluster::conninfo::{ConnectOptions, Conninfo};
use pgpagewrite::cluster::faults;
use pgpagewrite::cluster::register::{
    Event, Options, Registration, StagedRelation, StagedTable, TableToRegister,
};
use pgpagewrite::cluster::session::Session;
use pgpagewrite::cluster::staging::Staging;
use pgpagewrite::error::{Error, Result};
use pgpagewrite::sys::credentials;
use postgres::Client;
use support::Server;

/// Columns of `t` and its twin: a key, text that goes out of line, char(n), a number.
const COLUMNS: &str = "(id int NOT NULL, v text, b char(12), big text, n numeric(10,2))";
const ROWS: i64 = 3000;

/// The indexes of both; the twin's have the prefix `twin`.
fn indexes(table: &str) -> String {
    format!(
        "ALTER TABLE {table} ADD CONSTRAINT {table}_pkey PRIMARY KEY (id);
         CREATE INDEX {table}_v ON {table} (v DESC NULLS LAST, id);
         CREATE INDEX {table}_b ON {table} (b);
         CREATE UNIQUE INDEX {table}_n ON {table} (n) INCLUDE (v);"
    )
}

/// So many further indexes make a load one of many files.
const MANY_INDEXES: usize = 100;

/// Gives the table and its twin [`MANY_INDEXES`] more indexes.
fn make_many_files(server: &Server) {
    for i in 0..MANY_INDEXES {
        server.execute(
            "postgres",
            &format!("CREATE INDEX t_i{i} ON t (id); CREATE INDEX twin_i{i} ON twin (id)"),
        );
    }
    server.execute("postgres", "CHECKPOINT");
}

/// Makes the twin, full, with fresh indexes; and when `with_table` the empty table.
fn prepare(server: &Server, with_table: bool) {
    let mut client = server.connect("postgres");
    client
        .batch_execute(&format!(
            "CREATE EXTENSION amcheck; BEGIN;
             CREATE TABLE twin {COLUMNS};
             ALTER TABLE twin ALTER big SET STORAGE EXTERNAL;"
        ))
        .unwrap();
    let mut copy = client
        .copy_in("COPY twin FROM STDIN WITH (FREEZE)")
        .unwrap();
    for i in 0..ROWS {
        let big = if i % 100 == 0 {
            "x".repeat(5000)
        } else {
            "\\N".into()
        };
        writeln!(copy, "{i}\tvalue {}\tb{}\t{big}\t{i}.25", i % 7, i % 5).unwrap();
    }
    copy.finish().unwrap();
    client
        .batch_execute(&format!("COMMIT; {}", indexes("twin")))
        .unwrap();
    client.batch_execute("CHECKPOINT").unwrap();
    if with_table {
        client.batch_execute(&make_table()).unwrap();
    }
}

fn make_table() -> String {
    format!(
        "CREATE TABLE t {COLUMNS}; ALTER TABLE t ALTER big SET STORAGE EXTERNAL; {}",
        indexes("t")
    )
}

/// Copies the twin's files into the staging directory as the files of `table`.
fn stage(session: &mut Session, staging: &Staging, table: &Relation) -> StagedTable {
    let data = session.facts.data_directory.clone();
    let owner = session.facts.owner;
    let mut client = second_client(session);
    let twin = read::relation(&mut client, "twin").unwrap();
    let (twin_toast, toast) = (twin.toast.unwrap(), table.toast.unwrap());
    let mut copy = |oid: u32, name: &str, tablespace: u32, with_map: bool| -> StagedRelation {
        let directory = staging.directory(tablespace).to_owned();
        let path: String = client
            .query_one("SELECT pg_relation_filepath($1::oid)", &[&oid])
            .unwrap()
            .get(0);
        let mut staged = StagedRelation::default();
        let put = |from: &Path, name: &str| -> (PathBuf, u32) {
            let mut bytes = std::fs::read(from).unwrap();
            // From 16 on the server may extend a heap further than it fills it.
            while bytes
                .rchunks(support::PAGE_BYTES)
                .next()
                .is_some_and(|p| p.iter().all(|b| *b == 0))
            {
                bytes.truncate(bytes.len() - support::PAGE_BYTES);
            }
            // TOAST pointers name their table: external, ondisk, then 12 bytes, then its OID.
            for at in 0..bytes.len().saturating_sub(18) {
                if bytes[at..at + 2] == [0x01, 0x12]
                    && bytes[at + 14..at + 18] == twin_toast.oid.to_le_bytes()
                {
                    bytes[at + 14..at + 18].copy_from_slice(&toast.oid.to_le_bytes());
                }
            }
            for (block, page) in bytes
                .as_chunks_mut::<{ support::PAGE_BYTES }>()
                .0
                .iter_mut()
                .enumerate()
            {
                let sum = checksum::checksum(page, block as u32);
                checksum::store(page, sum);
            }
            let to = directory.join(name);
            let mut file = owner.create_new(&to).unwrap();
            file.write_all(&bytes).unwrap();
            file.sync_all().unwrap();
            (
                to,
                u32::try_from(bytes.len() / support::PAGE_BYTES).unwrap(),
            )
        };
        let main = data.join(&path);
        let (file, blocks) = put(&main, name);
        staged.main.push(file);
        staged.blocks = blocks;
        if with_map {
            let map = data.join(format!("{path}_vm"));
            staged
                .visibility_map
                .push(put(&map, &format!("{name}_vm")).0);
            staged.all_visible_blocks = staged.blocks;
        }
        staged.tuples = ROWS as u64;
        staged
    };
    let heap = copy(twin.oid, "heap", table.tablespace, true);
    let toast_heap = copy(twin_toast.oid, "toast", toast.tablespace, false);
    let toast_index = copy(twin_toast.index_oid, "toast_index", toast.tablespace, false);
    let indexes = table
        .indexes
        .iter()
        .filter(|i| twin_of(&twin, &i.name).is_some())
        .map(|i| {
            let oid = twin_of(&twin, &i.name).unwrap();
            (i.oid, copy(oid, &i.name, i.tablespace, false))
        })
        .collect();
    StagedTable {
        table: table.oid,
        heap,
        toast: Some((toast_heap, toast_index)),
        indexes,
    }
}

/// The twin's index `twin_v` for `t_v`.
fn twin_of(twin: &Relation, name: &str) -> Option<u32> {
    let (_, ending) = name.split_once('_')?;
    let wanted = format!("twin_{ending}");
    twin.indexes
        .iter()
        .find(|i| i.name == wanted)
        .map(|i| i.oid)
}

fn conninfo(server: &Server) -> Conninfo {
    let options = ConnectOptions {
        dbname: Some(server.conninfo("postgres")),
        ..ConnectOptions::default()
    };
    Conninfo::resolve(&options, &|_| None).unwrap()
}

/// Runs statements one by one: VACUUM wants to be alone.
fn each(client: &mut Client, sql: &str) {
    for statement in sql.split(';') {
        client.batch_execute(statement).unwrap();
    }
}

fn second_client(session: &Session) -> Client {
    session.conninfo().connect().unwrap()
}

fn to_register(relation: &Relation) -> Vec<TableToRegister> {
    vec![TableToRegister {
        relation: relation.clone(),
        truncate_allowed: false,
        native: true,
        checks_references: false,
    }]
}

/// The whole way for the table `t`.
fn load(session: &mut Session, options: Options<'_>) -> Result<()> {
    let planned = session.plan_tables(&["t"])?;
    let staging = Staging::create(&session.facts, &[0])?;
    let staged = stage(session, &staging, &planned[0]);
    let mut registration = Registration::begin(session, options)?;
    registration.take(to_register(&planned[0]))?;
    registration.put(&[staged])?;
    registration.commit()?;
    Ok(())
}

/// The server's own checkers and a comparison with the twin, row by row.
fn check_loaded(server: &Server) {
    let mut client = server.connect("postgres");
    let count: i64 = client
        .query_one("SELECT count(*) FROM t", &[])
        .unwrap()
        .get(0);
    assert_eq!(count, ROWS);
    let different: i64 = client
        .query_one(
            "SELECT count(*) FROM ((TABLE t EXCEPT ALL TABLE twin)
                                   UNION ALL (TABLE twin EXCEPT ALL TABLE t)) x",
            &[],
        )
        .unwrap()
        .get(0);
    assert_eq!(different, 0);
    support::assert_healthy(server, "postgres");
    // The index is used and gives what it should.
    client.batch_execute("SET enable_seqscan = off").unwrap();
    let found: String = client
        .query_one("SELECT v FROM t WHERE id = 2999", &[])
        .unwrap()
        .get(0);
    assert_eq!(found, "value 3");
}

/// Nothing of the load is left: the table is empty and works, no file and no journal remains.
fn check_untouched(server: &Server) {
    assert_eq!(check_works(server), Vec::<String>::new());
}

/// The same, but the files that no relation has are given back: a server that crashes after
/// TRUNCATE and before anything of ours leaves the empty files that it made.
fn check_works(server: &Server) -> Vec<String> {
    let mut client = server.connect("postgres");
    let count: i64 = client
        .query_one("SELECT count(*) FROM t", &[])
        .unwrap()
        .get(0);
    assert_eq!(count, 0);
    each(
        &mut client,
        "INSERT INTO t VALUES (1, 'a', 'b', repeat('y', 9000), 1);
         SELECT bt_index_check('t_v', true);
         DELETE FROM t; VACUUM t; CHECKPOINT",
    );
    assert!(!server.data_dir().join("pgpagewrite.journal").exists());
    let staging = server.data_dir().join("base/pgsql_tmp");
    let left = std::fs::read_dir(&staging).map_or(0, Iterator::count);
    assert_eq!(left, 0, "in {}", staging.display());
    orphans(server, &mut client)
}

/// Files of the database that no relation has.
fn orphans(server: &Server, client: &mut Client) -> Vec<String> {
    let database: u32 = client
        .query_one(
            "SELECT oid FROM pg_database WHERE datname = current_database()",
            &[],
        )
        .unwrap()
        .get(0);
    let known: Vec<String> = client
        .query(
            "SELECT pg_relation_filenode(oid)::text FROM pg_class
              WHERE pg_relation_filenode(oid) IS NOT NULL",
            &[],
        )
        .unwrap()
        .iter()
        .map(|row| row.get(0))
        .collect();
    std::fs::read_dir(server.data_dir().join(format!("base/{database}")))
        .unwrap()
        .map(|e| e.unwrap())
        .filter(|e| {
            let name = e.file_name().to_string_lossy().into_owned();
            let number = name.split(['_', '.']).next().unwrap_or_default().to_owned();
            number.bytes().all(|b| b.is_ascii_digit())
                && !number.is_empty()
                && !known.contains(&number)
        })
        .filter(|e| e.metadata().unwrap().len() > 0)
        .map(|e| e.file_name().to_string_lossy().into_owned())
        .collect()
}

fn registers_and_survives_a_crash(major: u32, wal_level: &str) {
    let mut server = Server::start(major, &[("wal_level", wal_level)]);
    prepare(&server, true);
    let mut session = Session::connect(conninfo(&server)).unwrap();
    load(&mut session, Options::default()).unwrap();
    server.stop_immediate();
    server.restart();
    check_loaded(&server);
    let mut client = server.connect("postgres");
    let row = client
        .query_one(
            "SELECT relpages > 0 AND relpages = relallvisible, reltuples, relfrozenxid::text
               FROM pg_class WHERE relname = 't'",
            &[],
        )
        .unwrap();
    assert!(row.get::<_, bool>(0));
    assert_eq!(row.get::<_, f32>(1) as i64, ROWS);
    // The files belong to whom all others belong to.
    let path: String = client
        .query_one("SELECT pg_relation_filepath('t')", &[])
        .unwrap()
        .get(0);
    let of = |p: &Path| {
        let m = std::fs::metadata(p).unwrap();
        (m.uid(), m.gid(), m.mode() & 0o7777)
    };
    assert_eq!(
        of(&server.data_dir().join(&path)),
        of(&server.data_dir().join("global/pg_control"))
    );
    each(
        &mut client,
        "UPDATE t SET v = v || '!' WHERE id % 3 = 0; DELETE FROM t WHERE id % 5 = 0;
         INSERT INTO t SELECT id + 100000, v, b, big, n + 100000 FROM twin;
         VACUUM t; SELECT bt_index_check('t_v', true); REINDEX TABLE t; ANALYZE t",
    );
    assert!(!server.data_dir().join("pgpagewrite.journal").exists());
}

macro_rules! on_every_version {
    ($($name:ident: $major:literal, $level:literal;)*) => {$(
        #[test]
        fn $name() {
            registers_and_survives_a_crash($major, $level);
        }
    )*};
}

on_every_version! {
    files_are_registered_and_survive_a_crash_14_minimal: 14, "minimal";
    files_are_registered_and_survive_a_crash_14_replica: 14, "replica";
    files_are_registered_and_survive_a_crash_15_minimal: 15, "minimal";
    files_are_registered_and_survive_a_crash_15_replica: 15, "replica";
    files_are_registered_and_survive_a_crash_15_logical: 15, "logical";
    files_are_registered_and_survive_a_crash_16_minimal: 16, "minimal";
    files_are_registered_and_survive_a_crash_16_replica: 16, "replica";
    files_are_registered_and_survive_a_crash_17_minimal: 17, "minimal";
    files_are_registered_and_survive_a_crash_17_replica: 17, "replica";
    files_are_registered_and_survive_a_crash_18_minimal: 18, "minimal";
    files_are_registered_and_survive_a_crash_18_replica: 18, "replica";
}

fn error_of<T>(result: Result<T>) -> Error {
    match result {
        Ok(_) => panic!("it went well"),
        Err(e) => e,
    }
}

fn start_15(wal_level: &str) -> Server {
    let server = Server::start(15, &[("wal_level", wal_level)]);
    prepare(&server, true);
    server
}

#[test]
fn a_table_that_changed_since_the_plan_is_refused_and_stays_as_it_is() {
    let server = start_15("replica");
    let mut session = Session::connect(conninfo(&server)).unwrap();
    let mut other = server.connect("postgres");
    for (change, undo, what) in [
        (
            "ALTER TABLE t ADD COLUMN z int",
            "ALTER TABLE t DROP COLUMN z",
            "its columns changed.",
        ),
        (
            "CREATE INDEX t_z ON t (v)",
            "DROP INDEX t_z",
            "index \"t_z\" is new.",
        ),
        (
            "DROP INDEX t_b",
            "CREATE INDEX t_b ON t (b)",
            "index \"t_b\" is gone.",
        ),
        (
            "ALTER INDEX t_v SET (fillfactor = 50)",
            "ALTER INDEX t_v RESET (fillfactor)",
            "index \"t_v\" changed.",
        ),
        (
            "ALTER TABLE t SET (fillfactor = 50)",
            "ALTER TABLE t RESET (fillfactor)",
            "its storage parameters changed.",
        ),
        (
            "ALTER TABLE t ADD CONSTRAINT c CHECK (id > 0)",
            "ALTER TABLE t DROP CONSTRAINT c",
            "its triggers, rules or constraints changed.",
        ),
        (
            "ALTER TABLE t RENAME TO t_old; CREATE TABLE t (LIKE t_old)",
            "DROP TABLE t; ALTER TABLE t_old RENAME TO t",
            "it was dropped and made anew.",
        ),
    ] {
        let planned = session.plan_tables(&["t"]).unwrap();
        other.batch_execute(change).unwrap();
        let mut registration = Registration::begin(&mut session, Options::default()).unwrap();
        let e = error_of(registration.take(to_register(&planned[0])));
        assert_eq!(e.sqlstate, "55000", "{e}");
        assert_eq!(e.message, "table \"t\" changed since the plan");
        assert_eq!(e.detail.as_deref(), Some(what));
        registration.rollback().unwrap();
        other.batch_execute(undo).unwrap();
    }
    let planned = session.plan_tables(&["t"]).unwrap();
    other.batch_execute("DROP TABLE t").unwrap();
    let mut registration = Registration::begin(&mut session, Options::default()).unwrap();
    let e = error_of(registration.take(to_register(&planned[0])));
    assert_eq!(e.sqlstate, "42P01");
}

#[test]
fn rows_that_came_since_the_plan_are_refused_or_with_truncate_replaced() {
    let server = start_15("replica");
    let mut session = Session::connect(conninfo(&server)).unwrap();
    let planned = session.plan_tables(&["t"]).unwrap();
    server.execute("postgres", "INSERT INTO t VALUES (1, 'a', 'b', 'c', 1)");
    let mut registration = Registration::begin(&mut session, Options::default()).unwrap();
    let e = error_of(registration.take(to_register(&planned[0])));
    assert_eq!(
        (e.sqlstate.as_str(), e.message.as_str()),
        ("55000", "table \"t\" is not empty")
    );
    registration.rollback().unwrap();
    assert_eq!(server.value("postgres", "SELECT count(*) FROM t"), "1");

    // Rows that are all deleted leave an empty table with blocks.
    let staging = Staging::create(&session.facts, &[0]).unwrap();
    let staged = stage(&mut session, &staging, &planned[0]);
    let mut registration = Registration::begin(&mut session, Options::default()).unwrap();
    let mut tables = to_register(&planned[0]);
    tables[0].truncate_allowed = true;
    registration.take(tables).unwrap();
    registration.put(&[staged]).unwrap();
    registration.commit().unwrap();
    check_loaded(&server);
}

#[test]
fn a_lock_is_waited_for_so_long_and_who_holds_it_is_told() {
    let server = start_15("replica");
    let mut session = Session::connect(conninfo(&server)).unwrap();
    let planned = session.plan_tables(&["t"]).unwrap();
    let mut other = server.connect("postgres");
    other
        .batch_execute("SET application_name = 'holder'; BEGIN; SELECT FROM t")
        .unwrap();
    let told = Rc::new(RefCell::new(Vec::new()));
    let tell = Rc::clone(&told);
    let options = Options {
        lock_wait: Duration::from_millis(1500),
        progress: Box::new(move |event| {
            if let Event::Waiting {
                table, blockers, ..
            } = event
            {
                tell.borrow_mut()
                    .push(format!("{table} {}", blockers[0].application));
            }
        }),
        ..Options::default()
    };
    let mut registration = Registration::begin(&mut session, options).unwrap();
    let e = error_of(registration.take(to_register(&planned[0])));
    assert_eq!(e.sqlstate, "55P03");
    assert!(e.detail.unwrap().contains("(holder), idle in transaction"));
    drop(registration);
    assert_eq!(
        *told.borrow(),
        ["\"public\".\"t\" holder", "\"public\".\"t\" holder"]
    );

    // Released in time, the load goes on.
    let holder = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(1300));
        other.batch_execute("COMMIT").unwrap();
    });
    load(&mut session, Options::default()).unwrap();
    holder.join().unwrap();
    check_loaded(&server);
}

#[test]
fn a_load_past_the_wal_is_refused_while_a_slot_or_an_archive_needs_it() {
    let server = Server::start(
        15,
        &[
            ("wal_level", "replica"),
            ("archive_mode", "on"),
            ("archive_command", "true"),
        ],
    );
    prepare(&server, true);
    let mut session = Session::connect(conninfo(&server)).unwrap();
    server.execute(
        "postgres",
        "SELECT pg_create_physical_replication_slot('standby_1')",
    );
    let e = error_of(load(&mut session, Options::default()));
    assert_eq!(e.sqlstate, "55000");
    assert_eq!(
        e.detail.as_deref(),
        Some("there are replication slots (standby_1); archive_mode is on.")
    );
    let bypass = || Options {
        bypass_wal: true,
        ..Options::default()
    };
    load(&mut session, bypass()).unwrap();
    check_loaded(&server);
}

#[test]
fn a_slot_that_appears_during_the_load_is_seen_before_commit() {
    let server = start_15("replica");
    let mut session = Session::connect(conninfo(&server)).unwrap();
    let address = server.conninfo("postgres");
    faults::arm(move |point| {
        if point == "updated" {
            Client::connect(&address, postgres::NoTls)
                .unwrap()
                .batch_execute("SELECT pg_create_physical_replication_slot('late')")
                .unwrap();
        }
        Ok(())
    });
    let e = error_of(load(&mut session, Options::default()));
    faults::disarm();
    assert_eq!(e.sqlstate, "55000");
    drop(session);
    check_untouched(&server);
}

#[test]
fn a_connected_receiver_of_wal_is_named() {
    let server = start_15("replica");
    let directory = server.dir().join("received");
    std::fs::create_dir(&directory).unwrap();
    let meta = std::fs::metadata(server.data_dir()).unwrap();
    std::os::unix::fs::chown(&directory, Some(meta.uid()), Some(meta.gid())).unwrap();
    let mut receiver = server
        .server_program("pg_receivewal")
        .args(["-D"])
        .arg(&directory)
        // Without -n it would outlive a failure of the test.
        .args(["-n", "-d", &server.conninfo("postgres")])
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    while server.value("postgres", "SELECT count(*) FROM pg_stat_replication") == "0" {
        std::thread::sleep(Duration::from_millis(20));
    }
    let mut session = Session::connect(conninfo(&server)).unwrap();
    let e = error_of(load(&mut session, Options::default()));
    receiver.kill().unwrap();
    receiver.wait().unwrap();
    assert_eq!(
        e.detail.as_deref(),
        Some("a standby, subscriber or backup is connected (pg_receivewal).")
    );
}

/// The postmaster of a data directory ends at once, as in a crash.
fn crash_postmaster(data: &Path) {
    let text = std::fs::read_to_string(data.join("postmaster.pid")).unwrap();
    let pid: u32 = text.lines().next().unwrap().parse().unwrap();
    credentials::signal(pid, libc::SIGQUIT).unwrap();
    // Its parent reaps it later: a zombie has ended.
    while std::fs::read_to_string(format!("/proc/{pid}/stat"))
        .is_ok_and(|stat| !stat.contains(") Z "))
    {
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn a_server_that_crashes_leaves_the_old_state(major: u32, wal_level: &str, points: &[&str]) {
    let server = Server::start(major, &[("wal_level", wal_level)]);
    prepare(&server, true);
    crashes_at(server, points);
}

fn crashes_at(mut server: Server, points: &[&str]) {
    let mut known_orphans = Vec::new();
    for point in points {
        let mut session = Session::connect(conninfo(&server)).unwrap();
        let data = server.data_dir();
        let at = (*point).to_owned();
        faults::arm(move |point| {
            if point == at {
                crash_postmaster(&data);
            }
            Ok(())
        });
        // COMMIT would wait for the server to come back.
        if *point == "committing" {
            faults::disarm();
            let data = server.data_dir();
            faults::arm(move |point| {
                if point == "committing" {
                    crash_postmaster(&data);
                    return Err(Error::environment("08006", "the tool ends too"));
                }
                Ok(())
            });
        }
        let e = error_of(load(&mut session, Options::default()));
        faults::disarm();
        assert!(
            e.sqlstate.starts_with("08") || e.sqlstate.starts_with("57"),
            "{point}: {e}"
        );
        drop(session);
        server.stop_immediate();
        server.restart();
        // COMMIT was not reached: whatever was renamed is taken away.
        let journalled = server.data_dir().join("pgpagewrite.journal").exists();
        let session = Session::connect(conninfo(&server)).unwrap();
        assert_eq!(
            session.recovered.aborted.len(),
            usize::from(journalled),
            "{point}"
        );
        assert_eq!(session.recovered.files_removed > 0, journalled, "{point}");
        drop(session);
        let mut orphans = check_works(&server);
        if ["emptied", "checkpointed"].contains(point) {
            known_orphans.append(&mut orphans);
        }
        orphans.retain(|o| !known_orphans.contains(o));
        assert_eq!(orphans, Vec::<String>::new(), "{point}");
    }
}

#[test]
fn a_server_that_crashes_at_any_step_leaves_the_old_state_15_replica() {
    a_server_that_crashes_leaves_the_old_state(15, "replica", &faults::POINTS);
}

#[test]
fn a_server_that_crashes_at_any_step_leaves_the_old_state_15_minimal() {
    a_server_that_crashes_leaves_the_old_state(15, "minimal", &faults::POINTS);
}

#[test]
fn a_server_that_crashes_late_leaves_the_old_state_14_and_18() {
    a_server_that_crashes_leaves_the_old_state(14, "minimal", &["renamed", "committing"]);
    a_server_that_crashes_leaves_the_old_state(18, "replica", &["renamed", "committing"]);
}

#[test]
fn a_server_that_crashes_at_any_step_of_many_files_leaves_the_old_state() {
    let server = start_15("minimal");
    make_many_files(&server);
    crashes_at(server, &faults::POINTS);
    for major in [14, 16, 17, 18] {
        let server = Server::start(major, &[("wal_level", "minimal")]);
        prepare(&server, true);
        make_many_files(&server);
        crashes_at(server, &["journalled", "renamed", "committing"]);
    }
}

/// COMMIT logs the pages of many files at wal_level minimal: a crash meanwhile leaves all or
/// nothing, and the answer that was lost is found.
#[test]
fn a_server_that_crashes_within_the_commit_of_many_files_has_all_or_nothing() {
    let mut server = start_15("minimal");
    make_many_files(&server);
    for delay_ms in [0, 1, 3, 6, 10, 15, 25, 500] {
        let info = conninfo(&server);
        let (committing, told) = std::sync::mpsc::channel();
        let loaded = std::thread::scope(|scope| {
            let loading = scope.spawn(move || {
                faults::arm(move |point| {
                    if point == "committing" {
                        committing.send(()).unwrap();
                    }
                    Ok(())
                });
                let mut session = Session::connect(info).unwrap();
                load(&mut session, Options::default())
            });
            told.recv().unwrap();
            std::thread::sleep(Duration::from_millis(delay_ms));
            server.stop_immediate();
            server.restart();
            loading.join().unwrap()
        });
        match loaded {
            Ok(()) => {
                check_loaded(&server);
                server.execute("postgres", "TRUNCATE t");
            }
            Err(e) => {
                assert_eq!(e.sqlstate, "08006", "{delay_ms} ms: {e}");
                check_untouched(&server);
            }
        }
    }
}

/// Not a test of its own: the program that the next test kills. It loads the table of the
/// server that the environment names, and aborts where `PGPAGEWRITE_FAULT` says.
#[test]
#[ignore = "run by another test"]
fn child_that_loads() {
    let Ok(connection) = std::env::var("REGISTRATION_TEST_SERVER") else {
        return;
    };
    let options = ConnectOptions {
        dbname: Some(connection),
        ..ConnectOptions::default()
    };
    let mut session = Session::connect(Conninfo::resolve(&options, &|_| None).unwrap()).unwrap();
    load(&mut session, Options::default()).unwrap();
    session.finish().unwrap();
}

fn run_child(server: &Server, fault: &str) -> std::process::ExitStatus {
    std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "child_that_loads", "--ignored"])
        .env("REGISTRATION_TEST_SERVER", server.conninfo("postgres"))
        .env("PGPAGEWRITE_FAULT", fault)
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::null())
        .status()
        .unwrap()
}

#[test]
fn a_tool_that_dies_at_any_step_leaves_the_old_state() {
    let server = start_15("replica");
    for point in faults::POINTS {
        assert!(!run_child(&server, point).success(), "{point}");
        // Its backend notices, rolls back, and removes its files.
        while server.value(
            "postgres",
            "SELECT count(*) FROM pg_locks WHERE relation = 't'::regclass
                AND pid <> pg_backend_pid()",
        ) != "0"
        {
            std::thread::sleep(Duration::from_millis(10));
        }
        let session = Session::connect(conninfo(&server)).unwrap();
        assert_eq!(session.recovered.in_doubt, Vec::<u64>::new());
        assert_eq!(session.recovered.staging_removed, 1, "{point}");
        drop(session);
        check_untouched(&server);
    }
    assert!(run_child(&server, "nowhere").success());
    check_loaded(&server);
}

/// Stands between the tool and the server, and cuts the first connection at its COMMIT.
struct Cut {
    directory: tempfile::TempDir,
}

impl Cut {
    /// `forward`: the server gets the COMMIT, and its answer is lost; else it gets nothing.
    fn new(server: &Server, forward: bool) -> Cut {
        use std::os::unix::net::{UnixListener, UnixStream};
        let directory = tempfile::tempdir_in("/tmp").unwrap();
        let listener = UnixListener::bind(directory.path().join(".s.PGSQL.5432")).unwrap();
        let real = server.dir().join(".s.PGSQL.5432");
        std::thread::spawn(move || {
            for (number, client) in listener.incoming().enumerate() {
                let (Ok(mut client), Ok(mut server)) = (client, UnixStream::connect(&real)) else {
                    return;
                };
                let (mut to_client, mut from_server) =
                    (client.try_clone().unwrap(), server.try_clone().unwrap());
                std::thread::spawn(move || {
                    let _ = std::io::copy(&mut from_server, &mut to_client);
                    let _ = to_client.shutdown(std::net::Shutdown::Both);
                });
                std::thread::spawn(move || {
                    let mut buffer = vec![0; 65536];
                    while let Ok(n @ 1..) = std::io::Read::read(&mut client, &mut buffer) {
                        let commits = buffer[..n].windows(7).any(|w| w == b"COMMIT\0");
                        if number == 0 && commits {
                            client.shutdown(std::net::Shutdown::Both).unwrap();
                            if forward {
                                server.write_all(&buffer[..n]).unwrap();
                                std::thread::sleep(Duration::from_millis(500));
                            }
                            break;
                        }
                        if server.write_all(&buffer[..n]).is_err() {
                            break;
                        }
                    }
                    let _ = server.shutdown(std::net::Shutdown::Both);
                });
            }
        });
        Cut { directory }
    }

    fn conninfo(&self) -> Conninfo {
        Conninfo::for_socket(self.directory.path(), 5432, "postgres", "postgres")
    }
}

#[test]
fn a_commit_whose_answer_is_lost_is_asked_for_and_found_committed() {
    let server = start_15("replica");
    let cut = Cut::new(&server, true);
    let mut session = Session::connect(cut.conninfo()).unwrap();
    let planned = session.plan_tables(&["t"]).unwrap();
    let staging = Staging::create(&session.facts, &[0]).unwrap();
    let staged = {
        // The twin is read over a connection of its own.
        let mut plain = Session::connect(conninfo(&server)).unwrap();
        stage(&mut plain, &staging, &planned[0])
    };
    let mut registration = Registration::begin(&mut session, Options::default()).unwrap();
    registration.take(to_register(&planned[0])).unwrap();
    registration.put(&[staged]).unwrap();
    let committed = registration.commit().unwrap();
    assert!(committed.answer_was_lost);
    drop(staging);
    check_loaded(&server);
    assert!(!server.data_dir().join("pgpagewrite.journal").exists());
}

#[test]
fn a_commit_that_never_arrived_is_an_error_and_leaves_nothing() {
    let server = start_15("minimal");
    let cut = Cut::new(&server, false);
    let mut session = Session::connect(cut.conninfo()).unwrap();
    let planned = session.plan_tables(&["t"]).unwrap();
    let staging = Staging::create(&session.facts, &[0]).unwrap();
    let staged = {
        let mut plain = Session::connect(conninfo(&server)).unwrap();
        stage(&mut plain, &staging, &planned[0])
    };
    let mut registration = Registration::begin(&mut session, Options::default()).unwrap();
    registration.take(to_register(&planned[0])).unwrap();
    registration.put(&[staged]).unwrap();
    let e = error_of(registration.commit());
    assert_eq!(e.sqlstate, "08006");
    drop(staging);
    check_untouched(&server);
}

fn a_table_made_by_the_script_of_the_same_transaction(major: u32, wal_level: &str) {
    let mut server = Server::start(major, &[("wal_level", wal_level)]);
    prepare(&server, false);
    let mut session = Session::connect(conninfo(&server)).unwrap();
    let staging = Staging::create(&session.facts, &[0]).unwrap();
    let mut plain = Session::connect(conninfo(&server)).unwrap();
    let mut registration = Registration::begin(&mut session, Options::default()).unwrap();
    // Planning a query on it puts the index's metapage into the shared buffers.
    let script = format!(
        "SET search_path = '';\nSET search_path = public;\n{}\nANALYZE t; SELECT * FROM t WHERE id = 1;",
        make_table()
    );
    registration.run_script(&script, "schema.sql").unwrap();
    let planned = registration.plan_tables(&["t"]).unwrap();
    assert!(planned[0].indexes.iter().all(|i| i.allequalimage.is_some()));
    let staged = stage(&mut plain, &staging, &planned[0]);
    registration.take(to_register(&planned[0])).unwrap();
    registration.put(&[staged]).unwrap();
    registration.commit().unwrap();
    server.stop_immediate();
    server.restart();
    check_loaded(&server);
}

#[test]
fn a_table_made_in_the_same_transaction_is_loaded_at_wal_level_minimal() {
    for major in support::VERSIONS {
        a_table_made_by_the_script_of_the_same_transaction(major, "minimal");
    }
}

#[test]
fn a_table_made_in_the_same_transaction_is_loaded_at_wal_level_replica() {
    for major in support::VERSIONS {
        a_table_made_by_the_script_of_the_same_transaction(major, "replica");
    }
}

#[test]
fn an_error_in_a_script_names_file_and_line_and_rolls_back() {
    let server = start_15("replica");
    let mut session = Session::connect(conninfo(&server)).unwrap();
    let mut registration = Registration::begin(&mut session, Options::default()).unwrap();
    let e = error_of(registration.run_script(
        "CREATE TABLE made (a int);\n\nINSERT INTO made\n  VALUES (1),\n  (nothing);",
        "schema.sql",
    ));
    assert_eq!(e.sqlstate, "42703");
    assert_eq!(e.places[0].to_string(), "schema.sql, line 5");
    drop(registration);
    assert_eq!(
        server.value("postgres", "SELECT to_regclass('made') IS NULL"),
        "t"
    );
}

#[test]
fn a_referenced_table_is_loaded_and_its_cluster_mark_stays() {
    for (major, marked) in [(14, "t_v"), (15, ""), (18, "t_v")] {
        let mut server = Server::start(major, &[("wal_level", "replica")]);
        prepare(&server, true);
        server.execute("postgres", "CREATE TABLE child (id int REFERENCES t)");
        if !marked.is_empty() {
            server.execute("postgres", &format!("ALTER TABLE t CLUSTER ON {marked}"));
        }
        let mut session = Session::connect(conninfo(&server)).unwrap();
        load(&mut session, Options::default()).unwrap();
        drop(session);
        server.stop_immediate();
        server.restart();
        check_loaded(&server);
        server.execute("postgres", "INSERT INTO child VALUES (7)");
        assert_eq!(
            server.value(
                "postgres",
                "SELECT coalesce(string_agg(indexrelid::regclass::text, ','), '')
                   FROM pg_index WHERE indisclustered",
            ),
            marked
        );
        // With rows in it, it cannot be emptied without the table that references it.
        let mut session = Session::connect(conninfo(&server)).unwrap();
        let planned = session.plan_tables(&["t"]).unwrap();
        let mut registration = Registration::begin(&mut session, Options::default()).unwrap();
        let mut tables = to_register(&planned[0]);
        tables[0].truncate_allowed = true;
        let e = error_of(registration.take(tables));
        assert_eq!(
            (e.sqlstate.as_str(), e.message.as_str()),
            (
                "0A000",
                "cannot truncate a table referenced in a foreign key constraint"
            )
        );
    }
}

#[test]
fn what_the_server_builds_and_copies_belongs_to_the_same_transaction() {
    for major in support::VERSIONS {
        let mut server = Server::start(major, &[("wal_level", "minimal")]);
        prepare(&server, true);
        server.execute(
            "postgres",
            "CREATE INDEX t_hash ON t USING hash (v);
             CREATE INDEX t_expression ON t (lower(v));
             CREATE INDEX t_invalid ON t (n, v);
             UPDATE pg_index SET indisvalid = false WHERE indexrelid = 't_invalid'::regclass;
             CREATE TABLE fallback (a int PRIMARY KEY, b point)",
        );
        let mut session = Session::connect(conninfo(&server)).unwrap();
        let planned = session.plan_tables(&["t", "fallback"]).unwrap();
        assert_eq!(planned[0].indexes.len(), 7);
        let staging = Staging::create(&session.facts, &[0]).unwrap();
        let staged = stage(&mut session, &staging, &planned[0]);
        let built: Vec<u32> = staged.indexes.iter().map(|(oid, _)| *oid).collect();
        let mut registration = Registration::begin(&mut session, Options::default()).unwrap();
        let mut tables = to_register(&planned[0]);
        tables.push(TableToRegister {
            relation: planned[1].clone(),
            truncate_allowed: false,
            native: false,
            checks_references: false,
        });
        registration.take(tables).unwrap();
        registration.put(&[staged]).unwrap();
        for index in planned[0]
            .indexes
            .iter()
            .filter(|i| !built.contains(&i.oid))
        {
            registration.reindex(index).unwrap();
        }
        let rows = registration
            .copy_in(
                "COPY fallback FROM STDIN (FREEZE)",
                &mut "1\t(1,2)\n2\t(3,4)\n".as_bytes(),
            )
            .unwrap();
        assert_eq!(rows, 2);
        registration.commit().unwrap();
        server.stop_immediate();
        server.restart();
        check_loaded(&server);
        assert_eq!(
            server.value("postgres", "SELECT count(*) FROM fallback"),
            "2"
        );
        server.execute(
            "postgres",
            "SET enable_seqscan = off; SET enable_bitmapscan = off",
        );
        let mut client = server.connect("postgres");
        client.batch_execute("SET enable_seqscan = off").unwrap();
        for condition in ["v = 'value 3'", "lower(v) = 'value 3'"] {
            let found: i64 = client
                .query_one(&format!("SELECT count(*) FROM t WHERE {condition}"), &[])
                .unwrap()
                .get(0);
            assert_eq!(found, 429, "{condition}");
        }
        assert_eq!(
            server.value("postgres", "SELECT bool_and(indisvalid) FROM pg_index"),
            "t"
        );
    }
}

#[test]
fn an_error_of_the_servers_copy_comes_with_its_line() {
    let server = start_15("replica");
    server.execute("postgres", "CREATE TABLE fallback (a int)");
    let mut session = Session::connect(conninfo(&server)).unwrap();
    let mut registration = Registration::begin(&mut session, Options::default()).unwrap();
    let many = format!("{}x\n", "1\n".repeat(1_000_000));
    let e = error_of(registration.copy_in("COPY fallback FROM STDIN", &mut many.as_bytes()));
    assert_eq!(e.sqlstate, "22P02");
    assert_eq!(e.places[0].line, 1_000_001);
}

#[test]
fn a_table_with_truncate_triggers_gets_new_files_without_firing_them() {
    let server = start_15("replica");
    server.execute(
        "postgres",
        "CREATE FUNCTION no() RETURNS trigger LANGUAGE plpgsql AS
           $$ BEGIN RAISE EXCEPTION 'fired'; END $$;
         CREATE TRIGGER no BEFORE TRUNCATE ON t EXECUTE FUNCTION no()",
    );
    let mut session = Session::connect(conninfo(&server)).unwrap();
    load(&mut session, Options::default()).unwrap();
    check_loaded(&server);
}

#[test]
fn files_in_tablespaces_are_staged_where_they_belong() {
    for (major, wal_level) in [(14, "minimal"), (18, "replica")] {
        let mut server = Server::start(major, &[("wal_level", wal_level)]);
        prepare(&server, true);
        let directory = server.dir().join("space");
        let meta = std::fs::metadata(server.data_dir()).unwrap();
        std::fs::create_dir(&directory).unwrap();
        std::os::unix::fs::chown(&directory, Some(meta.uid()), Some(meta.gid())).unwrap();
        server.execute(
            "postgres",
            &format!("CREATE TABLESPACE space LOCATION '{}'", directory.display()),
        );
        server.execute(
            "postgres",
            "ALTER TABLE t SET TABLESPACE space; ALTER INDEX t_b SET TABLESPACE space",
        );
        let mut session = Session::connect(conninfo(&server)).unwrap();
        let planned = session.plan_tables(&["t"]).unwrap();
        let space = planned[0].tablespace;
        assert_eq!(planned[0].toast.unwrap().tablespace, space);
        let staging = Staging::create(&session.facts, &[0, space]).unwrap();
        assert_eq!(staging.directories().count(), 2);
        let staged = stage(&mut session, &staging, &planned[0]);
        let mut registration = Registration::begin(&mut session, Options::default()).unwrap();
        registration.take(to_register(&planned[0])).unwrap();
        registration.put(&[staged]).unwrap();
        registration.commit().unwrap();
        drop(staging);
        drop(session);
        server.stop_immediate();
        server.restart();
        check_loaded(&server);
    }
}

#[test]
fn an_unlogged_table_keeps_its_init_forks() {
    let mut server = start_15("replica");
    server.execute("postgres", "ALTER TABLE t SET UNLOGGED");
    let mut session = Session::connect(conninfo(&server)).unwrap();
    load(&mut session, Options::default()).unwrap();
    drop(session);
    server.restart();
    check_loaded(&server);
    // A crash empties it, as any unlogged table.
    server.stop_immediate();
    server.restart();
    check_untouched(&server);
}

#[test]
fn a_table_without_rows_needs_no_files() {
    let mut server = start_15("replica");
    let mut session = Session::connect(conninfo(&server)).unwrap();
    let planned = session.plan_tables(&["t"]).unwrap();
    let mut registration = Registration::begin(&mut session, Options::default()).unwrap();
    registration.take(to_register(&planned[0])).unwrap();
    assert!(registration.has_new_files(planned[0].oid));
    registration
        .put(&[StagedTable {
            table: planned[0].oid,
            heap: StagedRelation::default(),
            toast: None,
            indexes: Vec::new(),
        }])
        .unwrap();
    registration.commit().unwrap();
    drop(session);
    server.stop_immediate();
    server.restart();
    check_untouched(&server);
}

#[test]
#[should_panic(expected = "were not built")]
fn a_table_whose_index_was_forgotten_is_never_committed() {
    let server = start_15("replica");
    let mut session = Session::connect(conninfo(&server)).unwrap();
    let planned = session.plan_tables(&["t"]).unwrap();
    let staging = Staging::create(&session.facts, &[0]).unwrap();
    let mut staged = stage(&mut session, &staging, &planned[0]);
    staged.indexes.pop();
    let mut registration = Registration::begin(&mut session, Options::default()).unwrap();
    registration.take(to_register(&planned[0])).unwrap();
    registration.put(&[staged]).unwrap();
    let _ = registration.commit();
}

#[test]
fn staged_files_that_are_gone_are_an_error_at_once() {
    let server = start_15("replica");
    let mut session = Session::connect(conninfo(&server)).unwrap();
    let planned = session.plan_tables(&["t"]).unwrap();
    let staging = Staging::create(&session.facts, &[0]).unwrap();
    let staged = stage(&mut session, &staging, &planned[0]);
    staging.check().unwrap();
    // As a server does that restarts after a crash of one of its processes.
    std::fs::remove_dir_all(staging.directory(0)).unwrap();
    assert_eq!(error_of(staging.check()).sqlstate, "57P02");
    let mut registration = Registration::begin(&mut session, Options::default()).unwrap();
    registration.take(to_register(&planned[0])).unwrap();
    let e = error_of(registration.put(&[staged]));
    assert_eq!(e.sqlstate, "57P02", "{e}");
    drop(registration);
    drop(session);
    check_untouched(&server);
}

#[test]
fn value_ids_end_below_the_counter() {
    let server = Server::start(15, &[]);
    server.value(
        "postgres",
        "SELECT count(pg_nextoid('pg_class', 'oid', 'pg_class_oid_index'))
           FROM generate_series(1, 1000)",
    );
    let mut session = Session::connect(conninfo(&server)).unwrap();
    let first = session.toast_value_ids(10).unwrap();
    let next: u32 = server
        .value(
            "postgres",
            "SELECT pg_nextoid('pg_class', 'oid', 'pg_class_oid_index')",
        )
        .parse()
        .unwrap();
    assert!(first + 10 <= next, "{first} {next}");
    // A new cluster has no room below for many: they end at the last OID.
    assert_eq!(
        session.toast_value_ids(1_000_000).unwrap(),
        u32::MAX - 1_000_000 + 1
    );
}
