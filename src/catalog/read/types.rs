//! The types of columns, with what they are made of: base types, elements, labels.

use std::collections::HashMap;
use std::sync::Arc;

use pgformat::datum::array::ElementLayout;
use pgformat::ids::Oid;
use pgformat::layout::{AttrLen, AttributeLayout};
use postgres::{GenericClient, Row};

use super::bad_catalog;
use crate::error::Result;
use crate::types::{DomainDescription, EnumDescription, Label, TypeDescription, TypeKind};

/// Every type that these tables' columns are of or are made of. The input function tells
/// what it is; functions that are not the server's own are not looked at.
const TYPES: &str = "
WITH RECURSIVE part AS (
    SELECT DISTINCT atttypid AS oid FROM pg_catalog.pg_attribute
     WHERE attrelid = ANY ($1) AND attnum > 0 AND NOT attisdropped
    UNION
    SELECT x.oid
      FROM part p
      JOIN pg_catalog.pg_type t ON t.oid = p.oid
      CROSS JOIN LATERAL (
            SELECT t.typbasetype AS oid WHERE t.typtype = 'd'
            UNION ALL
            SELECT t.typelem WHERE t.typelem <> 0 AND t.typlen = -1) x
)
SELECT t.oid, pg_catalog.format_type(t.oid, NULL), t.typlen, t.typalign::text, t.typdelim::text,
       t.typelem, t.typbasetype, t.typtypmod, t.typnotnull,
       CASE WHEN l.lanname = 'internal' THEN f.prosrc ELSE '' END,
       t.oid::int8 >= $2
       AND EXISTS (SELECT FROM pg_catalog.pg_proc r
                    WHERE r.oid = t.typreceive AND (r.prosrc, r.prolang) = ('textrecv', l.oid)),
       ARRAY (SELECT k.conname::text FROM pg_catalog.pg_constraint k
               WHERE k.contypid = t.oid AND k.contype = 'c' ORDER BY 1)
  FROM part p
  JOIN pg_catalog.pg_type t ON t.oid = p.oid
  JOIN pg_catalog.pg_proc f ON f.oid = t.typinput
  JOIN pg_catalog.pg_language l ON l.oid = f.prolang";

/// The labels of enums in their order, and whether this transaction made each; `cmin` tells its
/// commands apart. A row that is seen is this transaction's if its xmin is one of a transaction
/// that is going on, or was not yet given when the snapshot was taken: subtransactions have
/// later ids than their top. More than 2^24 later is long before, ids being circular.
const LABELS: &str = "
SELECT e.enumtypid, e.oid, e.enumlabel::text,
       CASE WHEN d.later >= 16777216 OR d.later IS NULL THEN false
            WHEN s.own + d.later >= s.next THEN true
            ELSE pg_catalog.pg_xact_status((s.own + d.later)::text::pg_catalog.xid8)
                 IS NOT DISTINCT FROM 'in progress' END,
       e.cmin::text
  FROM pg_catalog.pg_enum e
  CROSS JOIN (SELECT pg_catalog.pg_current_xact_id_if_assigned()::text::pg_catalog.numeric AS own,
                     pg_catalog.pg_snapshot_xmax(pg_catalog.pg_current_snapshot())
                     ::text::pg_catalog.numeric AS next) s
  CROSS JOIN LATERAL (SELECT (e.xmin::text::pg_catalog.numeric - s.own % 4294967296
                              + 4294967296) % 4294967296 AS later) d
 WHERE e.enumtypid = ANY ($1)
 ORDER BY e.enumtypid, e.enumsortorder";

/// Reads the types of all columns of these tables, by their OIDs.
///
/// # Errors
/// `XX001` for a catalog that makes no sense.
pub(super) fn read(
    client: &mut impl GenericClient,
    tables: &[Oid],
) -> Result<HashMap<Oid, Arc<TypeDescription>>> {
    let rows = client.query(TYPES, &[&tables, &super::FIRST_NORMAL_OBJECT_ID])?;
    let enums: Vec<Oid> = rows
        .iter()
        .filter(|row| row.get::<_, &str>(9) == "enum_in")
        .map(|row| row.get(0))
        .collect();
    let mut reader = Reader {
        rows: rows.iter().map(|row| (row.get(0), row)).collect(),
        labels: if enums.is_empty() {
            HashMap::new()
        } else {
            labels(client, &enums)?
        },
        read: HashMap::new(),
    };
    for row in &rows {
        reader.describe(row.get(0))?;
    }
    Ok(reader.read)
}

/// The enums' labels.
fn labels(client: &mut impl GenericClient, enums: &[Oid]) -> Result<HashMap<Oid, EnumDescription>> {
    let rows = client.query(LABELS, &[&enums])?;
    let mut read = HashMap::new();
    for of_one in rows.chunk_by(|a, b| a.get::<_, Oid>(0) == b.get::<_, Oid>(0)) {
        let description = EnumDescription {
            labels: of_one
                .iter()
                .map(|row| Label {
                    oid: row.get(1),
                    name: row.get(2),
                })
                .collect(),
            has_uncommitted: has_uncommitted(of_one),
        };
        read.insert(of_one[0].get(0), description);
    }
    Ok(read)
}

/// Whether this transaction has added labels after the command that made the type: those the
/// server may refuse to use (`unsafe use of new value`).
fn has_uncommitted(labels: &[Row]) -> bool {
    let is_ours = |row: &Row| row.get::<_, bool>(3);
    let command = |row: &Row| row.get::<_, String>(4);
    match labels.iter().filter(|row| is_ours(row)).count() {
        0 => false,
        n if n < labels.len() => true,
        _ => labels.iter().any(|row| command(row) != command(&labels[0])),
    }
}

struct Reader<'a> {
    rows: HashMap<Oid, &'a Row>,
    labels: HashMap<Oid, EnumDescription>,
    read: HashMap<Oid, Arc<TypeDescription>>,
}

impl Reader<'_> {
    /// Describes a type, its parts first. The catalogs have no type that is made of itself.
    fn describe(&mut self, oid: Oid) -> Result<Arc<TypeDescription>> {
        if let Some(known) = self.read.get(&oid) {
            return Ok(Arc::clone(known));
        }
        let unknown = || bad_catalog("pg_type.oid", &oid.to_string());
        let row = *self.rows.get(&oid).ok_or_else(unknown)?;
        let name: String = row.get(1);
        let kind = match row.get(9) {
            "enum_in" => TypeKind::Enum(self.labels.remove(&oid).unwrap_or(EnumDescription {
                labels: Vec::new(),
                has_uncommitted: false,
            })),
            "domain_in" => TypeKind::Domain(DomainDescription {
                base: self.describe(row.get(6))?,
                typmod: row.get(7),
                not_null: row.get(8),
                checks: row.get(11),
            }),
            "array_in" => TypeKind::Array(self.describe(row.get(5))?),
            "textin" if row.get::<_, bool>(10) => TypeKind::LikeText,
            _ => TypeKind::Base,
        };
        let byte = |i: usize| row.get::<_, &str>(i).bytes().next().unwrap_or(0);
        let description = Arc::new(TypeDescription {
            oid,
            layout: ElementLayout {
                len: AttrLen::from_attlen(row.get(2))
                    .ok_or_else(|| bad_catalog("pg_type.typlen", &name))?,
                align: AttributeLayout::align_from_char(byte(3))
                    .ok_or_else(|| bad_catalog("pg_type.typalign", &name))?,
            },
            delimiter: byte(4),
            name,
            kind,
        });
        self.read.insert(oid, Arc::clone(&description));
        Ok(description)
    }
}
