//! Arrays: their bytes, order and text.
//!
//! ```text
//! header   vl_len 4 | ndim 4 | dataoffset 4 | elemtype 4
//!          ndim x length of the dimension, 4 each
//!          ndim x lower bound, 4 each
//!          null bitmap, only if an element is null: one bit each, 1 is not null
//! data     from a multiple of 8 (dataoffset, or 0 where there is no bitmap); the elements that
//!          are not null, each at its alignment and padded to it behind, varlenas with a full
//!          header
//! ```
//!
//! An array without elements has no dimension and ends with its header. Positions count from
//! vl_len, though a stored array may have a short header.
//!
//! PostgreSQL: `src/include/utils/array.h`, `src/backend/utils/adt/arrayfuncs.c`.

use super::varlena;
use crate::ids::Oid;
use crate::layout::{AttrLen, align_up, maxalign};
use std::cmp::Ordering;
use std::fmt::Write as _;

/// Most dimensions (`MAXDIM`).
pub const MAX_DIMENSIONS: usize = 6;
/// Most elements (`MaxArraySize`).
pub const MAX_ELEMENTS: usize = varlena::MAX_BYTES / 8;

/// Bytes of the header without dimensions (`sizeof(ArrayType)`), vl_len included.
const FIXED_BYTES: usize = 16;

/// How elements lie in an array.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ElementLayout {
    /// typlen.
    pub len: AttrLen,
    /// typalign in bytes: 1, 2, 4 or 8.
    pub align: u8,
}

/// The shape of an array.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Shape {
    /// How many dimensions count.
    pub ndim: usize,
    /// Their lengths.
    pub lengths: [i32; MAX_DIMENSIONS],
    /// Their lower bounds.
    pub lower_bounds: [i32; MAX_DIMENSIONS],
}

impl Shape {
    /// How many elements there are, if not too many.
    ///
    /// PostgreSQL: `src/backend/utils/adt/arrayutils.c`, `ArrayGetNItems`.
    pub fn elements(&self) -> Option<usize> {
        if self.ndim == 0 {
            return Some(0);
        }
        self.lengths[..self.ndim]
            .iter()
            .try_fold(1_usize, |product, &length| {
                let product = product * usize::try_from(length).ok()?;
                i32::try_from(product).is_ok().then_some(product)
            })
            .filter(|&elements| elements <= MAX_ELEMENTS)
    }
}

/// Appends an array's payload, the bytes behind vl_len, up to its data; `elements` tells of each
/// element whether it is not null. The data follows by [`push_element`].
///
/// # Panics
/// When there are more dimensions than an array can have.
pub fn begin(
    shape: &Shape,
    element_type: Oid,
    elements: impl ExactSizeIterator<Item = bool> + Clone,
    payload: &mut Vec<u8>,
) {
    let start = payload.len();
    let has_null = elements.clone().any(|is_there| !is_there);
    let head_bytes = FIXED_BYTES + 8 * shape.ndim;
    let bitmap_bytes = if has_null {
        elements.len().div_ceil(8)
    } else {
        0
    };
    let data_pos = maxalign(head_bytes + bitmap_bytes);
    let marker = if has_null { data_pos as u32 } else { 0 };
    payload.extend((shape.ndim as u32).to_le_bytes());
    payload.extend(marker.to_le_bytes());
    payload.extend(element_type.to_le_bytes());
    for list in [&shape.lengths, &shape.lower_bounds] {
        payload.extend(list[..shape.ndim].iter().flat_map(|n| n.to_le_bytes()));
    }
    payload.resize(start + data_pos - varlena::HEADER_BYTES, 0);
    if has_null {
        let bitmap = &mut payload[start + head_bytes - varlena::HEADER_BYTES..];
        for (i, is_there) in elements.enumerate() {
            bitmap[i / 8] |= u8::from(is_there) << (i % 8);
        }
    }
}

/// Appends an element in stored form (varlenas with a full header) to a payload that began at
/// the start of `payload`.
#[inline]
pub fn push_element(stored: &[u8], align: u8, payload: &mut Vec<u8>) {
    payload.extend_from_slice(stored);
    let pos = payload.len() + varlena::HEADER_BYTES;
    payload.resize(align_up(pos, usize::from(align)) - varlena::HEADER_BYTES, 0);
}

/// A stored array.
#[derive(Debug, Clone, Copy)]
pub struct Array<'a> {
    /// The dimensions.
    pub shape: Shape,
    /// pg_type.oid of the elements.
    pub element_type: Oid,
    elements: usize,
    bitmap: Option<&'a [u8]>,
    data: &'a [u8],
}

impl<'a> Array<'a> {
    /// Reads the payload of a varlena; `None` when it is not an array's.
    pub fn read(payload: &'a [u8]) -> Option<Array<'a>> {
        let word = |i: usize| -> Option<i32> {
            let bytes = payload.get(i * 4..i * 4 + 4)?;
            Some(i32::from_le_bytes(bytes.try_into().ok()?))
        };
        let ndim = usize::try_from(word(0)?).ok()?;
        if ndim > MAX_DIMENSIONS {
            return None;
        }
        let mut shape = Shape {
            ndim,
            ..Shape::default()
        };
        for i in 0..ndim {
            shape.lengths[i] = word(3 + i)?;
            shape.lower_bounds[i] = word(3 + ndim + i)?;
        }
        let elements = shape.elements()?;
        let head_bytes = FIXED_BYTES + 8 * ndim;
        let (bitmap, data_pos) = match word(1)? {
            0 => (None, maxalign(head_bytes)),
            offset => {
                let bitmap = head_bytes - varlena::HEADER_BYTES;
                let bitmap = payload.get(bitmap..bitmap + elements.div_ceil(8))?;
                (Some(bitmap), usize::try_from(offset).ok()?)
            }
        };
        let data = if elements == 0 {
            &[]
        } else {
            payload.get(data_pos.checked_sub(varlena::HEADER_BYTES)?..)?
        };
        Some(Array {
            shape,
            element_type: word(2)? as u32,
            elements,
            bitmap,
            data,
        })
    }

    /// The elements in stored form, nulls as `None`; it ends early where bytes are missing.
    pub fn elements(&self, layout: ElementLayout) -> Elements<'a> {
        Elements {
            bitmap: self.bitmap,
            data: self.data,
            layout,
            next: 0,
            end: self.elements,
            pos: 0,
        }
    }

    /// The order of `array_ops`: by the elements, nulls last; then by how many there are, the
    /// dimensions' number, lengths and lower bounds.
    ///
    /// PostgreSQL: `array_cmp`.
    pub fn compare(
        &self,
        other: &Array<'_>,
        layout: ElementLayout,
        compare: impl Fn(&[u8], &[u8]) -> Ordering,
    ) -> Ordering {
        let pairs = self.elements(layout).zip(other.elements(layout));
        for (a, b) in pairs {
            let order = match (a, b) {
                (None, None) => Ordering::Equal,
                (None, Some(_)) => Ordering::Greater,
                (Some(_), None) => Ordering::Less,
                (Some(a), Some(b)) => compare(a, b),
            };
            if order.is_ne() {
                return order;
            }
        }
        let rank = |array: &Array<'_>| {
            let shape = array.shape;
            (
                array.elements,
                shape.ndim,
                shape.lengths,
                shape.lower_bounds,
            )
        };
        rank(self).cmp(&rank(other))
    }

    /// What `array_out` writes, given the text of each element.
    pub fn to_text(
        &self,
        layout: ElementLayout,
        delimiter: char,
        text: impl Fn(&[u8]) -> String,
    ) -> String {
        let Shape {
            ndim,
            lengths,
            lower_bounds,
        } = self.shape;
        let mut out = String::new();
        if self.elements == 0 {
            return "{}".to_owned();
        }
        if lower_bounds[..ndim].iter().any(|&bound| bound != 1) {
            for (bound, length) in lower_bounds.iter().zip(lengths).take(ndim) {
                let last = i64::from(*bound) + i64::from(length) - 1;
                let _ = write!(out, "[{bound}:{last}]");
            }
            out.push('=');
        }
        // How many elements each brace of a depth holds.
        let mut holds = [1_usize; MAX_DIMENSIONS + 1];
        for depth in (0..ndim).rev() {
            holds[depth] = holds[depth + 1] * lengths[depth] as usize;
        }
        for (i, element) in self.elements(layout).enumerate() {
            if i > 0 {
                out.push(delimiter);
            }
            let opened = holds[..ndim].iter().filter(|&&held| i % held == 0).count();
            out.extend(std::iter::repeat_n('{', opened));
            match element {
                None => out.push_str("NULL"),
                Some(stored) => push_quoted(&text(stored), delimiter, &mut out),
            }
            let closed = holds[..ndim]
                .iter()
                .filter(|&&held| (i + 1) % held == 0)
                .count();
            out.extend(std::iter::repeat_n('}', closed));
        }
        out
    }
}

/// An element's text, in quotes where it needs them.
fn push_quoted(text: &str, delimiter: char, out: &mut String) {
    let is_special =
        |c: char| matches!(c, '"' | '\\' | '{' | '}' | ' ' | '\t'..='\r') || c == delimiter;
    if !text.is_empty() && !text.eq_ignore_ascii_case("null") && !text.contains(is_special) {
        out.push_str(text);
        return;
    }
    out.push('"');
    for c in text.chars() {
        if matches!(c, '"' | '\\') {
            out.push('\\');
        }
        out.push(c);
    }
    out.push('"');
}

/// The elements of an array in order.
#[derive(Debug, Clone)]
pub struct Elements<'a> {
    bitmap: Option<&'a [u8]>,
    data: &'a [u8],
    layout: ElementLayout,
    next: usize,
    end: usize,
    pos: usize,
}

impl<'a> Iterator for Elements<'a> {
    type Item = Option<&'a [u8]>;

    fn next(&mut self) -> Option<Option<&'a [u8]>> {
        if self.next == self.end {
            return None;
        }
        let i = self.next;
        self.next += 1;
        if self.bitmap.is_some_and(|b| b[i / 8] >> (i % 8) & 1 == 0) {
            return Some(None);
        }
        let rest = self.data.get(self.pos..)?;
        let len = match self.layout.len {
            AttrLen::Fixed(len) => usize::from(len),
            AttrLen::CString => rest.iter().position(|&b| b == 0)? + 1,
            AttrLen::Varlena => varlena_bytes(rest)?,
        };
        let stored = rest.get(..len)?;
        self.pos = align_up(self.pos + len, usize::from(self.layout.align));
        Some(Some(stored))
    }
}

/// How long a plain varlena is that begins here, its header included.
fn varlena_bytes(bytes: &[u8]) -> Option<usize> {
    let (&first, header) = (bytes.first()?, bytes.first_chunk::<4>());
    match varlena::form(bytes) {
        varlena::Form::Short => Some(usize::from(first >> 1)),
        varlena::Form::Full => Some((u32::from_le_bytes(*header?) >> 2) as usize)
            .filter(|&len| len >= varlena::HEADER_BYTES),
        varlena::Form::Compressed | varlena::Form::External => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const INT4: ElementLayout = ElementLayout {
        len: AttrLen::Fixed(4),
        align: 4,
    };

    fn shape(lengths: &[i32], lower_bounds: &[i32]) -> Shape {
        let mut shape = Shape {
            ndim: lengths.len(),
            ..Shape::default()
        };
        shape.lengths[..lengths.len()].copy_from_slice(lengths);
        shape.lower_bounds[..lengths.len()].copy_from_slice(lower_bounds);
        shape
    }

    fn int4s(shape: &Shape, elements: &[Option<i32>]) -> Vec<u8> {
        let mut payload = Vec::new();
        begin(
            shape,
            23,
            elements.iter().map(Option::is_some),
            &mut payload,
        );
        for element in elements.iter().flatten() {
            push_element(&element.to_le_bytes(), 4, &mut payload);
        }
        payload
    }

    fn text(payload: &[u8]) -> String {
        Array::read(payload).unwrap().to_text(INT4, ',', |stored| {
            i32::from_le_bytes(stored.try_into().unwrap()).to_string()
        })
    }

    #[test]
    fn an_array_with_a_null_has_a_bitmap_before_its_data() {
        let payload = int4s(&shape(&[3], &[1]), &[Some(7), None, Some(9)]);
        assert_eq!(
            payload,
            [
                1, 0, 0, 0, // ndim
                32, 0, 0, 0, // dataoffset: 24 and a byte, rounded up
                23, 0, 0, 0, // elemtype
                3, 0, 0, 0, 1, 0, 0, 0, // length, lower bound
                0b101, 0, 0, 0, 0, 0, 0, 0, // bitmap and padding
                7, 0, 0, 0, 9, 0, 0, 0,
            ]
        );
        assert_eq!(text(&payload), "{7,NULL,9}");
    }

    #[test]
    fn an_array_s_text_has_its_bounds_unless_all_are_1() {
        let some = |n: i32| (0..n).map(Some).collect::<Vec<_>>();
        let square = int4s(&shape(&[2, 2], &[1, 1]), &some(4));
        assert_eq!(text(&square), "{{0,1},{2,3}}");
        let moved = int4s(&shape(&[1, 2, 1], &[1, -3, 1]), &some(2));
        assert_eq!(text(&moved), "[1:1][-3:-2][1:1]={{{0},{1}}}");
        assert_eq!(text(&int4s(&shape(&[], &[]), &[])), "{}");
    }

    #[test]
    fn arrays_order_by_elements_then_by_shape() {
        let ascending = [
            int4s(&shape(&[], &[]), &[]),
            int4s(&shape(&[1], &[1]), &[Some(1)]),
            int4s(&shape(&[2], &[1]), &[Some(1), Some(2)]),
            int4s(&shape(&[2], &[2]), &[Some(1), Some(2)]),
            int4s(&shape(&[1, 2], &[1, 1]), &[Some(1), Some(2)]),
            int4s(&shape(&[2, 1], &[1, 1]), &[Some(1), Some(2)]),
            int4s(&shape(&[2], &[1]), &[Some(1), None]),
            int4s(&shape(&[1], &[1]), &[Some(2)]),
        ];
        let arrays = ascending.each_ref().map(|a| Array::read(a).unwrap());
        assert!(arrays.is_sorted_by(|a, b| {
            a.compare(b, INT4, |a, b| {
                let read = |s: &[u8]| i32::from_le_bytes(s.try_into().unwrap());
                read(a).cmp(&read(b))
            })
            .is_lt()
        }));
    }

    #[test]
    fn bytes_that_are_no_array_do_not_panic() {
        let good = int4s(&shape(&[3], &[1]), &[Some(7), None, Some(9)]);
        for at in 0..good.len() {
            for byte in [0, 1, 0x7f, 0x80, 0xff] {
                let mut bad = good.clone();
                bad[at] = byte;
                for end in [at, bad.len()] {
                    for len in [AttrLen::Fixed(4), AttrLen::Varlena, AttrLen::CString] {
                        if let Some(array) = Array::read(&bad[..end]) {
                            let layout = ElementLayout { len, align: 4 };
                            let _ = array.to_text(layout, ',', |_| String::new());
                        }
                    }
                }
            }
        }
    }
}
