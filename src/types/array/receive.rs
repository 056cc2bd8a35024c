//! How arrays stand in the binary format.
//!
//! ```text
//! number of dimensions 4 | flags 4 | OID of the elements' type 4
//! per dimension: length 4 | lower bound 4
//! per element: length 4 (-1 is NULL) | bytes
//! ```
//!
//! PostgreSQL: `src/backend/utils/adt/arrayfuncs.c`, `array_recv`, `ReadArrayBinary`.

use super::super::receive::Message;
use super::super::{Scratch, Settings};
use super::{ArrayType, Elements, NULL, count_elements};
use crate::error::ValueError;
use pgformat::datum::array::{MAX_DIMENSIONS, Shape};
use pgformat::ids::Oid;

/// OIDs below this are those of the server's own types, in all servers (`FirstGenbkiObjectId`).
const FIRST_GENBKI_OID: Oid = 10_000;
/// The types below it: OID and name of each.
const TYPE_NAMES: &str = include_str!("type_names.txt");

/// Reads all that stands before the elements.
pub(super) fn shape(
    message: &mut Message<'_>,
    expected_type: Oid,
) -> Result<Shape, Box<ValueError>> {
    let dimensions = message.int4()?;
    let ndim = usize::try_from(dimensions).map_err(|_| {
        ValueError::new(
            "22P03",
            format!("invalid number of dimensions: {dimensions}"),
        )
    })?;
    if ndim > MAX_DIMENSIONS {
        return Err(ValueError::new(
            "54000",
            format!(
                "number of array dimensions ({ndim}) exceeds the maximum allowed ({MAX_DIMENSIONS})"
            ),
        ));
    }
    if !matches!(message.int4()?, 0 | 1) {
        return Err(ValueError::new("22P03", "invalid array flags"));
    }
    let element_type = message.int4()?.cast_unsigned();
    if element_type != expected_type && element_type.max(expected_type) < FIRST_GENBKI_OID {
        return Err(ValueError::new(
            "42804",
            format!(
                "binary data has array element type {element_type} ({}) instead of expected \
                 {expected_type} ({})",
                type_name(element_type),
                type_name(expected_type)
            ),
        ));
    }
    let mut shape = Shape {
        ndim,
        ..Shape::default()
    };
    for i in 0..ndim {
        shape.lengths[i] = message.int4()?;
        shape.lower_bounds[i] = message.int4()?;
    }
    Ok(shape)
}

/// Reads the elements.
pub(super) fn elements(
    message: &mut Message<'_>,
    shape: &Shape,
    array: &ArrayType,
    settings: &Settings,
    scratch: &mut Scratch,
    elements: &mut Elements,
) -> Result<(), Box<ValueError>> {
    let encoder = &array.element;
    for number in 1..=count_elements(shape)? {
        let span = if let Some(element) = message.element(number)? {
            elements.add(|stored| encoder.receive_message(element, scratch, settings, stored))?
        } else {
            encoder.check_null()?;
            NULL
        };
        elements.spans.push(span);
    }
    Ok(())
}

/// `format_type_extended` of a type of the server's own.
#[cold]
fn type_name(oid: Oid) -> &'static str {
    let mut names = TYPE_NAMES.lines().filter_map(|line| line.split_once(' '));
    let unknown = if oid == 0 { "-" } else { "???" };
    names
        .find(|(known, _)| known.parse() == Ok(oid))
        .map_or(unknown, |(_, name)| name)
}
