//! What the catalogs tell of defaults, generated columns and sequences.
//!
//! How volatile an expression is follows from its node tree: the functions in it, and whether
//! all its nodes are of kinds whose volatility is that of their functions. Constants stand in
//! a tree as numbers, so no text of a user can look like a node.

use std::collections::HashMap;

use pgformat::ids::Oid;
use postgres::GenericClient;

use super::super::{Column, Expression, Sequence, SequenceState, Volatility};
use crate::error::Result;

/// Node kinds that are no more volatile than the functions in them, by all names they have from
/// 14 to 18. PostgreSQL: `src/backend/nodes/outfuncs.c`; `src/backend/optimizer/util/clauses.c`,
/// `contain_volatile_functions`.
const QUIET_NODES: &[&str] = &[
    "ARRAY",
    "ARRAYCOERCEEXPR",
    "ARRAYEXPR",
    "BOOLEANTEST",
    "BOOLEXPR",
    "CASE",
    "CASEEXPR",
    "CASETESTEXPR",
    "CASEWHEN",
    "COALESCE",
    "COALESCEEXPR",
    "COLLATE",
    "COLLATEEXPR",
    "CONST",
    "DISTINCTEXPR",
    "FUNCEXPR",
    "MINMAX",
    "MINMAXEXPR",
    "NULLIFEXPR",
    "NULLTEST",
    "OPEXPR",
    "RELABELTYPE",
    "SCALARARRAYOPEXPR",
    "VAR",
    "WHEN",
];

/// Node kinds that are stable at the most.
const STABLE_NODES: &[&str] = &["COERCETODOMAIN", "COERCEVIAIO", "SQLVALUEFUNCTION"];

/// pg_proc.oid of nextval, currval, both setvals and lastval.
const SEQUENCE_FUNCTIONS: &[Oid] = &[NEXTVAL, 1575, 1576, 1765, 2559];
const NEXTVAL: Oid = 1574;
/// pg_proc.oid of int4(int8) and int2(int8).
const INTEGER_CASTS: &[Oid] = &[480, 714];

const EXPRESSIONS: &str = "
SELECT a.attrelid, a.attnum, e.tree IS NOT NULL,
       ARRAY (SELECT DISTINCT m[1]
                FROM pg_catalog.regexp_matches(e.tree, '[{]([A-Z0-9_]+)', 'g') AS m),
       f.oids,
       (SELECT pg_catalog.max(pg_catalog.strpos('isv', p.provolatile::pg_catalog.text))
          FROM pg_catalog.pg_proc p WHERE p.oid = ANY (f.oids)),
       (SELECT pg_catalog.count(*) FROM pg_catalog.pg_proc p WHERE p.oid = ANY (f.oids)),
       ARRAY (SELECT DISTINCT m[1]::pg_catalog.int2
                FROM pg_catalog.regexp_matches(e.tree, ':varattno (-?[0-9]+)', 'g') AS m),
       coalesce((SELECT k.objid FROM pg_catalog.pg_depend k
                  WHERE a.attidentity <> '' AND k.deptype = 'i'
                    AND k.classid = 'pg_catalog.pg_class'::pg_catalog.regclass
                    AND k.refclassid = 'pg_catalog.pg_class'::pg_catalog.regclass
                    AND k.refobjid = a.attrelid AND k.refobjsubid = a.attnum
                  LIMIT 1),
                (SELECT k.refobjid FROM pg_catalog.pg_depend k
                   JOIN pg_catalog.pg_class s ON s.oid = k.refobjid AND s.relkind = 'S'
                  WHERE k.classid = 'pg_catalog.pg_attrdef'::pg_catalog.regclass
                    AND k.refclassid = 'pg_catalog.pg_class'::pg_catalog.regclass
                    AND k.objid = d.oid
                  ORDER BY k.refobjid LIMIT 1))
  FROM pg_catalog.pg_attribute a
  JOIN pg_catalog.pg_type t ON t.oid = a.atttypid
  LEFT JOIN pg_catalog.pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
  CROSS JOIN LATERAL (SELECT coalesce(d.adbin, t.typdefaultbin)::pg_catalog.text) AS e (tree)
  CROSS JOIN LATERAL (
       SELECT ARRAY (SELECT DISTINCT m[1]::pg_catalog.oid
                       FROM pg_catalog.regexp_matches(
                                e.tree, ':(?:funcid|opfuncid|elemfuncid) ([0-9]+)', 'g') AS m)
       ) AS f (oids)
 WHERE a.attrelid = ANY ($1) AND a.attnum > 0 AND NOT a.attisdropped
   AND (e.tree IS NOT NULL OR a.attidentity <> '')";

/// Adds to the columns what is known of their defaults.
pub(super) fn read(
    client: &mut impl GenericClient,
    oids: &[Oid],
    columns: &mut HashMap<Oid, Vec<Column>>,
) -> Result<()> {
    let rows = client.query(EXPRESSIONS, &[&oids])?;
    let mut wanted: Vec<Oid> = rows.iter().filter_map(|row| row.get(8)).collect();
    wanted.sort_unstable();
    wanted.dedup();
    let definitions: HashMap<Oid, Sequence> = sequences(client, &wanted)?
        .into_iter()
        .map(|sequence| (sequence.oid, sequence))
        .collect();
    for row in &rows {
        let attnum: i16 = row.get(1);
        let Some(column) = columns
            .get_mut(&row.get::<_, Oid>(0))
            .and_then(|columns| columns.get_mut(attnum as usize - 1))
        else {
            continue;
        };
        let sequence: Option<Oid> = row.get(8);
        column.sequence = sequence.and_then(|oid| definitions.get(&oid).cloned());
        if row.get(2) {
            let is_named = column.sequence.is_some();
            column.expression = Some(expression(row, is_named));
        }
    }
    Ok(())
}

fn expression(row: &postgres::Row, names_a_sequence: bool) -> Expression {
    let nodes: Vec<String> = row.get(3);
    let functions: Vec<Oid> = row.get(4);
    let of_functions: Option<i32> = row.get(5);
    let known: i64 = row.get(6);
    let is = |node: &String, list: &[&str]| list.contains(&node.as_str());
    let all_known = known == functions.len() as i64
        && nodes
            .iter()
            .all(|n| is(n, QUIET_NODES) || is(n, STABLE_NODES));
    let volatility = match of_functions {
        _ if !all_known => Volatility::Volatile,
        Some(3) => Volatility::Volatile,
        Some(2) => Volatility::Stable,
        _ if nodes.iter().any(|n| is(n, STABLE_NODES)) => Volatility::Stable,
        _ => Volatility::Immutable,
    };
    let is_nextval = names_a_sequence
        && functions.contains(&NEXTVAL)
        && functions
            .iter()
            .all(|f| *f == NEXTVAL || INTEGER_CASTS.contains(f))
        && nodes.iter().all(|n| is(n, &["FUNCEXPR", "CONST"]));
    Expression {
        volatility,
        references: row.get(7),
        is_nextval,
        touches_sequences: functions.iter().any(|f| SEQUENCE_FUNCTIONS.contains(f)),
    }
}

/// The definitions of sequences, in the order of their OIDs.
pub fn sequences(client: &mut impl GenericClient, oids: &[Oid]) -> Result<Vec<Sequence>> {
    if oids.is_empty() {
        return Ok(Vec::new());
    }
    let rows = client.query(
        "SELECT c.oid, n.nspname::pg_catalog.text, c.relname::pg_catalog.text,
                s.seqincrement, s.seqmin, s.seqmax, s.seqcache, s.seqcycle
           FROM pg_catalog.pg_sequence s
           JOIN pg_catalog.pg_class c ON c.oid = s.seqrelid
           JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
          WHERE c.oid = ANY ($1)
          ORDER BY c.oid",
        &[&oids],
    )?;
    Ok(rows
        .iter()
        .map(|row| Sequence {
            oid: row.get(0),
            schema: row.get(1),
            name: row.get(2),
            increment: row.get(3),
            min: row.get(4),
            max: row.get(5),
            cache: row.get(6),
            cycle: row.get(7),
        })
        .collect())
}

/// Where sequences stand, in their order.
pub fn sequence_states(
    client: &mut impl GenericClient,
    sequences: &[&Sequence],
) -> Result<Vec<SequenceState>> {
    sequences
        .iter()
        .map(|sequence| {
            let query = format!(
                "SELECT last_value, is_called FROM {}",
                sequence.qualified_name()
            );
            let row = client.query_one(&query, &[])?;
            Ok(SequenceState {
                last_value: row.get(0),
                is_called: row.get(1),
            })
        })
        .collect()
}
