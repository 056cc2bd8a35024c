//! Targets and catalogs on real servers: private starts, new clusters, what is read of a
//! table on every version, and what is refused.

use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::Path;

use pgformat::layout::Compression;
use pgpagewrite::catalog::{Relation, read};
use pgpagewrite::cluster::conninfo::{ConnectOptions, Conninfo};
use pgpagewrite::cluster::facts::{Facts, WalLevel};
use pgpagewrite::cluster::recover;
use pgpagewrite::cluster::session::Session;
use pgpagewrite::cluster::target::Target;
use pgpagewrite::error::{Error, Result};
use pgpagewrite::sys::credentials;
use support::Server;

fn no_environment(_: &str) -> Option<String> {
    None
}

fn error_of<T>(result: Result<T>) -> Error {
    match result {
        Ok(_) => panic!("it went well"),
        Err(e) => e,
    }
}

fn connect(server: &Server) -> Session {
    let options = ConnectOptions {
        dbname: Some(server.conninfo("postgres")),
        ..ConnectOptions::default()
    };
    Session::connect(Conninfo::resolve(&options, &no_environment).unwrap()).unwrap()
}

fn stopped(server: &Server) -> Target {
    Target {
        pgdata: Some(server.data_dir()),
        pg_bin: Some(server.bin_dir().to_owned()),
        ..Target::default()
    }
}

#[test]
fn a_stopped_cluster_is_started_privately_and_stopped_again() {
    for version in support::VERSIONS {
        let mut server = Server::start(version, &[]);
        let e = error_of(stopped(&server).open(&no_environment));
        assert_eq!(e.sqlstate, "55000", "{e}");
        server.execute("postgres", "CREATE TABLE t (a int PRIMARY KEY)");
        server.stop();
        // What only this start needs is no setting of the cluster.
        std::fs::write(
            server.data_dir().join("pg_hba.conf"),
            "local all all reject\n",
        )
        .unwrap();
        let mut session = stopped(&server).open(&no_environment).unwrap();
        assert!(session.is_private());
        assert_eq!(session.facts.data_directory, server.data_dir());
        assert_eq!(session.plan_tables(&["t"]).unwrap()[0].name, "t");
        let pid = session.private_pid().unwrap();
        let process = format!("/proc/{pid}");
        assert_eq!(
            std::fs::metadata(&process).unwrap().uid(),
            std::fs::metadata(server.data_dir()).unwrap().uid()
        );
        session.finish().unwrap();
        assert!(!Path::new(&process).exists());
        // Without `finish` it stops too.
        let session = stopped(&server).open(&no_environment).unwrap();
        let process = format!("/proc/{}", session.private_pid().unwrap());
        drop(session);
        assert!(!Path::new(&process).exists());
        assert!(!server.data_dir().join("postmaster.pid").exists());
    }
}

#[test]
fn a_cluster_without_its_configuration_is_started_all_the_same() {
    let server = Server::prepare(15, &[]);
    for file in ["postgresql.conf", "pg_hba.conf", "pg_ident.conf"] {
        std::fs::remove_file(server.data_dir().join(file)).unwrap();
    }
    let session = stopped(&server).open(&no_environment).unwrap();
    session.finish().unwrap();
}

#[test]
fn a_server_that_does_not_start_is_an_error_with_its_log() {
    let server = Server::prepare(15, &[]);
    let mut target = stopped(&server);
    target.settings = vec!["shared_buffers=nonsense".into()];
    let e = error_of(target.open(&no_environment));
    assert_eq!(e.sqlstate, "57P03");
    assert!(e.detail.unwrap().contains("shared_buffers"));
    let e = error_of(
        Target {
            pg_bin: Some(Server::prepare(14, &[]).bin_dir().to_owned()),
            ..stopped(&server)
        }
        .open(&no_environment),
    );
    assert_eq!(
        e.message,
        "could not find the programs of PostgreSQL 15 (initdb, postgres)"
    );
}

#[test]
fn a_new_cluster_is_made_loaded_without_wal_and_left_with_its_normal_settings() {
    for version in support::VERSIONS {
        let programs = Server::prepare(version, &[]).bin_dir().to_owned();
        let parent = tempfile::tempdir_in("/tmp").unwrap();
        // The owner must reach it; only root may write to it.
        std::fs::set_permissions(
            parent.path(),
            std::os::unix::fs::PermissionsExt::from_mode(0o755),
        )
        .unwrap();
        let data = parent.path().join("new");
        let target = Target {
            pgdata: Some(data.clone()),
            create_cluster: true,
            database: Some("shop".into()),
            pg_bin: Some(programs),
            ..Target::default()
        };
        let mut session = target.open(&no_environment).unwrap();
        assert_eq!(session.facts.wal_level, WalLevel::Minimal);
        assert!(session.facts.checksums);
        assert_eq!(session.facts.server_encoding, "UTF8");
        assert!(session.facts.database_name.starts_with("pgpagewrite_"));
        let superuser: String = session
            .client()
            .query_one("SELECT current_user::text", &[])
            .unwrap()
            .get(0);
        session
            .client()
            .batch_execute("CREATE TABLE t (a int)")
            .unwrap();
        session.finish().unwrap();
        let hba = std::fs::read_to_string(data.join("pg_hba.conf")).unwrap();
        let methods: Vec<&str> = hba
            .lines()
            .filter(|line| !line.starts_with('#'))
            .filter_map(|line| line.split_whitespace().last())
            .collect();
        let (peer, scram) = ("peer", "scram-sha-256");
        assert_eq!(methods, [peer, scram, scram, peer, scram, scram]);
        let configuration = std::fs::read_to_string(data.join("postgresql.conf")).unwrap();
        assert!(!configuration.contains("\nwal_level"));
        assert_eq!(std::fs::metadata(&data).unwrap().mode() & 0o777, 0o700);

        // Again: it is not empty now. And it opens as a stopped cluster.
        let e = error_of(target.open(&no_environment));
        assert_eq!(e.sqlstate, "58P02");
        let existing = Target {
            create_cluster: false,
            ..target
        };
        let mut session = existing.open(&no_environment).unwrap();
        assert_eq!(session.facts.database_name, "shop");
        assert_eq!(session.facts.wal_level, WalLevel::Replica);
        assert_eq!(session.plan_tables(&["t"]).unwrap().len(), 1);
        session.finish().unwrap();
        assert!(!superuser.is_empty());
    }
}

#[test]
fn a_new_cluster_that_is_not_finished_is_removed() {
    let programs = Server::prepare(15, &[]).bin_dir().to_owned();
    let parent = tempfile::tempdir_in("/tmp").unwrap();
    std::fs::set_permissions(
        parent.path(),
        std::os::unix::fs::PermissionsExt::from_mode(0o755),
    )
    .unwrap();
    let mut target = Target {
        pgdata: Some(parent.path().join("new")),
        create_cluster: true,
        pg_bin: Some(programs),
        ..Target::default()
    };
    drop(target.open(&no_environment).unwrap());
    assert!(!parent.path().join("new").exists());

    // A directory that was there stays, empty.
    std::fs::create_dir(parent.path().join("new")).unwrap();
    target.initdb_options = vec!["--no-such-option".into()];
    let e = error_of(target.open(&no_environment));
    assert!(e.detail.unwrap().contains("no-such-option"));
    let left = std::fs::read_dir(parent.path().join("new"))
        .unwrap()
        .count();
    assert_eq!(left, 0);
}

/// Not a test of its own: what the next test runs as the cluster's owner.
#[test]
#[ignore = "run by another test"]
fn child_that_opens() {
    let (Ok(data), Ok(bin)) = (
        std::env::var("CLUSTER_TEST_DATA"),
        std::env::var("CLUSTER_TEST_BIN"),
    ) else {
        return;
    };
    let target = Target {
        pgdata: Some(data.into()),
        pg_bin: Some(bin.into()),
        ..Target::default()
    };
    target.open(&no_environment).unwrap().finish().unwrap();
}

#[test]
fn the_owner_of_a_cluster_needs_no_root() {
    if credentials::effective_uid() != 0 {
        // Then every other test here shows it.
        return;
    }
    let server = Server::prepare(15, &[]);
    let meta = std::fs::metadata(server.data_dir()).unwrap();
    // The test program lies where its user may not look.
    let program = server.dir().join("program");
    std::fs::copy(std::env::current_exe().unwrap(), &program).unwrap();
    let run = |uid: u32, gid: u32| {
        std::process::Command::new(&program)
            .args(["--exact", "child_that_opens", "--ignored"])
            .env("CLUSTER_TEST_DATA", server.data_dir())
            .env("CLUSTER_TEST_BIN", server.bin_dir())
            .env_remove("HOME")
            .uid(uid)
            .gid(gid)
            .current_dir("/")
            .output()
            .unwrap()
    };
    let output = run(meta.uid(), meta.gid());
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && said.contains("1 passed"),
        "{said}{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

#[test]
fn root_is_authenticated_as_the_servers_owner_by_peer() {
    if credentials::effective_uid() != 0 {
        return;
    }
    let mut server = Server::start(15, &[]);
    server.stop();
    std::fs::write(
        server.data_dir().join("pg_hba.conf"),
        "local all all peer\n",
    )
    .unwrap();
    // The harness itself connects as root, whom peer refuses: so it is started privately and
    // reached by its socket file.
    let owner = std::fs::metadata(server.data_dir()).unwrap().uid();
    let mut command = server.server_program("postgres");
    let socket = server.dir().display().to_string();
    let mut child = command
        .arg("-D")
        .arg(server.data_dir())
        .args(["-k", &socket, "-p", "5432", "-c", "listen_addresses="])
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    while !server.dir().join(".s.PGSQL.5432").exists() {
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    let options = ConnectOptions {
        host: Some(socket),
        ..ConnectOptions::default()
    };
    let info = Conninfo::resolve(&options, &no_environment).unwrap();
    let mut seen = None;
    for _ in 0..200 {
        if let Ok(mut client) = info.connect() {
            let user: String = client
                .query_one("SELECT current_user::text", &[])
                .unwrap()
                .get(0);
            seen = Some(user);
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    credentials::signal(child.id(), libc::SIGQUIT).unwrap();
    child.wait().unwrap();
    assert_eq!(seen, credentials::user_by_uid(owner).map(|u| u.name));
    assert_eq!(credentials::effective_uid(), 0);
}

#[test]
fn facts_are_what_the_server_says() {
    support::each_version(&[("wal_level", "logical")], |server| {
        let session = connect(server);
        let facts = &session.facts;
        assert_eq!(u32::from(facts.version.number()), server.version());
        assert_eq!(facts.wal_level, WalLevel::Logical);
        assert_eq!(facts.segment_blocks, 131_072);
        assert_eq!(facts.database_name, "postgres");
        assert_eq!(facts.database_tablespace, 1663);
        assert!(facts.checksums);
        assert!(facts.share_directory.join("timezonesets").is_dir());
        assert!(facts.timezone_directory.join("Europe").is_dir());
    });
}

#[test]
fn a_server_without_our_files_or_our_rights_is_refused() {
    let server = Server::start(15, &[]);
    server.execute("postgres", "CREATE ROLE plain LOGIN");
    let options = ConnectOptions {
        dbname: Some(format!("{} user=plain", server.conninfo("postgres"))),
        ..ConnectOptions::default()
    };
    let e = error_of(Session::connect(
        Conninfo::resolve(&options, &no_environment).unwrap(),
    ));
    assert_eq!(
        (e.sqlstate.as_str(), e.message.as_str()),
        ("42501", "role \"plain\" is not a superuser")
    );

    // The directory that the server means is not the one that we see.
    let mut session = connect(&server);
    let other = Server::prepare(15, &[]);
    let mut facts: Facts = session.facts.clone();
    facts.data_directory = other.data_dir();
    let tmp = other.data_dir().join("base");
    facts
        .check_same_host(session.client(), &tmp)
        .expect("the same file system shows it to the server");
    facts.system_identifier ^= 1;
    let e = error_of(facts.check_same_host(session.client(), &tmp));
    assert_eq!(e.sqlstate, "58P01");

    let e = error_of(session.facts.check_lock_capacity(10_000_000));
    assert_eq!(e.sqlstate, "53200");
    assert!(
        e.hint
            .unwrap()
            .starts_with("Set max_locks_per_transaction to 500004 ")
    );
}

/// A table with something of everything that is read.
const TABLE: &str = "
CREATE SCHEMA \"Odd.Schema\";
CREATE DOMAIN positive AS int CHECK (VALUE > 0);
CREATE TYPE pair AS (a int, b positive);
CREATE TABLE parent (id int PRIMARY KEY);
CREATE TABLE \"Odd.Schema\".\"The \"\"Table\" (
    id int NOT NULL PRIMARY KEY REFERENCES parent,
    gone text,
    v varchar(20) COLLATE \"C\" DEFAULT 'x',
    t text,
    b bpchar(3),
    n numeric(8,2),
    pairs pair[],
    twice int GENERATED ALWAYS AS (id * 2) STORED,
    ident bigint GENERATED BY DEFAULT AS IDENTITY,
    CONSTRAINT sane CHECK (id <> 13)
) WITH (fillfactor = 70, toast_tuple_target = 512);
ALTER TABLE \"Odd.Schema\".\"The \"\"Table\" DROP COLUMN gone;
ALTER TABLE \"Odd.Schema\".\"The \"\"Table\" ALTER t SET STORAGE EXTERNAL,
    ALTER v SET COMPRESSION pglz;
CREATE TABLE child (id int REFERENCES \"Odd.Schema\".\"The \"\"Table\");
CREATE UNIQUE INDEX \"i USING btree (\" ON \"Odd.Schema\".\"The \"\"Table\"
    (v DESC, t COLLATE \"POSIX\" NULLS FIRST) INCLUDE (b)
    WITH (fillfactor = 60, deduplicate_items = off) WHERE id > 5;
CREATE INDEX i_expression ON \"Odd.Schema\".\"The \"\"Table\" (lower(t), n numeric_ops);
CREATE INDEX i_hash ON \"Odd.Schema\".\"The \"\"Table\" USING hash (v);
CREATE INDEX i_pattern ON \"Odd.Schema\".\"The \"\"Table\" (t text_pattern_ops);
CREATE INDEX i_b ON \"Odd.Schema\".\"The \"\"Table\" (b);
CREATE INDEX i_t ON \"Odd.Schema\".\"The \"\"Table\" (t);
CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END';
CREATE TRIGGER on_insert BEFORE INSERT ON \"Odd.Schema\".\"The \"\"Table\"
    FOR EACH ROW EXECUTE FUNCTION f();
CREATE TRIGGER on_update BEFORE UPDATE ON \"Odd.Schema\".\"The \"\"Table\"
    FOR EACH ROW EXECUTE FUNCTION f();
CREATE TRIGGER on_insert_off BEFORE INSERT ON \"Odd.Schema\".\"The \"\"Table\"
    FOR EACH STATEMENT EXECUTE FUNCTION f();
ALTER TABLE \"Odd.Schema\".\"The \"\"Table\" DISABLE TRIGGER on_insert_off;
CREATE TRIGGER on_truncate BEFORE TRUNCATE ON \"Odd.Schema\".\"The \"\"Table\"
    FOR EACH STATEMENT EXECUTE FUNCTION f();
CREATE RULE r AS ON INSERT TO \"Odd.Schema\".\"The \"\"Table\" DO ALSO SELECT 1;
";

#[test]
fn a_table_is_read_with_all_that_it_has() {
    for version in support::VERSIONS {
        // Of the servers here only this one is built with lz4.
        let lz4 = version == 15;
        let method = if lz4 { "lz4" } else { "pglz" };
        let server = &Server::start(version, &[("default_toast_compression", method)]);
        server.execute("postgres", TABLE);
        let mut session = connect(server);
        let name = "\"Odd.Schema\".\"The \"\"Table\"";
        let table = session.plan_tables(&[name]).unwrap().remove(0);
        assert_eq!(table.qualified_name(), name);
        assert_eq!((table.kind, table.persistence), ('r', 'p'));
        assert_eq!(table.access_method, "heap");
        assert_eq!(
            (table.fillfactor, table.toast_tuple_target_bytes),
            (70, 512)
        );
        assert!(table.toast.is_some());
        check_columns(&table, lz4);
        check_features(&table);
        check_indexes(&table, server.version());
        // Read again it is the same; a plan leaves nothing behind.
        let again = read::relation(session.client(), name).unwrap();
        assert_eq!(table.difference(&again), None);
        assert_eq!(
            server.value(
                "postgres",
                "SELECT count(*) FROM pg_class WHERE relpersistence = 't'"
            ),
            "0"
        );
    }
}

fn check_columns(table: &Relation, lz4: bool) {
    let columns: Vec<(&str, &str, i32)> = table
        .columns
        .iter()
        .map(|c| (c.name.as_str(), c.type_name.as_str(), c.typmod))
        .collect();
    assert_eq!(
        columns,
        [
            ("id", "integer", -1),
            ("........pg.dropped.2........", "", -1),
            ("v", "character varying(20)", 24),
            ("t", "text", -1),
            ("b", "character(3)", 7),
            ("n", "numeric(8,2)", 524_294),
            ("pairs", "pair[]", -1),
            ("twice", "integer", -1),
            ("ident", "bigint", -1),
        ]
    );
    let column = |name: &str| table.columns.iter().find(|c| c.name == name).unwrap();
    assert!(table.columns[1].dropped && table.columns[1].type_oid == 0);
    assert_eq!(
        column("v").default.as_deref(),
        Some("'x'::character varying")
    );
    assert_eq!(column("v").layout.compression, Compression::Pglz);
    let default = if lz4 {
        Compression::Lz4
    } else {
        Compression::Pglz
    };
    assert_eq!(column("b").layout.compression, default);
    assert_eq!(column("twice").generated, 's');
    assert_eq!(column("ident").identity, 'd');
    assert!(column("id").not_null && !column("t").not_null);
}

fn check_features(table: &Relation) {
    let f = &table.features;
    assert_eq!(f.insert_triggers, ["on_insert"]);
    assert_eq!(f.truncate_triggers, ["on_truncate"]);
    assert_eq!(f.rules, ["r"]);
    assert_eq!(f.checks.len(), 1);
    assert_eq!(f.checks[0].name, "sane");
    assert_eq!(f.checks[0].condition, "(id <> 13)");
    assert_eq!(f.checks[0].only_by_copy, None);
    assert_eq!(f.domain_checks, []);
    assert_eq!(f.foreign_keys.len(), 1);
    let foreign_key = &f.foreign_keys[0];
    assert_eq!(foreign_key.name, "The \"Table_id_fkey");
    assert_eq!(foreign_key.from_item, "ONLY public.parent");
    assert_eq!(foreign_key.join, "pk.id OPERATOR(pg_catalog.=) fk.id");
    assert_eq!(foreign_key.referenced_tables.len(), 1);
    assert_eq!(f.referenced_by, ["public.child"]);
    assert!(f.exclusions.is_empty() && f.partition_constraint.is_none());
    assert!(!f.row_security && !f.has_children && !f.system_catalog);
}

fn check_indexes(table: &Relation, version: u32) {
    let index = |name: &str| table.indexes.iter().find(|i| i.name == name).unwrap();
    assert_eq!(table.indexes.len(), 7);
    let primary = index("The \"Table_pkey");
    assert!(primary.primary && primary.unique && primary.immediate && primary.valid);
    assert_eq!((primary.fillfactor, primary.deduplicate_items), (90, true));
    assert_eq!(primary.allequalimage, Some(true));

    let odd = index("i USING btree (");
    assert!(odd.has_predicate && !odd.deduplicate_items);
    assert_eq!(
        (odd.fillfactor, odd.key_count, odd.columns.len()),
        (60, 2, 3)
    );
    assert!(odd.columns[0].descending && odd.columns[0].nulls_first);
    assert!(!odd.columns[1].descending && odd.columns[1].nulls_first);
    assert_eq!(odd.columns[0].opclass, "text_ops");
    let collation = odd.columns[1].collation.as_ref().unwrap();
    assert_eq!(
        (collation.name.as_str(), collation.locale.as_str()),
        ("POSIX", "POSIX")
    );
    assert_eq!(odd.columns[2].opclass, "");
    // INCLUDE: never equal images.
    assert_eq!(odd.allequalimage, Some(false));

    let expression = index("i_expression");
    assert_eq!(expression.columns[0].attnum, 0);
    assert_eq!(expression.columns[1].attnum, 6);
    assert_eq!(expression.allequalimage, Some(false));
    assert_eq!(index("i_hash").access_method, "hash");
    assert_eq!(index("i_hash").allequalimage, None);
    assert_eq!(index("i_pattern").columns[0].opclass, "text_pattern_ops");
    assert_eq!(index("i_pattern").allequalimage, Some(true));
    // The database's own collation stands for itself.
    let default = index("i_t").columns[0].collation.as_ref().unwrap();
    assert_eq!(default.provider, 'c', "{version}");
    assert_eq!(default.locale, "C.UTF-8");
    assert!(default.deterministic);
}

#[test]
fn the_databases_own_collation_is_resolved_for_every_provider() {
    for (version, options, provider, locale) in [
        (14, "LOCALE 'C'", 'c', "C"),
        (15, "LOCALE_PROVIDER icu ICU_LOCALE 'de'", 'i', "de"),
        (16, "LOCALE_PROVIDER icu ICU_LOCALE 'de'", 'i', "de"),
        (
            17,
            "LOCALE_PROVIDER builtin BUILTIN_LOCALE 'C.UTF-8'",
            'b',
            "C.UTF-8",
        ),
        (18, "LOCALE_PROVIDER icu ICU_LOCALE 'de'", 'i', "de"),
    ] {
        let server = Server::start(version, &[]);
        server.execute(
            "postgres",
            &format!("CREATE DATABASE other TEMPLATE template0 {options}"),
        );
        server.execute(
            "other",
            "CREATE TABLE t (v text, w text COLLATE \"en-x-icu\"); CREATE INDEX t_v ON t (v, w)",
        );
        let table = read::relation(&mut server.connect("other"), "t").unwrap();
        let of = |column: usize| table.indexes[0].columns[column].collation.clone().unwrap();
        let own = of(0);
        assert_eq!((own.provider, own.locale.as_str()), (provider, locale));
        assert_eq!(own.recorded_version, own.actual_version, "{version}");
        assert_eq!(own.actual_version.is_some(), provider != 'c', "{version}");
        let icu = of(1);
        assert_eq!((icu.provider, icu.locale.as_str()), ('i', "en"));
        assert!(icu.actual_version.is_some() && icu.recorded_version == icu.actual_version);
    }
}

#[test]
fn what_no_load_can_fill_is_refused_in_the_servers_words() {
    let server = Server::start(16, &[]);
    server.execute(
        "postgres",
        "CREATE VIEW v AS SELECT 1; CREATE MATERIALIZED VIEW m AS SELECT 1; CREATE SEQUENCE s;
         CREATE TABLE p (a int) PARTITION BY LIST (a);
         CREATE TABLE p_1 PARTITION OF p FOR VALUES IN (1)",
    );
    let mut session = connect(&server);
    for (name, sqlstate, message) in [
        ("nope", "42P01", "relation \"nope\" does not exist"),
        ("NoPe", "42P01", "relation \"nope\" does not exist"),
        ("a.b", "3F000", "schema \"a\" does not exist"),
        ("16384", "42602", "invalid name syntax: \"16384\""),
        ("v", "42809", "cannot copy to view \"v\""),
        ("m", "42809", "cannot copy to materialized view \"m\""),
        ("s", "42809", "cannot copy to sequence \"s\""),
        (
            "pg_class",
            "42501",
            "permission denied: \"pg_class\" is a system catalog",
        ),
    ] {
        let e = error_of(session.plan_tables(&[name]));
        assert_eq!(
            (e.sqlstate.as_str(), e.message.as_str()),
            (sqlstate, message)
        );
    }
    let partition = session.plan_tables(&["p_1"]).unwrap().remove(0);
    assert_eq!(
        partition.features.partition_constraint.as_deref(),
        Some("((a IS NOT NULL) AND (a = 1))")
    );
    let e = error_of(session.plan_tables(&["p_1", "public.p_1"]));
    assert_eq!(e.message, "table \"p_1\" is named more than once");
}

#[test]
fn a_standby_is_not_started() {
    let server = Server::prepare(15, &[]);
    std::fs::write(server.data_dir().join("standby.signal"), "").unwrap();
    let e = error_of(stopped(&server).open(&no_environment));
    assert_eq!(e.sqlstate, "25006");
}

#[test]
fn recovering_a_healthy_cluster_does_nothing_running_or_stopped() {
    let mut server = Server::start(15, &[]);
    let target = stopped(&server);
    assert_eq!(
        recover::run(&target, &no_environment).unwrap(),
        recover::Recovered::default()
    );
    server.stop();
    // Staging of a process that is no more: the server removes it as it starts.
    let staging = server
        .data_dir()
        .join("base/pgsql_tmp/pgsql_tmp.pgpagewrite.1");
    std::fs::create_dir_all(&staging).unwrap();
    for directory in [&staging, &server.data_dir().join("base/pgsql_tmp")] {
        let meta = std::fs::metadata(server.data_dir()).unwrap();
        std::os::unix::fs::chown(directory, Some(meta.uid()), Some(meta.gid())).unwrap();
    }
    recover::run(&target, &no_environment).unwrap();
    assert!(!staging.exists());
    assert!(!server.data_dir().join("postmaster.pid").exists());
}
