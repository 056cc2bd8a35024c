//! Constraints that are checked over rows which are already in place, by queries.

use pgformat::ids::Oid;

/// A CHECK constraint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Check {
    /// Its name, unquoted.
    pub name: String,
    /// The expression as pg_get_expr writes it under the session's search path.
    pub condition: String,
    /// Why it must be evaluated row by row as rows come in, as a phrase: "it calls f(integer)".
    pub only_by_copy: Option<String>,
}

/// A CHECK constraint of the domain that a column is of, or of a domain below that one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DomainCheck {
    /// The column's attnum.
    pub attnum: i16,
    /// The column's name, unquoted.
    pub column: String,
    /// The column's domain as messages show it.
    pub domain: String,
    /// The constraint's name, unquoted.
    pub name: String,
    /// The expression, in which `VALUE` stands for the value.
    pub condition: String,
    /// The value as the condition sees it, of the column's name: of the type below all domains.
    pub value: String,
    /// Why it must be evaluated row by row as rows come in, as a phrase.
    pub only_by_copy: Option<String>,
}

/// A foreign key of the table, which is the referencing one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ForeignKey {
    /// Its name, unquoted.
    pub name: String,
    /// The referencing columns, unquoted.
    pub columns: Vec<String>,
    /// The referenced table's name, unquoted and without its schema, as messages show it.
    pub referenced: String,
    /// The referenced table as an item of FROM: with ONLY, unless it is partitioned.
    pub from_item: String,
    /// The equality of the keys of `pk` and `fk`, by the constraint's own operators.
    pub join: String,
    /// The first referenced column, quoted.
    pub first_referenced_column: String,
    /// MATCH FULL: a key is null as a whole or not at all.
    pub match_full: bool,
    /// INITIALLY DEFERRED: checked at COMMIT.
    pub deferred: bool,
    /// The referenced table, and its partitions.
    pub referenced_tables: Vec<ReferencedTable>,
    /// Why the server must check it row by row, as a phrase.
    pub only_by_copy: Option<String>,
}

/// A table whose rows must stay while a foreign key is checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReferencedTable {
    /// pg_class.oid.
    pub oid: Oid,
    /// Its name, unquoted and without its schema.
    pub name: String,
    /// The name as SQL wants it, schema first.
    pub qualified_name: String,
}
