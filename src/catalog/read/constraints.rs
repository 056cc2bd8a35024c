//! CHECK constraints and foreign keys of tables, as queries over rows need them.
//!
//! A CHECK constraint can be evaluated after all rows are in place when it cannot tell: it calls
//! nothing volatile, and nothing that may read tables. The functions it calls stand in its
//! stored tree of nodes, `pg_constraint.conbin`.

use pgformat::ids::Oid;
use postgres::GenericClient;

use super::super::{Check, DomainCheck, ForeignKey, ReferencedTable};
use super::functions::{self, Called, Telling};
use crate::error::Result;

/// `{enforced}` stands for pg_constraint.conenforced, which is 18's.
const CHECKS: &str = r"
SELECT k.conrelid, k.conname::text,
       coalesce(pg_catalog.pg_get_expr(k.conbin, k.conrelid), 'true'),
       {called}
  FROM pg_catalog.pg_constraint k
 WHERE k.conrelid = ANY ($1) AND k.contype = 'c' AND {enforced}
 ORDER BY k.conrelid, k.conname";

/// The constraints of a domain below come first. `VALUE` is of the type that the domain is over,
/// with that one's collation.
///
/// The domain of a domain's `VALUE` is not said in the text of its condition, which matters to
/// functions only.
///
/// PostgreSQL: src/backend/utils/cache/typcache.c, `load_domaintype_info`;
/// src/backend/commands/typecmds.c, `domainAddCheckConstraint`.
const DOMAIN_CHECKS: &str = r"
WITH RECURSIVE chain AS (
    SELECT a.attrelid, a.attnum, a.attname, a.atttypid AS whole, a.atttypid AS oid, 0 AS depth
      FROM pg_catalog.pg_attribute a JOIN pg_catalog.pg_type t ON t.oid = a.atttypid
     WHERE a.attrelid = ANY ($1) AND a.attnum > 0 AND NOT a.attisdropped AND t.typtype = 'd'
    UNION ALL
    SELECT c.attrelid, c.attnum, c.attname, c.whole, t.typbasetype, c.depth + 1
      FROM chain c JOIN pg_catalog.pg_type t ON t.oid = c.oid
     WHERE t.typtype = 'd'
)
SELECT c.attrelid, c.attnum, c.attname::text, pg_catalog.format_type(c.whole, NULL),
       k.conname::text, pg_catalog.pg_get_expr(k.conbin, 0),
       pg_catalog.format('(%I::%s%s)', c.attname, pg_catalog.format_type(base.oid, -1),
                         CASE WHEN l.oid IS NOT NULL
                              THEN pg_catalog.format(' COLLATE %I.%I', s.nspname, l.collname) END),
       t.typbasetype <> base.oid AND k.conbin::text ~ E':funcid \\d{5,}',
       {called}
  FROM chain c
  JOIN pg_catalog.pg_constraint k ON k.contypid = c.oid AND k.contype = 'c'
  JOIN pg_catalog.pg_type t ON t.oid = c.oid
  JOIN pg_catalog.pg_type below ON below.oid = t.typbasetype
  JOIN chain base ON (base.attrelid, base.attnum) = (c.attrelid, c.attnum)
  JOIN pg_catalog.pg_type bt ON bt.oid = base.oid AND bt.typtype <> 'd'
  LEFT JOIN pg_catalog.pg_collation l ON l.oid = below.typcollation
  LEFT JOIN pg_catalog.pg_namespace s ON s.oid = l.collnamespace
 ORDER BY c.attrelid, c.attnum, c.depth DESC, k.conname";

/// A foreign key is checked for a new row by its trigger, and not when that is disabled. The
/// rows of pg_constraint for partitions of the referenced table have no such trigger.
///
/// PostgreSQL: src/backend/utils/adt/ri_triggers.c, `RI_Initial_Check` and `ri_GenerateQual`.
const FOREIGN_KEYS: &str = "
SELECT k.conrelid, k.conname::text, c.columns, r.relname::text,
       CASE r.relkind WHEN 'p' THEN '' ELSE 'ONLY ' END
           || pg_catalog.format('%I.%I', rn.nspname, r.relname),
       c.joined, c.first_referenced, k.confmatchtype = 'f', k.condeferred,
       t.oids, t.names, t.qualified_names,
       coalesce((pg_catalog.to_jsonb(k) ->> 'conperiod')::bool, false)
  FROM pg_catalog.pg_constraint k
  JOIN pg_catalog.pg_class r ON r.oid = k.confrelid
  JOIN pg_catalog.pg_namespace rn ON rn.oid = r.relnamespace
  JOIN pg_catalog.pg_trigger g
    ON g.tgconstraint = k.oid AND g.tgrelid = k.conrelid AND g.tgtype::int4 & 4 <> 0
   AND g.tgenabled IN ('A', CASE pg_catalog.current_setting('session_replication_role')
                                 WHEN 'replica' THEN 'R' ELSE 'O' END)
 CROSS JOIN LATERAL (
       SELECT pg_catalog.array_agg(fa.attname::text ORDER BY x.n) AS columns,
              pg_catalog.string_agg(
                  pg_catalog.format('pk.%I', pa.attname)
                  || CASE WHEN o.oprleft <> pa.atttypid
                          THEN (SELECT pg_catalog.format('::%I.%I', tn.nspname, ty.typname)
                                  FROM pg_catalog.pg_type ty
                                  JOIN pg_catalog.pg_namespace tn ON tn.oid = ty.typnamespace
                                 WHERE ty.oid = o.oprleft) ELSE '' END
                  || pg_catalog.format(' OPERATOR(%I.%s) ', os.nspname, o.oprname)
                  || pg_catalog.format('fk.%I', fa.attname)
                  || CASE WHEN o.oprright <> fa.atttypid
                          THEN (SELECT pg_catalog.format('::%I.%I', tn.nspname, ty.typname)
                                  FROM pg_catalog.pg_type ty
                                  JOIN pg_catalog.pg_namespace tn ON tn.oid = ty.typnamespace
                                 WHERE ty.oid = o.oprright) ELSE '' END
                  || CASE WHEN pa.attcollation <> fa.attcollation AND pa.attcollation <> 0
                          THEN (SELECT pg_catalog.format(' COLLATE %I.%I', cn.nspname, co.collname)
                                  FROM pg_catalog.pg_collation co
                                  JOIN pg_catalog.pg_namespace cn ON cn.oid = co.collnamespace
                                 WHERE co.oid = pa.attcollation) ELSE '' END,
                  ' AND ' ORDER BY x.n) AS joined,
              pg_catalog.min(pg_catalog.quote_ident(pa.attname)) FILTER (WHERE x.n = 1)
                  AS first_referenced
         FROM ROWS FROM (pg_catalog.unnest(k.conkey), pg_catalog.unnest(k.confkey),
                         pg_catalog.unnest(k.conpfeqop)) WITH ORDINALITY AS x (f, p, op, n)
         JOIN pg_catalog.pg_attribute fa ON fa.attrelid = k.conrelid AND fa.attnum = x.f
         JOIN pg_catalog.pg_attribute pa ON pa.attrelid = k.confrelid AND pa.attnum = x.p
         JOIN pg_catalog.pg_operator o ON o.oid = x.op
         JOIN pg_catalog.pg_namespace os ON os.oid = o.oprnamespace) c
 CROSS JOIN LATERAL (
       SELECT pg_catalog.array_agg(l.oid ORDER BY l.oid) AS oids,
              pg_catalog.array_agg(l.relname::text ORDER BY l.oid) AS names,
              pg_catalog.array_agg(pg_catalog.format('%I.%I', ln.nspname, l.relname)
                                   ORDER BY l.oid) AS qualified_names
         FROM pg_catalog.pg_class l
         JOIN pg_catalog.pg_namespace ln ON ln.oid = l.relnamespace
        WHERE l.oid = ANY (ARRAY (
              SELECT relid::pg_catalog.oid FROM pg_catalog.pg_partition_tree(k.confrelid)
              UNION SELECT k.confrelid))) t
 WHERE k.conrelid = ANY ($1) AND k.contype = 'f' AND {enforced}
 ORDER BY k.conrelid, k.condeferred, g.tgname";

/// The CHECK constraints of tables, with the tables' OIDs.
pub(super) fn checks(
    client: &mut impl GenericClient,
    tables: &[Oid],
    version_num: i32,
) -> Result<Vec<(Oid, Check)>> {
    let query = CHECKS
        .replace("{enforced}", enforced(version_num))
        .replace("{called}", functions::CALLED);
    let rows = client.query(&query, &[&tables])?;
    let called: Vec<Called> = rows.iter().map(|row| Called::of(row, 3)).collect();
    let telling = Telling::read(client, &called)?;
    Ok(rows
        .iter()
        .zip(&called)
        .map(|(row, called)| {
            let check = Check {
                name: row.get(1),
                condition: row.get(2),
                only_by_copy: telling.reason(called),
            };
            (row.get(0), check)
        })
        .collect())
}

/// The CHECK constraints of the domains of tables' columns, with the tables' OIDs.
pub(super) fn domain_checks(
    client: &mut impl GenericClient,
    tables: &[Oid],
) -> Result<Vec<(Oid, DomainCheck)>> {
    let query = DOMAIN_CHECKS.replace("{called}", functions::CALLED);
    let rows = client.query(&query, &[&tables])?;
    let called: Vec<Called> = rows.iter().map(|row| Called::of(row, 8)).collect();
    let telling = Telling::read(client, &called)?;
    Ok(rows
        .iter()
        .zip(&called)
        .map(|(row, called)| {
            let for_domain: bool = row.get(7);
            let for_domain = for_domain.then(|| "it calls functions for a domain".to_owned());
            let check = DomainCheck {
                attnum: row.get(1),
                column: row.get(2),
                domain: row.get(3),
                name: row.get(4),
                condition: row.get(5),
                value: row.get(6),
                only_by_copy: for_domain.or_else(|| telling.reason(called)),
            };
            (row.get(0), check)
        })
        .collect())
}

/// The foreign keys of tables, with the tables' OIDs.
pub(super) fn foreign_keys(
    client: &mut impl GenericClient,
    tables: &[Oid],
    version_num: i32,
) -> Result<Vec<(Oid, ForeignKey)>> {
    let query = FOREIGN_KEYS.replace("{enforced}", enforced(version_num));
    let rows = client.query(&query, &[&tables])?;
    Ok(rows
        .iter()
        .map(|row| {
            let oids: Vec<Oid> = row.get(9);
            let names: Vec<String> = row.get(10);
            let qualified_names: Vec<String> = row.get(11);
            let referenced_tables = oids
                .into_iter()
                .zip(names)
                .zip(qualified_names)
                .map(|((oid, name), qualified_name)| ReferencedTable {
                    oid,
                    name,
                    qualified_name,
                })
                .collect();
            let temporal: bool = row.get(12);
            let foreign_key = ForeignKey {
                name: row.get(1),
                columns: row.get(2),
                referenced: row.get(3),
                from_item: row.get(4),
                join: row.get(5),
                first_referenced_column: row.get(6),
                match_full: row.get(7),
                deferred: row.get(8),
                referenced_tables,
                only_by_copy: temporal.then(|| "it is temporal".to_owned()),
            };
            (row.get(0), foreign_key)
        })
        .collect())
}

/// On servers before 18 every constraint is enforced.
fn enforced(version_num: i32) -> &'static str {
    if version_num >= 180_000 {
        "k.conenforced"
    } else {
        "true"
    }
}
