//! Values that the input does not give: defaults, sequences, generated columns.
//!
//! ```text
//! plan      each column gets a source: one value for all rows, a sequence, the server
//! prepare   the values that are one for all rows are evaluated, the sequences' states read
//! number    a chunk's rows are counted before they are packed: it is known then which values
//!           of a sequence are theirs, and the server is asked for the rest in batches
//! pack      puts these values where a field would give one
//! register  sequences end where nextval would have left them
//! ```
//!
//! PostgreSQL: src/backend/commands/copyfrom.c, BeginCopyFrom; copyfromparse.c, NextCopyFrom;
//! src/backend/executor/nodeModifyTable.c, ExecComputeStoredGenerated.

pub(super) mod ask;
pub(super) mod number;
mod prepare;
pub(super) mod sequence;
mod wire_column;

pub(super) use prepare::{needs_transaction, prepare};

use super::plan::InputPlan;
use crate::catalog::{Column, Relation, Volatility};
use crate::types::{TypeKind, wire};
use pgformat::datum::type_oid;
use pgformat::ids::Oid;
use sequence::SequencePlan;
use std::collections::HashSet;

/// Where the value of a column comes from when the input does not give it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// One value for all rows: [`Defaults::once`] of the attribute.
    Once,
    /// The next value of this one of [`Defaults::sequences`].
    Sequence(usize),
    /// This one of [`Defaults::asked`]: the server evaluates it for each row.
    Asked(usize),
}

/// A column whose values the server gives row by row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Asked {
    /// The attribute's index.
    pub attribute: usize,
    /// It is computed from other columns.
    pub generated: bool,
    /// It is not stored: it is only looked whether it is null.
    pub is_virtual: bool,
}

/// A column of an input that may take its default.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lack {
    /// The attribute's index.
    pub attribute: usize,
    /// The field that takes it when it is the default marker; `None` is every row.
    pub field: Option<u32>,
}

/// The sources of a table's columns.
#[derive(Debug, Default)]
pub struct Defaults {
    /// For each attribute; `None` is null.
    pub sources: Vec<Option<Source>>,
    /// For each attribute that has one value for all rows: its stored form, `None` for null.
    pub once: Vec<Option<Vec<u8>>>,
    /// The same in the protocol's binary form.
    pub once_on_wire: Vec<Option<Vec<u8>>>,
    /// The sequences that are drawn from.
    pub sequences: Vec<SequencePlan>,
    /// What the server is asked for.
    pub asked: Vec<Asked>,
    /// Attributes that the generated ones of `asked` look at.
    pub arguments: Vec<usize>,
    /// For each input the columns that may take their defaults, in the order in which COPY
    /// evaluates these: default markers by field, then what is not in the input by attnum.
    pub lacks: Vec<Vec<Lack>>,
    /// For each input the statement that evaluates its defaults, and of which of `asked`.
    pub default_queries: Vec<ask::Query>,
    /// The statement that evaluates the generated columns.
    pub generated_query: ask::Query,
    /// A value that is one for all rows depends on the transaction or the statement.
    pub once_is_stable: bool,
}

impl Defaults {
    /// Whether values depend on the transaction that loads the rows, or on sequences that it moves.
    pub fn belong_to_the_load(&self) -> bool {
        self.once_is_stable || self.need_numbers()
    }

    /// Whether rows must be counted before they are packed.
    pub fn need_numbers(&self) -> bool {
        !self.sequences.is_empty() || !self.asked.is_empty()
    }
}

/// Every sequence that a column of the table draws from, or may.
pub fn sequences_of(relation: &Relation) -> impl Iterator<Item = Oid> {
    let columns = relation.columns.iter().filter(|c| !c.dropped);
    columns.filter_map(|c| c.sequence.as_ref().map(|s| s.oid))
}

/// The sources for these inputs, or why the server must load the table. `claimed` are the
/// sequences of tables that come before.
pub fn plan(
    relation: &Relation,
    inputs: &[InputPlan],
    claimed: &HashSet<Oid>,
) -> Result<Defaults, String> {
    let mut defaults = Defaults {
        sources: vec![None; relation.columns.len()],
        once: vec![None; relation.columns.len()],
        once_on_wire: vec![None; relation.columns.len()],
        ..Defaults::default()
    };
    for (index, column) in relation.columns.iter().enumerate() {
        if column.dropped || !is_needed(index, column, inputs) {
            continue;
        }
        let source = if column.generated == ' ' {
            default_source(index, column, &mut defaults)?
        } else {
            generated_source(index, column, relation, &mut defaults)?
        };
        defaults.sources[index] = source;
        if source.is_some() && column.generated != 'v' {
            refuse_cuts(column)?;
        }
        let drawn_from = column.sequence.as_ref().filter(|_| source.is_some());
        if let Some(sequence) = drawn_from.filter(|s| claimed.contains(&s.oid)) {
            return Err(format!(
                "sequence {} gives values to another table of the load too",
                sequence.name
            ));
        }
    }
    refuse_hidden_draws(relation, &defaults)?;
    defaults.lacks = inputs
        .iter()
        .map(|input| lacks(input, &defaults.sources, &defaults.asked))
        .collect();
    Ok(defaults)
}

/// Whether some row may take the column from elsewhere than a field.
fn is_needed(index: usize, column: &Column, inputs: &[InputPlan]) -> bool {
    column.generated != ' '
        || inputs
            .iter()
            .any(|input| input.format.default.is_some() || !input.fields.contains(&index))
}

fn default_source(
    index: usize,
    column: &Column,
    defaults: &mut Defaults,
) -> Result<Option<Source>, String> {
    let is_integer = matches!(
        column.type_oid,
        type_oid::INT2 | type_oid::INT4 | type_oid::INT8
    );
    let expression = column.expression.as_ref();
    let is_nextval = column.identity != ' ' || expression.is_some_and(|e| e.is_nextval);
    if let (Some(sequence), true, true) = (&column.sequence, is_nextval, is_integer) {
        let known = defaults
            .sequences
            .iter()
            .position(|plan| plan.sequence.oid == sequence.oid);
        return Ok(Some(Source::Sequence(known.unwrap_or_else(|| {
            defaults.sequences.push(SequencePlan::new(sequence.clone()));
            defaults.sequences.len() - 1
        }))));
    }
    if column.identity != ' ' {
        return Err(format!("identity column {} has no sequence", column.name));
    }
    let Some(expression) = expression else {
        return Ok(None);
    };
    if expression.volatility == Volatility::Volatile {
        return Ok(Some(defaults.ask(index, column)));
    }
    defaults.once_is_stable |= expression.volatility == Volatility::Stable;
    Ok(Some(Source::Once))
}

fn generated_source(
    index: usize,
    column: &Column,
    relation: &Relation,
    defaults: &mut Defaults,
) -> Result<Option<Source>, String> {
    let is_virtual = column.generated == 'v';
    if is_virtual && !column.not_null {
        return Ok(None);
    }
    let references = column
        .expression
        .as_ref()
        .map_or(&[][..], |e| &e.references);
    if references.is_empty() && !is_virtual {
        return Ok(Some(Source::Once));
    }
    for attnum in references {
        let argument = usize::try_from(i32::from(*attnum) - 1).map_err(|_| {
            format!(
                "generated column {} looks at more than columns",
                column.name
            )
        })?;
        let of = &relation.columns[argument];
        if wire::type_name(of.type_oid).is_none() || of.generated != ' ' {
            return Err(format!(
                "generated column {} looks at column {}",
                column.name, of.name
            ));
        }
        if !defaults.arguments.contains(&argument) {
            defaults.arguments.push(argument);
        }
    }
    Ok(Some(defaults.ask(index, column)))
}

impl Defaults {
    /// Has the server give the values of a column.
    fn ask(&mut self, attribute: usize, column: &Column) -> Source {
        self.asked.push(Asked {
            attribute,
            generated: column.generated != ' ',
            is_virtual: column.generated == 'v',
        });
        Source::Asked(self.asked.len() - 1)
    }
}

/// The function of a type whose values a cast to a length cuts, where assignment refuses them. Its
/// name is that of the type, too.
fn length_function(type_oid: Oid) -> Option<&'static str> {
    Some(match type_oid {
        type_oid::VARCHAR => "pg_catalog.\"varchar\"",
        type_oid::BPCHAR => "pg_catalog.bpchar",
        type_oid::BIT => "pg_catalog.\"bit\"",
        type_oid::VARBIT => "pg_catalog.varbit",
        _ => return None,
    })
}

/// The server is asked for values of a column's type by a cast; within an array no function
/// refuses what it would cut.
fn refuse_cuts(column: &Column) -> Result<(), String> {
    let Some(TypeKind::Array(element)) = column.description.as_deref().map(|d| &d.base().kind)
    else {
        return Ok(());
    };
    let is_domain = matches!(element.kind, TypeKind::Domain(_));
    let has_length = column.base_type().1 >= 0 || is_domain;
    if has_length && length_function(element.base().oid).is_some() {
        return Err(format!(
            "column {}, which takes its default, is of type {}",
            column.name, column.type_name
        ));
    }
    Ok(())
}

/// Expressions that call nextval or currval beside, of a sequence that we draw from or do not
/// know, would not see what they see in COPY.
fn refuse_hidden_draws(relation: &Relation, defaults: &Defaults) -> Result<(), String> {
    for asked in &defaults.asked {
        let column = &relation.columns[asked.attribute];
        if !column
            .expression
            .as_ref()
            .is_some_and(|e| e.touches_sequences)
        {
            continue;
        }
        let is_apart = column
            .sequence
            .as_ref()
            .is_some_and(|s| defaults.sequences.iter().all(|p| p.sequence.oid != s.oid));
        if !is_apart && !defaults.sequences.is_empty() {
            return Err(format!(
                "the default of column {} looks at a sequence that other columns draw from",
                column.name
            ));
        }
    }
    Ok(())
}

/// What an input lacks or may lack.
fn lacks(input: &InputPlan, sources: &[Option<Source>], asked: &[Asked]) -> Vec<Lack> {
    let has_default = |attribute: usize| match sources[attribute] {
        None => false,
        Some(Source::Asked(n)) => !asked[n].generated,
        Some(_) => true,
    };
    let marked = input
        .fields
        .iter()
        .enumerate()
        .filter(|_| input.format.default.is_some())
        .map(|(field, attribute)| Lack {
            attribute: *attribute,
            field: Some(field as u32),
        });
    let missing = (0..sources.len())
        .filter(|attribute| !input.fields.contains(attribute))
        .map(|attribute| Lack {
            attribute,
            field: None,
        });
    marked
        .chain(missing)
        .filter(|lack| has_default(lack.attribute))
        .collect()
}
