//! The tokens of SQL scripts, as psql finds them.
//!
//! PostgreSQL: `src/fe_utils/psqlscan.l`. A statement ends at a semicolon outside quotes,
//! comments, parentheses and the body of an SQL function (`BEGIN ATOMIC ... END`).

use std::ops::Range;

/// What psql remembers between the tokens of one statement.
#[derive(Debug, Default)]
pub struct StatementState {
    /// Where the statement's first token begins.
    pub start: Option<usize>,
    parens: u32,
    /// Depth of BEGIN and CASE in the body of an SQL function.
    begins: u32,
    /// The first letters of the first four words, as far as they may lead to such a body.
    letters: Vec<u8>,
    words: u32,
}

impl StatementState {
    /// A semicolon here ends the statement.
    pub fn ends_here(&self) -> bool {
        self.parens == 0 && self.begins == 0
    }

    /// Passes what is no word.
    pub fn other(&mut self, first_byte: u8) {
        match first_byte {
            b'(' => self.parens += 1,
            b')' => self.parens = self.parens.saturating_sub(1),
            _ => {}
        }
    }

    /// Passes a word.
    pub fn word(&mut self, word: &[u8]) {
        let lower = word.to_ascii_lowercase();
        if self.words as usize == self.letters.len()
            && self.letters.len() < 4
            && matches!(
                lower.as_slice(),
                b"create" | b"function" | b"procedure" | b"or" | b"replace"
            )
        {
            self.letters.push(lower[0]);
        }
        self.words += 1;
        let is_function = matches!(
            self.letters.as_slice(),
            [b'c', b'f' | b'p', ..] | [b'c', b'o', b'r', b'f' | b'p']
        );
        if !is_function || self.parens > 0 {
            return;
        }
        match lower.as_slice() {
            b"begin" => self.begins += 1,
            b"case" if self.begins > 0 => self.begins += 1,
            b"end" if self.begins > 0 => self.begins -= 1,
            _ => {}
        }
    }
}

/// Whether a statement is `COPY ... FROM STDIN`, whose data follow it.
pub fn copies_from_stdin(text: &[u8]) -> bool {
    let mut scan = Scanner::new(text);
    let mut words = Vec::new();
    let mut parens = 0_u32;
    while let Some(token) = scan.next() {
        match token {
            Token::Word(range) if parens == 0 => {
                words.push(text[range].to_ascii_uppercase());
                if words[0] != b"COPY" {
                    return false;
                }
                if words.ends_with(&[b"FROM".to_vec(), b"STDIN".to_vec()]) {
                    return true;
                }
            }
            Token::Other(range) => match text[range.start] {
                b'(' => parens += 1,
                b')' => parens = parens.saturating_sub(1),
                _ => {}
            },
            _ => {}
        }
    }
    false
}

/// A piece of a script; white space and comments are none.
#[derive(Debug, PartialEq, Eq)]
pub enum Token {
    /// An unquoted identifier or keyword.
    Word(Range<usize>),
    /// A quoted thing, a number, an operator's character, a parenthesis.
    Other(Range<usize>),
    /// A semicolon.
    Semicolon(usize),
    /// The backslash of a command of psql.
    Backslash(usize),
    /// What lacks its end, and where it begins.
    Unterminated(&'static str, usize),
}

/// Finds the tokens of a script.
pub struct Scanner<'a> {
    bytes: &'a [u8],
    /// Where the next token is looked for.
    pub pos: usize,
    /// `standard_conforming_strings` is off: backslashes escape in plain strings, too.
    pub escapes: bool,
}

fn begins_word(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || byte == b'_' || byte >= 0x80
}

fn continues_word(byte: u8) -> bool {
    begins_word(byte) || byte.is_ascii_digit() || byte == b'$'
}

impl<'a> Scanner<'a> {
    /// At the beginning.
    pub fn new(bytes: &'a [u8]) -> Scanner<'a> {
        Scanner {
            bytes,
            pos: 0,
            escapes: false,
        }
    }

    fn peek(&self, ahead: usize) -> Option<u8> {
        self.bytes.get(self.pos + ahead).copied()
    }

    /// The next token; after [`Token::Unterminated`] nothing follows.
    #[expect(
        clippy::should_implement_trait,
        reason = "tokens are taken one by one, the place between is used"
    )]
    pub fn next(&mut self) -> Option<Token> {
        loop {
            let start = self.pos;
            let byte = self.peek(0)?;
            match (byte, self.peek(1)) {
                (b' ' | b'\t' | b'\n' | b'\r' | 0x0b | 0x0c, _) => self.pos += 1,
                (b'-', Some(b'-')) => {
                    self.pos = memchr::memchr2(b'\n', b'\r', &self.bytes[start..])
                        .map_or(self.bytes.len(), |n| start + n);
                }
                (b'/', Some(b'*')) => {
                    if !self.skip_comment() {
                        return Some(Token::Unterminated("/* comment", start));
                    }
                }
                (b'\'', _) => {
                    return Some(self.quoted(start, b'\'', self.escapes, "quoted string"));
                }
                (b'"', _) => return Some(self.quoted(start, b'"', false, "quoted identifier")),
                (b'e' | b'E', Some(b'\'')) => {
                    self.pos += 1;
                    return Some(self.quoted(start, b'\'', true, "quoted string"));
                }
                (b'$', _) => return Some(self.dollar(start)),
                (b';', _) => {
                    self.pos += 1;
                    return Some(Token::Semicolon(start));
                }
                (b'\\', _) => {
                    self.pos += 1;
                    return Some(Token::Backslash(start));
                }
                (b, _) if begins_word(b) => {
                    while self.peek(0).is_some_and(continues_word) {
                        self.pos += 1;
                    }
                    return Some(Token::Word(start..self.pos));
                }
                (b, _) if b.is_ascii_digit() => {
                    // Letters and dollars after digits begin no word and no quote.
                    while self.peek(0).is_some_and(continues_word) {
                        self.pos += 1;
                    }
                    return Some(Token::Other(start..self.pos));
                }
                _ => {
                    self.pos += 1;
                    return Some(Token::Other(start..self.pos));
                }
            }
        }
    }

    /// Comments nest.
    fn skip_comment(&mut self) -> bool {
        let mut depth = 0_u32;
        loop {
            match (self.peek(0), self.peek(1)) {
                (Some(b'/'), Some(b'*')) => {
                    depth += 1;
                    self.pos += 2;
                }
                (Some(b'*'), Some(b'/')) => {
                    depth -= 1;
                    self.pos += 2;
                    if depth == 0 {
                        return true;
                    }
                }
                (Some(_), _) => self.pos += 1,
                (None, _) => return false,
            }
        }
    }

    /// From the quote to its end; a doubled quote does not end it, which is as if it ended and
    /// began again.
    fn quoted(&mut self, start: usize, quote: u8, escapes: bool, what: &'static str) -> Token {
        self.pos += 1;
        while let Some(byte) = self.peek(0) {
            self.pos += 1;
            if byte == b'\\' && escapes {
                self.pos += 1;
            } else if byte == quote {
                if self.peek(0) == Some(quote) {
                    self.pos += 1;
                } else {
                    return Token::Other(start..self.pos);
                }
            }
        }
        self.pos = self.bytes.len();
        Token::Unterminated(what, start)
    }

    /// `$tag$ ... $tag$`, or `$1`, or a lone dollar.
    fn dollar(&mut self, start: usize) -> Token {
        let mut end = start + 1;
        if self.bytes.get(end).copied().is_some_and(begins_word) {
            while self
                .bytes
                .get(end)
                .is_some_and(|b| continues_word(*b) && *b != b'$')
            {
                end += 1;
            }
        }
        if self.bytes.get(end) != Some(&b'$') {
            self.pos = start + 1;
            return Token::Other(start..self.pos);
        }
        let tag = &self.bytes[start..=end];
        if let Some(n) = memchr::memmem::find(&self.bytes[end + 1..], tag) {
            self.pos = end + 1 + n + tag.len();
            Token::Other(start..self.pos)
        } else {
            self.pos = self.bytes.len();
            Token::Unterminated("dollar-quoted string", start)
        }
    }
}
