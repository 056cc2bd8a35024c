//! pack: the records of one chunk become heap tuples, TOAST chunks and index keys.
//!
//! Every worker has a [`Packer`] of its own; nothing here waits for anybody. What a record is
//! refused for is kept with its line in the chunk: only the ordered step knows the line in the
//! file.

use super::defaults::number::{Given, Value};
use super::defaults::{Defaults, Source};
use super::plan::{InputPlan, NativePlan, TablePlan};
use super::route::rows::RoutedRows;
use crate::build::lz4::BundledLz4;
use crate::catalog::Relation;
use crate::error::{Error, Place, Result, ValueError};
use crate::record::error::{RecordError, limit_printout};
use crate::record::format::Kind;
use crate::record::reader::{ChunkReader, Record};
use crate::sort::{IndexSpec, KeyBuffer};
use crate::sys::simd::{self, Task};
use crate::types::{Encoder, Scratch, Settings};
use pgformat::datum::varlena;
use pgformat::heap::page::RowTooBig;
use pgformat::heap::tuple::{FormedTuple, TupleBuilder};
use pgformat::layout::AttrLen;
use pgformat::toast::chunks::ToastChunks;
use pgformat::toast::compress::Compressors;
use pgformat::toast::toaster::Toaster;
use std::sync::Arc;

/// A record that is refused, by its line in the chunk.
#[derive(Debug)]
pub struct PackError {
    line_in_chunk: u64,
    column: Option<String>,
    value: Option<String>,
    error: Cause,
}

/// Who refused it.
#[derive(Debug)]
enum Cause {
    /// We.
    Value(Box<ValueError>),
    /// The server, when it was asked for a value.
    Server(Box<Error>),
}

impl PackError {
    /// The error at its place in the file.
    pub fn locate(self, file: &str, lines_before: u64) -> Error {
        let place = Place {
            file: file.to_owned(),
            line: lines_before + self.line_in_chunk,
            column: self.column,
            value: self.value,
        };
        match self.error {
            Cause::Value(error) => Error::input(*error, place),
            Cause::Server(error) => Error {
                places: vec![place],
                ..*error
            },
        }
    }
}

/// Where an attribute's value comes from, and what it must be.
#[derive(Debug, Clone)]
struct Attribute {
    /// The field of the record; `None` is always null.
    field: Option<u32>,
    encoder: Option<Encoder>,
    not_null: bool,
    /// What gives the value where no field does; `None` is null.
    source: Option<Source>,
    /// A null in the field is refused by the type. COPY asks no type of a column that the input
    /// does not have.
    type_refuses_null: bool,
}

/// Bytes of tuples from which a chunk is placed in parts: a value of two bytes in the input may
/// be padded to thousands.
const FULL_BYTES: usize = 16 << 20;

/// How far packing came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Packing {
    /// To the end of the chunk.
    Done,
    /// To as many tuples as should be in memory; records are left.
    Full,
}

/// Packs chunks of one table.
#[derive(Debug)]
pub struct Packer<'p> {
    relation: &'p Relation,
    settings: &'p Settings,
    defaults: &'p Defaults,
    scratch: Scratch,
    /// For each input: its attributes.
    attributes: Vec<Vec<Attribute>>,
    /// What the last chunk became. Of a partitioned table it has the row in hand alone.
    rows: RowSink<'p>,
    /// What the last chunk of a partitioned table became.
    routed: Option<RoutedRows<'p>>,
}

/// Where the rows of one relation become tuples, TOAST chunks and index keys.
#[derive(Debug)]
pub struct RowSink<'p> {
    specs: Vec<&'p IndexSpec>,
    /// Attributes that some native index looks at.
    indexed: Vec<bool>,
    toaster: Toaster,
    /// Values out of line that an index wants, by attribute.
    detoasted: Vec<(usize, Vec<u8>)>,
    /// What the rows became.
    pub packed: Packed,
}

/// A chunk's rows, ready to be placed.
#[derive(Debug)]
pub struct Packed {
    /// The tuples' bytes.
    pub builder: TupleBuilder,
    /// Where they lie in the builder's arena.
    pub tuples: Vec<FormedTuple>,
    /// Values out of line.
    pub toast: ToastChunks,
    /// Keys of the native indexes, one entry a row.
    pub keys: Vec<KeyBuffer>,
    /// The line in the chunk that row 0 begins on.
    pub first_row_line: u64,
    /// For each row the line in the chunk that it begins on; empty where row n begins on line
    /// `first_row_line + n`.
    pub row_lines: Vec<u32>,
}

impl<'p> Packer<'p> {
    /// A worker's packer for one table.
    pub fn new(table: &'p TablePlan, native: &'p NativePlan, settings: &'p Settings) -> Packer<'p> {
        let relation = &table.relation;
        Packer {
            relation,
            settings,
            defaults: &native.defaults,
            scratch: Scratch::new(),
            attributes: table
                .inputs
                .iter()
                .map(|input| attributes(relation, native, input))
                .collect(),
            rows: RowSink::new(relation, native),
            routed: None,
        }
    }

    /// The same, of a partitioned table whose rows go to leaves.
    #[must_use]
    pub fn routed(mut self, routed: RoutedRows<'p>) -> Packer<'p> {
        // A leaf has each of the root's NOT NULL, and is asked after it is known which it is.
        for attribute in self.attributes.iter_mut().flatten() {
            attribute.not_null = false;
        }
        self.routed = Some(routed);
        self
    }

    /// What the last chunk became, of a table that is no partitioned one.
    pub fn packed(&self) -> &Packed {
        &self.rows.packed
    }

    /// What the last chunk became, for each relation that has rows of it, with the relation's
    /// number among the leaves (0 for a table that has none).
    pub fn filled(&mut self) -> impl Iterator<Item = (usize, &mut Packed)> {
        let alone = self.routed.is_none().then_some((0, &mut self.rows.packed));
        let routed = self.routed.as_mut().map(RoutedRows::filled);
        alone.into_iter().chain(routed.into_iter().flatten())
    }

    /// Packs records from `reader`, of input number `input_index`, until there are no more, or
    /// their tuples have grown large, or values of the next are still to be asked for. `given`
    /// has what the input does not give. What was packed before is forgotten.
    ///
    /// # Errors
    /// The first record that is refused. What was packed before it is of no use.
    pub fn pack(
        &mut self,
        reader: &mut ChunkReader<'_>,
        input_index: usize,
        input: &InputPlan,
        given: &mut Given,
    ) -> Result<Packing, PackError> {
        self.rows.packed.clear();
        if let Some(routed) = &mut self.routed {
            routed.clear();
        }
        let attributes = std::mem::take(&mut self.attributes[input_index]);
        let result = simd::run(PackRecords {
            packer: self,
            reader,
            attributes: &attributes,
            input,
            given,
        });
        self.attributes[input_index] = attributes;
        result
    }

    #[inline(always)]
    fn pack_records<const BINARY: bool>(
        &mut self,
        reader: &mut ChunkReader<'_>,
        attributes: &[Attribute],
        input: &InputPlan,
        given: &mut Given,
    ) -> Result<Packing, PackError> {
        while self.bytes() < FULL_BYTES && !given.is_wanting() {
            match reader.next() {
                Ok(Some(record)) => {
                    self.pack_record::<BINARY>(&record, attributes, input, given)?;
                    given.next_row();
                }
                Ok(None) => return Ok(Packing::Done),
                Err(error) => return Err(self.refused_record(*error, attributes, input)),
            }
        }
        Ok(Packing::Full)
    }

    /// Bytes of the tuples in memory.
    #[inline]
    fn bytes(&self) -> usize {
        match &self.routed {
            None => self.rows.packed.builder.arena().len() + self.rows.packed.toast.arena().len(),
            Some(routed) => routed.bytes(),
        }
    }

    #[inline(always)]
    fn pack_record<const BINARY: bool>(
        &mut self,
        record: &Record<'_>,
        attributes: &[Attribute],
        input: &InputPlan,
        given: &mut Given,
    ) -> Result<(), PackError> {
        let lack = given.draw(record, self.relation, self.defaults).err();
        let is_lacking = lack.is_some() || given.refusal().is_some();
        let packed = &mut self.rows.packed;
        if self.routed.is_none() {
            packed.note_line(record.first_line());
        }
        let builder = &mut packed.builder;
        builder.begin_row();
        let mut null_refused = None;
        for (index, attribute) in attributes.iter().enumerate() {
            let value = attribute
                .field
                .and_then(|field| record.field_at(field as usize));
            if let (Some((data, value)), Some(encoder)) = (value, &attribute.encoder) {
                let (scratch, settings) = (&mut self.scratch, self.settings);
                let put = if BINARY {
                    encoder.receive(&data[value], scratch, settings, builder)
                } else {
                    encoder.encode_at(data, value, scratch, settings, builder)
                };
                if put.is_err() {
                    return Err(self.refused_value(record, attributes, input));
                }
                continue;
            }
            if attribute.type_refuses_null
                && attribute
                    .field
                    .is_some_and(|field| !record.is_default(field as usize))
            {
                return Err(self.refused_value(record, attributes, input));
            }
            if let Some(source) = attribute.source
                && !is_lacking
                && attribute
                    .field
                    .is_none_or(|field| record.is_default(field as usize))
            {
                let type_oid = self.relation.columns[index].type_oid;
                let value = given.value(source, index, type_oid, self.defaults);
                let encoder = attribute.encoder.as_ref();
                if put(value, encoder, &mut self.scratch, self.settings, builder)
                    .map_err(|e| PackError::of_server(e, record))?
                {
                    continue;
                }
            }
            if attribute.not_null && null_refused.is_none() {
                null_refused = Some(index);
            }
            builder.put_null();
        }
        if let Some(error) = lack {
            return Err(PackError::of_row(error, record));
        }
        if let Some(error) = given.refusal() {
            return Err(PackError::of_server(error.clone(), record));
        }
        if let Some(routed) = &mut self.routed {
            let routed = routed.take(builder, record);
            builder.abandon_row();
            return routed;
        }
        if let Some(index) = null_refused {
            let relation = self.relation;
            return Err(PackError::of_null(
                (relation, index),
                relation,
                builder,
                record,
            ));
        }
        self.rows.finish_row(record)
    }

    /// A record that the reader refuses. One with too few fields has its fields converted first,
    /// as COPY does before it misses the next.
    #[cold]
    fn refused_record(
        &mut self,
        error: RecordError,
        attributes: &[Attribute],
        input: &InputPlan,
    ) -> PackError {
        // Which of its nulls are default markers is not known.
        let may_be_default = input.format.default.is_some();
        let present = error.present.iter();
        let present = present.map(|value| (value.as_deref(), may_be_default));
        self.first_bad_value(present, error.line_in_chunk, attributes, input)
            .unwrap_or(PackError {
                line_in_chunk: error.line_in_chunk,
                column: error.column,
                value: error.line_text,
                error: Cause::Value(Box::new(error.error)),
            })
    }

    /// The error of a record with a value that its type refuses.
    #[cold]
    fn refused_value(
        &mut self,
        record: &Record<'_>,
        attributes: &[Attribute],
        input: &InputPlan,
    ) -> PackError {
        let values = (0..record.len()).map(|i| (record.field(i), record.is_default(i)));
        self.first_bad_value(values, record.line(), attributes, input)
            .expect("a value that was refused is refused when it stands alone")
    }

    /// The error that COPY meets first among values in the order of the input, which need not
    /// be the table's. With each comes whether it is a default marker when it is null.
    #[cold]
    fn first_bad_value<'v>(
        &mut self,
        values: impl Iterator<Item = (Option<&'v [u8]>, bool)>,
        line_in_chunk: u64,
        attributes: &[Attribute],
        input: &InputPlan,
    ) -> Option<PackError> {
        self.rows.packed.builder.abandon_row();
        for ((value, is_default), &index) in values.zip(&input.fields) {
            let Some(encoder) = &attributes[index].encoder else {
                continue;
            };
            let result = match value {
                None if is_default => continue,
                None => encoder.check_null(),
                Some(value) => {
                    let layout = Arc::from([self.rows.packed.builder.layout()[index]]);
                    let mut alone = TupleBuilder::new(layout);
                    alone.begin_row();
                    let (scratch, settings) = (&mut self.scratch, self.settings);
                    if is_binary(input) {
                        encoder.receive(value, scratch, settings, &mut alone)
                    } else {
                        encoder.encode(value, scratch, settings, &mut alone)
                    }
                }
            };
            if let Err(error) = result {
                return Some(PackError {
                    line_in_chunk,
                    column: Some(self.relation.columns[index].name.clone()),
                    value: value.filter(|_| !is_binary(input)).map(limit_printout),
                    error: Cause::Value(error),
                });
            }
        }
        None
    }
}

impl<'p> RowSink<'p> {
    /// Nothing yet.
    pub fn new(relation: &'p Relation, native: &'p NativePlan) -> RowSink<'p> {
        let specs: Vec<&IndexSpec> = native.native_indexes().map(|(_, spec)| spec).collect();
        let mut indexed = vec![false; relation.columns.len()];
        for column in specs.iter().flat_map(|spec| &spec.definition().columns) {
            indexed[column.attribute] = true;
        }
        let compressors = Compressors {
            lz4: Some(Box::new(BundledLz4)),
            ..Compressors::default()
        };
        RowSink {
            indexed,
            toaster: Toaster::new(
                Arc::clone(&native.layout),
                relation.toast_tuple_target_bytes,
                relation.toast.map(|toast| toast.oid),
                compressors,
            ),
            detoasted: Vec::new(),
            packed: Packed {
                builder: TupleBuilder::new(Arc::clone(&native.layout)),
                tuples: Vec::new(),
                toast: ToastChunks::new(),
                keys: specs.iter().map(|spec| spec.new_buffer()).collect(),
                first_row_line: 1,
                row_lines: Vec::new(),
            },
            specs,
        }
    }

    /// Takes the row whose values the builder has.
    #[inline(always)]
    pub fn finish_row(&mut self, record: &Record<'_>) -> Result<(), PackError> {
        let packed = &mut self.packed;
        let builder = &mut packed.builder;
        let mut tuple = builder.finish_row();
        let mut is_toasted = false;
        if self.toaster.needs(&tuple) {
            tuple = self
                .toaster
                .toast(builder, tuple, &mut packed.toast)
                .map_err(|e| {
                    PackError::of_row(ValueError::new(RowTooBig::SQLSTATE, e.to_string()), record)
                })?;
            is_toasted = true;
        }
        packed.tuples.push(tuple);
        if self.specs.is_empty() {
            return Ok(());
        }
        if is_toasted {
            return self.extract_toasted(record);
        }
        for (spec, keys) in self.specs.iter().zip(&mut packed.keys) {
            spec.extract(|i| packed.builder.attribute(i), keys)
                .map_err(|e| PackError::of_row(e, record))?;
        }
        Ok(())
    }

    /// Keys of a row that may have values out of line.
    fn extract_toasted(&mut self, record: &Record<'_>) -> Result<(), PackError> {
        let packed = &mut self.packed;
        self.detoasted.clear();
        for index in (0..self.indexed.len()).filter(|i| self.indexed[*i]) {
            let Some(stored) = packed.builder.attribute(index) else {
                continue;
            };
            if packed.builder.layout()[index].len == AttrLen::Varlena
                && varlena::form(stored) == varlena::Form::External
            {
                let mut value = Vec::new();
                let datum = packed.toast.index_datum(stored, &mut value).len();
                debug_assert_eq!(datum, value.len());
                self.detoasted.push((index, value));
            }
        }
        let detoasted = &self.detoasted;
        for (spec, keys) in self.specs.iter().zip(&mut packed.keys) {
            let attribute = |i: usize| match detoasted.iter().find(|(index, _)| *index == i) {
                Some((_, value)) => Some(&value[..]),
                None => packed.builder.attribute(i),
            };
            spec.extract(attribute, keys)
                .map_err(|e| PackError::of_row(e, record))?;
        }
        Ok(())
    }
}

/// [`Packer::pack_records`], where nearly all of a load's computing is done.
struct PackRecords<'w, 'p, 'r> {
    packer: &'w mut Packer<'p>,
    reader: &'w mut ChunkReader<'r>,
    attributes: &'w [Attribute],
    input: &'w InputPlan,
    given: &'w mut Given,
}

impl Task for PackRecords<'_, '_, '_> {
    type Output = Result<Packing, PackError>;

    #[inline(always)]
    fn run(self) -> Self::Output {
        let PackRecords {
            packer,
            reader,
            attributes,
            input,
            given,
        } = self;
        if is_binary(input) {
            packer.pack_records::<true>(reader, attributes, input, given)
        } else {
            packer.pack_records::<false>(reader, attributes, input, given)
        }
    }
}

impl Packed {
    /// Forgets all rows.
    pub(super) fn clear(&mut self) {
        self.builder.clear();
        self.tuples.clear();
        self.toast.clear();
        self.keys.iter_mut().for_each(|keys| keys.truncate(0));
        self.row_lines.clear();
        self.first_row_line = 1;
    }

    /// Remembers where the next row begins, without a word while each row has one line.
    #[inline]
    pub(super) fn note_line(&mut self, line: u64) {
        let row = self.tuples.len() as u64;
        if row == 0 {
            self.first_row_line = line;
        }
        if self.row_lines.is_empty() {
            if line == self.first_row_line + row {
                return;
            }
            let first = self.first_row_line;
            self.row_lines
                .extend((first..first + row).map(|line| line as u32));
        }
        self.row_lines.push(line as u32);
    }
}

impl PackError {
    /// A null in column `index` of `relation`, which refuses it, in a row of the table that was to be
    /// loaded: `root`, whose values `builder` has.
    ///
    /// PostgreSQL: src/backend/executor/execMain.c, `ExecConstraints`.
    #[cold]
    pub(super) fn of_null(
        (relation, index): (&Relation, usize),
        root: &Relation,
        builder: &TupleBuilder,
        record: &Record<'_>,
    ) -> PackError {
        let values: Vec<String> = root
            .columns
            .iter()
            .enumerate()
            .filter(|(_, column)| !column.dropped)
            .map(|(i, column)| match builder.attribute(i) {
                _ if column.generated == 'v' => "virtual".to_owned(),
                None => "null".to_owned(),
                // The server shows the first 64 bytes of each value.
                stored => clip(&column.output(stored), 64),
            })
            .collect();
        let column = &relation.columns[index].name;
        let error = ValueError::new(
            "23502",
            format!(
                "null value in column \"{column}\" of relation \"{}\" violates not-null constraint",
                relation.name
            ),
        )
        .with_detail(format!("Failing row contains ({}).", values.join(", ")));
        PackError {
            line_in_chunk: record.line(),
            column: Some(column.clone()),
            value: None,
            error: Cause::Value(error),
        }
    }

    #[cold]
    pub(super) fn of_row(error: Box<ValueError>, record: &Record<'_>) -> PackError {
        PackError {
            line_in_chunk: record.line(),
            column: None,
            value: record.raw().map(limit_printout),
            error: Cause::Value(error),
        }
    }

    #[cold]
    fn of_server(error: Error, record: &Record<'_>) -> PackError {
        PackError {
            line_in_chunk: record.line(),
            column: None,
            value: record.raw().map(limit_printout),
            error: Cause::Server(Box::new(error)),
        }
    }
}

/// Puts a value that the input does not give; false, and nothing is put, when it is null.
fn put(
    value: Value<'_>,
    encoder: Option<&Encoder>,
    scratch: &mut Scratch,
    settings: &Settings,
    builder: &mut TupleBuilder,
) -> Result<bool> {
    match value {
        Value::Null => return Ok(false),
        Value::Stored(stored) => builder.put_stored(stored),
        Value::Integer(bytes, len) => builder.put_stored(&bytes[..len]),
        Value::Sent(sent) => {
            let encoder = encoder.expect("what is stored has an encoder");
            encoder.receive_sent(sent, scratch, settings, builder)?;
        }
        Value::NotStored => builder.put_null(),
    }
    Ok(true)
}

fn is_binary(input: &InputPlan) -> bool {
    input.format.kind == Kind::Binary
}

/// What each attribute takes from a record of `input`.
fn attributes(relation: &Relation, native: &NativePlan, input: &InputPlan) -> Vec<Attribute> {
    relation
        .columns
        .iter()
        .zip(&native.encoders)
        .enumerate()
        .map(|(index, (column, encoder))| {
            let field = input.fields.iter().position(|f| *f == index);
            Attribute {
                field: field.map(|field| field as u32),
                encoder: encoder.clone(),
                not_null: column.not_null
                    && !column.dropped
                    && (column.generated != 'v' || native.defaults.sources[index].is_some()),
                source: native.defaults.sources[index],
                type_refuses_null: field.is_some()
                    && encoder.as_ref().is_some_and(Encoder::refuses_null),
            }
        })
        .collect()
}

/// The first `bytes` bytes of a text, cut at a character's end, with three dots when cut.
pub(super) fn clip(text: &str, bytes: usize) -> String {
    if text.len() <= bytes {
        return text.to_owned();
    }
    let end = (0..=bytes)
        .rev()
        .find(|end| text.is_char_boundary(*end))
        .unwrap_or(0);
    format!("{}...", &text[..end])
}
