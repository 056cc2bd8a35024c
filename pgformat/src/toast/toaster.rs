//! Making a row short enough: which values are compressed, which go out of line.
//!
//! Four rounds, each of which stops as soon as the row's data fits, and each of which takes the
//! largest value first (of equals the first):
//!
//! 1. EXTENDED values are compressed; an EXTENDED or EXTERNAL value that alone is more than the
//!    target goes out of line at once;
//! 2. EXTENDED and EXTERNAL values go out of line;
//! 3. MAIN values are compressed;
//! 4. MAIN values go out of line, if the row would not fit on a page otherwise.
//!
//! The row comes as [`TupleBuilder`] formed it. Its values are read where they lie, are copied
//! only when the row is formed anew in its place, and only those that stay in line: a value
//! of a gigabyte is copied once, into its chunks.
//!
//! PostgreSQL: `src/backend/access/heap/heaptoast.c`, `heap_toast_insert_or_update`;
//! `src/backend/access/table/toast_helper.c`.

use super::chunks::ToastChunks;
use super::compress::Compressors;
use super::pointer::{POINTER_BYTES, SIZE_BITS, ToastPointer};
use crate::datum::varlena::{self, Form};
use crate::heap::page::{MAX_TUPLE_BYTES, RowTooBig};
use crate::heap::tuple::{FormedTuple, HEADER_BYTES, TupleBuilder};
use crate::ids::Oid;
use crate::layout::{AttrLen, AttributeLayout, Compression, Storage, align_up, maxalign};
use std::sync::Arc;

/// A longer tuple goes through the toaster, whatever its table's toast_tuple_target
/// (`TOAST_TUPLE_THRESHOLD`).
pub const TOAST_TUPLE_THRESHOLD: usize = 2032;

/// toast_tuple_target where the table does not say (`TOAST_TUPLE_TARGET`).
pub const TOAST_TUPLE_TARGET: usize = TOAST_TUPLE_THRESHOLD;

/// The target of the last round (`TOAST_TUPLE_TARGET_MAIN`).
const TARGET_MAIN: usize = MAX_TUPLE_BYTES;

/// No value as short as this is worth compressing or moving: MAXALIGN(TOAST_POINTER_SIZE).
const WORTHWHILE_BYTES: usize = maxalign(POINTER_BYTES);

/// Scratch that is kept from row to row; what a giant value took beyond it is given back.
const KEPT_BYTES: usize = 16 << 20;

/// Where a value of the row is at the moment.
#[derive(Clone, Copy, Debug)]
enum Place {
    Null,
    /// In the row as formed.
    Row,
    /// Compressed, in the scratch.
    Compressed {
        start: usize,
        end: usize,
    },
    /// Out of line.
    External(ToastPointer),
}

/// What the rounds know of an attribute (`ToastAttrInfo`).
#[derive(Clone, Copy, Debug)]
struct Attr {
    place: Place,
    /// Bytes stored, header included; `tai_size`, and the length of what is not a varlena.
    bytes: usize,
    /// Alignment as stored: 1 for short headers and pointers.
    align: usize,
    /// Neither compressed nor moved: not a varlena, null, PLAIN, or already out of line
    /// (`TOASTCOL_IGNORE`).
    ignore: bool,
    /// Not to be compressed (again) (`TOASTCOL_INCOMPRESSIBLE`).
    incompressible: bool,
    storage: Storage,
    method: Compression,
}

/// Which values a round looks at.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Candidates {
    Main,
    ExtendedAndExternal,
}

/// Toasts the rows of one table.
#[derive(Debug)]
pub struct Toaster {
    layout: Arc<[AttributeLayout]>,
    target_bytes: usize,
    toast_relid: Option<Oid>,
    compressors: Compressors,
    attrs: Vec<Attr>,
    /// Values compressed for the row in hand.
    compressed: Vec<u8>,
    /// Values of the row in hand that stay in line as they are.
    inline: Vec<u8>,
}

impl Toaster {
    /// A toaster for a table of these attributes: `target_bytes` is its toast_tuple_target,
    /// `toast_relid` the OID of its TOAST table, if it has one.
    ///
    /// # Panics
    /// When an attribute is compressed by lz4 and there is no compressor for it.
    pub fn new(
        layout: Arc<[AttributeLayout]>,
        target_bytes: usize,
        toast_relid: Option<Oid>,
        compressors: Compressors,
    ) -> Toaster {
        let compressible = |a: &&AttributeLayout| {
            a.len == AttrLen::Varlena && matches!(a.storage, Storage::Extended | Storage::Main)
        };
        assert!(
            compressors.lz4.is_some()
                || layout
                    .iter()
                    .filter(compressible)
                    .all(|a| a.compression != Compression::Lz4),
            "a column is compressed by lz4 and there is no compressor for it"
        );
        Toaster {
            layout,
            target_bytes,
            toast_relid,
            compressors,
            attrs: Vec::new(),
            compressed: Vec::new(),
            inline: Vec::new(),
        }
    }

    /// Whether a tuple must go through [`Toaster::toast`].
    #[inline]
    pub fn needs(&self, tuple: &FormedTuple) -> bool {
        tuple.len as usize > TOAST_TUPLE_THRESHOLD
    }

    /// Makes the row that `builder` formed last shorter, puts what goes out of line into
    /// `chunks`, and returns the row that stands in its place. Its values are read by
    /// [`TupleBuilder::attribute`] as before, and as an index sees them through
    /// [`ToastChunks::index_datum`].
    ///
    /// # Errors
    /// The row does not fit on a page; it is taken back from the builder and leaves nothing
    /// in `chunks`.
    pub fn toast(
        &mut self,
        builder: &mut TupleBuilder,
        tuple: FormedTuple,
        chunks: &mut ToastChunks,
    ) -> Result<FormedTuple, RowTooBig> {
        let mark = chunks.mark();
        self.compressed.clear();
        self.look_at(builder);
        let header_bytes = self.header_bytes();
        let changed = self.shorten(builder, header_bytes, chunks);
        let len = header_bytes + self.data_bytes();
        if let Err(error) = RowTooBig::check(len) {
            builder.take_back(tuple);
            chunks.roll_back(mark);
            return Err(error);
        }
        if !changed {
            debug_assert_eq!(len, tuple.len as usize);
            return Ok(tuple);
        }
        let shorter = self.form_anew(builder, tuple);
        assert_eq!(
            shorter.len as usize, len,
            "the toaster and the builder differ on a length"
        );
        for (index, attr) in self.attrs.iter().enumerate() {
            if let Place::External(_) = attr.place {
                let pos = builder.attribute_pos(index).expect("a pointer is not null");
                chunks.push_pointer_patch(pos);
            }
        }
        self.compressed.clear();
        self.compressed.shrink_to(KEPT_BYTES);
        Ok(shorter)
    }

    /// Fills `attrs` from the row.
    ///
    /// PostgreSQL: `toast_tuple_init`.
    fn look_at(&mut self, builder: &TupleBuilder) {
        self.attrs.clear();
        for (index, layout) in self.layout.iter().enumerate() {
            let mut attr = Attr {
                place: Place::Null,
                bytes: 0,
                align: layout.align as usize,
                ignore: true,
                incompressible: false,
                storage: layout.storage,
                method: layout.compression,
            };
            if let Some(stored) = builder.attribute(index) {
                attr.place = Place::Row;
                attr.bytes = stored.len();
                if layout.len == AttrLen::Varlena {
                    attr.ignore = layout.storage == Storage::Plain;
                    match varlena::form(stored) {
                        Form::Full => {}
                        Form::Short => attr.align = 1,
                        Form::Compressed => attr.incompressible = true,
                        Form::External => panic!("a new row has no value out of line"),
                    }
                }
            }
            self.attrs.push(attr);
        }
    }

    /// Bytes of the row's header, null bitmap included.
    fn header_bytes(&self) -> usize {
        let has_null = self.attrs.iter().any(|a| matches!(a.place, Place::Null));
        let bitmap = if has_null {
            self.attrs.len().div_ceil(8)
        } else {
            0
        };
        maxalign(HEADER_BYTES + bitmap)
    }

    /// Bytes of the row's data as things stand.
    ///
    /// PostgreSQL: `heap_compute_data_size`.
    fn data_bytes(&self) -> usize {
        self.attrs
            .iter()
            .filter(|a| !matches!(a.place, Place::Null))
            .fold(0, |end, attr| align_up(end, attr.align) + attr.bytes)
    }

    /// The four rounds. Returns whether a value changed.
    fn shorten(
        &mut self,
        builder: &TupleBuilder,
        header_bytes: usize,
        chunks: &mut ToastChunks,
    ) -> bool {
        use Candidates::{ExtendedAndExternal, Main};
        let mut changed = false;
        // As in the server, a header longer than the target leaves no limit at all.
        let limit = self.target_bytes.wrapping_sub(header_bytes);
        while self.data_bytes() > limit {
            let Some(index) = self.biggest(ExtendedAndExternal, true) else {
                break;
            };
            if self.attrs[index].storage == Storage::Extended {
                changed |= self.compress(builder, index);
            } else {
                self.attrs[index].incompressible = true;
            }
            if self.attrs[index].bytes > limit {
                changed |= self.externalize(builder, index, chunks);
            }
        }
        if self.toast_relid.is_some() {
            while self.data_bytes() > limit {
                let Some(index) = self.biggest(ExtendedAndExternal, false) else {
                    break;
                };
                changed |= self.externalize(builder, index, chunks);
            }
        }
        while self.data_bytes() > limit {
            let Some(index) = self.biggest(Main, true) else {
                break;
            };
            changed |= self.compress(builder, index);
        }
        if self.toast_relid.is_some() {
            while self.data_bytes() > TARGET_MAIN - header_bytes {
                let Some(index) = self.biggest(Main, false) else {
                    break;
                };
                changed |= self.externalize(builder, index, chunks);
            }
        }
        changed
    }

    /// The largest of the candidates that is worth it, the first of equals.
    ///
    /// PostgreSQL: `toast_tuple_find_biggest_attribute`.
    fn biggest(&self, candidates: Candidates, for_compression: bool) -> Option<usize> {
        let mut biggest = None;
        let mut biggest_bytes = WORTHWHILE_BYTES;
        for (index, attr) in self.attrs.iter().enumerate() {
            if attr.ignore
                || (for_compression && attr.incompressible)
                || (attr.storage == Storage::Main) != (candidates == Candidates::Main)
            {
                continue;
            }
            if attr.bytes > biggest_bytes {
                biggest = Some(index);
                biggest_bytes = attr.bytes;
            }
        }
        biggest
    }

    /// Tries to compress a plain value; returns whether that was worth it.
    ///
    /// PostgreSQL: `toast_tuple_try_compression`.
    fn compress(&mut self, builder: &TupleBuilder, index: usize) -> bool {
        let stored = builder.attribute(index).expect("a candidate is not null");
        let attr = &mut self.attrs[index];
        attr.incompressible = true;
        let start = self.compressed.len();
        let payload = varlena::payload(stored);
        if !self
            .compressors
            .compress(payload, attr.method, &mut self.compressed)
        {
            return false;
        }
        let end = self.compressed.len();
        attr.place = Place::Compressed { start, end };
        attr.bytes = end - start;
        attr.align = self.layout[index].align as usize;
        true
    }

    /// Moves a value out of line, if there is a TOAST table; returns whether it did.
    ///
    /// PostgreSQL: `toast_tuple_externalize`, `toast_save_datum`.
    fn externalize(
        &mut self,
        builder: &TupleBuilder,
        index: usize,
        chunks: &mut ToastChunks,
    ) -> bool {
        let Some(toast_relid) = self.toast_relid else {
            return false;
        };
        let attr = &mut self.attrs[index];
        let (start, stored) = match attr.place {
            Place::Compressed { start, end } => (Some(start), &self.compressed[start..end]),
            _ => (
                None,
                builder.attribute(index).expect("a candidate is not null"),
            ),
        };
        let pointer = if varlena::form(stored) == Form::Compressed {
            let bytes = &stored[varlena::HEADER_BYTES..];
            let info = u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
            let method = info >> SIZE_BITS << SIZE_BITS;
            ToastPointer {
                raw_bytes: (info ^ method) + varlena::HEADER_BYTES as u32,
                ext_info: bytes.len() as u32 | method,
                value_id: chunks.push_value(bytes),
                toast_relid,
            }
        } else {
            let payload = varlena::payload(stored);
            ToastPointer {
                raw_bytes: (payload.len() + varlena::HEADER_BYTES) as u32,
                ext_info: payload.len() as u32,
                value_id: chunks.push_value(payload),
                toast_relid,
            }
        };
        if let Some(start) = start {
            // Its compressed form is in the chunks; a giant one need not stay here as well.
            if matches!(attr.place, Place::Compressed { end, .. } if end == self.compressed.len()) {
                self.compressed.truncate(start);
            }
        }
        attr.place = Place::External(pointer);
        attr.bytes = POINTER_BYTES;
        attr.align = 1;
        attr.ignore = true;
        true
    }

    /// Forms the row of the values as they are now, in the place of the old one.
    fn form_anew(&mut self, builder: &mut TupleBuilder, tuple: FormedTuple) -> FormedTuple {
        self.inline.clear();
        for (index, attr) in self.attrs.iter().enumerate() {
            if let Place::Row = attr.place {
                let stored = builder
                    .attribute(index)
                    .expect("a value in the row is not null");
                self.inline.extend_from_slice(stored);
            }
        }
        builder.take_back(tuple);
        builder.begin_row();
        let mut inline = self.inline.as_slice();
        for attr in &self.attrs {
            match attr.place {
                Place::Null => builder.put_null(),
                Place::Row => {
                    let (stored, rest) = inline.split_at(attr.bytes);
                    builder.put_stored(stored);
                    inline = rest;
                }
                Place::Compressed { start, end } => {
                    builder.put_stored(&self.compressed[start..end]);
                }
                Place::External(pointer) => builder.put_stored(&pointer.to_bytes()),
            }
        }
        builder.finish_row()
    }
}
