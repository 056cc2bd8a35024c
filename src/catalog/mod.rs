//! What the server says of relations, indexes, types and collations: plain data, read once.
//!
//! These structures are the plan's view of the catalogs; nothing here talks to the server
//! but [`read`].

mod constraints;
pub mod describe;
mod native_index;
pub mod partitions;
pub mod read;

pub use constraints::{Check, DomainCheck, ForeignKey, ReferencedTable};
pub use native_index::KeyOrders;
pub use partitions::PartitionTree;

use crate::types::{TypeDescription, TypeKind};
use pgformat::datum::text;
use pgformat::ids::Oid;
use pgformat::layout::AttributeLayout;
use std::sync::Arc;

/// Bits of pg_trigger.tgtype. PostgreSQL: `src/include/catalog/pg_trigger.h`.
pub const TRIGGER_TYPE_INSERT: i32 = 1 << 2;
/// The same for TRUNCATE.
pub const TRIGGER_TYPE_TRUNCATE: i32 = 1 << 5;

/// A table as the catalogs describe it.
#[derive(Debug, Clone, PartialEq)]
pub struct Relation {
    /// pg_class.oid.
    pub oid: Oid,
    /// Namespace name, unquoted.
    pub schema: String,
    /// Name, unquoted.
    pub name: String,
    /// pg_class.relkind: `r`, `p`, `v`, `m`, `f`, `S`.
    pub kind: char,
    /// pg_class.relpersistence: `p`, `u`, `t`.
    pub persistence: char,
    /// Name of the table access method; empty for views.
    pub access_method: String,
    /// pg_class.reltablespace; 0 is the database's default.
    pub tablespace: Oid,
    /// reloption fillfactor, 100 when unset.
    pub fillfactor: u8,
    /// reloption toast_tuple_target in bytes, 2032 when unset.
    pub toast_tuple_target_bytes: usize,
    /// All attributes by attnum, dropped ones included: element 0 is attnum 1.
    pub columns: Vec<Column>,
    /// Every index with indislive, whatever its other flags.
    pub indexes: Vec<Index>,
    /// The TOAST table.
    pub toast: Option<ToastRelation>,
    /// What stands in the way of a native load, or must be looked at by the plan.
    pub features: Features,
    /// pg_relation_size of the main fork in bytes; 0 when nobody asked (see
    /// [`read::relations`]).
    pub size_bytes: u64,
    /// Its partitions, where it is partitioned, they were asked for, and one transaction may lock
    /// them all.
    pub partitions: Option<Box<PartitionTree>>,
}

impl Relation {
    /// The name as SQL wants it, schema first.
    pub fn qualified_name(&self) -> String {
        format!("{}.{}", quote_ident(&self.schema), quote_ident(&self.name))
    }

    /// The name as messages show it: schema first, quoted only where SQL needs it.
    pub fn display_name(&self) -> String {
        let plain = |name: &str| {
            !name.starts_with(|c: char| c.is_ascii_digit())
                && name
                    .bytes()
                    .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_')
        };
        let shown = |name: &str| {
            if plain(name) {
                name.to_owned()
            } else {
                quote_ident(name)
            }
        };
        format!("{}.{}", shown(&self.schema), shown(&self.name))
    }

    /// What differs between this description and a later one of the same table, in words;
    /// `None` when a plan made for this one holds for the other. The size does not count, nor
    /// does what only a scratch table tells.
    pub fn difference(&self, later: &Relation) -> Option<String> {
        let named = [
            ("its OID", self.oid != later.oid),
            (
                "its name",
                (&self.schema, &self.name) != (&later.schema, &later.name),
            ),
            (
                "its kind",
                (self.kind, self.persistence) != (later.kind, later.persistence),
            ),
            (
                "its access method",
                self.access_method != later.access_method,
            ),
            ("its tablespace", self.tablespace != later.tablespace),
            (
                "its storage parameters",
                (self.fillfactor, self.toast_tuple_target_bytes)
                    != (later.fillfactor, later.toast_tuple_target_bytes),
            ),
            (
                "its columns",
                self.columns.len() != later.columns.len()
                    || !(self.columns.iter().zip(&later.columns))
                        .all(|(column, later)| column.same_description(later)),
            ),
            ("its TOAST table", self.toast != later.toast),
            (
                "its triggers, rules or constraints",
                self.features != later.features,
            ),
        ];
        if let Some((what, _)) = named.into_iter().find(|(_, differs)| *differs) {
            return Some(format!("{what} changed"));
        }
        for index in &self.indexes {
            match later.indexes.iter().find(|l| l.oid == index.oid) {
                None => return Some(format!("index \"{}\" is gone", index.name)),
                Some(l) if !index.same_description(l) => {
                    return Some(format!("index \"{}\" changed", index.name));
                }
                Some(_) => {}
            }
        }
        later
            .indexes
            .iter()
            .find(|l| self.indexes.iter().all(|i| i.oid != l.oid))
            .map(|l| format!("index \"{}\" is new", l.name))
    }
}

/// An identifier in double quotes, always: valid wherever SQL takes a name.
pub fn quote_ident(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// A string constant, valid whether or not `standard_conforming_strings` is on.
pub fn quote_literal(text: &str) -> String {
    let quoted = text.replace('\'', "''");
    if quoted.contains('\\') {
        format!(" E'{}'", quoted.replace('\\', "\\\\"))
    } else {
        format!("'{quoted}'")
    }
}

/// The TOAST table and its index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ToastRelation {
    /// pg_class.oid of the TOAST table.
    pub oid: Oid,
    /// pg_class.oid of its index on (chunk_id, chunk_seq).
    pub index_oid: Oid,
    /// pg_class.reltablespace of both.
    pub tablespace: Oid,
}

/// An attribute of a table.
#[derive(Debug, Clone, PartialEq)]
pub struct Column {
    /// pg_attribute.attnum, from 1.
    pub attnum: i16,
    /// Name, unquoted; of a dropped column the server's placeholder.
    pub name: String,
    /// The bytes' layout (valid for dropped ones too).
    pub layout: AttributeLayout,
    /// atttypid; 0 when dropped.
    pub type_oid: Oid,
    /// What the type is; `None` when dropped.
    pub description: Option<Arc<TypeDescription>>,
    /// format_type(atttypid, atttypmod), for messages; empty when dropped.
    pub type_name: String,
    /// atttypmod, -1 when none.
    pub typmod: i32,
    /// attcollation, 0 when none.
    pub collation: Oid,
    /// attnotnull.
    pub not_null: bool,
    /// attisdropped.
    pub dropped: bool,
    /// pg_get_expr of the default, if any, be it the type's (for generated columns: the
    /// expression).
    pub default: Option<String>,
    /// What is known of that expression.
    pub expression: Option<Expression>,
    /// The sequence of an identity column, or that the default names.
    pub sequence: Option<Sequence>,
    /// attidentity: `a`, `d`, or a space.
    pub identity: char,
    /// attgenerated: `s`, `v` (18), or a space.
    pub generated: char,
}

impl Column {
    /// The type and the modifier of its values, below all domains.
    pub fn base_type(&self) -> (Oid, i32) {
        let (mut type_oid, mut typmod) = (self.type_oid, self.typmod);
        let mut description = self.description.as_deref();
        while let Some(TypeKind::Domain(domain)) = description.map(|d| &d.kind) {
            type_oid = domain.base.oid;
            // The outermost modifier holds; only one of the domains can have it.
            typmod = typmod.max(domain.typmod);
            description = Some(&domain.base);
        }
        (type_oid, typmod)
    }

    /// Whether a later reading describes the same column; labels that its enum has gained do not
    /// count.
    pub fn same_description(&self, later: &Column) -> bool {
        let same_type = match (&self.description, &later.description) {
            (Some(description), Some(later)) => description.holds_for(later),
            (description, later) => description == later,
        };
        let later = Column {
            description: self.description.clone(),
            ..later.clone()
        };
        same_type && *self == later
    }

    /// The text of a stored value, for messages; `null` for null.
    pub fn output(&self, stored: Option<&[u8]>) -> String {
        match &self.description {
            Some(description) => description.output(stored),
            None => text::output(self.type_oid, stored),
        }
    }
}

/// How often an expression must be evaluated. PostgreSQL: pg_proc.provolatile.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Volatility {
    /// Always the same value.
    Immutable,
    /// One value in a statement.
    Stable,
    /// Perhaps another value for every row; also said of what is not known.
    Volatile,
}

/// The expression of a default or of a generated column, as far as a load must know it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Expression {
    /// The most volatile thing in it.
    pub volatility: Volatility,
    /// attnums of the columns it names: 0 is the whole row, below 0 are system columns.
    pub references: Vec<i16>,
    /// It is nextval of one sequence and no more.
    pub is_nextval: bool,
    /// It calls nextval, currval, setval or lastval.
    pub touches_sequences: bool,
}

/// A sequence's definition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sequence {
    /// pg_class.oid.
    pub oid: Oid,
    /// Its schema, unquoted.
    pub schema: String,
    /// Its name, unquoted.
    pub name: String,
    /// INCREMENT, never 0.
    pub increment: i64,
    /// MINVALUE.
    pub min: i64,
    /// MAXVALUE.
    pub max: i64,
    /// CACHE, at least 1.
    pub cache: i64,
    /// CYCLE.
    pub cycle: bool,
}

impl Sequence {
    /// The name as SQL wants it, schema first.
    pub fn qualified_name(&self) -> String {
        format!("{}.{}", quote_ident(&self.schema), quote_ident(&self.name))
    }
}

/// Where a sequence stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SequenceState {
    /// last_value.
    pub last_value: i64,
    /// Whether last_value was given out.
    pub is_called: bool,
}

/// Things of a table that a load must respect.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Features {
    /// Names of enabled user triggers that fire on INSERT (not replica-only ones, not internal).
    pub insert_triggers: Vec<String>,
    /// Names of enabled user triggers that fire on TRUNCATE.
    pub truncate_triggers: Vec<String>,
    /// Names of rules.
    pub rules: Vec<String>,
    /// CHECK constraints that are enforced, in the order in which the server evaluates them.
    pub checks: Vec<Check>,
    /// CHECK constraints of the columns' domains, by attnum and then in the order in which the
    /// server evaluates them. Domains inside arrays and other types do not count.
    pub domain_checks: Vec<DomainCheck>,
    /// Foreign keys of this table that a row is checked for, in the order in which the server
    /// checks them.
    pub foreign_keys: Vec<ForeignKey>,
    /// Tables (qualified, quoted) whose foreign keys reference this one.
    pub referenced_by: Vec<String>,
    /// Names of exclusion constraints.
    pub exclusions: Vec<String>,
    /// relispartition, with the partition constraint as SQL.
    pub partition_constraint: Option<String>,
    /// relrowsecurity and the current role is subject to it.
    pub row_security: bool,
    /// It stands in a system schema, or its OID is one of initdb's.
    pub system_catalog: bool,
    /// It has inheritance children.
    pub has_children: bool,
}

/// An index as the catalogs describe it.
#[derive(Debug, Clone, PartialEq)]
pub struct Index {
    /// pg_class.oid of the index.
    pub oid: Oid,
    /// Name, unquoted.
    pub name: String,
    /// Its schema, unquoted.
    pub schema: String,
    /// Access method's name: btree, hash, gin, ...
    pub access_method: String,
    /// pg_class.reltablespace.
    pub tablespace: Oid,
    /// indisunique.
    pub unique: bool,
    /// indisprimary.
    pub primary: bool,
    /// indnullsnotdistinct (15 and later).
    pub nulls_not_distinct: bool,
    /// indisexclusion: the index of an exclusion constraint or of a temporal key.
    pub exclusion: bool,
    /// indimmediate: false for deferrable constraints.
    pub immediate: bool,
    /// indisvalid.
    pub valid: bool,
    /// indisclustered.
    pub clustered: bool,
    /// It is partial.
    pub has_predicate: bool,
    /// reloption fillfactor; 90 when unset.
    pub fillfactor: u8,
    /// reloption deduplicate_items; true when unset.
    pub deduplicate_items: bool,
    /// Key columns, then INCLUDE columns.
    pub columns: Vec<IndexColumn>,
    /// How many of `columns` are keys.
    pub key_count: usize,
    /// pg_get_indexdef.
    pub definition: String,
    /// btm_allequalimage as this server sets it for this index (from a scratch table);
    /// `None` until asked or when not a btree.
    pub allequalimage: Option<bool>,
}

impl Index {
    /// Whether a later reading describes the same index; `allequalimage` does not count.
    pub fn same_description(&self, later: &Index) -> bool {
        let later = Index {
            allequalimage: self.allequalimage,
            ..later.clone()
        };
        *self == later
    }
}

/// An attribute of an index.
#[derive(Debug, Clone, PartialEq)]
pub struct IndexColumn {
    /// The table's attnum; 0 for an expression.
    pub attnum: i16,
    /// atttypid of the index's own attribute (cstring for name keys).
    pub type_oid: Oid,
    /// The layout of the index's own attribute.
    pub layout: AttributeLayout,
    /// Name of the operator class, unqualified, as `text_ops`; empty for INCLUDE columns.
    pub opclass: String,
    /// The operator class stands in pg_catalog.
    pub opclass_is_core: bool,
    /// DESC.
    pub descending: bool,
    /// NULLS FIRST.
    pub nulls_first: bool,
    /// The key's collation; `None` where the type has none.
    pub collation: Option<Collation>,
}

/// A collation and what is known of its versions.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Collation {
    /// pg_collation.oid; the database's default (100) is resolved to what it stands for.
    pub oid: Oid,
    /// Name, for messages.
    pub name: String,
    /// `c` libc, `i` ICU, `b` builtin.
    pub provider: char,
    /// LC_COLLATE for libc, the locale for ICU and builtin.
    pub locale: String,
    /// Deterministic.
    pub deterministic: bool,
    /// The version recorded at creation, if any.
    pub recorded_version: Option<String>,
    /// The version the server's library has now, if any.
    pub actual_version: Option<String>,
}
