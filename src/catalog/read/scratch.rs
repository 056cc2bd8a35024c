//! What only an index made by this very server tells: `btm_allequalimage`.
//!
//! Minor releases differ in which operator classes they trust to be "equal image", though
//! their catalogs say the same. So the same indexes are created on empty temporary tables,
//! which are rolled back, and their metapages are read: one index for all that have the same
//! operator classes, collations and types. They are on disk at once: an index
//! build writes its pages past the shared buffers (`src/backend/access/nbtree/nbtsort.c`,
//! `_bt_uppershutdown`), that of an empty index its metapage.

use std::collections::HashMap;
use std::fmt::Write;
use std::fs::File;
use std::io::Read;
use std::path::Path;

use pgformat::ids::Oid;
use postgres::GenericClient;

use super::super::{Index, Relation};
use crate::error::{Class, Error, Result};

/// Size of a page in bytes.
const BLCKSZ: usize = 8192;
/// `BTREE_MAGIC`.
const BTREE_MAGIC: u32 = 0x0005_3162;
/// Where BTMetaPageData begins in its page: `MAXALIGN(SizeOfPageHeaderData)`.
const META_POS: usize = 24;
/// Where `btm_allequalimage` stands in BTMetaPageData: five numbers of four bytes, the count
/// of deleted pages, eight bytes of a float aligned to eight.
const ALLEQUALIMAGE_POS: usize = META_POS + 40;

/// Fills [`super::super::Index::allequalimage`] of every btree index.
///
/// `client` must be inside a transaction: everything happens in a savepoint that is rolled
/// back. `data_directory` is the server's, on this host. The tables themselves are neither read
/// nor planned with.
///
/// # Errors
/// The server's, and those of reading the files.
pub fn fill_allequalimage(
    client: &mut impl GenericClient,
    data_directory: &Path,
    relations: &mut [Relation],
) -> Result<()> {
    let btrees = |r: &&mut Relation| r.indexes.iter().any(|i| i.access_method == "btree");
    if relations.iter_mut().filter(btrees).count() == 0 {
        return Ok(());
    }
    client.batch_execute("SAVEPOINT pgpagewrite_scratch")?;
    let filled = fill(client, data_directory, relations);
    match &filled {
        Err(e) if e.sqlstate.starts_with("08") => {}
        _ => client.batch_execute(
            "ROLLBACK TO SAVEPOINT pgpagewrite_scratch; RELEASE SAVEPOINT pgpagewrite_scratch",
        )?,
    }
    filled
}

/// Each btree index with the one that is created in its stead.
///
/// The flag depends on the key columns' operator families, input types and collations, and on
/// whether there are columns beside the keys. PostgreSQL:
/// `src/backend/access/nbtree/nbtutils.c`, `_bt_allequalimage`.
const STAND_INS: &str = "
SELECT i.indexrelid,
       min(i.indexrelid) OVER (PARTITION BY i.indclass, i.indcollation, i.indnkeyatts, a.types,
                                            c.reloptions)
  FROM pg_catalog.pg_index i
  JOIN pg_catalog.pg_class c ON c.oid = i.indexrelid
  CROSS JOIN LATERAL (SELECT ARRAY(SELECT atttypid FROM pg_catalog.pg_attribute
                                    WHERE attrelid = i.indexrelid AND attnum > 0
                                    ORDER BY attnum) AS types) a
 WHERE i.indexrelid = ANY ($1)";

/// An index's definition from behind its access method's name on.
///
/// pg_get_indexdef's own beginning is cut off by its length: a search for ' USING ' could be
/// misled by a name.
const BODIES: &str = "
SELECT i.indexrelid,
       CASE WHEN pg_catalog.starts_with(d.def, p.prefix)
            THEN pg_catalog.substr(d.def, pg_catalog.length(p.prefix) + 1) END
  FROM pg_catalog.pg_index i
  JOIN pg_catalog.pg_class c ON c.oid = i.indexrelid
  JOIN pg_catalog.pg_class t ON t.oid = i.indrelid
  JOIN pg_catalog.pg_namespace n ON n.oid = t.relnamespace,
  LATERAL (SELECT pg_catalog.pg_get_indexdef(i.indexrelid) AS def) d,
  LATERAL (SELECT 'CREATE ' || CASE WHEN i.indisunique THEN 'UNIQUE ' ELSE '' END
               || 'INDEX ' || pg_catalog.quote_ident(c.relname) || ' ON '
               || pg_catalog.quote_ident(n.nspname) || '.'
               || pg_catalog.quote_ident(t.relname)
               || ' USING btree ' AS prefix) p
 WHERE i.indexrelid = ANY ($1)";

fn fill(
    client: &mut impl GenericClient,
    data_directory: &Path,
    relations: &mut [Relation],
) -> Result<()> {
    let btrees: Vec<(usize, &Index)> = relations
        .iter()
        .enumerate()
        .flat_map(|(number, r)| r.indexes.iter().map(move |i| (number, i)))
        .filter(|(_, i)| i.access_method == "btree")
        .collect();
    let oids: Vec<Oid> = btrees.iter().map(|(_, i)| i.oid).collect();
    let stand_ins: HashMap<Oid, Oid> = client
        .query(STAND_INS, &[&oids])?
        .iter()
        .map(|row| (row.get(0), row.get(1)))
        .collect();
    let created: Vec<(usize, &Index)> = btrees
        .into_iter()
        .filter(|(_, i)| stand_ins.get(&i.oid) == Some(&i.oid))
        .collect();
    let oids: Vec<Oid> = created.iter().map(|(_, i)| i.oid).collect();
    let bodies: HashMap<Oid, Option<String>> = client
        .query(BODIES, &[&oids])?
        .iter()
        .map(|row| (row.get(0), row.get(1)))
        .collect();
    let mut statements = "SET LOCAL client_min_messages = error".to_owned();
    let mut last_table = None;
    for (number, index) in created {
        let Some(Some(body)) = bodies.get(&index.oid) else {
            return Err(Error::unsupported(format!(
                "could not read the definition of index \"{}\": {}",
                index.name, index.definition
            )));
        };
        // LIKE without INCLUDING INDEXES: each index is made by its own definition, so that no
        // guess is needed which copy belongs to which.
        let table = &relations[number];
        if last_table.replace(number) != Some(number) {
            let _ = write!(
                statements,
                "; CREATE TEMPORARY TABLE pgpagewrite_scratch_{} (LIKE {})",
                table.oid,
                table.qualified_name()
            );
        }
        let unique = if index.unique { "UNIQUE " } else { "" };
        let _ = write!(
            statements,
            "; CREATE {unique}INDEX pgpagewrite_{} ON pg_temp.pgpagewrite_scratch_{}
                 USING btree {body}",
            index.oid, table.oid
        );
    }
    client.batch_execute(&statements)?;
    let flags = client
        .query(
            "SELECT o.oid, pg_catalog.pg_relation_filepath(
                       ('pg_temp.pgpagewrite_' || o.oid)::pg_catalog.regclass)
               FROM pg_catalog.unnest($1::pg_catalog.oid[]) AS o (oid)",
            &[&oids],
        )?
        .iter()
        .map(|row| {
            let path: String = row.get(1);
            Ok((row.get(0), read_allequalimage(&data_directory.join(path))?))
        })
        .collect::<Result<HashMap<Oid, bool>>>()?;
    for index in relations.iter_mut().flat_map(|r| &mut r.indexes) {
        if let Some(stand_in) = stand_ins.get(&index.oid) {
            index.allequalimage = flags.get(stand_in).copied();
        }
    }
    Ok(())
}

/// `btm_allequalimage` of a btree index's file.
///
/// PostgreSQL: `src/include/access/nbtree.h`, `BTMetaPageData`.
///
/// # Errors
/// `XX002` when the first block is no metapage of a btree.
pub fn read_allequalimage(path: &Path) -> Result<bool> {
    let mut page = [0_u8; BLCKSZ];
    File::open(path)
        .and_then(|mut f| f.read_exact(&mut page))
        .map_err(|e| Error::io("read file", path, &e))?;
    allequalimage_of(&page).ok_or_else(|| {
        Error::new(
            Class::Corruption,
            "XX002",
            format!("file \"{}\" is not a btree", path.display()),
        )
    })
}

/// The flag of a metapage; `None` when the page is none.
fn allequalimage_of(page: &[u8; BLCKSZ]) -> Option<bool> {
    let magic = u32::from_le_bytes(page[META_POS..META_POS + 4].try_into().ok()?);
    (magic == BTREE_MAGIC).then(|| page[ALLEQUALIMAGE_POS] != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_without_the_magic_number_is_no_metapage() {
        let mut page = [0_u8; BLCKSZ];
        assert_eq!(allequalimage_of(&page), None);
        page[24..28].copy_from_slice(&[0x62, 0x31, 0x05, 0x00]);
        assert_eq!(allequalimage_of(&page), Some(false));
        page[64] = 1;
        assert_eq!(allequalimage_of(&page), Some(true));
    }
}
