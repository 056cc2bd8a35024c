//! COPY's binary format against real servers: files as the server writes them, and files that
//! are changed byte by byte. The rows are the same, to the stored byte, or the refusal is:
//! SQLSTATE, message, DETAIL, line and column.

use crate::oracle::{Type, describe, settings};
use pgformat::heap::tuple::TupleBuilder;
use pgformat::version::MajorVersion;
use pgpagewrite::error::{Place, ValueError};
use pgpagewrite::record::{BinaryChunks, Chunk, ChunkReader, Format, InputColumn};
use pgpagewrite::source::FileSource;
use pgpagewrite::types::{Encoder, Scratch, Settings};
use postgres::Client;
use std::fmt::Write as _;
use std::io::Write as _;
use std::sync::Arc;
use support::{Server, VERSIONS};

/// Stored attributes.
type Row = Vec<Option<Vec<u8>>>;

/// Rows, or a refusal.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Outcome {
    Rows(Vec<Row>),
    Refused {
        sqlstate: String,
        message: String,
        detail: Option<String>,
        line: u64,
        column: Option<String>,
    },
}

/// A table on both sides.
struct Table {
    types: Vec<Type>,
    encoders: Vec<Encoder>,
    settings: Settings,
    format: Format,
    client: Client,
    /// Copies since the table was emptied of dead rows.
    copies: u32,
}

impl Table {
    fn create(server: &Server, sql_types: &[&str]) -> Table {
        let types: Vec<Type> = sql_types
            .iter()
            .map(|sql_type| describe(server, "postgres", sql_type))
            .collect();
        let settings = settings(server, "postgres");
        let mut client = server.connect("postgres");
        let mut sql = "SET client_min_messages = warning;
             CREATE EXTENSION IF NOT EXISTS pageinspect; DROP TABLE IF EXISTS t; CREATE TABLE t ("
            .to_owned();
        for (i, sql_type) in sql_types.iter().enumerate() {
            let comma = if i > 0 { ", " } else { "" };
            write!(sql, "{comma}v{i} {sql_type}").unwrap();
        }
        sql.push_str(");");
        for (i, ty) in types.iter().enumerate() {
            if ty.layout.len == pgformat::layout::AttrLen::Varlena {
                write!(sql, "ALTER TABLE t ALTER v{i} SET STORAGE EXTERNAL;").unwrap();
            }
        }
        client.batch_execute(&sql).unwrap();
        let version = MajorVersion::from_version_num(server.version() * 10_000).unwrap();
        let columns = (0..types.len()).map(|i| InputColumn::named(format!("v{i}")));
        Table {
            encoders: types
                .iter()
                .map(|ty| {
                    let description = ty.column.description.as_deref().expect("a type");
                    Encoder::of_type(description, ty.typmod, &settings).expect("a native type")
                })
                .collect(),
            format: Format::binary(columns.collect(), version),
            types,
            settings,
            client,
            copies: 0,
        }
    }

    /// What the server sends for these values, each written as SQL.
    fn sent(&mut self, sql_type: &str, values: &[&str]) -> Vec<Vec<u8>> {
        let send: String = self
            .client
            .query_one(
                "SELECT p.typsend::regproc::text FROM pg_type p WHERE p.oid = $1",
                &[&self.types[0].oid],
            )
            .unwrap()
            .get(0);
        // A cast to a length would cut what is too long; that to bit is one to bit(1).
        let (base, array) = sql_type.split_once('[').unwrap_or((sql_type, ""));
        let base = match base.split('(').next().unwrap() {
            "bit" => "varbit",
            base => base,
        };
        let array = if array.is_empty() { "" } else { "[]" };
        values
            .iter()
            .map(|value| {
                let sql = format!("SELECT {send}(CAST($${value}$$ AS {base}{array}))");
                self.client.query_one(&sql, &[]).unwrap().get(0)
            })
            .collect()
    }

    fn theirs(&mut self, file: &[u8]) -> Outcome {
        self.copies += 1;
        if self.copies.is_multiple_of(100) {
            self.client.batch_execute("TRUNCATE t").unwrap();
        }
        let mut transaction = self.client.transaction().unwrap();
        let copied = (|| {
            let mut writer = transaction.copy_in("COPY t FROM STDIN (FORMAT binary)")?;
            // What the server says when it stops early is said at the end too.
            let _ = writer.write_all(file);
            writer.finish()
        })();
        if let Err(error) = copied {
            let error = error.as_db_error().expect("the server's error");
            let place = error.where_().and_then(Place::of_copy_context);
            let place = place.unwrap_or_default();
            return Outcome::Refused {
                sqlstate: error.code().code().to_owned(),
                message: error.message().to_owned(),
                detail: error.detail().map(str::to_owned),
                line: place.line,
                column: place.column,
            };
        }
        let rows = transaction
            .query(
                "SELECT tuple_data_split('t'::regclass, i.t_data, i.t_infomask, i.t_infomask2,
                                         i.t_bits)
                   FROM generate_series(0, pg_relation_size('t') / 8192 - 1) p(b),
                        heap_page_items(get_raw_page('t', p.b::int)) i
                  WHERE i.t_xmin = pg_current_xact_id()::xid ORDER BY p.b, i.lp",
                &[],
            )
            .unwrap();
        transaction.rollback().unwrap();
        Outcome::Rows(rows.iter().map(|row| row.get(0)).collect())
    }

    fn ours(&self, file: &[u8], chunk_bytes: u64) -> Outcome {
        let mut path = tempfile::NamedTempFile::new().unwrap();
        path.write_all(file).unwrap();
        let source = FileSource::open(path.path()).unwrap();
        let mut chunks = BinaryChunks::with_chunk_bytes(&source, &self.format, chunk_bytes);
        let mut chunk = Chunk::new();
        let mut lines = 0;
        let mut rows = Vec::new();
        while chunks.next(&mut chunk, &|| true).expect("readable input") {
            let mut reader = ChunkReader::new(&chunk, &self.format);
            loop {
                match reader.next() {
                    Ok(Some(record)) => {
                        let line = lines + record.line();
                        let values = (0..record.len()).map(|i| record.field(i));
                        match self.receive(values) {
                            Ok(row) => rows.push(row),
                            Err((column, error)) => return refused(&error, line, Some(column)),
                        }
                    }
                    Ok(None) => break,
                    Err(error) => {
                        let line = lines + error.line_in_chunk;
                        let present = error.present.iter().map(Option::as_deref);
                        return match self.receive(present) {
                            Err((column, error)) => refused(&error, line, Some(column)),
                            Ok(_) => refused(&error.error, line, error.column),
                        };
                    }
                }
            }
            lines += reader.lines();
        }
        Outcome::Rows(rows)
    }

    /// The stored attributes of a row or of its beginning; or the column that is refused.
    fn receive<'f>(
        &self,
        fields: impl Iterator<Item = Option<&'f [u8]>>,
    ) -> Result<Row, (String, Box<ValueError>)> {
        let mut scratch = Scratch::new();
        let mut row = Vec::new();
        for (i, field) in fields.enumerate() {
            let Some(field) = field else {
                row.push(None);
                continue;
            };
            let mut builder = TupleBuilder::new(Arc::from([self.types[i].layout]));
            builder.begin_row();
            self.encoders[i]
                .receive(field, &mut scratch, &self.settings, &mut builder)
                .map_err(|error| (format!("v{i}"), error))?;
            builder.finish_row();
            row.push(builder.attribute(0).map(<[u8]>::to_vec));
        }
        Ok(row)
    }

    /// Asserts that both sides make the same of a file.
    fn assert_same(&mut self, file: &[u8]) -> bool {
        let theirs = self.theirs(file);
        for chunk_bytes in [1, 7, 1 << 20] {
            let ours = self.ours(file, chunk_bytes);
            assert_eq!(
                ours, theirs,
                "ours and the server's ({}) with chunks of {chunk_bytes} bytes, file {file:02x?}",
                self.settings.version
            );
        }
        matches!(theirs, Outcome::Rows(_))
    }
}

fn refused(error: &ValueError, line: u64, column: Option<String>) -> Outcome {
    Outcome::Refused {
        sqlstate: error.sqlstate.to_owned(),
        message: error.message.clone(),
        detail: error.detail.clone(),
        line,
        column,
    }
}

/// A file of rows.
fn file(rows: &[&[Option<&[u8]>]]) -> Vec<u8> {
    let mut file = b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0".to_vec();
    for row in rows {
        file.extend((row.len() as i16).to_be_bytes());
        for field in *row {
            match field {
                None => file.extend((-1_i32).to_be_bytes()),
                Some(bytes) => {
                    file.extend((bytes.len() as i32).to_be_bytes());
                    file.extend(*bytes);
                }
            }
        }
    }
    file.extend((-1_i16).to_be_bytes());
    file
}

/// The same bytes; with one of them changed; cut short; with one more.
fn mutations(bytes: &[u8]) -> Vec<Vec<u8>> {
    let mut all = vec![bytes.to_vec(), [bytes, &[0]].concat()];
    for at in 0..bytes.len() {
        for change in [0, 0xff, bytes[at] ^ 0x80] {
            if change != bytes[at] {
                let mut changed = bytes.to_vec();
                changed[at] = change;
                all.push(changed);
            }
        }
    }
    for len in [0, bytes.len() / 2, bytes.len().saturating_sub(1)] {
        all.push(bytes[..len].to_vec());
    }
    all
}

/// All that, and the same bytes cut anywhere, and with one left out or doubled.
fn many_mutations(bytes: &[u8]) -> Vec<Vec<u8>> {
    let mut all = mutations(bytes);
    for at in 0..bytes.len() {
        all.push(bytes[..at].to_vec());
        all.push([&bytes[..at], &bytes[at + 1..]].concat());
        all.push([&bytes[..=at], &bytes[at..]].concat());
        let mut changed = bytes.to_vec();
        changed[at] = bytes[at].wrapping_add(1);
        all.push(changed);
    }
    all
}

/// Types of users.
const USER_TYPES: &str = "SET client_min_messages = warning; CREATE EXTENSION citext;
    CREATE TYPE mood AS ENUM ('sad', 'ok', 'h\u{f6}flich');
    CREATE DOMAIN code AS varchar(3);
    CREATE DOMAIN needed AS int NOT NULL;
    CREATE DOMAIN list AS int[]";

/// Values of a type, as SQL writes them.
const TYPES: &[(&str, &[&str])] = &[
    ("bool", &["t", "f"]),
    ("\"char\"", &["a", ""]),
    ("int2", &["-2"]),
    ("int4", &["70000"]),
    ("int8", &["-5000000000"]),
    ("oid", &["4294967295"]),
    ("float4", &["1.5", "nan", "-inf"]),
    ("float8", &["-0.1", "nan", "inf"]),
    ("text", &["a\u{e9}\u{20ac}\u{1f600}b", ""]),
    (
        "varchar(3)",
        &["abc", "abc  ", "abcd", "\u{e9}\u{e9}\u{e9} "],
    ),
    ("bpchar(3)", &["a", "abc", "abc ", "abcd", "\u{20ac}"]),
    (
        "name",
        &[
            "a\u{e9}",
            "x23456789_123456789_123456789_123456789_123456789_123456789_123",
        ],
    ),
    ("bytea", &["\\x00ff", ""]),
    (
        "date",
        &[
            "2024-02-29",
            "infinity",
            "-infinity",
            "4713-01-01 BC",
            "5874897-12-31",
        ],
    ),
    ("time", &["12:34:56.789012", "24:00"]),
    ("time(2)", &["12:34:56.789012", "23:59:59.999999"]),
    ("timetz", &["12:34:56.789+15:59:59", "00:00-15:59:59"]),
    ("timetz(0)", &["12:34:56.5+01"]),
    (
        "timestamp",
        &[
            "2024-02-29 12:34:56.789",
            "infinity",
            "4713-01-01 BC",
            "294276-12-31 23:59:59.999999",
        ],
    ),
    (
        "timestamp(3)",
        &[
            "1999-12-31 23:59:59.999999",
            "-infinity",
            "294276-12-31 23:59:59.999999",
        ],
    ),
    ("timestamptz", &["2024-02-29 12:34:56.789", "infinity"]),
    ("timestamptz(0)", &["1999-12-31 23:59:59.5+00"]),
    (
        "interval",
        &["1 mon 2 days 03:04:05.678", "-178000000 years"],
    ),
    (
        "interval(1)",
        &["1 mon 2 days 03:04:05.678", "-03:04:05.678"],
    ),
    ("interval day to hour", &["1 mon 2 days 03:04:05.678"]),
    ("interval year", &["13 mons 2 days"]),
    ("uuid", &["a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"]),
    ("json", &["{\"a\": [1, \"x\"]}", "1"]),
    ("jsonb", &["{\"a\": [1, \"\u{e9}\"]}"]),
    (
        "numeric",
        &["0", "-12345.6789", "1e20", "0.00001", "nan", "inf"],
    ),
    (
        "numeric(6,2)",
        &[
            "1234.5",
            "-9999.994",
            "9999.995",
            "12345",
            "0.005",
            "nan",
            "-inf",
        ],
    ),
    ("inet", &["192.168.1.5/24", "::1", "2001:db8::5/32"]),
    ("cidr", &["192.168.1.0/24", "2001:db8::/32", "0.0.0.0/0"]),
    ("bit", &["1", "10"]),
    ("bit(5)", &["10101", "101010101"]),
    ("varbit", &["", "101010101", "11111111"]),
    ("varbit(9)", &["101010101", "1010101010"]),
    ("int4[]", &["{}", "{1,NULL,3}", "[0:1][-1:0]={{1,2},{3,4}}"]),
    ("text[]", &["{a,\"\",\u{e9}}", "{NULL}"]),
    ("varchar(3)[]", &["{abc,\"abc  \"}", "{abcd}"]),
    ("bpchar(3)[]", &["{a,abc}"]),
    ("numeric(4,1)[]", &["{1.25,NULL,nan}", "{12345}"]),
    ("timestamptz(0)[]", &["{2024-02-29 12:34:56.789}"]),
    ("jsonb[]", &["{1,\"[2]\"}"]),
    ("inet[]", &["{::1,10.0.0.1}"]),
    ("bit(5)[]", &["{10101}"]),
    ("\"char\"[]", &["{a,b}"]),
    ("name[]", &["{a\u{e9}}"]),
    ("citext", &["\u{c9}a"]),
    ("citext[]", &["{\u{c9}a,b}"]),
    ("mood", &["sad", "h\u{f6}flich"]),
    ("mood[]", &["{ok,NULL,h\u{f6}flich}"]),
    ("code", &["abc", "abc "]),
    ("code[]", &["{abc,NULL}"]),
    ("needed[]", &["{1,2}"]),
    ("list", &["{1,2}"]),
    ("list[]", &["{\"{1,2}\",NULL}"]),
];

#[test]
fn arrays_that_no_server_sends_are_taken_and_refused_as_the_server_does() {
    let array = |ndim: u32, element_type: u32, rest: &[i32]| {
        let head = [ndim, 0, element_type].into_iter();
        let rest = rest.iter().map(|number| number.cast_unsigned());
        head.chain(rest).flat_map(u32::to_be_bytes).collect()
    };
    let one = [1, 1, 4, 7];
    let fields: Vec<Vec<u8>> = vec![
        // Without elements, with a dimension; with lengths that are none, or too many.
        array(1, 23, &[0, 5]),
        array(2, 23, &[0, 5, -1, 1]),
        array(2, 23, &[3, 1, 0, 1]),
        array(2, 23, &[i32::MAX, 1, 2, 1]),
        array(1, 23, &[1 << 27, 1]),
        array(1, 23, &[(1 << 27) - 1, 1]),
        // Bounds at the end of what there is.
        array(1, 23, &[1, i32::MAX, 4, 7]),
        array(1, 23, &[1, i32::MAX - 1, 4, 7]),
        array(1, 23, &[1, i32::MIN, 4, 7]),
        array(6, 23, &[1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 4, 7]),
        array(7, 23, &[1; 20]),
        // Other types: of the server, of none, of users.
        array(1, 20, &one),
        array(1, 1007, &one),
        array(1, 0, &one),
        array(1, 9999, &one),
        array(1, 10_000, &one),
        array(1, u32::MAX, &one),
        // Lengths of elements.
        array(1, 23, &[2, 1, 4, 7, -1]),
        array(1, 23, &[2, 1, -1, -1]),
        array(1, 23, &[1, 1, -2, 7]),
        array(1, 23, &[1, 1, 5, 7]),
        array(1, 23, &[1, 1, 8, 7, 7]),
        array(1, 23, &[2, 1, 4, 7, 0]),
        array(1, 23, &[2, 1, 4, 7]),
    ];
    for version in VERSIONS {
        let server = Server::start(version, &[]);
        server.execute("postgres", USER_TYPES);
        let mut taken = 0;
        for sql_type in ["int4[]", "needed[]", "list", "text[]", "mood[]"] {
            let mut table = Table::create(&server, &[sql_type]);
            for field in &fields {
                taken += usize::from(table.assert_same(&file(&[&[Some(field)]])));
            }
        }
        assert!(taken > 15 && taken < 60, "{taken}");
    }
}

#[test]
fn every_receive_function_takes_and_refuses_what_the_servers_takes_and_refuses() {
    for version in VERSIONS {
        let server = Server::start(version, &[]);
        server.execute("postgres", USER_TYPES);
        let (mut taken, mut all) = (0, 0);
        for (sql_type, values) in TYPES {
            let mut table = Table::create(&server, &[sql_type]);
            for sent in table.sent(sql_type, values) {
                for field in mutations(&sent) {
                    taken += usize::from(table.assert_same(&file(&[&[Some(&field)]])));
                    all += 1;
                }
            }
        }
        eprintln!("PostgreSQL {version}: {taken} of {all} taken alike");
        assert!(taken > all / 5 && taken < all * 4 / 5);
    }
}

/// A numeric as the binary format has it.
fn numeric(weight: i16, sign: u16, dscale: u16, digits: &[u16]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for word in [digits.len() as u16, weight.cast_unsigned(), sign, dscale] {
        bytes.extend(word.to_be_bytes());
    }
    bytes.extend(digits.iter().flat_map(|digit| digit.to_be_bytes()));
    bytes
}

#[test]
fn numerics_that_no_server_sends_are_cut_and_rounded_as_the_server_does() {
    let mut values = Vec::new();
    for weight in [-2, 0, 1, 2, 100, i16::MIN, i16::MAX] {
        for digits in [
            &[][..],
            &[0],
            &[0, 0, 7],
            &[1234, 5678, 9012],
            &[9999, 9999, 9999],
            &[5, 0, 0],
            &[0, 9999, 4999],
        ] {
            for dscale in [0, 1, 6, 9, 0x3fff] {
                values.push(numeric(weight, 0x4000, dscale, digits));
            }
            values.push(numeric(weight, 0xc000, 3, digits));
        }
    }
    for version in VERSIONS {
        let server = Server::start(version, &[]);
        for sql_type in [
            "numeric",
            "numeric(6,2)",
            "numeric(5,0)",
            "numeric(1000,1000)",
        ] {
            let mut table = Table::create(&server, &[sql_type]);
            for value in &values {
                table.assert_same(&file(&[&[Some(value)]]));
            }
        }
    }
}

#[test]
fn files_that_are_damaged_anywhere_are_refused_as_the_server_refuses_them() {
    let rows: [&[Option<&[u8]>]; 3] = [
        &[Some(b"\0\0\0\x07"), Some("a\u{e9}".as_bytes()), None],
        &[None, Some(b""), Some(b"\0\0\0\0\0\0\0\x09")],
        &[Some(b"\xff\xff\xff\xff"), Some(b"xyz"), None],
    ];
    let whole = file(&rows);
    let mut files = many_mutations(&whole);
    // A header with an extension, and flags that a reader need not know.
    let extended = [b"PGCOPY\n\xff\r\n\0\0\0\xff\xff\0\0\0\x03xyz", &whole[19..]].concat();
    files.extend(many_mutations(&extended[..25]));
    files.push(extended);
    // Without a trailer, and with half of one.
    files.push(whole[..whole.len() - 2].to_vec());
    files.push(whole[..whole.len() - 1].to_vec());
    files.push([&whole[..], &[0]].concat());
    // The first of two faults is told.
    let mut two = whole.clone();
    let len = two.len();
    two[19 + 2 + 4 + 4 + 4] = 0xff;
    two.truncate(len - 30);
    files.push(two);
    for length in [
        0x3fff_fffe_u32,
        0x3fff_ffff,
        0x7fff_ffff,
        0x8000_0000,
        0xffff_fffe,
    ] {
        let mut long = whole.clone();
        long[21..25].copy_from_slice(&length.to_be_bytes());
        files.push(long);
    }
    for version in VERSIONS {
        let server = Server::start(version, &[]);
        let mut table = Table::create(&server, &["int4", "text", "int8"]);
        let mut taken = 0;
        for file in &files {
            taken += usize::from(table.assert_same(file));
        }
        assert!(taken > 10 && taken < files.len() / 2, "{taken}");
        // No columns at all.
        let mut table = Table::create(&server, &[]);
        assert!(table.assert_same(&self::file(&[&[], &[]])));
        assert!(!table.assert_same(&whole));
    }
}
