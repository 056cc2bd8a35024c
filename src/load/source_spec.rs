//! What `TABLE(COLUMN, ...)=PATH` says.

use super::options::InputOptions;
use crate::error::{Error, Result};
use crate::source::Origin;

/// Rows for a table: one SOURCE of the command line, or what a dump has for a table.
#[derive(Debug, Clone)]
pub struct SourceSpec {
    /// The table's name as written, to be read by the server as SQL.
    pub table: String,
    /// The columns, unquoted and folded; `None` when no list was given.
    pub columns: Option<Vec<String>>,
    /// Where the rows are.
    pub rows: Rows,
}

/// Where rows are.
#[derive(Debug, Clone)]
pub enum Rows {
    /// In the files that this path stands for; `-` is standard input.
    Path(String),
    /// In a dump.
    Dumped(Box<InputSource>),
}

/// An input before it is planned.
#[derive(Debug, Clone)]
pub struct InputSource {
    /// Their name in messages.
    pub label: String,
    /// Where their bytes lie.
    pub origin: Origin,
    /// Lines of the same name before them.
    pub lines_before: u64,
    /// The rows end with the marker `\.`: without it some are missing.
    pub ends_with_marker: bool,
    /// COPY's options.
    pub input: InputOptions,
}

impl SourceSpec {
    /// The source is standard input.
    pub fn is_stdin(&self) -> bool {
        matches!(&self.rows, Rows::Path(path) if path == "-")
    }
}

impl SourceSpec {
    /// Reads one SOURCE.
    pub fn parse(text: &str) -> Result<SourceSpec> {
        let Some(equals) = find_unquoted(text, b'=') else {
            return Err(Error::usage(format!("source \"{text}\" is not TABLE=PATH"))
                .with_hint("A dump is the only source of its command; data files are written as TABLE=PATH."));
        };
        let (target, path) = (text[..equals].trim(), &text[equals + 1..]);
        let (table, columns) = match find_unquoted(target, b'(') {
            None => (target, None),
            Some(open) => {
                let Some(list) = target[open + 1..].strip_suffix(')') else {
                    return Err(Error::usage(format!(
                        "column list of \"{text}\" does not end"
                    )));
                };
                (target[..open].trim_end(), Some(column_list(list)?))
            }
        };
        if table.is_empty() || path.is_empty() {
            return Err(Error::usage(format!("source \"{text}\" is not TABLE=PATH")));
        }
        Ok(SourceSpec {
            table: table.to_owned(),
            columns,
            rows: Rows::Path(path.to_owned()),
        })
    }
}

/// Reads a list of column names as SQL writes them: quoted or folded to lower case.
pub fn column_list(list: &str) -> Result<Vec<String>> {
    let mut names = Vec::new();
    let mut rest = list;
    if rest.trim().is_empty() {
        return Ok(names);
    }
    loop {
        let end = find_unquoted(rest, b',').unwrap_or(rest.len());
        names.push(identifier(rest[..end].trim())?);
        if end == rest.len() {
            return Ok(names);
        }
        rest = &rest[end + 1..];
    }
}

/// An identifier as SQL reads it.
fn identifier(text: &str) -> Result<String> {
    let bad = || Error::usage(format!("\"{text}\" is not a column name"));
    if let Some(inner) = text.strip_prefix('"') {
        let inner = inner.strip_suffix('"').ok_or_else(bad)?;
        if inner.is_empty() || inner.replace("\"\"", "").contains('"') {
            return Err(bad());
        }
        return Ok(inner.replace("\"\"", "\""));
    }
    let ordinary = |c: char| c == '_' || c == '$' || c.is_alphanumeric() || !c.is_ascii();
    if text.is_empty()
        || !text.chars().all(ordinary)
        || text.starts_with(|c: char| c.is_ascii_digit() || c == '$')
    {
        return Err(bad());
    }
    Ok(text.to_ascii_lowercase())
}

/// The first `what` outside double quotes.
fn find_unquoted(text: &str, what: u8) -> Option<usize> {
    let mut quoted = false;
    text.bytes().position(|b| {
        quoted ^= b == b'"';
        b == what && !quoted
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_names_a_table_columns_and_a_path() {
        let s = SourceSpec::parse("my.t (a, \"B \"\"x\"\"\", Cee)=dir/f=1.csv").unwrap();
        assert_eq!(s.table, "my.t");
        assert_eq!(s.columns.unwrap(), ["a", "B \"x\"", "cee"]);
        assert!(matches!(s.rows, Rows::Path(path) if path == "dir/f=1.csv"));
    }

    #[test]
    fn a_quoted_table_may_hold_an_equals_sign() {
        let s = SourceSpec::parse("\"a=b\"=-").unwrap();
        assert_eq!((s.table.as_str(), s.is_stdin()), ("\"a=b\"", true));
        assert_eq!(s.columns, None);
    }

    #[test]
    fn a_source_without_an_equals_sign_is_a_usage_error() {
        assert_eq!(SourceSpec::parse("dump.sql").unwrap_err().exit_status(), 2);
        assert_eq!(SourceSpec::parse("t(a=x").unwrap_err().exit_status(), 2);
    }
}
