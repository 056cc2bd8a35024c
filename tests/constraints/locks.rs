//! A referenced row must not go between the check and COMMIT.

use crate::run::{DB, load};
use support::Server;

const TABLES: &str = "CREATE TABLE p (a int PRIMARY KEY) PARTITION BY RANGE (a);
    CREATE TABLE p1 PARTITION OF p FOR VALUES FROM (0) TO (10);
    CREATE TABLE p2 PARTITION OF p FOR VALUES FROM (10) TO (20);
    INSERT INTO p VALUES (1), (11);
    CREATE TABLE t (a int REFERENCES p DEFERRABLE INITIALLY DEFERRED)";

#[test]
fn who_deletes_a_referenced_row_is_waited_for_but_not_for_ever() {
    let server = Server::start(15, &[("wal_level", "minimal")]);
    server.execute(DB, TABLES);
    let mut other = server.connect(DB);
    let mut transaction = other.transaction().expect("a transaction");
    transaction
        .batch_execute("DELETE FROM p2 WHERE a = 11")
        .expect("a row");
    let arguments = ["--lock-timeout", "1"];
    let stderr = load(&server, &arguments, &[("t", "1\n11\n")]).expect_failure(1);
    assert!(
        stderr.contains("ERROR 55P03: could not obtain lock on relation \"p2\" within 1 s"),
        "{stderr}"
    );
    assert!(stderr.contains("DELETE FROM p2"), "{stderr}");
    transaction.commit().expect("COMMIT");
    let stderr = load(&server, &arguments, &[("t", "1\n11\n")]).expect_failure(1);
    assert!(
        stderr.contains("Key (a)=(11) is not present in table \"p\"."),
        "{stderr}"
    );
}

#[test]
fn without_a_check_nobody_is_waited_for() {
    let server = Server::start(15, &[("wal_level", "minimal")]);
    server.execute(DB, TABLES);
    let mut other = server.connect(DB);
    let mut transaction = other.transaction().expect("a transaction");
    transaction
        .batch_execute("INSERT INTO p VALUES (12)")
        .expect("a row");
    let arguments = ["--trust-constraints", "--lock-timeout", "1"];
    load(&server, &arguments, &[("t", "1\n12\n")]).expect_success();
    transaction.commit().expect("COMMIT");
}

#[test]
fn who_reads_a_referenced_table_is_not_waited_for() {
    let server = Server::start(15, &[("wal_level", "minimal")]);
    server.execute(DB, TABLES);
    let mut other = server.connect(DB);
    let mut transaction = other.transaction().expect("a transaction");
    transaction
        .batch_execute("SELECT * FROM p FOR KEY SHARE")
        .expect("rows");
    load(&server, &["--lock-timeout", "1"], &[("t", "1\n11\n")]).expect_success();
    transaction.commit().expect("COMMIT");
}
