//! Reads the tree of a partitioned table.
//!
//! The bounds are read from the nodes that pg_class.relpartbound holds, in which the server wrote
//! every value byte by byte as it stores it: nothing is evaluated or parsed by its type.

use std::collections::HashMap;

use pgformat::ids::Oid;
use postgres::{GenericClient, Row};

use super::indexes::collation;
use super::one_char;
use crate::catalog::partitions::{
    Partition, PartitionBound, PartitionKey, PartitionTarget, PartitionedTable, RangeEdge,
};
use crate::catalog::{Collation, PartitionTree};
use crate::error::{Class, Error, Result};

/// Each relation of the tree, parents before their partitions.
const TREE: &str = "
SELECT t.relid::pg_catalog.oid, coalesce(t.parentrelid::pg_catalog.oid, 0), c.relname::text,
       c.relkind::text, c.relpartbound::text, coalesce(p.partstrat::text, ''),
       k.columns, k.opclasses, k.core, k.collations
  FROM pg_catalog.pg_partition_tree($1::pg_catalog.oid::pg_catalog.regclass) t
  JOIN pg_catalog.pg_class c ON c.oid = t.relid
  LEFT JOIN pg_catalog.pg_partitioned_table p ON p.partrelid = c.oid
 CROSS JOIN LATERAL (
       SELECT pg_catalog.array_agg(a.attname::text ORDER BY x.n) AS columns,
              pg_catalog.array_agg(o.opcname::text ORDER BY x.n) AS opclasses,
              pg_catalog.array_agg(n.nspname = 'pg_catalog' ORDER BY x.n) AS core,
              pg_catalog.array_agg(x.collation_oid ORDER BY x.n) AS collations
         FROM ROWS FROM (pg_catalog.unnest(p.partattrs::pg_catalog.int2[]),
                         pg_catalog.unnest(p.partclass::pg_catalog.oid[]),
                         pg_catalog.unnest(p.partcollation::pg_catalog.oid[]))
              WITH ORDINALITY AS x (attnum, opclass, collation_oid, n)
         JOIN pg_catalog.pg_opclass o ON o.oid = x.opclass
         JOIN pg_catalog.pg_namespace n ON n.oid = o.opcnamespace
         LEFT JOIN pg_catalog.pg_attribute a
           ON a.attrelid = c.oid AND a.attnum = x.attnum AND x.attnum > 0) k
 ORDER BY t.level, t.relid";

/// The tree of the partitioned table `root`. The leaves are as [`super::relations`] reads them.
///
/// # Errors
/// The server's.
pub fn partition_tree(
    client: &mut impl GenericClient,
    root: Oid,
    with_size: bool,
) -> Result<PartitionTree> {
    let rows = client.query(TREE, &[&root])?;
    let mut collations: HashMap<Oid, Collation> = HashMap::new();
    let mut tables: Vec<PartitionedTable> = Vec::new();
    let mut leaves: Vec<Oid> = Vec::new();
    let mut numbers: HashMap<Oid, usize> = HashMap::new();
    for row in &rows {
        let (oid, parent): (Oid, Oid) = (row.get(0), row.get(1));
        let target = if one_char(row, 3) == 'p' {
            numbers.insert(oid, tables.len());
            tables.push(PartitionedTable {
                name: row.get(2),
                strategy: one_char(row, 5),
                keys: keys(client, row, &mut collations)?,
                partitions: Vec::new(),
            });
            PartitionTarget::Table(tables.len() - 1)
        } else {
            leaves.push(oid);
            PartitionTarget::Leaf(leaves.len() - 1)
        };
        if oid == root {
            continue;
        }
        let nodes: &str = row.get::<_, Option<&str>>(4).unwrap_or_default();
        let bound = bound(nodes).ok_or_else(|| {
            Error::new(
                Class::Corruption,
                "XX001",
                format!(
                    "unexpected value of pg_class.relpartbound for \"{}\"",
                    row.get::<_, &str>(2)
                ),
            )
        })?;
        // One that was attached meanwhile is not below a table that was read.
        if let Some(number) = numbers.get(&parent) {
            tables[*number].partitions.push(Partition { bound, target });
        }
    }
    Ok(PartitionTree {
        tables,
        leaves: super::relations(client, &leaves, with_size)?,
    })
}

/// The columns of a partition key.
fn keys(
    client: &mut impl GenericClient,
    row: &Row,
    collations: &mut HashMap<Oid, Collation>,
) -> Result<Vec<PartitionKey>> {
    let columns: Vec<Option<String>> = row.get(6);
    let opclasses: Vec<String> = row.get(7);
    let core: Vec<bool> = row.get(8);
    let collation_oids: Vec<Oid> = row.get(9);
    let mut keys = Vec::with_capacity(columns.len());
    for (((column, opclass), opclass_is_core), oid) in columns
        .into_iter()
        .zip(opclasses)
        .zip(core)
        .zip(collation_oids)
    {
        if oid != 0 && !collations.contains_key(&oid) {
            collations.insert(oid, collation(client, oid)?);
        }
        keys.push(PartitionKey {
            column,
            opclass,
            opclass_is_core,
            collation: collations.get(&oid).cloned(),
        });
    }
    Ok(keys)
}

/// A bound from its nodes; `None` when they are not as a server writes them.
///
/// PostgreSQL: `src/include/nodes/parsenodes.h`, `PartitionBoundSpec` and `PartitionRangeDatum`;
/// `src/backend/nodes/outfuncs.c`, `_outConst`.
fn bound(nodes: &str) -> Option<PartitionBound> {
    let spaced = nodes.replace('{', " { ").replace('}', " } ");
    let spaced = spaced.replace('(', " ( ").replace(')', " ) ");
    let mut words = spaced.split_ascii_whitespace();
    let (mut strategy, mut is_default) = ("", false);
    let (mut modulus, mut remainder) = (0, 0);
    let mut values = Vec::new();
    let (mut lower, mut upper) = (Vec::new(), Vec::new());
    let mut section = "";
    while let Some(word) = words.next() {
        match word {
            ":strategy" => strategy = words.next()?,
            ":is_default" => is_default = words.next()? == "true",
            ":modulus" => modulus = words.next()?.parse().ok()?,
            ":remainder" => remainder = words.next()?.parse().ok()?,
            ":listdatums" | ":lowerdatums" | ":upperdatums" => section = word,
            ":kind" => {
                let edge = match words.next()? {
                    "-1" => RangeEdge::Least,
                    "1" => RangeEdge::Greatest,
                    _ => continue,
                };
                match section {
                    ":lowerdatums" => lower.push(edge),
                    _ => upper.push(edge),
                }
            }
            ":constvalue" => {
                let value = constant(&mut words)?;
                match (section, value) {
                    (":listdatums", Constant::Null) => values.push(None),
                    (":listdatums", Constant::Value(value)) => values.push(Some(value)),
                    (":lowerdatums", Constant::Value(value)) => {
                        lower.push(RangeEdge::Value(value));
                    }
                    (":upperdatums", Constant::Value(value)) => {
                        upper.push(RangeEdge::Value(value));
                    }
                    _ => return None,
                }
            }
            _ => {}
        }
    }
    Some(match strategy {
        _ if is_default => PartitionBound::Default,
        "l" => PartitionBound::List(values),
        "r" => PartitionBound::Range { lower, upper },
        "h" => PartitionBound::Hash { modulus, remainder },
        _ => return None,
    })
}

/// A constant of a bound.
enum Constant {
    Null,
    Value(Vec<u8>),
}

/// The bytes of a constant, to the end of them: `<>` for null, else `4 [ 10 0 0 0 0 0 0 0 ]`: how many there are,
/// then them, one with a sign each; a value that is passed by value has eight, whatever its
/// length.
fn constant<'w>(words: &mut impl Iterator<Item = &'w str>) -> Option<Constant> {
    let len = match words.next()? {
        "<>" => return Some(Constant::Null),
        len => len.parse().ok()?,
    };
    if words.next()? != "[" {
        return None;
    }
    let mut bytes = Vec::new();
    loop {
        match words.next()? {
            "]" => break,
            byte => bytes.push(byte.parse::<i16>().ok()? as u8),
        }
    }
    (bytes.len() >= len).then(|| {
        bytes.truncate(len);
        Constant::Value(bytes)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bound_of_a_range_is_read_from_its_nodes() {
        let nodes = "{PARTITIONBOUNDSPEC :strategy r :is_default false :modulus 0 :remainder 0 \
            :listdatums <> :lowerdatums ({PARTITIONRANGEDATUM :kind 0 :value {CONST :consttype 23 \
            :consttypmod -1 :constcollid 0 :constlen 4 :constbyval true :constisnull false \
            :location -1 :constvalue 4 [ -10 -1 -1 -1 -1 -1 -1 -1 ]} :location 75} \
            {PARTITIONRANGEDATUM :kind -1 :value <> :location 80}) :upperdatums \
            ({PARTITIONRANGEDATUM :kind 1 :value <> :location 83} {PARTITIONRANGEDATUM :kind 1 \
            :value <> :location 93}) :location 60}";
        assert_eq!(
            bound(nodes),
            Some(PartitionBound::Range {
                lower: vec![
                    RangeEdge::Value((-10_i32).to_le_bytes().to_vec()),
                    RangeEdge::Least
                ],
                upper: vec![RangeEdge::Greatest, RangeEdge::Greatest],
            })
        );
    }

    #[test]
    fn the_bound_of_a_list_has_its_null() {
        let nodes = "{PARTITIONBOUNDSPEC :strategy l :is_default false :modulus 0 :remainder 0 \
            :listdatums ({CONST :constisnull false :constvalue 5 [ 20 0 0 0 120 ]} \
            {CONST :constisnull true :constvalue <>}) :lowerdatums <> :upperdatums <>}";
        let values = vec![Some(vec![20, 0, 0, 0, b'x']), None];
        assert_eq!(bound(nodes), Some(PartitionBound::List(values)));
    }

    #[test]
    fn what_no_server_writes_is_no_bound() {
        for nodes in [
            "",
            "{PARTITIONBOUNDSPEC :strategy",
            "{PARTITIONBOUNDSPEC :strategy x :is_default false}",
            "{PARTITIONBOUNDSPEC :strategy l :listdatums ({CONST :constvalue 5 [ 1 2 ]})}",
            "{PARTITIONBOUNDSPEC :strategy l :listdatums ({CONST :constvalue 1 [ 1",
        ] {
            assert_eq!(bound(nodes), None, "{nodes}");
        }
    }
}
