//! A column of values in the protocol's binary form, and the array that carries some of them.

use postgres::types::private::BytesMut;
use postgres::types::{FromSql, IsNull, ToSql, Type, to_sql_checked};
use std::error::Error;
use std::ops::Range;

/// Values one behind the other.
#[derive(Debug, Default)]
pub struct WireColumn {
    bytes: Vec<u8>,
    /// Where each lies.
    spans: Vec<(u32, u32)>,
}

/// The span of a null.
const NULL: (u32, u32) = (u32::MAX, 0);

impl WireColumn {
    /// Adds a value that `send` appends; nothing when it gives false: the value is null.
    pub(super) fn push_with(&mut self, send: impl FnOnce(&mut Vec<u8>) -> bool) {
        let start = self.bytes.len() as u32;
        let is_value = send(&mut self.bytes);
        let end = u32::try_from(self.bytes.len()).expect("a batch stays below 4 GB");
        self.spans.push(if is_value { (start, end) } else { NULL });
    }

    /// Adds a value.
    pub(super) fn push(&mut self, value: Option<&[u8]>) {
        self.push_with(|bytes| {
            bytes.extend_from_slice(value.unwrap_or_default());
            value.is_some()
        });
    }

    /// Value `index`; `None` is null.
    ///
    /// # Panics
    /// When there are not so many.
    pub(super) fn get(&self, index: usize) -> Option<&[u8]> {
        let span = self.spans[index];
        (span != NULL).then(|| &self.bytes[span.0 as usize..span.1 as usize])
    }

    /// Bytes of all values.
    pub(super) fn bytes(&self) -> usize {
        self.bytes.len()
    }

    pub(super) fn len(&self) -> usize {
        self.spans.len()
    }

    pub(super) fn clear(&mut self) {
        self.bytes.clear();
        self.spans.clear();
    }
}

/// A parameter: an array of one dimension.
///
/// PostgreSQL: src/backend/utils/adt/arrayfuncs.c, array_recv.
#[derive(Debug)]
pub struct WireArray(Vec<u8>);

impl WireArray {
    /// The array of values of type `element`.
    pub(super) fn new<'v>(
        element: u32,
        rows: Range<usize>,
        value: impl Fn(usize) -> Option<&'v [u8]>,
    ) -> WireArray {
        let mut out = Vec::with_capacity(20 + rows.len() * 8);
        for word in [1, 1, element, rows.len() as u32, 1] {
            out.extend(word.to_be_bytes());
        }
        for row in rows {
            match value(row) {
                None => out.extend((-1i32).to_be_bytes()),
                Some(value) => {
                    out.extend((value.len() as i32).to_be_bytes());
                    out.extend_from_slice(value);
                }
            }
        }
        WireArray(out)
    }
}

impl ToSql for WireArray {
    fn to_sql(&self, _: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        out.extend_from_slice(&self.0);
        Ok(IsNull::No)
    }

    fn accepts(_: &Type) -> bool {
        true
    }

    to_sql_checked!();
}

/// A value as the server sent it.
#[derive(Debug)]
pub(super) struct Raw<'a>(pub(super) &'a [u8]);

impl<'a> FromSql<'a> for Raw<'a> {
    fn from_sql(_: &Type, raw: &'a [u8]) -> Result<Raw<'a>, Box<dyn Error + Sync + Send>> {
        Ok(Raw(raw))
    }

    fn accepts(_: &Type) -> bool {
        true
    }
}
