//! The mask of law 1: what two files of the same rows may differ in.
//!
//! On every page pd_lsn and pd_checksum; of heap tuples xmin and t_field3. TOAST value ids are
//! not forgotten but replaced by numbers in order of appearance, in pointers, in chunk_id and in
//! the index of the TOAST table, so that two sides are equal only when each value's chunks
//! are found under the pointer that means them. For that both sides are masked in the same order of relations.
//!
//! Pages of the program under test may be damaged: what cannot be followed is left as it is.

use crate::server::{PAGE_BYTES, Page, Server};
use std::collections::HashMap;

/// How an attribute lies in a tuple.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attribute {
    /// Its name, for reports.
    pub name: String,
    /// attlen.
    pub len: i16,
    /// attalign in bytes.
    pub align: usize,
}

/// The attributes of a table in order, dropped ones included.
///
/// # Panics
/// When there is no such table.
#[track_caller]
pub fn attributes(server: &Server, database: &str, table: &str) -> Vec<Attribute> {
    server
        .connect(database)
        .query(
            "SELECT attname::text, attlen, CASE attalign WHEN 'c' THEN 1 WHEN 's' THEN 2
                    WHEN 'i' THEN 4 ELSE 8 END
               FROM pg_attribute WHERE attrelid = $1::text::regclass AND attnum > 0 ORDER BY attnum",
            &[&table],
        )
        .expect("the table's attributes")
        .iter()
        .map(|row| Attribute {
            name: row.get(0),
            len: row.get(1),
            align: row.get::<_, i32>(2) as usize,
        })
        .collect()
}

/// What a file holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kind {
    /// Heap pages of a table with these attributes.
    Heap(Vec<Attribute>),
    /// Heap pages of a TOAST table.
    Toast,
    /// Pages of a btree index.
    Btree,
    /// Pages of the index of a TOAST table.
    ToastIndex,
    /// A visibility map or a free space map.
    Map,
}

/// TOAST value ids of one side, numbered as they appear.
#[derive(Debug, Default)]
pub struct ValueIds(HashMap<u32, u32>);

impl ValueIds {
    fn renumber(&mut self, bytes: &mut [u8]) {
        if let Ok(id) = <[u8; 4]>::try_from(&*bytes) {
            let next = self.0.len() as u32 + 1;
            let number = *self.0.entry(u32::from_le_bytes(id)).or_insert(next);
            bytes.copy_from_slice(&number.to_le_bytes());
        }
    }
}

/// Blanks what may differ.
pub fn mask(pages: &mut [Page], kind: &Kind, ids: &mut ValueIds) {
    for page in pages {
        page[0..10].fill(0); // pd_lsn, pd_checksum
        let is_index = matches!(kind, Kind::Btree | Kind::ToastIndex);
        if *kind == Kind::Map || *kind == Kind::Btree || (is_index && is_metapage(page)) {
            continue;
        }
        for number in 1..=item_count(page) {
            let Some(item) = Item::of(page, number) else {
                continue;
            };
            let tuple = &mut page[item.pos..item.pos + item.len];
            match kind {
                Kind::ToastIndex => {
                    if let Some(chunk_id) = tuple.get_mut(8..12) {
                        ids.renumber(chunk_id);
                    }
                }
                Kind::Heap(_) | Kind::Toast if tuple.len() >= 24 => {
                    tuple[0..4].fill(0); // t_xmin
                    tuple[8..12].fill(0); // t_field3
                    if let Kind::Heap(attributes) = kind {
                        for (pos, _) in values(tuple, attributes) {
                            if let Some(pointer) = tuple.get_mut(pos..pos + 18)
                                && pointer[..2] == [1, 18]
                            {
                                ids.renumber(&mut pointer[10..14]);
                            }
                        }
                    } else if let Some(chunk_id) = tuple.get_mut(24..28) {
                        ids.renumber(chunk_id);
                    }
                }
                _ => {}
            }
        }
    }
}

/// The pages without those at the end that hold nothing at all: 16 and later extend a file by
/// several blocks at once and may leave the last ones so.
pub fn without_trailing_zero_pages(pages: &[Page]) -> &[Page] {
    let used = pages
        .iter()
        .rposition(|page| page.iter().any(|&b| b != 0))
        .map_or(0, |last| last + 1);
    &pages[..used]
}

/// Where an item lies.
#[derive(Clone, Copy)]
pub(crate) struct Item {
    pub(crate) pos: usize,
    pub(crate) len: usize,
}

impl Item {
    /// The item of a line pointer, counted from 1; `None` when it points to nothing on the page.
    pub(crate) fn of(page: &Page, number: usize) -> Option<Item> {
        let at = 20 + number * 4;
        let word = u32::from_le_bytes(page.get(at..at + 4)?.try_into().ok()?);
        let (pos, len) = ((word & 0x7fff) as usize, (word >> 17) as usize);
        (len > 0 && pos + len <= PAGE_BYTES).then_some(Item { pos, len })
    }
}

/// How many line pointers pd_lower speaks of.
pub(crate) fn item_count(page: &Page) -> usize {
    (u16_at(page, 12).min(PAGE_BYTES)).saturating_sub(24) / 4
}

pub(crate) fn u16_at(bytes: &[u8], pos: usize) -> usize {
    u16::from_le_bytes([bytes[pos], bytes[pos + 1]]) as usize
}

/// Whether a btree page is the metapage (BTP_META in btpo_flags).
pub(crate) fn is_metapage(page: &Page) -> bool {
    u16_at(page, PAGE_BYTES - 4) & 8 != 0
}

/// Where the value of each attribute that is not null starts in a heap tuple, and its index.
pub(crate) fn values(tuple: &[u8], attributes: &[Attribute]) -> Vec<(usize, usize)> {
    let mut found = Vec::new();
    let has_nulls = tuple[20] & 1 != 0;
    let stored = u16_at(tuple, 18) & 0x07ff;
    let mut pos = tuple[22] as usize;
    for (index, attribute) in attributes.iter().enumerate().take(stored) {
        if has_nulls
            && tuple
                .get(23 + index / 8)
                .is_none_or(|b| b >> (index % 8) & 1 == 0)
        {
            continue;
        }
        let Some(&first) = tuple.get(pos) else { break };
        if attribute.len != -1 || first == 0 {
            pos = pos.next_multiple_of(attribute.align);
        }
        let Some(rest) = tuple.get(pos..) else { break };
        let len = match attribute.len {
            -1 => varlena_len(rest),
            -2 => rest.iter().position(|&b| b == 0).map(|n| n + 1),
            n => Some(n as usize),
        };
        let Some(len) = len.filter(|&len| len > 0 && len <= rest.len()) else {
            break;
        };
        found.push((pos, index));
        pos += len;
    }
    found
}

fn varlena_len(stored: &[u8]) -> Option<usize> {
    let first = *stored.first()?;
    if first == 1 {
        Some(18)
    } else if first & 1 == 1 {
        Some((first >> 1) as usize)
    } else {
        let header = u32::from_le_bytes(stored.get(..4)?.try_into().ok()?);
        Some((header >> 2) as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page_with(tuple: &[u8]) -> Page {
        let mut page = [0; PAGE_BYTES];
        page[0..10].fill(0xff);
        page[12..14].copy_from_slice(&28u16.to_le_bytes());
        let word = 0x1f40 | 1 << 15 | (tuple.len() as u32) << 17;
        page[24..28].copy_from_slice(&word.to_le_bytes());
        page[8000..8000 + tuple.len()].copy_from_slice(tuple);
        page
    }

    #[test]
    fn a_toast_pointer_behind_an_aligned_value_is_found_and_its_id_renumbered() {
        let attributes = vec![
            Attribute {
                name: "c".into(),
                len: 1,
                align: 1,
            },
            Attribute {
                name: "n".into(),
                len: 8,
                align: 8,
            },
            Attribute {
                name: "i".into(),
                len: 4,
                align: 4,
            },
            Attribute {
                name: "t".into(),
                len: -1,
                align: 4,
            },
        ];
        // Attribute n is null; c at 24, i at 28, the pointer at 32 without alignment.
        let mut tuple = vec![9; 24];
        tuple[18..20].copy_from_slice(&4u16.to_le_bytes());
        tuple[20] = 1;
        tuple[22] = 24;
        tuple[23] = 0b1101;
        tuple.extend([b'x', 0, 0, 0, 5, 0, 0, 0, 1, 18]);
        tuple.extend([7; 16]);
        let mut pages = [page_with(&tuple)];
        mask(
            &mut pages,
            &Kind::Heap(attributes),
            &mut ValueIds::default(),
        );
        let masked = &pages[0];
        assert_eq!(masked[0..10], [0; 10]);
        assert_eq!(masked[8000..8012], [0, 0, 0, 0, 9, 9, 9, 9, 0, 0, 0, 0]);
        assert_eq!(
            masked[8032..8050],
            [1, 18, 7, 7, 7, 7, 7, 7, 7, 7, 1, 0, 0, 0, 7, 7, 7, 7]
        );
    }

    #[test]
    fn a_damaged_tuple_does_not_stop_the_mask() {
        let attributes = vec![Attribute {
            name: "t".into(),
            len: -1,
            align: 4,
        }];
        for first in 0..=255 {
            let mut tuple = vec![first; 40];
            tuple[22] = first;
            let mut pages = [page_with(&tuple)];
            mask(
                &mut pages,
                &Kind::Heap(attributes.clone()),
                &mut ValueIds::default(),
            );
            assert_eq!(pages[0][8004], first);
        }
    }

    #[test]
    fn pages_of_zeros_at_the_end_do_not_count() {
        let (zero, mut used) = ([0; PAGE_BYTES], [0; PAGE_BYTES]);
        used[100] = 1;
        let mut pages = vec![zero; 4];
        pages[1] = used;
        assert_eq!(without_trailing_zero_pages(&pages).len(), 2);
        assert!(without_trailing_zero_pages(&[zero]).is_empty());
    }
}
