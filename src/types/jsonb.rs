//! jsonb: the events of the JSON parser, given to the builder of the binary form.
//!
//! PostgreSQL: `src/backend/utils/adt/jsonb.c`, `jsonb_in`, `jsonb_in_scalar`.

use super::json::{self, Handler};
use super::numeric;
use super::wording::invalid_allocation;
use crate::error::ValueError;
use crate::record::Encoding;
use pgformat::datum::jsonb::{Builder, LimitError, MAX_LENGTH};
use pgformat::version::MajorVersion;

/// Storage that is kept from value to value.
#[derive(Debug, Default)]
pub(super) struct Buffers {
    builder: Builder,
    json: json::Buffers,
    numeric: numeric::Buffers,
}

/// Reads a jsonb; the payload lies in the buffers.
pub(super) fn jsonb_in<'a>(
    field: &[u8],
    version: MajorVersion,
    encoding: Encoding,
    buffers: &'a mut Buffers,
) -> Result<&'a [u8], Box<ValueError>> {
    buffers.builder.clear();
    let mut writer = Writer {
        builder: &mut buffers.builder,
        numeric: &mut buffers.numeric,
        version,
    };
    json::parse(field, version, encoding, &mut buffers.json, &mut writer)?;
    buffers.builder.finish().map_err(limit)
}

struct Writer<'a> {
    builder: &'a mut Builder,
    numeric: &'a mut numeric::Buffers,
    version: MajorVersion,
}

impl Handler for Writer<'_> {
    const DECODES: bool = true;

    #[inline]
    fn begin_object(&mut self) {
        self.builder.begin_object();
    }

    #[inline]
    fn begin_array(&mut self) {
        self.builder.begin_array();
    }

    #[inline]
    fn end(&mut self) -> Result<(), Box<ValueError>> {
        self.builder.end().map_err(limit)
    }

    #[inline]
    fn string(&mut self, value: &[u8]) -> Result<(), Box<ValueError>> {
        self.builder.string(value).map_err(limit)
    }

    #[inline]
    fn number(&mut self, text: &[u8]) -> Result<(), Box<ValueError>> {
        if let Some(plain) = numeric::plain(text, None) {
            return self.builder.numeric(plain.as_bytes()).map_err(limit);
        }
        let payload = numeric::numeric_in(text, None, self.version, self.numeric)?;
        self.builder.numeric(payload).map_err(limit)
    }

    #[inline]
    fn bool(&mut self, value: bool) -> Result<(), Box<ValueError>> {
        self.builder.bool(value).map_err(limit)
    }

    #[inline]
    fn null(&mut self) -> Result<(), Box<ValueError>> {
        self.builder.null().map_err(limit)
    }
}

#[cold]
fn limit(error: LimitError) -> Box<ValueError> {
    match error {
        LimitError::String => ValueError::new("54000", error.to_string()).with_detail(format!(
            "Due to an implementation restriction, jsonb strings cannot exceed {MAX_LENGTH} bytes."
        )),
        LimitError::ArraySize | LimitError::ObjectSize => {
            ValueError::new("54000", error.to_string())
        }
        LimitError::Allocation(bytes) => invalid_allocation(bytes),
    }
}
