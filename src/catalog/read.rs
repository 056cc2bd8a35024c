//! Reads the catalogs: from a name as the user wrote it to a [`Relation`].
//!
//! A constant number of queries for however many tables: the classes, their types and attributes,
//! their features, their indexes, the indexes' attributes. [`scratch`] asks the one thing that no
//! catalog tells.
//! The queries name `pg_catalog` everywhere, because a script that ran before may have moved
//! the search path.

mod charset;
mod constraints;
mod defaults;
mod features;
mod functions;
mod indexes;
mod partitions;
pub mod scratch;
mod types;

pub use charset::multi_byte;
pub use defaults::{sequence_states, sequences};
pub use indexes::collation;
pub use partitions::partition_tree;

use std::collections::HashMap;
use std::sync::Arc;

use pgformat::ids::Oid;
use pgformat::layout::{AttrLen, AttributeLayout, Compression, Storage};
use postgres::{GenericClient, Row};

use super::{Column, Relation, ToastRelation};
use crate::error::{Error, Result};
use crate::types::TypeDescription;

/// Where storage moves out of line unless the table says else, in bytes.
///
/// PostgreSQL: `src/include/access/heaptoast.h`, `TOAST_TUPLE_TARGET`.
const TOAST_TUPLE_TARGET_BYTES: usize = 2032;

/// The first OID that initdb never gives. PostgreSQL: `src/include/access/transam.h`,
/// `FirstNormalObjectId`.
const FIRST_NORMAL_OBJECT_ID: i64 = 16384;

/// The OIDs of relations by their names as written in SQL (quoted where needed, qualified or
/// found by the search path), in the names' order.
///
/// # Errors
/// Of the first name that has one: `42P01` when absent, `3F000` for a schema that is absent,
/// `42602` for a bad name.
pub fn resolve(client: &mut impl GenericClient, names: &[&str]) -> Result<Vec<Oid>> {
    let invalid = |name: &str| Error::refused("42602", format!("invalid name syntax: \"{name}\""));
    // regclass would also take a number, as an OID.
    let is_number = |name: &&&str| name.bytes().all(|b| b.is_ascii_digit() || b == b'-');
    if let Some(name) = names.iter().find(is_number) {
        return Err(invalid(name));
    }
    let rows = client.query(
        "SELECT n.name::pg_catalog.regclass::pg_catalog.oid
           FROM pg_catalog.unnest($1::pg_catalog.text[]) WITH ORDINALITY AS n (name, number)
          ORDER BY n.number",
        &[&names],
    )?;
    rows.iter()
        .zip(names)
        .map(|(row, name)| match row.get::<_, Oid>(0) {
            0 => Err(invalid(name)),
            oid => Ok(oid),
        })
        .collect()
}

/// Reads the relation with this name, its size included.
///
/// # Errors
/// As [`resolve`].
pub fn relation(client: &mut impl GenericClient, name: &str) -> Result<Relation> {
    let oids = resolve(client, &[name])?;
    let mut read = relations(client, &oids, true)?;
    Ok(read.remove(0))
}

/// Reads relations by their OIDs, in the OIDs' order, with their sizes when `with_size`: asking
/// opens a relation's file in the server, which must not happen between TRUNCATE and the rename
/// of a load.
///
/// # Errors
/// `42P01` when there is none with an OID.
pub fn relations(
    client: &mut impl GenericClient,
    oids: &[Oid],
    with_size: bool,
) -> Result<Vec<Relation>> {
    let version_num = server_version_num(client)?;
    let mut classes = read_classes(client, oids, with_size)?;
    let types = types::read(client, oids)?;
    let mut columns = read_columns(client, oids, &types)?;
    defaults::read(client, oids, &mut columns)?;
    let mut features = features::read(client, oids, version_num)?;
    let mut indexes = indexes::read(client, oids, version_num)?;
    oids.iter()
        .map(|oid| {
            let gone =
                || Error::refused("42P01", format!("relation with OID {oid} does not exist"));
            let class = classes.remove(oid).ok_or_else(gone)?;
            let options = class.options.as_deref().unwrap_or_default();
            Ok(Relation {
                oid: *oid,
                fillfactor: number_option(options, "fillfactor")?.unwrap_or(100),
                toast_tuple_target_bytes: number_option(options, "toast_tuple_target")?
                    .unwrap_or(TOAST_TUPLE_TARGET_BYTES),
                schema: class.schema,
                name: class.name,
                kind: class.kind,
                persistence: class.persistence,
                access_method: class.access_method,
                tablespace: class.tablespace,
                columns: columns.remove(oid).unwrap_or_default(),
                // Those of a partitioned table have no files.
                indexes: match class.kind {
                    'p' => Vec::new(),
                    _ => indexes.remove(oid).unwrap_or_default(),
                },
                toast: class.toast,
                features: features.remove(oid).ok_or_else(gone)?,
                size_bytes: class.size_bytes,
                partitions: None,
            })
        })
        .collect()
}

/// server_version_num, as 150018.
fn server_version_num(client: &mut impl GenericClient) -> Result<i32> {
    Ok(client
        .query_one(
            "SELECT pg_catalog.current_setting('server_version_num')::pg_catalog.int4",
            &[],
        )?
        .get(0))
}

/// Refuses what no version of this program loads: everything that is not an ordinary table in
/// a heap of a user.
///
/// # Errors
/// `42809` for the wrong kind of relation, in COPY's words where COPY has some; `0A000`.
pub fn refuse_unsupported(relation: &Relation) -> Result<()> {
    let name = &relation.name;
    let wrong = |what: &str| {
        Err(Error::refused(
            "42809",
            format!("cannot copy to {what} \"{name}\""),
        ))
    };
    match relation.kind {
        'r' | 'p' => {}
        'v' => return wrong("view"),
        'm' => return wrong("materialized view"),
        'S' => return wrong("sequence"),
        'f' => {
            return Err(Error::unsupported(format!(
                "\"{name}\" is a foreign table; it has no files here"
            )));
        }
        _ => return wrong("non-table relation"),
    }
    if relation.features.system_catalog {
        return Err(Error::refused(
            "42501",
            format!("permission denied: \"{name}\" is a system catalog"),
        ));
    }
    if relation.persistence == 't' {
        return Err(Error::unsupported(format!(
            "\"{name}\" is a temporary table; its rows would end with the connection"
        )));
    }
    if relation.kind == 'r' && relation.access_method != "heap" {
        return Err(Error::unsupported(format!(
            "table \"{name}\" has access method \"{}\"; only heap is supported",
            relation.access_method
        )));
    }
    Ok(())
}

/// A row of pg_class.
struct Class {
    schema: String,
    name: String,
    kind: char,
    persistence: char,
    access_method: String,
    tablespace: Oid,
    options: Option<Vec<String>>,
    toast: Option<ToastRelation>,
    size_bytes: u64,
}

fn read_classes(
    client: &mut impl GenericClient,
    oids: &[Oid],
    with_size: bool,
) -> Result<HashMap<Oid, Class>> {
    let rows = client.query(
        "SELECT n.nspname::text, c.relname::text, c.relkind::text, c.relpersistence::text,
                    coalesce(am.amname::text, ''), c.reltablespace, c.reloptions,
                    c.reltoastrelid,
                    (SELECT i.indexrelid FROM pg_catalog.pg_index i
                      WHERE i.indrelid = c.reltoastrelid AND i.indisvalid
                      ORDER BY i.indexrelid LIMIT 1),
                    (SELECT t.reltablespace FROM pg_catalog.pg_class t
                      WHERE t.oid = c.reltoastrelid),
                    CASE WHEN $2 AND c.relkind IN ('r', 'm', 't')
                         THEN coalesce(pg_catalog.pg_relation_size(c.oid), 0) ELSE 0 END,
                    c.oid
               FROM pg_catalog.pg_class c
               JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
               LEFT JOIN pg_catalog.pg_am am ON am.oid = c.relam
              WHERE c.oid = ANY ($1)",
        &[&oids, &with_size],
    )?;
    rows.iter()
        .map(|row| Ok((row.get(11), class(row)?)))
        .collect()
}

fn class(row: &Row) -> Result<Class> {
    let toast_oid: Oid = row.get(7);
    let toast_index: Option<Oid> = row.get(8);
    let toast_tablespace: Option<Oid> = row.get(9);
    let name: String = row.get(1);
    let toast = match (toast_oid, toast_index, toast_tablespace) {
        (0, _, _) => None,
        (oid, Some(index_oid), Some(tablespace)) => Some(ToastRelation {
            oid,
            index_oid,
            tablespace,
        }),
        _ => {
            return Err(Error::new(
                crate::error::Class::Corruption,
                "XX002",
                format!("no valid index found for toast relation with Oid {toast_oid}"),
            ));
        }
    };
    Ok(Class {
        schema: row.get(0),
        name,
        kind: one_char(row, 2),
        persistence: one_char(row, 3),
        access_method: row.get(4),
        tablespace: row.get(5),
        options: row.get(6),
        toast,
        size_bytes: row.get::<_, i64>(10) as u64,
    })
}

fn read_columns(
    client: &mut impl GenericClient,
    oids: &[Oid],
    types: &HashMap<Oid, Arc<TypeDescription>>,
) -> Result<HashMap<Oid, Vec<Column>>> {
    let rows = client.query(
        "SELECT a.attnum, a.attname::text, a.attlen, a.attalign::text, a.attbyval,
                a.attstorage::text, a.attcompression::text,
                pg_catalog.current_setting('default_toast_compression'),
                a.atttypid,
                CASE WHEN a.attisdropped THEN ''
                     ELSE pg_catalog.format_type(a.atttypid, a.atttypmod) END,
                a.atttypmod, a.attcollation, a.attnotnull, a.attisdropped,
                CASE WHEN d.adbin IS NOT NULL THEN pg_catalog.pg_get_expr(d.adbin, d.adrelid)
                     ELSE pg_catalog.pg_get_expr(t.typdefaultbin, 0) END,
                a.attidentity::text, a.attgenerated::text, a.attrelid
           FROM pg_catalog.pg_attribute a
           LEFT JOIN pg_catalog.pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
           LEFT JOIN pg_catalog.pg_type t ON t.oid = a.atttypid
          WHERE a.attrelid = ANY ($1) AND a.attnum > 0
          ORDER BY a.attrelid, a.attnum",
        &[&oids],
    )?;
    let mut columns: HashMap<Oid, Vec<Column>> = HashMap::new();
    for row in &rows {
        let of_table = columns.entry(row.get(17)).or_default();
        let attnum: i16 = row.get(0);
        let name: String = row.get(1);
        if usize::try_from(attnum).ok() != Some(of_table.len() + 1) {
            return Err(bad_catalog("pg_attribute.attnum", &name));
        }
        of_table.push(Column {
            attnum,
            layout: layout(row, 2, &name)?,
            name,
            type_oid: row.get(8),
            description: types.get(&row.get(8)).cloned(),
            type_name: row.get(9),
            typmod: row.get(10),
            collation: row.get(11),
            not_null: row.get(12),
            dropped: row.get(13),
            default: row.get(14),
            expression: None,
            sequence: None,
            identity: one_char(row, 15),
            generated: one_char(row, 16),
        });
    }
    Ok(columns)
}

/// The layout from six columns that begin at `first`: attlen, attalign, attbyval, attstorage,
/// attcompression, default_toast_compression.
fn layout(row: &Row, first: usize, name: &str) -> Result<AttributeLayout> {
    let byte = |i: usize| row.get::<_, &str>(i).bytes().next().unwrap_or(0);
    let compression = match (byte(first + 4), row.get::<_, &str>(first + 5)) {
        (b'l', _) | (0, "lz4") => Compression::Lz4,
        _ => Compression::Pglz,
    };
    Ok(AttributeLayout {
        len: AttrLen::from_attlen(row.get(first))
            .ok_or_else(|| bad_catalog("pg_attribute.attlen", name))?,
        align: AttributeLayout::align_from_char(byte(first + 1))
            .ok_or_else(|| bad_catalog("pg_attribute.attalign", name))?,
        by_value: row.get(first + 2),
        storage: Storage::from_char(byte(first + 3))
            .ok_or_else(|| bad_catalog("pg_attribute.attstorage", name))?,
        compression,
    })
}

#[cold]
fn bad_catalog(field: &str, name: &str) -> Error {
    Error::new(
        crate::error::Class::Corruption,
        "XX001",
        format!("unexpected value of {field} for \"{name}\""),
    )
}

/// A "char" that was cast to text: empty is a space here.
fn one_char(row: &Row, column: usize) -> char {
    row.get::<_, &str>(column).chars().next().unwrap_or(' ')
}

/// A storage parameter that is a number.
fn number_option<T: std::str::FromStr>(options: &[String], name: &str) -> Result<Option<T>> {
    let Some(value) = option(options, name) else {
        return Ok(None);
    };
    value
        .parse()
        .map(Some)
        .map_err(|_| bad_catalog("pg_class.reloptions", name))
}

/// A storage parameter as it was typed. `fillfactor=70` in pg_class.reloptions.
fn option<'a>(options: &'a [String], name: &str) -> Option<&'a str> {
    options
        .iter()
        .find_map(|o| o.strip_prefix(name)?.strip_prefix('='))
}

/// A storage parameter that is a boolean.
///
/// PostgreSQL: `src/backend/utils/adt/bool.c`, `parse_bool_with_len`: any prefix that is
/// unique, in any case.
fn bool_option(options: &[String], name: &str) -> Result<Option<bool>> {
    let Some(value) = option(options, name) else {
        return Ok(None);
    };
    let value = value.to_ascii_lowercase();
    let is = |word: &str, shortest: usize| value.len() >= shortest && word.starts_with(&value);
    if is("true", 1) || is("yes", 1) || is("on", 2) || value == "1" {
        Ok(Some(true))
    } else if is("false", 1) || is("no", 1) || is("off", 2) || value == "0" {
        Ok(Some(false))
    } else {
        Err(bad_catalog("pg_class.reloptions", name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn storage_parameters_are_read_as_the_server_reads_them() {
        let options = [
            "fillfactor=70".to_owned(),
            "deduplicate_items=OF".to_owned(),
        ];
        assert_eq!(number_option(&options, "fillfactor").unwrap(), Some(70_u8));
        assert_eq!(number_option::<u8>(&options, "fill").unwrap(), None);
        assert_eq!(
            bool_option(&options, "deduplicate_items").unwrap(),
            Some(false)
        );
        assert_eq!(
            bool_option(&["deduplicate_items=o".to_owned()], "deduplicate_items")
                .unwrap_err()
                .sqlstate,
            "XX001"
        );
    }
}
