//! The tree of a partitioned table: how its rows find their way to the tables that hold them.

use super::{Collation, Relation};

/// A partitioned table with all below it.
#[derive(Debug, Clone, PartialEq)]
pub struct PartitionTree {
    /// The partitioned tables; the first is the root.
    pub tables: Vec<PartitionedTable>,
    /// The partitions that have no partitions.
    pub leaves: Vec<Relation>,
}

/// A table of the tree that has a partition key.
#[derive(Debug, Clone, PartialEq)]
pub struct PartitionedTable {
    /// Its name, unqualified.
    pub name: String,
    /// pg_partitioned_table.partstrat: `l`, `r` or `h`.
    pub strategy: char,
    /// Its key.
    pub keys: Vec<PartitionKey>,
    /// Its partitions.
    pub partitions: Vec<Partition>,
}

/// A column of a partition key.
#[derive(Debug, Clone, PartialEq)]
pub struct PartitionKey {
    /// The column's name; `None` for an expression.
    pub column: Option<String>,
    /// Name of the operator class (of hash for a hash key, else of btree), unqualified.
    pub opclass: String,
    /// The operator class stands in pg_catalog.
    pub opclass_is_core: bool,
    /// The key's collation; `None` where the type has none.
    pub collation: Option<Collation>,
}

/// A partition of a partitioned table.
#[derive(Debug, Clone, PartialEq)]
pub struct Partition {
    /// Which rows it takes.
    pub bound: PartitionBound,
    /// What it is.
    pub target: PartitionTarget,
}

/// Where rows go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PartitionTarget {
    /// To one of [`PartitionTree::tables`], to be routed on.
    Table(usize),
    /// To one of [`PartitionTree::leaves`].
    Leaf(usize),
}

/// The rows that a partition takes; values are in stored form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PartitionBound {
    /// Those that no other takes.
    Default,
    /// `FOR VALUES IN`; `None` is null.
    List(Vec<Option<Vec<u8>>>),
    /// `FOR VALUES FROM ... TO`.
    Range {
        /// The lower bound, which belongs to it.
        lower: Vec<RangeEdge>,
        /// The upper bound, which does not.
        upper: Vec<RangeEdge>,
    },
    /// `FOR VALUES WITH`.
    Hash {
        /// MODULUS.
        modulus: u32,
        /// REMAINDER.
        remainder: u32,
    },
}

/// A column's part in the bound of a range.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RangeEdge {
    /// MINVALUE.
    Least,
    /// A value.
    Value(Vec<u8>),
    /// MAXVALUE.
    Greatest,
}
