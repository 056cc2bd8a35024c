//! Input as COPY reads it: the same bytes through a server's COPY and through our reader give
//! the same rows, or the same refusal at the same line, on every version.
//!
//! All columns are text, so what is compared is the reading of records alone.

use std::fmt::Write as _;
use std::fs;

use pgformat::version::MajorVersion;
use pgpagewrite::record::{
    Chunk, ChunkReader, Chunks, CopyOptions, Encoding, Follows, Format, Header, InputColumn, Kind,
};
use pgpagewrite::source::FileSource;
use postgres::Client;
use support::{Server, VERSIONS, each_version};

/// Columns' names; a column with an index of 1 has a default.
const NAMES: [&str; 4] = ["a", "b", "c", "Long name"];

/// Rows, or a refusal: SQLSTATE, message, DETAIL, HINT, line, the line quoted.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Outcome {
    Rows(Vec<Vec<Option<String>>>),
    Refused(String),
}

/// A way to read and what to read.
#[derive(Debug, Clone, Default)]
struct Case {
    options: CopyOptions,
    columns: usize,
    force_null: Vec<&'static str>,
    force_not_null: Vec<&'static str>,
    input: Vec<u8>,
}

impl Case {
    fn csv(columns: usize, input: &[u8]) -> Case {
        let mut case = Case::text(columns, input);
        case.options.kind = Kind::Csv;
        case
    }

    fn text(columns: usize, input: &[u8]) -> Case {
        Case {
            columns,
            input: input.to_vec(),
            ..Case::default()
        }
    }

    fn with(mut self, change: impl FnOnce(&mut CopyOptions)) -> Case {
        change(&mut self.options);
        self
    }

    /// The options in SQL.
    fn sql(&self) -> String {
        let options = &self.options;
        let format = match options.kind {
            Kind::Csv => "csv",
            Kind::Text => "text",
            Kind::Binary => "binary",
        };
        let mut sql = format!("FORMAT {format}");
        for (name, value) in [
            ("DELIMITER", &options.delimiter),
            ("NULL", &options.null),
            ("DEFAULT", &options.default),
            ("QUOTE", &options.quote),
            ("ESCAPE", &options.escape),
        ] {
            if let Some(value) = value {
                let _ = write!(sql, ", {name} '{}'", value.replace('\'', "''"));
            }
        }
        match options.header {
            Header::None => {}
            Header::Skip => sql.push_str(", HEADER"),
            Header::Match => sql.push_str(", HEADER match"),
        }
        for (name, columns) in [
            ("FORCE_NULL", &self.force_null),
            ("FORCE_NOT_NULL", &self.force_not_null),
        ] {
            if columns.as_slice() == ["*"] {
                let _ = write!(sql, ", {name} *");
            } else if !columns.is_empty() {
                let _ = write!(sql, ", {name} (\"{}\")", columns.join("\", \""));
            }
        }
        sql
    }

    fn format(&self, version: u32) -> Result<Format, String> {
        let columns = (0..self.columns).map(|i| InputColumn {
            has_default: i == 1,
            ..InputColumn::named(NAMES[i])
        });
        let version = MajorVersion::from_version_num(version * 10_000).expect("supported");
        let mut options = self.options.clone();
        options.force_null |= !self.force_null.is_empty();
        options.force_not_null |= !self.force_not_null.is_empty();
        let mut format = options
            .resolve(columns.collect(), version, Encoding::Utf8)
            .and_then(|mut format| {
                format.force("FORCE_NOT_NULL", &self.force_not_null)?;
                format.force("FORCE_NULL", &self.force_null)?;
                format.check()?;
                Ok(format)
            })
            .map_err(|e| format!("{} {}", e.sqlstate, e.message))?;
        assert_eq!(format.not_native(), None);
        format.columns.truncate(self.columns);
        Ok(format)
    }
}

/// Where a case's file lies, for our reader and the server's.
fn put(server: &Server, case: &Case) -> String {
    let path = server.dir().join("input");
    fs::write(&path, &case.input).expect("the input");
    path.display().to_string()
}

/// What the server says.
fn copy(server: &Server, client: &mut Client, case: &Case) -> Outcome {
    let path = put(server, case);
    let columns: Vec<String> = (0..case.columns)
        .map(|i| {
            let default = if i == 1 { " DEFAULT 'default'" } else { "" };
            format!("\"{}\" text{default}", NAMES[i])
        })
        .collect();
    client
        .batch_execute(&format!(
            "DROP TABLE IF EXISTS t; CREATE TABLE t ({})",
            columns.join(", ")
        ))
        .expect("a table");
    if let Err(error) = client.batch_execute(&format!("COPY t FROM '{path}' ({})", case.sql())) {
        let error = error.as_db_error().expect("the server's refusal").clone();
        return Outcome::Refused(format!(
            "{} {} / {} / {} / {}",
            error.code().code(),
            error.message(),
            error.detail().unwrap_or_default(),
            error.hint().unwrap_or_default(),
            error.where_().unwrap_or_default(),
        ));
    }
    let rows = client.query("SELECT * FROM t", &[]).expect("the rows");
    Outcome::Rows(
        rows.iter()
            .map(|row| (0..case.columns).map(|i| row.get(i)).collect())
            .collect(),
    )
}

/// What we say, reading chunks of this size.
fn read(server: &Server, case: &Case, chunk_bytes: u64) -> Outcome {
    let format = match case.format(server.version()) {
        Ok(format) => format,
        Err(refusal) => return Outcome::Refused(format!("{refusal} /  /  / ")),
    };
    let path = put(server, case);
    let source = FileSource::open(path.as_ref()).expect("the input");
    let chunks = Chunks::with_chunk_bytes(&source, &format, chunk_bytes).expect("chunks");
    let mut chunk = Chunk::new();
    let (mut rows, mut lines, mut ended_at) = (Vec::new(), 0, 0);
    for number in 0..chunks.count() {
        chunks.read(number, &mut chunk).expect("a chunk");
        match chunks.follows(&chunk, ended_at) {
            Follows::Yes => {}
            Follows::Empty => continue,
            Follows::Reparse => chunks
                .reparse_from(ended_at, number, &mut chunk)
                .expect("a chunk"),
        }
        ended_at = chunk.ends_at();
        let mut reader = ChunkReader::new(&chunk, &format);
        loop {
            match reader.next() {
                Ok(Some(record)) => {
                    let field = |i| {
                        if record.is_default(i) {
                            return Some("default".to_owned());
                        }
                        let field = record.field(i)?;
                        Some(String::from_utf8(field.to_vec()).expect("valid UTF-8"))
                    };
                    rows.push((0..record.len()).map(field).collect());
                }
                Ok(None) => break,
                Err(refusal) => {
                    let context = match &refusal.line_text {
                        Some(text) => format!(": \"{text}\""),
                        None => String::new(),
                    };
                    return Outcome::Refused(format!(
                        "{} {} / {} / {} / COPY t, line {}{context}",
                        refusal.error.sqlstate,
                        refusal.error.message,
                        refusal.error.detail.as_deref().unwrap_or_default(),
                        refusal.error.hint.as_deref().unwrap_or_default(),
                        lines + refusal.line_in_chunk,
                    ));
                }
            }
        }
        if reader.end_of_data() {
            break;
        }
        lines += reader.lines();
    }
    Outcome::Rows(rows)
}

#[track_caller]
fn assert_same(server: &Server, client: &mut Client, case: &Case) -> Outcome {
    let theirs = copy(server, client, case);
    let tiny = if case.input.len() < 1000 { 5 } else { 5000 };
    for chunk_bytes in [1 << 20, tiny] {
        let ours = read(server, case, chunk_bytes);
        assert_eq!(
            ours,
            theirs,
            "PostgreSQL {} has the right side, ours with chunks of {chunk_bytes} bytes the left\n\
             {} columns, ({})\n\"{}\"",
            server.version(),
            case.columns,
            case.sql(),
            case.input.escape_ascii()
        );
    }
    theirs
}

/// A generator of test values; the same on every run.
struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        ((self.0 >> 11) % n as u64) as usize
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }

    fn maybe<T: Copy>(&mut self, one_in: usize, from: &[T]) -> Option<T> {
        (self.below(one_in) == 0).then(|| self.pick(from))
    }
}

const PIECES: [&[u8]; 38] = [
    b"a",
    b"b",
    b",",
    b",",
    b"\"",
    b"\"",
    b" ",
    b"\\",
    b"\\.",
    b".",
    b"\\.\n",
    b"\\.\r\n",
    b"\\N",
    b"\\D",
    b"\\n",
    b"\\x4",
    b"\\1",
    b"\\303\\251",
    b"\\xff",
    b"'",
    b"''",
    b"\xc3\xa9",
    b"\xff",
    b"\0",
    b"a,b\n",
    b"a,b\n",
    b"\"a\",\"b\"\n",
    b"\"a\nb\",a\n",
    b"a,\"\"\"b\"\n",
    b"\t",
    b"|",
    b"a|b|c\n",
    b"a\tb\n",
    b"\n",
    b"\r",
    b"\r\n",
    b"A",
    b"41",
];

fn random_case(random: &mut Random, version: u32) -> Case {
    let mut case = Case {
        columns: random.pick(&[1, 1, 2, 2, 2, 3, 0]),
        ..Case::default()
    };
    let options = &mut case.options;
    let is_csv = random.below(2) == 0;
    options.kind = if is_csv { Kind::Csv } else { Kind::Text };
    options.delimiter = random.maybe(3, &[",", "|", "A", "\u{5}"]).map(Into::into);
    options.null = random.maybe(3, &["", "a", "\\N", "a b"]).map(Into::into);
    if options.kind == Kind::Csv {
        options.quote = random.maybe(4, &["'", "a", "\\"]).map(Into::into);
        options.escape = random.maybe(3, &["\\", "\"", "a"]).map(Into::into);
        case.force_null = random.maybe(4, &["a"]).into_iter().collect();
        case.force_not_null = random.maybe(4, &["a"]).into_iter().collect();
    }
    if version >= 16 {
        options.default = random.maybe(4, &["\\D", "b"]).map(Into::into);
    }
    let headers = [Header::Skip, Header::Match];
    options.header = random
        .maybe(
            4,
            if version >= 15 {
                &headers
            } else {
                &headers[..1]
            },
        )
        .unwrap_or_default();
    // A header that must match and has a column named as the default marker makes the server
    // give the first row its default: an accident that we do not repeat.
    if case.options.header == Header::Match {
        case.options.default = case.options.default.filter(|default| default != "b");
    }
    if case.columns == 0 {
        case.force_null.clear();
        case.force_not_null.clear();
    }
    // Most files have one kind of line end and no bytes that are refused everywhere.
    let line_end = random.pick(&[&b"\n"[..], b"\n", b"\r", b"\r\n", b""]);
    let is_clean = random.below(4) > 0;
    if case.options.header == Header::Match && random.below(2) == 0 {
        let delimiter = case.options.delimiter.as_deref();
        let default = if case.options.kind == Kind::Csv {
            ","
        } else {
            "\t"
        };
        let names = NAMES[..case.columns].join(delimiter.unwrap_or(default));
        case.input.extend_from_slice(names.as_bytes());
        case.input.extend_from_slice(line_end);
    }
    if random.below(3) > 0 {
        lines_of_fields(random, &mut case, line_end);
        return case;
    }
    for _ in 0..random.below(24) {
        let piece = random.pick(&PIECES);
        if is_clean && matches!(piece, b"\0" | b"\xff" | b"\\." | b"\\xff" | b"\r" | b"\r\n") {
            continue;
        }
        match piece.strip_suffix(b"\n") {
            Some(line) if !line_end.is_empty() => {
                case.input.extend_from_slice(line);
                case.input.extend_from_slice(line_end);
            }
            _ => case.input.extend_from_slice(piece),
        }
    }
    case
}

/// Appends lines most of which have as many fields as there are columns.
fn lines_of_fields(random: &mut Random, case: &mut Case, line_end: &[u8]) {
    let options = &case.options;
    let default = if options.kind == Kind::Csv { "," } else { "\t" };
    let delimiter = options.delimiter.as_deref().unwrap_or(default).as_bytes();
    let quote = options.quote.as_deref().unwrap_or("\"").as_bytes();
    let escape = options.escape.as_deref().map_or(quote, str::as_bytes);
    let null = options.null.as_deref().unwrap_or("\\N").as_bytes();
    for _ in 0..random.below(6) {
        let count = match random.below(20) {
            0 => case.columns + 1,
            1 => case.columns.saturating_sub(1),
            _ => case.columns,
        };
        for i in 0..count {
            if i > 0 {
                case.input.extend_from_slice(delimiter);
            }
            let is_quoted = options.kind == Kind::Csv && random.below(3) == 0;
            if is_quoted {
                case.input.extend_from_slice(quote);
            }
            for _ in 0..random.below(4) {
                let inner: [&[u8]; 6] = match (is_quoted, options.kind == Kind::Csv) {
                    (true, _) => [b"\n", b"\r", delimiter, b"\xc3\xa9", b"\\", b"x y"],
                    (false, true) => [b"x", b"\\D", b"\\", b"\xc3\xa9", b".", b" "],
                    (false, false) => [b"\\n", b"\\\n", b"\\x4a", b"\\61", b"\\\\", b"\\D"],
                };
                case.input.extend_from_slice(random.pick(&inner));
                if is_quoted && random.below(4) == 0 {
                    case.input.extend_from_slice(escape);
                    case.input.extend_from_slice(random.pick(&[quote, escape]));
                }
                if random.below(8) == 0 {
                    case.input.extend_from_slice(null);
                }
            }
            if is_quoted {
                case.input.extend_from_slice(quote);
            }
        }
        case.input.extend_from_slice(line_end);
        if random.below(30) == 0 {
            case.input.extend_from_slice(b"\\.");
            case.input.extend_from_slice(line_end);
        }
    }
}

#[test]
fn random_inputs_are_read_as_the_server_reads_them() {
    let cases: usize = std::env::var("RECORD_INPUT_CASES")
        .ok()
        .and_then(|n| n.parse().ok())
        .unwrap_or(300);
    each_version(&[], |server| {
        let mut client = server.connect("postgres");
        let mut random = Random(0x9e37_79b9_7f4a_7c15 + u64::from(server.version()));
        let mut loaded = 0;
        for _ in 0..cases {
            let case = random_case(&mut random, server.version());
            let outcome = assert_same(server, &mut client, &case);
            loaded += usize::from(matches!(outcome, Outcome::Rows(rows) if !rows.is_empty()));
        }
        assert!(loaded > cases / 4, "only {loaded} inputs had rows");
    });
}

#[test]
fn inputs_written_by_hand_are_read_as_the_server_reads_them() {
    let mut cases = vec![
        Case::csv(
            2,
            b"1,ab\"cd,ef\"gh\n2,\"x\"y\"z\"\n3,5'11\"\"\n6,\"\"\"\"\"\"\n",
        ),
        Case::csv(
            3,
            b"1,bolt M6,10\n2,board 2\" x 4,20\n3,nut M6,30\n4,pipe 3\" dia,40\n5,w,50\n",
        ),
        Case::csv(3, b"1,,\n2,7,2020-01-01\n3,\"\",\n"),
        Case::csv(2, b"\xef\xbb\xbf1,one\n2,two\n"),
        Case::csv(2, b"1,a\n2,b\r\n3,c\n"),
        Case::csv(2, b"1,a\r2,\"b\rc\nd\"\r3,e\r"),
        Case::csv(2, b"1, \"a, b\" \n 2 ,\"c\" \n"),
        Case::csv(2, b"0|A|\n").with(|o| o.delimiter = Some("|".into())),
        Case::csv(2, b"######x######,#y##z#\n#a,b#,\"\"\n##,\n")
            .with(|o| (o.quote, o.escape) = (Some("#".into()), Some("#".into()))),
        Case::csv(1, b"a\n\nb\n\"\"\n\n"),
        Case::csv(2, b"b,a\n1,2\n").with(|o| o.header = Header::Skip),
        Case::text(
            2,
            b"1\t\\b\\f\\n\\r\\t\\v\\\\\n2\t\\101\\7\\x41\\x4a\\x4\n3\t\\N\n4\t\\\\N\n",
        ),
        Case::text(
            2,
            b"8\tline\\\nbreak\n9\ttab\\\tinside\n11\t\\xc3\\xa9\n13\t\\xg\\8\n",
        ),
        Case::text(2, b"1\ta\n2\tb\rc\n3\td\n"),
        Case::text(2, b"1\tok\n2\tb\0d\n"),
        Case::csv(2, b"1,ok\n2,\"b\0d\"\n3,last\n"),
        Case::text(3, b"1||\n2|\\N|5\n3|a\\|b|1.50\n")
            .with(|o| (o.delimiter, o.null) = (Some("|".into()), Some(String::new()))),
        Case::text(0, b"\n\n\n"),
        Case::text(2, b"1\tok\n2\t\xc0\xaf\n"),
        Case::text(1, b"caf\xe9 ab\n"),
        Case::text(1, b"a\ncaf\xe9"),
        Case::text(1, b"a\n\xf0\x9f\x98"),
        Case::text(1, b"a\n\xed\xa0\x80\n"),
        Case::text(1, b"a\n\\."),
        Case::text(1, b"a\n\\.\nb\n"),
        Case::text(1, b"a\r\n\\.\nb\n"),
        Case::text(1, b"a\r\n\\.x\n"),
        Case::text(1, b"a\nb\\.\nc\n"),
        Case::csv(1, b"a\n\\.\nb\n"),
        Case::csv(1, b"\\.\nb\n"),
        Case::csv(1, b"a\n\\.\r\nb\n"),
        Case::csv(1, b"a\n\\.x\n"),
        Case::csv(1, b"a\n\"\\.\"\n"),
        Case::csv(2, b"a,\"b\nc\"\nd,\"e\nf\",g\n"),
        Case::csv(2, b"a,\"b\nc,d\n"),
        Case::csv(1, b"a\rb\r\xff\r"),
        Case::text(1, b"a\rb\r\xff\r"),
        Case::csv(1, b"a\r\"b\r\xff\"\r"),
        Case::csv(1, &[b'x'; 150]),
        Case::csv(2, "\u{e9}".repeat(80).as_bytes()),
        Case::text(1, b"a\n").with(|o| o.header = Header::Skip),
    ];
    // A field that is longer than the server's buffers, with pairs across their ends.
    let mut long = Vec::new();
    for i in 0..5 {
        long.extend_from_slice(format!("{i},\"").as_bytes());
        for k in 0..30_000 {
            long.extend_from_slice(
                [&b"a"[..], b"\"\"", b"\xc3\xa9", b"\r\n", b"\n", b","][(k * 7 + i) % 6],
            );
        }
        long.extend_from_slice(b"\",z\n");
    }
    cases.push(Case::csv(3, &long));
    long.extend_from_slice(b"1,\xff\n");
    cases.push(Case::csv(3, &long));
    each_version(&[], |server| {
        let mut client = server.connect("postgres");
        for case in &cases {
            assert_same(server, &mut client, case);
        }
    });
}

#[test]
fn a_header_that_does_not_match_is_refused_as_the_server_does() {
    for &version in VERSIONS.iter().filter(|&&version| version >= 15) {
        let server = Server::start(version, &[]);
        let mut client = server.connect("postgres");
        for input in [
            &b"a,b\n1,2\n"[..],
            b"\"a\",\"b\"\n1,2\n",
            b"a,x\n",
            b"a\n",
            b"a,b,c\n",
            b",b\n",
            b"",
            b"\xef\xbb\xbfa,b\n",
            b"\"a\n\",b\n",
            b"a,b",
            b"A,b\n",
            b"\\.\n",
        ] {
            let case = Case::csv(2, input).with(|o| o.header = Header::Match);
            assert_same(&server, &mut client, &case);
        }
    }
}

#[test]
fn options_are_refused_as_the_server_refuses_them() {
    let text = |change: &dyn Fn(&mut CopyOptions)| Case::text(2, b"").with(change);
    let csv = |change: &dyn Fn(&mut CopyOptions)| Case::csv(2, b"").with(change);
    let binary = |change: &dyn Fn(&mut CopyOptions)| {
        let mut case = Case::text(2, b"");
        case.options.kind = Kind::Binary;
        case.with(change)
    };
    let forced = |case: Case, null: &[&'static str], not_null: &[&'static str]| Case {
        force_null: null.to_vec(),
        force_not_null: not_null.to_vec(),
        ..case
    };
    let cases = [
        text(&|o| o.delimiter = Some("ab".into())),
        text(&|o| o.delimiter = Some(String::new())),
        text(&|o| o.delimiter = Some("\n".into())),
        text(&|o| o.delimiter = Some("\r".into())),
        text(&|o| o.delimiter = Some("\u{e9}".into())),
        text(&|o| o.delimiter = Some("n".into())),
        text(&|o| o.delimiter = Some("7".into())),
        text(&|o| o.delimiter = Some(".".into())),
        text(&|o| o.delimiter = Some("\\".into())),
        text(&|o| o.delimiter = Some("N".into())),
        csv(&|o| o.delimiter = Some("n".into())),
        csv(&|o| o.delimiter = Some("\\".into())),
        text(&|o| o.null = Some("a\nb".into())),
        text(&|o| o.null = Some("a\tb".into())),
        csv(&|o| o.null = Some("a,b".into())),
        csv(&|o| o.null = Some("a\"b".into())),
        csv(&|o| o.quote = Some(",".into())),
        csv(&|o| o.quote = Some("ab".into())),
        csv(&|o| o.quote = Some(String::new())),
        csv(&|o| o.escape = Some("ab".into())),
        csv(&|o| (o.quote, o.delimiter) = (Some("\\".into()), Some("\\".into()))),
        text(&|o| o.quote = Some("\"".into())),
        text(&|o| o.escape = Some("\"".into())),
        text(&|o| (o.quote, o.delimiter) = (Some("\"".into()), Some("ab".into()))),
        text(&|o| o.header = Header::Skip),
        text(&|o| o.header = Header::Match),
        text(&|o| o.default = Some("\\D".into())),
        text(&|o| o.default = Some("a\nb".into())),
        text(&|o| o.default = Some("a\tb".into())),
        csv(&|o| o.default = Some("a\"b".into())),
        csv(&|o| o.default = Some(String::new())),
        forced(text(&|_| ()), &["a"], &[]),
        forced(text(&|_| ()), &[], &["a"]),
        forced(csv(&|_| ()), &["a", "a"], &[]),
        forced(csv(&|_| ()), &[], &["b", "b"]),
        forced(csv(&|_| ()), &["*"], &["a"]),
        forced(csv(&|_| ()), &["b"], &["*"]),
        binary(&|o| o.delimiter = Some(",".into())),
        binary(&|o| o.null = Some("x".into())),
        binary(&|o| o.default = Some("x".into())),
        binary(&|o| o.header = Header::Skip),
        binary(&|o| o.quote = Some("'".into())),
        binary(&|o| o.escape = Some("'".into())),
        forced(binary(&|_| ()), &["a"], &[]),
        forced(binary(&|_| ()), &[], &["a"]),
    ];
    each_version(&[], |server| {
        let mut client = server.connect("postgres");
        for case in &cases {
            // HEADER match is another word to a server that does not know it.
            if case.options.header == Header::Match && server.version() < 15 {
                continue;
            }
            assert_same(server, &mut client, case);
        }
    });
}
