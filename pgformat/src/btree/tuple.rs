//! Index tuples: plain, pivot and posting list.
//!
//! ```text
//! plain     t_tid 6 | t_info 2 | null bitmap 4 + 4 pad, if a null exists | attributes
//!           t_tid is the heap tuple's
//! pivot     the same, but t_tid is the downlink's block and, in place of an offset, how many
//!           attributes are left; a heap TID may stand in the last 6 bytes
//! posting   the same, but t_tid is where the posting list begins and how many TIDs it has;
//!           the list of TIDs follows the attributes
//!
//! t_info    bits 0-12 size in bytes, 13 t_tid is not a TID (pivot, posting), 14 has an
//!           attribute of variable width, 15 has a null
//! ```
//!
//! Every size is a multiple of 8.
//!
//! PostgreSQL: `src/include/access/itup.h`, `src/backend/access/common/indextuple.c`,
//! `src/include/access/nbtree.h` ("Notes on B-Tree tuple format").

use crate::datum::varlena;
use crate::ids::{BlockNumber, Tid};
use crate::layout::{AttrLen, AttributeLayout, Storage, align_up, maxalign};

/// Bytes of t_tid and t_info (`sizeof(IndexTupleData)`).
pub const HEADER_BYTES: usize = 8;
/// Bytes of the null bitmap: a bit for each of [`INDEX_MAX_KEYS`].
pub const NULL_BITMAP_BYTES: usize = 4;
/// Most attributes of an index, INCLUDE columns counted.
pub const INDEX_MAX_KEYS: usize = 32;
/// The longest tuple that t_info can tell, in bytes.
pub const MAX_SIZE_BYTES: usize = SIZE_MASK as usize;
/// A plain value longer than this, header included, is compressed before it is indexed.
///
/// PostgreSQL: `TOAST_INDEX_TARGET`, `MaxHeapTupleSize / 16`.
pub const TOAST_INDEX_TARGET_BYTES: usize = 510;

const SIZE_MASK: u16 = 0x1fff;
const ALT_TID: u16 = 0x2000;
const HAS_VARWIDTH: u16 = 0x4000;
const HAS_NULL: u16 = 0x8000;

const STATUS_PIVOT_HEAP_TID: u16 = 0x1000;
const STATUS_POSTING: u16 = 0x2000;
const OFFSET_MASK: u16 = 0x0fff;

/// Whether a stored value is to be compressed before it goes into an index tuple, and so may go
/// in compressed.
///
/// PostgreSQL: `index_form_tuple`, under `TOAST_INDEX_HACK`.
#[inline]
pub fn wants_compression(layout: &AttributeLayout, stored: &[u8]) -> bool {
    stored.len() > TOAST_INDEX_TARGET_BYTES
        && layout.len == AttrLen::Varlena
        && matches!(layout.storage, Storage::Extended | Storage::Main)
        && varlena::form(stored) == varlena::Form::Full
}

/// Appends a plain tuple to `out`, whose length must be a multiple of 8; t_tid is left zero.
/// Returns the tuple's size in bytes, and leaves `out` as it was when that is more than
/// [`MAX_SIZE_BYTES`].
///
/// `value` gives each attribute in stored form: fixed bytes, a C string with its NUL, a varlena
/// with its header (never a TOAST pointer), or `None` for null.
///
/// PostgreSQL: `index_form_tuple`, `heap_fill_tuple`.
pub fn form<'v>(
    layout: &[AttributeLayout],
    value: impl Fn(usize) -> Option<&'v [u8]>,
    out: &mut Vec<u8>,
) -> usize {
    let base = out.len();
    debug_assert_eq!(base % 8, 0);
    let mut info = 0;
    let mut nulls = 0u32;
    for i in 0..layout.len() {
        if value(i).is_none() {
            nulls |= 1 << i;
        }
    }
    out.extend_from_slice(&[0; HEADER_BYTES]);
    if nulls != 0 {
        info |= HAS_NULL;
        let there = !nulls & (u32::MAX >> (32 - layout.len()));
        out.extend_from_slice(&there.to_le_bytes());
        out.extend_from_slice(&[0; 8 - NULL_BITMAP_BYTES]);
    }
    for (i, attribute) in layout.iter().enumerate() {
        let Some(stored) = value(i) else { continue };
        match attribute.len {
            AttrLen::Fixed(_) => {
                pad_to(out, attribute.align as usize);
                out.extend_from_slice(stored);
            }
            AttrLen::CString => {
                info |= HAS_VARWIDTH;
                pad_to(out, attribute.align as usize);
                out.extend_from_slice(stored);
            }
            AttrLen::Varlena => {
                info |= HAS_VARWIDTH;
                push_varlena(*attribute, stored, out);
            }
        }
    }
    pad_to(out, 8);
    let size = out.len() - base;
    if size > MAX_SIZE_BYTES {
        out.truncate(base);
        return size;
    }
    set_info(&mut out[base..], info | size as u16);
    size
}

fn push_varlena(attribute: AttributeLayout, stored: &[u8], out: &mut Vec<u8>) {
    match varlena::form(stored) {
        varlena::Form::Short => out.extend_from_slice(stored),
        varlena::Form::Full
            if attribute.is_packable()
                && stored.len() - varlena::HEADER_BYTES <= varlena::SHORT_MAX_PAYLOAD_BYTES =>
        {
            let payload = &stored[varlena::HEADER_BYTES..];
            out.push(varlena::short_header(payload.len() + 1));
            out.extend_from_slice(payload);
        }
        varlena::Form::Full | varlena::Form::Compressed => {
            pad_to(out, attribute.align as usize);
            out.extend_from_slice(stored);
        }
        varlena::Form::External => panic!("a TOAST pointer cannot stand in an index tuple"),
    }
}

/// Pads with zeros; tuples begin at multiples of 8, so positions in `out` align alike.
#[inline]
fn pad_to(out: &mut Vec<u8>, align: usize) {
    out.resize(align_up(out.len(), align), 0);
}

#[inline]
fn info(tuple: &[u8]) -> u16 {
    u16::from_le_bytes([tuple[6], tuple[7]])
}

#[inline]
fn set_info(tuple: &mut [u8], info: u16) {
    tuple[6..8].copy_from_slice(&info.to_le_bytes());
}

/// The size that t_info tells, in bytes.
///
/// # Panics
/// On fewer than 8 bytes.
#[inline]
pub fn size(tuple: &[u8]) -> usize {
    (info(tuple) & SIZE_MASK) as usize
}

#[inline]
fn set_size(tuple: &mut [u8], size: usize) {
    debug_assert!(size <= MAX_SIZE_BYTES);
    let flags = info(tuple) & !SIZE_MASK;
    set_info(tuple, flags | size as u16);
}

/// Whether an attribute is null.
#[inline]
pub fn has_null(tuple: &[u8]) -> bool {
    info(tuple) & HAS_NULL != 0
}

/// The TID of a plain tuple, as it stands.
#[inline]
pub fn tid(tuple: &[u8]) -> Tid {
    Tid::from_bytes([tuple[0], tuple[1], tuple[2], tuple[3], tuple[4], tuple[5]])
}

/// Sets the TID of a plain tuple.
#[inline]
pub fn set_tid(tuple: &mut [u8], tid: Tid) {
    tuple[..Tid::SIZE_BYTES].copy_from_slice(&tid.to_bytes());
}

/// Whether it is a posting list tuple.
#[inline]
pub fn is_posting(tuple: &[u8]) -> bool {
    info(tuple) & ALT_TID != 0 && tid(tuple).offset & STATUS_POSTING != 0
}

/// Where the posting list begins in a posting list tuple, in bytes.
#[inline]
pub fn posting_pos(tuple: &[u8]) -> usize {
    debug_assert!(is_posting(tuple));
    tid(tuple).block as usize
}

/// The greatest heap TID of a plain or posting list tuple.
///
/// PostgreSQL: `BTreeTupleGetMaxHeapTID`.
fn max_heap_tid(tuple: &[u8]) -> Tid {
    if !is_posting(tuple) {
        return tid(tuple);
    }
    let count = (tid(tuple).offset & OFFSET_MASK) as usize;
    let pos = posting_pos(tuple) + (count - 1) * Tid::SIZE_BYTES;
    self::tid(&tuple[pos..])
}

/// Walks the attributes of a tuple that [`form`] made.
#[derive(Debug, Clone)]
pub struct Attributes<'t> {
    layout: std::slice::Iter<'t, AttributeLayout>,
    tuple: &'t [u8],
    pos: usize,
    nulls: u32,
}

/// The attributes of a plain or posting list tuple in stored form, as many as `layout` has;
/// `None` for null. C strings come with their NUL.
///
/// # Panics
/// The iterator panics on a tuple that is shorter than its attributes say.
#[inline]
pub fn attributes<'t>(layout: &'t [AttributeLayout], tuple: &'t [u8]) -> Attributes<'t> {
    let (pos, nulls) = if has_null(tuple) {
        let there = u32::from_le_bytes([tuple[8], tuple[9], tuple[10], tuple[11]]);
        (maxalign(HEADER_BYTES + NULL_BITMAP_BYTES), !there)
    } else {
        (HEADER_BYTES, 0)
    };
    Attributes {
        layout: layout.iter(),
        tuple,
        pos,
        nulls,
    }
}

impl<'t> Iterator for Attributes<'t> {
    type Item = Option<&'t [u8]>;

    #[inline]
    fn next(&mut self) -> Option<Option<&'t [u8]>> {
        let layout = self.layout.next()?;
        let null = self.nulls & 1 != 0;
        self.nulls >>= 1;
        if null {
            return Some(None);
        }
        let mut start = align_up(self.pos, layout.align as usize);
        let len = match layout.len {
            AttrLen::Fixed(n) => n as usize,
            AttrLen::CString => {
                let rest = &self.tuple[start..];
                rest.iter()
                    .position(|b| *b == 0)
                    .map_or(rest.len(), |n| n + 1)
            }
            AttrLen::Varlena => {
                // A pad byte is zero; a header of one byte never is.
                if self.tuple[self.pos] != 0 {
                    start = self.pos;
                }
                stored_len(&self.tuple[start..])
            }
        };
        self.pos = start + len;
        Some(Some(&self.tuple[start..start + len]))
    }
}

/// The whole length of a varlena, in bytes.
fn stored_len(stored: &[u8]) -> usize {
    if stored[0] & 1 == 1 {
        (stored[0] >> 1) as usize
    } else {
        (u32::from_le_bytes([stored[0], stored[1], stored[2], stored[3]]) >> 2) as usize
    }
}

/// Makes a posting list tuple in `out` from a plain tuple and the TIDs (two or more, ascending)
/// that share its key. Returns the bytes of the list with its padding, which suffix truncation
/// can take away.
///
/// PostgreSQL: `src/backend/access/nbtree/nbtdedup.c`, `_bt_form_posting`.
pub fn form_posting(base: &[u8], tids: &[Tid], out: &mut Vec<u8>) -> usize {
    debug_assert!(tids.len() > 1 && tids.len() <= OFFSET_MASK as usize);
    let key_bytes = size(base);
    out.clear();
    out.extend_from_slice(&base[..key_bytes]);
    for tid in tids {
        out.extend_from_slice(&tid.to_bytes());
    }
    pad_to(out, 8);
    let len = out.len();
    let flags = info(base) & !SIZE_MASK | ALT_TID;
    set_info(out, flags | len as u16);
    set_tid(
        out,
        Tid {
            block: key_bytes as BlockNumber,
            offset: tids.len() as u16 | STATUS_POSTING,
        },
    );
    len - key_bytes
}

/// The size in bytes of a posting list tuple of `tids` TIDs over a base tuple of `base_bytes`.
#[inline]
pub fn posting_bytes(base_bytes: usize, tids: usize) -> usize {
    maxalign(base_bytes + tids * Tid::SIZE_BYTES)
}

/// Makes the pivot tuple that separates two neighbours of a leaf level in `out`: the first
/// attributes of `first_right`, as few as tell it from `last_left`.
///
/// `keep` counts them: at most the number of key attributes, or one more, when the keys are
/// equal and `last_left`'s heap TID must be appended. The block number in t_tid stays what
/// `first_right` had there; the server leaves it, too.
///
/// PostgreSQL: `src/backend/access/nbtree/nbtutils.c`, `_bt_truncate`.
pub fn truncate(
    layout: &[AttributeLayout],
    key_count: usize,
    last_left: &[u8],
    first_right: &[u8],
    keep: usize,
    out: &mut Vec<u8>,
) {
    debug_assert!(keep >= 1 && keep <= key_count + 1);
    let left = keep.min(key_count);
    out.clear();
    if left == layout.len() {
        let len = if is_posting(first_right) {
            posting_pos(first_right)
        } else {
            size(first_right)
        };
        out.extend_from_slice(&first_right[..len]);
        set_size(out, len);
    } else {
        let mut values = [None; INDEX_MAX_KEYS];
        for (value, attribute) in values
            .iter_mut()
            .zip(attributes(&layout[..left], first_right))
        {
            *value = attribute;
        }
        let len = form(&layout[..left], |i| values[i], out);
        debug_assert_eq!(len, out.len());
        out[..Tid::SIZE_BYTES].copy_from_slice(&first_right[..Tid::SIZE_BYTES]);
    }
    if keep <= key_count {
        set_pivot(out, keep as u16);
        return;
    }
    // The TID stands at the very end, so the two bytes before it are padding.
    let len = out.len() + maxalign(Tid::SIZE_BYTES);
    out.resize(len - Tid::SIZE_BYTES, 0);
    out.extend_from_slice(&max_heap_tid(last_left).to_bytes());
    set_size(out, len);
    set_pivot(out, key_count as u16 | STATUS_PIVOT_HEAP_TID);
}

/// Marks a pivot tuple, with the number of attributes (and status bits) in its TID's offset.
fn set_pivot(tuple: &mut [u8], natts: u16) {
    let flags = info(tuple) | ALT_TID;
    set_info(tuple, flags);
    tuple[4..6].copy_from_slice(&natts.to_le_bytes());
}

/// The pivot tuple that is below every key: 8 bytes, no attribute.
pub const MINUS_INFINITY: [u8; HEADER_BYTES] =
    [0, 0, 0, 0, 0, 0, HEADER_BYTES as u8, (ALT_TID >> 8) as u8];

/// Sets the block that a pivot tuple points down to.
#[inline]
pub fn set_downlink(pivot: &mut [u8], block: BlockNumber) {
    pivot[..4].copy_from_slice(&Tid { block, offset: 0 }.to_bytes()[..4]);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::Compression;

    const fn attribute(len: AttrLen, align: u8, storage: Storage) -> AttributeLayout {
        AttributeLayout {
            len,
            align,
            by_value: false,
            storage,
            compression: Compression::Pglz,
        }
    }

    const INT4: AttributeLayout = attribute(AttrLen::Fixed(4), 4, Storage::Plain);
    const TEXT: AttributeLayout = attribute(AttrLen::Varlena, 4, Storage::Extended);
    const NAME: AttributeLayout = attribute(AttrLen::CString, 1, Storage::Plain);

    fn formed(layout: &[AttributeLayout], values: &[Option<&[u8]>]) -> Vec<u8> {
        let mut out = Vec::new();
        assert_eq!(form(layout, |i| values[i], &mut out), out.len());
        out
    }

    #[test]
    fn a_tuple_of_one_integer_takes_16_bytes() {
        let mut t = formed(&[INT4], &[Some(&7i32.to_le_bytes())]);
        set_tid(
            &mut t,
            Tid {
                block: 0x1_0002,
                offset: 3,
            },
        );
        assert_eq!(t, [1, 0, 2, 0, 3, 0, 16, 0, 7, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(size(&t), 16);
    }

    #[test]
    fn a_null_makes_room_for_a_bitmap_of_those_that_are_there() {
        let layout = [INT4, TEXT, NAME];
        let t = formed(&layout, &[None, Some(&[7, b'a', b'b']), Some(b"n\0")]);
        assert_eq!(
            t,
            [
                0, 0, 0, 0, 0, 0, 24, 0xc0, 0b110, 0, 0, 0, 0, 0, 0, 0, 7, b'a', b'b', b'n', 0, 0,
                0, 0
            ]
        );
        let read: Vec<_> = attributes(&layout, &t).collect();
        assert_eq!(read, [None, Some(&[7, b'a', b'b'][..]), Some(&b"n\0"[..])]);
    }

    #[test]
    fn a_full_header_is_made_short_where_it_can() {
        let full = [12 << 2, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8];
        let t = formed(&[TEXT], &[Some(&full)]);
        assert_eq!(
            &t[8..],
            [9 << 1 | 1, 1, 2, 3, 4, 5, 6, 7, 8, 0, 0, 0, 0, 0, 0, 0]
        );
        let plain = attribute(AttrLen::Varlena, 4, Storage::Plain);
        let t = formed(&[plain], &[Some(&full)]);
        assert_eq!(&t[8..20], full);
    }

    #[test]
    fn a_posting_list_follows_its_base() {
        let base = formed(&[INT4], &[Some(&7i32.to_le_bytes())]);
        let tid = |offset| Tid { block: 0, offset };
        let mut posting = Vec::new();
        assert_eq!(form_posting(&base, &[tid(1), tid(9)], &mut posting), 16);
        assert_eq!(
            posting,
            [
                0, 0, 16, 0, 2, 0x20, 32, 0x20, 7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0,
                0, 9, 0, 0, 0, 0, 0
            ]
        );
        assert!(is_posting(&posting));
        assert_eq!(max_heap_tid(&posting), tid(9));
    }

    #[test]
    fn equal_neighbours_are_told_apart_by_the_left_ones_heap_tid() {
        let layout = [INT4];
        let mut base = formed(&layout, &[Some(&7i32.to_le_bytes())]);
        let tid = |offset| Tid { block: 5, offset };
        let mut left = Vec::new();
        form_posting(&base, &[tid(1), tid(2)], &mut left);
        set_tid(&mut base, tid(3));
        let mut pivot = Vec::new();
        truncate(&layout, 1, &left, &base, 2, &mut pivot);
        assert_eq!(
            pivot,
            [
                0, 0, 5, 0, 1, 0x10, 24, 0x20, 7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 5, 0, 2, 0
            ]
        );
    }

    #[test]
    fn attributes_that_tell_nothing_are_cut_away() {
        let layout = [INT4, TEXT];
        let left = formed(&layout, &[Some(&7i32.to_le_bytes()), None]);
        let right = formed(&layout, &[Some(&8i32.to_le_bytes()), None]);
        let mut pivot = Vec::new();
        truncate(&layout, 2, &left, &right, 1, &mut pivot);
        assert_eq!(
            pivot,
            [0, 0, 0, 0, 1, 0, 16, 0x20, 8, 0, 0, 0, 0, 0, 0, 0],
            "no null is left, so no bitmap"
        );
    }
}
