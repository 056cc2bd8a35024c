//! Partitions by themselves, whose bounds are checked, and partitioned tables as targets.

use crate::run::{Case, DB, Load, agree, load};
use support::Server;

/// A partitioned table in two levels with a default partition.
const LEVELS: &str = "
CREATE TABLE t (a int, b text, c date) PARTITION BY RANGE (a);
CREATE TABLE low PARTITION OF t FOR VALUES FROM (MINVALUE) TO (10);
CREATE TABLE high PARTITION OF t FOR VALUES FROM (10) TO (20) PARTITION BY LIST (b);
CREATE TABLE high_x PARTITION OF high FOR VALUES IN ('x', NULL);
CREATE TABLE high_rest (c date, dropped int, b text, a int);
ALTER TABLE high_rest DROP dropped;
ALTER TABLE high ATTACH PARTITION high_rest DEFAULT;";

const BY_HASH: &str = "
CREATE TABLE t (a int, b text) PARTITION BY HASH (a, b);
CREATE TABLE h0 PARTITION OF t FOR VALUES WITH (MODULUS 2, REMAINDER 0);
CREATE TABLE h1 PARTITION OF t FOR VALUES WITH (MODULUS 2, REMAINDER 1);";

/// Partitions that we load natively.
const LEAVES: &[Case] = &[
    Case {
        name: "rows within the bounds of a range",
        schema: LEVELS,
        inputs: &[("low", "1,x,2020-01-01\n-5,,\n9,y,\n")],
        ..Case::LOADED
    },
    Case {
        name: "a row beyond the bounds of a range",
        schema: LEVELS,
        inputs: &[("low", "1,x,\n10,x,2020-01-01\n12,y,\n")],
        ..Case::REFUSED
    },
    Case {
        name: "null is in no range",
        schema: LEVELS,
        inputs: &[("low", "1,x,\n,x,\n")],
        ..Case::REFUSED
    },
    Case {
        name: "the bounds of the parent's own parent hold",
        schema: LEVELS,
        inputs: &[("high_x", "15,x,\n16,,\n20,x,\n")],
        ..Case::REFUSED
    },
    Case {
        name: "a default partition takes what no other does",
        schema: LEVELS,
        inputs: &[("high_rest", ",y,15\n2020-01-01,z,16\n")],
        ..Case::LOADED
    },
    Case {
        name: "a default partition refuses what another takes",
        schema: LEVELS,
        inputs: &[("high_rest", ",y,15\n2020-01-01,x,16\n")],
        ..Case::REFUSED
    },
    Case {
        name: "a hash",
        schema: BY_HASH,
        inputs: &[("h1", "1,a\n2,b\n3,c\n4,d\n5,e\n6,f\n7,g\n")],
        ..Case::REFUSED
    },
    Case {
        name: "a CHECK constraint comes before the bounds",
        schema: "CREATE TABLE t (a int CHECK (a <> 3), b int) PARTITION BY LIST (a);
                 CREATE TABLE p PARTITION OF t FOR VALUES IN (1, 2)",
        inputs: &[("p", "1,1\n3,1\n")],
        ..Case::REFUSED
    },
];

/// Partitioned tables, whose rows we route.
const PARENTS: &[Case] = &[
    Case {
        name: "rows go to the partitions of all levels",
        schema: LEVELS,
        inputs: &[(
            "t",
            "1,x,2020-01-01\n15,x,\n16,,\n17,other,1999-12-31\n-9,x,\n",
        )],
        ..Case::LOADED
    },
    Case {
        name: "a row without a partition",
        schema: LEVELS,
        inputs: &[("t", "1,x,\n20,x,\n")],
        ..Case::REFUSED
    },
    Case {
        name: "a row without a partition in the second level",
        schema: "CREATE TABLE t (a int, \"B c\" text) PARTITION BY LIST (a);
                 CREATE TABLE p (\"B c\" text, a int) PARTITION BY RANGE (\"B c\", a);
                 ALTER TABLE t ATTACH PARTITION p FOR VALUES IN (1, NULL);
                 CREATE TABLE q PARTITION OF p FOR VALUES FROM ('a', MINVALUE) TO ('c', 3)",
        inputs: &[("t", "1,a\n1,b\n1,c\n,c\n")],
        ..Case::REFUSED
    },
    Case {
        name: "null is in no range, and its text is shown up to its limit",
        schema: "CREATE TABLE t (a int, b text) PARTITION BY RANGE (b, a);
                 CREATE TABLE p PARTITION OF t FOR VALUES FROM (MINVALUE, MINVALUE)
                     TO (MAXVALUE, MAXVALUE)",
        inputs: &[(
            "t",
            "1,a\n,0123456789012345678901234567890123456789012345678901234567890123456789\n",
        )],
        ..Case::REFUSED
    },
    Case {
        name: "a key of all partitions",
        schema: "CREATE TABLE t (a int PRIMARY KEY, b text) PARTITION BY HASH (a);
                 CREATE TABLE h0 PARTITION OF t FOR VALUES WITH (MODULUS 2, REMAINDER 0);
                 CREATE TABLE h1 PARTITION OF t FOR VALUES WITH (MODULUS 2, REMAINDER 1)",
        inputs: &[("t", "1,x\n2,y\n3,z\n2,w\n")],
        line: Some(4),
        ..Case::REFUSED
    },
    Case {
        name: "a bad value comes before the partition that is missing",
        schema: LEVELS,
        inputs: &[("t", "1,x,\n20,x,no date\n30,x,\n")],
        ..Case::REFUSED
    },
    Case {
        name: "the partition that is missing comes before a null that is refused",
        schema: "CREATE TABLE t (a int, b int NOT NULL) PARTITION BY LIST (a);
                 CREATE TABLE p PARTITION OF t FOR VALUES IN (1)",
        inputs: &[("t", "1,1\n2,\n")],
        ..Case::REFUSED
    },
    Case {
        name: "a null that a partition alone refuses",
        schema: "CREATE TABLE t (a int, b int, c int) PARTITION BY LIST (a);
                 CREATE TABLE p (c int NOT NULL, gone int, b int NOT NULL, a int);
                 ALTER TABLE p DROP gone;
                 ALTER TABLE t ATTACH PARTITION p FOR VALUES IN (1);
                 CREATE TABLE q PARTITION OF t FOR VALUES IN (2)",
        inputs: &[("t", "2,,\n1,1,1\n1,,\n")],
        ..Case::REFUSED
    },
    Case {
        name: "of two partitions' CHECK constraints the one that is met first",
        schema: "CREATE TABLE t (a int, b int CHECK (b < 10)) PARTITION BY LIST (a);
                 CREATE TABLE p PARTITION OF t FOR VALUES IN (1);
                 CREATE TABLE q PARTITION OF t FOR VALUES IN (2)",
        inputs: &[("t", "1,1\n2,10\n1,11\n")],
        ..Case::REFUSED
    },
    Case {
        name: "a partition's own CHECK constraint",
        schema: "CREATE TABLE t (a int, b int) PARTITION BY LIST (a);
                 CREATE TABLE p PARTITION OF t (CHECK (b < 10)) FOR VALUES IN (1);
                 CREATE TABLE q PARTITION OF t DEFAULT",
        inputs: &[("t", "2,11\n1,1\n,12\n1,12\n")],
        ..Case::REFUSED
    },
    Case {
        name: "a foreign key of a partitioned table that references itself",
        schema: "CREATE TABLE t (a int, up int REFERENCES t (a), PRIMARY KEY (a))
                     PARTITION BY RANGE (a);
                 CREATE TABLE p PARTITION OF t FOR VALUES FROM (1) TO (10);
                 CREATE TABLE q PARTITION OF t FOR VALUES FROM (10) TO (20)",
        inputs: &[("t", "1,15\n15,1\n3,\n")],
        ..Case::LOADED
    },
    Case {
        name: "a foreign key between partitioned tables that is broken",
        schema: "CREATE TABLE t (a int PRIMARY KEY) PARTITION BY RANGE (a);
                 CREATE TABLE p PARTITION OF t FOR VALUES FROM (1) TO (10);
                 CREATE TABLE u (b int REFERENCES t) PARTITION BY HASH (b);
                 CREATE TABLE u0 PARTITION OF u FOR VALUES WITH (MODULUS 1, REMAINDER 0)",
        inputs: &[("t", "1\n2\n"), ("u", "2\n\n1\n3\n")],
        line: Some(4),
        ..Case::REFUSED
    },
    Case {
        name: "another table references it and is not loaded",
        schema: "CREATE TABLE t (a int PRIMARY KEY) PARTITION BY RANGE (a);
                 CREATE TABLE p PARTITION OF t FOR VALUES FROM (1) TO (10);
                 CREATE TABLE q PARTITION OF t FOR VALUES FROM (10) TO (20);
                 CREATE TABLE u (b int REFERENCES t)",
        inputs: &[("t", "1\n2\n12\n")],
        ..Case::LOADED
    },
    Case {
        name: "defaults and an identity are the parent's",
        schema: "CREATE TABLE t (id serial, a int DEFAULT 15, b text DEFAULT 'x', c date)
                     PARTITION BY RANGE (a);
                 CREATE TABLE p PARTITION OF t FOR VALUES FROM (0) TO (10);
                 CREATE TABLE q PARTITION OF t (b DEFAULT 'not me') FOR VALUES FROM (10) TO (20)",
        inputs: &[("t(c)", "2020-01-01\n\n2020-01-02\n")],
        ..Case::LOADED
    },
    Case {
        name: "no rows",
        schema: LEVELS,
        inputs: &[("t", "")],
        ..Case::LOADED
    },
    Case {
        name: "no partitions and no rows",
        schema: "CREATE TABLE t (a int) PARTITION BY LIST (a)",
        inputs: &[("t", "")],
        ..Case::LOADED
    },
    Case {
        name: "no partitions",
        schema: "CREATE TABLE t (a int) PARTITION BY LIST (a)",
        inputs: &[("t", "1\n")],
        ..Case::REFUSED
    },
];

/// Partitioned tables that are left to the server's COPY.
const BY_THE_SERVER: &[Case] = &[
    Case {
        name: "a key that is an expression",
        schema: "CREATE TABLE t (a int, b int) PARTITION BY LIST ((a + b));
                 CREATE TABLE p PARTITION OF t FOR VALUES IN (3)",
        inputs: &[("t", "1,2\n2,1\n")],
        ..Case::LOADED
    },
    Case {
        name: "generated columns",
        schema: "CREATE TABLE t (a int, b int GENERATED ALWAYS AS (a * 2) STORED)
                     PARTITION BY LIST (a);
                 CREATE TABLE p PARTITION OF t FOR VALUES IN (3)",
        inputs: &[("t", "3\n3\n")],
        ..Case::LOADED
    },
    Case {
        name: "a partitioned table that is a partition",
        schema: LEVELS,
        inputs: &[("high", "15,x,\n16,q,\n")],
        ..Case::LOADED
    },
];

#[test]
fn the_bounds_of_a_partition_are_checked_as_copy_checks_them() {
    agree(LEAVES, Load::NativeOnly);
}

#[test]
fn rows_of_a_partitioned_table_are_routed_as_copy_routes_them() {
    agree(PARENTS, Load::NativeOnly);
}

#[test]
fn partitioned_tables_that_we_cannot_route_are_left_to_copy() {
    agree(BY_THE_SERVER, Load::ByCopy);
}

#[test]
fn a_partitioned_table_with_rows_is_refused_or_replaced() {
    let server = Server::start(15, &[("wal_level", "minimal")]);
    server.execute(DB, LEVELS);
    server.execute(DB, "INSERT INTO t VALUES (1, 'old'), (15, 'x')");
    let stderr = load(&server, &[], &[("t", "2,new,\n")]).expect_failure(1);
    assert!(stderr.contains("table public.t is not empty"), "{stderr}");
    load(&server, &["--truncate"], &[("t", "2,new,\n16,x,\n")]).expect_success();
    let rows = "SELECT string_agg(tableoid::regclass || ':' || a, ' ' ORDER BY a) FROM t";
    assert_eq!(server.value(DB, rows), "low:2 high_x:16");
}

#[test]
fn triggers_of_a_partition_count_and_are_skipped_on_demand() {
    let server = Server::start(15, &[("wal_level", "minimal")]);
    server.execute(DB, LEVELS);
    server.execute(
        DB,
        "CREATE TABLE seen (a int);
         CREATE FUNCTION see() RETURNS trigger LANGUAGE plpgsql AS
             $$BEGIN INSERT INTO seen VALUES (NEW.a); RETURN NEW; END$$;
         CREATE TRIGGER on_leaf BEFORE INSERT ON high_x FOR EACH ROW EXECUTE FUNCTION see();
         CREATE TRIGGER on_parent AFTER INSERT ON t FOR EACH ROW EXECUTE FUNCTION see();
         CREATE TRIGGER not_me AFTER INSERT ON t FOR EACH ROW EXECUTE FUNCTION see();
         ALTER TABLE t DISABLE TRIGGER not_me;
         ALTER TABLE high_x ENABLE ALWAYS TRIGGER on_leaf",
    );
    let states =
        "SELECT string_agg(tgrelid::regclass || '.' || tgname || ' ' || tgenabled::text, ' '
                                    ORDER BY tgrelid, tgname)
                    FROM pg_trigger WHERE NOT tgisinternal";
    let before = server.value(DB, states);
    let stderr = load(&server, &[], &[("t", "2,x,\n")]).expect_failure(1);
    assert!(stderr.contains("on_leaf, on_parent"), "{stderr}");
    load(&server, &["--skip-triggers"], &[("t", "2,x,\n15,x,\n")]).expect_success();
    assert_eq!(server.value(DB, "SELECT count(*) FROM t"), "2");
    assert_eq!(server.value(DB, "SELECT count(*) FROM seen"), "0");
    assert_eq!(server.value(DB, states), before);
}
