//! The TOAST chunks of a table in order, two bytes each, from which the index on them is made.
//!
//! Where each chunk went follows from the lengths of all before it, by the rule that placed
//! them, so neither TIDs nor keys need be kept:
//!
//! ```text
//! bit 15: the chunk is its value's first     bits 0..15: t_len
//! ```

use pgformat::heap::page::PageFill;
use pgformat::ids::{Oid, Tid};
use pgformat::toast::chunks::ToastChunks;

const FIRST: u16 = 1 << 15;

/// The log.
#[derive(Debug, Default)]
pub struct ToastLog(Vec<u16>);

impl ToastLog {
    /// Notes all chunks of `chunks`.
    pub fn extend(&mut self, chunks: &ToastChunks) {
        self.0.extend(chunks.tuples().iter().map(|tuple| {
            let (_, chunk_seq) = chunks.key(*tuple);
            tuple.len as u16 | if chunk_seq == 0 { FIRST } else { 0 }
        }));
    }

    /// `chunk_id`, `chunk_seq` and TID of every chunk, in order.
    pub fn replay(&self, first_value_id: Oid) -> impl Iterator<Item = (Oid, i32, Tid)> {
        let mut fill = PageFill::for_toast();
        let mut block = 0;
        let (mut next_id, mut seq) = (first_value_id, 0);
        self.0.iter().map(move |entry| {
            let len = u32::from(entry & !FIRST);
            if entry & FIRST != 0 {
                next_id += 1;
                seq = 0;
            }
            if !fill.fits(len) {
                block += 1;
                fill.reset();
            }
            let tid = Tid {
                block,
                offset: fill.add(len),
            };
            let chunk_seq = seq;
            seq += 1;
            (next_id - 1, chunk_seq, tid)
        })
    }
}
