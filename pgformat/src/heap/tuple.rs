//! Forming heap tuples, many of them into one arena.
//!
//! ```text
//! HeapTupleHeader (23 bytes)                      null bitmap   data area
//! t_xmin 4 | t_xmax 4 | t_field3 4 | t_ctid 6 |   (only if a    (from t_hoff, attributes
//! t_infomask2 2 | t_infomask 2 | t_hoff 1         null exists)   each at its alignment)
//! ```
//!
//! The data area begins at t_hoff, a multiple of 8, whether there is a bitmap or not, so values
//! are laid down before it is known if the row has a null; the header is put before them last.
//!
//! PostgreSQL: `src/include/access/htup_details.h`, `src/backend/access/common/heaptuple.c`
//! (`heap_form_tuple`, `heap_fill_tuple`).

use crate::datum::varlena;
use crate::layout::{AttrLen, AttributeLayout, Storage, align_up, maxalign};
use std::sync::Arc;

/// Bytes of the fixed part of the header (`SizeofHeapTupleHeader`).
pub const HEADER_BYTES: usize = 23;
/// Most attributes of a table (`MaxHeapAttributeNumber`).
pub const MAX_ATTRIBUTES: usize = 1600;

/// What [`TupleBuilder::clear`] leaves of its storage.
const KEPT_BYTES: usize = 128 << 20;

/// Where t_ctid lies in the header.
pub const CTID_POS: usize = 12;

/// t_infomask: there is a null bitmap.
pub const HEAP_HASNULL: u16 = 0x0001;
/// t_infomask: an attribute has variable width.
pub const HEAP_HASVARWIDTH: u16 = 0x0002;
/// t_infomask: an attribute is stored out of line.
pub const HEAP_HASEXTERNAL: u16 = 0x0004;
/// t_infomask: xmin is frozen (committed and invalid at once).
pub const HEAP_XMIN_FROZEN: u16 = 0x0300;
/// t_infomask: xmax is invalid.
pub const HEAP_XMAX_INVALID: u16 = 0x0800;
/// The xid of frozen tuples (`FrozenTransactionId`).
pub const FROZEN_XID: u32 = 2;

/// A tuple of the arena.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FormedTuple {
    /// First byte of its header in the arena; a multiple of 8.
    pub pos: u32,
    /// Its t_len in bytes, not aligned.
    pub len: u32,
}

/// Where one attribute of the row under construction lies in the arena.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Span {
    start: u32,
    end: u32,
}

const NULL_SPAN: Span = Span {
    start: u32::MAX,
    end: u32::MAX,
};

/// How an attribute is put.
#[derive(Clone, Copy, Debug)]
struct Rule {
    align: u8,
    /// A short varlena has a header of one byte.
    is_packable: bool,
}

/// Room behind the cursor that every put leaves: padding is written by the word.
const ROOM_BYTES: usize = 16;

/// Forms tuples of one table into an arena.
///
/// A row is `begin_row`, then exactly one `put_*` for each attribute in order (dropped ones
/// are `put_null`), then `finish_row`, or `abandon_row`. The last row's values can be read by
/// [`TupleBuilder::attribute`] until the next row begins.
#[derive(Debug)]
pub struct TupleBuilder {
    layout: Arc<[AttributeLayout]>,
    /// What putting a value needs of each attribute's layout.
    rules: Box<[Rule]>,
    /// Storage; only `..cursor` means anything.
    arena: Vec<u8>,
    /// End of the finished tuples.
    finished: usize,
    /// Start of the data area of the row in hand.
    data: usize,
    cursor: usize,
    /// One for each attribute; those before `next` are of the row in hand.
    spans: Box<[Span]>,
    /// The next attribute.
    next: usize,
    has_null: bool,
    infomask: u16,
    /// Bytes before the data area: room for the header with a bitmap.
    header_room: usize,
}

impl TupleBuilder {
    /// A builder for a table of these attributes, in attnum order, dropped ones included.
    pub fn new(layout: Arc<[AttributeLayout]>) -> TupleBuilder {
        assert!(
            layout.len() <= MAX_ATTRIBUTES,
            "more attributes than a tuple can have"
        );
        let header_room = maxalign(HEADER_BYTES + layout.len().div_ceil(8));
        TupleBuilder {
            spans: vec![NULL_SPAN; layout.len()].into(),
            next: 0,
            rules: layout
                .iter()
                .map(|attribute| Rule {
                    align: attribute.align,
                    is_packable: attribute.storage != Storage::Plain,
                })
                .collect(),
            layout,
            arena: Vec::new(),
            finished: 0,
            data: 0,
            cursor: 0,
            has_null: false,
            infomask: 0,
            header_room,
        }
    }

    /// The attributes' layout.
    pub fn layout(&self) -> &Arc<[AttributeLayout]> {
        &self.layout
    }

    /// Forgets all tuples and keeps storage of a common size: what a giant row took beyond it
    /// is given back.
    pub fn clear(&mut self) {
        if self.arena.len() > KEPT_BYTES {
            self.arena.truncate(KEPT_BYTES);
            self.arena.shrink_to_fit();
        }
        self.finished = 0;
        self.cursor = 0;
        self.data = 0;
        self.next = 0;
    }

    /// All finished tuples, as [`FormedTuple`] positions count them.
    pub fn arena(&self) -> &[u8] {
        &self.arena[..self.finished]
    }

    /// The same bytes, to be completed in place: value ids of TOAST pointers are known only
    /// after the rows before have been placed.
    pub fn arena_mut(&mut self) -> &mut [u8] {
        &mut self.arena[..self.finished]
    }

    /// Starts a row.
    #[inline]
    pub fn begin_row(&mut self) {
        self.data = maxalign(self.finished) + self.header_room;
        self.cursor = self.data;
        self.next = 0;
        self.has_null = false;
        self.infomask = 0;
        self.reserve(64);
    }

    /// Makes room for `more_bytes` at the cursor.
    #[inline]
    fn reserve(&mut self, more_bytes: usize) {
        let need = self.cursor + more_bytes;
        if need > self.arena.len() {
            self.grow(need);
        }
    }

    #[cold]
    fn grow(&mut self, need: usize) {
        self.arena
            .resize(need.max(self.arena.len() * 2).max(4096), 0);
    }

    /// Pads with zeros to `align`; eight bytes of room must be there.
    #[inline(always)]
    fn pad_to(&mut self, align: usize) {
        // The data area starts at a multiple of 8 of the arena, so positions align alike.
        self.arena[self.cursor..self.cursor + 8].copy_from_slice(&[0; 8]);
        self.cursor = align_up(self.cursor, align);
    }

    #[inline]
    fn next_layout(&self) -> &AttributeLayout {
        &self.layout[self.next]
    }

    /// The next attribute is null.
    #[inline]
    pub fn put_null(&mut self) {
        self.has_null = true;
        self.spans[self.next] = NULL_SPAN;
        self.next += 1;
    }

    /// Where the attribute just put lies.
    #[inline(always)]
    fn end_attribute(&mut self, start: usize) {
        self.spans[self.next] = Span {
            start: start as u32,
            end: self.cursor as u32,
        };
        self.next += 1;
    }

    /// The next attribute, of fixed length, is these bytes.
    #[inline(always)]
    pub fn put_fixed<const N: usize>(&mut self, bytes: &[u8; N]) {
        debug_assert_eq!(self.next_layout().len, AttrLen::Fixed(N as u16));
        self.reserve(N + ROOM_BYTES);
        self.pad_to(self.rules[self.next].align as usize);
        let start = self.cursor;
        self.cursor = start + N;
        self.arena[start..start + N].copy_from_slice(bytes);
        self.end_attribute(start);
    }

    /// The next attribute is a varlena with this payload; the header is chosen as
    /// `heap_fill_tuple` chooses it.
    #[inline]
    pub fn put_varlena(&mut self, payload: &[u8]) {
        debug_assert_eq!(self.next_layout().len, AttrLen::Varlena);
        self.reserve(payload.len() + ROOM_BYTES);
        self.infomask |= HEAP_HASVARWIDTH;
        let rule = self.rules[self.next];
        let start;
        if rule.is_packable && payload.len() <= varlena::SHORT_MAX_PAYLOAD_BYTES {
            start = self.cursor;
            let place = &mut self.arena[start..=start + payload.len()];
            place[0] = varlena::short_header(payload.len() + 1);
            copy_short(&mut place[1..], payload);
            self.cursor = start + 1 + payload.len();
        } else {
            self.pad_to(rule.align as usize);
            start = self.cursor;
            let place = &mut self.arena[start..start + varlena::HEADER_BYTES + payload.len()];
            let (header, place) = place.split_at_mut(varlena::HEADER_BYTES);
            header.copy_from_slice(&varlena::full_header(payload.len() + varlena::HEADER_BYTES));
            place.copy_from_slice(payload);
            self.cursor = start + varlena::HEADER_BYTES + payload.len();
        }
        self.end_attribute(start);
    }

    /// The next attribute is a varlena whose payload is the first `len` of these bytes: as
    /// [`TupleBuilder::put_varlena`], without a branch that asks for the length.
    ///
    /// # Panics
    /// When there are fewer bytes than `len`, or more than a short header can tell.
    #[inline(always)]
    pub fn put_short_varlena<const N: usize>(&mut self, bytes: &[u8; N], len: usize) {
        const { assert!(N <= varlena::SHORT_MAX_PAYLOAD_BYTES) }
        debug_assert_eq!(self.next_layout().len, AttrLen::Varlena);
        assert!(len <= N, "a payload of so many bytes");
        if !self.rules[self.next].is_packable {
            return self.put_varlena(&bytes[..len]);
        }
        self.reserve(1 + N);
        self.infomask |= HEAP_HASVARWIDTH;
        let start = self.cursor;
        let place = &mut self.arena[start..start + 1 + N];
        place[0] = varlena::short_header(len + 1);
        place[1..].copy_from_slice(bytes);
        self.cursor = start + 1 + len;
        self.end_attribute(start);
    }

    /// The next attribute is a value in stored form: fixed bytes, or a varlena with its header,
    /// compressed or external ones included.
    pub fn put_stored(&mut self, stored: &[u8]) {
        let layout = *self.next_layout();
        if layout.len == AttrLen::Varlena {
            match varlena::form(stored) {
                varlena::Form::Full if stored.len() - 3 <= varlena::SHORT_MAX_BYTES => {
                    self.put_varlena(&stored[varlena::HEADER_BYTES..]);
                    return;
                }
                varlena::Form::Full | varlena::Form::Compressed => {
                    self.reserve(stored.len() + ROOM_BYTES);
                    self.pad_to(layout.align as usize);
                }
                varlena::Form::Short => self.reserve(stored.len()),
                varlena::Form::External => {
                    self.reserve(stored.len());
                    self.infomask |= HEAP_HASEXTERNAL;
                }
            }
            self.infomask |= HEAP_HASVARWIDTH;
        } else {
            if layout.len == AttrLen::CString {
                self.infomask |= HEAP_HASVARWIDTH;
            }
            self.reserve(stored.len() + ROOM_BYTES);
            self.pad_to(layout.align as usize);
        }
        let start = self.cursor;
        self.arena[start..start + stored.len()].copy_from_slice(stored);
        self.cursor += stored.len();
        self.end_attribute(start);
    }

    /// Ends the row: puts the header before the values.
    ///
    /// # Panics
    /// When the row does not have a value for each attribute.
    #[inline]
    pub fn finish_row(&mut self) -> FormedTuple {
        let natts = self.layout.len();
        assert_eq!(self.next, natts, "a row with a value missing");
        let mut infomask = self.infomask | HEAP_XMIN_FROZEN | HEAP_XMAX_INVALID;
        if self.has_null {
            infomask |= HEAP_HASNULL;
        }
        // t_xmin, then zeros up to t_infomask2: t_ctid is set when the tuple has a place.
        let mut fixed = [0; maxalign(HEADER_BYTES)];
        fixed[0..4].copy_from_slice(&FROZEN_XID.to_le_bytes());
        fixed[18..20].copy_from_slice(&(natts as u16).to_le_bytes());
        fixed[20..22].copy_from_slice(&infomask.to_le_bytes());
        let mut hoff = maxalign(HEADER_BYTES);
        if self.has_null {
            hoff = maxalign(HEADER_BYTES + natts.div_ceil(8));
            fixed[22] = hoff as u8;
            let header = &mut self.arena[self.data - hoff..self.data];
            header.fill(0);
            header[..HEADER_BYTES].copy_from_slice(&fixed[..HEADER_BYTES]);
            for (i, span) in self.spans.iter().enumerate() {
                if *span != NULL_SPAN {
                    header[HEADER_BYTES + i / 8] |= 1 << (i % 8);
                }
            }
        } else {
            fixed[22] = hoff as u8;
            self.arena[self.data - fixed.len()..self.data].copy_from_slice(&fixed);
        }
        let pos = self.data - hoff;
        self.finished = self.cursor;
        FormedTuple {
            pos: pos as u32,
            len: (self.cursor - pos) as u32,
        }
    }

    /// Takes back the row last finished, so that another may stand in its place (the toaster
    /// does so); its values are read before this.
    pub fn take_back(&mut self, tuple: FormedTuple) {
        debug_assert_eq!(self.finished, (tuple.pos + tuple.len) as usize);
        self.finished = tuple.pos as usize;
    }

    /// Drops the row in hand.
    pub fn abandon_row(&mut self) {
        self.cursor = self.finished;
    }

    /// Where in the arena [`TupleBuilder::attribute`] of `index` begins; `None` for null.
    #[inline]
    pub fn attribute_pos(&self, index: usize) -> Option<u32> {
        debug_assert!(index < self.next);
        let span = self.spans[index];
        (span != NULL_SPAN).then_some(span.start)
    }

    /// The stored bytes of attribute `index` (from 0) of the row in hand or just finished;
    /// `None` for null. Varlenas come with their header.
    #[inline]
    pub fn attribute(&self, index: usize) -> Option<&[u8]> {
        debug_assert!(index < self.next);
        let span = self.spans[index];
        (span != NULL_SPAN).then(|| &self.arena[span.start as usize..span.end as usize])
    }
}

/// Copies some bytes of the same number. Copies that overlap spare the call for the common
/// lengths.
#[inline(always)]
fn copy_short(to: &mut [u8], from: &[u8]) {
    match from.len() {
        0 => {}
        1..4 => {
            let (middle, last) = (from.len() / 2, from.len() - 1);
            to[0] = from[0];
            to[middle] = from[middle];
            to[last] = from[last];
        }
        4..8 => copy_ends::<4>(to, from),
        8..16 => copy_ends::<8>(to, from),
        16..=32 => copy_ends::<16>(to, from),
        _ => to.copy_from_slice(from),
    }
}

/// Copies the first and the last `N` bytes of at most twice as many.
#[inline(always)]
fn copy_ends<const N: usize>(to: &mut [u8], from: &[u8]) {
    if let (Some(first), Some(last)) = (from.first_chunk::<N>(), from.last_chunk::<N>()) {
        to[..N].copy_from_slice(first);
        let at = to.len() - N;
        to[at..].copy_from_slice(last);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::Compression;

    fn int4() -> AttributeLayout {
        AttributeLayout {
            len: AttrLen::Fixed(4),
            align: 4,
            by_value: true,
            storage: Storage::Plain,
            compression: Compression::Pglz,
        }
    }

    fn text() -> AttributeLayout {
        AttributeLayout {
            len: AttrLen::Varlena,
            align: 4,
            by_value: false,
            storage: Storage::Extended,
            compression: Compression::Pglz,
        }
    }

    #[test]
    fn a_row_without_nulls_has_no_bitmap() {
        let mut b = TupleBuilder::new(Arc::from([int4(), text(), int4()]));
        b.begin_row();
        b.put_fixed(&7i32.to_le_bytes());
        b.put_varlena(b"abc");
        b.put_fixed(&9i32.to_le_bytes());
        let t = b.finish_row();
        assert_eq!(
            t,
            FormedTuple {
                pos: 0,
                len: 24 + 4 + 4 + 4
            }
        );
        let bytes = b.arena();
        assert_eq!(&bytes[18..24], &[3, 0, 0x02, 0x0b, 24, 0]);
        assert_eq!(&bytes[24..], &[7, 0, 0, 0, 9, b'a', b'b', b'c', 9, 0, 0, 0]);
    }

    #[test]
    fn a_row_with_a_null_has_a_bitmap_of_those_that_are_there() {
        let mut b = TupleBuilder::new(Arc::from([int4(), text(), int4()]));
        b.begin_row();
        b.put_null();
        b.put_varlena(b"");
        b.put_fixed(&9i32.to_le_bytes());
        let t = b.finish_row();
        assert_eq!(t.len, 24 + 8);
        let bytes = &b.arena()[t.pos as usize..];
        assert_eq!(&bytes[18..24], &[3, 0, 0x03, 0x0b, 24, 0b110]);
        assert_eq!(b.attribute(0), None);
        assert_eq!(b.attribute(1), Some(&[3u8][..]));
    }

    #[test]
    fn a_long_varlena_is_aligned_and_has_a_full_header() {
        let mut b = TupleBuilder::new(Arc::from([text(), text()]));
        b.begin_row();
        b.put_varlena(b"x");
        b.put_varlena(&[b'y'; 127]);
        let t = b.finish_row();
        assert_eq!(t.len as usize, 24 + 2 + 2 + 4 + 127);
        assert_eq!(&b.attribute(1).unwrap()[..4], &(131u32 << 2).to_le_bytes());
    }
}
