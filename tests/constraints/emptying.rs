//! How tables with triggers on TRUNCATE, and tables that others reference, get new files.

use crate::run::{DB, load};
use support::{Server, each_version};

const TRIGGERS: &str = "
    CREATE FUNCTION no() RETURNS trigger LANGUAGE plpgsql
        AS $$ BEGIN RAISE EXCEPTION '% fired', TG_NAME; END $$;
    CREATE TABLE t (a int); INSERT INTO t VALUES (7);
    CREATE TRIGGER ordinary BEFORE TRUNCATE ON t EXECUTE FUNCTION no();
    CREATE TRIGGER \"al\"\"ways\" AFTER TRUNCATE ON t EXECUTE FUNCTION no();
    CREATE TRIGGER replica BEFORE TRUNCATE ON t EXECUTE FUNCTION no();
    CREATE TRIGGER disabled BEFORE TRUNCATE ON t EXECUTE FUNCTION no();
    ALTER TABLE t ENABLE ALWAYS TRIGGER \"al\"\"ways\";
    ALTER TABLE t ENABLE REPLICA TRIGGER replica;
    ALTER TABLE t DISABLE TRIGGER disabled;";

const ENABLED: &str = "SELECT string_agg(tgname || ' ' || tgenabled::text, ', ' ORDER BY tgname)
                         FROM pg_trigger WHERE NOT tgisinternal";

fn rows(server: &Server, table: &str) -> String {
    let query = format!("SELECT coalesce(string_agg(r::text, ' ' ORDER BY r), '') FROM {table} r");
    server.value(DB, &query)
}

#[test]
fn triggers_on_truncate_do_not_fire_and_stay_as_they_are() {
    each_version(&[("wal_level", "replica")], |server| {
        server.execute(DB, TRIGGERS);
        server.execute(
            DB,
            "CREATE FUNCTION no_ddl() RETURNS event_trigger LANGUAGE plpgsql
                 AS $$ BEGIN RAISE EXCEPTION '% fired', TG_TAG; END $$;
             CREATE EVENT TRIGGER no_ddl ON ddl_command_start WHEN TAG IN ('ALTER TABLE')
                 EXECUTE FUNCTION no_ddl()",
        );
        let before = server.value(DB, ENABLED);
        load(server, &["--truncate"], &[("t", "1\n2\n")]).expect_success();
        assert_eq!(rows(server, "t"), "(1) (2)");
        assert_eq!(server.value(DB, ENABLED), before);
        // They still fire for everybody else.
        for role in ["origin", "replica"] {
            let mut client = server.connect(DB);
            let truncate = format!("SET session_replication_role = {role}; TRUNCATE t");
            let error = client.batch_execute(&truncate).expect_err("a trigger");
            let message = error.as_db_error().expect("the server's").message();
            assert!(message.ends_with(" fired"), "{message}");
        }
        // A load that fails after the TRUNCATE leaves them too.
        server.execute(
            DB,
            "DROP EVENT TRIGGER no_ddl; ALTER TABLE t ADD CHECK (a < 5)",
        );
        let stderr = load(server, &["--truncate"], &[("t", "1\n5\n")]).expect_failure(1);
        assert!(stderr.starts_with("ERROR 23514"), "{stderr}");
        assert_eq!(rows(server, "t"), "(1) (2)");
        assert_eq!(server.value(DB, ENABLED), before);
    });
}

#[test]
fn a_schema_may_make_triggers_on_truncate() {
    let server = Server::start(15, &[("wal_level", "minimal")]);
    let schema = server.dir().join("schema.sql");
    std::fs::write(&schema, TRIGGERS.replace("INSERT INTO t VALUES (7);", "")).expect("a file");
    let schema = schema.to_str().expect("UTF-8");
    load(&server, &["--schema", schema], &[("t", "1\n2\n")]).expect_success();
    assert_eq!(rows(&server, "t"), "(1) (2)");
    support::assert_healthy(&server, DB);
}

#[test]
fn a_table_with_rows_that_others_reference_is_refused_before_its_input_is_read() {
    let server = Server::start(15, &[("wal_level", "minimal")]);
    server.execute(
        DB,
        "CREATE TABLE p (a int PRIMARY KEY); INSERT INTO p VALUES (1);
         CREATE TABLE c (a int REFERENCES p); INSERT INTO c VALUES (1)",
    );
    let stderr = load(&server, &["--truncate"], &[("p", "no number\n")]).expect_failure(1);
    assert!(
        stderr.starts_with(
            "ERROR 0A000: cannot truncate a table referenced in a foreign key constraint\n  \
             DETAIL: Table \"p\" is referenced by public.c."
        ),
        "{stderr}"
    );
    // Together they go, and are checked against each other.
    let both = [("c", "2\n3\n"), ("p", "2\n")];
    let stderr = load(&server, &["--truncate"], &both).expect_failure(1);
    assert!(
        stderr.contains("Key (a)=(3) is not present in table \"p\"."),
        "{stderr}"
    );
    assert_eq!(
        (rows(&server, "p"), rows(&server, "c")),
        ("(1)".into(), "(1)".into())
    );
    load(&server, &["--truncate"], &[("c", "2\n2\n"), ("p", "2\n")]).expect_success();
    assert_eq!(
        (rows(&server, "p"), rows(&server, "c")),
        ("(2)".into(), "(2) (2)".into())
    );
}

#[test]
fn a_referenced_table_keeps_its_mark_of_cluster_and_its_triggers_silent() {
    each_version(&[("wal_level", "replica")], |server| {
        server.execute(
            DB,
            "CREATE TABLE t (a int PRIMARY KEY, b text, UNIQUE (b, a) DEFERRABLE);
             CREATE INDEX marked ON t (b); CLUSTER t USING marked;
             CREATE TABLE c (a int) PARTITION BY LIST (a);
             CREATE TABLE c1 PARTITION OF c FOR VALUES IN (1);
             ALTER TABLE c ADD FOREIGN KEY (a) REFERENCES t;
             CREATE FUNCTION no() RETURNS trigger LANGUAGE plpgsql
                 AS $$ BEGIN RAISE EXCEPTION 'fired'; END $$;
             CREATE TRIGGER no BEFORE TRUNCATE ON t EXECUTE FUNCTION no();
             ALTER TABLE t ENABLE ALWAYS TRIGGER no",
        );
        load(server, &["--native-only"], &[("t", "1,x\n2,y\n")]).expect_success();
        assert_eq!(rows(server, "t"), "(1,x) (2,y)");
        let marked = "SELECT indexrelid::regclass FROM pg_index WHERE indisclustered";
        assert_eq!(server.value(DB, marked), "marked");
        server.execute(DB, "INSERT INTO c VALUES (1)");
        support::assert_healthy(server, DB);
    });
}
