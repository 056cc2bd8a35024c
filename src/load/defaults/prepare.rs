//! Asks the server for what a load of defaults needs before its first row.

use super::ask::Query;
use super::{Asked, Defaults, Lack, Source};
use crate::catalog::read::sequence_states;
use crate::catalog::{Column, Relation, Sequence, quote_ident};
use crate::error::{Class, Error, Result};
use crate::load::defaults::wire_column::Raw;
use crate::load::plan::{How, NativePlan, TablePlan};
use crate::types::{Scratch, Settings, wire};
use pgformat::heap::tuple::TupleBuilder;
use pgformat::ids::Oid;
use postgres::Client;
use std::collections::HashMap;
use std::sync::Arc;

/// `DEFAULT_COLLATION_OID`.
const DEFAULT_COLLATION: Oid = 100;

/// Whether values must be evaluated in the load's own transaction.
pub fn needs_transaction(tables: &[TablePlan]) -> bool {
    tables.iter().any(|table| match &table.how {
        How::Native(native) => native.defaults.once_is_stable || !native.defaults.asked.is_empty(),
        How::Server(_) => false,
    })
}

/// Evaluates what is one for all rows, reads where sequences stand, and words the questions.
///
/// A default that cannot be evaluated is no error yet, since there may be no row: it is asked
/// for with the first row, whose place the error then has.
///
/// `in_transaction` tells whether the connection is inside the load's transaction; else there
/// is one for this alone.
pub fn prepare(
    client: &mut Client,
    in_transaction: bool,
    tables: &mut [TablePlan],
    settings: &Settings,
) -> Result<()> {
    if in_transaction {
        return prepare_all(client, tables, settings);
    }
    client.batch_execute("BEGIN ISOLATION LEVEL READ COMMITTED READ ONLY")?;
    let prepared = prepare_all(client, tables, settings);
    let ended = client.batch_execute("ROLLBACK");
    prepared?;
    Ok(ended?)
}

fn prepare_all(client: &mut Client, tables: &mut [TablePlan], settings: &Settings) -> Result<()> {
    for table in tables {
        let How::Native(native) = &mut table.how else {
            continue;
        };
        evaluate_once(client, &table.relation, native, settings)?;
        let defaults = &mut native.defaults;
        let sequences: Vec<&Sequence> = defaults.sequences.iter().map(|p| &p.sequence).collect();
        let states = sequence_states(client, &sequences)?;
        for (plan, state) in defaults.sequences.iter_mut().zip(states) {
            plan.from = state;
        }
        defaults.default_queries = defaults
            .lacks
            .iter()
            .map(|lacks| default_query(&table.relation, lacks, defaults))
            .collect();
        defaults.generated_query = generated_query(client, &table.relation, defaults)?;
    }
    Ok(())
}

/// The attributes with one value for all rows.
fn once(defaults: &Defaults) -> Vec<usize> {
    (0..defaults.sources.len())
        .filter(|attribute| defaults.sources[*attribute] == Some(Source::Once))
        .collect()
}

fn evaluate_once(
    client: &mut Client,
    relation: &Relation,
    native: &mut NativePlan,
    settings: &Settings,
) -> Result<()> {
    let all = once(&native.defaults);
    if all.is_empty() || evaluate(client, relation, native, &all, settings)? {
        return Ok(());
    }
    for attribute in all {
        if !evaluate(client, relation, native, &[attribute], settings)? {
            let column = &relation.columns[attribute];
            native.defaults.sources[attribute] = Some(native.defaults.ask(attribute, column));
        }
    }
    Ok(())
}

/// Evaluates the defaults of some attributes; false when the server refuses.
fn evaluate(
    client: &mut Client,
    relation: &Relation,
    native: &mut NativePlan,
    attributes: &[usize],
    settings: &Settings,
) -> Result<bool> {
    let results: Vec<String> = attributes
        .iter()
        .map(|attribute| assigned(&relation.columns[*attribute]))
        .collect();
    client.batch_execute("SAVEPOINT pgpagewrite_once")?;
    let row = match client.query_one(&format!("SELECT {}", results.join(", ")), &[]) {
        Ok(row) => row,
        Err(error) => {
            let error = Error::from(error);
            if error.class == Class::Environment {
                return Err(error);
            }
            client.batch_execute(
                "ROLLBACK TO SAVEPOINT pgpagewrite_once; RELEASE SAVEPOINT pgpagewrite_once",
            )?;
            return Ok(false);
        }
    };
    client.batch_execute("RELEASE SAVEPOINT pgpagewrite_once")?;
    for (result, attribute) in attributes.iter().enumerate() {
        let value: Option<Raw<'_>> = row.try_get(result)?;
        let value = value.map(|raw| raw.0);
        let layout = native.layout[*attribute];
        let mut builder = TupleBuilder::new(Arc::from([layout]));
        builder.begin_row();
        match value {
            Some(wire) => native.encoders[*attribute]
                .as_ref()
                .expect("what is stored has an encoder")
                .receive_sent(wire, &mut Scratch::new(), settings, &mut builder)?,
            None => builder.put_null(),
        }
        native.defaults.once[*attribute] = builder.attribute(0).map(<[u8]>::to_vec);
        native.defaults.once_on_wire[*attribute] = value.map(<[u8]>::to_vec);
    }
    Ok(true)
}

/// A column's expression as the column takes it: pg_get_expr does not show the last, implicit
/// conversion to its type and modifier. Text that is too long and bits of another number are
/// refused by assignment, where a cast would cut them, also below a domain.
///
/// PostgreSQL: src/backend/rewrite/rewriteHandler.c, build_column_default.
fn assigned(column: &Column) -> String {
    let expression = column.default.as_deref().unwrap_or("NULL");
    let (base, typmod) = column.base_type();
    let name = &column.type_name;
    match super::length_function(base).filter(|_| typmod >= 0) {
        None => format!("({expression})::{name}"),
        Some(function) => {
            let value = format!("{function}(({expression})::{function}, {typmod}, false)");
            if base == column.type_oid {
                value
            } else {
                format!("({value})::{name}")
            }
        }
    }
}

/// Evaluates defaults for the rows whose flags say so.
fn default_query(relation: &Relation, lacks: &[Lack], defaults: &Defaults) -> Query {
    let asked: Vec<usize> = lacks
        .iter()
        .filter_map(|lack| match defaults.sources[lack.attribute] {
            Some(Source::Asked(number)) if !defaults.asked[number].generated => Some(number),
            _ => None,
        })
        .collect();
    if asked.is_empty() {
        return Query::default();
    }
    let mut arrays = Vec::new();
    let mut flags = Vec::new();
    let mut results = Vec::new();
    for (i, number) in (1..).zip(&asked) {
        let column = &relation.columns[defaults.asked[*number].attribute];
        arrays.push(format!("pg_catalog.unnest(${i}::pg_catalog.bool[])"));
        flags.push(format!("f{i}"));
        results.push(format!("CASE WHEN r.f{i} THEN {} END", assigned(column)));
    }
    let sql = format!(
        "SELECT r.n, {} FROM ROWS FROM ({}) WITH ORDINALITY AS r ({}, n)",
        results.join(", "),
        arrays.join(", "),
        flags.join(", ")
    );
    Query { sql, asked }
}

/// Computes generated columns from rows that stand in arrays. The columns they look at have
/// their names, types and collations.
fn generated_query(client: &mut Client, relation: &Relation, defaults: &Defaults) -> Result<Query> {
    let asked: Vec<usize> = (0..defaults.asked.len())
        .filter(|number| defaults.asked[*number].generated)
        .collect();
    if asked.is_empty() {
        return Ok(Query::default());
    }
    let collations = collations(client, relation, &defaults.arguments)?;
    let mut arrays = Vec::new();
    let mut names = Vec::new();
    let mut columns = Vec::new();
    for (i, attribute) in (1..).zip(&defaults.arguments) {
        let column = &relation.columns[*attribute];
        let type_name = wire::type_name(column.type_oid).expect("arguments are native");
        arrays.push(format!("pg_catalog.unnest(${i}::{type_name}[])"));
        names.push(format!("c{i}"));
        let collate = collations
            .get(&column.collation)
            .map_or(String::new(), |name| format!(" COLLATE {name}"));
        columns.push(format!("u.c{i}{collate} AS {}", quote_ident(&column.name)));
    }
    arrays.push(format!(
        "pg_catalog.unnest(${}::pg_catalog.bool[])",
        arrays.len() + 1
    ));
    names.push("row".to_owned());
    columns.push("u.n AS \"pgpagewrite n\"".to_owned());
    let result = |number: &usize| {
        let Asked {
            attribute,
            is_virtual,
            ..
        } = defaults.asked[*number];
        let column = &relation.columns[attribute];
        let value = assigned(column);
        if is_virtual {
            format!("CASE WHEN {value} IS DISTINCT FROM NULL THEN true END")
        } else {
            value
        }
    };
    let results: Vec<String> = asked.iter().map(result).collect();
    let sql = format!(
        "SELECT s.\"pgpagewrite n\", {} FROM (SELECT {} FROM ROWS FROM ({}) WITH ORDINALITY
                AS u ({}, n)) AS s",
        results.join(", "),
        columns.join(", "),
        arrays.join(", "),
        names.join(", ")
    );
    Ok(Query { sql, asked })
}

/// The names of the attributes' collations, but for the default one.
fn collations(
    client: &mut Client,
    relation: &Relation,
    attributes: &[usize],
) -> Result<HashMap<Oid, String>> {
    let oids: Vec<Oid> = attributes
        .iter()
        .map(|attribute| relation.columns[*attribute].collation)
        .filter(|oid| *oid != 0 && *oid != DEFAULT_COLLATION)
        .collect();
    let rows = client.query(
        "SELECT c.oid, n.nspname::pg_catalog.text, c.collname::pg_catalog.text
           FROM pg_catalog.pg_collation c
           JOIN pg_catalog.pg_namespace n ON n.oid = c.collnamespace
          WHERE c.oid = ANY ($1)",
        &[&oids],
    )?;
    Ok(rows
        .iter()
        .map(|row| {
            let name = format!("{}.{}", quote_ident(row.get(1)), quote_ident(row.get(2)));
            (row.get(0), name)
        })
        .collect())
}
