//! Errors as users read them.
//!
//! Every error has PostgreSQL's SQLSTATE and wording wherever it has one, says where it
//! happened, and what to do:
//!
//! ```text
//! ERROR 22P02: invalid input syntax for type integer: "x"
//!   at file.csv, line 7, column qty
//!   HINT: ...
//! ```

use std::fmt;
use std::path::PathBuf;

/// A result of this program's functions.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// A value that its type refuses. The type's input function knows neither file nor column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ValueError {
    /// Five characters, as `22P02`.
    pub sqlstate: &'static str,
    /// PostgreSQL's primary message.
    pub message: String,
    /// PostgreSQL's DETAIL.
    pub detail: Option<String>,
    /// PostgreSQL's HINT.
    pub hint: Option<String>,
}

impl ValueError {
    /// An error with a message alone; boxed, because values are refused rarely and accepted
    /// by the million.
    #[cold]
    pub fn new(sqlstate: &'static str, message: impl Into<String>) -> Box<ValueError> {
        Box::new(ValueError {
            sqlstate,
            message: message.into(),
            detail: None,
            hint: None,
        })
    }

    /// The same with a DETAIL.
    #[must_use]
    pub fn with_detail(mut self: Box<Self>, detail: impl Into<String>) -> Box<ValueError> {
        self.detail = Some(detail.into());
        self
    }

    /// The same with a HINT.
    #[must_use]
    pub fn with_hint(mut self: Box<Self>, hint: impl Into<String>) -> Box<ValueError> {
        self.hint = Some(hint.into());
        self
    }
}

/// A place in the input.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Place {
    /// The file as the user named it; `stdin` for standard input.
    pub file: String,
    /// The line the record begins on, from 1; 0 when unknown.
    pub line: u64,
    /// The column's name.
    pub column: Option<String>,
    /// The value as it stood in the input, shortened for print.
    pub value: Option<String>,
}

impl Place {
    /// The place that COPY's CONTEXT tells: `COPY t, line 7, column qty: "x"`. The file, which
    /// the server does not know, stays empty.
    pub fn of_copy_context(context: &str) -> Option<Place> {
        // What a type's function has to say of a value comes first.
        let start = match context.find("\nCOPY ") {
            Some(end) if !context.starts_with("COPY ") => end + 1,
            _ => 0,
        };
        let (_, rest) = context[start..]
            .strip_prefix("COPY ")?
            .split_once(", line ")?;
        let digits = rest
            .find(|c: char| !c.is_ascii_digit())
            .unwrap_or(rest.len());
        let line = rest[..digits].parse().ok()?;
        let mut place = Place {
            line,
            ..Place::default()
        };
        let mut rest = &rest[digits..];
        if let Some(column) = rest.strip_prefix(", column ") {
            let end = column.find([':', ',']).unwrap_or(column.len());
            place.column = Some(column[..end].to_owned());
            rest = &column[end..];
        }
        let value = rest
            .strip_prefix(": \"")
            .and_then(|value| value.strip_suffix('"'));
        place.value = value.map(str::to_owned);
        Some(place)
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.file)?;
        if self.line > 0 {
            write!(f, ", line {}", self.line)?;
        }
        if let Some(column) = &self.column {
            write!(f, ", column {column}")?;
        }
        if let Some(value) = &self.value {
            write!(f, ": \"{value}\"")?;
        }
        Ok(())
    }
}

/// What class an error belongs to; it decides the exit status.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// The input or the plan was refused, nothing is loaded: exit 1.
    Refused,
    /// The command line is wrong: exit 2.
    Usage,
    /// No server, disk full, permission: exit 3.
    Environment,
    /// Corruption was found: exit 4.
    Corruption,
}

/// An error of the program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error {
    /// Decides the exit status.
    pub class: Class,
    /// PostgreSQL's SQLSTATE; `XX000` only where nothing fits.
    pub sqlstate: String,
    /// What is wrong, in one sentence.
    pub message: String,
    /// More of it.
    pub detail: Option<String>,
    /// Where in the input, one line per place.
    pub places: Vec<Place>,
    /// The server's CONTEXT.
    pub context: Option<String>,
    /// What the user can do.
    pub hint: Option<String>,
}

impl Error {
    /// An error of `class` with a message.
    pub fn new(class: Class, sqlstate: impl Into<String>, message: impl Into<String>) -> Error {
        Error {
            class,
            sqlstate: sqlstate.into(),
            message: message.into(),
            detail: None,
            places: Vec::new(),
            context: None,
            hint: None,
        }
    }

    /// The input or the plan is refused.
    pub fn refused(sqlstate: impl Into<String>, message: impl Into<String>) -> Error {
        Error::new(Class::Refused, sqlstate, message)
    }

    /// Something that the program does not do (yet): SQLSTATE 0A000.
    pub fn unsupported(message: impl Into<String>) -> Error {
        Error::new(Class::Refused, "0A000", message)
    }

    /// The command line is wrong: SQLSTATE 42601.
    pub fn usage(message: impl Into<String>) -> Error {
        Error::new(Class::Usage, "42601", message)
    }

    /// The environment fails us.
    pub fn environment(sqlstate: impl Into<String>, message: impl Into<String>) -> Error {
        Error::new(Class::Environment, sqlstate, message)
    }

    /// An operation on a file failed; the SQLSTATE is the one PostgreSQL gives the errno.
    pub fn io(operation: &str, path: impl Into<PathBuf>, error: &std::io::Error) -> Error {
        let path = path.into();
        let (sqlstate, hint) = match error.raw_os_error() {
            Some(libc::EPERM | libc::EACCES | libc::EROFS) => ("42501", None),
            Some(libc::ENOENT) => ("58P01", None),
            Some(libc::EEXIST) => ("58P02", None),
            Some(libc::ENOSPC | libc::EDQUOT) => {
                ("53100", Some("Free some space and run the command again."))
            }
            Some(libc::ENFILE | libc::EMFILE) => ("53000", None),
            _ => ("58030", None),
        };
        let mut e = Error::environment(
            sqlstate,
            format!(
                "could not {operation} \"{}\": {}",
                path.display(),
                os_text(error)
            ),
        );
        e.hint = hint.map(str::to_owned);
        e
    }

    /// A value error at its place.
    pub fn input(error: ValueError, place: Place) -> Error {
        Error {
            class: Class::Refused,
            sqlstate: error.sqlstate.to_owned(),
            message: error.message,
            detail: error.detail,
            places: vec![place],
            context: None,
            hint: error.hint,
        }
    }

    /// The same with a DETAIL.
    #[must_use]
    pub fn with_detail(mut self, detail: impl Into<String>) -> Error {
        self.detail = Some(detail.into());
        self
    }

    /// The same with a HINT.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> Error {
        self.hint = Some(hint.into());
        self
    }

    /// The same with one more place.
    #[must_use]
    pub fn at(mut self, place: Place) -> Error {
        self.places.push(place);
        self
    }

    /// 1, 2, 3 or 4.
    pub fn exit_status(&self) -> u8 {
        match self.class {
            Class::Refused => 1,
            Class::Usage => 2,
            Class::Environment => 3,
            Class::Corruption => 4,
        }
    }
}

/// An OS error's text without Rust's "(os error N)".
fn os_text(error: &std::io::Error) -> String {
    let text = error.to_string();
    match text.rfind(" (os error ") {
        Some(end) => text[..end].to_owned(),
        None => text,
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ERROR {}: {}", self.sqlstate, self.message)?;
        if let Some(detail) = &self.detail {
            write!(f, "\n  DETAIL: {detail}")?;
        }
        for place in &self.places {
            write!(f, "\n  at {place}")?;
        }
        if let Some(context) = &self.context {
            write!(f, "\n  CONTEXT: {context}")?;
        }
        if let Some(hint) = &self.hint {
            write!(f, "\n  HINT: {hint}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Error {}

impl From<postgres::Error> for Error {
    fn from(error: postgres::Error) -> Error {
        let Some(db) = error.as_db_error() else {
            let source = std::error::Error::source(&error).map(|s| format!(": {s}"));
            return Error::environment(
                "08006",
                format!(
                    "connection to the server failed: {error}{}",
                    source.unwrap_or_default()
                ),
            );
        };
        let mut e = Error::refused(db.code().code(), db.message());
        e.detail = db.detail().map(str::to_owned);
        e.hint = db.hint().map(str::to_owned);
        if let Some(context) = db.where_() {
            match Place::of_copy_context(context) {
                Some(place) => e.places.push(place),
                None => e.context = Some(context.to_owned()),
            }
        }
        // Classes 08, 53, 57, 58: the server's or the machine's trouble, not the input's.
        if ["08", "53", "57", "58"]
            .iter()
            .any(|c| e.sqlstate.starts_with(c))
        {
            e.class = Class::Environment;
        }
        e
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_input_error_reads_as_the_design_says() {
        let e = Error::input(
            *ValueError::new("22P02", "invalid input syntax for type integer: \"x\""),
            Place {
                file: "file.csv".into(),
                line: 7,
                column: Some("qty".into()),
                value: None,
            },
        );
        assert_eq!(
            e.to_string(),
            "ERROR 22P02: invalid input syntax for type integer: \"x\"\n  at file.csv, line 7, column qty"
        );
        assert_eq!(e.exit_status(), 1);
    }

    #[test]
    fn the_servers_word_on_a_place_is_read() {
        let place = Place::of_copy_context("COPY t, line 7, column qty: \"x\"").unwrap();
        assert_eq!((place.line, place.column.as_deref()), (7, Some("qty")));
        assert_eq!(place.value.as_deref(), Some("x"));
        let place = Place::of_copy_context("COPY a, line 12: \"1,2\"").unwrap();
        assert_eq!((place.line, place.column), (12, None));
        let place =
            Place::of_copy_context("JSON data, line 1: |...\nCOPY t, line 3, column j").unwrap();
        assert_eq!((place.line, place.column.as_deref()), (3, Some("j")));
        assert_eq!(Place::of_copy_context("SQL function \"f\""), None);
    }

    #[test]
    fn a_full_disk_is_53100() {
        let e = Error::io(
            "write",
            "/x",
            &std::io::Error::from_raw_os_error(libc::ENOSPC),
        );
        assert_eq!(
            e.to_string().lines().next(),
            Some("ERROR 53100: could not write \"/x\": No space left on device")
        );
        assert_eq!(e.exit_status(), 3);
    }
}
