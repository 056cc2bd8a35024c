//! What a statement of a script is, as far as a restore must know: its first words, not its grammar.

use super::lexer::{Scanner, Token};

/// What a statement does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Class {
    /// CREATE INDEX on this table (as written).
    CreateIndex {
        /// The table.
        table: String,
    },
    /// ALTER TABLE ... ADD CONSTRAINT ... PRIMARY KEY, UNIQUE or EXCLUDE.
    AddKey {
        /// The table.
        table: String,
    },
    /// ALTER TABLE ... ADD CONSTRAINT ... FOREIGN KEY, which holds for the rows that are there.
    AddForeignKey {
        /// The table.
        table: String,
    },
    /// ALTER INDEX ... ATTACH PARTITION.
    AttachIndex,
    /// SET or RESET of this parameter, in lower case.
    Set {
        /// Its name.
        name: String,
        /// Its value as written, without quotes.
        value: String,
    },
    /// `SELECT pg_catalog.set_config('name', ...)`.
    SetConfig,
    /// `SELECT pg_catalog.setval(...)`.
    Setval,
    /// It makes something that was not there, and looks at no rows: it may run before rows that
    /// stand before it.
    Makes {
        /// The name, as written.
        name: String,
    },
    /// COMMENT, GRANT, ALTER ... OWNER and the like, on which no rows depend.
    Names,
    /// CREATE TRIGGER, ALTER TABLE ... SET DEFAULT and the like: rows behind it depend on it, and
    /// rows before it must not.
    Guards,
    /// INSERT.
    Insert,
    /// A call of a function that writes large objects.
    LargeObject,
    /// BEGIN, COMMIT and their kind.
    TransactionControl,
    /// CREATE DATABASE.
    CreateDatabase {
        /// Its name, unquoted.
        name: String,
    },
    /// CREATE TABLESPACE.
    CreateTablespace {
        /// Its name, unquoted.
        name: String,
    },
    /// DROP DATABASE.
    DropDatabase {
        /// Its name, unquoted.
        name: String,
    },
    /// DROP ROLE, DROP USER or DROP TABLESPACE of one name.
    DropShared {
        /// The name, unquoted.
        name: String,
    },
    /// What cannot run in a transaction otherwise.
    OutsideTransaction,
    /// COPY from or to a program or a file of the server.
    CopyElsewhere,
    /// CREATE ROLE or CREATE USER of this name, unquoted.
    CreateRole {
        /// The name.
        name: String,
    },
    /// Anything else.
    Other,
}

/// A token of a statement.
#[derive(Debug, Clone, Copy)]
struct Piece<'a> {
    text: &'a str,
    is_word: bool,
}

impl Piece<'_> {
    fn is(&self, keyword: &str) -> bool {
        self.is_word && self.text.eq_ignore_ascii_case(keyword)
    }
}

/// The first tokens of a statement.
fn pieces(text: &str, most: usize) -> Vec<Piece<'_>> {
    let mut scanner = Scanner::new(text.as_bytes());
    let mut pieces = Vec::new();
    while pieces.len() < most {
        match scanner.next() {
            Some(Token::Word(range)) => pieces.push(Piece {
                text: text.get(range).unwrap_or_default(),
                is_word: true,
            }),
            Some(Token::Other(range)) => pieces.push(Piece {
                text: text.get(range).unwrap_or_default(),
                is_word: false,
            }),
            _ => break,
        }
    }
    pieces
}

/// A name with its schema from here on, as written, and where it ends.
fn qualified_name(pieces: &[Piece<'_>], mut at: usize) -> (String, usize) {
    let mut name = String::new();
    while let Some(piece) = pieces.get(at) {
        name.push_str(piece.text);
        at += 1;
        match pieces.get(at) {
            Some(dot) if dot.text == "." => {
                name.push('.');
                at += 1;
            }
            _ => break,
        }
    }
    (name, at)
}

/// An identifier as SQL means it.
fn unquoted(name: &str) -> String {
    match name.strip_prefix('"').and_then(|n| n.strip_suffix('"')) {
        Some(inner) => inner.replace("\"\"", "\""),
        None => name.to_ascii_lowercase(),
    }
}

/// The value of a string literal.
fn literal(text: &str) -> String {
    let escapes = text.starts_with(['e', 'E']);
    let inner = text
        .trim_start_matches(['e', 'E'])
        .trim_start_matches('\'')
        .trim_end_matches('\'');
    let inner = inner.replace("''", "'");
    if !escapes {
        return inner;
    }
    let mut value = String::new();
    let mut characters = inner.chars();
    while let Some(c) = characters.next() {
        if c != '\\' {
            value.push(c);
            continue;
        }
        match characters.next() {
            Some('t') => value.push('\t'),
            Some('n') => value.push('\n'),
            Some('r') => value.push('\r'),
            Some('b') => value.push('\u{8}'),
            Some('f') => value.push('\u{c}'),
            Some(other) => value.push(other),
            None => {}
        }
    }
    value
}

/// What a statement is.
pub fn classify(text: &str) -> Class {
    const FIRST: usize = 64;
    let pieces = pieces(text, FIRST);
    let is = |at: usize, word: &str| pieces.get(at).is_some_and(|p| p.is(word));
    let word = pieces.first().filter(|p| p.is_word).map_or("", |p| p.text);
    match word.to_ascii_uppercase().as_str() {
        "CREATE" => create(&pieces),
        "ALTER" => alter(&pieces),
        "COMMENT" | "GRANT" | "REVOKE" => Class::Names,
        "SECURITY" if is(1, "LABEL") => Class::Names,
        "INSERT" => Class::Insert,
        "SET" | "RESET" => {
            let at = 1 + usize::from(is(1, "SESSION") && !is(2, "AUTHORIZATION") || is(1, "LOCAL"));
            let name = pieces.get(at).map_or("", |p| p.text).to_ascii_lowercase();
            let value = pieces.last().map_or("", |p| p.text);
            Class::Set {
                name,
                value: literal(value),
            }
        }
        "SELECT" => {
            let named = |name: &str| {
                is(1, "pg_catalog") && pieces.get(2).is_some_and(|p| p.text == ".") && is(3, name)
                    || is(1, name)
            };
            if named("set_config") {
                Class::SetConfig
            } else if named("setval") {
                Class::Setval
            } else if ["lo_create", "lo_open", "lowrite", "lo_close", "lo_put"]
                .into_iter()
                .any(named)
            {
                Class::LargeObject
            } else {
                Class::Other
            }
        }
        "BEGIN" | "COMMIT" | "END" | "ABORT" => Class::TransactionControl,
        "START" | "PREPARE" if is(1, "TRANSACTION") => Class::TransactionControl,
        "ROLLBACK" if !is(1, "TO") => Class::TransactionControl,
        "VACUUM" | "CHECKPOINT" | "CLUSTER" => Class::OutsideTransaction,
        "DROP" => drop_of(&pieces),
        "COPY" => {
            let elsewhere = pieces.windows(2).any(|pair| {
                (pair[0].is("FROM") || pair[0].is("TO"))
                    && (pair[1].is("PROGRAM")
                        || pair[1].text.starts_with(['\'', 'E', 'e']) && !pair[1].is_word)
            });
            if elsewhere {
                Class::CopyElsewhere
            } else {
                Class::Other
            }
        }
        _ => Class::Other,
    }
}

fn drop_of(pieces: &[Piece<'_>]) -> Class {
    let is = |at: usize, word: &str| pieces.get(at).is_some_and(|p| p.is(word));
    let at = if is(2, "IF") { 4 } else { 2 };
    let name = unquoted(pieces.get(at).map_or("", |p| p.text));
    let is_one = pieces.len() == at + 1;
    let what = pieces.get(1).map_or("", |p| p.text).to_ascii_uppercase();
    match what.as_str() {
        "DATABASE" => Class::DropDatabase { name },
        "TABLESPACE" | "ROLE" | "USER" if is_one => Class::DropShared { name },
        "TABLESPACE" | "SUBSCRIPTION" => Class::OutsideTransaction,
        _ => Class::Other,
    }
}

fn create(pieces: &[Piece<'_>]) -> Class {
    let is = |at: usize, word: &str| pieces.get(at).is_some_and(|p| p.is(word));
    let mut at = 1;
    if is(at, "DATABASE") {
        let name = pieces.get(2).map_or("", |p| p.text);
        return Class::CreateDatabase {
            name: unquoted(name),
        };
    }
    if is(at, "TABLESPACE") {
        let name = pieces.get(2).map_or("", |p| p.text);
        return Class::CreateTablespace {
            name: unquoted(name),
        };
    }
    if is(at, "ROLE") || is(at, "USER") && !is(2, "MAPPING") {
        let name = pieces.get(2).map_or("", |p| p.text);
        return Class::CreateRole {
            name: unquoted(name),
        };
    }
    if is(at, "UNIQUE") {
        at += 1;
    }
    if is(at, "INDEX") {
        if is(at + 1, "CONCURRENTLY") {
            return Class::OutsideTransaction;
        }
        let on = (at..pieces.len()).find(|i| is(*i, "ON"));
        let Some(on) = on else { return Class::Other };
        let first = on + 1 + usize::from(is(on + 1, "ONLY"));
        let (table, _) = qualified_name(pieces, first);
        return Class::CreateIndex { table };
    }
    if is(1, "TABLE")
        && pieces
            .windows(2)
            .any(|p| p[0].is("AS") && p[1].is("SELECT"))
    {
        return Class::Other;
    }
    let makes = [
        "FUNCTION",
        "PROCEDURE",
        "TABLE",
        "SCHEMA",
        "SEQUENCE",
        "TYPE",
        "DOMAIN",
        "VIEW",
        "COLLATION",
        "AGGREGATE",
        "OPERATOR",
        "CAST",
        "STATISTICS",
        "UNLOGGED",
    ];
    let replaces = is(1, "OR") && is(2, "REPLACE");
    let mut at = if replaces { 3 } else { 1 };
    let made = pieces.get(at).map_or("", |p| p.text).to_ascii_uppercase();
    let is_partition = || {
        let mut pairs = pieces.windows(2);
        pairs.any(|p| p[0].is("PARTITION") && p[1].is("OF"))
    };
    match made.as_str() {
        "TRIGGER" | "RULE" | "POLICY" | "EVENT" | "PUBLICATION" | "CONSTRAINT" => Class::Guards,
        "TABLE" if is_partition() => Class::Guards,
        // What rows are computed by may be another function then.
        "FUNCTION" | "PROCEDURE" | "AGGREGATE" if replaces => Class::Other,
        made if makes.contains(&made) => {
            at += 1 + usize::from(made == "UNLOGGED");
            if is(at, "IF") {
                at += 3;
            }
            let (name, _) = qualified_name(pieces, at);
            Class::Makes { name }
        }
        _ => Class::Other,
    }
}

fn alter(pieces: &[Piece<'_>]) -> Class {
    let is = |at: usize, word: &str| pieces.get(at).is_some_and(|p| p.is(word));
    if is(1, "SYSTEM") {
        return Class::OutsideTransaction;
    }
    if is(1, "INDEX")
        && pieces
            .windows(2)
            .any(|p| p[0].is("ATTACH") && p[1].is("PARTITION"))
    {
        return Class::AttachIndex;
    }
    if pieces.windows(2).any(|p| p[0].is("OWNER") && p[1].is("TO")) {
        return Class::Names;
    }
    if is(1, "SEQUENCE") && pieces.iter().any(|p| p.is("OWNED")) {
        return Class::Names;
    }
    if !is(1, "TABLE") {
        return Class::Other;
    }
    let mut first = 2;
    if is(first, "IF") {
        first += 2;
    }
    first += usize::from(is(first, "ONLY"));
    let (table, next) = qualified_name(pieces, first);
    if is(next, "ADD") {
        let kind = if is(next + 1, "CONSTRAINT") {
            next + 3
        } else {
            next + 1
        };
        if is(kind, "PRIMARY") || is(kind, "UNIQUE") || is(kind, "EXCLUDE") {
            return Class::AddKey { table };
        }
        let is_not_valid = pieces
            .windows(2)
            .any(|p| p[0].is("NOT") && p[1].is("VALID"));
        if is(kind, "FOREIGN") && !is_not_valid {
            return Class::AddForeignKey { table };
        }
        if is(kind, "FOREIGN") || is(kind, "CHECK") {
            return Class::Guards;
        }
    }
    let alters_default = is(next, "ALTER")
        && pieces
            .windows(2)
            .any(|p| p[0].is("SET") && p[1].is("DEFAULT"));
    let adds_identity = pieces
        .windows(2)
        .any(|p| p[0].is("ADD") && p[1].is("GENERATED"));
    let attaches = is(next, "ATTACH");
    let row_security = pieces
        .windows(2)
        .any(|p| p[0].is("ROW") && p[1].is("LEVEL"));
    let trigger = is(next + 1, "TRIGGER");
    let replica = is(next, "REPLICA") || is(next, "CLUSTER");
    if alters_default || adds_identity || attaches || row_security || trigger || replica {
        return Class::Guards;
    }
    Class::Other
}

/// What `COPY ... FROM STDIN` is for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CopyTarget {
    /// The table as written.
    pub table: String,
    /// The columns, unquoted and folded; `None` without a list.
    pub columns: Option<Vec<String>>,
    /// The options.
    pub options: CopyTargetOptions,
}

/// COPY's options as a statement gives them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CopyTargetOptions {
    /// `csv`, `text` or `binary`.
    pub format: Option<String>,
    /// DELIMITER.
    pub delimiter: Option<String>,
    /// NULL.
    pub null: Option<String>,
    /// DEFAULT.
    pub default: Option<String>,
    /// `true`, `false` or `match`.
    pub header: Option<String>,
    /// QUOTE.
    pub quote: Option<String>,
    /// ESCAPE.
    pub escape: Option<String>,
    /// ENCODING.
    pub encoding: Option<String>,
    /// `FORCE_NULL`; `*` is all.
    pub force_null: Option<Vec<String>>,
    /// `FORCE_NOT_NULL`; `*` is all.
    pub force_not_null: Option<Vec<String>>,
}

/// Reads `COPY ... FROM STDIN`; `None` when something in it is not known here, so that the server
/// must read the statement.
pub fn copy_target(text: &str) -> Option<CopyTarget> {
    let all = pieces(text, usize::MAX);
    let is = |at: usize, word: &str| all.get(at).is_some_and(|p| p.is(word));
    let symbol = |at: usize, what: &str| all.get(at).is_some_and(|p| p.text == what);
    if !is(0, "COPY") {
        return None;
    }
    let (table, mut at) = qualified_name(&all, 1);
    let mut target = CopyTarget {
        table,
        ..CopyTarget::default()
    };
    if symbol(at, "(") {
        let (names, next) = name_list(&all, at)?;
        target.columns = Some(names);
        at = next;
    }
    if !(is(at, "FROM") && is(at + 1, "STDIN")) {
        return None;
    }
    at += 2;
    at += usize::from(is(at, "WITH"));
    let options = &mut target.options;
    if symbol(at, "(") {
        at += 1;
        while !symbol(at, ")") {
            let name = all.get(at)?.text.to_ascii_uppercase();
            at += 1;
            at = option(options, &name, &all, at)?;
            if symbol(at, ",") {
                at += 1;
            } else if !symbol(at, ")") {
                return None;
            }
        }
        at += 1;
    } else {
        at = old_options(options, &all, at)?;
    }
    (at == all.len()).then_some(target)
}

/// What an INSERT of values is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InsertTarget {
    /// The table as written.
    pub table: String,
    /// The columns, unquoted and folded; `None` without a list.
    pub columns: Option<Vec<String>>,
    /// OVERRIDING SYSTEM VALUE.
    pub overriding_system_value: bool,
}

/// Reads `INSERT INTO table [(columns)] [OVERRIDING SYSTEM VALUE] VALUES`; `None` when there is
/// something else in it.
pub fn insert_target(head: &str) -> Option<InsertTarget> {
    let all = pieces(head, usize::MAX);
    let is = |at: usize, word: &str| all.get(at).is_some_and(|p| p.is(word));
    if !(is(0, "INSERT") && is(1, "INTO")) {
        return None;
    }
    let is_name = |at: usize| {
        let piece = all.get(at);
        piece.is_some_and(|p| p.is_word || p.text.starts_with('"'))
    };
    if !is_name(2) {
        return None;
    }
    let (table, mut at) = qualified_name(&all, 2);
    let mut columns = None;
    if all.get(at)?.text == "(" {
        let (names, next) = name_list(&all, at)?;
        let named = (at + 1..next).step_by(2).all(is_name);
        if names.is_empty() || !named {
            return None;
        }
        columns = Some(names);
        at = next;
    }
    let overriding_system_value = is(at, "OVERRIDING");
    if overriding_system_value {
        if !(is(at + 1, "SYSTEM") && is(at + 2, "VALUE")) {
            return None;
        }
        at += 3;
    }
    (is(at, "VALUES") && at + 1 == all.len()).then_some(InsertTarget {
        table,
        columns,
        overriding_system_value,
    })
}

/// `(a, "b")`, and where it ends.
fn name_list(all: &[Piece<'_>], open: usize) -> Option<(Vec<String>, usize)> {
    let mut names = Vec::new();
    let mut at = open + 1;
    if all.get(at)?.text == ")" {
        return Some((names, at + 1));
    }
    loop {
        names.push(unquoted(all.get(at)?.text));
        match all.get(at + 1)?.text {
            "," => at += 2,
            ")" => return Some((names, at + 2)),
            _ => return None,
        }
    }
}

/// One option of the list in parentheses; where the next begins.
fn option(
    options: &mut CopyTargetOptions,
    name: &str,
    all: &[Piece<'_>],
    at: usize,
) -> Option<usize> {
    let value = || -> Option<String> {
        let piece = all.get(at)?;
        Some(if piece.is_word {
            piece.text.to_ascii_lowercase()
        } else {
            literal(piece.text)
        })
    };
    match name {
        "FORMAT" => options.format = Some(value()?),
        "DELIMITER" => options.delimiter = Some(value()?),
        "NULL" => options.null = Some(value()?),
        "DEFAULT" => options.default = Some(value()?),
        "QUOTE" => options.quote = Some(value()?),
        "ESCAPE" => options.escape = Some(value()?),
        "ENCODING" => options.encoding = Some(value()?.to_ascii_uppercase()),
        "HEADER" => {
            // Without a value it is true.
            if matches!(all.get(at)?.text, "," | ")") {
                options.header = Some("true".to_owned());
                return Some(at);
            }
            options.header = Some(match value()?.as_str() {
                "true" | "on" | "1" => "true".to_owned(),
                "false" | "off" | "0" => "false".to_owned(),
                "match" => "match".to_owned(),
                _ => return None,
            });
        }
        "FREEZE" => {
            return Some(if matches!(all.get(at)?.text, "," | ")") {
                at
            } else {
                at + 1
            });
        }
        "FORCE_NULL" | "FORCE_NOT_NULL" => {
            let (names, next) = if all.get(at)?.text == "*" {
                (vec!["*".to_owned()], at + 1)
            } else {
                name_list(all, at)?
            };
            if name == "FORCE_NULL" {
                options.force_null = Some(names);
            } else {
                options.force_not_null = Some(names);
            }
            return Some(next);
        }
        _ => return None,
    }
    Some(at + 1)
}

/// The options of servers before 9.0: keywords one after the other.
fn old_options(options: &mut CopyTargetOptions, all: &[Piece<'_>], mut at: usize) -> Option<usize> {
    while let Some(piece) = all.get(at) {
        let name = piece.text.to_ascii_uppercase();
        at += 1;
        let string = |at: usize| -> Option<(String, usize)> {
            let at = at + usize::from(all.get(at)?.is("AS"));
            let piece = all.get(at)?;
            (!piece.is_word).then(|| (literal(piece.text), at + 1))
        };
        match name.as_str() {
            "BINARY" | "CSV" => options.format = Some(name.to_ascii_lowercase()),
            "HEADER" => options.header = Some("true".to_owned()),
            "FREEZE" => {}
            "DELIMITER" | "DELIMITERS" | "NULL" | "QUOTE" | "ESCAPE" | "ENCODING" => {
                let (value, next) = string(at)?;
                at = next;
                match name.as_str() {
                    "NULL" => options.null = Some(value),
                    "QUOTE" => options.quote = Some(value),
                    "ESCAPE" => options.escape = Some(value),
                    "ENCODING" => options.encoding = Some(value.to_ascii_uppercase()),
                    _ => options.delimiter = Some(value),
                }
            }
            _ => return None,
        }
    }
    Some(at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_of_pg_dump_names_table_and_columns() {
        let target =
            copy_target("COPY public.\"A b\" (id, \"Name \"\"x\"\"\") FROM stdin").unwrap();
        assert_eq!(target.table, "public.\"A b\"");
        assert_eq!(target.columns.unwrap(), ["id", "Name \"x\""]);
        assert_eq!(target.options, CopyTargetOptions::default());
    }

    #[test]
    fn options_are_read_in_their_new_and_old_forms() {
        let new = copy_target(
            "copy t from STDIN with (format CSV, header, delimiter ';', null E'\\t', force_null (a, b), encoding 'latin1')",
        )
        .unwrap();
        assert_eq!(new.options.format.as_deref(), Some("csv"));
        assert_eq!(new.options.header.as_deref(), Some("true"));
        assert_eq!(new.options.delimiter.as_deref(), Some(";"));
        assert_eq!(new.options.null.as_deref(), Some("\t"));
        assert_eq!(new.options.encoding.as_deref(), Some("LATIN1"));
        assert_eq!(new.options.force_null.unwrap(), ["a", "b"]);
        let old =
            copy_target("COPY t FROM stdin WITH DELIMITER AS '|' NULL '' CSV HEADER").unwrap();
        assert_eq!(old.options.format.as_deref(), Some("csv"));
        assert_eq!(old.options.delimiter.as_deref(), Some("|"));
        assert_eq!(
            copy_target("COPY t FROM STDIN (FORMAT csv) WHERE a > 1"),
            None
        );
        assert_eq!(copy_target("COPY t TO STDOUT"), None);
    }

    #[test]
    fn statements_are_told_by_their_first_words() {
        let index = |table: &str| Class::CreateIndex {
            table: table.to_owned(),
        };
        let makes = |name: &str| Class::Makes {
            name: name.to_owned(),
        };
        for (sql, class) in [
            (
                "CREATE UNIQUE INDEX i ON ONLY s.\"T\" USING btree (a)",
                index("s.\"T\""),
            ),
            ("CREATE INDEX ON t (a)", index("t")),
            (
                "ALTER TABLE ONLY public.t\n    ADD CONSTRAINT k PRIMARY KEY (a)",
                Class::AddKey {
                    table: "public.t".to_owned(),
                },
            ),
            (
                "ALTER TABLE t ADD PRIMARY KEY (a)",
                Class::AddKey {
                    table: "t".to_owned(),
                },
            ),
            (
                "ALTER TABLE ONLY t ADD CONSTRAINT k FOREIGN KEY (a) REFERENCES u(a)",
                Class::AddForeignKey {
                    table: "t".to_owned(),
                },
            ),
            (
                "ALTER TABLE ONLY t ADD CONSTRAINT k FOREIGN KEY (a) REFERENCES u(a) NOT VALID",
                Class::Guards,
            ),
            ("SELECT pg_catalog.setval('s', 1, true)", Class::Setval),
            ("SELECT pg_catalog.lowrite(0, '\\x00')", Class::LargeObject),
            ("SELECT 1", Class::Other),
            ("UPDATE t SET a = 1", Class::Other),
            ("COPY t FROM PROGRAM 'rm'", Class::CopyElsewhere),
            ("COPY t FROM '/etc/passwd'", Class::CopyElsewhere),
            ("COPY t TO '/etc/passwd'", Class::CopyElsewhere),
            ("CREATE TABLE a AS SELECT 1", Class::Other),
            ("CREATE TABLE a (b int)", makes("a")),
            (
                "CREATE TABLE IF NOT EXISTS s.\"A\" (b int)",
                makes("s.\"A\""),
            ),
            ("CREATE UNLOGGED TABLE a (b int)", makes("a")),
            ("CREATE OR REPLACE VIEW a AS SELECT 1", makes("a")),
            (
                "CREATE TABLE a PARTITION OF b FOR VALUES IN (1)",
                Class::Guards,
            ),
            (
                "CREATE OR REPLACE FUNCTION f() RETURNS int LANGUAGE sql AS 'SELECT 1'",
                Class::Other,
            ),
            (
                "ALTER TABLE ONLY a ALTER COLUMN b SET DEFAULT 1",
                Class::Guards,
            ),
            (
                "CREATE TRIGGER a BEFORE INSERT ON t EXECUTE FUNCTION f()",
                Class::Guards,
            ),
            ("ALTER TABLE t OWNER TO me", Class::Names),
            ("COMMIT", Class::TransactionControl),
            (
                "DROP DATABASE IF EXISTS \"A b\"",
                Class::DropDatabase {
                    name: "A b".to_owned(),
                },
            ),
            (
                "DROP ROLE r",
                Class::DropShared {
                    name: "r".to_owned(),
                },
            ),
            ("DROP USER MAPPING FOR r SERVER s", Class::Other),
            ("DROP TABLE t", Class::Other),
        ] {
            assert_eq!(classify(sql), class, "{sql}");
        }
    }
}
