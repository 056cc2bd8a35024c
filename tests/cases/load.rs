//! From a case's COPY to pgpagewrite's arguments.

use std::fmt::Write;
use std::path::Path;

/// What `load.sql` asks for.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Load {
    /// Options of `build`.
    pub(crate) flags: Vec<String>,
    /// `TABLE=PATH`, in order.
    pub(crate) sources: Vec<String>,
    /// Settings of the session, as PGOPTIONS has them.
    pub(crate) settings: String,
    /// Table with its columns, file, options; as COPY has them.
    copies: Vec<(String, String, String)>,
}

impl Load {
    /// Reads lines `set name to 'value';` and `\copy table from 'file' with (options)`.
    pub(crate) fn parse(script: &str) -> Result<Load, String> {
        let mut load = Load::default();
        for line in script.lines().map(str::trim) {
            let line = line.trim_end_matches(';');
            if line.is_empty() || line.starts_with("--") {
                continue;
            }
            if let Some(setting) = line.strip_prefix("set ") {
                let (name, value) = setting.split_once(" to ").ok_or("a set without to")?;
                let value = value.trim_matches('\'').replace(' ', "");
                let _ = write!(load.settings, " -c {name}={value}");
                continue;
            }
            let copy = line
                .strip_prefix("\\copy ")
                .ok_or("neither set nor \\copy")?;
            let (table, rest) = copy.split_once(" from '").ok_or("no from")?;
            let (file, rest) = rest.split_once('\'').ok_or("no end of the file's name")?;
            let options = match rest.trim().strip_prefix("with (") {
                Some(options) => options.strip_suffix(')').ok_or("no end of the options")?,
                None => "",
            };
            let flags = flags(options)?;
            if !load.copies.is_empty() && flags != load.flags {
                return Err("two files with different options".to_owned());
            }
            load.flags = flags;
            load.sources.push(format!("{table}={file}"));
            load.copies
                .push((table.to_owned(), file.to_owned(), options.to_owned()));
        }
        Ok(load)
    }

    /// The same as SQL in which the server reads the files itself: psql's own reading of a
    /// file differs from the server's in places.
    pub(crate) fn server_side(&self, dir: &Path) -> String {
        let mut sql = String::new();
        for (table, file, options) in &self.copies {
            let _ = write!(sql, "COPY {table} FROM '{}'", dir.join(file).display());
            if !options.is_empty() {
                let _ = write!(sql, " WITH ({options})");
            }
            sql.push_str(";\n");
        }
        sql
    }
}

/// COPY's options as flags.
fn flags(options: &str) -> Result<Vec<String>, String> {
    let mut flags = Vec::new();
    let mut format = "text".to_owned();
    for option in split(options) {
        let (name, value) = option.split_once(' ').unwrap_or((&option, "true"));
        match name {
            "format" => value.clone_into(&mut format),
            "header" if value == "match" => flags.push("--header=match".to_owned()),
            "header" => flags.push("--header".to_owned()),
            "delimiter" | "null" | "quote" | "escape" | "encoding" | "default" => {
                flags.push(format!("--{name}={}", literal(value)));
            }
            _ => return Err(format!("option {name}")),
        }
    }
    flags.splice(0..0, ["--format".to_owned(), format]);
    Ok(flags)
}

/// Splits at commas outside of quotes.
fn split(options: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut quoted = false;
    for c in options.chars() {
        quoted ^= c == '\'';
        if c == ',' && !quoted {
            parts.push(String::new());
        } else {
            parts.last_mut().expect("never empty").push(c);
        }
    }
    let parts = parts.into_iter().map(|p| p.trim().to_owned());
    parts.filter(|p| !p.is_empty()).collect()
}

/// The value of `'...'`, or of `E'...'` with `\xHH`.
fn literal(quoted: &str) -> String {
    let escaped = quoted.starts_with('E');
    let inner = quoted.trim_start_matches('E').trim_matches('\'');
    if !escaped {
        return inner.to_owned();
    }
    let code = inner
        .strip_prefix("\\x")
        .and_then(|hex| u8::from_str_radix(hex, 16).ok())
        .expect("one \\xHH");
    char::from(code).to_string()
}

#[test]
fn a_copy_becomes_flags_and_a_source() {
    let load = Load::parse(
        "set timezone to 'America/New_York';\n\
         \\copy \"T\"(a, b) from 'data.csv' with (format csv, delimiter E'\\x05', null '', header match)\n",
    );
    let load = load.unwrap();
    assert_eq!(
        load.flags,
        [
            "--format",
            "csv",
            "--delimiter=\u{5}",
            "--null=",
            "--header=match"
        ]
    );
    assert_eq!(load.sources, ["\"T\"(a, b)=data.csv"]);
    assert_eq!(load.settings, " -c timezone=America/New_York");
    assert_eq!(
        load.server_side(Path::new("/d")),
        "COPY \"T\"(a, b) FROM '/d/data.csv' WITH (format csv, delimiter E'\\x05', null '', header match);\n"
    );
    assert!(Load::parse("\\i dump.sql").is_err());
}
