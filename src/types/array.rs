//! Arrays of native types.
//!
//! Elements are encoded one after the other as the text is read, and put together when their
//! number and whether any is null are known. 17 reads text in one pass and so finds the
//! errors of elements and of the structure in the order of the text; before it a first pass
//! looks at the structure alone and finds the dimensions. What that pass accepts (ragged
//! arrays, in some cases) and how it words its errors is kept as it was. The binary format says
//! the dimensions first ([`receive`]).
//!
//! PostgreSQL: `src/backend/utils/adt/arrayfuncs.c`, `array_in`, `array_recv`; before 17 `ArrayCount` and
//! `ReadArrayStr`, since then `ReadArrayDimensions`, `ReadArrayStr` and `ReadArrayToken`.

mod one_pass;
mod receive;
mod two_passes;

use super::receive::Message;
use super::wording::{invalid_allocation, shown};
use super::{Encoder, Scratch, Settings, Sink};
use crate::error::ValueError;
use pgformat::datum::array::{self, ElementLayout, MAX_ELEMENTS, Shape};
use pgformat::datum::varlena;
use pgformat::ids::Oid;

/// An array type.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ArrayType {
    /// pg_type.oid of the elements' type.
    pub(super) element_type: Oid,
    /// Reads an element.
    pub(super) element: Encoder,
    /// How it is stored.
    pub(super) layout: ElementLayout,
    /// What stands between two: typdelim of the element's type.
    pub(super) delimiter: u8,
}

/// Storage for reading arrays.
#[derive(Debug, Default)]
pub(super) struct Buffers {
    /// The elements' own.
    scratch: Scratch,
    elements: Elements,
    /// The text of an element without quotes and backslashes.
    text: Vec<u8>,
    payload: Vec<u8>,
}

/// Where an element lies among the encoded ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Span {
    start: u32,
    end: u32,
}

const NULL: Span = Span {
    start: u32::MAX,
    end: u32::MAX,
};

/// Elements in stored form, in the order in which they were read.
#[derive(Debug, Default)]
struct Elements {
    stored: Vec<u8>,
    /// By subscript.
    spans: Vec<Span>,
}

impl Sink for Vec<u8> {
    #[inline]
    fn put_fixed<const N: usize>(&mut self, bytes: &[u8; N]) {
        self.extend_from_slice(bytes);
    }

    #[inline]
    fn put_varlena(&mut self, payload: &[u8]) {
        self.extend_from_slice(&varlena::full_header(payload.len() + varlena::HEADER_BYTES));
        self.extend_from_slice(payload);
    }
}

impl Elements {
    fn clear(&mut self) {
        self.stored.clear();
        self.spans.clear();
    }

    /// Has an element put behind the others.
    fn add(
        &mut self,
        put: impl FnOnce(&mut Vec<u8>) -> Result<(), Box<ValueError>>,
    ) -> Result<Span, Box<ValueError>> {
        let start = self.stored.len();
        put(&mut self.stored)?;
        // Padding is counted too: with it, an array ends below four times the limit.
        if self.stored.len() > varlena::MAX_BYTES {
            return Err(size_exceeds(varlena::MAX_BYTES));
        }
        Ok(Span {
            start: start as u32,
            end: self.stored.len() as u32,
        })
    }
}

/// An array under construction.
struct Reader<'a> {
    array: &'a ArrayType,
    settings: &'a Settings,
    /// The field, for messages.
    field: &'a [u8],
    scratch: &'a mut Scratch,
    elements: &'a mut Elements,
}

impl Reader<'_> {
    /// Reads an element; `None` is null.
    fn element(&mut self, text: Option<&[u8]>) -> Result<Span, Box<ValueError>> {
        let encoder = &self.array.element;
        let Some(text) = text else {
            encoder.check_null()?;
            return Ok(NULL);
        };
        self.elements
            .add(|stored| encoder.encode(text, self.scratch, self.settings, stored))
    }

    /// Whether the text of an element without quotes says that it is null.
    fn is_null(&self, text: &[u8]) -> bool {
        self.settings.array_nulls && text.eq_ignore_ascii_case(b"null")
    }

    #[cold]
    fn malformed<T>(&self, detail: impl Into<String>) -> Result<T, Box<ValueError>> {
        Err(malformed(self.field).with_detail(detail))
    }
}

/// Reads an array and gives a varlena's payload.
pub(super) fn array_in<'b>(
    field: &[u8],
    array: &ArrayType,
    settings: &Settings,
    buffers: &'b mut Buffers,
) -> Result<&'b [u8], Box<ValueError>> {
    let Buffers {
        scratch,
        elements,
        text,
        payload,
    } = buffers;
    elements.clear();
    let mut reader = Reader {
        array,
        settings,
        field,
        scratch,
        elements,
    };
    let shape = if settings.version.at_least(17) {
        one_pass::read(&mut reader, text)?
    } else {
        two_passes::read(&mut reader, text)?
    };
    put_together(&shape, array, elements, payload)?;
    Ok(payload)
}

/// Receives an array and gives a varlena's payload.
pub(super) fn array_recv<'b>(
    message: &mut Message<'_>,
    array: &ArrayType,
    settings: &Settings,
    buffers: &'b mut Buffers,
) -> Result<&'b [u8], Box<ValueError>> {
    let Buffers {
        scratch,
        elements,
        payload,
        ..
    } = buffers;
    elements.clear();
    let shape = receive::shape(message, array.element_type)?;
    receive::elements(message, &shape, array, settings, scratch, elements)?;
    put_together(&shape, array, elements, payload)?;
    Ok(payload)
}

/// The payload of an array of these elements; one without any has no dimension.
fn put_together(
    shape: &Shape,
    array: &ArrayType,
    elements: &Elements,
    payload: &mut Vec<u8>,
) -> Result<(), Box<ValueError>> {
    payload.clear();
    let no_dimension = Shape::default();
    let shape = if elements.spans.is_empty() {
        &no_dimension
    } else {
        shape
    };
    let are_there = elements.spans.iter().map(|span| *span != NULL);
    array::begin(shape, array.element_type, are_there, payload);
    let head_bytes = payload.len();
    for span in elements.spans.iter().filter(|span| **span != NULL) {
        let stored = &elements.stored[span.start as usize..span.end as usize];
        array::push_element(stored, array.layout.align, payload);
        if payload.len() - head_bytes > varlena::MAX_BYTES {
            return Err(size_exceeds(varlena::MAX_BYTES));
        }
    }
    let bytes = payload.len() + varlena::HEADER_BYTES;
    if bytes > varlena::MAX_BYTES {
        return Err(invalid_allocation(bytes as u64));
    }
    Ok(())
}

#[cold]
fn malformed(field: &[u8]) -> Box<ValueError> {
    ValueError::new(
        "22P02",
        format!("malformed array literal: \"{}\"", shown(field)),
    )
}

#[cold]
fn size_exceeds(limit: usize) -> Box<ValueError> {
    ValueError::new(
        "54000",
        format!("array size exceeds the maximum allowed ({limit})"),
    )
}

/// The number of elements of an array of this shape.
fn count_elements(shape: &Shape) -> Result<usize, Box<ValueError>> {
    let elements = shape.elements().ok_or_else(too_many_elements)?;
    for i in 0..shape.ndim {
        let bound = shape.lower_bounds[i];
        if bound.checked_add(shape.lengths[i]).is_none() {
            return Err(ValueError::new(
                "54000",
                format!("array lower bound is too large: {bound}"),
            ));
        }
    }
    Ok(elements)
}

/// Too many elements.
fn too_many_elements() -> Box<ValueError> {
    size_exceeds(MAX_ELEMENTS)
}

/// The byte at a place as a C string has it: 0 at its end.
fn at(text: &[u8], pos: usize) -> u8 {
    text.get(pos).copied().unwrap_or(0)
}

/// A byte as a character of a message.
fn unexpected(byte: u8) -> String {
    format!("Unexpected \"{}\" character.", char::from(byte))
}
