//! What only an index made by this very server tells: `btm_allequalimage`.
//!
//! Minor releases differ in which operator classes they trust to be "equal image", though
//! their catalogs say the same. So the same indexes are created on an empty temporary table,
//! which is rolled back, and their metapages are read. They are on disk at once: an index
//! build writes its pages past the shared buffers (`src/backend/access/nbtree/nbtsort.c`,
//! `_bt_uppershutdown`), that of an empty index its metapage.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use postgres::GenericClient;

use super::super::{Relation, quote_ident};
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
/// back. `data_directory` is the server's, on this host. The table itself is neither read
/// nor planned with.
///
/// # Errors
/// The server's, and those of reading the files.
pub fn fill_allequalimage(
    client: &mut impl GenericClient,
    data_directory: &Path,
    relation: &mut Relation,
) -> Result<()> {
    if relation.indexes.iter().all(|i| i.access_method != "btree") {
        return Ok(());
    }
    client.batch_execute("SAVEPOINT pgpagewrite_scratch")?;
    let filled = fill(client, data_directory, relation);
    match &filled {
        Err(e) if e.sqlstate.starts_with("08") => {}
        _ => client.batch_execute(
            "ROLLBACK TO SAVEPOINT pgpagewrite_scratch; RELEASE SAVEPOINT pgpagewrite_scratch",
        )?,
    }
    filled
}

fn fill(
    client: &mut impl GenericClient,
    data_directory: &Path,
    relation: &mut Relation,
) -> Result<()> {
    let table = relation.qualified_name();
    // LIKE without INCLUDING INDEXES: each index is made by its own definition, so that no
    // guess is needed which copy belongs to which.
    client.batch_execute(&format!(
        "SET LOCAL client_min_messages = error;
         CREATE TEMPORARY TABLE pgpagewrite_scratch (LIKE {table})"
    ))?;
    for index in &mut relation.indexes {
        if index.access_method != "btree" {
            continue;
        }
        // pg_get_indexdef's own beginning is cut off by its length: a search for " USING "
        // could be misled by a name.
        let body: Option<String> = client
            .query_one(
                "SELECT CASE WHEN pg_catalog.starts_with(d.def, p.prefix)
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
                  WHERE i.indexrelid = $1",
                &[&index.oid],
            )?
            .get(0);
        let Some(body) = body else {
            return Err(Error::unsupported(format!(
                "could not read the definition of index \"{}\": {}",
                index.name, index.definition
            )));
        };
        let name = format!("pgpagewrite_{}", index.oid);
        let unique = if index.unique { "UNIQUE " } else { "" };
        client.batch_execute(&format!(
            "CREATE {unique}INDEX {} ON pg_temp.pgpagewrite_scratch USING btree {body}",
            quote_ident(&name)
        ))?;
        let path: String = client
            .query_one(
                "SELECT pg_catalog.pg_relation_filepath(
                          ('pg_temp.' || $1::pg_catalog.text)::pg_catalog.regclass)",
                &[&name],
            )?
            .get(0);
        index.allequalimage = Some(read_allequalimage(&data_directory.join(path))?);
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
