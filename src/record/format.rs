//! COPY's options: as typed ([`CopyOptions`]), then resolved and checked ([`Format`]).
//!
//! PostgreSQL: src/backend/commands/copy.c, ProcessCopyOptions.

use pgformat::version::MajorVersion;

use super::encoding::Encoding;
use crate::error::ValueError;
use crate::sys::delimiters::Dialect;

/// COPY's formats.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Kind {
    /// FORMAT csv.
    Csv,
    /// FORMAT text.
    #[default]
    Text,
    /// FORMAT binary.
    Binary,
}

/// What to do with the first line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Header {
    /// It is data.
    #[default]
    None,
    /// It is left out.
    Skip,
    /// It must name the columns, then it is left out; 15 and later.
    Match,
}

impl Header {
    /// The value of the option HEADER.
    ///
    /// # Errors
    /// 42601 when it is neither a Boolean nor `match`.
    pub fn parse(value: &str, version: MajorVersion) -> Result<Header, Box<ValueError>> {
        let lower = value.to_ascii_lowercase();
        match lower.as_str() {
            "" | "true" | "on" | "1" => Ok(Header::Skip),
            "false" | "off" | "0" => Ok(Header::None),
            "match" if version.at_least(15) => Ok(Header::Match),
            _ if version.at_least(15) => Err(ValueError::new(
                "42601",
                "header requires a Boolean value or \"match\"",
            )),
            _ => Err(ValueError::new("42601", "header requires a Boolean value")),
        }
    }
}

/// A column that the input gives, in the order of the input's fields.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct InputColumn {
    /// Its name, unquoted.
    pub name: String,
    /// FORCE_NULL names it.
    pub force_null: bool,
    /// FORCE_NOT_NULL names it.
    pub force_not_null: bool,
    /// It has a default, which the default marker may call for.
    pub has_default: bool,
}

impl InputColumn {
    /// A column without options.
    pub fn named(name: impl Into<String>) -> InputColumn {
        InputColumn {
            name: name.into(),
            ..InputColumn::default()
        }
    }
}

/// COPY's options as the user typed them; `None` where not given.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CopyOptions {
    /// FORMAT.
    pub kind: Kind,
    /// DELIMITER.
    pub delimiter: Option<String>,
    /// NULL.
    pub null: Option<String>,
    /// DEFAULT, 16 and later.
    pub default: Option<String>,
    /// QUOTE.
    pub quote: Option<String>,
    /// ESCAPE.
    pub escape: Option<String>,
    /// HEADER.
    pub header: Header,
    /// FORCE_NULL is given.
    pub force_null: bool,
    /// FORCE_NOT_NULL is given.
    pub force_not_null: bool,
    /// Every line ends with a delimiter, as dbgen writes them. Not one of COPY's options.
    pub trailing_delimiter: bool,
}

impl CopyOptions {
    /// Checks the options as the server does, in its order, and fills in its defaults.
    ///
    /// `columns` are the input's fields in order; `version` and `encoding` are the target's.
    ///
    /// # Errors
    /// The server's refusal of an option: 0A000, 22023 or 42601.
    pub fn resolve(
        &self,
        columns: Vec<InputColumn>,
        version: MajorVersion,
        encoding: Encoding,
    ) -> Result<Format, Box<ValueError>> {
        if self.default.is_some() && !version.at_least(16) {
            return Err(ValueError::new(
                "42601",
                "option \"default\" not recognized",
            ));
        }
        let (kind, is_csv) = (self.kind, self.kind == Kind::Csv);
        if kind == Kind::Binary {
            self.check_binary(version)?;
        }
        let given = |option: &Option<String>, default: &str| {
            option.as_deref().unwrap_or(default).as_bytes().to_vec()
        };
        let delimiter = given(&self.delimiter, if is_csv { "," } else { "\t" });
        let &[delimiter] = delimiter.as_slice() else {
            return Err(ValueError::new(
                "0A000",
                "COPY delimiter must be a single one-byte character",
            ));
        };
        let quote = given(&self.quote, "\"");
        let escape = match &self.escape {
            Some(escape) => escape.as_bytes().to_vec(),
            None => quote.clone(),
        };
        let mut format = Format {
            kind,
            delimiter,
            null: given(&self.null, if is_csv { "" } else { "\\N" }),
            default: self.default.as_ref().map(|d| d.as_bytes().to_vec()),
            quote: b'"',
            escape: b'"',
            header: self.header,
            columns,
            trailing_delimiter: self.trailing_delimiter,
            version,
            encoding,
            file_encoding: encoding,
        };
        format.check_lines()?;
        let csv_only = |option: &str, old: &str| {
            let message = if version.at_least(17) {
                format!("COPY {option} requires CSV mode")
            } else {
                format!("COPY {old} available only in CSV mode")
            };
            Err(ValueError::new("0A000", message))
        };
        if !is_csv && self.header != Header::None && !version.at_least(15) {
            return Err(ValueError::new(
                "0A000",
                "COPY HEADER available only in CSV mode",
            ));
        }
        if !is_csv && self.quote.is_some() {
            return csv_only("QUOTE", "quote");
        }
        if is_csv {
            let &[quote] = quote.as_slice() else {
                return Err(ValueError::new(
                    "0A000",
                    "COPY quote must be a single one-byte character",
                ));
            };
            format.quote = quote;
            format.check_quote()?;
        }
        if !is_csv && self.escape.is_some() {
            return csv_only("ESCAPE", "escape");
        }
        if is_csv {
            let &[escape] = escape.as_slice() else {
                return Err(ValueError::new(
                    "0A000",
                    "COPY escape must be a single one-byte character",
                ));
            };
            format.escape = escape;
        }
        if !is_csv && self.force_not_null {
            return csv_only("FORCE_NOT_NULL", "force not null");
        }
        if !is_csv && self.force_null {
            return csv_only("FORCE_NULL", "force null");
        }
        format.check_markers()?;
        Ok(format)
    }

    /// Options that make no sense of binary input.
    fn check_binary(&self, version: MajorVersion) -> Result<(), Box<ValueError>> {
        let has_header = self.header != Header::None && version.at_least(15);
        for (option, is_given, sqlstate) in [
            ("DELIMITER", self.delimiter.is_some(), "42601"),
            ("NULL", self.null.is_some(), "42601"),
            ("DEFAULT", self.default.is_some(), "42601"),
            ("HEADER", has_header, "0A000"),
        ] {
            if is_given {
                let message = format!("cannot specify {option} in BINARY mode");
                return Err(ValueError::new(sqlstate, message));
            }
        }
        Ok(())
    }
}

/// How the input is laid out, checked and complete.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Format {
    /// CSV, text or binary. Of binary only the columns, the version and the encoding matter.
    pub kind: Kind,
    /// Stands between fields.
    pub delimiter: u8,
    /// A field that reads so is NULL.
    pub null: Vec<u8>,
    /// A field that reads so takes the column's default; 16 and later.
    pub default: Option<Vec<u8>>,
    /// CSV's quote.
    pub quote: u8,
    /// CSV's escape within quotes.
    pub escape: u8,
    /// What to do with the first line.
    pub header: Header,
    /// The input's fields, in order.
    pub columns: Vec<InputColumn>,
    /// Every line ends with a delimiter.
    pub trailing_delimiter: bool,
    /// The server whose semantics hold.
    pub version: MajorVersion,
    /// The database's encoding.
    pub encoding: Encoding,
    /// What the input, converted where that is due, is checked against: the database's encoding
    /// but where the server converts nothing.
    pub file_encoding: Encoding,
}

impl Format {
    /// CSV with COPY's defaults.
    pub fn csv(columns: Vec<InputColumn>, version: MajorVersion) -> Format {
        Format {
            kind: Kind::Csv,
            delimiter: b',',
            null: Vec::new(),
            default: None,
            quote: b'"',
            escape: b'"',
            header: Header::None,
            columns,
            trailing_delimiter: false,
            version,
            encoding: Encoding::Utf8,
            file_encoding: Encoding::Utf8,
        }
    }

    /// Text with COPY's defaults.
    pub fn text(columns: Vec<InputColumn>, version: MajorVersion) -> Format {
        Format {
            kind: Kind::Text,
            delimiter: b'\t',
            null: b"\\N".to_vec(),
            ..Format::csv(columns, version)
        }
    }

    /// Binary.
    pub fn binary(columns: Vec<InputColumn>, version: MajorVersion) -> Format {
        Format {
            kind: Kind::Binary,
            ..Format::text(columns, version)
        }
    }

    /// Checks what a format made by hand could have wrong, with the server's refusals.
    ///
    /// # Errors
    /// 0A000 or 22023, as ProcessCopyOptions.
    pub fn check(&self) -> Result<(), Box<ValueError>> {
        self.check_lines()?;
        if self.kind == Kind::Csv {
            if !is_single(self.quote) {
                return Err(ValueError::new(
                    "0A000",
                    "COPY quote must be a single one-byte character",
                ));
            }
            self.check_quote()?;
            if !is_single(self.escape) {
                return Err(ValueError::new(
                    "0A000",
                    "COPY escape must be a single one-byte character",
                ));
            }
        }
        self.check_markers()
    }

    /// Why these options, which the server accepts, are left to the server; `None` when they
    /// are read natively.
    pub fn not_native(&self) -> Option<&'static str> {
        let line_end = |c| c == b'\n' || c == b'\r';
        if self.kind != Kind::Csv {
            return None;
        }
        if line_end(self.quote) || line_end(self.escape) {
            return Some("a quote or escape that is a line end");
        }
        if self.escape == self.delimiter {
            return Some("an escape that is the delimiter");
        }
        None
    }

    /// What the scan for delimiters looks for.
    ///
    /// # Panics
    /// For binary, which has none.
    pub fn dialect(&self) -> Dialect {
        match self.kind {
            Kind::Csv => Dialect::Csv {
                quote: self.quote,
                escape: (self.escape != self.quote).then_some(self.escape),
            },
            Kind::Text => Dialect::Text,
            Kind::Binary => unreachable!("binary input has no delimiters"),
        }
    }

    /// A line `\.` ends the data: in text always, in CSV before 18.
    pub fn has_end_marker(&self) -> bool {
        self.kind == Kind::Text || !self.version.at_least(18)
    }

    /// Marks the columns that FORCE_NULL or FORCE_NOT_NULL name, or all of them for `*`.
    ///
    /// `option` is `FORCE_NULL` or `FORCE_NOT_NULL`.
    ///
    /// # Errors
    /// 42701 for a column named twice, 42P10 for one that the input does not give, 22023 for
    /// `*` before 17.
    pub fn force(&mut self, option: &str, names: &[&str]) -> Result<(), Box<ValueError>> {
        let null = option == "FORCE_NULL";
        if names == ["*"] {
            if !self.version.at_least(17) {
                return Err(ValueError::new(
                    "22023",
                    format!(
                        "argument to option \"{}\" must be a list of column names",
                        option.to_ascii_lowercase()
                    ),
                ));
            }
            for column in &mut self.columns {
                *forced(column, null) = true;
            }
            return Ok(());
        }
        for (i, name) in names.iter().enumerate() {
            if names[..i].contains(name) {
                return Err(ValueError::new(
                    "42701",
                    format!("column \"{name}\" specified more than once"),
                ));
            }
        }
        for name in names {
            let Some(column) = self.columns.iter_mut().find(|c| c.name == *name) else {
                let message = format!("{option} column \"{name}\" not referenced by COPY");
                return Err(ValueError::new("42P10", message));
            };
            *forced(column, null) = true;
        }
        Ok(())
    }

    /// Delimiter, null and default against line ends.
    fn check_lines(&self) -> Result<(), Box<ValueError>> {
        let has_line_end = |text: &[u8]| text.iter().any(|&c| c == b'\n' || c == b'\r');
        if !is_single(self.delimiter) {
            return Err(ValueError::new(
                "0A000",
                "COPY delimiter must be a single one-byte character",
            ));
        }
        if has_line_end(&[self.delimiter]) {
            return Err(ValueError::new(
                "22023",
                "COPY delimiter cannot be newline or carriage return",
            ));
        }
        if has_line_end(&self.null) {
            return Err(ValueError::new(
                "22023",
                "COPY null representation cannot use newline or carriage return",
            ));
        }
        if self.default.as_deref().is_some_and(has_line_end) {
            return Err(ValueError::new(
                "22023",
                "COPY default representation cannot use newline or carriage return",
            ));
        }
        if self.kind == Kind::Text
            && matches!(self.delimiter, b'\\' | b'.' | b'a'..=b'z' | b'0'..=b'9')
        {
            return Err(ValueError::new(
                "22023",
                format!("COPY delimiter cannot be \"{}\"", self.delimiter as char),
            ));
        }
        Ok(())
    }

    fn check_quote(&self) -> Result<(), Box<ValueError>> {
        if self.delimiter == self.quote {
            return Err(ValueError::new(
                "22023",
                "COPY delimiter and quote must be different",
            ));
        }
        Ok(())
    }

    /// Delimiter and quote within null and default.
    fn check_markers(&self) -> Result<(), Box<ValueError>> {
        let csv = self.kind == Kind::Csv;
        let (sqlstate, delimiter) = if self.version.at_least(17) {
            ("22023", "COPY delimiter character")
        } else {
            ("0A000", "COPY delimiter")
        };
        let refuse = |sqlstate, what: &str, option: &str| {
            let message = format!("{what} must not appear in the {option} specification");
            Err(ValueError::new(sqlstate, message))
        };
        if self.null.contains(&self.delimiter) {
            return refuse(sqlstate, delimiter, "NULL");
        }
        if csv && self.null.contains(&self.quote) {
            return refuse(sqlstate, "CSV quote character", "NULL");
        }
        if let Some(default) = &self.default {
            if default.contains(&self.delimiter) {
                return refuse("0A000", delimiter, "DEFAULT");
            }
            if csv && default.contains(&self.quote) {
                return refuse("0A000", "CSV quote character", "DEFAULT");
            }
            if *default == self.null {
                return Err(ValueError::new(
                    "0A000",
                    "NULL specification and DEFAULT specification cannot be the same",
                ));
            }
        }
        Ok(())
    }
}

fn is_single(byte: u8) -> bool {
    byte != 0 && byte < 0x80
}

fn forced(column: &mut InputColumn, null: bool) -> &mut bool {
    if null {
        &mut column.force_null
    } else {
        &mut column.force_not_null
    }
}
