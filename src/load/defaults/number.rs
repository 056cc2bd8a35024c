//! Counts a chunk's rows before they are packed, and has its values ready then.
//!
//! A worker surveys its chunk by itself: how many rows, which fields are default markers, what
//! generated columns need to know. Then it waits for its turn to number: the rows of all chunks
//! before are counted, so the draws from sequences that its own rows make are known, and the
//! server is asked for the chunk's values, in the order of the input. Then the chunk is packed,
//! beside others.
//!
//! ```text
//! worker 1:  survey [number] pack [place] seal
//! worker 2:    survey       [number] pack   [place] seal
//! ```
//!
//! Values that are too many to be held are asked for in parts: the turn to number is kept until
//! the chunk's last row has been packed.

use super::ask::{Ask, BatchSize, Cost, Query};
use super::wire_column::{WireArray, WireColumn};
use super::{Defaults, Source};
use crate::catalog::Relation;
use crate::error::{Error, Place, Result, ValueError};
use crate::load::plan::{InputPlan, NativePlan, TablePlan};
use crate::record::reader::{ChunkReader, Record};
use crate::types::{Encoder, Scratch, Settings, wire};
use pgformat::datum::type_oid;
use pgformat::heap::tuple::TupleBuilder;
use pgformat::ids::Oid;
use std::ops::Range;
use std::sync::Arc;

/// Bytes of asked values from which a chunk is packed in parts.
const FULL_BYTES: usize = 16 << 20;

/// A field that a generated column looks at.
#[derive(Debug)]
struct Wanted {
    field: usize,
    encoder: Encoder,
    type_oid: Oid,
    /// Its number among [`Defaults::arguments`].
    argument: usize,
    /// Forms this one attribute.
    builder: TupleBuilder,
}

/// Surveys chunks of one table; every worker has its own.
#[derive(Debug)]
pub struct Surveyor<'p> {
    defaults: &'p Defaults,
    settings: &'p Settings,
    scratch: Scratch,
    /// For each input.
    wanted: Vec<Vec<Wanted>>,
}

/// What is known of a chunk before it is packed.
#[derive(Debug, Default)]
pub struct Survey {
    input: usize,
    /// Rows before the first that is refused for what stands in the input.
    rows: usize,
    /// For each of the input's [`Defaults::lacks`] that is a field: whether it is the marker,
    /// by row. Empty for others.
    marked: Vec<Vec<bool>>,
    /// For each of [`Defaults::arguments`] that is a field: its values. Empty for others.
    arguments: Vec<WireColumn>,
    /// A row was refused.
    pub refused: bool,
}

impl<'p> Surveyor<'p> {
    /// A worker's surveyor for one table.
    pub fn new(
        table: &'p TablePlan,
        native: &'p NativePlan,
        settings: &'p Settings,
    ) -> Surveyor<'p> {
        let wanted = |input: &InputPlan| {
            native
                .defaults
                .arguments
                .iter()
                .enumerate()
                .filter_map(|(argument, attribute)| {
                    Some(Wanted {
                        field: input.fields.iter().position(|f| f == attribute)?,
                        encoder: native.encoders[*attribute].clone()?,
                        type_oid: table.relation.columns[*attribute].type_oid,
                        argument,
                        builder: TupleBuilder::new(Arc::from([native.layout[*attribute]])),
                    })
                })
                .collect()
        };
        Surveyor {
            defaults: &native.defaults,
            settings,
            scratch: Scratch::new(),
            wanted: table.inputs.iter().map(wanted).collect(),
        }
    }

    /// Reads all records of a chunk of input number `input`.
    pub fn survey(&mut self, reader: &mut ChunkReader<'_>, input: usize) -> Survey {
        let lacks = &self.defaults.lacks[input];
        let mut survey = Survey {
            input,
            marked: lacks.iter().map(|_| Vec::new()).collect(),
            arguments: std::iter::repeat_with(WireColumn::default)
                .take(self.defaults.arguments.len())
                .collect(),
            ..Survey::default()
        };
        loop {
            match reader.next() {
                Ok(Some(record)) => {
                    for wanted in &mut self.wanted[input] {
                        let column = &mut survey.arguments[wanted.argument];
                        if !wanted.take(&record, &mut self.scratch, self.settings, column) {
                            survey.refused = true;
                            return survey;
                        }
                    }
                    for (lack, marked) in lacks.iter().zip(&mut survey.marked) {
                        if let Some(field) = lack.field {
                            marked.push(record.is_default(field as usize));
                        }
                    }
                    survey.rows += 1;
                }
                Ok(None) => return survey,
                Err(_) => {
                    survey.refused = true;
                    return survey;
                }
            }
        }
    }
}

impl Wanted {
    /// Takes a record's value; false when it is refused.
    fn take(
        &mut self,
        record: &Record<'_>,
        scratch: &mut Scratch,
        settings: &Settings,
        column: &mut WireColumn,
    ) -> bool {
        let Some(field) = record.field(self.field) else {
            column.push(None);
            return true;
        };
        self.builder.begin_row();
        let encoded = self
            .encoder
            .encode(field, scratch, settings, &mut self.builder);
        if encoded.is_ok() {
            let stored = self.builder.attribute(0).expect("a field is not null");
            column.push_with(|out| {
                wire::send(self.type_oid, stored, out);
                true
            });
        }
        self.builder.abandon_row();
        encoded.is_ok()
    }
}

/// What the workers take turns at when they number.
#[derive(Debug, Default)]
pub struct Numbers {
    /// How often each sequence was drawn from.
    pub draws: Vec<u64>,
    /// What asking cost.
    pub cost: Cost,
    /// A row was refused: nothing behind it needs numbers.
    pub hopeless: bool,
    batch: BatchSize,
}

/// The values of a chunk's rows that the input does not give.
#[derive(Debug, Default)]
pub struct Given {
    survey: Survey,
    /// The next row to be packed.
    row: usize,
    /// Rows before this one have their values.
    ready: usize,
    /// The row that the first of `values` is of.
    first: usize,
    /// For each of [`Defaults::asked`]: the values.
    values: Vec<WireColumn>,
    /// For each sequence the number of its next draw: of `row`, and of `ready`.
    draws: Vec<u64>,
    draws_ready: Vec<u64>,
    /// For each attribute what `row` draws.
    drawn: Vec<i64>,
    /// The first row whose values cannot be had.
    refused: Option<(usize, Error)>,
}

impl Numbers {
    /// For a table with these sources.
    pub fn new(defaults: &Defaults) -> Numbers {
        Numbers {
            draws: vec![0; defaults.sequences.len()],
            ..Numbers::default()
        }
    }

    /// Numbers a chunk's rows.
    pub fn give(&mut self, survey: Survey, defaults: &Defaults) -> Given {
        let given = Given {
            values: std::iter::repeat_with(WireColumn::default)
                .take(defaults.asked.len())
                .collect(),
            draws: self.draws.clone(),
            draws_ready: self.draws.clone(),
            drawn: vec![0; defaults.sources.len()],
            survey,
            ..Given::default()
        };
        let survey = &given.survey;
        for (lack, marked) in defaults.lacks[survey.input].iter().zip(&survey.marked) {
            if let Some(Source::Sequence(number)) = defaults.sources[lack.attribute] {
                self.draws[number] += match lack.field {
                    Some(_) => marked.iter().filter(|m| **m).count() as u64,
                    None => survey.rows as u64,
                };
            }
        }
        self.hopeless |= survey.refused;
        given
    }
}

impl Given {
    /// Whether the next row's values are still to be asked for.
    #[inline]
    pub fn is_wanting(&self) -> bool {
        self.row == self.ready && self.ready < self.survey.rows
    }

    /// Whether all rows have their values.
    pub fn is_whole(&self) -> bool {
        self.ready >= self.survey.rows
    }

    /// Has values for the next rows: all that are left, or as many as should be held.
    ///
    /// # Errors
    /// When the server cannot be asked. A row that it refuses is told when it is packed.
    pub fn prepare(
        &mut self,
        relation: &Relation,
        defaults: &Defaults,
        line: Option<&dyn Ask>,
        numbers: &mut Numbers,
    ) -> Result<()> {
        let (Some(line), false) = (line, defaults.asked.is_empty()) else {
            self.ready = self.survey.rows;
            return Ok(());
        };
        self.values.iter_mut().for_each(WireColumn::clear);
        self.first = self.ready;
        while self.ready < self.survey.rows {
            let held: usize = self.values.iter().map(WireColumn::bytes).sum();
            if held >= FULL_BYTES {
                break;
            }
            let rows = numbers.batch.rows().min(self.survey.rows - self.ready);
            self.prepare_batch(rows, relation, defaults, line, &mut numbers.cost)?;
            let bytes: usize = self.values.iter().map(WireColumn::bytes).sum();
            numbers.batch.learn(rows, bytes - held);
            if self.refused.is_some() {
                // Nobody gets behind that row.
                self.ready = self.survey.rows;
                numbers.hopeless = true;
            }
        }
        Ok(())
    }

    fn prepare_batch(
        &mut self,
        rows: usize,
        relation: &Relation,
        defaults: &Defaults,
        line: &dyn Ask,
        cost: &mut Cost,
    ) -> Result<()> {
        let mut rows = self.ready..self.ready + rows;
        let drawn = self.draw_arguments(&mut rows, relation, defaults);
        let lacks = &defaults.lacks[self.survey.input];
        let query = &defaults.default_queries[self.survey.input];
        if !query.asked.is_empty() {
            let survey = &self.survey;
            let flags = |rows: Range<usize>| {
                let flag = |number: &usize| {
                    let attribute = defaults.asked[*number].attribute;
                    let lack = lacks
                        .iter()
                        .position(|lack| lack.attribute == attribute)
                        .expect("what is asked for is lacking");
                    WireArray::new(type_oid::BOOL, rows.clone(), |row| {
                        let marked = lacks[lack].field.is_none() || survey.marked[lack][row];
                        Some(if marked { &[1] } else { &[0] })
                    })
                };
                query.asked.iter().map(flag).collect()
            };
            let refused = line.ask(query, rows.clone(), &flags, &mut self.values, cost)?;
            self.refuse(&mut rows, refused);
        }
        let query: &Query = &defaults.generated_query;
        if !query.asked.is_empty() {
            let mut generated: Vec<WireColumn> = Vec::new();
            generated.resize_with(self.values.len(), WireColumn::default);
            let arguments = |rows: Range<usize>| {
                let argument = |(number, attribute): (usize, &usize)| {
                    let element = relation.columns[*attribute].type_oid;
                    WireArray::new(element, rows.clone(), |row| {
                        self.argument(number, *attribute, row, defaults, &drawn)
                    })
                };
                let arguments = defaults.arguments.iter().enumerate().map(argument);
                // One more, so that there is a row where no column is looked at.
                let rows = WireArray::new(type_oid::BOOL, rows.clone(), |_| None);
                arguments.chain([rows]).collect()
            };
            let refused = line.ask(query, rows.clone(), &arguments, &mut generated, cost)?;
            for number in &query.asked {
                for row in 0..generated[*number].len() {
                    self.values[*number].push(generated[*number].get(row));
                }
            }
            self.refuse(&mut rows, refused);
        }
        self.ready = rows.end;
        Ok(())
    }

    /// Remembers the first row without values, which ends the rows.
    fn refuse(&mut self, rows: &mut Range<usize>, refused: Option<(usize, Error)>) {
        if let Some((row, error)) = refused {
            rows.end = row;
            self.refused = Some((row, error));
        }
    }

    /// What rows draw that generated columns look at: for each attribute, by row.
    fn draw_arguments(
        &mut self,
        rows: &mut Range<usize>,
        relation: &Relation,
        defaults: &Defaults,
    ) -> Vec<WireColumn> {
        let mut columns = Vec::new();
        columns.resize_with(defaults.sources.len(), WireColumn::default);
        let wanted =
            |attribute: &usize| matches!(defaults.sources[*attribute], Some(Source::Sequence(_)));
        if !defaults.arguments.iter().any(wanted) {
            return columns;
        }
        let lacks = &defaults.lacks[self.survey.input];
        for row in rows.clone() {
            for (lack, marked) in lacks.iter().zip(&self.survey.marked) {
                let Some(Source::Sequence(number)) = defaults.sources[lack.attribute] else {
                    continue;
                };
                let column = &mut columns[lack.attribute];
                if lack.field.is_some() && !marked[row] {
                    column.push(None);
                    continue;
                }
                let type_oid = relation.columns[lack.attribute].type_oid;
                let value = defaults.sequences[number]
                    .value(self.draws_ready[number])
                    .and_then(|value| stored_integer(value, type_oid));
                match value {
                    Ok((bytes, len)) => column.push_with(|out| {
                        wire::send(type_oid, &bytes[..len], out);
                        true
                    }),
                    Err(error) => {
                        let refused = Error::input(*error, Place::default());
                        self.refuse(rows, Some((row, refused)));
                        return columns;
                    }
                }
                self.draws_ready[number] += 1;
            }
        }
        columns
    }

    /// The value of an argument in a row of the batch in hand.
    fn argument<'v>(
        &'v self,
        number: usize,
        attribute: usize,
        row: usize,
        defaults: &'v Defaults,
        drawn: &'v [WireColumn],
    ) -> Option<&'v [u8]> {
        let lacks = &defaults.lacks[self.survey.input];
        let lack = lacks.iter().position(|lack| lack.attribute == attribute);
        let takes_default =
            lack.filter(|lack| lacks[*lack].field.is_none() || self.survey.marked[*lack][row]);
        if takes_default.is_none() {
            let column = &self.survey.arguments[number];
            return if column.len() == 0 {
                None
            } else {
                column.get(row)
            };
        }
        match defaults.sources[attribute]? {
            Source::Once => defaults.once_on_wire[attribute].as_deref(),
            Source::Sequence(_) => drawn[attribute].get(row - self.ready),
            Source::Asked(asked) => self.values[asked].get(row - self.first),
        }
    }

    /// Draws what a record draws from sequences.
    ///
    /// # Errors
    /// `2200H`, `22003`.
    pub(in crate::load) fn draw(
        &mut self,
        record: &Record<'_>,
        relation: &Relation,
        defaults: &Defaults,
    ) -> Result<(), Box<ValueError>> {
        if defaults.sequences.is_empty() {
            return Ok(());
        }
        for lack in &defaults.lacks[self.survey.input] {
            let Some(Source::Sequence(number)) = defaults.sources[lack.attribute] else {
                continue;
            };
            if lack
                .field
                .is_none_or(|field| record.is_default(field as usize))
            {
                let value = defaults.sequences[number].value(self.draws[number])?;
                stored_integer(value, relation.columns[lack.attribute].type_oid)?;
                self.drawn[lack.attribute] = value;
                self.draws[number] += 1;
            }
        }
        Ok(())
    }

    /// The error of the row in hand, if its values cannot be had.
    pub(in crate::load) fn refusal(&self) -> Option<&Error> {
        let (row, error) = self.refused.as_ref()?;
        (*row == self.row).then_some(error)
    }

    /// Goes on to the next row.
    #[inline]
    pub(in crate::load) fn next_row(&mut self) {
        self.row += 1;
    }

    /// The default or the computed value of an attribute for the row in hand.
    pub(in crate::load) fn value<'v>(
        &'v self,
        source: Source,
        attribute: usize,
        type_oid: Oid,
        defaults: &'v Defaults,
    ) -> Value<'v> {
        match source {
            Source::Once => defaults.once[attribute]
                .as_deref()
                .map_or(Value::Null, Value::Stored),
            Source::Sequence(_) => stored_integer(self.drawn[attribute], type_oid)
                .map_or(Value::Null, |(bytes, len)| Value::Integer(bytes, len)),
            Source::Asked(number) => match self.values[number].get(self.row - self.first) {
                None => Value::Null,
                Some(_) if defaults.asked[number].is_virtual => Value::NotStored,
                Some(wire) => Value::Sent(wire),
            },
        }
    }
}

/// A value that the input does not give.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::load) enum Value<'v> {
    /// Null.
    Null,
    /// In stored form.
    Stored(&'v [u8]),
    /// In stored form: so many of these bytes.
    Integer([u8; 8], usize),
    /// As the server sent it.
    Sent(&'v [u8]),
    /// Of a virtual column: not null, and not stored.
    NotStored,
}

/// A sequence's value in an integer column: its stored bytes and how many there are.
///
/// PostgreSQL: src/backend/utils/adt/int8.c, int84, int82.
fn stored_integer(value: i64, type_oid: Oid) -> Result<([u8; 8], usize), Box<ValueError>> {
    let (fits, len, name) = match type_oid {
        type_oid::INT2 => (i16::try_from(value).is_ok(), 2, "smallint"),
        type_oid::INT4 => (i32::try_from(value).is_ok(), 4, "integer"),
        _ => (true, 8, "bigint"),
    };
    if !fits {
        return Err(ValueError::new("22003", format!("{name} out of range")));
    }
    Ok((value.to_le_bytes(), len))
}
