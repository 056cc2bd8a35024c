//! An order system of some twenty tables that uses what real schemas use, all together: loaded
//! by COPY into one database and by pgpagewrite into another from the same files, both dump alike.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use support::Server;

const PROGRAM: &str = env!("CARGO_BIN_EXE_pgpagewrite");
const SCHEMA: &str = include_str!("../fixtures/orders/schema.sql");

const CUSTOMERS: u32 = 400;
const PRODUCTS: u32 = 300;
const ORDERS: u32 = 2000;

/// What one COPY loads: its target with the columns, and the file.
struct Load {
    target: &'static str,
    path: PathBuf,
}

/// The rows of a target as CSV.
type Rows = (&'static str, String);

/// Some text for a CSV field, of all lengths, with quotes, umlauts and line ends.
fn prose(i: u32, words: u32) -> String {
    let word = [
        "Straße",
        "blau",
        "\"\"neu\"\"",
        "Öl, fein",
        "zwei\nZeilen",
        "42",
        "~",
    ];
    let mut text = String::new();
    for k in 0..words {
        let _ = write!(text, "{} {} ", word[((i * 7 + k * 3) % 7) as usize], i ^ k);
    }
    text
}

fn rows(count: u32, row: impl Fn(u32, &mut String)) -> String {
    let mut text = String::new();
    for i in 0..count {
        row(i, &mut text);
        text.push('\n');
    }
    text
}

/// Day `i` after the first of 2023, within three years of 360 days.
fn day(i: u32) -> String {
    let i = i % 1080;
    format!(
        "{}-{:02}-{:02}",
        2023 + i / 360,
        i % 360 / 30 + 1,
        i % 28 + 1
    )
}

fn customers() -> Rows {
    let text = rows(CUSTOMERS, |i, out| {
        let tags = ["{}", "{a}", "\"{a,\"\"b c\"\",NULL}\""][(i % 3) as usize];
        let note = if i % 5 == 0 {
            String::new()
        } else {
            format!("\"{}\"", prose(i, i % 90))
        };
        let _ = write!(
            out,
            "User{i}@Example.ORG,\"Müller {}\",{tags},{note}",
            i * 37 % 400
        );
    });
    ("sales.customer (email, name, tags, note)", text)
}

fn categories() -> Rows {
    // Children come before their parents.
    let text = rows(40, |i, out| {
        let parent = if i < 39 {
            (i / 3 + 28).min(40).to_string()
        } else {
            String::new()
        };
        let _ = write!(out, "{parent},Kategorie {i}");
    });
    ("sales.category (parent, title)", text)
}

fn products() -> Rows {
    let text = rows(PRODUCTS, |i, out| {
        let attributes = match i % 4 {
            0 => String::new(),
            k => format!("\"{{\"\"weight\"\": {i}.5, \"\"colors\"\": [{k}, null, \"\"ä\"\"]}}\""),
        };
        let _ = write!(
            out,
            "SKU-{i:05},{},\" Produkt Nr. {} \",{}.{:02},{attributes}",
            i % 40 + 1,
            i * 11 % 300,
            i * 13 % 900,
            i % 100
        );
    });
    (
        "sales.product (sku, category, title, price, attributes)",
        text,
    )
}

fn warehouses() -> Rows {
    let text = rows(30, |i, out| {
        let country = ["DE", "AT", "CH"][(i % 3) as usize];
        let _ = write!(out, "{country},{},Stadt {i},\"({i},-{i}.5)\"", i / 3);
    });
    ("sales.warehouse", text)
}

fn stock() -> Rows {
    let text = rows(PRODUCTS * 3, |i, out| {
        let place = match i % 7 {
            0 => ",".to_owned(),
            _ => format!("{},{}", ["DE", "AT", "CH"][(i % 3) as usize], i / 3 % 10),
        };
        let _ = write!(out, "SKU-{:05},{place},{},{}", i / 3, i % 50, day(i));
    });
    ("sales.stock", text)
}

fn orders() -> Rows {
    let text = rows(ORDERS, |i, out| {
        let state = ["new", "paid", "packed", "sent", "returned"][(i % 5) as usize];
        let customer = 1000 + 5 * (i * 17 % CUSTOMERS);
        let total = if i % 9 == 0 {
            String::new()
        } else {
            format!("{i}.99")
        };
        let _ = write!(out, "{i},{},{customer},{state},{total}", day(i));
    });
    ("sales.orders", text)
}

fn order_lines() -> Rows {
    let text = rows(ORDERS * 3, |i, out| {
        let order = i / 3;
        let sku = i * 29 % PRODUCTS;
        let _ = write!(
            out,
            "{order},{},{},SKU-{sku:05},{},{}.5",
            day(order),
            i % 3,
            i % 4 + 1,
            i % 700
        );
    });
    ("sales.order_line", text)
}

fn payments() -> Rows {
    let text = rows(ORDERS, |i, out| {
        let kind = ["visa", "master", "cash", "transfer"][(i % 4) as usize];
        let _ = write!(
            out,
            "{i:08x}-0000-4000-8000-{:012x},{kind},{} 12:{:02}:30.12{i},{i}.00",
            u64::from(i) * 7919,
            day(i),
            i % 60
        );
    });
    ("sales.payment", text)
}

fn bookings() -> Rows {
    let text = rows(200, |i, out| {
        let _ = write!(
            out,
            "{},\"[{} 08:00,{} 09:{:02})\"",
            i % 10,
            day(i / 10),
            day(i / 10),
            i % 60
        );
    });
    ("sales.booking", text)
}

fn documents() -> Rows {
    let text = rows(60, |i, out| {
        let _ = write!(out, "{i},Dokument {i},\"{}\"", prose(i, i * i));
    });
    ("sales.document", text)
}

fn invoices() -> Rows {
    let text = rows(100, |i, out| {
        let _ = write!(out, "{},Rechnung {i},{i},{}", 1000 + i, day(i));
    });
    ("sales.invoice (id, title, order_id, due)", text)
}

fn sessions() -> Rows {
    let text = rows(150, |i, out| {
        let token = u64::from(i) * 104_729;
        let _ = write!(out, "\\x{token:032x},{i},{} 23:59:59+01,10.0.0.{i}", day(i));
    });
    ("sales.session", text)
}

fn secrets() -> Rows {
    let text = rows(50, |i, out| {
        let _ = write!(out, "postgres,geheim {i}");
    });
    ("sales.secret", text)
}

fn odd_names() -> Rows {
    let text = rows(80, |i, out| {
        let shape = if i % 3 == 0 {
            String::new()
        } else {
            format!("\"({i}.5,{i})\"")
        };
        let _ = write!(out, "{i},\"{}\",{shape}", prose(i, 2));
    });
    (
        "\"Odd Names\".\"Größe, \"\"quoted\"\"\" (\"select\", \"naïve col\", shape)",
        text,
    )
}

fn events() -> Rows {
    let text = rows(1500, |i, out| {
        let matrix = match i % 3 {
            0 => String::new(),
            _ => format!("\"{{{{{i},2}},{{3,NULL}}}}\""),
        };
        let _ = write!(
            out,
            "{} 00:00:00.{:06}Z,{},\"{{\"\"n\"\" : {i}}}\",{matrix}",
            day(i),
            i * 31,
            ["a", "b", "c"][(i % 3) as usize]
        );
    });
    ("sales.event (at, kind, payload, matrix)", text)
}

/// All of it, as files in `dir`, in an order that immediate foreign keys allow.
fn loads(dir: &Path) -> Vec<Load> {
    [
        customers(),
        categories(),
        products(),
        warehouses(),
        stock(),
        orders(),
        order_lines(),
        payments(),
        bookings(),
        documents(),
        invoices(),
        sessions(),
        secrets(),
        odd_names(),
        events(),
    ]
    .into_iter()
    .enumerate()
    .map(|(number, (target, text))| {
        let path = dir.join(format!("{number}.csv"));
        std::fs::write(&path, text).expect("the input");
        Load { target, path }
    })
    .collect()
}

fn make_database(server: &Server, database: &str) {
    server.execute("postgres", &format!("CREATE DATABASE {database}"));
    server.execute(database, SCHEMA);
}

fn copy(server: &Server, database: &str, loads: &[Load]) {
    let mut client = server.connect(database);
    let mut transaction = client.transaction().expect("a transaction");
    for load in loads {
        let statement = format!("COPY {} FROM STDIN (FORMAT csv)", load.target);
        let mut writer = transaction.copy_in(&statement).expect("COPY begins");
        let text = std::fs::read(&load.path).expect("the input");
        writer.write_all(&text).expect("COPY reads");
        if let Err(e) = writer.finish() {
            panic!("COPY {}: {e:?}", load.target);
        }
    }
    transaction.commit().expect("COMMIT");
}

fn build(server: &Server, database: &str, loads: &[Load]) -> Command {
    let mut command = Command::new(PROGRAM);
    command.args(["build", "--report", "json", "-d"]);
    command.arg(server.conninfo(database));
    for load in loads {
        command.arg(format!("{}={}", load.target, load.path.display()));
    }
    command
}

/// The same without where sequences stand.
fn without_sequences(server: &Server) -> [Vec<String>; 2] {
    dumps(server).map(|lines| {
        let lines = lines.into_iter();
        lines.filter(|line| !line.contains("setval(")).collect()
    })
}

/// COPY's and ours.
fn dumps(server: &Server) -> [Vec<String>; 2] {
    ["by_copy", "by_us"].map(|database| server.dump(database))
}

#[track_caller]
fn assert_same_dumps(server: &Server) {
    assert_same(&dumps(server));
}

#[track_caller]
fn assert_same([theirs, ours]: &[Vec<String>; 2]) {
    assert!(theirs.len() > 10_000, "{} lines", theirs.len());
    for (number, (their, our)) in theirs.iter().zip(ours).enumerate() {
        assert_eq!(our, their, "line {} of the dump", number + 1);
    }
    assert_eq!(ours.len(), theirs.len());
}

fn an_order_system_loads_as_copy_loads_it(version: u32) {
    let mut server = Server::start(version, &[("wal_level", "minimal")]);
    let loads = loads(server.dir());
    for database in ["by_copy", "by_us"] {
        make_database(&server, database);
    }
    copy(&server, "by_copy", &loads);
    support::run(&mut build(&server, "by_us", &loads)).expect_success();
    assert_same_dumps(&server);
    // Both go on in the same way: sequences, constraints, triggers of foreign keys, indexes.
    for database in ["by_copy", "by_us"] {
        server.execute(
            database,
            "INSERT INTO sales.customer (email, name) VALUES ('new@example.org', 'Neu');
             INSERT INTO sales.category (title) VALUES ('Neue');
             INSERT INTO sales.product (sku, category, title, price) VALUES ('NEW', 41, 'x', 1);
             INSERT INTO sales.event (at, kind) VALUES ('2024-01-01Z', 'x');
             DELETE FROM sales.product WHERE sku = 'NEW';
             UPDATE sales.orders SET state = 'returned' WHERE id % 10 = 3;
             DELETE FROM sales.order_line WHERE line = 2;",
        );
    }
    assert_same_dumps(&server);
    // The checkers bring extensions into the database.
    for database in ["by_copy", "by_us"] {
        support::assert_healthy(&server, database);
    }
    support::assert_checksums(&mut server, "by_us");
    // A crash lets sequences skip what the WAL holds in advance; all else survives as it was.
    server.stop_immediate();
    server.restart();
    assert_same(&without_sequences(&server));
    support::assert_healthy(&server, "by_us");
}

#[test]
fn an_order_system_loads_as_copy_loads_it_14() {
    an_order_system_loads_as_copy_loads_it(14);
}

#[test]
fn an_order_system_loads_as_copy_loads_it_15() {
    an_order_system_loads_as_copy_loads_it(15);
}

#[test]
fn an_order_system_loads_as_copy_loads_it_16() {
    an_order_system_loads_as_copy_loads_it(16);
}

#[test]
fn an_order_system_loads_as_copy_loads_it_17() {
    an_order_system_loads_as_copy_loads_it(17);
}

#[test]
fn an_order_system_loads_as_copy_loads_it_18() {
    an_order_system_loads_as_copy_loads_it(18);
}

#[test]
fn a_violation_anywhere_in_an_order_system_leaves_it_empty() {
    let server = Server::start(15, &[("wal_level", "minimal")]);
    make_database(&server, "by_us");
    // The server's COPY moves sequences of tables that it loads though the load fails.
    let state = || -> Vec<String> {
        let lines = server.dump("by_us").into_iter();
        lines.filter(|line| !line.contains("setval(")).collect()
    };
    let empty = state();
    let mut loads = loads(server.dir());
    // (which file, a row behind its last, what COPY says of it)
    for (number, row, sqlstate) in [
        (2, "SKU-X,999,Titel,1.00,\n", "23503"),
        (2, "SKU-X,1,Titel,-1.00,\n", "23514"),
        (4, "SKU-00001,DE,,1,2024-01-01\n", "23503"),
        (6, "0,2023-01-01,0,SKU-00001,1,1\n", "23505"),
        (
            7,
            "00000000-0000-0000-0000-000000000000,bitcoin,2023-01-01,1\n",
            "23514",
        ),
        (8, "0,\"[2023-01-01 08:00,2023-01-01 08:01)\"\n", "23P01"),
    ] {
        let path = &loads[number].path;
        let text = std::fs::read_to_string(path).expect("the input");
        let bad = server.dir().join("bad.csv");
        std::fs::write(&bad, text + row).expect("the input");
        let good = std::mem::replace(&mut loads[number].path, bad);
        server.execute(
            "by_us",
            "ALTER SEQUENCE sales.customer_id_seq RESTART;
             ALTER SEQUENCE sales.category_id_seq RESTART",
        );
        let run = support::run(&mut build(&server, "by_us", &loads));
        assert_eq!(run.sqlstate(), Some(sqlstate), "{}", run.stderr);
        run.expect_failure(1);
        assert!(state() == empty, "after {sqlstate}");
        loads[number].path = good;
    }
}
