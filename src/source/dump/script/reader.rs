//! Reads a script of any size forwards, statement by statement.
//!
//! The window holds the statement at hand and what was read ahead. COPY's data are passed over
//! block by block; only where they lie is told.

use std::io::Read;
use std::ops::Range;

use memchr::memmem;

use super::inserts::{Inserts, Run, Unread};
use super::lexer::{Scanner, StatementState, Token, copies_from_stdin};
use super::statement::{Class, classify};
use crate::error::{Error, Place, Result};

/// Bytes that are read at a time.
const BLOCK_BYTES: usize = 1 << 20;
/// The longest statement: the server takes no longer one.
const MAX_STATEMENT_BYTES: usize = 1 << 30;

/// What some editors write at the beginning of UTF-8.
const BOM: &[u8] = b"\xef\xbb\xbf";

/// A piece of a script.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Item {
    /// A statement without its semicolon.
    Statement {
        /// Its text.
        text: Vec<u8>,
        /// Where it is in the script, with its semicolon, in bytes.
        pos: Range<u64>,
        /// The line of its first word, from 1.
        line: u64,
    },
    /// `COPY ... FROM STDIN` with its data.
    Copy {
        /// The statement.
        statement: Vec<u8>,
        /// Its line.
        line: u64,
        /// Where the data are in the script, in bytes, without the line `\.`.
        data: Range<u64>,
        /// The line on which they begin.
        data_line: u64,
    },
    /// INSERTs of constants into one table; only where they are wanted so
    /// ([`ScriptReader::with_runs`]), else each is a statement.
    Inserts(Inserts),
    /// A command of psql.
    Meta {
        /// The command.
        command: Meta,
        /// Its line.
        line: u64,
    },
}

/// A command of psql.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Meta {
    /// `\connect`.
    Connect(Connect),
    /// `\restrict KEY`.
    Restrict(String),
    /// `\unrestrict KEY`.
    Unrestrict(String),
    /// `\encoding NAME`.
    Encoding(String),
    /// What changes nothing in the database: `\echo` and the like.
    Harmless,
    /// Any other, with its backslash.
    Other(String),
}

/// Where `\connect` goes to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Connect {
    /// The database, a connection string, or a URI; `None` for the same as before.
    pub dbname: Option<String>,
    /// Another user.
    pub user: Option<String>,
}

/// Reads items.
pub struct ScriptReader<R> {
    input: R,
    label: String,
    window: Vec<u8>,
    /// Where the window begins in the script.
    window_pos: u64,
    /// What is read of the window.
    at: usize,
    /// The line that `at` is in.
    line: u64,
    at_end: bool,
    /// `standard_conforming_strings` is off.
    escapes: bool,
    /// The key of a `\restrict` that holds.
    restricted: Option<String>,
    /// INSERTs of constants come together.
    with_runs: bool,
    /// Bytes that are read at a time.
    block_bytes: usize,
}

/// What is found in the window.
enum Found {
    Item(Item),
    /// Whatever it is, its end is not there yet.
    More,
    /// Nothing is left.
    End,
}

impl<R: Read> ScriptReader<R> {
    /// Reads `input`; `label` is for messages.
    pub fn new(input: R, label: String) -> ScriptReader<R> {
        ScriptReader::part(input, label, 1, false)
    }

    /// Reads `input`, which begins on this line of a script; in strings there backslashes escape or
    /// not.
    pub fn part(input: R, label: String, line: u64, escapes: bool) -> ScriptReader<R> {
        ScriptReader {
            input,
            label,
            window: Vec::new(),
            window_pos: 0,
            at: 0,
            line,
            at_end: false,
            escapes,
            restricted: None,
            with_runs: false,
            block_bytes: BLOCK_BYTES,
        }
    }

    /// Reads so many bytes at a time.
    #[must_use]
    pub fn with_blocks(mut self, block_bytes: usize) -> ScriptReader<R> {
        self.block_bytes = block_bytes;
        self
    }

    /// INSERTs of constants that follow each other come as one item.
    #[must_use]
    pub fn with_runs(mut self) -> ScriptReader<R> {
        self.with_runs = true;
        self
    }

    /// The next item; `None` at the end.
    ///
    /// # Errors
    /// The script cannot be read; 42601 for a quote or COPY data without an end.
    pub fn next_item(&mut self) -> Result<Option<Item>> {
        if self.window_pos == 0 && self.at == 0 {
            self.fill()?;
            while self.window.len() < BOM.len() && !self.at_end {
                self.fill()?;
            }
            if self.window.starts_with(BOM) {
                self.at = BOM.len();
            }
        }
        loop {
            match self.look()? {
                Found::Item(item) => return Ok(Some(item)),
                Found::End => return Ok(None),
                Found::More => self.fill()?,
            }
        }
    }

    /// Reads more; a longer window is read by larger steps, so that a long statement is not looked
    /// at too often.
    fn fill(&mut self) -> Result<()> {
        self.window.drain(..self.at);
        self.window_pos += self.at as u64;
        self.at = 0;
        if self.window.len() > MAX_STATEMENT_BYTES {
            return Err(self.error("54000", "a statement of the script is too long", self.line));
        }
        let wanted = self.window.len().max(self.block_bytes);
        self.read(wanted)
    }

    /// Appends up to so many bytes to the window.
    fn read(&mut self, wanted: usize) -> Result<()> {
        self.window.reserve(wanted);
        let read = self
            .input
            .by_ref()
            .take(wanted as u64)
            .read_to_end(&mut self.window)
            .map_err(|e| {
                if e.raw_os_error().is_some() {
                    Error::io("read file", self.label.as_str(), &e)
                } else {
                    Error::refused("22P04", format!("could not read \"{}\": {e}", self.label))
                }
            })?;
        self.at_end |= read < wanted;
        Ok(())
    }

    /// Looks for an item in the window.
    fn look(&mut self) -> Result<Found> {
        if self.with_runs
            && let Some(start) = self.insert_ahead()
            && let Some(found) = self.inserts(start)?
        {
            return Ok(found);
        }
        let mut scanner = Scanner::new(&self.window);
        scanner.pos = self.at;
        scanner.escapes = self.escapes;
        let mut state = StatementState::default();
        loop {
            match scanner.next() {
                Some(Token::Word(range)) => {
                    state.start.get_or_insert(range.start);
                    state.word(&self.window[range]);
                }
                Some(Token::Other(range)) => {
                    state.start.get_or_insert(range.start);
                    state.other(self.window[range.start]);
                }
                Some(Token::Semicolon(pos)) if state.ends_here() => {
                    let Some(start) = state.start else { continue };
                    let end = scanner.pos;
                    return self.statement(start..pos, end);
                }
                Some(Token::Semicolon(_)) => {}
                Some(Token::Backslash(pos)) => return self.backslash(pos, state.start),
                Some(Token::Unterminated(what, pos)) => {
                    if !self.at_end {
                        return Ok(Found::More);
                    }
                    let line = self.line_at(pos);
                    return Err(self.error("42601", &format!("unterminated {what}"), line));
                }
                None if !self.at_end => return Ok(Found::More),
                None => {
                    let Some(start) = state.start else {
                        return Ok(Found::End);
                    };
                    let end = self.window.len();
                    return self.statement(start..end, end);
                }
            }
        }
    }

    /// A statement, and the data that follow it.
    fn statement(&mut self, text: Range<usize>, end: usize) -> Result<Found> {
        let line = self.line_at(text.start);
        let pos = self.window_pos + text.start as u64..self.window_pos + end as u64;
        let statement = self.window[text].trim_ascii_end().to_vec();
        self.pass(end);
        if copies_from_stdin(&statement) {
            return self.copy(statement, line).map(Found::Item);
        }
        // How strings are read is psql's to know, too.
        if let Ok(text) = std::str::from_utf8(&statement)
            && let Class::Set { name, value } = classify(text)
            && name == "standard_conforming_strings"
        {
            self.escapes = matches!(value.to_ascii_lowercase().as_str(), "off" | "false" | "0");
        }
        Ok(Found::Item(Item::Statement {
            text: statement,
            pos,
            line,
        }))
    }

    /// Where the next statement begins, if it is an INSERT.
    fn insert_ahead(&self) -> Option<usize> {
        let mut scanner = Scanner::new(&self.window);
        scanner.pos = self.at;
        loop {
            match scanner.next()? {
                Token::Semicolon(_) => {}
                Token::Word(range) => {
                    let is_insert = self.window[range.clone()].eq_ignore_ascii_case(b"INSERT");
                    return is_insert.then_some(range.start);
                }
                _ => return None,
            }
        }
    }

    /// A run of INSERTs that begins there; `None` when the first one is a statement like any other.
    fn inserts(&mut self, start: usize) -> Result<Option<Found>> {
        let unread = |unread: Unread, at_end: bool| {
            let more = unread == Unread::More && !at_end;
            more.then_some(Found::More)
        };
        let mut run = match Run::begin(&self.window[start..], self.escapes) {
            Ok(run) => run,
            Err(e) => return Ok(unread(e, self.at_end)),
        };
        let line = self.line_at(start);
        let first_pos = self.window_pos + start as u64;
        let mut at = start;
        loop {
            match run.statement(&self.window[at..]) {
                Ok(len) => {
                    self.pass(at + len);
                    at = self.at;
                }
                Err(e) if run.is_empty() => return Ok(unread(e, self.at_end)),
                Err(Unread::More) if !self.at_end => {
                    self.fill()?;
                    at = self.at;
                }
                Err(_) => break,
            }
        }
        let end_pos = self.window_pos + self.at as u64;
        let inserts = run.finish(first_pos..end_pos, line);
        Ok(Some(Found::Item(Item::Inserts(inserts))))
    }

    /// Passes over the data of a COPY: the lines behind that of its semicolon, up to `\.`.
    fn copy(&mut self, statement: Vec<u8>, line: u64) -> Result<Item> {
        // What is left of the line is blank, or a comment.
        loop {
            if let Some(n) = memchr::memchr(b'\n', &self.window[self.at..]) {
                let end = self.at + n + 1;
                let rest = self.window[self.at..end].trim_ascii();
                if !rest.is_empty() && !rest.starts_with(b"--") {
                    let what = "what follows COPY on its line is not supported";
                    return Err(self.error("0A000", what, line));
                }
                self.pass(end);
                break;
            }
            if self.at_end {
                return Err(self.error("42601", "data of COPY has no line \\.", line));
            }
            self.fill()?;
        }
        let data_line = self.line;
        let start = self.window_pos + self.at as u64;
        let finder = memmem::Finder::new(b"\\.");
        loop {
            // A marker stands at a line's beginning and ends it.
            let mut from = self.at;
            while let Some(n) = finder.find(&self.window[from..]) {
                let pos = from + n;
                let begins = pos == self.at && self.window_pos + pos as u64 == start
                    || pos > 0 && self.window[pos - 1] == b'\n';
                let rest = &self.window[pos + 2..];
                let line_end = match rest {
                    [b'\n', ..] => Some(1),
                    [b'\r', b'\n', ..] => Some(2),
                    [] if self.at_end => Some(0),
                    _ => None,
                };
                let undecided = matches!(rest, [] | [b'\r']) && !self.at_end;
                if begins && undecided {
                    break;
                }
                if begins && let Some(len) = line_end {
                    let end = self.window_pos + pos as u64;
                    self.pass(pos + 2 + len);
                    return Ok(Item::Copy {
                        statement,
                        line,
                        data: start..end,
                        data_line,
                    });
                }
                from = pos + 2;
            }
            if self.at_end {
                return Err(self.error("42601", "data of COPY has no line \\.", line));
            }
            // Keeps the beginning of a marker, and the line end before it.
            let keep = self.window.len().saturating_sub(4).max(self.at);
            self.pass(keep);
            let before = self.at.saturating_sub(1);
            self.window.drain(..before);
            self.window_pos += before as u64;
            self.at -= before;
            self.read(self.block_bytes)?;
        }
    }

    /// A command of psql: the rest of its line.
    fn backslash(&mut self, pos: usize, statement: Option<usize>) -> Result<Found> {
        let end = match memchr::memchr(b'\n', &self.window[pos..]) {
            Some(n) => pos + n,
            None if !self.at_end => return Ok(Found::More),
            None => self.window.len(),
        };
        let line = self.line_at(pos);
        let text = String::from_utf8_lossy(&self.window[pos..end]).into_owned();
        if let Some(start) = statement {
            // A statement before it is sent by some and kept by others.
            let line = self.line_at(start);
            let name = text.split_whitespace().next().unwrap_or("\\").to_owned();
            return Err(self.error(
                "0A000",
                &format!("psql command {name} within a statement is not supported"),
                line,
            ));
        }
        self.pass(end);
        let command = self.meta(text.trim_end(), line)?;
        Ok(Found::Item(Item::Meta { command, line }))
    }

    fn meta(&mut self, text: &str, line: u64) -> Result<Meta> {
        let words = arguments(text);
        if let Some(key) = &self.restricted {
            // As psql: nothing but the end of the restriction.
            if let Some([name, argument]) = words.as_deref()
                && name == "\\unrestrict"
                && argument == key
            {
                let key = self.restricted.take().unwrap_or_default();
                return Ok(Meta::Unrestrict(key));
            }
            let name = text.split_whitespace().next().unwrap_or("\\");
            return Err(self.error(
                "42501",
                &format!("backslash commands are restricted; only \\unrestrict with its key is allowed, not {name}"),
                line,
            ));
        }
        let Some(words) = words else {
            return Ok(Meta::Other(text.to_owned()));
        };
        let name = words.first().map_or("\\", String::as_str);
        let argument = words.get(1).cloned().unwrap_or_default();
        Ok(match name {
            "\\connect" | "\\c" => match connect(&words[1..]) {
                Some(connect) => Meta::Connect(connect),
                None => Meta::Other(format!("{name} with a host or a port")),
            },
            "\\restrict" => {
                self.restricted = Some(argument.clone());
                Meta::Restrict(argument)
            }
            "\\unrestrict" => Meta::Unrestrict(argument),
            "\\encoding" => Meta::Encoding(argument),
            "\\echo" | "\\qecho" | "\\warn" | "\\timing" | "\\pset" | "\\x" | "\\a" | "\\t"
            | "\\conninfo" => Meta::Harmless,
            // Others are values that psql puts into statements.
            "\\set" | "\\unset" if VARIABLES.contains(&argument.as_str()) => Meta::Harmless,
            other => Meta::Other(other.to_owned()),
        })
    }

    /// Goes on from `end`.
    fn pass(&mut self, end: usize) {
        self.line += lines(&self.window[self.at..end]);
        self.at = end;
    }

    fn line_at(&self, pos: usize) -> u64 {
        self.line + lines(&self.window[self.at..pos])
    }

    #[cold]
    fn error(&self, sqlstate: &str, message: &str, line: u64) -> Error {
        Error::refused(sqlstate, message).at(Place {
            file: self.label.clone(),
            line,
            ..Place::default()
        })
    }
}

/// Lines that end within.
pub(super) fn lines(bytes: &[u8]) -> u64 {
    memchr::memchr_iter(b'\n', bytes).count() as u64
}

/// psql's variables that change what is shown, or when it stops.
const VARIABLES: [&str; 8] = [
    "ECHO",
    "ECHO_HIDDEN",
    "FETCH_COUNT",
    "ON_ERROR_ROLLBACK",
    "ON_ERROR_STOP",
    "QUIET",
    "SHOW_CONTEXT",
    "VERBOSITY",
];

/// The words of a command's line: in quotes of both kinds white space is no end. `None` where another
/// command follows, or psql would run a program.
fn arguments(text: &str) -> Option<Vec<String>> {
    let mut words = Vec::new();
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        let (word, after) = if first == '\'' {
            quoted(rest, '\'')
        } else {
            // Double quotes may begin within a word and keep what is in them as it is.
            let mut inside = false;
            let end = rest
                .find(|c: char| {
                    inside ^= c == '"';
                    c.is_whitespace() && !inside
                })
                .unwrap_or(rest.len());
            let unquoted = rest[..end].split('"').step_by(2).collect::<String>();
            let is_command = words.is_empty() && unquoted.matches('\\').count() == 1;
            if unquoted.contains(['\\', '`']) && !is_command {
                return None;
            }
            (rest[..end].to_owned(), &rest[end..])
        };
        words.push(word);
        rest = after.trim_start();
    }
    Some(words)
}

/// What stands in quotes at the beginning, and what follows.
fn quoted(text: &str, quote: char) -> (String, &str) {
    let mut word = String::new();
    let mut characters = text.char_indices().skip(1).peekable();
    while let Some((i, c)) = characters.next() {
        if c == quote {
            if characters.peek().is_some_and(|(_, next)| *next == quote) {
                word.push(quote);
                characters.next();
            } else {
                return (word, &text[i + c.len_utf8()..]);
            }
        } else if c == '\\' {
            if let Some((_, escaped)) = characters.next() {
                word.push(escaped);
            }
        } else {
            word.push(c);
        }
    }
    (word, "")
}

/// psql's words behind `\connect`: database, user, host, port; `-` is the same as before. `None` where
/// it may be another server.
fn connect(words: &[String]) -> Option<Connect> {
    let words: Vec<&String> = words
        .iter()
        .filter(|w| !w.starts_with("-reuse-previous="))
        .collect();
    let word = |i: usize| {
        let word = words.get(i).filter(|w| w.as_str() != "-")?;
        Some(
            match word.strip_prefix('"').and_then(|w| w.strip_suffix('"')) {
                Some(inner) => inner.replace("\"\"", "\""),
                None => (*word).clone(),
            },
        )
    };
    (word(2).is_none() && word(3).is_none()).then(|| Connect {
        dbname: word(0),
        user: word(1),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads a few bytes at a time.
    struct Slowly<'a>(&'a [u8], usize);

    impl Read for Slowly<'_> {
        fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
            let n = self.1.min(into.len()).min(self.0.len());
            into[..n].copy_from_slice(&self.0[..n]);
            self.0 = &self.0[n..];
            Ok(n)
        }
    }

    fn items(script: &[u8]) -> Vec<Item> {
        let mut reader = ScriptReader::new(Slowly(script, 7), "s.sql".to_owned());
        let mut items = Vec::new();
        while let Some(item) = reader.next_item().unwrap() {
            items.push(item);
        }
        items
    }

    fn refusal(script: &str) -> String {
        let mut reader = ScriptReader::new(script.as_bytes(), "s.sql".to_owned());
        loop {
            match reader.next_item() {
                Ok(Some(_)) => {}
                Ok(None) => panic!("nothing is refused"),
                Err(error) => return format!("{} at {}", error.message, error.places[0]),
            }
        }
    }

    #[test]
    fn statements_commands_and_data_come_in_their_order() {
        let script = b"\xef\xbb\xbf\\restrict k1\n\nSET a = 1; COPY t (a) FROM stdin;\n1\\.2\n\\\\.\n\\.\nSELECT ';';\n\\unrestrict k1\n\\connect -reuse-previous=on \"dbname='x y'\"\nSELECT 2";
        let copy = b"1\\.2\n\\\\.\n";
        let start = script.windows(copy.len()).position(|w| w == copy).unwrap() as u64;
        let statement = |text: &str, line| {
            let start = script
                .windows(text.len())
                .position(|w| w == text.as_bytes());
            let start = start.unwrap() as u64;
            let end = (start + text.len() as u64 + 1).min(script.len() as u64);
            Item::Statement {
                text: text.into(),
                pos: start..end,
                line,
            }
        };
        assert_eq!(
            items(script),
            [
                Item::Meta {
                    command: Meta::Restrict("k1".into()),
                    line: 1
                },
                statement("SET a = 1", 3),
                Item::Copy {
                    statement: b"COPY t (a) FROM stdin".to_vec(),
                    line: 3,
                    data: start..start + copy.len() as u64,
                    data_line: 4
                },
                statement("SELECT ';'", 7),
                Item::Meta {
                    command: Meta::Unrestrict("k1".into()),
                    line: 8
                },
                Item::Meta {
                    command: Meta::Connect(Connect {
                        dbname: Some("dbname='x y'".into()),
                        user: None
                    }),
                    line: 9
                },
                statement("SELECT 2", 10),
            ]
        );
    }

    #[test]
    fn data_may_be_empty_or_end_with_the_script() {
        for script in [
            "COPY t FROM stdin;\n\\.\n",
            "COPY t FROM stdin;\r\n\\.\r\n",
            "COPY t FROM stdin;\n\\.",
        ] {
            let found = items(script.as_bytes());
            assert_eq!(found.len(), 1, "{script:?}");
            assert!(matches!(&found[0], Item::Copy { data, data_line: 2, .. } if data.is_empty()));
        }
    }

    #[test]
    fn data_that_are_longer_than_the_window_are_found_whole() {
        let mut script = b"COPY t FROM stdin;\n".to_vec();
        let row = b"abc\\.\tdef\n";
        for _ in 0..300_000 {
            script.extend_from_slice(row);
        }
        let end = script.len() as u64;
        script.extend_from_slice(b"\\.\nSELECT 1;\n");
        let mut reader = ScriptReader::new(script.as_slice(), "s".to_owned());
        let Some(Item::Copy { data, .. }) = reader.next_item().unwrap() else {
            panic!("data");
        };
        assert_eq!(data, 19..end);
        let Some(Item::Statement { line, .. }) = reader.next_item().unwrap() else {
            panic!("a statement");
        };
        assert_eq!(line, 300_003);
    }

    #[test]
    fn what_does_not_end_is_refused_with_its_line() {
        assert_eq!(
            refusal("SELECT 1;\nSELECT 'x"),
            "unterminated quoted string at s.sql, line 2"
        );
        assert_eq!(
            refusal("SELECT 1;\nCOPY t FROM stdin;\n1\n"),
            "data of COPY has no line \\. at s.sql, line 2"
        );
        assert_eq!(
            refusal("\\restrict a\nSELECT 1;\n\\! rm\n"),
            "backslash commands are restricted; only \\unrestrict with its key is allowed, not \\! at s.sql, line 3"
        );
    }

    #[test]
    fn commands_are_told_from_those_that_do_more() {
        let command = |line: &str| match &items(line.as_bytes())[0] {
            Item::Meta { command, .. } => command.clone(),
            item => panic!("{item:?}"),
        };
        let connect = |dbname: Option<&str>, user: Option<&str>| {
            Meta::Connect(Connect {
                dbname: dbname.map(str::to_owned),
                user: user.map(str::to_owned),
            })
        };
        for (line, expected) in [
            ("\\connect a b", connect(Some("a"), Some("b"))),
            ("\\c - b - -", connect(None, Some("b"))),
            ("\\c", connect(None, None)),
            (
                "\\connect 'it''s' \"a \"\"b\"\"\"",
                connect(Some("it's"), Some("a \"b\"")),
            ),
            ("\\connect \"a\\b\"", connect(Some("a\\b"), None)),
            ("\\set ON_ERROR_STOP 1", Meta::Harmless),
            ("\\echo 'a \\! rm' b", Meta::Harmless),
            ("\\encoding latin1", Meta::Encoding("latin1".to_owned())),
        ] {
            assert_eq!(command(line), expected, "{line}");
        }
        for line in [
            "\\connect a b elsewhere",
            "\\connect a b - 5433",
            "\\connect `id`",
            "\\echo a \\! rm",
            "\\echo a\\! rm",
            "\\echo `rm`",
            "\\set name value",
            "\\set SINGLELINE on",
            "\\i file",
            "\\!",
            "\\",
            "\\\\",
        ] {
            assert!(matches!(command(line), Meta::Other(_)), "{line}");
        }
        for script in [
            "\\restrict a\n\\unrestrict b",
            "\\restrict a\n\\unrestrict a \\! rm",
        ] {
            assert!(
                refusal(script).starts_with("backslash commands are restricted"),
                "{script}"
            );
        }
    }

    #[test]
    fn what_follows_a_copy_on_its_line_is_refused_unless_it_is_blank() {
        assert_eq!(
            refusal("COPY t FROM stdin; SELECT 1;\n\\.\n"),
            "what follows COPY on its line is not supported at s.sql, line 1"
        );
        assert_eq!(items(b"COPY t FROM stdin; -- rows\n1\n\\.\n").len(), 1);
    }

    #[test]
    fn backslashes_escape_where_the_script_says_so() {
        let found = items(b"SET standard_conforming_strings = off;\nSELECT 'a\\';b';\nSELECT 2;");
        assert_eq!(found.len(), 3);
    }
}
