//! Writing the compressed form: items in groups of eight behind a control byte, the lowest
//! bit first.

use super::history::Match;

/// Output bytes without a match after which the value counts as incompressible.
const FIRST_SUCCESS_BY_BYTES: usize = 1024;

/// The items of one value, written behind what `out` had.
pub(super) struct Items<'a> {
    out: &'a mut Vec<u8>,
    start: usize,
    /// Where the next byte goes; `out` is longer.
    end: usize,
    /// Where the control byte of the group in hand goes.
    control_pos: usize,
    control: u8,
    /// The next item's bit in it; 0 when a group begins.
    bit: u8,
    /// The compressed form must be shorter.
    max_bytes: usize,
    found: bool,
}

impl<'a> Items<'a> {
    /// Most bytes of an item, with the control byte before it.
    const ITEM_BYTES: usize = 4;

    pub(super) fn new(out: &'a mut Vec<u8>, max_bytes: usize) -> Items<'a> {
        let start = out.len();
        let mut items = Items {
            out,
            start,
            end: start,
            control_pos: start,
            control: 0,
            bit: 0,
            max_bytes,
            found: false,
        };
        items.grow();
        items
    }

    /// Room for an item, behind a control byte where one is due; `None` where the server gives
    /// up: nothing is saved, or nothing was found for long.
    #[inline(always)]
    fn room(&mut self) -> Option<&mut [u8; 3]> {
        let bytes = self.end - self.start;
        if bytes >= self.max_bytes || (!self.found && bytes >= FIRST_SUCCESS_BY_BYTES) {
            return None;
        }
        if self.end + Self::ITEM_BYTES > self.out.len() {
            self.grow();
        }
        if self.bit == 0 {
            self.out[self.control_pos] = self.control;
            self.control_pos = self.end;
            self.end += 1;
            self.control = 0;
            self.bit = 1;
        }
        self.out[self.end..].first_chunk_mut()
    }

    /// Takes memory step by step, twice what there is.
    #[cold]
    #[inline(never)]
    fn grow(&mut self) {
        let more = (self.out.len() - self.start).clamp(2048, 64 << 20);
        let more = more.min(self.max_bytes).max(1) + Self::ITEM_BYTES;
        self.out.resize(self.end + more, 0);
    }

    /// Appends a byte as it is. `None` where the server gives up.
    #[inline(always)]
    pub(super) fn literal(&mut self, byte: u8) -> Option<()> {
        self.room()?[0] = byte;
        self.end += 1;
        self.bit <<= 1;
        Some(())
    }

    /// Appends a match. `None` where the server gives up.
    #[inline(always)]
    pub(super) fn matched(&mut self, found: Match) -> Option<()> {
        let (len, distance) = (found.len(), found.distance());
        let high = (distance >> 4 & 0xf0) as u8;
        let is_long = len > 17;
        *self.room()? = [
            high | if is_long { 0x0f } else { (len - 3) as u8 },
            distance as u8,
            len.wrapping_sub(18) as u8,
        ];
        self.end += if is_long { 3 } else { 2 };
        self.control |= self.bit;
        self.bit <<= 1;
        self.found = true;
        Some(())
    }

    /// The end of the compressed form in `out`; `None` when too little is saved.
    pub(super) fn finish(self) -> Option<usize> {
        self.out[self.control_pos] = self.control;
        (self.end - self.start < self.max_bytes).then_some(self.end)
    }
}
