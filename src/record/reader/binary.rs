//! Records of COPY's binary format, where [`crate::record::binary`] drew their bounds.
//!
//! A line number here is that of the record, as COPY counts.

use super::{ChunkReader, Record};
use crate::error::ValueError;
use crate::record::binary::{MAX_FIELD_BYTES, TRAILER, count_at, header_end, length_at};
use crate::record::error::{RecordError, bad_format};
use crate::record::line::FieldRef;

impl ChunkReader<'_> {
    /// The next record; `None` behind the last one. After an error there are no more.
    #[inline]
    pub(super) fn next_binary(&mut self) -> Result<Option<Record<'_>>, Box<RecordError>> {
        if self.first_line {
            self.first_line = false;
            self.next_start = match header_end(self.data) {
                Ok(end) => end,
                Err(error) => return Err(self.refuse_binary(0, *error, 0, false)),
            };
        }
        let data = &self.data[..self.valid_to];
        let count = match count_at(data, self.next_start) {
            Some(count) if !self.done => count,
            _ => return Ok(None),
        };
        self.line += 1;
        self.first_line_of_record = self.line;
        let columns = self.format.columns.len();
        let mut at = self.next_start + 2;
        if usize::try_from(count) != Ok(columns) {
            return self.end_binary(count, at).map(|()| None);
        }
        let refs = &mut self.fields.refs[..columns];
        for (field, slot) in refs.iter_mut().enumerate() {
            let length = length_at(data, at).map(usize::try_from);
            let end = match length {
                Some(Ok(bytes)) => at + 4 + bytes,
                Some(Err(_)) => at + 4,
                None => usize::MAX,
            };
            *slot = match length {
                Some(Ok(bytes)) if bytes < MAX_FIELD_BYTES && end <= data.len() => {
                    FieldRef::in_data(at + 4, end)
                }
                Some(Err(_)) if data[at..at + 4] == [0xff; 4] => FieldRef::NULL,
                _ => {
                    let error = bad_length(length_at(data, at), self.format.version.at_least(18));
                    return Err(self.refuse_binary(self.line, *error, field, true));
                }
            };
            at = end;
        }
        // Not to be shown: there is no text from `start` to `end`.
        (self.start, self.end) = (usize::MAX, usize::MAX);
        self.next_start = at;
        self.field_count = columns;
        self.records += 1;
        Ok(Some(self.record()))
    }

    /// A count that is not the columns'; behind the trailer there must be nothing.
    #[cold]
    fn end_binary(&mut self, count: i16, at: usize) -> Result<(), Box<RecordError>> {
        self.done = true;
        let error = if count != TRAILER {
            let expected = self.format.columns.len();
            bad_format(format!("row field count is {count}, expected {expected}"))
        } else if at < self.valid_to {
            bad_format("received copy data after EOF marker")
        } else {
            return Ok(());
        };
        Err(self.refuse_binary(self.line, *error, 0, false))
    }

    /// A refusal with the first `present` fields of the record, and in the column behind them.
    #[cold]
    fn refuse_binary(
        &mut self,
        line: u64,
        error: ValueError,
        present: usize,
        in_column: bool,
    ) -> Box<RecordError> {
        self.done = true;
        let fields = &self.fields.refs[..present];
        Box::new(RecordError {
            line_in_chunk: line,
            error,
            column: in_column.then(|| self.format.columns[present].name.clone()),
            line_text: None,
            present: fields
                .iter()
                .map(|field| (!field.is_null()).then(|| field.bytes(self.data, &[]).to_vec()))
                .collect(),
        })
    }
}

/// A field's length, of which not all may be there, is wrong, or is more than there is.
#[cold]
fn bad_length(length: Option<i32>, is_18: bool) -> Box<ValueError> {
    match length {
        Some(length) if length < 0 => bad_format("invalid field size"),
        Some(length) if length as usize >= MAX_FIELD_BYTES => {
            let message = if is_18 {
                format!("string buffer exceeds maximum allowed length ({MAX_FIELD_BYTES} bytes)")
            } else {
                "out of memory".to_owned()
            };
            ValueError::new("54000", message).with_detail(format!(
                "Cannot enlarge string buffer containing 0 bytes by {length} more bytes."
            ))
        }
        _ => bad_format("unexpected EOF in COPY data"),
    }
}
