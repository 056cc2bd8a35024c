//! CHECK constraints, foreign keys, exclusion constraints and keys, against what the server's COPY says
//! of the same tables and inputs: the same rows in the same places, or the same error.

mod emptying;
mod locks;
mod maintenance;
mod partitions;
mod report;
mod run;

use run::{Case, Load, agree};
use support::Server;

/// Loads that we do natively.
const NATIVE: &[Case] = &[
    Case {
        name: "of several bad rows and constraints the first row tells, and its first by name",
        schema: "CREATE TABLE t (a int CONSTRAINT z_small CHECK (a < 10), b text,
                     CONSTRAINT b_short CHECK (length(b) < 5), CONSTRAINT a_long CHECK (a > 0))",
        inputs: &[("t", "1,x\n2,\n3,long enough\n-4,also long\n77,y\n")],
        ..Case::REFUSED
    },
    Case {
        name: "a row that fails twice tells the constraint that comes first",
        schema: "CREATE TABLE t (a int CONSTRAINT z_small CHECK (a < 10), b text,
                     CONSTRAINT b_short CHECK (length(b) < 5))",
        inputs: &[("t", "1,x\n20,long enough\n")],
        ..Case::REFUSED
    },
    Case {
        name: "null passes",
        schema: "CREATE TABLE t (a int CHECK (a > 0), b int CHECK (b > a))",
        inputs: &[("t", "1,2\n,\n5,\n,7\n")],
        ..Case::LOADED
    },
    Case {
        name: "a failing row shows its values as COPY does",
        schema: "CREATE TABLE t (a int CHECK (a <> 3), c char(5), d date, f bool, n numeric(9,3),
                     v text, x timestamptz, y bytea)",
        inputs: &[(
            "t",
            "1,a,2020-01-01,t,1.5,v,2020-01-01 00:00+00,\\x00\n\
             3,ab,1999-12-31,f,1.25,\
             äöüäöüäöüäöüäöüäöüäöüäöüäöüäöüäöüäöüäöüäöüäöü,2020-06-01 12:00+02,\n",
        )],
        ..Case::REFUSED
    },
    Case {
        name: "an expression that raises an error at a row",
        schema: "CREATE TABLE t (a int CHECK (100 / a > 0), b text)",
        inputs: &[("t", "5,x\n4,y\n0,z\n200,w\n0,v\n")],
        ..Case::REFUSED
    },
    Case {
        name: "a bad row before one that raises an error",
        schema: "CREATE TABLE t (a int CHECK (100 / a > 0), b text)",
        inputs: &[("t", "5,x\n200,w\n0,z\n")],
        ..Case::REFUSED
    },
    Case {
        name: "the line of a row behind others of many lines and in a later file",
        schema: "CREATE TABLE t (a int CHECK (a > 0), b text)",
        inputs: &[
            ("t", "1,\"x\ny\n\nz\"\n2,y\n"),
            ("t", "3,\"x\ny\"\n4,\"\n\"\n-1,x\n5,y\n"),
        ],
        ..Case::REFUSED
    },
    Case {
        name: "a constraint that is not valid holds for new rows",
        schema: "CREATE TABLE t (a int);
                 ALTER TABLE t ADD CONSTRAINT positive CHECK (a > 0) NOT VALID",
        inputs: &[("t", "1\n0\n")],
        ..Case::REFUSED
    },
    Case {
        name: "an inherited constraint counts",
        schema: "CREATE TABLE parent (a int CONSTRAINT positive CHECK (a > 0));
                 CREATE TABLE t (b int) INHERITS (parent)",
        inputs: &[("t", "1,1\n0,1\n")],
        ..Case::REFUSED
    },
    Case {
        name: "a constraint that the planner would believe",
        schema: "CREATE TABLE t (a int CONSTRAINT positive CHECK (a > 0))",
        inputs: &[("t", "1\n0\n")],
        options: "-c constraint_exclusion=on",
        ..Case::REFUSED
    },
    Case {
        name: "a whole row, the table's own OID, and odd names",
        schema: "CREATE TABLE \"T's $1\" (\"a b\" int, t text, \"select\" text,
                     CONSTRAINT \"whole \"\"row\" CHECK (\"T's $1\".* IS NOT NULL),
                     CONSTRAINT oid CHECK (tableoid <> 0),
                     CONSTRAINT \"a%\" CHECK (\"select\" LIKE 'a\\%%'))",
        inputs: &[("\"T's $1\"", "1,x,a%b\n2,,a%\n")],
        ..Case::REFUSED
    },
    Case {
        name: "functions and operators of users that read nothing",
        schema: "CREATE FUNCTION even(int) RETURNS bool IMMUTABLE LANGUAGE sql
                     AS 'SELECT $1 % 2 = 0';
                 CREATE OPERATOR === (LEFTARG = int, RIGHTARG = int, FUNCTION = int4eq);
                 CREATE TABLE t (a int CHECK (even(a)), b int CHECK (b === b), d date
                     CHECK (d < now()))",
        inputs: &[("t", "2,1,2020-01-01\n4,1,2020-01-01\n6,1,2999-01-01\n")],
        ..Case::REFUSED
    },
    Case {
        name: "a constraint before a bad value",
        schema: "CREATE TABLE t (a int CHECK (a > 0), b text)",
        inputs: &[("t", "1,x\n0,y\nz,w\n")],
        ..Case::REFUSED
    },
    Case {
        name: "a bad value before a constraint",
        schema: "CREATE TABLE t (a int CHECK (a > 0), b text)",
        inputs: &[("t", "1,x\nz,y\n0,w\n")],
        ..Case::REFUSED
    },
    Case {
        name: "a constraint in a file before one with a null",
        schema: "CREATE TABLE t (a int CHECK (a > 0), b text NOT NULL)",
        inputs: &[("t", "1,x\n2,y\n0,w\n"), ("t", "1,\n")],
        ..Case::REFUSED
    },
    Case {
        name: "a null and a constraint in one row",
        schema: "CREATE TABLE t (a int CHECK (a > 0), b text NOT NULL)",
        inputs: &[("t", "1,x\n0,\n")],
        ..Case::REFUSED
    },
    Case {
        name: "a constraint before a duplicate key",
        schema: "CREATE TABLE t (a int CHECK (a > 0), b text UNIQUE)",
        inputs: &[("t", "1,x\n0,y\n2,x\n")],
        ..Case::REFUSED
    },
    Case {
        name: "a constraint behind a duplicate key that is not stored yet",
        schema: "CREATE TABLE t (a int CHECK (a > 0), b text UNIQUE)",
        inputs: &[("t", "1,x\n2,x\n0,y\n")],
        ..Case::REFUSED
    },
    Case {
        name: "a duplicate key in a file before a constraint",
        schema: "CREATE TABLE t (a int CHECK (a > 0), b text UNIQUE)",
        inputs: &[("t", "1,x\n2,x\n"), ("t", "0,y\n")],
        line: Some(2),
        ..Case::REFUSED
    },
    Case {
        name: "the values that a foreign key needs",
        schema: "CREATE TABLE p (a int PRIMARY KEY); INSERT INTO p VALUES (1), (2);
                 CREATE TABLE t (id int, a int REFERENCES p)",
        inputs: &[("t", "1,1\n2,\n3,2\n4,1\n")],
        ..Case::LOADED
    },
    Case {
        name: "a key without a partner",
        schema: "CREATE TABLE p (a int PRIMARY KEY); INSERT INTO p VALUES (1), (2);
                 CREATE TABLE t (id int, a int REFERENCES p)",
        inputs: &[("t", "1,1\n2,\n3,9\n4,8\n")],
        line: Some(3),
        ..Case::REFUSED
    },
    Case {
        name: "of several foreign keys the first row tells, and its first by trigger",
        schema: "CREATE TABLE p (a int PRIMARY KEY); CREATE TABLE q (a text PRIMARY KEY);
                 INSERT INTO p VALUES (1); INSERT INTO q VALUES ('x');
                 CREATE TABLE t (a int, b text,
                     CONSTRAINT z FOREIGN KEY (a) REFERENCES p,
                     CONSTRAINT y FOREIGN KEY (b) REFERENCES q)",
        inputs: &[("t", "1,x\n1,w\n2,w\n2,x\n")],
        line: Some(2),
        ..Case::REFUSED
    },
    Case {
        name: "both keys of one row",
        schema: "CREATE TABLE p (a int PRIMARY KEY); CREATE TABLE q (a text PRIMARY KEY);
                 INSERT INTO p VALUES (1); INSERT INTO q VALUES ('x');
                 CREATE TABLE t (a int, b text,
                     CONSTRAINT z FOREIGN KEY (a) REFERENCES p,
                     CONSTRAINT y FOREIGN KEY (b) REFERENCES q)",
        inputs: &[("t", "1,x\n2,w\n")],
        line: Some(2),
        ..Case::REFUSED
    },
    Case {
        name: "a composite key in another order with nulls",
        schema: "CREATE TABLE p (a int, b text, PRIMARY KEY (b, a));
                 INSERT INTO p VALUES (1, 'x'), (2, 'y');
                 CREATE TABLE t (u text, v bigint, FOREIGN KEY (v, u) REFERENCES p (a, b))",
        inputs: &[("t", "x,1\n,7\nq,\n,\ny,2\nx,2\n")],
        line: Some(6),
        ..Case::REFUSED
    },
    Case {
        name: "match full takes no half keys",
        schema: "CREATE TABLE p (a int, b int, PRIMARY KEY (a, b)); INSERT INTO p VALUES (1, 1);
                 CREATE TABLE t (a int, b int, FOREIGN KEY (a, b) REFERENCES p MATCH FULL)",
        inputs: &[("t", "1,1\n,\n1,\n2,2\n")],
        line: Some(3),
        ..Case::REFUSED
    },
    Case {
        name: "match full takes whole and absent keys",
        schema: "CREATE TABLE p (a int, b int, PRIMARY KEY (a, b)); INSERT INTO p VALUES (1, 1);
                 CREATE TABLE t (a int, b int, FOREIGN KEY (a, b) REFERENCES p MATCH FULL)",
        inputs: &[("t", "1,1\n,\n")],
        ..Case::LOADED
    },
    Case {
        name: "a tree in any order",
        schema: "CREATE TABLE t (id int PRIMARY KEY, parent int REFERENCES t)",
        inputs: &[("t", "3,2\n2,1\n1,\n4,4\n")],
        ..Case::LOADED
    },
    Case {
        name: "a tree with a hole",
        schema: "CREATE TABLE t (id int PRIMARY KEY, parent int REFERENCES t)",
        inputs: &[("t", "3,2\n2,5\n1,\n")],
        line: Some(2),
        ..Case::REFUSED
    },
    Case {
        name: "keys of other types, collations and domains of one meaning",
        schema: "CREATE TABLE p (a numeric PRIMARY KEY, v varchar(9) COLLATE \"POSIX\" UNIQUE);
                 INSERT INTO p VALUES (1.0, 'a'), (2.50, 'b');
                 CREATE TABLE t (i int REFERENCES p, v text COLLATE \"C\" REFERENCES p (v))",
        inputs: &[("t", "1,a\n1,b\n,a\n2,a\n")],
        line: Some(4),
        ..Case::REFUSED
    },
    Case {
        name: "a partitioned table that is referenced",
        schema: "CREATE TABLE p (a int PRIMARY KEY) PARTITION BY RANGE (a);
                 CREATE TABLE p1 PARTITION OF p FOR VALUES FROM (0) TO (10);
                 CREATE TABLE p2 PARTITION OF p FOR VALUES FROM (10) TO (20);
                 INSERT INTO p VALUES (1), (15);
                 CREATE TABLE t (a int REFERENCES p)",
        inputs: &[("t", "1\n15\n3\n")],
        line: Some(3),
        ..Case::REFUSED
    },
    Case {
        name: "rows of a referenced table's children do not count",
        schema: "CREATE TABLE p (a int PRIMARY KEY); CREATE TABLE c () INHERITS (p);
                 INSERT INTO p VALUES (1); INSERT INTO c VALUES (2);
                 CREATE TABLE t (a int REFERENCES p)",
        inputs: &[("t", "1\n2\n")],
        line: Some(2),
        ..Case::REFUSED
    },
    Case {
        name: "a deferred key is told after the others",
        schema: "CREATE TABLE p (a int PRIMARY KEY); INSERT INTO p VALUES (1);
                 CREATE TABLE t (a int REFERENCES p DEFERRABLE INITIALLY DEFERRED,
                                 b int REFERENCES p DEFERRABLE)",
        inputs: &[("t", "1,1\n2,1\n1,3\n")],
        line: Some(3),
        ..Case::REFUSED
    },
    Case {
        name: "a deferred key is checked before commit",
        schema: "CREATE TABLE p (a int PRIMARY KEY); INSERT INTO p VALUES (1);
                 CREATE TABLE t (a int REFERENCES p DEFERRABLE INITIALLY DEFERRED)",
        inputs: &[("t", "1\n2\n")],
        line: Some(2),
        ..Case::REFUSED
    },
    Case {
        name: "tables of one load that need each other",
        schema: "CREATE TABLE p (a int PRIMARY KEY, b int);
                 CREATE TABLE t (a int PRIMARY KEY, b int REFERENCES p);
                 ALTER TABLE p ADD FOREIGN KEY (b) REFERENCES t DEFERRABLE INITIALLY DEFERRED",
        inputs: &[("p", "1,7\n2,8\n"), ("t", "7,2\n8,1\n")],
        ..Case::LOADED
    },
    Case {
        name: "a key that is not valid holds for new rows",
        schema: "CREATE TABLE p (a int PRIMARY KEY); CREATE TABLE t (a int);
                 ALTER TABLE t ADD CONSTRAINT k FOREIGN KEY (a) REFERENCES p NOT VALID",
        inputs: &[("t", "1\n")],
        line: Some(1),
        ..Case::REFUSED
    },
    Case {
        name: "a key whose triggers are disabled is not checked",
        schema: "CREATE TABLE p (a int PRIMARY KEY); CREATE TABLE t (a int REFERENCES p);
                 ALTER TABLE t DISABLE TRIGGER ALL",
        inputs: &[("t", "1\n")],
        ..Case::LOADED
    },
    Case {
        name: "a referenced table without rows is loaded alone",
        schema: "CREATE TABLE t (a int PRIMARY KEY, b text UNIQUE); CREATE INDEX ON t (b, a);
                 CREATE TABLE c (a int REFERENCES t, b text REFERENCES t (b))",
        inputs: &[("t", "3,x\n1,y\n2,z\n")],
        ..Case::LOADED
    },
    Case {
        name: "a deferrable unique key is checked",
        schema: "CREATE TABLE t (a int CONSTRAINT u UNIQUE DEFERRABLE INITIALLY DEFERRED, b int)",
        inputs: &[("t", "1,1\n2,1\n1,3\n")],
        line: Some(3),
        ..Case::REFUSED
    },
    Case {
        name: "row security does not bind a superuser",
        schema: "CREATE TABLE t (a int); ALTER TABLE t ENABLE ROW LEVEL SECURITY;
                 ALTER TABLE t FORCE ROW LEVEL SECURITY;
                 CREATE POLICY none ON t USING (false) WITH CHECK (false)",
        inputs: &[("t", "1\n2\n")],
        ..Case::LOADED
    },
];

/// Null keys that are equal, which came with 15.
const WITH_SERVER_INDEX_ON_15: &[Case] = &[Case {
    name: "nulls that are not distinct",
    schema: "CREATE TABLE t (a int, b int);
             CREATE UNIQUE INDEX ON t ((a + 0), b) NULLS NOT DISTINCT WHERE b IS NULL",
    inputs: &[("t", "1,\n,1\n,1\n,\n2,\n,\n1,\n")],
    since: 15,
    ..Case::REFUSED
}];

/// What came with 18.
const NATIVE_ON_18: &[Case] = &[Case {
    name: "constraints that are not enforced",
    schema: "CREATE TABLE p (a int PRIMARY KEY);
             CREATE TABLE t (a int CHECK (a > 5) NOT ENFORCED REFERENCES p NOT ENFORCED)",
    inputs: &[("t", "1\n2\n")],
    since: 18,
    ..Case::LOADED
}];

/// Loads in which the server builds an index, and that we do natively else.
const WITH_SERVER_INDEX: &[Case] = &[
    Case {
        name: "an exclusion constraint without conflicts",
        schema: "CREATE TABLE t (a int, b text, EXCLUDE USING hash (a WITH =),
                     EXCLUDE USING btree (b WITH =) WHERE (a > 2))",
        inputs: &[("t", "1,x\n2,x\n3,x\n,y\n,y\n")],
        ..Case::LOADED
    },
    Case {
        name: "an index over the condition itself",
        schema: "CREATE TABLE t (a int CHECK (a > 0)); CREATE INDEX ON t ((a > 0));
                 CREATE INDEX ON t ((a > 0)) WHERE (a > 0) IS FALSE",
        inputs: &[("t", "1\n0\n")],
        ..Case::REFUSED
    },
    Case {
        name: "a constraint before a duplicate of an expression",
        schema: "CREATE TABLE t (a int CHECK (a > 0), b text);
                 CREATE UNIQUE INDEX ON t (lower(b))",
        inputs: &[("t", "1,x\n2,X\n0,y\n")],
        ..Case::REFUSED
    },
    Case {
        name: "two rows that exclude each other",
        schema: "CREATE TABLE t (b text, a int, CONSTRAINT e EXCLUDE USING btree (lower(b) WITH =,
                     a WITH =) DEFERRABLE INITIALLY DEFERRED)",
        inputs: &[("t", "x,1\ny,1\nX,2\nY,1\n")],
        line: Some(4),
        ..Case::REFUSED
    },
    Case {
        name: "rows that exclude each other are among those that the constraint is about",
        options: "-c enable_seqscan=off",
        schema: "CREATE TABLE t (a int, b int, CONSTRAINT e EXCLUDE USING hash ((a + 1) WITH =)
                     WHERE (b > 1))",
        inputs: &[("t", "1,1\n2,2\n1,3\n1,4\n")],
        ..Case::REFUSED
    },
    Case {
        name: "a duplicate of an expression",
        options: "-c enable_seqscan=off",
        schema: "CREATE TABLE t (a int, b text);
                 CREATE UNIQUE INDEX u ON t ((a + 1), lower(b) DESC) INCLUDE (b)",
        inputs: &[("t", "1,x\n2,X\n1,\n1,\n2,y\n1,y\n1,X\n2,x\n")],
        ..Case::REFUSED
    },
    Case {
        name: "a duplicate in a partial index, with quotes in names and literals",
        options: "-c enable_seqscan=off",
        schema: r#"CREATE TABLE t ("a'b" int, b text);
                   CREATE UNIQUE INDEX "u'""u" ON t ("a'b", (b || '''')) WHERE b <> 'x'"#,
        inputs: &[("t", "1,x\n1,x\n2,y\n1,y\n1,y\n")],
        ..Case::REFUSED
    },
    Case {
        name: "of duplicates in several indexes the first row tells, and its first index",
        schema: "CREATE TABLE t (a int, b int, c int); CREATE UNIQUE INDEX ON t ((a + 0));
                 CREATE UNIQUE INDEX ON t ((b + 0)); CREATE UNIQUE INDEX ON t ((c + 0))",
        inputs: &[("t", "1,1,1\n2,2,2\n3,1,2\n1,3,3\n")],
        ..Case::REFUSED
    },
    Case {
        name: "a key is equal as its collation has it",
        schema: "CREATE COLLATION c (provider = icu, locale = 'und-u-ks-level2',
                                     deterministic = false);
                 CREATE TABLE t (a text COLLATE c PRIMARY KEY, b text COLLATE c)",
        inputs: &[("t", "x,1\ny,1\nX,2\n")],
        ..Case::REFUSED
    },
    Case {
        name: "a key is equal as its type has it",
        schema: "CREATE TABLE t (a text); CREATE UNIQUE INDEX ON t ((a::numeric))",
        inputs: &[("t", "1\n2\n1.0\n")],
        ..Case::REFUSED
    },
];

/// CHECK constraints of domains. An error of a row that COPY would have met later does not hide
/// theirs.
const DOMAINS: &[Case] = &[
    Case {
        name: "a value that its domain refuses",
        schema: "CREATE DOMAIN pos AS int CHECK (VALUE > 0);
                 CREATE TABLE t (a int, b pos, c int)",
        inputs: &[("t", "1,1,1\n2,,2\n3,-1,3\n4,-2,4\n")],
        ..Case::REFUSED
    },
    Case {
        name: "values that domains take, of many types",
        schema: r#"DROP SCHEMA IF EXISTS u CASCADE; CREATE SCHEMA u; CREATE TYPE s.mood AS ENUM ('sad', 'ok');
                 CREATE DOMAIN "a'B" AS text COLLATE "C" CHECK (VALUE ~ '^\S+$' AND VALUE <> 'VALUE''"');
                 CREATE DOMAIN c AS char(3) CHECK (length(VALUE) = 2 AND VALUE = 'ab');
                 CREATE DOMAIN b AS bit(4) CHECK (VALUE & '1000' = '1000');
                 CREATE DOMAIN n AS numeric(6,2) NOT NULL CHECK (VALUE BETWEEN 0 AND 100);
                 CREATE DOMAIN m AS mood CHECK (VALUE > 'sad');
                 CREATE DOMAIN l AS int[] CHECK (cardinality(VALUE) < 3 AND VALUE[1] > 0);
                 CREATE DOMAIN u.z AS timestamptz CHECK (VALUE > '2000-01-01');
                 CREATE DOMAIN j AS jsonb CHECK (VALUE ? 'k');
                 CREATE DOMAIN q AS "char" CHECK (VALUE IN ('x', 'y'));
                 CREATE TABLE t (value "a'B" PRIMARY KEY, c c, b b, n n, m m, l l, z u.z, j j, q q,
                                 CHECK (value < 'zz'))"#,
        inputs: &[(
            "t",
            "x,ab,1001,1.25,ok,{1},2020-01-01,\"{\"\"k\"\": 1}\",x\n\
             y,ab ,1000,100,,\"{1,2}\",,,y\n",
        )],
        ..Case::LOADED
    },
    Case {
        name: "a domain over another with a collation and a length, whose constraints come first",
        schema: r#"CREATE DOMAIN d AS varchar(5) COLLATE "C" CONSTRAINT z CHECK (VALUE < 'b');
                 CREATE DOMAIN e AS d CONSTRAINT a CHECK (VALUE < 'c' AND VALUE <> 'a');
                 CREATE TABLE t (a e COLLATE "POSIX", b d)"#,
        inputs: &[("t", "A,B\nC,\nd,x\n")],
        ..Case::REFUSED
    },
    Case {
        name: "the outer one of two domains refuses",
        schema: "CREATE DOMAIN d AS int CONSTRAINT z CHECK (VALUE > 0);
                 CREATE DOMAIN e AS d CONSTRAINT a CHECK (VALUE < 10);
                 CREATE TABLE t (a e, b d)",
        inputs: &[("t", "1,1\n11,1\n-1,-1\n")],
        ..Case::REFUSED
    },
    Case {
        name: "of a row's fields the first tells",
        schema: "CREATE DOMAIN d AS int CHECK (VALUE > 0); CREATE DOMAIN e AS int CHECK (VALUE > 1);
                 CREATE TABLE t (a int CHECK (a > 5), b e, c d)",
        inputs: &[("t(c, b, a)", "1,2,7\n0,0,0\n")],
        ..Case::REFUSED
    },
    Case {
        name: "a table's constraint at a row before",
        schema: "CREATE DOMAIN d AS int CHECK (VALUE > 0);
                 CREATE TABLE t (b d, a int CHECK (a > 5))",
        inputs: &[("t", "1,7\n1,0\n0,7\n")],
        ..Case::REFUSED
    },
    Case {
        name: "null is held against a domain",
        schema: "CREATE DOMAIN d AS int CHECK (VALUE IS NOT NULL); CREATE TABLE t (a int, b d)",
        inputs: &[("t", "1,1\n2,\n")],
        ..Case::REFUSED
    },
    Case {
        name: "null of a column that the input does not have is not",
        schema: "CREATE DOMAIN d AS int CHECK (VALUE IS NOT NULL); CREATE TABLE t (a int, b d, c d)",
        inputs: &[("t(a, c)", "1,1\n2,2\n")],
        ..Case::LOADED
    },
    Case {
        name: "a domain's condition raises an error",
        schema: "CREATE DOMAIN d AS int CHECK (100 / VALUE > 0);
                 CREATE DOMAIN e AS text CHECK (VALUE::int > 0);
                 CREATE TABLE t (a int CHECK (a > 0), b d, c e)",
        inputs: &[("t", "1,1,1\n2,2,x\n3,0,3\n")],
        ..Case::REFUSED
    },
    Case {
        name: "a domain refuses a row before one with a bad value, and before a bad field",
        schema: "CREATE DOMAIN d AS int CHECK (VALUE > 0); CREATE TABLE t (a d, b int)",
        inputs: &[("t", "1,1\n0,x\ny,1\n")],
        ..Case::REFUSED
    },
    Case {
        name: "a domain refuses a row before a duplicate and behind one in the batch",
        schema: "CREATE DOMAIN d AS int CHECK (VALUE > 0); CREATE TABLE t (a d PRIMARY KEY)",
        inputs: &[("t", "1\n1\n0\n")],
        ..Case::REFUSED
    },
    Case {
        name: "a domain refuses a row before one that is too long",
        schema: "CREATE DOMAIN d AS int CHECK (VALUE > 0); CREATE TABLE t (a d, b varchar(2))",
        inputs: &[("t", "1,x\n0,y\n1,long\n")],
        ..Case::REFUSED
    },
    Case {
        name: "a domain refuses a row before a bad value, where the input has some columns only",
        schema: "CREATE DOMAIN d AS int CHECK (VALUE > 0);
                 CREATE TABLE t (id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, a d, b int NOT NULL
                     DEFAULT 5 CHECK (b > 1), c int GENERATED ALWAYS AS (b + 1) STORED)",
        inputs: &[("t(a)", "1\n0\nx\n")],
        ..Case::REFUSED
    },
    Case {
        name: "functions of a user that look at nothing else",
        schema: "CREATE FUNCTION f(int) RETURNS bool IMMUTABLE LANGUAGE plpgsql AS 'BEGIN RETURN $1 > 0; END';
                 CREATE DOMAIN d AS int CHECK (f(VALUE)); CREATE TABLE t (a d)",
        inputs: &[("t", "1\n2\n0\n")],
        ..Case::REFUSED
    },
    Case {
        name: "a constraint that is not valid holds for new rows",
        schema: "CREATE DOMAIN d AS int; CREATE TABLE t (a d);
                 ALTER DOMAIN d ADD CONSTRAINT c CHECK (VALUE > 0) NOT VALID",
        inputs: &[("t", "1\n0\n")],
        ..Case::REFUSED
    },
    Case {
        name: "a domain's default is held against it",
        schema: "CREATE DOMAIN d AS int DEFAULT -1 CHECK (VALUE > 0); CREATE TABLE t (a int, b d)",
        inputs: &[("t(a)", "1\n2\n")],
        ..Case::REFUSED
    },
    Case {
        name: "a column's default and a generated column are held against their domains",
        schema: "CREATE DOMAIN d AS int CHECK (VALUE > 0);
                 CREATE TABLE t (a int, b d DEFAULT 5, c d GENERATED ALWAYS AS (a * 2) STORED)",
        inputs: &[("t(a)", "1\n2\n0\n")],
        ..Case::REFUSED
    },
];

/// Loads that are left to the server, for their constraints' sake.
const BY_COPY: &[Case] = &[
    Case {
        name: "a function that reads the table",
        schema: "CREATE TABLE t (a int);
                 CREATE FUNCTION few() RETURNS bool STABLE LANGUAGE sql
                     AS 'SELECT count(*) < 1 FROM t';
                 ALTER TABLE t ADD CHECK (few())",
        inputs: &[("t", "1\n2\n3\n")],
        ..Case::LOADED
    },
    Case {
        name: "a function that says it reads nothing but does",
        schema: "CREATE TABLE t (a int);
                 CREATE FUNCTION few() RETURNS bool IMMUTABLE LANGUAGE plpgsql
                     AS 'BEGIN RETURN (SELECT count(*) < 1 FROM t); END';
                 CREATE FUNCTION outer_few(int) RETURNS bool IMMUTABLE LANGUAGE plpgsql
                     AS 'BEGIN RETURN few(); END';
                 ALTER TABLE t ADD CHECK (outer_few(a))",
        inputs: &[("t", "1\n2\n3\n")],
        ..Case::LOADED
    },
    Case {
        name: "a volatile function of the server",
        schema: "CREATE TABLE t (a int CHECK (random() < 2))",
        inputs: &[("t", "1\n2\n3\n")],
        ..Case::LOADED
    },
    Case {
        name: "a cast to a domain",
        schema: "CREATE DOMAIN d AS int CHECK (VALUE < 3);
                 CREATE TABLE t (a int CHECK (a::d > 0))",
        inputs: &[("t", "1\n2\n3\n")],
        ..Case::REFUSED
    },
    Case {
        name: "elements of a domain",
        schema: "CREATE DOMAIN d AS int CHECK (VALUE < 3); CREATE TABLE t (a d[])",
        inputs: &[("t", "{1}\n\"{2,1}\"\n{3}\n")],
        ..Case::REFUSED
    },
    Case {
        name: "a domain whose condition reads the table",
        schema: "CREATE TABLE r (a int);
                 CREATE FUNCTION few(int) RETURNS bool STABLE LANGUAGE sql
                     AS 'SELECT count(*) < 1 FROM r';
                 CREATE DOMAIN d AS int CHECK (few(VALUE)); CREATE TABLE t (a d)",
        inputs: &[("t", "1\n2\n3\n")],
        ..Case::LOADED
    },
    Case {
        name: "a volatile condition of a domain",
        schema: "CREATE DOMAIN d AS int CHECK (VALUE > random() - 1); CREATE TABLE t (a d)",
        inputs: &[("t", "1\n2\n3\n")],
        ..Case::LOADED
    },
    Case {
        name: "a function of a user over a domain within a domain",
        schema: "CREATE DOMAIN d AS int;
                 CREATE FUNCTION f(d) RETURNS bool IMMUTABLE LANGUAGE plpgsql AS 'BEGIN RETURN $1 > 0; END';
                 CREATE FUNCTION f(int) RETURNS bool IMMUTABLE LANGUAGE plpgsql AS 'BEGIN RETURN $1 > 1; END';
                 CREATE DOMAIN e AS d CHECK (f(VALUE)); CREATE TABLE t (a e)",
        inputs: &[("t", "2\n1\n0\n")],
        ..Case::REFUSED
    },
    Case {
        name: "inputs with other columns of which one has no domain",
        schema: "CREATE DOMAIN d AS int CHECK (VALUE IS NOT NULL); CREATE TABLE t (a int, b d)",
        inputs: &[("t(a)", "1\n"), ("t", "1,2\n")],
        ..Case::LOADED
    },
];

#[test]
fn constraints_are_checked_as_copy_checks_them() {
    agree(NATIVE, Load::NativeOnly);
}

#[test]
fn domains_are_checked_as_copy_checks_them() {
    agree(DOMAINS, Load::Native);
}

#[test]
fn constraints_that_are_not_enforced_are_not_checked() {
    agree(NATIVE_ON_18, Load::NativeOnly);
}

#[test]
fn indexes_of_the_server_are_checked_as_copy_checks_them() {
    agree(WITH_SERVER_INDEX, Load::Native);
    agree(WITH_SERVER_INDEX_ON_15, Load::Native);
}

#[test]
fn a_constraint_that_can_tell_when_it_is_checked_is_left_to_copy() {
    agree(BY_COPY, Load::ByCopy);
}

#[test]
fn a_constraint_comes_before_a_bad_value_where_columns_take_their_defaults() {
    let server = Server::start(15, &[]);
    server.execute(
        run::DB,
        "CREATE TABLE t (id serial PRIMARY KEY, a int CONSTRAINT positive CHECK (a > 0),
                         b text NOT NULL DEFAULT 'x' CHECK (b = 'x'))",
    );
    let stderr = run::load(&server, &[], &[("t(a)", "1\n-1\ny\n")]).expect_failure(1);
    assert!(
        stderr.starts_with(
            "ERROR 23514: new row for relation \"t\" violates check constraint \"positive\"\n  at "
        ) && stderr.contains(", line 2"),
        "{stderr}"
    );
}
