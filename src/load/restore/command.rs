//! SQL that a restore runs.

use crate::error::{Error, Place, Result};
use crate::source::Charset;
use crate::source::dump::archive::Entry;

/// SQL for the server, with what it is of.
#[derive(Debug, Clone)]
pub struct Command {
    /// One statement or several.
    pub sql: String,
    /// Of what, for messages.
    pub origin: CommandOrigin,
}

/// What a command is of.
#[derive(Debug, Clone)]
pub enum CommandOrigin {
    /// Settings.
    Settings,
    /// Settings of who does what follows, which must not be done by another.
    User,
    /// An entry of an archive.
    Entry {
        /// Its dump id.
        dump_id: i32,
        /// What it is, as `TABLE`.
        desc: String,
        /// Its name with the schema.
        name: String,
        /// Its tag, where it makes nothing but is executed among the rows.
        executed: Option<String>,
    },
    /// A statement of a script, which begins on this line.
    Line(u64),
    /// A statement among an entry's data.
    Data {
        /// The data's name.
        label: String,
        /// Its line there.
        line: u64,
    },
}

impl Command {
    /// Settings, of which nobody is told.
    pub fn quiet(sql: String) -> Command {
        Command {
            sql,
            origin: CommandOrigin::Settings,
        }
    }

    /// Whoever does what follows.
    pub fn becoming(sql: String) -> Command {
        Command {
            sql,
            origin: CommandOrigin::User,
        }
    }

    /// It makes nothing, but is executed among the rows.
    pub fn is_executed(&mut self, entry: &Entry) {
        if let CommandOrigin::Entry { executed, .. } = &mut self.origin {
            *executed = Some(entry.tag.clone());
        }
    }

    /// It sets something, and is not told of.
    pub fn is_setting(&self) -> bool {
        matches!(self.origin, CommandOrigin::Settings | CommandOrigin::User)
    }

    /// An entry's.
    pub fn of_entry(sql: String, entry: &Entry) -> Command {
        Command {
            sql,
            origin: CommandOrigin::Entry {
                dump_id: entry.dump_id,
                desc: entry.desc.clone(),
                name: entry.name(),
                executed: None,
            },
        }
    }
}

/// SQL of a dump in this encoding as text.
///
/// # Errors
/// `22021` where it is not in that encoding; `0A000` for an encoding that only the server knows.
pub fn decoded(sql: Vec<u8>, encoding: &str, label: &str, line: u64) -> Result<String> {
    let place = || Place {
        file: label.to_owned(),
        line,
        ..Place::default()
    };
    if let Some(zero) = memchr::memchr(0, &sql) {
        let lines = memchr::memchr_iter(b'\n', &sql[..zero]).count() as u64;
        let message = "invalid byte sequence for encoding \"UTF8\": 0x00";
        return Err(Error::refused("22021", message).at(Place {
            line: line + lines,
            ..place()
        }));
    }
    let is_ascii = sql.is_ascii();
    let charset = Charset::by_name(encoding).filter(|_| !is_ascii);
    let (sql, known) = match charset {
        Some(charset) => {
            let mut converted = Vec::new();
            charset
                .convert(&sql, &mut converted)
                .map_err(|e| Error::input(*e, place()))?;
            (converted, true)
        }
        None => (sql, matches!(encoding, "UTF8" | "UNICODE" | "SQL_ASCII")),
    };
    if !known && !is_ascii {
        return Err(Error::unsupported(format!(
            "a statement in {encoding} has characters that are not ASCII"
        ))
        .at(place())
        .with_hint("Dump with --encoding=UTF8."));
    }
    String::from_utf8(sql).map_err(|_| {
        Error::refused("22021", "invalid byte sequence for encoding \"UTF8\"").at(place())
    })
}
