//! Input in other encodings than the database's, and databases in other encodings than UTF8,
//! against COPY.

use pgpagewrite::catalog::read;
use pgpagewrite::error::Place;
use pgpagewrite::source::Conversion;
use pgpagewrite::source::charset::MultiByteSet;
use postgres::Client;
use std::io::Write;
use std::process::Command;
use std::sync::Arc;
use support::{Ran, Server};

const PROGRAM: &str = env!("CARGO_BIN_EXE_pgpagewrite");
const DB: &str = "postgres";
const SETTINGS: &[(&str, &str)] = &[("wal_level", "minimal")];

/// A generator of random numbers that gives the same in each run (xorshift).
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % end
    }

    fn between(&mut self, low: u8, high: u8) -> u8 {
        low + self.below(usize::from(high - low) + 1) as u8
    }
}

/// What COPY makes of one line of CSV, or its refusal: SQLSTATE and message.
fn copied(client: &mut Client, line: &[u8], encoding: &str) -> Result<String, (String, String)> {
    let mut transaction = client.transaction().unwrap();
    let mut copy = |line: &[u8]| {
        let mut writer = transaction.copy_in(&format!(
            "COPY line FROM STDIN (FORMAT csv, QUOTE E'\\x02', DELIMITER E'\\x01', ENCODING '{encoding}')"
        ))?;
        let _ = writer.write_all(line);
        writer.finish()
    };
    if let Err(error) = copy(line) {
        let error = error.as_db_error().expect("the server's error");
        return Err((error.code().code().into(), error.message().into()));
    }
    let row = transaction.query_one("SELECT v FROM line", &[]).unwrap();
    Ok(row.get(0))
}

#[test]
fn multi_byte_encodings_are_converted_as_the_server_converts_them() {
    const NAMES: [&str; 12] = [
        "EUC_JP",
        "EUC_CN",
        "EUC_KR",
        "EUC_TW",
        "EUC_JIS_2004",
        "JOHAB",
        "SJIS",
        "SHIFT_JIS_2004",
        "BIG5",
        "GBK",
        "UHC",
        "GB18030",
    ];
    for version in [14, 18] {
        let server = Server::start(version, SETTINGS);
        let mut client = server.connect(DB);
        client.batch_execute("CREATE TABLE line (v text)").unwrap();
        let (mut taken, mut all) = (0, 0);
        for name in NAMES {
            let set = MultiByteSet::by_name(name).expect("known");
            let map = read::multi_byte(&mut client, set)
                .unwrap()
                .expect("PL/pgSQL");
            let conversion = Conversion::FromMulti(Arc::new(map));
            let mut random = Random(0x5eed);
            for _ in 0..250 {
                let mut line = Vec::new();
                for _ in 0..=random.below(3) {
                    let block = set.blocks()[random.below(set.blocks().len())];
                    match random.below(12) {
                        0 => line.push(random.between(0x80, 0xff)),
                        1 => line.extend([0x8e, random.between(0xa1, 0xfe)]),
                        2 => line.extend([
                            random.between(0x81, 0xfe),
                            random.between(0x30, 0x39),
                            random.between(0x81, 0xfe),
                            random.between(0x30, 0x39),
                        ]),
                        3 => line.extend([random.between(0x80, 0xff), random.between(0x30, 0x5b)]),
                        4..6 => line.push(random.between(b'a', b'z')),
                        _ => line.extend(block.iter().map(|&(low, high)| {
                            // No bytes that mean something to the format of lines.
                            random.between(low.max(if high > 0x5d { 0x5d } else { low }), high)
                        })),
                    }
                }
                let mut ours = Vec::new();
                let ours = match conversion.convert(&line, true, &mut ours) {
                    Ok(bytes) => {
                        assert_eq!(bytes, line.len());
                        Ok(String::from_utf8(ours).expect("UTF-8"))
                    }
                    Err(error) => Err((error.sqlstate.to_owned(), error.message.clone())),
                };
                let theirs = copied(&mut client, &line, name);
                assert_eq!(ours, theirs, "{name}, {line:02x?}, PostgreSQL {version}");
                taken += usize::from(theirs.is_ok());
                all += 1;
            }
        }
        eprintln!("PostgreSQL {version}: {taken} of {all} lines taken alike");
        assert!(taken > all / 8 && taken < all * 7 / 8);
    }
}

/// How a load ended: what is in the table, or SQLSTATE and line.
#[derive(Debug, PartialEq, Eq)]
enum Outcome {
    Rows(String),
    Refused(String, u64),
}

fn contents(client: &mut Client) -> Outcome {
    let sql = "SELECT coalesce(string_agg(md5(t::text), ',' ORDER BY id), '') FROM t";
    Outcome::Rows(client.query_one(sql, &[]).unwrap().get(0))
}

fn by_server(client: &mut Client, input: &[u8], options: &str) -> Outcome {
    let mut copy = || {
        let mut writer = client.copy_in(&format!("COPY t FROM STDIN (FORMAT csv{options})"))?;
        let _ = writer.write_all(input);
        writer.finish()
    };
    let outcome = match copy() {
        Ok(_) => contents(client),
        Err(error) => {
            let error = error.as_db_error().expect("the server's error");
            let place = error.where_().and_then(Place::of_copy_context);
            let line = place.map_or(0, |place| place.line);
            Outcome::Refused(error.code().code().to_owned(), line)
        }
    };
    client.batch_execute("TRUNCATE t").unwrap();
    outcome
}

fn build(server: &Server, database: &str, encoding: Option<&str>, input: &[u8]) -> Ran {
    let path = server.dir().join("input.csv");
    std::fs::write(&path, input).expect("the input");
    let mut command = Command::new(PROGRAM);
    command
        .args(["build", "--no-analyze", "--native-only", "-d"])
        .arg(server.conninfo(database));
    if let Some(encoding) = encoding {
        command.args(["--encoding", encoding]);
    }
    command.arg(format!("t={}", path.display()));
    support::run(&mut command)
}

fn by_us(ran: &Ran, client: &mut Client) -> Outcome {
    if ran.succeeded() {
        let outcome = contents(client);
        client.batch_execute("TRUNCATE t").unwrap();
        return outcome;
    }
    let line = ran
        .stderr
        .split(", line ")
        .nth(1)
        .and_then(|rest| rest.split(|c: char| !c.is_ascii_digit()).next())
        .and_then(|digits| digits.parse().ok());
    let sqlstate = ran.sqlstate().unwrap_or(&ran.stderr).to_owned();
    Outcome::Refused(sqlstate, line.unwrap_or(0))
}

fn assert_same(server: &Server, database: &str, encoding: Option<&str>, input: &[u8]) -> bool {
    let mut client = server.connect(database);
    let options = encoding.map_or(String::new(), |name| format!(", ENCODING '{name}'"));
    let theirs = by_server(&mut client, input, &options);
    let ran = build(server, database, encoding, input);
    let mut ours = by_us(&ran, &mut client);
    if let (Outcome::Refused(sqlstate, line), Outcome::Refused(told, 0)) = (&mut ours, &theirs) {
        // Of lines that UTF8 does not have a client in UTF8 is not told, or only that its error
        // cannot be.
        assert!(database == "sql_ascii" || database.starts_with("euc"));
        if told == "22P05" {
            sqlstate.clone_from(told);
        }
        *line = 0;
    }
    let shown = String::from_utf8_lossy(&input[..input.len().min(200)]);
    assert_eq!(
        ours,
        theirs,
        "{encoding:?} into {database} on PostgreSQL {}: {shown:?}, {}",
        server.version(),
        ran.stderr
    );
    matches!(theirs, Outcome::Rows(_))
}

#[test]
fn files_in_multi_byte_encodings_load_wherever_blocks_of_them_end() {
    for version in [14, 18] {
        let server = &Server::start(version, SETTINGS);
        server.execute(DB, "CREATE TABLE t (id int, v text)");
        for (encoding, text) in [
            ("SJIS", "\u{65e5}\u{672c}\u{8868}x\u{ff76}"),
            ("GB18030", "\u{4e2d}\u{e9}\u{1f600}y\u{28}"),
        ] {
            let path = server.dir().join("all.csv");
            server.execute(
                DB,
                &format!(
                    "COPY (SELECT n, repeat('{text}', n % 40) || n FROM generate_series(1, 20000) n)
                     TO '{}' (FORMAT csv, ENCODING '{encoding}')",
                    path.display()
                ),
            );
            let good = std::fs::read(&path).expect("the file");
            assert!(good.len() > 5 << 19, "several blocks");
            assert!(assert_same(server, DB, Some(encoding), &good));
            // Cut within the last line's character, or with one that is none.
            let mut bad = good.clone();
            bad.extend(b"20001,\x81");
            assert!(!assert_same(server, DB, Some(encoding), &bad));
            bad.extend(b"\x20\n20002,x\n");
            assert!(!assert_same(server, DB, Some(encoding), &bad));
        }
        assert!(!assert_same(
            server,
            DB,
            Some("EUC_JP"),
            b"1,a\n2,\xa9\xa1\n"
        ));
    }
}

/// Makes a database in an encoding; its name.
fn create_database(server: &Server, encoding: &str) -> String {
    let database = encoding.to_lowercase();
    let sql = format!(
        "CREATE DATABASE {database} TEMPLATE template0 ENCODING '{encoding}'
         LC_COLLATE 'C' LC_CTYPE 'C'"
    );
    server.execute(DB, &sql);
    database
}

#[test]
fn databases_in_single_byte_encodings_load_as_copy_loads_them() {
    const LATIN1: &[u8] =
        b"1,caf\xe9,\xe9\xe8,\xff,\"\"\"\xe9\"\"\"\n2,a,b,c,\"{\"\"a\"\": \"\"\\u00e9\"\"}\"\n";
    let utf8 =
        "1,caf\u{e9},\u{e9},n\u{e9},\"\"\"\u{e9}\"\"\"\n2,\u{e9}\u{e9}\u{e9}\u{e9}\u{e9}  ,x,y,1\n";
    for version in [14, 18] {
        let server = Server::start(version, SETTINGS);
        for encoding in ["LATIN1", "WIN1251", "SQL_ASCII"] {
            let database = create_database(&server, encoding);
            server.execute(
                &database,
                "CREATE TABLE t (id int, v varchar(5), c char(3), n name, j jsonb);
                 CREATE INDEX ON t (v); CREATE INDEX ON t (c); CREATE INDEX ON t (j)",
            );
            let mut loaded = 0;
            let mut one = |option: Option<&str>, input: &[u8]| {
                loaded += usize::from(assert_same(&server, &database, option, input));
            };
            one(Some(encoding), LATIN1);
            one(Some("SQL_ASCII"), LATIN1);
            one(None, utf8.as_bytes());
            one(None, LATIN1);
            one(None, "1,a,b,c,1\n2,\u{142}\u{20ac},b,c,1\n".as_bytes());
            one(Some("SQL_ASCII"), b"1,a,b,c,1\n2,\0,b,c,1\n");
            one(
                None,
                "1,\u{e9}\u{e9}\u{e9}\u{e9}\u{e9}\u{e9},b,c,1\n".as_bytes(),
            );
            one(Some(encoding), b"1,a,b,c,\"\"\"\\u0142\"\"\"\n");
            one(
                Some(encoding),
                &[&b"1,a,b,"[..], &[0xe9; 70], b",1\n"].concat(),
            );
            if encoding != "SQL_ASCII" {
                // There the server cannot tell a client in UTF8 of the value.
                one(Some(encoding), b"\xe9,a,b,c,1\n");
            }
            assert!((1..8).contains(&loaded), "{loaded} in {encoding}");
            support::assert_healthy(&server, &database);
        }
    }
}

#[test]
fn databases_in_extended_unix_codes_load_as_copy_loads_them() {
    for version in [14, 18] {
        let server = Server::start(version, SETTINGS);
        for encoding in ["EUC_JP", "EUC_JIS_2004", "EUC_CN", "EUC_KR", "EUC_TW"] {
            let database = create_database(&server, encoding);
            server.execute(
                &database,
                "CREATE TABLE t (id int, v varchar(5), c char(3), n name, j json);
                 CREATE INDEX ON t (v); CREATE INDEX ON t (c); CREATE INDEX ON t (n)",
            );
            let line = |v: &[u8], c: &[u8], n: &[u8]| {
                [b"1,", v, b",", c, b",", n, b",\"[\"\"x\"\"]\"\n"].concat()
            };
            // A character of each length that the code has, and what is none.
            let long: &[u8] = match encoding {
                "EUC_TW" => b"\x8e\xa2\xa1\xa1",
                "EUC_JP" | "EUC_JIS_2004" => b"\x8f\xb0\xa1",
                _ => b"\xb0\xa1",
            };
            let two: &[u8] = b"\xb0\xa1";
            let kana: &[u8] = b"\x8e\xb1";
            let mut inputs = vec![
                line(&two.repeat(5), &two.repeat(2), &two.repeat(40)),
                line(
                    &long.repeat(5),
                    long,
                    &[b"x", &long.repeat(30)[..]].concat(),
                ),
                line(&[&two.repeat(5)[..], b"  "].concat(), b"", b"abc"),
                line(&two.repeat(6), b"", b""),
                line(b"a", &two.repeat(4), b""),
                line(&kana.repeat(5), kana, kana),
                line(b"a", b"\xb0", b""),
                line(b"a\xb0", b"b", b""),
                line(b"\x80\xa1", b"b", b""),
                line(b"\xff\xa1", b"b", b""),
                line(b"\x8f\xa1", b"b", b""),
                line(b"\x8e\xa8\xa1\xa1", b"b", b""),
                line(b"a\0", b"b", b""),
            ];
            let mut random = Random(0x5eed);
            for _ in 0..12 {
                let mut value = Vec::new();
                for _ in 0..=random.below(3) {
                    match random.below(8) {
                        0 => value.push(random.between(0x80, 0xff)),
                        1 => value.extend([0x8e, random.between(0xa0, 0xe1)]),
                        2 => value.extend([0x8f, random.between(0xa0, 0xfe), 0xa1]),
                        3 => value.push(random.between(b'a', b'z')),
                        _ => value.extend([random.between(0x9f, 0xff), random.between(0xa0, 0xff)]),
                    }
                }
                inputs.push(line(&value, b"", b""));
            }
            let mut loaded = 0;
            for input in &inputs {
                loaded += usize::from(assert_same(&server, &database, Some(encoding), input));
            }
            assert!(
                loaded > 3 && loaded < inputs.len() - 8,
                "{loaded} in {encoding}"
            );
            support::assert_healthy(&server, &database);
        }
    }
}

#[test]
fn what_only_the_server_converts_is_left_to_it() {
    let server = Server::start(15, SETTINGS);
    server.execute(
        DB,
        "CREATE DATABASE euc TEMPLATE template0 ENCODING 'EUC_JP' LC_COLLATE 'C' LC_CTYPE 'C'",
    );
    server.execute("euc", "CREATE TABLE t (id int, v text)");
    server.execute(DB, "CREATE TABLE t (id int, v text)");
    server.execute(
        DB,
        "CREATE DATABASE latin1 TEMPLATE template0 ENCODING 'LATIN1' LC_COLLATE 'C' LC_CTYPE 'C'",
    );
    server.execute(
        "latin1",
        "CREATE TABLE t (id int, v text GENERATED ALWAYS AS (chr(233)) STORED, w text)",
    );
    for (database, encoding, reason) in [
        (
            "latin1",
            None,
            "columns take their defaults, and the database's encoding is LATIN1",
        ),
        (
            "euc",
            None,
            "the input's encoding is UTF8, the database's EUC_JP",
        ),
        (
            DB,
            Some("SQL_ASCII"),
            "the input's encoding is SQL_ASCII, the database's UTF8",
        ),
    ] {
        let stderr = build(&server, database, encoding, b"1,a\n").expect_failure(1);
        assert!(stderr.contains(reason), "{stderr}");
    }
}
