//! json: the server's parser, for json (which keeps the text) and for [`super::jsonb`].
//!
//! The lexer knows the token in hand by its place in the field, as the server's does, because
//! the DETAIL of an error shows it. Nesting is a stack of bits, not recursion.
//!
//! PostgreSQL: `src/common/jsonapi.c` (`json_lex`, `json_lex_string`, `json_lex_number`,
//! `parse_object`, `json_errdetail`), `src/backend/utils/adt/jsonfuncs.c`
//! (`json_errsave_error`), `json.c` (`json_in`).

use super::digits::HEX;
use super::wording::{first_char, shown};
use crate::error::ValueError;
use crate::record::Encoding;
use crate::source::Charset;
use crate::source::charset::has_no_equivalent;
use pgformat::version::MajorVersion;

/// How deep containers may nest. The server's limit is its stack: with `max_stack_depth` at its
/// default of 2 MB it gives up between 13,078 and 21,808 levels, as compiled.
pub(super) const MAX_DEPTH: usize = 13_000;

/// Takes the parser's events.
pub(super) trait Handler {
    /// Strings must be given without escapes, with surrogates checked and zero refused.
    const DECODES: bool;

    fn begin_object(&mut self);
    fn begin_array(&mut self);
    fn end(&mut self) -> Result<(), Box<ValueError>>;
    /// A key or a string; empty where nothing is decoded.
    fn string(&mut self, value: &[u8]) -> Result<(), Box<ValueError>>;
    fn number(&mut self, text: &[u8]) -> Result<(), Box<ValueError>>;
    fn bool(&mut self, value: bool) -> Result<(), Box<ValueError>>;
    fn null(&mut self) -> Result<(), Box<ValueError>>;
}

/// Only looks whether the text is json.
struct Validator;

impl Handler for Validator {
    const DECODES: bool = false;

    #[inline]
    fn begin_object(&mut self) {}
    #[inline]
    fn begin_array(&mut self) {}
    #[inline]
    fn end(&mut self) -> Result<(), Box<ValueError>> {
        Ok(())
    }
    #[inline]
    fn string(&mut self, _: &[u8]) -> Result<(), Box<ValueError>> {
        Ok(())
    }
    #[inline]
    fn number(&mut self, _: &[u8]) -> Result<(), Box<ValueError>> {
        Ok(())
    }
    #[inline]
    fn bool(&mut self, _: bool) -> Result<(), Box<ValueError>> {
        Ok(())
    }
    #[inline]
    fn null(&mut self) -> Result<(), Box<ValueError>> {
        Ok(())
    }
}

/// Storage that is kept from value to value.
#[derive(Debug, Default)]
pub(super) struct Buffers {
    /// The open containers: true is an object.
    open: Vec<bool>,
    /// The string in hand, without escapes.
    decoded: Vec<u8>,
}

/// Whether the field is json; it is stored as it stands.
#[inline]
pub(super) fn json_in(
    field: &[u8],
    version: MajorVersion,
    encoding: Encoding,
    buffers: &mut Buffers,
) -> Result<(), Box<ValueError>> {
    parse(field, version, encoding, buffers, &mut Validator)
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Token {
    String,
    Number,
    ObjectStart,
    ObjectEnd,
    ArrayStart,
    ArrayEnd,
    Comma,
    Colon,
    True,
    False,
    Null,
    End,
}

/// What the parser was about to read when a token did not fit.
#[derive(Clone, Copy)]
enum Expected {
    End,
    Value,
    String,
    ArrayNext,
    ObjectStart,
    ObjectLabel,
    ObjectNext,
}

struct Lexer<'f> {
    input: &'f [u8],
    /// Where the token in hand begins.
    start: usize,
    /// Where it ends.
    end: usize,
    token: Token,
    version: MajorVersion,
    encoding: Encoding,
}

/// Parses a document and hands it to the handler.
pub(super) fn parse<H: Handler>(
    field: &[u8],
    version: MajorVersion,
    encoding: Encoding,
    buffers: &mut Buffers,
    handler: &mut H,
) -> Result<(), Box<ValueError>> {
    let Buffers { open, decoded } = buffers;
    open.clear();
    let mut lexer = Lexer {
        input: field,
        start: 0,
        end: 0,
        token: Token::End,
        version,
        encoding,
    };
    lexer.lex::<H>(decoded)?;
    loop {
        // A value begins at the token in hand.
        let done = match lexer.token {
            Token::ObjectStart => {
                check_depth(open.len())?;
                handler.begin_object();
                lexer.lex::<H>(decoded)?;
                match lexer.token {
                    Token::String => {
                        open.push(true);
                        label(&mut lexer, decoded, handler)?;
                        continue;
                    }
                    Token::ObjectEnd => {
                        lexer.lex::<H>(decoded)?;
                        handler.end()
                    }
                    _ => return Err(lexer.unexpected(Expected::ObjectStart)),
                }
            }
            Token::ArrayStart => {
                check_depth(open.len())?;
                handler.begin_array();
                lexer.lex::<H>(decoded)?;
                if lexer.token != Token::ArrayEnd {
                    open.push(false);
                    continue;
                }
                lexer.lex::<H>(decoded)?;
                handler.end()
            }
            _ => {
                // The server lexes the next token before it looks at the value, so that an
                // error there comes first.
                let taken = match lexer.token {
                    Token::String => handler.string(lexer.string::<H>(decoded)),
                    Token::Number => handler.number(lexer.text()),
                    Token::True => handler.bool(true),
                    Token::False => handler.bool(false),
                    Token::Null => handler.null(),
                    _ => return Err(lexer.unexpected(Expected::Value)),
                };
                lexer.lex::<H>(decoded)?;
                taken
            }
        };
        done?;
        // A value has ended; close containers until another value begins.
        loop {
            match open.last() {
                None => {
                    return match lexer.token {
                        Token::End => Ok(()),
                        _ => Err(lexer.unexpected(Expected::End)),
                    };
                }
                Some(true) => match lexer.token {
                    Token::Comma => {
                        lexer.lex::<H>(decoded)?;
                        label(&mut lexer, decoded, handler)?;
                        break;
                    }
                    Token::ObjectEnd => {}
                    _ => return Err(lexer.unexpected(Expected::ObjectNext)),
                },
                Some(false) => match lexer.token {
                    Token::Comma => {
                        lexer.lex::<H>(decoded)?;
                        break;
                    }
                    Token::ArrayEnd => {}
                    _ => return Err(lexer.unexpected(Expected::ArrayNext)),
                },
            }
            open.pop();
            lexer.lex::<H>(decoded)?;
            handler.end()?;
        }
    }
}

/// A key and its colon; the token after it is then in hand.
#[inline]
fn label<H: Handler>(
    lexer: &mut Lexer<'_>,
    decoded: &mut Vec<u8>,
    handler: &mut H,
) -> Result<(), Box<ValueError>> {
    if lexer.token != Token::String {
        return Err(lexer.unexpected(Expected::String));
    }
    let taken = handler.string(lexer.string::<H>(decoded));
    lexer.lex::<H>(decoded)?;
    if lexer.token != Token::Colon {
        return Err(lexer.unexpected(Expected::ObjectLabel));
    }
    lexer.lex::<H>(decoded)?;
    taken
}

#[inline]
fn check_depth(depth: usize) -> Result<(), Box<ValueError>> {
    if depth < MAX_DEPTH {
        return Ok(());
    }
    Err(
        ValueError::new("54001", "stack depth limit exceeded").with_hint(
            "Increase the configuration parameter \"max_stack_depth\" (currently 2048kB), after \
         ensuring the platform's stack depth limit is adequate.",
        ),
    )
}

/// What may be part of a word, so that an error shows the whole of it.
#[inline]
fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 0x80
}

impl<'f> Lexer<'f> {
    #[inline]
    fn at(&self, pos: usize) -> Option<u8> {
        self.input.get(pos).copied()
    }

    fn text(&self) -> &'f [u8] {
        &self.input[self.start..self.end]
    }

    /// The string in hand: between its quotes, or from the buffer when it has escapes.
    #[inline]
    fn string<'d, H: Handler>(&self, decoded: &'d [u8]) -> &'d [u8]
    where
        'f: 'd,
    {
        if !H::DECODES {
            &[]
        } else if decoded.is_empty() {
            &self.input[self.start + 1..self.end - 1]
        } else {
            decoded
        }
    }

    /// Goes to the next token.
    #[inline]
    fn lex<H: Handler>(&mut self, decoded: &mut Vec<u8>) -> Result<(), Box<ValueError>> {
        let mut pos = self.end;
        while let Some(b' ' | b'\t' | b'\n' | b'\r') = self.at(pos) {
            pos += 1;
        }
        self.start = pos;
        let Some(byte) = self.at(pos) else {
            self.end = pos;
            self.token = Token::End;
            return Ok(());
        };
        self.end = pos + 1;
        self.token = match byte {
            b'{' => Token::ObjectStart,
            b'}' => Token::ObjectEnd,
            b'[' => Token::ArrayStart,
            b']' => Token::ArrayEnd,
            b',' => Token::Comma,
            b':' => Token::Colon,
            b'"' => {
                self.lex_string::<H>(decoded)?;
                Token::String
            }
            b'-' => {
                self.lex_number(pos + 1)?;
                Token::Number
            }
            b'0'..=b'9' => {
                self.lex_number(pos)?;
                Token::Number
            }
            _ => {
                while self.at(pos).is_some_and(is_word) {
                    pos += 1;
                }
                self.end = pos.max(self.start + 1);
                match self.text() {
                    b"true" => Token::True,
                    b"false" => Token::False,
                    b"null" => Token::Null,
                    _ => return Err(self.invalid_token()),
                }
            }
        };
        Ok(())
    }

    /// `pos` is after the sign, if any.
    #[inline]
    fn lex_number(&mut self, mut pos: usize) -> Result<(), Box<ValueError>> {
        let digits = |from: usize| {
            let rest = &self.input[from.min(self.input.len())..];
            from + rest.iter().take_while(|b| b.is_ascii_digit()).count()
        };
        let mut bad = false;
        match self.at(pos) {
            Some(b'0') => pos += 1,
            Some(b'1'..=b'9') => pos = digits(pos),
            _ => bad = true,
        }
        if self.at(pos) == Some(b'.') {
            let end = digits(pos + 1);
            bad |= end == pos + 1;
            pos = end;
        }
        if let Some(b'e' | b'E') = self.at(pos) {
            pos += 1;
            if let Some(b'+' | b'-') = self.at(pos) {
                pos += 1;
            }
            let end = digits(pos);
            bad |= end == pos;
            pos = end;
        }
        while self.at(pos).is_some_and(is_word) {
            bad = true;
            pos += 1;
        }
        self.end = pos;
        if bad {
            return Err(self.invalid_token());
        }
        Ok(())
    }

    /// The token in hand begins with a quote. What it says is put into `decoded` if it has
    /// escapes; without any, `decoded` is left empty.
    #[inline]
    fn lex_string<H: Handler>(&mut self, decoded: &mut Vec<u8>) -> Result<(), Box<ValueError>> {
        decoded.clear();
        let pos = skip_plain(self.input, self.start + 1);
        if self.at(pos) == Some(b'"') {
            self.end = pos + 1;
            return Ok(());
        }
        self.lex_string_slow::<H>(pos, decoded)
    }

    /// Goes on at the first byte that is not plain.
    fn lex_string_slow<H: Handler>(
        &mut self,
        mut pos: usize,
        decoded: &mut Vec<u8>,
    ) -> Result<(), Box<ValueError>> {
        if H::DECODES {
            decoded.extend_from_slice(&self.input[self.start + 1..pos]);
        }
        let mut high_surrogate = None;
        loop {
            let Some(byte) = self.at(pos) else {
                self.end = pos;
                return Err(self.invalid_token());
            };
            match byte {
                b'"' => break,
                b'\\' => pos = self.lex_escape::<H>(pos + 1, &mut high_surrogate, decoded)?,
                // Until 15 control characters are looked at before a pending surrogate.
                0..=31 if high_surrogate.is_none() || !self.version.at_least(16) => {
                    return Err(syntax(format!(
                        "Character with value 0x{byte:02x} must be escaped."
                    )));
                }
                _ => {
                    if high_surrogate.is_some() {
                        return Err(low_surrogate());
                    }
                    let end = skip_plain(self.input, pos);
                    if H::DECODES {
                        decoded.extend_from_slice(&self.input[pos..end]);
                    }
                    pos = end;
                }
            }
        }
        if high_surrogate.is_some() {
            return Err(low_surrogate());
        }
        self.end = pos + 1;
        Ok(())
    }

    /// `pos` is after the backslash; returns where the escape ends.
    fn lex_escape<H: Handler>(
        &mut self,
        pos: usize,
        high_surrogate: &mut Option<u32>,
        decoded: &mut Vec<u8>,
    ) -> Result<usize, Box<ValueError>> {
        let Some(byte) = self.at(pos) else {
            self.end = pos;
            return Err(self.invalid_token());
        };
        if byte == b'u' {
            let code = self.lex_hex(pos + 1)?;
            if H::DECODES {
                decode_unit(code, high_surrogate, self.version, self.encoding, decoded)?;
            }
            return Ok(pos + 5);
        }
        if H::DECODES && high_surrogate.is_some() {
            return Err(low_surrogate());
        }
        decoded.push(match byte {
            b'"' | b'\\' | b'/' => byte,
            b'b' => 8,
            b'f' => 12,
            b'n' => b'\n',
            b'r' => b'\r',
            b't' => b'\t',
            _ => {
                let character = first_char(&self.input[pos..], self.encoding);
                return Err(syntax(format!(
                    "Escape sequence \"\\{}\" is invalid.",
                    shown(character)
                )));
            }
        });
        Ok(pos + 1)
    }

    /// Four hexadecimal digits from `pos`.
    fn lex_hex(&mut self, pos: usize) -> Result<u32, Box<ValueError>> {
        let mut code = 0;
        for at in pos..pos + 4 {
            let Some(byte) = self.at(at) else {
                self.end = at;
                return Err(self.invalid_token());
            };
            let digit = HEX[usize::from(byte)];
            if digit > 15 {
                return Err(syntax(
                    "\"\\u\" must be followed by four hexadecimal digits.",
                ));
            }
            code = code << 4 | u32::from(digit);
        }
        Ok(code)
    }

    #[cold]
    fn invalid_token(&self) -> Box<ValueError> {
        syntax(format!("Token \"{}\" is invalid.", shown(self.text())))
    }

    #[cold]
    fn unexpected(&self, expected: Expected) -> Box<ValueError> {
        if self.token == Token::End {
            return syntax("The input string ended unexpectedly.");
        }
        let expected = match expected {
            Expected::End => "end of input",
            Expected::Value => "JSON value",
            Expected::String => "string",
            Expected::ArrayNext => "\",\" or \"]\"",
            Expected::ObjectStart => "string or \"}\"",
            Expected::ObjectLabel => "\":\"",
            Expected::ObjectNext => "\",\" or \"}\"",
        };
        syntax(format!(
            "Expected {expected}, but found \"{}\".",
            shown(self.text())
        ))
    }
}

/// One UTF-16 unit of a `\u` escape.
fn decode_unit(
    code: u32,
    high_surrogate: &mut Option<u32>,
    version: MajorVersion,
    encoding: Encoding,
    decoded: &mut Vec<u8>,
) -> Result<(), Box<ValueError>> {
    let code = match (code, high_surrogate.take()) {
        (0xd800..=0xdbff, None) => {
            *high_surrogate = Some(code);
            return Ok(());
        }
        (0xd800..=0xdbff, Some(_)) => {
            return Err(syntax(
                "Unicode high surrogate must not follow a high surrogate.",
            ));
        }
        (0xdc00..=0xdfff, Some(high)) => 0x10000 + ((high & 0x3ff) << 10) + (code & 0x3ff),
        (0xdc00..=0xdfff, None) | (_, Some(_)) => return Err(low_surrogate()),
        (code, None) => code,
    };
    match char::from_u32(code) {
        Some(c) if code != 0 => {
            match encoding {
                Encoding::SingleByte(name) if !c.is_ascii() => {
                    decoded.push(to_single_byte(c, name, version)?);
                }
                _ => decoded.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
            }
            Ok(())
        }
        _ => Err(unsupported_escape("\\u0000 cannot be converted to text.")),
    }
}

#[cold]
fn unsupported_escape(detail: impl Into<String>) -> Box<ValueError> {
    ValueError::new("22P05", "unsupported Unicode escape sequence").with_detail(detail)
}

/// A character in the database's encoding, if that has it.
///
/// PostgreSQL: `src/backend/utils/mb/mbutils.c`, `pg_unicode_to_server`.
#[cold]
fn to_single_byte(c: char, encoding: &str, version: MajorVersion) -> Result<u8, Box<ValueError>> {
    let utf8 = c.to_string();
    let charset = Charset::by_name(encoding);
    let found = charset.and_then(|charset| {
        (0x80..=0xff).find(|&byte| {
            let mut converted = Vec::new();
            charset.convert(&[byte], &mut converted).is_ok() && converted == utf8.as_bytes()
        })
    });
    if let Some(byte) = found {
        return Ok(byte);
    }
    Err(if version.at_least(16) {
        unsupported_escape(format!(
            "Unicode escape value could not be translated to the server's encoding {encoding}."
        ))
    } else if charset.is_some() {
        has_no_equivalent(utf8.as_bytes(), "UTF8", encoding)
    } else {
        ValueError::new(
            "0A000",
            format!("conversion between UTF8 and {encoding} is not supported"),
        )
    })
}

#[cold]
fn low_surrogate() -> Box<ValueError> {
    syntax("Unicode low surrogate must follow a high surrogate.")
}

#[cold]
fn syntax(detail: impl Into<String>) -> Box<ValueError> {
    ValueError::new("22P02", "invalid input syntax for type json").with_detail(detail)
}

/// From `pos`, the first byte that is a quote, a backslash or a control character, or the end.
#[inline]
fn skip_plain(input: &[u8], mut pos: usize) -> usize {
    const ONES: u64 = 0x0101_0101_0101_0101;
    const HIGHS: u64 = 0x8080_8080_8080_8080;
    while let Some(chunk) = input.get(pos..).and_then(|rest| rest.first_chunk::<8>()) {
        let word = u64::from_le_bytes(*chunk);
        // Has-less-than of bytes below 0x80, and has-zero of the difference to each letter.
        let control = word.wrapping_sub(ONES * 32) & !word;
        let quote = word ^ (ONES * u64::from(b'"'));
        let quote = quote.wrapping_sub(ONES) & !quote;
        let backslash = word ^ (ONES * u64::from(b'\\'));
        let backslash = backslash.wrapping_sub(ONES) & !backslash;
        let found = (control | quote | backslash) & HIGHS;
        if found != 0 {
            return pos + found.trailing_zeros() as usize / 8;
        }
        pos += 8;
    }
    while input
        .get(pos)
        .is_some_and(|&b| b >= 32 && b != b'"' && b != b'\\')
    {
        pos += 1;
    }
    pos
}
