//! pg_restore's options, with its meanings: what it makes of them is what we make.

use super::{
    NOTHING, OURS, SOURCE, THEIRS, assert_same, build, dumped, fresh, objects, server_with_kinds,
};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use support::{Ran, Server, run};

#[test]
fn lists_are_printed_as_pg_restore_prints_them() {
    let server = server_with_kinds(15);
    for (version, name, args) in [
        (18, "custom.dump", &["-Fc"][..]),
        (18, "directory", &["-Fd"]),
        (18, "archive.tar", &["-Ft"]),
        (16, "older.dump", &["-Fc"]),
    ] {
        let dump = dumped(&server, version, name, args);
        for selection in [
            &[][..],
            &["-n", "shop"],
            &["-t", "orders"],
            &["-s"],
            &["-a"],
        ] {
            let mut restore = server.client(18, "pg_restore", "postgres");
            let theirs = run(restore.arg("-l").args(selection).arg(&dump)).expect_success();
            let mut ours = std::process::Command::new(super::PROGRAM);
            ours.args(["build", "-l"]).args(selection).arg(&dump);
            assert_eq!(
                run(&mut ours).expect_success(),
                theirs,
                "{name} {selection:?}"
            );
        }
    }
}

/// Restores with the same options, over and over into the same databases where `keep` says so.
#[test]
fn selections_restore_what_pg_restore_restores() {
    let server = server_with_kinds(15);
    // The constraint refuses the rows that were there before it; pg_restore enables triggers that it
    // did not disable.
    server.execute(
        SOURCE,
        "ALTER TABLE shop.orders DROP CONSTRAINT orders_late; DROP TRIGGER orders_off ON shop.orders",
    );
    let dump = dumped(&server, 15, "custom.dump", &["-Fc"]);
    let list = run(std::process::Command::new(super::PROGRAM)
        .args(["build", "-l"])
        .arg(&dump))
    .expect_success();
    // Without some tables' rows, and with comments of its own.
    let list: Vec<&str> = list
        .lines()
        .filter(|line| {
            !line.contains("TABLE DATA shop wide") && !line.contains("MATERIALIZED VIEW DATA")
        })
        .collect();
    let list_file = server.dir().join("list");
    fs::write(&list_file, list.join("\n")).expect("the list");
    let list_file = list_file.display().to_string();
    let steps: [&[&[&str]]; 7] = [
        &[&["--schema-only"], &["--data-only", "--disable-triggers"]],
        &[
            &["--section=pre-data"],
            &["--section=data"],
            &["--section=post-data"],
        ],
        &[&["-L", &list_file]],
        &[&["-N", "odd Schema\"x"]],
        &[&[
            "--no-owner",
            "--no-privileges",
            "--no-comments",
            "--no-tablespaces",
        ]],
        &[&["--use-set-session-authorization"]],
        &[&["--no-publications", "--no-security-labels"]],
    ];
    for step in steps {
        for (database, ours) in [(THEIRS, false), (OURS, true)] {
            fresh(&server, database);
            for args in step {
                if ours {
                    build(&server, database, args, &dump).expect_success();
                } else {
                    // Its own long option is ours for a file of SQL.
                    let mut restore = server.client(15, "pg_restore", "postgres");
                    let known: Vec<&str> = args.to_vec();
                    run(restore.args(["-e", "-d", database]).args(known).arg(&dump))
                        .expect_success();
                }
            }
        }
        assert_same(
            &format!("{step:?}"),
            &server.dump(OURS),
            &server.dump(THEIRS),
        );
    }
}

#[test]
fn single_tables_come_without_what_belongs_to_them() {
    let server = server_with_kinds(15);
    let dump = dumped(&server, 15, "custom.dump", &["-Fc"]);
    for (database, ours) in [(THEIRS, false), (OURS, true)] {
        fresh(&server, database);
        server.execute(database, "CREATE SCHEMA shop");
        let args = ["-n", "shop", "-t", "wide", "-t", "parent", "-t", "numbers"];
        if ours {
            build(&server, database, &args, &dump).expect_success();
        } else {
            let mut restore = server.client(15, "pg_restore", "postgres");
            run(restore.args(["-e", "-d", database]).args(args).arg(&dump)).expect_success();
        }
    }
    assert_same("tables", &server.dump(OURS), &server.dump(THEIRS));
    let ran = build(&server, OURS, &["-t", "nobody", "--strict-names"], &dump);
    assert!(ran.expect_failure(1).contains("table \"nobody\" not found"));
}

#[test]
fn a_database_is_made_under_its_name_or_not_at_all() {
    let server = server_with_kinds(15);
    server.execute(
        "postgres",
        &format!("ALTER DATABASE {SOURCE} SET work_mem = '7MB'; COMMENT ON DATABASE {SOURCE} IS 'the source'; GRANT CREATE ON DATABASE {SOURCE} TO PUBLIC"),
    );
    let properties = "SELECT shobj_description(d.oid, 'pg_database') || ' '
                || string_agg(a::text, ' ' ORDER BY a::text)
           FROM pg_database d, aclexplode(datacl) a WHERE datname = 'source' GROUP BY d.oid";
    let expected = server.value("postgres", properties);
    let dump = dumped(&server, 15, "custom.dump", &["-Fc"]);
    let theirs = server.dump(SOURCE);
    let ran = build(&server, "postgres", &["-C"], &dump);
    assert!(
        ran.expect_failure(1)
            .contains("database \"source\" already exists")
    );
    server.execute("postgres", &format!("DROP DATABASE {SOURCE}"));
    build(&server, "postgres", &["-C"], &dump).expect_success();
    assert_same("-C", &server.dump(SOURCE), &theirs);
    assert_eq!(server.value("postgres", properties), expected);
    assert_eq!(server.value(SOURCE, "SHOW work_mem"), "7MB");
    // In place of the one that is there.
    server.execute(SOURCE, "DROP TABLE shop.wide");
    build(&server, "postgres", &["-C", "-c"], &dump).expect_success();
    assert_same("-C -c", &server.dump(SOURCE), &theirs);
    // What cannot be given its privileges leaves the one that is there.
    server.execute(
        "postgres",
        &format!("CREATE ROLE guest; GRANT CREATE ON DATABASE {SOURCE} TO guest"),
    );
    let with_guest = dumped(&server, 15, "guest.dump", &["-Fc"]);
    server.execute(
        "postgres",
        &format!("REVOKE CREATE ON DATABASE {SOURCE} FROM guest; DROP ROLE guest"),
    );
    let stderr = build(&server, "postgres", &["-C", "-c"], &with_guest).expect_failure(1);
    assert!(stderr.contains("42704"), "{stderr}");
    assert_same("kept", &server.dump(SOURCE), &theirs);
    // What cannot be completed goes.
    let bytes = fs::read(&dump).expect("the dump");
    let half = server.dir().join("half.dump");
    fs::write(&half, &bytes[..bytes.len() / 2]).expect("half a dump");
    server.execute("postgres", &format!("DROP DATABASE {SOURCE}"));
    build(&server, "postgres", &["-C"], &half).expect_failure(1);
    let databases = "SELECT string_agg(datname, ' ' ORDER BY datname) FROM pg_database";
    assert_eq!(
        server.value("postgres", databases),
        "postgres template0 template1"
    );
}

#[test]
fn what_is_there_is_not_overwritten_and_errors_may_be_passed_over() {
    let server = server_with_kinds(15);
    let dump = dumped(&server, 15, "custom.dump", &["-Fc"]);
    fresh(&server, OURS);
    server.execute(OURS, "CREATE SCHEMA shop; CREATE TABLE shop.wide (id int)");
    let stderr = build(&server, OURS, &[], &dump).expect_failure(1);
    assert!(
        stderr.contains("42P06") && stderr.contains("SCHEMA shop"),
        "{stderr}"
    );
    assert_eq!(
        objects(&server, OURS),
        "1 relations, 3 schemas, 0 large objects"
    );
    fresh(&server, OURS);
    server.execute(OURS, "CREATE SCHEMA shop");
    let stderr = build(&server, OURS, &["--keep-going"], &dump).expect_failure(1);
    assert!(stderr.contains("errors ignored on restore: 1"), "{stderr}");
    fresh(&server, THEIRS);
    let mut restore = server.client(15, "pg_restore", "postgres");
    run(restore.args(["-d", THEIRS]).arg(&dump)).expect_success();
    assert_same("--keep-going", &server.dump(OURS), &server.dump(THEIRS));
    fresh(&server, OURS);
    assert_eq!(objects(&server, OURS), NOTHING);
}

#[test]
fn tables_that_could_not_be_made_get_no_rows_on_demand() {
    let server = server_with_kinds(15);
    let dump = dumped(&server, 15, "custom.dump", &["-Fc"]);
    let args = ["-n", "shop", "-t", "parent", "-t", "wide"];
    for (more, rows) in [(&[][..], "1"), (&["--no-data-for-failed-tables"], "0")] {
        fresh(&server, OURS);
        server.execute(
            OURS,
            "CREATE SCHEMA shop; CREATE TABLE shop.parent (a int, b text)",
        );
        let args = [&["--keep-going"][..], &args, more].concat();
        let stderr = build(&server, OURS, &args, &dump).expect_failure(1);
        assert!(
            stderr.contains("relation \"parent\" already exists"),
            "{stderr}"
        );
        assert_eq!(server.value(OURS, "SELECT count(*) FROM shop.parent"), rows);
        assert_eq!(server.value(OURS, "SELECT count(*) FROM shop.wide"), "200");
    }
}

/// Restores by pg_restore and by us, neither of which need succeed; what both tell.
fn both(server: &Server, dump: &Path, prepare: &str, args: &[&str], ours: &[&str]) -> [Ran; 2] {
    for database in [THEIRS, OURS] {
        fresh(server, database);
        server.execute(database, prepare);
    }
    let mut restore = server.client(15, "pg_restore", "postgres");
    let theirs = run(restore.args(["-d", THEIRS]).args(args).arg(dump));
    let ours = build(server, OURS, &[args, ours].concat(), dump);
    assert_same(
        &format!("{args:?}"),
        &server.dump(OURS),
        &server.dump(THEIRS),
    );
    [theirs, ours]
}

#[test]
fn the_role_holds_behind_the_rows() {
    let server = Server::start(15, &[("wal_level", "minimal"), ("fsync", "off")]);
    server.execute("postgres", &format!("CREATE DATABASE {SOURCE}"));
    server.execute(
        SOURCE,
        "CREATE ROLE app; CREATE TABLE t (a int PRIMARY KEY); INSERT INTO t VALUES (1);
         CREATE PUBLICATION p FOR TABLE t",
    );
    let dump = dumped(&server, 15, "role.dump", &["-Fc"]);
    let rights = "GRANT ALL ON SCHEMA public TO app; DO $$ BEGIN
        EXECUTE 'GRANT CREATE ON DATABASE ' || current_database() || ' TO app'; END $$";
    for ran in both(&server, &dump, rights, &["--role=app", "-O"], &[]) {
        ran.expect_success();
    }
    let owner = "SELECT pubowner::regrole FROM pg_publication";
    assert_eq!(server.value(OURS, owner), "app");
    server.execute(SOURCE, "CREATE PUBLICATION every FOR ALL TABLES");
    let dump = dumped(&server, 15, "role.dump", &["-Fc"]);
    fresh(&server, OURS);
    server.execute(OURS, rights);
    let stderr = build(&server, OURS, &["--role=app", "-O"], &dump).expect_failure(1);
    assert!(stderr.contains("42501"), "{stderr}");
}

#[test]
fn what_is_set_holds_when_an_entry_fails() {
    let server = Server::start(15, &[("wal_level", "minimal"), ("fsync", "off")]);
    let dir = server.dir().join("tsx");
    fs::create_dir(&dir).expect("a directory");
    let owner = fs::metadata(server.data_dir()).expect("the data directory");
    std::os::unix::fs::chown(&dir, Some(owner.uid()), Some(owner.gid())).expect("an owner");
    server.execute(
        "postgres",
        &format!("CREATE TABLESPACE tsx LOCATION '{}'", dir.display()),
    );
    server.execute("postgres", &format!("CREATE DATABASE {SOURCE}"));
    server.execute(
        SOURCE,
        "CREATE ROLE app; CREATE TABLE a (i int) TABLESPACE tsx; CREATE TABLE b (i int) TABLESPACE tsx;
         CREATE TABLE c (i int); CREATE TABLE d (i int);
         GRANT CREATE ON SCHEMA public TO app; CREATE TYPE t AS ENUM ('a'); ALTER TYPE t OWNER TO app;
         CREATE TABLE z (a int); ALTER TABLE z OWNER TO app; INSERT INTO z VALUES (1);
         SELECT lo_from_bytea(n, 'x') FROM generate_series(10000, 10030) n",
    );
    let dump = dumped(&server, 15, "set.dump", &["-Fc"]);
    for (prepare, args) in [
        ("CREATE TABLE a (i int)", vec![]),
        ("CREATE TABLE c (i int)", vec![]),
        ("SELECT 1", vec!["--use-set-session-authorization"]),
        ("SELECT lo_create(10005)", vec![]),
    ] {
        let [theirs, ours] = both(&server, &dump, prepare, &args, &["--keep-going"]);
        assert!(!theirs.succeeded(), "{prepare}");
        ours.expect_failure(1);
    }
}

#[test]
fn what_a_restore_builds_from_the_rows_has_a_share_of_the_memory() {
    let server = Server::start(15, &[("wal_level", "minimal"), ("fsync", "off")]);
    server.execute("postgres", &format!("CREATE DATABASE {SOURCE}"));
    server.execute(
        SOURCE,
        "CREATE TABLE t (a int);
         INSERT INTO t VALUES (1);
         CREATE FUNCTION told(a int) RETURNS int IMMUTABLE LANGUAGE plpgsql AS $$
           BEGIN
             RAISE LOG 'in force for %: %', current_database(),
                       current_setting('maintenance_work_mem');
             RETURN a;
           END $$;
         CREATE MATERIALIZED VIEW m AS SELECT * FROM t;
         CREATE INDEX m_told ON m (told(a))",
    );
    let dump = dumped(&server, 15, "told.dump", &["-Fc"]);
    fresh(&server, OURS);
    let text = build(&server, OURS, &["--memory", "1GB"], &dump).expect_success();
    let told = format!("in force for {OURS}: 512MB\n");
    assert!(server.log().contains(&told), "{}", server.log());
    assert!(text.contains("with maintenance_work_mem 512MB"), "{text}");
}

#[test]
fn rows_that_are_refused_leave_the_others() {
    let server = Server::start(15, &[("wal_level", "minimal"), ("fsync", "off")]);
    server.execute("postgres", &format!("CREATE DATABASE {SOURCE}"));
    server.execute(
        SOURCE,
        "CREATE TABLE a (i int PRIMARY KEY); INSERT INTO a VALUES (1), (2);
         CREATE TABLE b (i text); INSERT INTO b VALUES ('1'), ('x');
         CREATE TABLE c (i int); INSERT INTO c VALUES (1), (1); CREATE INDEX ON c (i);
         CREATE TABLE d (i int, j int); INSERT INTO d VALUES (1, 2);
         CREATE TABLE e (i int REFERENCES a); INSERT INTO e VALUES (1), (2)",
    );
    let dump = dumped(&server, 15, "rows.dump", &["-Fc"]);
    // Rows that do not parse, rows that a key does not take, a column that is not there.
    let prepare = "CREATE TABLE b (i int); CREATE TABLE c (i int UNIQUE); CREATE TABLE d (i int)";
    let [theirs, ours] = both(&server, &dump, prepare, &[], &["--keep-going"]);
    assert!(!theirs.succeeded());
    let stderr = ours.expect_failure(1);
    for sqlstate in ["22P02", "23505", "42703"] {
        assert!(stderr.contains(sqlstate), "{stderr}");
    }
    assert_eq!(server.value(OURS, "SELECT sum(i) FROM e"), "3");
    assert_eq!(server.value(OURS, "SELECT count(*) FROM b"), "0");
    // And in a script, of which psql goes on, too.
    let script = dumped(&server, 15, "rows.sql", &[]);
    for database in [THEIRS, OURS] {
        fresh(&server, database);
        server.execute(database, prepare);
    }
    let mut psql = server.client(15, "psql", THEIRS);
    run(psql.args(["-X", "-q", "-f"]).arg(&script));
    build(&server, OURS, &["--keep-going"], &script).expect_failure(1);
    assert_same("rows.sql", &server.dump(OURS), &server.dump(THEIRS));
}

#[test]
fn foreign_keys_are_not_checked_where_triggers_are_disabled() {
    let server = Server::start(15, &[("wal_level", "minimal"), ("fsync", "off")]);
    server.execute("postgres", &format!("CREATE DATABASE {SOURCE}"));
    server.execute(
        SOURCE,
        "CREATE TABLE p (id int PRIMARY KEY); INSERT INTO p SELECT generate_series(1, 10);
         CREATE TABLE c (id int PRIMARY KEY, p int REFERENCES p);
         INSERT INTO c SELECT i, i FROM generate_series(1, 10) i",
    );
    let dump = dumped(&server, 15, "keys.dump", &["-Fc"]);
    let tables = "CREATE TABLE p (id int PRIMARY KEY); CREATE TABLE c (id int PRIMARY KEY, p int REFERENCES p)";
    let disabled = ["-a", "--disable-triggers", "-t", "c"];
    for ran in both(&server, &dump, tables, &disabled, &[]) {
        ran.expect_success();
    }
    // The rows of the one go to the server, those of the other are built.
    let with_rows = format!("{tables}; INSERT INTO p VALUES (5000)");
    for args in [&["-a", "--disable-triggers"][..], &["-a"]] {
        fresh(&server, OURS);
        server.execute(OURS, &with_rows);
        build(&server, OURS, args, &dump).expect_success();
        assert_eq!(server.value(OURS, "SELECT count(*) FROM p"), "11");
    }
    fresh(&server, OURS);
    server.execute(OURS, tables);
    let stderr = build(&server, OURS, &["-a", "-t", "c"], &dump).expect_failure(1);
    assert!(stderr.contains("23503"), "{stderr}");
}
