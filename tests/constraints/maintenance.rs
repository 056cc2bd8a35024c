//! What is in force when the server builds indexes in the load's transaction.

use crate::run::{DB, load};
use support::Server;

/// An index whose build tells the settings in the server's log.
const TABLE: &str = "CREATE FUNCTION told(a int) RETURNS int IMMUTABLE LANGUAGE plpgsql AS $$
      BEGIN
        RAISE LOG 'in force: % %', current_setting('maintenance_work_mem'),
                                   current_setting('max_parallel_maintenance_workers');
        RETURN a;
      END $$;
    CREATE TABLE t (a int);
    CREATE INDEX t_told ON t (told(a))";

#[test]
fn the_servers_indexes_have_half_of_the_memory_and_a_worker_for_each_job() {
    let server = Server::start(15, &[("wal_level", "minimal")]);
    server.execute(DB, TABLE);
    let means = ["--memory", "1GB", "--jobs", "3", "--no-analyze"];
    let text = load(&server, &means, &[("t", "1\n")]).expect_success();
    assert!(server.log().contains("in force: 512MB 3\n"));
    let told = "\nby the server with maintenance_work_mem 512MB, up to 3 parallel workers\n";
    assert!(text.contains(told), "{text}");

    let json = ["--truncate", "--report", "json"];
    let report = load(&server, &[&means[..], &json].concat(), &[("t", "1\n")]).expect_success();
    let report: serde_json::Value = serde_json::from_str(&report).expect("JSON");
    assert_eq!(
        report["maintenance"],
        serde_json::json!({
            "maintenance_work_mem": "512MB",
            "max_parallel_maintenance_workers": 3,
        })
    );
}

#[test]
fn settings_of_the_user_that_are_larger_stay() {
    let server = Server::start(15, &[("wal_level", "minimal")]);
    server.execute(
        DB,
        &format!(
            "{TABLE}; ALTER DATABASE {DB} SET maintenance_work_mem = '600MB';
             ALTER DATABASE {DB} SET max_parallel_maintenance_workers = 7"
        ),
    );
    let means = ["--memory", "1GB", "--jobs", "3", "--no-analyze"];
    load(&server, &means, &[("t", "1\n")]).expect_success();
    assert!(server.log().contains("in force: 600MB 7\n"));
    // Behind the COMMIT all is as before.
    assert_eq!(server.value(DB, "SHOW maintenance_work_mem"), "600MB");
}

#[test]
fn nothing_is_told_where_all_is_native() {
    let server = Server::start(15, &[("wal_level", "minimal")]);
    server.execute(DB, "CREATE TABLE t (a int PRIMARY KEY)");
    let text = load(&server, &[], &[("t", "1\n")]).expect_success();
    assert!(!text.contains("maintenance_work_mem"), "{text}");
}
