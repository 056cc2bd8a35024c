//! The reader against a plain one: in one piece, in tiny chunks of a file, in tiny blocks of a
//! stream.

use std::io::Write;

use pgformat::version::MajorVersion;
use proptest::prelude::*;

use super::*;
use crate::source::{FileSource, Stream};

/// What reading an input gives, in a form that compares.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct Outcome {
    /// Line and fields of each record.
    records: Vec<(u64, Vec<Option<String>>)>,
    /// SQLSTATE and message, line, the line quoted.
    refusal: Option<(String, u64, Option<String>)>,
}

fn version(major: u32) -> MajorVersion {
    MajorVersion::from_version_num(major * 10_000).expect("supported")
}

fn columns(n: usize) -> Vec<InputColumn> {
    (0..n)
        .map(|i| InputColumn::named(format!("c{i}")))
        .collect()
}

fn csv(n: usize) -> Format {
    Format::csv(columns(n), version(17))
}

fn text(n: usize) -> Format {
    Format::text(columns(n), version(17))
}

/// Reads the records of a chunk; true when the input ends here.
fn read_chunk(chunk: &Chunk, format: &Format, lines: &mut u64, outcome: &mut Outcome) -> bool {
    let mut reader = ChunkReader::new(chunk, format);
    loop {
        match reader.next() {
            Ok(Some(record)) => {
                let fields = (0..record.len())
                    .map(|i| {
                        record
                            .field(i)
                            .map(|f| String::from_utf8_lossy(f).into_owned())
                    })
                    .collect();
                outcome.records.push((*lines + record.line(), fields));
            }
            Ok(None) => break,
            Err(error) => {
                outcome.refusal = Some((
                    format!("{} {}", error.error.sqlstate, error.error.message),
                    *lines + error.line_in_chunk,
                    error.line_text,
                ));
                return true;
            }
        }
    }
    *lines += reader.lines();
    reader.end_of_data()
}

/// Reads a file in chunks; also says how many were guessed wrong.
fn read_file(input: &[u8], format: &Format, chunk_bytes: u64) -> (Outcome, u64) {
    let mut file = tempfile::NamedTempFile::new().expect("temporary file");
    file.write_all(input).expect("write");
    let source = FileSource::open(file.path()).expect("open");
    let chunks = Chunks::with_chunk_bytes(&source, format, chunk_bytes).expect("chunks");
    let (mut outcome, mut lines, mut ended_at, mut reparsed) = (Outcome::default(), 0, 0, 0);
    let mut chunk = Chunk::new();
    for number in 0..chunks.count() {
        chunks.read(number, &mut chunk).expect("read");
        match chunks.follows(&chunk, ended_at) {
            Follows::Yes => {}
            Follows::Empty => continue,
            Follows::Reparse => {
                reparsed += 1;
                chunks
                    .reparse_from(ended_at, number, &mut chunk)
                    .expect("read");
                assert_eq!(chunks.follows(&chunk, ended_at), Follows::Yes);
            }
        }
        ended_at = chunk.ends_at();
        if read_chunk(&chunk, format, &mut lines, &mut outcome) {
            return (outcome, reparsed);
        }
    }
    assert_eq!(
        ended_at,
        input.len() as u64,
        "every byte belongs to a chunk"
    );
    (outcome, reparsed)
}

fn read_stream(input: &[u8], format: &Format, block_bytes: usize) -> Outcome {
    let reader = Box::new(std::io::Cursor::new(input.to_vec()));
    let stream =
        Stream::start("stdin".to_owned(), reader, None, None, block_bytes).expect("stream");
    let mut chunks = StreamChunks::new(stream, format);
    let (mut outcome, mut lines) = (Outcome::default(), 0);
    let mut chunk = Chunk::new();
    while chunks.next(&mut chunk, &|| true).expect("read") {
        if read_chunk(&chunk, format, &mut lines, &mut outcome) {
            break;
        }
    }
    outcome
}

/// Reads an input in all ways, which must agree.
fn read(input: &[u8], format: &Format) -> Outcome {
    let (whole, _) = read_file(input, format, 1 << 20);
    for bytes in [1, 7, 64] {
        assert_eq!(
            read_file(input, format, bytes).0,
            whole,
            "chunks of {bytes}"
        );
        let streamed = read_stream(input, format, bytes as usize);
        assert_eq!(streamed, whole, "blocks of {bytes}");
    }
    whole
}

fn fields(input: &[u8], format: &Format) -> Vec<Vec<Option<String>>> {
    let outcome = read(input, format);
    assert_eq!(outcome.refusal, None);
    outcome
        .records
        .into_iter()
        .map(|(_, fields)| fields)
        .collect()
}

fn refusal(input: &[u8], format: &Format) -> (String, u64) {
    let (message, line, _) = read(input, format).refusal.expect("refused");
    (message, line)
}

fn row<const N: usize>(values: [&str; N]) -> Vec<Option<String>> {
    values
        .iter()
        .map(|&value| (value != "<NULL>").then(|| value.to_owned()))
        .collect()
}

#[test]
fn a_quote_anywhere_in_a_csv_field_toggles_quoting() {
    let input = b"1,ab\"cd,ef\"gh\n2,\"x\"y\"z\"\n3,5'11\"\"\n4,\"left\"right\n5,a\"\"b\n6,\"\"\"\"\"\"\n7,mid\"line1\nline2\"end\n";
    assert_eq!(
        fields(input, &csv(2)),
        vec![
            row(["1", "abcd,efgh"]),
            row(["2", "xyz"]),
            row(["3", "5'11"]),
            row(["4", "leftright"]),
            row(["5", "ab"]),
            row(["6", "\"\""]),
            row(["7", "midline1\nline2end"]),
        ]
    );
}

#[test]
fn a_quoted_field_that_reads_like_null_is_not_null() {
    assert_eq!(
        fields(b",\"\"\n\"\",\n", &csv(2)),
        vec![row(["<NULL>", ""]), row(["", "<NULL>"])]
    );
    let format = Format {
        null: b"nil".to_vec(),
        ..csv(2)
    };
    assert_eq!(
        fields(b"nil,\"nil\"\nnilx,\n", &format),
        vec![row(["<NULL>", "nil"]), row(["nilx", ""])]
    );
}

#[test]
fn force_null_and_force_not_null_turn_what_they_name() {
    let mut format = csv(2);
    format.columns[0].force_null = true;
    format.columns[1].force_not_null = true;
    assert_eq!(
        fields(b"\"\",\n,\"\"\na,b\n", &format),
        vec![row(["<NULL>", ""]), row(["<NULL>", ""]), row(["a", "b"])]
    );
}

#[test]
fn text_escapes_are_resolved_and_null_is_compared_before() {
    let input = b"\\b\\f\\n\\r\\t\\v\\\\\t\\101\\7\\x41\\x4a\\x4\n\\N\t\\\\N\nx\\N\t\\Nx\nline\\\nbreak\ttab\\\tinside\n\\xc3\\xa9\t\\303\\251\n\\xg\\8\t\n";
    assert_eq!(
        fields(input, &text(2)),
        vec![
            row(["\u{8}\u{c}\n\r\t\u{b}\\", "A\u{7}AJ\u{4}"]),
            row(["<NULL>", "\\N"]),
            row(["xN", "Nx"]),
            row(["line\nbreak", "tab\tinside"]),
            row(["\u{e9}", "\u{e9}"]),
            row(["xg8", ""]),
        ]
    );
    assert_eq!(
        refusal(b"a\tb\n\\xc3\tb\n", &text(2)),
        (
            "22021 invalid byte sequence for encoding \"UTF8\": 0xc3".into(),
            2
        )
    );
}

#[test]
fn a_hexadecimal_escape_swallows_a_delimiter_that_is_a_digit() {
    let format = Format {
        delimiter: b'A',
        ..text(2)
    };
    assert_eq!(
        fields(b"\\x4AAb\nxA\\A\n", &format),
        vec![row(["J", "b"]), row(["x", "A"])]
    );
}

#[test]
fn the_first_line_end_decides_and_another_is_refused() {
    let unquoted_cr = "22P04 unquoted carriage return found in data".to_owned();
    let unquoted_nl = "22P04 unquoted newline found in data".to_owned();
    assert_eq!(
        refusal(b"1,a\n2,b\r\n3,c\n", &csv(2)),
        (unquoted_cr.clone(), 2)
    );
    assert_eq!(
        refusal(b"1,a\r\n2,b\n3,c\r\n", &csv(2)),
        (unquoted_nl.clone(), 2)
    );
    assert_eq!(refusal(b"1,a\r\n2,b\r3,c\r\n", &csv(2)), (unquoted_cr, 2));
    assert_eq!(refusal(b"1,a\r2,b\r\n3,c\r", &csv(2)), (unquoted_nl, 3));
    assert_eq!(
        refusal(b"1\ta\n2\tb\rc\n", &text(2)),
        ("22P04 literal carriage return found in data".into(), 2)
    );
    assert_eq!(
        refusal(b"1\ta\r\n2\tb\n", &text(2)),
        ("22P04 literal newline found in data".into(), 2)
    );
    assert_eq!(
        fields(b"1,a\r2,\"b\rc\nd\"\r3,e\r", &csv(2)),
        vec![row(["1", "a"]), row(["2", "b\rc\nd"]), row(["3", "e"])]
    );
    assert_eq!(
        fields(b"1,a\r\n2,\"b\r\nc\"\r\n3,e", &csv(2)),
        vec![row(["1", "a"]), row(["2", "b\r\nc"]), row(["3", "e"])]
    );
}

#[test]
fn a_refusal_names_the_last_line_of_a_record_as_the_server_counts() {
    // The first line's end is not known while it is read: its own line feeds are not counted.
    let (message, line, quoted) = read(b"a,\"b\nc\"\nd,\"e\nf\",g\n", &csv(2))
        .refusal
        .expect("refused");
    assert_eq!(message, "22P04 extra data after last expected column");
    assert_eq!((line, quoted.as_deref()), (3, Some("d,\"e\nf\",g")));
}

#[test]
fn wrong_numbers_of_fields_are_refused() {
    assert_eq!(
        refusal(b"1,a\n2\n", &csv(2)),
        ("22P04 missing data for column \"c1\"".into(), 2)
    );
    assert_eq!(
        refusal(
            b"0|A|\n",
            &Format {
                delimiter: b'|',
                ..csv(2)
            }
        ),
        ("22P04 extra data after last expected column".into(), 1)
    );
    assert_eq!(
        refusal(b"\n", &csv(2)),
        ("22P04 missing data for column \"c1\"".into(), 1)
    );
    assert_eq!(
        refusal(b"a,\"b\nc,d\n", &csv(2)),
        ("22P04 unterminated CSV quoted field".into(), 1)
    );
}

#[test]
fn a_short_record_hands_over_the_fields_that_are_converted_first() {
    let mut file = tempfile::NamedTempFile::new().expect("temporary file");
    file.write_all(b"x,,\"y\"\n1,2,3,4\n").expect("write");
    let source = FileSource::open(file.path()).expect("open");
    let format = csv(4);
    let chunks = Chunks::open(&source, &format).expect("chunks");
    let mut chunk = Chunk::new();
    chunks.read(0, &mut chunk).expect("read");
    let mut reader = ChunkReader::new(&chunk, &format);
    let error = reader.next().expect_err("refused");
    assert_eq!(
        error.present,
        vec![Some(b"x".to_vec()), None, Some(b"y".to_vec())]
    );
    let record = reader.next().expect("goes on").expect("a record");
    assert_eq!((record.line(), record.raw()), (2, Some(&b"1,2,3,4"[..])));
}

#[test]
fn blank_lines_are_records_and_the_last_line_needs_no_end() {
    assert_eq!(
        fields(b"a\n\nb\n\"\"\n\n", &csv(1)),
        vec![
            row(["a"]),
            row(["<NULL>"]),
            row(["b"]),
            row([""]),
            row(["<NULL>"])
        ]
    );
    assert_eq!(fields(b"a\nb", &text(1)), vec![row(["a"]), row(["b"])]);
    assert_eq!(fields(b"a\nb\\", &text(1)), vec![row(["a"]), row(["b"])]);
    assert_eq!(fields(b"", &csv(2)), Vec::<Vec<Option<String>>>::new());
}

#[test]
fn a_table_without_columns_takes_empty_lines() {
    assert_eq!(fields(b"\n\n\n", &text(0)), vec![row([]), row([]), row([])]);
    assert_eq!(
        refusal(b"\nx\n", &csv(0)),
        ("22P04 extra data after last expected column".into(), 2)
    );
}

#[test]
fn an_end_marker_ends_the_data() {
    assert_eq!(fields(b"a\n\\.\nb\rc\n", &text(1)), vec![row(["a"])]);
    assert_eq!(fields(b"a\n\\.\nb\rc\n", &csv(1)), vec![row(["a"])]);
    assert_eq!(
        fields(b"a\n\\.x\n", &csv(1)),
        vec![row(["a"]), row(["\\.x"])]
    );
    let format = Format {
        version: version(18),
        ..csv(1)
    };
    assert_eq!(
        fields(b"a\n\\.\nb\n", &format),
        vec![row(["a"]), row(["\\."]), row(["b"])]
    );
}

#[test]
fn the_header_is_skipped_or_must_match() {
    let skip = Format {
        header: Header::Skip,
        ..csv(2)
    };
    assert_eq!(fields(b"x\n1,2\n", &skip), vec![row(["1", "2"])]);
    let matching = Format {
        header: Header::Match,
        ..csv(2)
    };
    assert_eq!(
        fields(b"c0,\"c1\"\n1,2\n", &matching),
        vec![row(["1", "2"])]
    );
    for (input, message) in [
        (
            &b"c0,cx\n1,2\n"[..],
            "column name mismatch in header line field 2: got \"cx\", expected \"c1\"",
        ),
        (
            b",c1\n1,2\n",
            "column name mismatch in header line field 1: got null value (\"\"), expected \"c0\"",
        ),
        (
            b"c0\n1,2\n",
            "wrong number of fields in header line: got 1, expected 2",
        ),
        (
            b"",
            "wrong number of fields in header line: got 1, expected 2",
        ),
        (
            b"\xef\xbb\xbfc0,c1\n",
            "column name mismatch in header line field 1: got \"\u{feff}c0\", expected \"c0\"",
        ),
    ] {
        assert_eq!(refusal(input, &matching), (format!("22P04 {message}"), 1));
    }
}

#[test]
fn invalid_bytes_are_refused_at_their_line() {
    let prefix = "22021 invalid byte sequence for encoding \"UTF8\": ";
    assert_eq!(
        refusal(b"a\nb\0d\nc\n", &csv(1)),
        (format!("{prefix}0x00"), 2)
    );
    assert_eq!(
        refusal(b"a\ncaf\xe9 ab\nc\n", &text(1)),
        (format!("{prefix}0xe9 0x20 0x61"), 2)
    );
    assert_eq!(refusal(b"a\nb\xc3", &text(1)), (format!("{prefix}0xc3"), 2));
    // A line that another error ends comes first.
    assert_eq!(
        refusal(b"a\nb,c\nc\xff\n", &csv(1)),
        ("22P04 extra data after last expected column".into(), 2)
    );
    // The server looks behind a CR before it takes the line.
    assert_eq!(
        refusal(b"a\rb\r\xff\r", &csv(1)),
        (format!("{prefix}0xff"), 2)
    );
    assert_eq!(
        refusal(b"a\rb\r\xff\r", &text(1)),
        (format!("{prefix}0xff"), 3)
    );
}

#[test]
fn the_default_marker_asks_for_the_default() {
    let mut format = text(2);
    format.default = Some(b"\\D".to_vec());
    format.columns[0].has_default = true;
    assert_eq!(
        refusal(b"\\D\tx\ny\t\\D\n", &format),
        ("22P04 unexpected default marker in COPY data".into(), 2)
    );
    let mut file = tempfile::NamedTempFile::new().expect("temporary file");
    file.write_all(b"y\tx\n\\D\tx\n").expect("write");
    let source = FileSource::open(file.path()).expect("open");
    let chunks = Chunks::open(&source, &format).expect("chunks");
    let mut chunk = Chunk::new();
    chunks.read(0, &mut chunk).expect("read");
    let mut reader = ChunkReader::new(&chunk, &format);
    for expected in [false, true] {
        let record = reader.next().expect("read").expect("a record");
        assert_eq!(record.is_default(0), expected);
        assert!(!record.is_default(1));
    }
}

#[test]
fn a_trailing_delimiter_ends_every_line() {
    let format = Format {
        delimiter: b'|',
        trailing_delimiter: true,
        ..text(2)
    };
    assert_eq!(
        fields(b"0|A|\n1||\n", &format),
        vec![row(["0", "A"]), row(["1", ""])]
    );
    assert_eq!(
        refusal(b"0|A|\n1|B\n", &format),
        ("22P04 missing delimiter at end of line".into(), 2)
    );
    assert_eq!(
        refusal(b"0|A|\n1|\n", &format),
        ("22P04 missing data for column \"c1\"".into(), 2)
    );
    assert_eq!(
        refusal(b"0|A|B|\n", &format),
        ("22P04 extra data after last expected column".into(), 1)
    );
}

#[test]
fn chunks_inside_long_quoted_texts_are_mostly_guessed_right() {
    // Prose with commas and line ends inside quotes, as an export of articles has it.
    let mut input = Vec::new();
    for i in 0..2000 {
        let prose = "He said, as they all do,\nthat \"\"nothing\"\" is sure.\n\nYes, no, maybe.\n";
        writeln!(
            input,
            "{i},title {i},\"{}\",2020-01-01",
            prose.repeat(i % 40)
        )
        .expect("write");
    }
    let format = csv(4);
    let (whole, _) = read_file(&input, &format, 1 << 30);
    assert_eq!(whole.records.len(), 2000);
    let (chunked, reparsed) = read_file(&input, &format, 16 << 10);
    assert_eq!(chunked, whole);
    assert_eq!(reparsed, 0);
}

/// COPY's reader, byte by byte and without any cleverness.
struct Plain<'a> {
    input: &'a [u8],
    format: &'a Format,
    at: usize,
    eol: &'static str,
    line: u64,
}

type PlainError = (String, u64, Option<String>);

impl Plain<'_> {
    fn byte(&self, at: usize) -> Option<u8> {
        self.input.get(at).copied()
    }

    fn fault<T>(&self, message: &str) -> Result<T, PlainError> {
        Err((format!("22P04 {message}"), self.line, None))
    }

    /// The next line without its end, and whether the input ended.
    fn line(&mut self) -> Result<(Vec<u8>, bool), PlainError> {
        let csv = self.format.kind == Kind::Csv;
        let (quote, escape) = (self.format.quote, self.format.escape);
        let kind = if csv { "unquoted" } else { "literal" };
        let strict = self.format.version.at_least(18);
        let mut line = Vec::new();
        let (mut in_quote, mut was_escape) = (false, false);
        let mut is_first = true;
        loop {
            let Some(c) = self.byte(self.at) else {
                return Ok((line, true));
            };
            self.at += 1;
            if csv {
                if in_quote && c == escape && quote != escape {
                    was_escape = !was_escape;
                }
                if c == quote && !was_escape {
                    in_quote = !in_quote;
                }
                if c != escape || quote == escape {
                    was_escape = false;
                }
                if in_quote && c == (if self.eol == "\n" { b'\n' } else { b'\r' }) {
                    self.line += 1;
                }
            }
            if c == b'\r' && !in_quote {
                if self.eol.is_empty() || self.eol == "\r\n" {
                    if self.byte(self.at) == Some(b'\n') {
                        self.at += 1;
                        self.eol = "\r\n";
                    } else if self.eol == "\r\n" {
                        return self.fault(&format!("{kind} carriage return found in data"));
                    } else {
                        self.eol = "\r";
                    }
                } else if self.eol == "\n" {
                    return self.fault(&format!("{kind} carriage return found in data"));
                }
                return Ok((line, false));
            }
            if c == b'\n' && !in_quote {
                if self.eol.starts_with('\r') {
                    return self.fault(&format!("{kind} newline found in data"));
                }
                self.eol = "\n";
                return Ok((line, false));
            }
            if c == b'\\' && (!csv || (is_first && !strict)) {
                match self.byte(self.at) {
                    None => {
                        line.push(c);
                        return Ok((line, true));
                    }
                    Some(b'.') => {
                        let rest = &self.input[self.at + 1..];
                        let style = "end-of-copy marker does not match previous newline style";
                        let corrupt = if strict {
                            "end-of-copy marker is not alone on its line"
                        } else {
                            "end-of-copy marker corrupt"
                        };
                        let (end, wrong_style) = match self.eol {
                            "\r\n" if rest.starts_with(b"\r") => (
                                matches!(rest.get(1), Some(b'\r' | b'\n')),
                                rest.get(1) != Some(&b'\n'),
                            ),
                            "\r\n" => (rest.starts_with(b"\n") && !csv, true),
                            eol => (
                                matches!(rest.first(), Some(b'\r' | b'\n')),
                                !rest.starts_with(eol.as_bytes()),
                            ),
                        };
                        if end && wrong_style {
                            return self.fault(style);
                        }
                        if end && (line.is_empty() || !strict) {
                            self.at += if self.eol == "\r\n" { 3 } else { 2 };
                            return Ok((line, true));
                        }
                        if !csv {
                            return self.fault(corrupt);
                        }
                    }
                    Some(next) if !csv => {
                        line.push(c);
                        line.push(next);
                        self.at += 1;
                        is_first = false;
                        continue;
                    }
                    Some(_) => {}
                }
            }
            is_first = false;
            line.push(c);
        }
    }

    fn fields(&self, line: &[u8]) -> Result<Vec<Option<String>>, String> {
        let format = self.format;
        let mut fields = Vec::new();
        let mut i = 0;
        loop {
            let (mut out, start, mut quoted) = (Vec::new(), i, false);
            let mut in_quote = false;
            let mut end = line.len();
            let mut found = false;
            while i < line.len() {
                let c = line[i];
                let next = line.get(i + 1).copied();
                i += 1;
                if c == format.delimiter && !in_quote {
                    (found, end) = (true, i - 1);
                    break;
                }
                match format.kind {
                    Kind::Csv => {
                        let escapes = next == Some(format.quote) || next == Some(format.escape);
                        if in_quote && c == format.escape && escapes {
                            out.extend(next);
                            i += 1;
                        } else if c == format.quote {
                            quoted = true;
                            in_quote = !in_quote;
                        } else {
                            out.push(c);
                        }
                    }
                    Kind::Text if c == b'\\' => {
                        let Some(next) = next else {
                            end = i - 1;
                            break;
                        };
                        i += 1;
                        out.push(match next {
                            b'n' => b'\n',
                            b'r' => b'\r',
                            other => other,
                        });
                    }
                    Kind::Text | Kind::Binary => out.push(c),
                }
            }
            if in_quote {
                return Err("22P04 unterminated CSV quoted field".into());
            }
            let is_null = !quoted && line[start..end] == format.null;
            fields.push((!is_null).then(|| String::from_utf8_lossy(&out).into_owned()));
            if !found {
                return Ok(fields);
            }
        }
    }

    fn read(mut self) -> Outcome {
        let mut outcome = Outcome::default();
        loop {
            self.line += 1;
            let (line, ended) = match self.line() {
                Ok(line) => line,
                Err(refusal) => {
                    outcome.refusal = Some(refusal);
                    return outcome;
                }
            };
            if ended && line.is_empty() {
                return outcome;
            }
            let columns = &self.format.columns;
            let checked = self
                .fields(&line)
                .and_then(|fields| match columns.get(fields.len()) {
                    Some(missing) => Err(format!(
                        "22P04 missing data for column \"{}\"",
                        missing.name
                    )),
                    None if fields.len() > columns.len() => {
                        Err("22P04 extra data after last expected column".into())
                    }
                    None => Ok(fields),
                });
            match checked {
                Ok(fields) => outcome.records.push((self.line, fields)),
                Err(message) => {
                    let quoted = error::limit_printout(&line);
                    outcome.refusal = Some((message, self.line, Some(quoted)));
                    return outcome;
                }
            }
        }
    }
}

fn plain(input: &[u8], format: &Format) -> Outcome {
    Plain {
        input,
        format,
        at: 0,
        eol: "",
        line: 0,
    }
    .read()
}

fn any_format() -> impl Strategy<Value = Format> {
    (
        prop_oneof![Just(Kind::Csv), Just(Kind::Text)],
        prop_oneof![Just(17), Just(18)],
        1usize..4,
        prop_oneof![Just(b'"'), Just(b'\\'), Just(b'a')],
        proptest::sample::select(vec![&b""[..], b"\\N", b"a"]),
    )
        .prop_map(|(kind, major, n, escape, null)| Format {
            kind,
            delimiter: b',',
            escape,
            null: null.to_vec(),
            ..Format::csv(columns(n), version(major))
        })
}

/// Pieces that make well-formed inputs likely as well.
fn any_input() -> impl Strategy<Value = Vec<u8>> {
    let pieces: Vec<&'static [u8]> = vec![
        b"a",
        b"a",
        b",",
        b",",
        b"\"",
        b"\"",
        b" ",
        b"\n",
        b"\r",
        b"\r\n",
        b"\\",
        b".",
        b"\\.",
        b"\\.\n",
        b"N",
        b"n",
        b"a,a\n",
        b"\"a\",a\n",
        b"\"a\n\",a\n",
        b"a,\"\"\"a\"\n",
        b"\\N",
    ];
    proptest::collection::vec(proptest::sample::select(pieces), 0..40)
        .prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    #[test]
    fn one_piece_tiny_chunks_and_tiny_blocks_read_as_the_plain_reader(
        format in any_format(),
        input in any_input(),
        chunk_bytes in 1u64..40,
    ) {
        let expected = plain(&input, &format);
        prop_assert_eq!(&read_file(&input, &format, 1 << 20).0, &expected);
        prop_assert_eq!(&read_file(&input, &format, chunk_bytes).0, &expected);
        prop_assert_eq!(&read_stream(&input, &format, chunk_bytes as usize), &expected);
    }
}
