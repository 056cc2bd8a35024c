//! The indexes of tables, their attributes and collations.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use pgformat::ids::Oid;
use postgres::{GenericClient, Row};

use super::super::{Collation, Index, IndexColumn};
use super::{bool_option, layout, number_option, one_char, server_version_num};
use crate::error::{Class, Error, Result};

/// Pages of a btree are filled so far unless the index says else, in percent.
///
/// PostgreSQL: `src/include/access/nbtree.h`, `BTREE_DEFAULT_FILLFACTOR`.
const BTREE_DEFAULT_FILLFACTOR: u8 = 90;

/// `DEFAULT_COLLATION_OID`: whatever the database has.
const DEFAULT_COLLATION_OID: Oid = 100;

/// Bits of pg_index.indoption. PostgreSQL: `src/include/catalog/pg_index.h`.
const INDOPTION_DESC: i16 = 1;
const INDOPTION_NULLS_FIRST: i16 = 2;

/// Every index of the tables that writers keep up (`indislive`).
///
/// Version differences: 14 has no `indnullsnotdistinct`.
pub(super) fn read(
    client: &mut impl GenericClient,
    tables: &[Oid],
    version_num: i32,
) -> Result<HashMap<Oid, Vec<Index>>> {
    let nulls_not_distinct = if version_num >= 150_000 {
        "i.indnullsnotdistinct"
    } else {
        "false"
    };
    let rows = client.query(
        &format!(
            "SELECT i.indexrelid, c.relname::text, n.nspname::text, am.amname::text,
                c.reltablespace, i.indisunique, i.indisprimary,
                {nulls_not_distinct},
                i.indimmediate, i.indisvalid, i.indisclustered, i.indpred IS NOT NULL,
                c.reloptions, i.indnkeyatts, pg_catalog.pg_get_indexdef(i.indexrelid), i.indrelid,
                i.indisexclusion
           FROM pg_catalog.pg_index i
           JOIN pg_catalog.pg_class c ON c.oid = i.indexrelid
           JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
           JOIN pg_catalog.pg_am am ON am.oid = c.relam
          WHERE i.indrelid = ANY ($1) AND i.indislive
          ORDER BY i.indexrelid"
        ),
        &[&tables],
    )?;
    let mut columns = read_columns(client, tables)?;
    let mut indexes: HashMap<Oid, Vec<Index>> = HashMap::new();
    for row in &rows {
        let columns = columns.remove(&row.get::<_, Oid>(0)).unwrap_or_default();
        indexes
            .entry(row.get(15))
            .or_default()
            .push(index(row, columns)?);
    }
    Ok(indexes)
}

fn index(row: &Row, columns: Vec<IndexColumn>) -> Result<Index> {
    let oid: Oid = row.get(0);
    let options: Option<Vec<String>> = row.get(12);
    let options = options.unwrap_or_default();
    let key_count = row.get::<_, i16>(13) as usize;
    let name: String = row.get(1);
    if key_count == 0 || key_count > columns.len() {
        return Err(Error::new(
            Class::Corruption,
            "XX001",
            format!("index \"{name}\" has no attributes in pg_attribute"),
        ));
    }
    Ok(Index {
        oid,
        name,
        schema: row.get(2),
        access_method: row.get(3),
        tablespace: row.get(4),
        unique: row.get(5),
        primary: row.get(6),
        nulls_not_distinct: row.get(7),
        exclusion: row.get(16),
        immediate: row.get(8),
        valid: row.get(9),
        clustered: row.get(10),
        has_predicate: row.get(11),
        fillfactor: number_option(&options, "fillfactor")?.unwrap_or(BTREE_DEFAULT_FILLFACTOR),
        deduplicate_items: bool_option(&options, "deduplicate_items")?.unwrap_or(true),
        columns,
        key_count,
        definition: row.get(14),
        allequalimage: None,
    })
}

fn read_columns(
    client: &mut impl GenericClient,
    tables: &[Oid],
) -> Result<HashMap<Oid, Vec<IndexColumn>>> {
    let rows = client.query(
        "SELECT i.indexrelid, i.indkey[a.attnum - 1], a.atttypid,
                a.attlen, a.attalign::text, a.attbyval, a.attstorage::text,
                a.attcompression::text,
                pg_catalog.current_setting('default_toast_compression'),
                coalesce(o.opcname::text, ''),
                coalesce(o.opcnamespace = 'pg_catalog'::pg_catalog.regnamespace, false),
                CASE WHEN a.attnum <= i.indnkeyatts THEN i.indoption[a.attnum - 1] ELSE 0 END,
                CASE WHEN a.attnum <= i.indnkeyatts THEN i.indcollation[a.attnum - 1]
                     ELSE 0 END::pg_catalog.oid,
                a.attname::text
           FROM pg_catalog.pg_index i
           JOIN pg_catalog.pg_attribute a ON a.attrelid = i.indexrelid AND a.attnum > 0
           LEFT JOIN pg_catalog.pg_opclass o
                  ON a.attnum <= i.indnkeyatts AND o.oid = i.indclass[a.attnum - 1]
          WHERE i.indrelid = ANY ($1) AND i.indislive
          ORDER BY i.indexrelid, a.attnum",
        &[&tables],
    )?;
    let mut collations: HashMap<Oid, Collation> = HashMap::new();
    let mut columns: HashMap<Oid, Vec<IndexColumn>> = HashMap::new();
    for row in &rows {
        let options: i16 = row.get::<_, i32>(11) as i16;
        let collation = match row.get::<_, Oid>(12) {
            0 => None,
            oid => {
                if let Entry::Vacant(unread) = collations.entry(oid) {
                    unread.insert(collation(client, oid)?);
                }
                collations.get(&oid).cloned()
            }
        };
        columns.entry(row.get(0)).or_default().push(IndexColumn {
            attnum: row.get(1),
            type_oid: row.get(2),
            layout: layout(row, 3, row.get(13))?,
            opclass: row.get(9),
            opclass_is_core: row.get(10),
            descending: options & INDOPTION_DESC != 0,
            nulls_first: options & INDOPTION_NULLS_FIRST != 0,
            collation,
        });
    }
    Ok(columns)
}

/// What is known of a collation; the database's default is resolved to what it stands for.
///
/// Version differences: 14 records no version and no provider for a database (libc then);
/// 15 and 16 name the locale of ICU `colliculocale`/`daticulocale`, 17 and later
/// `colllocale`/`datlocale`.
///
/// # Errors
/// `42704` when there is no such collation.
pub fn collation(client: &mut impl GenericClient, oid: Oid) -> Result<Collation> {
    let row = if oid == DEFAULT_COLLATION_OID {
        default_collation(client)?
    } else {
        client.query_opt(
            "SELECT c.collname::text, c.collprovider::text,
                    CASE c.collprovider WHEN 'c' THEN c.collcollate::text
                         ELSE coalesce(j ->> 'colllocale', j ->> 'colliculocale',
                                       c.collcollate::text) END,
                    c.collisdeterministic, c.collversion,
                    pg_catalog.pg_collation_actual_version(c.oid)
               FROM pg_catalog.pg_collation c, pg_catalog.to_jsonb(c) j
              WHERE c.oid = $1",
            &[&oid],
        )?
    };
    let row = row.ok_or_else(|| {
        Error::refused("42704", format!("collation with OID {oid} does not exist"))
    })?;
    Ok(Collation {
        oid,
        name: row.get(0),
        provider: one_char(&row, 1),
        locale: row.get::<_, Option<String>>(2).unwrap_or_default(),
        deterministic: row.get(3),
        recorded_version: row.get(4),
        actual_version: row.get(5),
    })
}

fn default_collation(client: &mut impl GenericClient) -> Result<Option<Row>> {
    let version = server_version_num(client)?;
    // 14 has no function for a database's version. Every libc locale but C and POSIX has
    // the version of the library, so any collation of libc tells it.
    let actual = if version >= 150_000 {
        "pg_catalog.pg_database_collation_actual_version(d.oid)"
    } else {
        "CASE WHEN d.datcollate IN ('C', 'POSIX') OR d.datcollate ILIKE 'C.%' THEN NULL ELSE
           (SELECT max(pg_catalog.pg_collation_actual_version(c.oid))
              FROM pg_catalog.pg_collation c
             WHERE c.collprovider = 'c' AND c.collcollate NOT IN ('C', 'POSIX', '')
               AND c.collcollate NOT ILIKE 'C.%') END"
    };
    Ok(client.query_opt(
        &format!(
            "SELECT 'default', coalesce(j ->> 'datlocprovider', 'c'),
                    CASE coalesce(j ->> 'datlocprovider', 'c') WHEN 'c' THEN d.datcollate::text
                         ELSE coalesce(j ->> 'datlocale', j ->> 'daticulocale') END,
                    true, j ->> 'datcollversion', {actual}
               FROM pg_catalog.pg_database d, pg_catalog.to_jsonb(d) j
              WHERE d.datname = pg_catalog.current_database()"
        ),
        &[],
    )?)
}
