//! The tuples of a TOAST table: a value in chunks of 1996 bytes.
//!
//! ```text
//! header 24 | chunk_id 4 | chunk_seq 4 | 4-byte varlena header | up to 1996 bytes
//! ```
//!
//! chunk_data has storage PLAIN, so its header is never short. Value ids are counted from 0
//! within a batch of rows, since batches are packed in parallel and only their order says
//! which ids they get; [`ToastChunks::add_base`] and [`add_base_to_pointers`] make them
//! final. The chunks of a batch are in the order of (chunk_id, chunk_seq).
//!
//! PostgreSQL: `src/include/access/heaptoast.h`;
//! `src/backend/access/common/toast_internals.c`, `toast_save_datum`.

use super::pointer::{ToastPointer, VALUE_ID_POS};
use crate::datum::varlena;
use crate::heap::tuple::{
    FROZEN_XID, FormedTuple, HEADER_BYTES, HEAP_HASVARWIDTH, HEAP_XMAX_INVALID, HEAP_XMIN_FROZEN,
};
use crate::ids::Oid;
use crate::layout::maxalign;

/// Most bytes of a value in one chunk (`TOAST_MAX_CHUNK_SIZE`).
pub const MAX_CHUNK_BYTES: usize = 1996;

const HEADER_ROOM: usize = maxalign(HEADER_BYTES);
/// Where chunk_id lies in a chunk's tuple.
const CHUNK_ID_POS: usize = HEADER_ROOM;
/// Where the chunk's bytes begin in its tuple.
const CHUNK_DATA_POS: usize = CHUNK_ID_POS + 4 + 4 + varlena::HEADER_BYTES;
/// What [`ToastChunks::clear`] leaves of the storage that a giant value took.
const KEPT_BYTES: usize = 64 << 20;

/// The header of every chunk's tuple.
const HEADER: [u8; HEADER_ROOM] = {
    let mut header = [0; HEADER_ROOM];
    let xid = FROZEN_XID.to_le_bytes();
    let infomask = (HEAP_HASVARWIDTH | HEAP_XMIN_FROZEN | HEAP_XMAX_INVALID).to_le_bytes();
    header[0] = xid[0];
    header[18] = 3; // attributes
    header[20] = infomask[0];
    header[21] = infomask[1];
    header[22] = HEADER_ROOM as u8;
    header
};

/// The values that a batch of rows stores out of line.
#[derive(Debug, Default)]
pub struct ToastChunks {
    arena: Vec<u8>,
    tuples: Vec<FormedTuple>,
    /// The first chunk of each value.
    first_chunks: Vec<u32>,
    /// Where the value ids of pointers lie in the arena of the rows.
    pointer_patches: Vec<u32>,
}

/// How much there was at some moment; see [`ToastChunks::roll_back`].
#[derive(Clone, Copy, Debug)]
pub struct ChunksMark {
    arena: usize,
    tuples: usize,
    values: usize,
    patches: usize,
}

impl ToastChunks {
    /// No chunks.
    pub fn new() -> ToastChunks {
        ToastChunks::default()
    }

    /// Forgets everything and keeps storage of a common size.
    pub fn clear(&mut self) {
        self.arena.clear();
        self.arena.shrink_to(KEPT_BYTES);
        self.tuples.clear();
        self.first_chunks.clear();
        self.pointer_patches.clear();
    }

    /// How many values there are: the ids used are 0 up to it.
    pub fn value_count(&self) -> u32 {
        self.first_chunks.len() as u32
    }

    /// The chunks' tuples, positions in [`ToastChunks::arena`].
    pub fn tuples(&self) -> &[FormedTuple] {
        &self.tuples
    }

    /// The bytes that the tuples lie in.
    pub fn arena(&self) -> &[u8] {
        &self.arena
    }

    /// The bytes of one chunk's tuple.
    pub fn tuple(&self, tuple: FormedTuple) -> &[u8] {
        &self.arena[tuple.pos as usize..(tuple.pos + tuple.len) as usize]
    }

    /// chunk_id and chunk_seq of a chunk's tuple, as its index orders them.
    pub fn key(&self, tuple: FormedTuple) -> (Oid, i32) {
        let bytes = self.tuple(tuple);
        let u32_at = |pos: usize| {
            u32::from_le_bytes([bytes[pos], bytes[pos + 1], bytes[pos + 2], bytes[pos + 3]])
        };
        (u32_at(CHUNK_ID_POS), u32_at(CHUNK_ID_POS + 4) as i32)
    }

    /// Where in the rows' arena the value ids of their pointers lie, in order.
    pub fn pointer_patches(&self) -> &[u32] {
        &self.pointer_patches
    }

    /// Where things stand now.
    pub fn mark(&self) -> ChunksMark {
        ChunksMark {
            arena: self.arena.len(),
            tuples: self.tuples.len(),
            values: self.first_chunks.len(),
            patches: self.pointer_patches.len(),
        }
    }

    /// Forgets what came after `mark`: the row that it belongs to is not kept.
    pub fn roll_back(&mut self, mark: ChunksMark) {
        self.arena.truncate(mark.arena);
        self.tuples.truncate(mark.tuples);
        self.first_chunks.truncate(mark.values);
        self.pointer_patches.truncate(mark.patches);
    }

    /// Adds a value's stored bytes, without its varlena header, and returns its id within the
    /// batch.
    ///
    /// # Panics
    /// When the batch's chunks outgrow 4 GB.
    pub(super) fn push_value(&mut self, stored: &[u8]) -> Oid {
        debug_assert!(!stored.is_empty());
        let id = self.value_count();
        self.first_chunks.push(self.tuples.len() as u32);
        let chunks = stored.len().div_ceil(MAX_CHUNK_BYTES);
        let need = chunks * maxalign(CHUNK_DATA_POS) + maxalign(stored.len()) + 8 * chunks;
        assert!(
            u32::try_from(self.arena.len() + need).is_ok(),
            "a batch with more than 4 GB out of line"
        );
        if need > KEPT_BYTES {
            self.arena.reserve_exact(need);
        } else {
            self.arena.reserve(need);
        }
        for (seq, chunk) in stored.chunks(MAX_CHUNK_BYTES).enumerate() {
            let pos = maxalign(self.arena.len());
            self.arena.resize(pos, 0);
            self.arena.extend_from_slice(&HEADER);
            self.arena.extend_from_slice(&id.to_le_bytes());
            self.arena.extend_from_slice(&(seq as i32).to_le_bytes());
            self.arena
                .extend_from_slice(&varlena::full_header(chunk.len() + varlena::HEADER_BYTES));
            self.arena.extend_from_slice(chunk);
            self.tuples.push(FormedTuple {
                pos: pos as u32,
                len: (CHUNK_DATA_POS + chunk.len()) as u32,
            });
        }
        id
    }

    /// Remembers that a value id lies at `pos` of the rows' arena.
    pub(super) fn push_pointer_patch(&mut self, pointer_pos: u32) {
        self.pointer_patches.push(pointer_pos + VALUE_ID_POS as u32);
    }

    /// Makes the chunks' ids final: each becomes itself plus `base`.
    pub fn add_base(&mut self, base: Oid) {
        for tuple in &self.tuples {
            add_base_at(&mut self.arena, tuple.pos as usize + CHUNK_ID_POS, base);
        }
    }

    /// The datum that an index sees of a row's stored value, before [`add_base_to_pointers`]:
    /// one in line as it is; one out of line as its chunks hold it, gathered in `scratch`
    /// behind a 4-byte header (compressed, if it was compressed).
    ///
    /// PostgreSQL: `src/backend/access/common/detoast.c`, `detoast_external_attr`, as
    /// `index_form_tuple` calls it.
    ///
    /// # Panics
    /// On a pointer that is none of this batch's.
    pub fn index_datum<'a>(&self, stored: &'a [u8], scratch: &'a mut Vec<u8>) -> &'a [u8] {
        if varlena::form(stored) != varlena::Form::External {
            return stored;
        }
        let pointer = ToastPointer::from_bytes(stored).expect("a pointer that the toaster made");
        let total = pointer.stored_bytes() + varlena::HEADER_BYTES;
        let compressed = pointer.compression_id().is_some();
        let header = (total as u32) << 2 | if compressed { 2 } else { 0 };
        scratch.clear();
        scratch.reserve_exact(total);
        scratch.extend_from_slice(&header.to_le_bytes());
        let first = self.first_chunks[pointer.value_id as usize] as usize;
        let chunks = pointer.stored_bytes().div_ceil(MAX_CHUNK_BYTES);
        for tuple in &self.tuples[first..first + chunks] {
            scratch.extend_from_slice(&self.tuple(*tuple)[CHUNK_DATA_POS..]);
        }
        debug_assert_eq!(scratch.len(), total);
        scratch
    }
}

fn add_base_at(arena: &mut [u8], pos: usize, base: Oid) {
    let id = &mut arena[pos..pos + 4];
    let relative = u32::from_le_bytes([id[0], id[1], id[2], id[3]]);
    id.copy_from_slice(&(relative + base).to_le_bytes());
}

/// Makes the value ids of rows' pointers final, as [`ToastChunks::add_base`] does for the
/// chunks: adds `base` to each at `patches` ([`ToastChunks::pointer_patches`]) of the rows'
/// arena.
pub fn add_base_to_pointers(arena: &mut [u8], patches: &[u32], base: Oid) {
    for pos in patches {
        add_base_at(arena, *pos as usize, base);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_of_4000_bytes_is_three_chunks() {
        let mut chunks = ToastChunks::new();
        assert_eq!(chunks.push_value(&[5; 10]), 0);
        assert_eq!(chunks.push_value(&[6; 4000]), 1);
        let lens: Vec<u32> = chunks.tuples().iter().map(|t| t.len).collect();
        assert_eq!(lens, [46, 2032, 2032, 44]);
        let first = chunks.tuple(chunks.tuples()[0]);
        assert_eq!(
            first[..40],
            [
                2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0x02, 0x0b, 24, 0, 0,
                0, 0, 0, 0, 0, 0, 0, 56, 0, 0, 0, 5, 5, 5, 5
            ]
        );
        let last = chunks.tuples()[3];
        assert_eq!(chunks.key(last), (1, 2));
        chunks.add_base(70_000);
        assert_eq!(chunks.key(last), (70_001, 2));
        assert!(chunks.tuples().iter().all(|t| t.pos % 8 == 0));
    }

    #[test]
    fn a_row_that_is_dropped_takes_its_chunks_with_it() {
        let mut chunks = ToastChunks::new();
        chunks.push_value(&[5; 10]);
        let mark = chunks.mark();
        chunks.push_value(&[6; 4000]);
        chunks.push_pointer_patch(100);
        chunks.roll_back(mark);
        assert_eq!((chunks.value_count(), chunks.tuples().len()), (1, 1));
        assert_eq!(chunks.push_value(&[6; 4]), 1);
        assert!(chunks.pointer_patches().is_empty());
    }
}
