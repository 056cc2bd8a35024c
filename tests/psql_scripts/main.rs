//! Scripts as psql splits them: psql sends them to a server that writes down what it gets, and our
//! reader must find the same statements, rows and connections, wherever its blocks end.

mod fake_server;

use fake_server::{Event, FakeServer};
use pgpagewrite::source::dump::script::{Connect, Item, Meta, ScriptReader};
use proptest::prelude::*;
use proptest::sample::select;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use std::io::Read;
use std::process::Command;
use support::run;

/// The psqls that there are.
const PSQLS: [&str; 2] = ["15/bin/psql", "client/bin/psql"];

/// Pieces of statements. What looks like a comment or a quote within others is what may mislead.
const PIECES: [&str; 92] = [
    "a",
    "B_c",
    "e",
    "u",
    "x",
    "n",
    "\u{e9}",
    "_",
    "b$c",
    "CREATE",
    "FUNCTION",
    "procedure",
    "OR",
    "replace",
    "BEGIN",
    "begin",
    "ATOMIC",
    "END",
    "end",
    "CASE",
    "case",
    "SELECT",
    "insert",
    ",",
    ".",
    "+",
    "-",
    "*",
    "/",
    "!",
    "<",
    ">",
    "=",
    ":",
    "::",
    "[",
    "]",
    "@",
    "#",
    "~",
    "%",
    "^",
    "|",
    "$",
    "$1",
    "(a; b)",
    "('x;', (2;))",
    "(",
    ")",
    "()",
    "''",
    "'a'",
    "'it''s'",
    "'a;b'",
    "'a\\'",
    "'\\\\'",
    "E'\\';'",
    "E'a''b\\\\'",
    "e';'",
    "U&'\\;'",
    "U&\"y;\"",
    "B'1'",
    "X'f'",
    "N'n'",
    "\"q\"",
    "\"a\"\"b;\"",
    "\"a\\\"",
    "$$;'$$",
    "$t$ $$; $t$",
    "$\u{e9}1$;$\u{e9}1$",
    "$_$\n;\n$_$",
    "$t $",
    "1a",
    "12",
    "1.5",
    "1e5",
    "1e",
    ".5",
    "12.",
    "0x1f",
    "1_000",
    "-- c ; '\n",
    "--\n",
    "/* ; */",
    "/* /* ; */ ' \" */",
    "/*/ ; */",
    "'--'",
    "'/*'",
    "\"--\"",
    "'\n'",
    ":name",
    ":'name'",
];

/// What stands between pieces.
const BETWEEN: [&str; 6] = ["", " ", " ", "\n", "\t", "\r\n"];

/// What stands on lines of its own between statements.
const LINES: [&str; 22] = [
    "SET standard_conforming_strings = off;",
    "SET standard_conforming_strings = on;",
    "COPY t FROM stdin;\n1\\.\n\\.a\n;'\n\\.",
    "copy t from STDIN;\n\\.",
    "COPY t FROM stdin;\r\nx\r\n\\.\r",
    "COPY t FROM stdin WITH (FORMAT csv);\n\"\n\\\n\"\n\\.",
    "COPY t FROM stdin; -- rows\na\n\n\\.",
    "\\connect other",
    "\\c - someone",
    "\\connect \"A b\"",
    "\\connect 'A b' me",
    "\\connect -reuse-previous=on \"dbname='x y'\"",
    "\\connect -reuse-previous=on 'dbname=z user=w'",
    "\\echo a 'b ;' c",
    "\\restrict k1\nSELECT 1;\n\\unrestrict k1",
    "\\set ON_ERROR_STOP on",
    "\\encoding UTF8",
    ";",
    "; ;",
    "-- a line ; ' \" $$",
    "/* lines\n; ' */",
    "",
];

/// A script: statements, and lines of other kinds.
fn scripts() -> impl Strategy<Value = String> {
    let piece = (select(&PIECES[..]), select(&BETWEEN[..])).prop_map(|(a, b)| format!("{a}{b}"));
    let statement =
        prop::collection::vec(piece, 1..10).prop_map(|pieces| format!("{};\n", pieces.concat()));
    let line = select(&LINES[..]).prop_map(|line| format!("{line}\n"));
    let part = prop_oneof![2 => statement, 1 => line];
    (any::<bool>(), prop::collection::vec(part, 1..12)).prop_map(|(mark, parts)| {
        let mark = if mark { "\u{feff}" } else { "" };
        format!("{mark}{}", parts.concat())
    })
}

/// Gives so many bytes at a time.
struct Slowly<'a>(&'a [u8], usize);

impl Read for Slowly<'_> {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        let n = self.1.min(into.len()).min(self.0.len());
        into[..n].copy_from_slice(&self.0[..n]);
        self.0 = &self.0[n..];
        Ok(n)
    }
}

/// The items of a script; whether it was read to its end.
fn items(script: &str, block_bytes: usize) -> (Vec<Item>, Option<String>) {
    let input = Slowly(script.as_bytes(), block_bytes);
    let mut reader = ScriptReader::new(input, "s.sql".to_owned()).with_blocks(block_bytes);
    let mut items = Vec::new();
    loop {
        match reader.next_item() {
            Ok(Some(item)) => items.push(item),
            Ok(None) => return (items, None),
            Err(error) => return (items, Some(error.message)),
        }
    }
}

const USER: &str = "first";
const DATABASE: &str = "start";

/// What a server would see of the items. Queries are without their semicolons.
fn events(script: &str, items: &[Item]) -> Vec<Event> {
    let (mut database, mut user) = (DATABASE.to_owned(), USER.to_owned());
    let mut events = vec![Event::Connect {
        database: database.clone(),
        user: user.clone(),
    }];
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("text");
    for item in items {
        match item {
            Item::Statement { text: sql, .. } => events.push(Event::Query(text(sql))),
            Item::Copy {
                statement, data, ..
            } => {
                events.push(Event::Query(text(statement)));
                let data = &script.as_bytes()[data.start as usize..data.end as usize];
                events.push(Event::Copy(data.to_vec()));
            }
            Item::Meta {
                command: Meta::Connect(connect),
                ..
            } => {
                connected(connect, &mut database, &mut user);
                events.push(Event::Connect {
                    database: database.clone(),
                    user: user.clone(),
                });
            }
            Item::Meta { .. } => {}
            Item::Inserts(_) => unreachable!("runs are not asked for"),
        }
    }
    events
}

fn connected(connect: &Connect, database: &mut String, user: &mut String) {
    match connect.dbname.as_deref() {
        // The strings of LINES.
        Some("dbname='x y'") => *database = "x y".into(),
        Some("dbname=z user=w") => (*database, *user) = ("z".into(), "w".into()),
        Some(name) => *database = name.into(),
        None => {}
    }
    if let Some(name) = &connect.user {
        user.clone_from(name);
    }
}

/// What psql did with a script.
fn events_of_psql(server: &FakeServer, psql: &str, script: &str) -> Vec<Event> {
    let file = tempfile::NamedTempFile::new().expect("a file");
    std::fs::write(file.path(), script).expect("a script");
    let mut command = Command::new(support::servers_dir().join(psql));
    command
        .env_clear()
        .env("PGSSLMODE", "disable")
        .env("PGGSSENCMODE", "disable")
        .env(
            "LD_LIBRARY_PATH",
            std::env::var_os("LD_LIBRARY_PATH").unwrap_or_default(),
        )
        .args([
            "-X",
            "-q",
            "-h",
            "127.0.0.1",
            "-p",
            &server.port().to_string(),
        ])
        .args(["-U", USER, "-d", DATABASE, "-f"])
        .arg(file.path());
    run(&mut command);
    server.take_events()
}

/// psql sends with a statement what is blank before it, and its semicolon.
fn is_same(ours: &Event, psqls: &Event) -> bool {
    match (ours, psqls) {
        (Event::Query(ours), Event::Query(psqls)) => {
            let psqls = psqls.trim_end();
            let sent = psqls.strip_suffix(';').unwrap_or(psqls).trim_end();
            let before = sent.strip_suffix(ours.as_str()).map(str::trim_start);
            before.is_some_and(|b| b.is_empty() || b.starts_with("--") || b.starts_with("/*"))
        }
        (Event::Copy(ours), Event::Copy(psqls)) => {
            let ends = [&b"\\.\n"[..], b"\\.\r\n"];
            let sent = ends.iter().find_map(|end| psqls.strip_suffix(*end));
            ours == sent.unwrap_or(psqls)
        }
        (ours, psqls) => ours == psqls,
    }
}

/// Nothing but comments and semicolons, which psql may send.
fn is_blank(event: &Event) -> bool {
    let Event::Query(text) = event else {
        return false;
    };
    let mut rest = text.trim_start();
    loop {
        rest = rest.trim_start_matches(|c: char| c == ';' || c.is_whitespace());
        if let Some(comment) = rest.strip_prefix("--") {
            rest = comment.split_once('\n').map_or("", |(_, rest)| rest);
        } else if rest.starts_with("/*") {
            // Those of LINES and PIECES.
            let comments = [
                "/* ; */",
                "/* /* ; */ ' \" */",
                "/*/ ; */",
                "/* lines\n; ' */",
            ];
            let Some(after) = comments.iter().find_map(|c| rest.strip_prefix(c)) else {
                return false;
            };
            rest = after;
        } else {
            return rest.is_empty();
        }
    }
}

/// Compares; whether the script was one that ends.
fn compare(server: &FakeServer, script: &str) -> Result<bool, String> {
    let (found, error) = items(script, 1 << 20);
    for block_bytes in [1, 2, 3, 7] {
        let again = items(script, block_bytes);
        if again != (found.clone(), error.clone()) {
            return Err(format!(
                "blocks of {block_bytes}: {again:#?} for {found:#?} {error:?}"
            ));
        }
    }
    let ours = events(script, &found);
    for psql in PSQLS {
        let psqls = events_of_psql(server, psql, script);
        let psqls: Vec<Event> = psqls.into_iter().filter(|e| !is_blank(e)).collect();
        let same = ours
            .iter()
            .zip(&psqls)
            .all(|(our, their)| is_same(our, their));
        // Where the script does not end, psql sends what there is.
        let same_count = match &error {
            None => ours.len() == psqls.len(),
            Some(_) => ours.len() <= psqls.len(),
        };
        if !(same && same_count) {
            return Err(format!("{psql}: {ours:#?}\n{error:?}\npsql: {psqls:#?}"));
        }
    }
    Ok(error.is_none())
}

#[test]
fn random_scripts_are_split_as_psql_splits_them() {
    let server = FakeServer::start();
    let cases = std::env::var("PSQL_SCRIPTS").map_or(200, |n| n.parse().expect("a number"));
    let config = Config {
        cases,
        failure_persistence: None,
        ..Config::default()
    };
    let rng = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    let mut runner = TestRunner::new_with_rng(config, rng);
    let ended = std::cell::Cell::new(0);
    runner
        .run(&scripts(), |script| {
            let ends = compare(&server, &script)
                .map_err(|m| TestCaseError::fail(format!("{script}\n{m}")))?;
            ended.set(ended.get() + u32::from(ends));
            Ok(())
        })
        .unwrap_or_else(|e| panic!("{e}"));
    assert!(ended.get() > cases / 3, "{} scripts end", ended.get());
}
