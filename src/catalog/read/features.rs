//! What a table has beside columns and indexes: triggers, rules, constraints, relatives.

use pgformat::ids::Oid;
use postgres::GenericClient;

use super::super::Features;
use crate::error::Result;

/// Bits of pg_trigger.tgtype. PostgreSQL: `src/include/catalog/pg_trigger.h`.
const TRIGGER_TYPE_INSERT: i32 = 1 << 2;
const TRIGGER_TYPE_TRUNCATE: i32 = 1 << 5;

/// The first OID that initdb never gives. PostgreSQL: `src/include/access/transam.h`,
/// `FirstNormalObjectId`.
const FIRST_NORMAL_OBJECT_ID: i64 = 16384;

/// One query; every list is ordered by name, so that two readings compare.
///
/// pg_constraint.conenforced is 18's: reading it through `to_jsonb` gives NULL on older
/// servers, where every constraint is enforced.
const QUERY: &str = "
WITH RECURSIVE me AS (
    SELECT * FROM pg_catalog.pg_class WHERE oid = $1
), firing AS (
    SELECT t.tgname::text AS name, t.tgtype::int4 AS type
      FROM pg_catalog.pg_trigger t
     WHERE t.tgrelid = $1 AND NOT t.tgisinternal
       AND t.tgenabled IN ('A', CASE pg_catalog.current_setting('session_replication_role')
                                     WHEN 'replica' THEN 'R' ELSE 'O' END)
), enforced AS (
    SELECT k.*
      FROM pg_catalog.pg_constraint k
     WHERE (k.conrelid = $1 OR k.confrelid = $1)
       AND coalesce((pg_catalog.to_jsonb(k) ->> 'conenforced')::bool, true)
), part AS (
    SELECT a.attname::text AS attname, a.atttypid AS type
      FROM pg_catalog.pg_attribute a
     WHERE a.attrelid = $1 AND a.attnum > 0 AND NOT a.attisdropped
    UNION
    SELECT p.attname, x.type
      FROM part p
      JOIN pg_catalog.pg_type t ON t.oid = p.type
      CROSS JOIN LATERAL (
            SELECT t.typbasetype AS type WHERE t.typtype = 'd'
            UNION ALL
            SELECT t.typelem WHERE t.typelem <> 0 AND t.typlen = -1
            UNION ALL
            SELECT r.rngsubtype FROM pg_catalog.pg_range r
             WHERE r.rngtypid = t.oid OR
                   (pg_catalog.to_jsonb(r) ->> 'rngmultitypid')::oid = t.oid
            UNION ALL
            SELECT a.atttypid FROM pg_catalog.pg_attribute a
             WHERE t.typtype = 'c' AND a.attrelid = t.typrelid
               AND a.attnum > 0 AND NOT a.attisdropped) x
)
SELECT ARRAY(SELECT name FROM firing WHERE type & $2 <> 0 ORDER BY 1),
       ARRAY(SELECT name FROM firing WHERE type & $3 <> 0 ORDER BY 1),
       ARRAY(SELECT rulename::text FROM pg_catalog.pg_rewrite
              WHERE ev_class = $1 AND rulename <> '_RETURN' AND ev_enabled <> 'D' ORDER BY 1),
       ARRAY(SELECT conname::text FROM enforced
              WHERE conrelid = $1 AND contype = 'c' ORDER BY 1),
       ARRAY(SELECT DISTINCT p.attname || ': ' || pg_catalog.format_type(t.oid, NULL)
               FROM part p JOIN pg_catalog.pg_type t ON t.oid = p.type
              WHERE t.typtype = 'd'
                AND (t.typnotnull OR EXISTS (SELECT FROM pg_catalog.pg_constraint k
                                              WHERE k.contypid = t.oid AND k.contype = 'c'))
              ORDER BY 1),
       ARRAY(SELECT conname::text FROM enforced
              WHERE conrelid = $1 AND contype = 'f' ORDER BY 1),
       ARRAY(SELECT DISTINCT pg_catalog.quote_ident(n.nspname) || '.'
                             || pg_catalog.quote_ident(c.relname)
               FROM pg_catalog.pg_constraint k
               JOIN pg_catalog.pg_class c ON c.oid = k.conrelid
               JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
              WHERE k.confrelid = $1 AND k.contype = 'f' ORDER BY 1),
       ARRAY(SELECT conname::text FROM enforced
              WHERE conrelid = $1 AND contype = 'x' ORDER BY 1),
       CASE WHEN me.relispartition
            THEN coalesce(pg_catalog.pg_get_partition_constraintdef($1), 'true') END,
       me.relrowsecurity AND pg_catalog.row_security_active($1),
       me.oid::int8 < $4
         OR me.relnamespace = 'pg_catalog'::pg_catalog.regnamespace
         OR me.relnamespace = 'pg_toast'::pg_catalog.regnamespace,
       EXISTS (SELECT FROM pg_catalog.pg_inherits WHERE inhparent = $1)
  FROM me";

/// Reads the features of a relation that exists.
pub(super) fn read(client: &mut impl GenericClient, oid: Oid) -> Result<Features> {
    let row = client.query_one(
        QUERY,
        &[
            &oid,
            &TRIGGER_TYPE_INSERT,
            &TRIGGER_TYPE_TRUNCATE,
            &FIRST_NORMAL_OBJECT_ID,
        ],
    )?;
    Ok(Features {
        insert_triggers: row.get(0),
        truncate_triggers: row.get(1),
        rules: row.get(2),
        checks: row.get(3),
        domain_checks: row.get(4),
        foreign_keys: row.get(5),
        referenced_by: row.get(6),
        exclusions: row.get(7),
        partition_constraint: row.get(8),
        row_security: row.get(9),
        system_catalog: row.get(10),
        has_children: row.get(11),
    })
}
