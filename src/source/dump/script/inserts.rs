//! INSERTs of constants, as `pg_dump --inserts` writes them, read as rows.
//!
//! ```text
//! INSERT INTO t (a, b) VALUES (1, 'x'), (2, NULL);
//! INSERT INTO t (a, b) VALUES (3, 'y');
//! ```
//!
//! Statements that follow each other and begin alike are a run. [`Run`] finds where it ends and which
//! kinds of constants each column has, so that it can be decided whether COPY means the same by them;
//! [`InsertRows`] gives the run's rows as COPY's text. Both take only what [`row`] knows: numbers in
//! decimal, strings, bit strings, true, false, NULL and DEFAULT.
//!
//! PostgreSQL: `src/backend/parser/scan.l`; `src/bin/pg_dump/pg_dump.c`, `dumpTableData_insert`.

use std::io::{self, Read};
use std::ops::Range;

use memchr::{memchr, memchr2};

use super::lexer::{Scanner, Token};
use super::statement::insert_target;

/// Bytes of SQL that are read at a time.
const BLOCK_BYTES: usize = 1 << 20;
/// The longest head of a statement, up to VALUES: 1600 columns with long names.
const MAX_HEAD_BYTES: usize = 1 << 18;
/// The longest number: what is longer is for the server to judge.
const MAX_NUMBER_BYTES: usize = 1000;
/// The most digits of an exponent.
const MAX_EXPONENT_DIGITS: usize = 3;

/// A run of INSERTs into one table, which are all in one form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Inserts {
    /// The head that each statement has, up to VALUES; for
    /// [`insert_target`].
    pub head: Vec<u8>,
    /// Where the statements are in the script, in bytes.
    pub pos: Range<u64>,
    /// The line of the first one's first word, from 1.
    pub line: u64,
    /// In plain strings backslashes escape (`standard_conforming_strings` is off).
    pub escapes: bool,
    /// How many rows they have.
    pub rows: u64,
    /// The constants of each of a row's values.
    pub constants: Vec<Constants>,
}

/// Kinds of constants.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Constants(u8);

impl Constants {
    /// NULL.
    pub const NULL: Constants = Constants(1);
    /// Digits, perhaps with a sign.
    pub const INTEGER: Constants = Constants(2);
    /// A number with a decimal point or an exponent.
    pub const DECIMAL: Constants = Constants(4);
    /// A string.
    pub const STRING: Constants = Constants(8);
    /// true or false.
    pub const BOOLEAN: Constants = Constants(16);
    /// `B'01'` or `X'1F'`.
    pub const BITS: Constants = Constants(32);
    /// DEFAULT.
    pub const DEFAULT: Constants = Constants(64);

    /// Both together.
    #[must_use]
    pub const fn and(self, other: Constants) -> Constants {
        Constants(self.0 | other.0)
    }

    /// There are no others than these.
    pub const fn are_within(self, others: Constants) -> bool {
        self.0 & !others.0 == 0
    }
}

/// A constant.
#[derive(Debug, PartialEq, Eq)]
enum Constant<'a> {
    Null,
    Default,
    Boolean(bool),
    /// Without a sign that says nothing; whether it is an integer.
    Number(&'a [u8], bool),
    /// `b` or `x`, and the digits.
    Bits(u8, &'a [u8]),
    /// As it stands between its quotes: a quote in it is doubled.
    Quoted(&'a [u8]),
    /// Without its escapes.
    Unescaped(Vec<u8>),
}

impl Constant<'_> {
    fn kind(&self) -> Constants {
        match self {
            Constant::Null => Constants::NULL,
            Constant::Default => Constants::DEFAULT,
            Constant::Boolean(_) => Constants::BOOLEAN,
            Constant::Number(_, true) => Constants::INTEGER,
            Constant::Number(_, false) => Constants::DECIMAL,
            Constant::Bits(..) => Constants::BITS,
            Constant::Quoted(_) | Constant::Unescaped(_) => Constants::STRING,
        }
    }
}

/// Why something was not read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unread {
    /// Its end is not there yet.
    More,
    /// It is not in the form that is read here.
    Other,
}

type Parsed<T> = std::result::Result<T, Unread>;

/// The byte at a place, which may come later.
fn byte(text: &[u8], at: usize) -> Parsed<u8> {
    text.get(at).copied().ok_or(Unread::More)
}

fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r')
}

/// The next place that is no white space, and what is there.
fn skip_space(text: &[u8], mut at: usize) -> Parsed<(usize, u8)> {
    loop {
        let byte = byte(text, at)?;
        if !is_space(byte) {
            return Ok((at, byte));
        }
        at += 1;
    }
}

/// Passes white space and comments between statements.
fn skip_blank(text: &[u8], mut at: usize) -> Parsed<usize> {
    loop {
        let (found, first) = skip_space(text, at)?;
        if first != b'-' || byte(text, found + 1)? != b'-' {
            return Ok(found);
        }
        at = found + memchr2(b'\n', b'\r', &text[found..]).ok_or(Unread::More)?;
    }
}

/// Reads a row from its parenthesis on and passes each value with its number; where it ends.
#[inline]
fn row<'a>(
    text: &'a [u8],
    mut at: usize,
    escapes: bool,
    mut value: impl FnMut(usize, Constant<'a>),
) -> Parsed<usize> {
    if byte(text, at)? != b'(' {
        return Err(Unread::Other);
    }
    let mut number = 0;
    loop {
        let (start, first) = skip_space(text, at + 1)?;
        let (constant, end) = constant(text, start, first, escapes)?;
        value(number, constant);
        number += 1;
        let (end, separator) = skip_space(text, end)?;
        match separator {
            b',' => at = end,
            b')' => return Ok(end + 1),
            _ => return Err(Unread::Other),
        }
    }
}

/// Reads a constant; where it ends.
#[inline]
fn constant(text: &[u8], at: usize, first: u8, escapes: bool) -> Parsed<(Constant<'_>, usize)> {
    match first {
        b'\'' if escapes => escaped(text, at + 1),
        b'\'' => {
            let end = closing_quote(text, at + 1)?;
            Ok((Constant::Quoted(&text[at + 1..end]), end + 1))
        }
        b'0'..=b'9' | b'-' | b'+' | b'.' => number(text, at),
        b'E' | b'e' if byte(text, at + 1)? == b'\'' => escaped(text, at + 2),
        b'B' | b'b' | b'X' | b'x' if byte(text, at + 1)? == b'\'' => {
            let end = closing_quote(text, at + 2)?;
            let digits = &text[at + 2..end];
            let prefix = first.to_ascii_lowercase();
            let is_digit = |b: &u8| match prefix {
                b'b' => matches!(b, b'0' | b'1'),
                _ => b.is_ascii_hexdigit(),
            };
            if !digits.iter().all(is_digit) {
                return Err(Unread::Other);
            }
            Ok((Constant::Bits(prefix, digits), end + 1))
        }
        _ => {
            let rest = &text[at..];
            for (word, constant) in [
                ("NULL", Constant::Null),
                ("true", Constant::Boolean(true)),
                ("false", Constant::Boolean(false)),
                ("DEFAULT", Constant::Default),
            ] {
                let there = rest.len().min(word.len());
                if !rest[..there].eq_ignore_ascii_case(&word.as_bytes()[..there]) {
                    continue;
                }
                // What else may be of the same word is no separator.
                byte(text, at + word.len())?;
                return Ok((constant, at + word.len()));
            }
            Err(Unread::Other)
        }
    }
}

/// The place of the quote that ends a string; a doubled one does not.
fn closing_quote(text: &[u8], mut at: usize) -> Parsed<usize> {
    loop {
        at += memchr(b'\'', &text[at.min(text.len())..]).ok_or(Unread::More)?;
        if byte(text, at + 1)? != b'\'' {
            return Ok(at);
        }
        at += 2;
    }
}

/// A string in which backslashes escape. What stands for bytes beyond ASCII is left to the server,
/// in whose encoding these are.
fn escaped(text: &[u8], start: usize) -> Parsed<(Constant<'_>, usize)> {
    let mut value = Vec::new();
    let mut at = start;
    loop {
        let n = memchr2(b'\'', b'\\', &text[at.min(text.len())..]).ok_or(Unread::More)?;
        value.extend_from_slice(&text[at..at + n]);
        at += n;
        let next = byte(text, at + 1)?;
        if text[at] == b'\'' {
            if next != b'\'' {
                return Ok((Constant::Unescaped(value), at + 1));
            }
            value.push(b'\'');
            at += 2;
            continue;
        }
        at += 2;
        match next {
            b'b' => value.push(8),
            b'f' => value.push(12),
            b'n' => value.push(b'\n'),
            b'r' => value.push(b'\r'),
            b't' => value.push(b'\t'),
            b'0'..=b'7' => {
                let code = digits(text, &mut at, u32::from(next - b'0'), 8, 2)?;
                value.push(ascii(code)?);
            }
            b'x' if byte(text, at)?.is_ascii_hexdigit() => {
                let code = digits(text, &mut at, 0, 16, 2)?;
                value.push(ascii(code)?);
            }
            b'u' | b'U' => return Err(Unread::Other),
            other => value.push(other),
        }
    }
}

/// Reads up to so many digits behind those that make `code`.
fn digits(text: &[u8], at: &mut usize, mut code: u32, radix: u32, most: usize) -> Parsed<u32> {
    for _ in 0..most {
        let Some(digit) = (byte(text, *at)? as char).to_digit(radix) else {
            break;
        };
        code = code * radix + digit;
        *at += 1;
    }
    Ok(code)
}

fn ascii(code: u32) -> Parsed<u8> {
    u8::try_from(code)
        .ok()
        .filter(|b| (1..0x80).contains(b))
        .ok_or(Unread::Other)
}

/// A number. Its sign is kept where it matters: SQL knows no negative zero.
fn number(text: &[u8], start: usize) -> Parsed<(Constant<'_>, usize)> {
    let mut at = start + usize::from(matches!(text[start], b'-' | b'+'));
    let unsigned = at;
    let mut is_integer = true;
    let mut digits = 0;
    let mut is_zero = true;
    loop {
        match byte(text, at)? {
            b @ b'0'..=b'9' => {
                digits += 1;
                is_zero &= b == b'0';
            }
            b'.' if is_integer => is_integer = false,
            _ => break,
        }
        at += 1;
    }
    if digits == 0 {
        return Err(Unread::Other);
    }
    if matches!(byte(text, at)?, b'e' | b'E') {
        is_integer = false;
        at += 1;
        at += usize::from(matches!(byte(text, at)?, b'-' | b'+'));
        let exponent = at;
        while byte(text, at)?.is_ascii_digit() {
            at += 1;
        }
        if !(1..=MAX_EXPONENT_DIGITS).contains(&(at - exponent)) {
            return Err(Unread::Other);
        }
    }
    if at - start > MAX_NUMBER_BYTES {
        return Err(Unread::Other);
    }
    let from = if text[start] == b'-' && !is_zero {
        start
    } else {
        unsigned
    };
    Ok((Constant::Number(&text[from..at], is_integer), at))
}

/// The bytes of a statement's head, up to VALUES.
fn head(text: &[u8]) -> Parsed<&[u8]> {
    let mut scanner = Scanner::new(&text[..text.len().min(MAX_HEAD_BYTES)]);
    let mut parens = 0_u32;
    loop {
        match scanner.next() {
            Some(Token::Word(range)) => {
                // The last word may go on.
                byte(text, range.end)?;
                let word = &text[range.clone()];
                if range.start == 0 && !word.eq_ignore_ascii_case(b"INSERT") {
                    return Err(Unread::Other);
                }
                if parens == 0 && word.eq_ignore_ascii_case(b"VALUES") {
                    return Ok(&text[..range.end]);
                }
                let stops = [b"SELECT".as_slice(), b"DEFAULT", b"TABLE", b"WITH"];
                if stops.iter().any(|stop| word.eq_ignore_ascii_case(stop)) {
                    return Err(Unread::Other);
                }
            }
            Some(Token::Other(range)) => match text[range.start] {
                b'(' => parens += 1,
                b')' => parens = parens.saturating_sub(1),
                b'"' | b'.' | b',' => {}
                _ => return Err(Unread::Other),
            },
            None | Some(Token::Unterminated(..)) if text.len() < MAX_HEAD_BYTES => {
                return Err(Unread::More);
            }
            _ => return Err(Unread::Other),
        }
    }
}

/// A run that is being found.
#[derive(Debug)]
pub struct Run {
    head: Vec<u8>,
    escapes: bool,
    /// Values of a row.
    width: usize,
    rows: u64,
    constants: Vec<Constants>,
    /// Those of a statement that is not yet read to its end.
    of_statement: Vec<Constants>,
}

impl Run {
    /// Begins a run with the statement whose first word is at the beginning.
    pub fn begin(text: &[u8], escapes: bool) -> Parsed<Run> {
        let head = head(text)?;
        let target = insert_target(&String::from_utf8_lossy(head)).ok_or(Unread::Other)?;
        Ok(Run {
            head: head.to_vec(),
            escapes,
            width: target.columns.map_or(0, |c| c.len()),
            rows: 0,
            constants: Vec::new(),
            of_statement: Vec::new(),
        })
    }

    /// There is no row yet.
    pub fn is_empty(&self) -> bool {
        self.rows == 0
    }

    /// Reads a statement, with what is blank before it; where it begins and ends.
    pub fn statement(&mut self, text: &[u8]) -> Parsed<usize> {
        let start = skip_blank(text, 0)?;
        let mut at = behind_head(text, start, &self.head)?;
        let mut rows = 0;
        let mut width = self.width;
        self.of_statement.clear();
        self.of_statement.resize(width, Constants::default());
        loop {
            let of_statement = &mut self.of_statement;
            let mut values = 0;
            at = row(text, at, self.escapes, |number, constant| {
                values = number + 1;
                if number == of_statement.len() {
                    of_statement.push(Constants::default());
                }
                of_statement[number] = of_statement[number].and(constant.kind());
            })?;
            if width == 0 {
                width = values;
            }
            if values != width {
                return Err(Unread::Other);
            }
            rows += 1;
            let (separator_at, separator) = skip_space(text, at)?;
            match separator {
                b',' => at = skip_space(text, separator_at + 1)?.0,
                b';' => {
                    at = separator_at + 1;
                    break;
                }
                _ => return Err(Unread::Other),
            }
        }
        self.width = width;
        self.rows += rows;
        self.constants.resize(width, Constants::default());
        for (all, more) in self.constants.iter_mut().zip(&self.of_statement) {
            *all = all.and(*more);
        }
        Ok(at)
    }

    /// The run, which stands there.
    pub fn finish(self, pos: Range<u64>, line: u64) -> Inserts {
        Inserts {
            head: self.head,
            pos,
            line,
            escapes: self.escapes,
            rows: self.rows,
            constants: self.constants,
        }
    }
}

/// Where the first row of a statement with this head begins.
fn behind_head(text: &[u8], start: usize, head: &[u8]) -> Parsed<usize> {
    let rest = &text[start..];
    if !rest.starts_with(head) {
        let begins = head.starts_with(rest);
        return Err(if begins { Unread::More } else { Unread::Other });
    }
    let (at, first) = skip_space(text, start + head.len())?;
    if first == b'(' {
        Ok(at)
    } else {
        Err(Unread::Other)
    }
}

impl Inserts {
    /// Every row has DEFAULT there, so that the column is none of those that are filled.
    pub fn is_default(&self, value: usize) -> bool {
        self.constants[value] == Constants::DEFAULT
    }

    /// The line of a script on which a row begins, from 0 as the first; `input` reads the statements.
    ///
    /// # Errors
    /// They cannot be read.
    pub fn line_of_row(&self, input: impl Read, row: u64) -> io::Result<u64> {
        let mut rows = Rows::new(input, self);
        for _ in 0..row {
            if !rows.next(|_, _| {})? {
                break;
            }
        }
        rows.start_next()?;
        Ok(self.line + rows.lines)
    }
}

/// Reads a run's rows one after the other.
#[derive(Debug)]
struct Rows<R> {
    input: R,
    head: Vec<u8>,
    escapes: bool,
    window: Vec<u8>,
    /// Bytes that are read at a time.
    block_bytes: usize,
    at: usize,
    at_end: bool,
    /// The next row is of the same statement.
    within: bool,
    /// `at` is where the next row begins.
    at_row: bool,
    /// Lines that end before `at`.
    lines: u64,
}

impl<R: Read> Rows<R> {
    fn new(input: R, inserts: &Inserts) -> Rows<R> {
        Rows {
            input,
            head: inserts.head.clone(),
            escapes: inserts.escapes,
            window: Vec::new(),
            block_bytes: BLOCK_BYTES,
            at: 0,
            at_end: false,
            within: false,
            at_row: false,
            lines: 0,
        }
    }

    /// Reads more. What is kept is less than a row, or else it is read by larger steps.
    fn fill(&mut self) -> io::Result<()> {
        if self.at_end {
            return Err(changed());
        }
        self.window.drain(..self.at);
        self.at = 0;
        let wanted = self.window.len().max(self.block_bytes) as u64;
        let read = self
            .input
            .by_ref()
            .take(wanted)
            .read_to_end(&mut self.window)?;
        self.at_end = (read as u64) < wanted;
        Ok(())
    }

    fn pass(&mut self, end: usize) {
        self.lines += super::reader::lines(&self.window[self.at..end]);
        self.at = end;
    }

    /// Goes to the beginning of the next row; false behind the last one.
    fn start_next(&mut self) -> io::Result<bool> {
        while !self.at_row {
            let start = if self.within {
                skip_space(&self.window, self.at).map(|(at, _)| at)
            } else {
                skip_blank(&self.window, self.at)
                    .and_then(|at| behind_head(&self.window, at, &self.head))
            };
            match start {
                Ok(start) => {
                    self.pass(start);
                    self.at_row = true;
                }
                Err(Unread::More) => {
                    let is_blank = self.window[self.at..].iter().all(|b| is_space(*b));
                    if self.at_end && !self.within && is_blank {
                        return Ok(false);
                    }
                    self.fill()?;
                }
                Err(Unread::Other) => return Err(changed()),
            }
        }
        Ok(true)
    }

    /// Passes the values of the next row; false when there is none. A row may be passed in part and
    /// then again from its first value on.
    fn next(&mut self, mut value: impl FnMut(usize, &Constant<'_>)) -> io::Result<bool> {
        if !self.start_next()? {
            return Ok(false);
        }
        loop {
            let read = row(&self.window, self.at, self.escapes, |number, constant| {
                value(number, &constant);
            });
            let read = read.and_then(|end| Ok((end, skip_space(&self.window, end)?)));
            match read {
                Ok((_, (separator, b @ (b',' | b';')))) => {
                    self.pass(separator + 1);
                    self.within = b == b',';
                    self.at_row = false;
                    return Ok(true);
                }
                Err(Unread::More) => self.fill()?,
                Ok(_) | Err(Unread::Other) => return Err(changed()),
            }
        }
    }
}

/// The statements were all there when the run was found.
#[cold]
fn changed() -> io::Error {
    io::Error::new(
        io::ErrorKind::InvalidData,
        "the INSERT statements changed while they were being read",
    )
}

/// The rows of a run as COPY's text, one line for each.
#[derive(Debug)]
pub struct InsertRows<R> {
    rows: Rows<R>,
    /// Which of a row's values are left out.
    left_out: Vec<bool>,
    out: Vec<u8>,
    given: usize,
}

impl<R: Read> InsertRows<R> {
    /// The rows of statements that `input` reads; values that are DEFAULT are left out.
    pub fn new(input: R, inserts: &Inserts) -> InsertRows<R> {
        InsertRows {
            rows: Rows::new(input, inserts),
            left_out: (0..inserts.constants.len())
                .map(|value| inserts.is_default(value))
                .collect(),
            out: Vec::new(),
            given: 0,
        }
    }

    /// Reads so many bytes at a time.
    #[must_use]
    pub fn with_blocks(mut self, block_bytes: usize) -> InsertRows<R> {
        self.rows.block_bytes = block_bytes;
        self
    }

    /// Makes another piece of text; empty at the end.
    fn produce(&mut self) -> io::Result<()> {
        self.out.clear();
        self.given = 0;
        while self.out.len() < BLOCK_BYTES {
            let start = self.out.len();
            let (out, left_out) = (&mut self.out, &self.left_out);
            let found = self.rows.next(|number, constant| {
                if number == 0 {
                    out.truncate(start);
                }
                if left_out.get(number) == Some(&false) {
                    write_constant(out, constant);
                    out.push(b'\t');
                }
            })?;
            if !found {
                break;
            }
            // The last value's tab; a row of which all is left out has none.
            if self.out.len() > start {
                self.out.pop();
            }
            self.out.push(b'\n');
        }
        Ok(())
    }
}

impl<R: Read> Read for InsertRows<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.given == self.out.len() && !into.is_empty() {
            self.produce()?;
        }
        let read = (&self.out[self.given..]).read(into)?;
        self.given += read;
        Ok(read)
    }
}

#[inline]
fn write_constant(out: &mut Vec<u8>, constant: &Constant<'_>) {
    match constant {
        Constant::Null | Constant::Default => out.extend_from_slice(b"\\N"),
        Constant::Boolean(value) => out.push(if *value { b't' } else { b'f' }),
        Constant::Number(digits, _) => out.extend_from_slice(digits),
        Constant::Bits(prefix, digits) => {
            out.push(*prefix);
            out.extend_from_slice(digits);
        }
        Constant::Quoted(text) => write_string(out, text, true),
        Constant::Unescaped(text) => write_string(out, text, false),
    }
}

/// What COPY's text writes behind a backslash, by byte: 0 for what stands for itself, and a quote for
/// a quote, which is looked at apart.
const ESCAPES: [u8; 256] = {
    let mut escapes = [0; 256];
    escapes[b'\\' as usize] = b'\\';
    escapes[b'\n' as usize] = b'n';
    escapes[b'\r' as usize] = b'r';
    escapes[b'\t' as usize] = b't';
    escapes[b'\'' as usize] = b'\'';
    escapes
};

fn write_string(out: &mut Vec<u8>, text: &[u8], quotes_are_doubled: bool) {
    let mut from = 0;
    let mut at = 0;
    while let Some(found) = text[at..].iter().position(|b| ESCAPES[*b as usize] != 0) {
        at += found;
        let escape = ESCAPES[text[at] as usize];
        if escape != b'\'' {
            out.extend_from_slice(&text[from..at]);
            out.extend_from_slice(&[b'\\', escape]);
            at += 1;
            from = at;
        } else if quotes_are_doubled {
            // One of the two.
            out.extend_from_slice(&text[from..=at]);
            at += 2;
            from = at;
        } else {
            at += 1;
        }
    }
    out.extend_from_slice(&text[from..]);
}

#[cfg(test)]
mod tests {
    use super::super::reader::{Item, ScriptReader};
    use super::*;
    use std::fmt::Write as _;

    /// The runs of a script, and their rows as COPY's text.
    fn runs(script: &str) -> Vec<(Inserts, String)> {
        let mut reader = ScriptReader::new(script.as_bytes(), "s".to_owned()).with_runs();
        let mut runs = Vec::new();
        while let Some(item) = reader.next_item().unwrap() {
            if let Item::Inserts(inserts) = item {
                let bytes =
                    &script.as_bytes()[inserts.pos.start as usize..inserts.pos.end as usize];
                let mut rows = String::new();
                InsertRows::new(bytes, &inserts)
                    .read_to_string(&mut rows)
                    .unwrap();
                runs.push((inserts, rows));
            }
        }
        runs
    }

    #[track_caller]
    fn rows(values: &str) -> String {
        let found = runs(&format!("INSERT INTO t VALUES {values};"));
        assert_eq!(found.len(), 1, "{values}");
        found[0].1.clone()
    }

    #[test]
    fn values_are_written_as_copy_reads_them() {
        for (values, text) in [
            ("(1, -2, +3,0)", "1\t-2\t3\t0\n"),
            ("(NULL, true,FALSE)", "\\N\tt\tf\n"),
            ("('')", "\n"),
            ("('it''s', '''', '\\N')", "it's\t'\t\\\\N\n"),
            ("('a\tb\nc\rd')", "a\\tb\\nc\\rd\n"),
            (
                "(1.50, .5, 1., 1e-5, -1E+10)",
                "1.50\t.5\t1.\t1e-5\t-1E+10\n",
            ),
            ("(-0, -0.0, -0e0)", "0\t0.0\t0e0\n"),
            ("(B'01', x'1F', b'')", "b01\tx1F\tb\n"),
            (
                "(E'a\\nb\\'c''d\\\\', e'\\x41\\102')",
                "a\\nb'c'd\\\\\tAB\n",
            ),
            ("(1, 'a'),\n\t( 2 , 'b' )", "1\ta\n2\tb\n"),
            ("(DEFAULT, 1)", "1\n"),
        ] {
            assert_eq!(rows(values), text, "{values}");
        }
    }

    #[test]
    fn what_is_more_than_constants_is_a_statement() {
        for sql in [
            "INSERT INTO t VALUES (1 + 1);",
            "INSERT INTO t VALUES (now());",
            "INSERT INTO t VALUES ('1'::int);",
            "INSERT INTO t VALUES (DATE '2020-01-01');",
            "INSERT INTO t VALUES (- 1);",
            "INSERT INTO t VALUES (--1\n1);",
            "INSERT INTO t VALUES (0x1F);",
            "INSERT INTO t VALUES (1_000);",
            "INSERT INTO t VALUES (1e1000);",
            "INSERT INTO t VALUES (nullx);",
            "INSERT INTO t VALUES (trueish);",
            "INSERT INTO t VALUES ('a' 'b');",
            "INSERT INTO t VALUES ('a'\n'b');",
            "INSERT INTO t VALUES (U&'a');",
            "INSERT INTO t VALUES (N'a');",
            "INSERT INTO t VALUES ($$a$$);",
            "INSERT INTO t VALUES (E'\\xe9');",
            "INSERT INTO t VALUES (E'\\u00e9');",
            "INSERT INTO t VALUES (E'\\0');",
            "INSERT INTO t VALUES (B'2');",
            "INSERT INTO t VALUES (1) ON CONFLICT DO NOTHING;",
            "INSERT INTO t VALUES (1) RETURNING a;",
            "INSERT INTO t VALUES (1), (1, 2);",
            "INSERT INTO t (a, b) VALUES (1);",
            "INSERT INTO t (a.b) VALUES (1);",
            "INSERT INTO t (a[1]) VALUES (1);",
            "INSERT INTO t AS u VALUES (1);",
            "INSERT INTO t OVERRIDING USER VALUE VALUES (1);",
            "INSERT INTO t DEFAULT VALUES;",
            "INSERT INTO t SELECT 1;",
            "INSERT INTO t (SELECT 1);",
            "INSERT INTO t VALUES ();",
            "INSERT INTO t VALUES (1)",
            "WITH x AS (SELECT 1) INSERT INTO t VALUES (1);",
        ] {
            let mut reader = ScriptReader::new(sql.as_bytes(), "s".to_owned()).with_runs();
            let item = reader.next_item().unwrap().unwrap();
            assert!(matches!(item, Item::Statement { .. }), "{sql}: {item:?}");
            assert_eq!(reader.next_item().unwrap(), None, "{sql}");
        }
    }

    #[test]
    fn statements_that_begin_alike_are_one_run() {
        let script = "SELECT 1;
INSERT INTO s.\"T\" (a, \"B\") OVERRIDING SYSTEM VALUE VALUES (1, 'x;');

-- it goes on
INSERT INTO s.\"T\" (a, \"B\") OVERRIDING SYSTEM VALUE VALUES
 (2, NULL),
 (3, 1.5);
INSERT INTO s.\"T\" VALUES (1);
INSERT INTO s.\"T\" VALUES (1, 2);
INSERT INTO s.\"T\" VALUES (now());
INSERT INTO s.\"T\" VALUES (4);
";
        let found = runs(script);
        assert_eq!(found.len(), 4);
        let (first, rows) = &found[0];
        assert_eq!(rows, "1\tx;\n2\t\\N\n3\t1.5\n");
        assert_eq!((first.line, first.rows), (2, 3));
        assert_eq!(
            first.constants,
            [
                Constants::INTEGER,
                Constants::STRING
                    .and(Constants::NULL)
                    .and(Constants::DECIMAL)
            ]
        );
        let target = insert_target(std::str::from_utf8(&first.head).unwrap()).unwrap();
        assert_eq!(target.table, "s.\"T\"");
        assert_eq!(target.columns.unwrap(), ["a", "B"]);
        assert!(target.overriding_system_value);
        let bytes = &script.as_bytes()[first.pos.start as usize..first.pos.end as usize];
        assert!(bytes.starts_with(b"INSERT") && bytes.ends_with(b"(3, 1.5);"));
        for (row, line) in [(0, 2), (1, 6), (2, 7)] {
            assert_eq!(first.line_of_row(bytes, row).unwrap(), line, "row {row}");
        }
        let lines: Vec<u64> = found.iter().map(|(run, _)| run.line).collect();
        assert_eq!(lines, [2, 8, 9, 11]);
    }

    #[test]
    fn backslashes_escape_in_plain_strings_where_the_script_says_so() {
        let found = runs(
            "SET standard_conforming_strings = off;\nINSERT INTO t VALUES ('a\\'b\\n', 'c''d');\n",
        );
        assert_eq!(found[0].1, "a'b\\n\tc'd\n");
        assert!(found[0].0.escapes);
    }

    #[test]
    fn a_run_is_the_same_wherever_blocks_end() {
        let mut script = String::from("-- before\n");
        for n in 0..100 {
            let _ = writeln!(
                script,
                "INSERT INTO t VALUES ({n}, 'it''s {n}\nline', -1.5e10, NULL), (1, E'\\n', 0, true);\n-- between"
            );
        }
        script.push_str("SELECT 1;");
        let rows = |n| format!("{n}\tit's {n}\\nline\t-1.5e10\t\\N\n1\t\\n\t0\tt\n");
        let expected = (0..100).map(rows).collect::<Vec<_>>().concat();
        for block_bytes in [1, 2, 3, 7, 64, BLOCK_BYTES] {
            let reader = ScriptReader::new(script.as_bytes(), "s".to_owned());
            let mut reader = reader.with_runs().with_blocks(block_bytes);
            let Some(Item::Inserts(inserts)) = reader.next_item().unwrap() else {
                panic!("a run");
            };
            assert_eq!((inserts.rows, inserts.line), (200, 2));
            let bytes = &script.as_bytes()[inserts.pos.start as usize..inserts.pos.end as usize];
            assert!(bytes.ends_with(b", true);"));
            let mut rows = String::new();
            InsertRows::new(bytes, &inserts)
                .with_blocks(block_bytes)
                .read_to_string(&mut rows)
                .unwrap();
            assert_eq!(rows, expected, "blocks of {block_bytes}");
            let next = reader.next_item().unwrap();
            assert!(
                matches!(next, Some(Item::Statement { line: 302, .. })),
                "{next:?}"
            );
        }
    }
}
