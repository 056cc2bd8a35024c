//! Which leaf of a partitioned table a row goes to, by its key's values.
//!
//! ```text
//! t  RANGE (a)   (MINVALUE .. 10) -> low       [10 .. 20) -> high       default -> rest
//! high  LIST (b)                     'x', NULL -> high_x      'y' -> high_y
//! ```
//!
//! A row goes from table to table until it comes to a leaf; its values stay those of the root's
//! attributes all the way.
//!
//! PostgreSQL: `src/backend/executor/execPartition.c`, `ExecFindPartition`.

pub mod rows;
mod rule;

use super::plan::ServerView;
use super::plan::key_orders;
use crate::catalog::partitions::{PartitionTarget, PartitionTree, PartitionedTable};
use crate::catalog::{Column, Relation};
use crate::error::ValueError;
use crate::types::TypeKind;
use pgformat::datum::hash::HashFunction;
use rule::Rule;

/// The way through the tree of a partitioned table.
#[derive(Debug)]
pub struct Routing {
    tables: Vec<Table>,
    /// For each leaf, for each of its attributes: the root's attribute of the same name; `None`
    /// for dropped ones.
    pub leaf_attributes: Vec<Vec<Option<usize>>>,
}

/// A table of the tree that has partitions.
#[derive(Debug)]
struct Table {
    name: String,
    /// The root's attributes of its key.
    keys: Vec<usize>,
    rule: Rule,
}

/// A row that no partition takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NoPartition {
    /// The table that has none for it.
    table: usize,
}

impl Routing {
    /// The way through `tree`, the tree of `root`, or why rows are left to the server.
    pub fn new(
        root: &Relation,
        tree: &PartitionTree,
        server: &ServerView<'_>,
    ) -> Result<Routing, String> {
        let tables = tree
            .tables
            .iter()
            .map(|table| {
                plan_table(root, table, server)
                    .map_err(|reason| format!("rows of {} are routed by {reason}", table.name))
            })
            .collect::<Result<Vec<_>, String>>()?;
        let leaf_attributes = tree
            .leaves
            .iter()
            .map(|leaf| leaf_attributes(root, leaf))
            .collect::<Result<_, String>>()?;
        Ok(Routing {
            tables,
            leaf_attributes,
        })
    }

    /// The leaf of a row whose attributes are these, in stored form.
    ///
    /// # Errors
    /// The table that has no partition for it.
    #[inline]
    pub fn leaf<'v>(
        &self,
        attribute: impl Fn(usize) -> Option<&'v [u8]>,
    ) -> Result<usize, NoPartition> {
        let mut number = 0;
        loop {
            let table = &self.tables[number];
            match table.rule.partition(|key| attribute(table.keys[key])) {
                Some(PartitionTarget::Leaf(leaf)) => return Ok(leaf),
                Some(PartitionTarget::Table(next)) => number = next,
                None => return Err(NoPartition { table: number }),
            }
        }
    }

    /// What COPY says of such a row.
    ///
    /// PostgreSQL: `ExecBuildSlotPartitionKeyDescription`.
    #[cold]
    #[expect(
        clippy::unnecessary_box_returns,
        reason = "errors of a row are boxed everywhere"
    )]
    pub fn refusal<'v>(
        &self,
        refused: NoPartition,
        root: &Relation,
        attribute: impl Fn(usize) -> Option<&'v [u8]>,
    ) -> Box<ValueError> {
        let table = &self.tables[refused.table];
        let columns = table.keys.iter().map(|key| &root.columns[*key]);
        let names: Vec<String> = columns.clone().map(|c| shown_identifier(&c.name)).collect();
        let values: Vec<String> = columns
            .zip(&table.keys)
            .map(|(column, key)| match attribute(*key) {
                None => "null".to_owned(),
                stored => super::pack::clip(&column.output(stored), 64),
            })
            .collect();
        ValueError::new(
            "23514",
            format!("no partition of relation \"{}\" found for row", table.name),
        )
        .with_detail(format!(
            "Partition key of the failing row contains ({}) = ({}).",
            names.join(", "),
            values.join(", ")
        ))
    }
}

/// A name as the server shows it in a key: quoted where SQL needs it.
fn shown_identifier(name: &str) -> String {
    let is_plain = !name.is_empty()
        && !name.starts_with(|c: char| c.is_ascii_digit())
        && (name.bytes()).all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_');
    if is_plain {
        name.to_owned()
    } else {
        crate::catalog::quote_ident(name)
    }
}

fn column_of(root: &Relation, name: &str) -> Option<usize> {
    let mut columns = root.columns.iter();
    columns.position(|c: &Column| !c.dropped && c.name == name)
}

/// One table's part, or why there is none, as a phrase.
fn plan_table(
    root: &Relation,
    table: &PartitionedTable,
    server: &ServerView<'_>,
) -> Result<Table, String> {
    let mut keys = Vec::new();
    let mut orders = Vec::new();
    let mut functions = Vec::new();
    let libc_version = crate::sys::collate::libc_version();
    let known = key_orders(server, &libc_version);
    for key in &table.keys {
        let name = key.column.as_ref().ok_or("an expression")?;
        let number = column_of(root, name)
            .ok_or_else(|| format!("column {name}, which is not the root's"))?;
        let description = root.columns[number].description.as_deref();
        let of_column = |reason: String| format!("column {name}: {reason}");
        if table.strategy == 'h' {
            let function = hash_function(key, description.map(|d| &d.base().kind));
            functions.push(function.map_err(of_column)?);
        } else {
            let order = known.of_key(
                (&key.opclass, key.opclass_is_core),
                key.collation.as_ref(),
                description,
            );
            orders.push(order.map_err(of_column)?);
        }
        keys.push(number);
    }
    let rule = match table.strategy {
        'l' => Rule::list(orders, &table.partitions)?,
        'r' => Rule::range(orders, &table.partitions)?,
        'h' => Rule::hash(functions, &table.partitions)?,
        other => return Err(format!("strategy '{other}'")),
    };
    Ok(Table {
        name: table.name.clone(),
        keys,
        rule,
    })
}

fn hash_function(
    key: &crate::catalog::partitions::PartitionKey,
    kind: Option<&TypeKind>,
) -> Result<HashFunction, String> {
    let opclass = &key.opclass;
    if !key.opclass_is_core {
        return Err(format!(
            "its operator class {opclass} is not one of the core"
        ));
    }
    if let Some(collation) = key.collation.as_ref().filter(|c| !c.deterministic) {
        return Err(format!(
            "collation \"{}\" is not deterministic",
            collation.name
        ));
    }
    match kind {
        Some(TypeKind::Array(_)) => None,
        _ => HashFunction::of_opclass(opclass),
    }
    .ok_or_else(|| format!("the hash of operator class {opclass} is not known"))
}

/// For each attribute of a leaf the root's of the same name.
fn leaf_attributes(root: &Relation, leaf: &Relation) -> Result<Vec<Option<usize>>, String> {
    let of_column = |column: &Column| {
        if column.dropped {
            return Ok(None);
        }
        column_of(root, &column.name).map(Some).ok_or_else(|| {
            format!(
                "partition {} has a column {} of its own",
                leaf.name, column.name
            )
        })
    };
    leaf.columns.iter().map(of_column).collect()
}
