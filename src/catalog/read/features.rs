//! What a table has beside columns and indexes: triggers, rules, constraints, relatives.

use std::collections::HashMap;

use pgformat::ids::Oid;
use postgres::GenericClient;

use super::super::{Features, TRIGGER_TYPE_INSERT, TRIGGER_TYPE_TRUNCATE};
use super::{FIRST_NORMAL_OBJECT_ID, constraints};
use crate::error::Result;

/// The features that are lists, as rows of a table's OID, the list and a name.
///
/// Every list is ordered by name, so that two readings compare. A partitioned table's triggers are
/// its partitions' too.
const LISTS: &str = "
WITH whole_table AS (
    SELECT o.oid, coalesce(p.relid::pg_catalog.oid, o.oid) AS part
      FROM pg_catalog.unnest($1::pg_catalog.oid[]) AS o (oid)
      LEFT JOIN LATERAL pg_catalog.pg_partition_tree(o.oid::pg_catalog.regclass) p ON true
)
SELECT oid, list, name FROM (
    SELECT DISTINCT w.oid, l.list, t.tgname::text AS name
      FROM whole_table w
      JOIN pg_catalog.pg_trigger t ON t.tgrelid = w.part
     CROSS JOIN (VALUES ('insert', $2::pg_catalog.int4), ('truncate', $3)) AS l (list, mask)
     WHERE NOT t.tgisinternal
       AND t.tgenabled IN ('A', CASE pg_catalog.current_setting('session_replication_role')
                                     WHEN 'replica' THEN 'R' ELSE 'O' END)
       AND t.tgtype::int4 & l.mask <> 0
    UNION ALL
    SELECT ev_class, 'rule', rulename::text FROM pg_catalog.pg_rewrite
     WHERE ev_class = ANY ($1) AND rulename <> '_RETURN' AND ev_enabled <> 'D'
    UNION ALL
    SELECT k.conrelid, 'exclusion', k.conname::text FROM pg_catalog.pg_constraint k
     WHERE k.conrelid = ANY ($1) AND k.contype = 'x'
    UNION ALL
    SELECT DISTINCT k.confrelid, 'referenced', pg_catalog.quote_ident(n.nspname) || '.'
                                               || pg_catalog.quote_ident(c.relname)
      FROM pg_catalog.pg_constraint k
      JOIN pg_catalog.pg_class c ON c.oid = k.conrelid
      JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
     WHERE k.confrelid = ANY ($1) AND k.contype = 'f'
) AS item
ORDER BY oid, list, name";

/// The features that each relation has one of.
const SINGLES: &str = "
SELECT c.oid,
       CASE WHEN c.relispartition
            THEN coalesce(pg_catalog.pg_get_partition_constraintdef(c.oid), 'true') END,
       c.relrowsecurity AND pg_catalog.row_security_active(c.oid),
       c.oid::int8 < $2
         OR c.relnamespace = 'pg_catalog'::pg_catalog.regnamespace
         OR c.relnamespace = 'pg_toast'::pg_catalog.regnamespace,
       EXISTS (SELECT FROM pg_catalog.pg_inherits WHERE inhparent = c.oid)
  FROM pg_catalog.pg_class c
 WHERE c.oid = ANY ($1)";

/// Reads the features of relations.
pub(super) fn read(
    client: &mut impl GenericClient,
    oids: &[Oid],
    version_num: i32,
) -> Result<HashMap<Oid, Features>> {
    let mut features: HashMap<Oid, Features> = client
        .query(SINGLES, &[&oids, &FIRST_NORMAL_OBJECT_ID])?
        .iter()
        .map(|row| {
            let of_table = Features {
                partition_constraint: row.get(1),
                row_security: row.get(2),
                system_catalog: row.get(3),
                has_children: row.get(4),
                ..Features::default()
            };
            (row.get(0), of_table)
        })
        .collect();
    let rows = client.query(
        LISTS,
        &[&oids, &TRIGGER_TYPE_INSERT, &TRIGGER_TYPE_TRUNCATE],
    )?;
    for row in &rows {
        let Some(of_table) = features.get_mut(&row.get::<_, Oid>(0)) else {
            continue;
        };
        let list = match row.get(1) {
            "insert" => &mut of_table.insert_triggers,
            "truncate" => &mut of_table.truncate_triggers,
            "rule" => &mut of_table.rules,
            "exclusion" => &mut of_table.exclusions,
            "referenced" => &mut of_table.referenced_by,
            other => unreachable!("the query has no list {other}"),
        };
        list.push(row.get(2));
    }
    for (table, check) in constraints::checks(client, oids, version_num)? {
        if let Some(of_table) = features.get_mut(&table) {
            of_table.checks.push(check);
        }
    }
    for (table, check) in constraints::domain_checks(client, oids)? {
        if let Some(of_table) = features.get_mut(&table) {
            of_table.domain_checks.push(check);
        }
    }
    for (table, foreign_key) in constraints::foreign_keys(client, oids, version_num)? {
        if let Some(of_table) = features.get_mut(&table) {
            of_table.foreign_keys.push(foreign_key);
        }
    }
    Ok(features)
}
