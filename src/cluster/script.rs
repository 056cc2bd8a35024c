//! Splits an SQL script into statements as psql does, and runs them in the load's transaction.
//!
//! PostgreSQL: `src/fe_utils/psqlscan.l`. A statement ends at a semicolon outside quotes,
//! comments, parentheses and the body of an SQL function (`BEGIN ATOMIC ... END`). The data of
//! `COPY ... FROM STDIN` follows its statement up to a line `\.`. What would end the
//! transaction, or cannot run in one, is refused with its line, and so are psql's own
//! commands; `\restrict` and `\unrestrict`, which pg_dump writes around every script, guard
//! psql alone and are passed over.

use std::io::Write;
use std::ops::Range;

use postgres::Client;
use postgres::error::ErrorPosition;

use crate::error::{Error, Place, Result};
use crate::source::dump::script::lexer::{Scanner, StatementState, Token, copies_from_stdin};

/// A statement of a script.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Statement<'a> {
    /// Without the semicolon and without what stands before its first word.
    pub text: &'a str,
    /// The line of its first word, from 1.
    pub line: u64,
    /// The lines of data that follow `COPY ... FROM STDIN`.
    pub copy_data: Option<&'a str>,
}

/// Runs a script. `file` is its name for messages.
///
/// # Errors
/// The server's, and refusals, each with file and line.
pub fn run(client: &mut Client, sql: &str, file: &str) -> Result<()> {
    // Everything is looked at before anything runs.
    let statements = split(sql, file)?;
    for statement in &statements {
        refuse(statement, file)?;
    }
    for statement in &statements {
        run_statement(client, statement)
            .map_err(|(error, lines)| at_line(error, lines, statement, file))?;
    }
    Ok(())
}

fn run_statement(
    client: &mut Client,
    statement: &Statement<'_>,
) -> std::result::Result<(), (Error, u64)> {
    let server_error = |e: postgres::Error| {
        let lines = lines_before(&e, statement.text);
        (Error::from(e), lines)
    };
    match statement.copy_data {
        None => client.batch_execute(statement.text).map_err(server_error),
        Some(data) => {
            let mut writer = client.copy_in(statement.text).map_err(server_error)?;
            writer.write_all(data.as_bytes()).map_err(|e| {
                (
                    Error::environment("08006", format!("could not send data: {e}")),
                    0,
                )
            })?;
            writer.finish().map(drop).map_err(server_error)
        }
    }
}

/// Lines of SQL before the place that the server's error points at; 0 where it points at none.
pub fn lines_before(error: &postgres::Error, sql: &str) -> u64 {
    let position = match error.as_db_error().and_then(|d| d.position()) {
        Some(ErrorPosition::Original(position)) => *position as usize,
        _ => 0,
    };
    let before = sql.chars().take(position.saturating_sub(1));
    before.filter(|c| *c == '\n').count() as u64
}

/// Adds the line: so many behind the statement's first.
fn at_line(error: Error, lines: u64, statement: &Statement<'_>, file: &str) -> Error {
    error.at(Place {
        file: file.to_owned(),
        line: statement.line + lines,
        ..Place::default()
    })
}

/// Refuses a statement that does not belong into the load's transaction.
fn refuse(statement: &Statement<'_>, file: &str) -> Result<()> {
    let words = first_words(statement.text, 24);
    let word = |i: usize| words.get(i).map_or("", String::as_str);
    let has = |w: &str| words.iter().any(|x| x == w);
    let command = match (word(0), word(1)) {
        ("BEGIN" | "COMMIT" | "END" | "ABORT" | "VACUUM", _) => word(0).to_owned(),
        ("START" | "PREPARE", "TRANSACTION") => format!("{} {}", word(0), word(1)),
        // ROLLBACK [WORK | TRANSACTION] TO [SAVEPOINT] name stays within the transaction.
        ("ROLLBACK", "TO") => return Ok(()),
        ("ROLLBACK", "WORK" | "TRANSACTION") if word(2) == "TO" => return Ok(()),
        ("ROLLBACK", _) => "ROLLBACK".to_owned(),
        ("CREATE" | "DROP", "DATABASE" | "TABLESPACE" | "SUBSCRIPTION") | ("ALTER", "SYSTEM") => {
            format!("{} {}", word(0), word(1))
        }
        ("CREATE" | "DROP" | "REINDEX", _) if has("CONCURRENTLY") => {
            format!("{} ... CONCURRENTLY", word(0))
        }
        ("ALTER", "TABLE") if has("DETACH") && has("CONCURRENTLY") => {
            "ALTER TABLE ... DETACH PARTITION CONCURRENTLY".to_owned()
        }
        ("SET", _) if sets_client_encoding(&words, statement.text) => {
            "SET client_encoding to anything but UTF8".to_owned()
        }
        _ => return Ok(()),
    };
    Err(Error::refused(
        "0A000",
        format!("{command} is not allowed in a schema script"),
    )
    .at(Place {
        file: file.to_owned(),
        line: statement.line,
        ..Place::default()
    })
    .with_hint("The script runs in the load's own transaction; leave the command out."))
}

/// `SET client_encoding = 'LATIN1'`: scripts are read as UTF-8.
fn sets_client_encoding(words: &[String], text: &str) -> bool {
    let names = |w: &String| w == "CLIENT_ENCODING" || w == "NAMES";
    if !words.iter().skip(1).take(2).any(names) {
        return false;
    }
    let value: String = text
        .rsplit(|c: char| c == '=' || c.is_whitespace())
        .next()
        .unwrap_or_default()
        .chars()
        .filter(char::is_ascii_alphanumeric)
        .collect();
    !matches!(
        value.to_ascii_uppercase().as_str(),
        "UTF8" | "UNICODE" | "DEFAULT"
    )
}

/// The first words of a statement in upper case, comments and quoted text left out.
fn first_words(text: &str, limit: usize) -> Vec<String> {
    let mut words = Vec::new();
    let mut scan = Scanner::new(text.as_bytes());
    while words.len() < limit {
        match scan.next() {
            Some(Token::Word(range)) => words.push(text[range].to_ascii_uppercase()),
            Some(_) => {}
            None => break,
        }
    }
    words
}

/// Splits a script.
///
/// # Errors
/// `42601` for a quote, comment or `COPY` data without an end; `0A000` for a psql command.
pub fn split<'a>(sql: &'a str, file: &str) -> Result<Vec<Statement<'a>>> {
    let fail = |sqlstate: &str, message: String, pos: usize| {
        Error::refused(sqlstate, message).at(Place {
            file: file.to_owned(),
            line: line_at(sql, pos),
            ..Place::default()
        })
    };
    let sql_text = sql.strip_prefix('\u{feff}').unwrap_or(sql);
    let skipped = sql.len() - sql_text.len();
    let mut statements = Vec::new();
    let mut lines = LineCounter::new(sql);
    let mut scan = Scanner::new(sql.as_bytes());
    scan.pos = skipped;
    let mut state = StatementState::default();
    loop {
        let token = scan.next();
        match token {
            Some(Token::Word(range)) => {
                state.start.get_or_insert(range.start);
                state.word(sql[range].as_bytes());
            }
            Some(Token::Other(range)) => {
                state.start.get_or_insert(range.start);
                state.other(sql.as_bytes()[range.start]);
            }
            Some(Token::Unterminated(what, pos)) => {
                return Err(fail("42601", format!("unterminated {what}"), pos));
            }
            Some(Token::Backslash(pos)) => {
                let end = sql[pos..].find('\n').map_or(sql.len(), |n| pos + n);
                let command = sql[pos..end].split_whitespace().next().unwrap_or("\\");
                if !matches!(command, "\\restrict" | "\\unrestrict") {
                    return Err(fail(
                        "0A000",
                        format!("psql command {command} is not allowed in a schema script"),
                        pos,
                    ));
                }
                scan.pos = end;
            }
            Some(Token::Semicolon(pos)) if state.ends_here() => {
                let Some(start) = state.start else { continue };
                let text = &sql[start..pos];
                let copy_data = if copies_from_stdin(text.as_bytes()) {
                    let range = copy_data(sql, pos + 1).ok_or_else(|| {
                        fail("42601", "data of COPY has no line \\.".to_owned(), start)
                    })?;
                    scan.pos = after_line(sql, range.end);
                    Some(&sql[range])
                } else {
                    None
                };
                statements.push(Statement {
                    text,
                    line: lines.at(start),
                    copy_data,
                });
                state = StatementState::default();
            }
            Some(Token::Semicolon(_)) => {}
            None => break,
        }
    }
    if let Some(start) = state.start {
        statements.push(Statement {
            text: sql[start..].trim_end(),
            line: lines.at(start),
            copy_data: None,
        });
    }
    Ok(statements)
}

/// The lines from the one after `pos` to before the line `\.`.
fn copy_data(sql: &str, pos: usize) -> Option<Range<usize>> {
    let start = after_line(sql, pos);
    let mut at = start;
    while at < sql.len() {
        let next = after_line(sql, at);
        if sql[at..next].trim_end_matches(['\n', '\r']) == "\\." {
            return Some(start..at);
        }
        at = next;
    }
    None
}

/// Where the line after the one that `pos` is in begins.
fn after_line(sql: &str, pos: usize) -> usize {
    sql[pos..].find('\n').map_or(sql.len(), |n| pos + n + 1)
}

fn line_at(sql: &str, pos: usize) -> u64 {
    LineCounter::new(sql).at(pos)
}

/// Counts lines once over the whole script.
struct LineCounter<'a> {
    bytes: &'a [u8],
    pos: usize,
    line: u64,
}

impl<'a> LineCounter<'a> {
    fn new(sql: &'a str) -> LineCounter<'a> {
        LineCounter {
            bytes: sql.as_bytes(),
            pos: 0,
            line: 1,
        }
    }

    /// The line that `pos` is in; positions only grow.
    fn at(&mut self, pos: usize) -> u64 {
        self.line += memchr::memchr_iter(b'\n', &self.bytes[self.pos..pos]).count() as u64;
        self.pos = pos;
        self.line
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(sql: &str) -> Vec<(u64, &str)> {
        split(sql, "f.sql")
            .unwrap()
            .into_iter()
            .map(|s| (s.line, s.text))
            .collect()
    }

    fn refusal(sql: &str) -> String {
        let error = match split(sql, "f.sql") {
            Err(e) => e,
            Ok(statements) => statements
                .iter()
                .find_map(|s| refuse(s, "f.sql").err())
                .expect("something is refused"),
        };
        format!("{} at {}", error.message, error.places[0])
    }

    #[test]
    fn statements_end_at_semicolons_outside_quotes_comments_and_parentheses() {
        assert_eq!(
            texts(
                "-- c ;\nCREATE TABLE a (b text DEFAULT ';');\n/* ; /* ; */ ; */ SELECT \"a;b\", $x$;$y$;$x$, $1, E'\\';';\n\nCREATE RULE r AS ON INSERT TO a DO (SELECT 1; SELECT 2);;\nselect 'last'"
            ),
            [
                (2, "CREATE TABLE a (b text DEFAULT ';')"),
                (3, "SELECT \"a;b\", $x$;$y$;$x$, $1, E'\\';'"),
                (5, "CREATE RULE r AS ON INSERT TO a DO (SELECT 1; SELECT 2)"),
                (6, "select 'last'"),
            ]
        );
    }

    #[test]
    fn a_dollar_inside_a_word_opens_no_quote() {
        assert_eq!(
            texts("SELECT a$b$c; SELECT 1"),
            [(1, "SELECT a$b$c"), (1, "SELECT 1")]
        );
    }

    #[test]
    fn the_body_of_an_sql_function_keeps_its_semicolons() {
        let body = "CREATE OR REPLACE FUNCTION f() RETURNS int BEGIN ATOMIC SELECT CASE WHEN true THEN 1 END; SELECT 2; END";
        assert_eq!(
            texts(&format!("{body};\nSELECT 1;")),
            [(1, body), (2, "SELECT 1")]
        );
    }

    #[test]
    fn the_data_of_a_copy_follows_its_statement() {
        let sql = "COPY public.t (a, b) FROM stdin;\n1\tx;'\n\\.\nSELECT 1;\n";
        let statements = split(sql, "f").unwrap();
        assert_eq!(
            statements,
            [
                Statement {
                    text: "COPY public.t (a, b) FROM stdin",
                    line: 1,
                    copy_data: Some("1\tx;'\n")
                },
                Statement {
                    text: "SELECT 1",
                    line: 4,
                    copy_data: None
                }
            ]
        );
        assert_eq!(
            refusal("COPY t FROM STDIN;\n1\n"),
            "data of COPY has no line \\. at f.sql, line 1"
        );
        assert!(!copies_from_stdin(b"COPY (SELECT 1 FROM stdin) TO STDOUT"));
    }

    #[test]
    fn what_does_not_belong_into_the_transaction_is_refused_with_its_line() {
        for (sql, what) in [
            ("\n BEGIN;", "BEGIN"),
            ("\nStart Transaction;", "START TRANSACTION"),
            ("\ncommit", "COMMIT"),
            ("\nROLLBACK;", "ROLLBACK"),
            ("\nVACUUM t;", "VACUUM"),
            ("\nCREATE DATABASE x;", "CREATE DATABASE"),
            (
                "\nCREATE UNIQUE INDEX CONCURRENTLY i ON t (a);",
                "CREATE ... CONCURRENTLY",
            ),
            (
                "\nSET client_encoding = 'LATIN1';",
                "SET client_encoding to anything but UTF8",
            ),
        ] {
            assert_eq!(
                refusal(sql),
                format!("{what} is not allowed in a schema script at f.sql, line 2")
            );
        }
        assert_eq!(
            refusal("SELECT 1;\n\\connect x\n"),
            "psql command \\connect is not allowed in a schema script at f.sql, line 2"
        );
        assert_eq!(
            refusal("SELECT 1;\nSELECT 'x"),
            "unterminated quoted string at f.sql, line 2"
        );
    }

    #[test]
    fn what_pg_dump_writes_is_not_refused() {
        let sql = "\\restrict abc\nSET client_encoding = 'UTF8';\nSELECT pg_catalog.set_config('search_path', '', false);\nROLLBACK TO SAVEPOINT x;\n\\unrestrict abc\n";
        let statements = split(sql, "f").unwrap();
        assert_eq!(statements.len(), 3);
        for statement in &statements {
            refuse(statement, "f").unwrap();
        }
    }
}
