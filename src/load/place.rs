//! place: which page each tuple goes to, decided in the order of the input.
//!
//! This is the one step that the workers take turns at, so it does a few additions per row
//! and nothing else. A chunk's last page is rarely full; its tuples pass to the next chunk,
//! which puts them on its first page, before its own:
//!
//! ```text
//! chunk 1:  [page 0][page 1][page 2 ..   carry ->
//! chunk 2:          -> carry .. page 2][page 3][page 4 ..   carry ->
//! ```

use pgformat::heap::page::PageFill;
use pgformat::heap::tuple::FormedTuple;
use pgformat::ids::{BlockNumber, Tid};

/// Tuples of a page that is not full, on their way to the chunk that will seal it.
#[derive(Debug, Default, Clone)]
pub struct Carry {
    arena: Vec<u8>,
    tuples: Vec<FormedTuple>,
}

impl Carry {
    /// The tuples in page order, as (bytes).
    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        self.tuples
            .iter()
            .map(|t| &self.arena[t.pos as usize..(t.pos + t.len) as usize])
    }

    fn push(&mut self, tuple: &[u8]) {
        self.tuples.push(FormedTuple {
            pos: self.arena.len() as u32,
            len: tuple.len() as u32,
        });
        self.arena.extend_from_slice(tuple);
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.tuples.is_empty()
    }
}

/// Where a chunk's tuples go.
#[derive(Debug, Default)]
pub struct Placement {
    /// The block of the first page that this chunk seals.
    pub first_block: BlockNumber,
    /// For each page that this chunk seals: the index after its last tuple in the chunk.
    pub page_ends: Vec<usize>,
    /// What stands on the first page before the chunk's own tuples.
    pub carried_in: Carry,
}

/// Places the tuples of one heap, chunk after chunk.
#[derive(Debug)]
pub struct Placer {
    fill: PageFill,
    block: BlockNumber,
    carry: Carry,
}

impl Placer {
    /// A placer for an empty heap that fills its pages so.
    pub fn new(fill: PageFill) -> Placer {
        Placer {
            fill,
            block: 0,
            carry: Carry::default(),
        }
    }

    /// Places a chunk's tuples after all those before; `tids` gets one TID for each.
    pub fn place(
        &mut self,
        arena: &[u8],
        tuples: &[FormedTuple],
        tids: &mut Vec<Tid>,
    ) -> Placement {
        tids.clear();
        tids.reserve(tuples.len());
        let first_block = self.block;
        let mut page_ends = Vec::new();
        for (index, tuple) in tuples.iter().enumerate() {
            if !self.fill.fits(tuple.len) {
                page_ends.push(index);
                self.block += 1;
                self.fill.reset();
            }
            let offset = self.fill.add(tuple.len);
            tids.push(Tid {
                block: self.block,
                offset,
            });
        }
        let carried_in = match page_ends.last() {
            None => Carry::default(),
            Some(_) => std::mem::take(&mut self.carry),
        };
        let rest = page_ends.last().copied().unwrap_or(0);
        for tuple in &tuples[rest..] {
            self.carry
                .push(&arena[tuple.pos as usize..(tuple.pos + tuple.len) as usize]);
        }
        Placement {
            first_block,
            page_ends,
            carried_in,
        }
    }

    /// Blocks so far, the page in hand included.
    pub fn blocks(&self) -> BlockNumber {
        self.block + BlockNumber::from(!self.carry.is_empty())
    }

    /// Takes the last page's tuples; nothing is placed after this.
    pub fn finish(&mut self) -> PlacedHeap {
        PlacedHeap {
            blocks: self.blocks(),
            last_page: std::mem::take(&mut self.carry),
        }
    }
}

/// A heap all of whose tuples are placed.
#[derive(Debug)]
pub struct PlacedHeap {
    /// Its blocks.
    pub blocks: BlockNumber,
    /// What stands on the last of them; empty for an empty heap.
    pub last_page: Carry,
}
