//! plan: what will be done with each table, and by whom, decided before a byte is written.
//!
//! A table is loaded natively where every column has an encoder and nothing about it needs
//! the server's eye; else the server's own COPY loads it in the same transaction, and the report
//! says why. What neither may do is refused here.

use super::defaults::{self, Defaults};
use super::options::{BuildOptions, ForceColumns, InputFormat, InputOptions};
use super::report::ConstraintKind;
use super::route::Routing;
use super::source_spec::{InputSource, Rows, SourceSpec};
use crate::catalog::{
    Collation, Column, Index, KeyOrders, PartitionTree, Relation, quote_ident, quote_literal,
};
use crate::error::{Class, Error, Place, Result, ValueError};
use crate::record::encoding::Encoding;
use crate::record::format::{CopyOptions, Format, Header, InputColumn, Kind};
use crate::sort::IndexSpec;
use crate::source::charset::{MultiByte, MultiByteSet, ToCharset};
use crate::source::{self, Charset, Conversion, Origin};
use crate::sys::collate;
use crate::types::{Encoder, Settings};
use pgformat::ids::Oid;
use pgformat::layout::AttributeLayout;
use pgformat::version::MajorVersion;
use std::collections::HashSet;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

/// One table of the load.
#[derive(Debug)]
pub struct TablePlan {
    /// The table as the catalogs described it.
    pub relation: Relation,
    /// Its inputs in the order of the command line.
    pub inputs: Vec<InputPlan>,
    /// The attributes that its first input gives, in the order of the fields; `None` when it has no
    /// input.
    pub fields: Option<Vec<usize>>,
    /// Who loads it.
    pub how: How,
    /// Things the report must say of it.
    pub notes: Vec<String>,
    /// Whether it shares its rows with others.
    pub part: Part,
}

/// A table's part in a partitioned table that is loaded natively.
#[derive(Debug)]
pub enum Part {
    /// It is none of one, or is the server's.
    Whole,
    /// It has the inputs, and no rows of its own.
    Root {
        /// The way of its rows.
        routing: Routing,
        /// Its leaves among the tables of the load.
        leaves: Range<usize>,
    },
    /// It has rows, and no inputs of its own.
    Leaf {
        /// Its root among the tables of the load.
        root: usize,
    },
}

impl Part {
    /// Whether files are built of it.
    pub fn has_rows(&self) -> bool {
        !matches!(self, Part::Root { .. })
    }

    /// Whether inputs are read for it.
    pub fn has_inputs(&self) -> bool {
        !matches!(self, Part::Leaf { .. })
    }

    /// A root's leaves among the tables of the load.
    pub fn leaves(&self) -> Range<usize> {
        match self {
            Part::Root { leaves, .. } => leaves.clone(),
            _ => 0..0,
        }
    }

    /// The number of a leaf's root.
    pub fn root_of_leaf(&self) -> Option<usize> {
        match self {
            Part::Leaf { root } => Some(*root),
            _ => None,
        }
    }
}

/// Who loads a table.
#[derive(Debug)]
pub enum How {
    /// We do.
    Native(Box<NativePlan>),
    /// The server's COPY, for this reason.
    Server(String),
}

/// How a table is loaded natively.
#[derive(Debug)]
pub struct NativePlan {
    /// The attributes' layout in attnum order.
    pub layout: Arc<[AttributeLayout]>,
    /// The attributes' encoders in attnum order; `None` for those that are not stored: dropped
    /// and virtual ones.
    pub encoders: Vec<Option<Encoder>>,
    /// Where values come from that the input does not give.
    pub defaults: Defaults,
    /// The indexes, in the catalog's order.
    pub indexes: Vec<IndexPlan>,
    /// CHECK constraints and foreign keys are checked; `--trust-constraints` leaves them out.
    pub checks_constraints: bool,
}

impl NativePlan {
    /// The indexes that we build, with their number among all of the relation's.
    pub fn native_indexes(&self) -> impl Iterator<Item = (usize, &IndexSpec)> {
        self.indexes
            .iter()
            .enumerate()
            .filter_map(|(number, plan)| match plan {
                IndexPlan::Native(spec) => Some((number, &**spec)),
                IndexPlan::Server(_) => None,
            })
    }
}

/// Who builds an index.
#[derive(Debug)]
pub enum IndexPlan {
    /// We do.
    Native(Box<IndexSpec>),
    /// The server, for this reason.
    Server(String),
}

/// One input of a table.
#[derive(Debug, Clone)]
pub struct InputPlan {
    /// Where its bytes lie.
    pub origin: Origin,
    /// Its name in messages.
    pub label: String,
    /// Lines of the same name before it.
    pub lines_before: u64,
    /// It ends with the marker `\.`: without it rows are missing.
    pub ends_with_marker: bool,
    /// For each field of a record: the attribute's index (attnum - 1).
    pub fields: Vec<usize>,
    /// COPY's options, checked.
    pub format: Format,
    /// How the input is converted to the database's encoding, where it is in another.
    pub conversion: Option<Conversion>,
    /// Why the server must read it.
    pub not_native: Option<String>,
    /// The statement with which the server would read it.
    pub copy_statement: String,
}

/// What the plan needs to know of the server.
#[derive(Debug)]
pub struct ServerView<'a> {
    /// Settings of the encoders, or why there are none.
    pub settings: Result<&'a Settings, &'a str>,
    /// Its major version.
    pub version: MajorVersion,
    /// `server_encoding` of the database.
    pub encoding: &'a str,
    /// The map of the input's encoding, where the server was asked for it.
    pub input_map: Option<&'a Arc<MultiByte>>,
    /// What the database's default collation stands for.
    pub database_collation: Option<&'a Collation>,
    /// Sequences that tables before this one draw from.
    pub claimed_sequences: &'a HashSet<Oid>,
    /// The tables that inputs are named for.
    pub targets: &'a HashSet<Oid>,
}

/// Plans one table with all sources that name it, the table of this number of the load. The leaves
/// of a partitioned one that is loaded natively come behind it.
pub fn plan_table(
    mut relation: Relation,
    sources: &[&SourceSpec],
    server: &ServerView<'_>,
    options: &BuildOptions,
    number: usize,
) -> Result<Vec<TablePlan>> {
    let tree = relation.partitions.take();
    let mut notes = Vec::new();
    refuse_what_no_load_can_do(&relation, options, &mut notes)?;
    let mut inputs = Vec::new();
    for source in sources {
        inputs.extend(plan_inputs(&relation, source, server, &options.input)?);
    }
    let mut part = Part::Whole;
    let mut leaves = Vec::new();
    let native = native_plan(&relation, &inputs, server, options, &mut notes);
    let native = native.and_then(|native| {
        if relation.kind == 'p' {
            let tree =
                tree.ok_or("its partitions need more locks than one transaction should take")?;
            let routing = Routing::new(&relation, &tree, server)?;
            leaves = plan_leaves(*tree, number, server, options)?;
            let leaves = number + 1..number + 1 + leaves.len();
            part = Part::Root { routing, leaves };
        }
        Ok(native)
    });
    let how = match native {
        Ok(native) => How::Native(Box::new(native)),
        Err(reason) => How::Server(reason),
    };
    let table = TablePlan {
        relation,
        fields: inputs.first().map(|input| input.fields.clone()),
        inputs,
        how,
        notes,
        part,
    };
    let tables: Vec<TablePlan> = std::iter::once(table).chain(leaves).collect();
    if options.native_only {
        for table in &tables {
            refuse_the_server(&table.relation, &table.how)?;
        }
    }
    Ok(tables)
}

/// The leaves of the partitioned table with this number, or why one is the server's.
fn plan_leaves(
    tree: PartitionTree,
    root: usize,
    server: &ServerView<'_>,
    options: &BuildOptions,
) -> Result<Vec<TablePlan>, String> {
    let plan_leaf = |leaf: Relation| {
        if server.targets.contains(&leaf.oid) {
            return Err(format!(
                "partition {} is loaded by itself too",
                leaf.display_name()
            ));
        }
        let native = native_leaf(&leaf, server, options)
            .map_err(|reason| format!("partition {}: {reason}", leaf.display_name()))?;
        Ok(TablePlan {
            relation: leaf,
            inputs: Vec::new(),
            fields: None,
            how: How::Native(Box::new(native)),
            notes: Vec::new(),
            part: Part::Leaf { root },
        })
    };
    tree.leaves.into_iter().map(plan_leaf).collect()
}

/// The plan of a leaf, whose values are encoded for its root.
fn native_leaf(
    leaf: &Relation,
    server: &ServerView<'_>,
    options: &BuildOptions,
) -> Result<NativePlan, String> {
    if leaf.kind != 'r' {
        return Err("it is a foreign table".to_owned());
    }
    if leaf.access_method != "heap" {
        return Err(format!("its access method is {}", leaf.access_method));
    }
    if leaf.persistence == 't' {
        return Err("it is temporary".to_owned());
    }
    refuse_generated(leaf)?;
    refuse_constraints(leaf, options)?;
    Ok(NativePlan {
        layout: leaf.columns.iter().map(|c| c.layout).collect(),
        encoders: vec![None; leaf.columns.len()],
        defaults: Defaults::default(),
        indexes: plan_indexes(leaf, server),
        checks_constraints: !options.trust_constraints,
    })
}

/// A leaf may generate other values than its root.
fn refuse_generated(relation: &Relation) -> Result<(), String> {
    match relation.columns.iter().find(|c| c.generated != ' ') {
        Some(column) => Err(format!("column {} is generated", column.name)),
        None => Ok(()),
    }
}

/// What is checked neither while files are built nor over rows in place.
fn refuse_constraints(relation: &Relation, options: &BuildOptions) -> Result<(), String> {
    if let Some(index) = relation.indexes.iter().find(|i| i.exclusion && i.unique) {
        return Err(format!("key {} is temporal", index.name));
    }
    if options.trust_constraints {
        Ok(())
    } else {
        only_by_copy(relation)
    }
}

/// The orders of this server's types.
pub fn key_orders<'a>(server: &ServerView<'a>, libc_version: &'a str) -> KeyOrders<'a> {
    KeyOrders {
        version: server.version,
        our_libc: libc_version,
        database_collation: server.database_collation,
    }
}

/// Who builds each index.
fn plan_indexes(relation: &Relation, server: &ServerView<'_>) -> Vec<IndexPlan> {
    let libc_version = collate::libc_version();
    relation
        .indexes
        .iter()
        .map(|index| {
            match IndexSpec::native(
                index,
                &relation.columns,
                server.version,
                &libc_version,
                server.database_collation,
            ) {
                Ok(spec) => IndexPlan::Native(Box::new(spec)),
                Err(reason) => IndexPlan::Server(reason),
            }
        })
        .collect()
}

/// Triggers and rules; the kinds of table were refused when the catalog was read.
fn refuse_what_no_load_can_do(
    relation: &Relation,
    options: &BuildOptions,
    notes: &mut Vec<String>,
) -> Result<()> {
    let name = relation.display_name();
    let features = &relation.features;
    if features.row_security {
        return Err(
            Error::unsupported("COPY FROM not supported with row-level security")
                .with_hint("Use INSERT statements instead."),
        );
    }
    if !features.insert_triggers.is_empty() {
        let triggers = features.insert_triggers.join(", ");
        if !options.skip_triggers {
            return Err(Error::unsupported(format!(
                "{name} has triggers that fire on INSERT: {triggers}"
            ))
            .with_hint("--skip-triggers loads without firing them."));
        }
        notes.push(format!("{name}: triggers did not fire: {triggers}"));
    }
    if !features.rules.is_empty() {
        return Err(
            Error::unsupported(format!("{name} has rules: {}", features.rules.join(", ")))
                .with_hint("Drop the rules, or disable them, for the load."),
        );
    }
    Ok(())
}

/// `--native-only`.
fn refuse_the_server(relation: &Relation, how: &How) -> Result<()> {
    let name = relation.display_name();
    let refused = match how {
        How::Server(reason) => Some(format!("{name} cannot be loaded natively: {reason}")),
        How::Native(native) => server_indexes(relation, native)
            .next()
            .map(|(index, reason)| {
                format!(
                    "index \"{}\" of {name} cannot be built natively: {reason}",
                    index.name
                )
            }),
    };
    refused.map_or(Ok(()), |message| {
        Err(Error::unsupported(message)
            .with_hint("Without --native-only the server does it in the same transaction."))
    })
}

/// The native plan, or why there is none.
fn native_plan(
    relation: &Relation,
    inputs: &[InputPlan],
    server: &ServerView<'_>,
    options: &BuildOptions,
    notes: &mut Vec<String>,
) -> Result<NativePlan, String> {
    let settings = server.settings.map_err(str::to_owned)?;
    if relation.kind == 'p' {
        refuse_generated(relation)?;
        if relation.features.partition_constraint.is_some() {
            return Err("it is partitioned and a partition itself".to_owned());
        }
        if !options.trust_constraints && !relation.features.domain_checks.is_empty() {
            // They come before a row is routed.
            return Err("it is partitioned, and a domain has CHECK constraints".to_owned());
        }
    }
    refuse_constraints(relation, options)?;
    if options.trust_constraints {
        for (kind, names) in constraint_names(relation) {
            notes.push(format!(
                "{}: not checked: {kind} {}",
                relation.display_name(),
                names.join(", ")
            ));
        }
    } else {
        same_columns(relation, inputs)?;
    }
    if let Some(reason) = inputs.iter().find_map(|input| input.not_native.clone()) {
        return Err(reason);
    }
    let defaults = defaults::plan(relation, inputs, server.claimed_sequences)?;
    if settings.encoding != Encoding::Utf8 && defaults.sources.iter().any(Option::is_some) {
        // The server would send them in the session's encoding.
        return Err(format!(
            "columns take their defaults, and the database's encoding is {}",
            server.encoding
        ));
    }
    let encoders = relation
        .columns
        .iter()
        .map(|column| {
            let Some(description) = &column.description else {
                return Ok(None);
            };
            if column.generated == 'v' {
                return Ok(None);
            }
            let encoder = Encoder::of_type(description, column.typmod, settings)
                .map_err(|reason| format!("column {}: {reason}", column.name))?;
            Ok(Some(encoder))
        })
        .collect::<Result<Vec<_>, String>>()?;
    Ok(NativePlan {
        layout: relation.columns.iter().map(|c| c.layout).collect(),
        encoders,
        defaults,
        indexes: plan_indexes(relation, server),
        checks_constraints: !options.trust_constraints,
    })
}

/// The constraints that are checked over rows in place, by kind; no kind without any.
pub fn constraint_names(relation: &Relation) -> Vec<(ConstraintKind, Vec<String>)> {
    let features = &relation.features;
    let of_domains = features.domain_checks.iter();
    let mut of_domains: Vec<String> = of_domains
        .map(|c| format!("{} of domain {}", c.name, c.domain))
        .collect();
    // Columns may be of one domain.
    of_domains.sort();
    of_domains.dedup();
    let checks = features.checks.iter().map(|c| c.name.clone());
    let checks = checks.chain(of_domains).collect();
    let foreign_keys = features.foreign_keys.iter();
    let foreign_keys = foreign_keys.map(|f| f.name.clone()).collect();
    let mut kinds: Vec<(ConstraintKind, Vec<String>)> = vec![
        (ConstraintKind::Check, checks),
        (ConstraintKind::ForeignKey, foreign_keys),
    ];
    kinds.retain(|(_, names)| !names.is_empty());
    kinds
}

/// The first constraint that cannot be checked over rows in place, and why.
fn only_by_copy(relation: &Relation) -> Result<(), String> {
    let features = &relation.features;
    let checks = features.checks.iter();
    let checks = checks.map(|c| (ConstraintKind::Check, &c.name, &c.only_by_copy));
    let of_domains = features.domain_checks.iter();
    let of_domains = of_domains.map(|c| (ConstraintKind::Check, &c.name, &c.only_by_copy));
    let foreign_keys = features.foreign_keys.iter();
    let foreign_keys = foreign_keys.map(|f| (ConstraintKind::ForeignKey, &f.name, &f.only_by_copy));
    for (kind, name, reason) in checks.chain(of_domains).chain(foreign_keys) {
        if let Some(reason) = reason {
            return Err(format!(
                "{kind} {name} must be checked row by row, since {reason} (--trust-constraints goes on without)"
            ));
        }
    }
    Ok(())
}

/// A domain's CHECK constraints hold for the fields of an input, not for nulls where it has none.
fn same_columns(relation: &Relation, inputs: &[InputPlan]) -> Result<(), String> {
    let differ = inputs.iter().any(|i| i.fields != inputs[0].fields);
    match relation.features.domain_checks.first() {
        Some(check) if differ => Err(format!(
            "its inputs have different columns, and domain {} of column {} has CHECK constraint {}",
            check.domain, check.column, check.name
        )),
        _ => Ok(()),
    }
}

/// How an input becomes text of the database.
struct InputEncoding {
    conversion: Option<Conversion>,
    /// What the bytes are checked against, converted or not.
    checked: Encoding,
}

/// What COPY does with input in the encoding of the option (that of the client, UTF8, without
/// one), or why that is left to the server.
///
/// PostgreSQL: src/backend/commands/copyfrom.c, BeginCopyFrom: nothing is converted from or to
/// SQL_ASCII.
fn input_encoding(server: &ServerView<'_>, option: Option<&str>) -> Result<InputEncoding, String> {
    let name = option.unwrap_or("UTF8");
    let database = Encoding::by_name(server.encoding)
        .ok_or_else(|| format!("the database's encoding is {}", server.encoding))?;
    let not_native = || {
        format!(
            "the input's encoding is {name}, the database's {}",
            database.name()
        )
    };
    let (conversion, checked) = match (Encoding::by_option(name), database) {
        (Some(input), database) if input == database => (None, database),
        (Some(input), Encoding::SQL_ASCII) => (None, input),
        (Some(Encoding::SQL_ASCII), Encoding::SingleByte(_)) => (None, Encoding::SQL_ASCII),
        (Some(Encoding::Utf8), Encoding::SingleByte(name)) => {
            let to = Charset::by_name(name).ok_or_else(not_native)?;
            (Some(Conversion::ToSingle(ToCharset::new(to))), database)
        }
        (Some(Encoding::SingleByte(_)), Encoding::Utf8) => {
            let from = Charset::by_name(name).ok_or_else(not_native)?;
            (Some(Conversion::FromSingle(from)), database)
        }
        (None | Some(Encoding::Euc(_)), Encoding::Utf8) => {
            let map = server.input_map.ok_or_else(not_native)?;
            (Some(Conversion::FromMulti(Arc::clone(map))), database)
        }
        _ => return Err(not_native()),
    };
    Ok(InputEncoding {
        conversion,
        checked,
    })
}

/// Names and markers that are compared with text of the database must be the same bytes there.
fn has_foreign_bytes(format: &Format) -> bool {
    let names = format.columns.iter().map(|column| column.name.as_bytes());
    let names = names.filter(|_| format.header == Header::Match);
    let markers = [Some(&format.null[..]), format.default.as_deref()];
    !names
        .chain(markers.into_iter().flatten())
        .all(<[u8]>::is_ascii)
}

/// The inputs of one source.
fn plan_inputs(
    relation: &Relation,
    source: &SourceSpec,
    server: &ServerView<'_>,
    options: &InputOptions,
) -> Result<Vec<InputPlan>> {
    let columns = source.columns.as_deref();
    let rows = match &source.rows {
        Rows::Path(path) => {
            let of_file = |file: PathBuf| InputSource {
                label: if path == "-" {
                    "stdin".to_owned()
                } else {
                    file.display().to_string()
                },
                origin: Origin::Named(file),
                lines_before: 0,
                ends_with_marker: false,
                input: options.clone(),
            };
            source::expand(path)?.into_iter().map(of_file).collect()
        }
        Rows::Dumped(rows) => vec![(**rows).clone()],
    };
    let plan = |rows| plan_input(relation, columns, rows, server);
    rows.into_iter().map(plan).collect()
}

/// Resolves columns and COPY's options.
fn plan_input(
    relation: &Relation,
    columns: Option<&[String]>,
    rows: InputSource,
    server: &ServerView<'_>,
) -> Result<InputPlan> {
    let fields = resolve_columns(relation, columns)?;
    let names: Vec<String> = fields
        .iter()
        .map(|&i| relation.columns[i].name.clone())
        .collect();
    let InputSource {
        label,
        origin,
        lines_before,
        ends_with_marker,
        input: options,
    } = rows;
    let options = &options;
    let kind = options.format.unwrap_or_else(|| format_of_path(&label));
    let mut format = resolve_format(kind, options, relation, &fields, server)?;
    let copy_statement = copy_statement(relation, &names, kind, options);
    // Of binary input text is in the client's encoding, whatever the option says.
    let is_binary = kind == InputFormat::Binary;
    let encoding = options.encoding.as_deref();
    let is_known =
        |name: &str| Encoding::by_option(name).is_some() || MultiByteSet::by_name(name).is_some();
    let encoding = encoding.filter(|name| !is_binary || !is_known(name));
    let (conversion, not_native) = match input_encoding(server, encoding) {
        Err(reason) => (None, Some(reason)),
        Ok(input) => {
            format.file_encoding = input.checked;
            let is_utf8 = format.encoding == Encoding::Utf8;
            let reason = if !is_utf8 && is_binary {
                Some(format!(
                    "binary input into a database in {}",
                    server.encoding
                ))
            } else if !is_utf8 && has_foreign_bytes(&format) {
                Some("names or markers that are not ASCII".to_owned())
            } else {
                format.not_native().map(str::to_owned)
            };
            (input.conversion, reason)
        }
    };
    Ok(InputPlan {
        origin,
        label,
        lines_before,
        ends_with_marker,
        fields,
        format,
        conversion,
        not_native,
        copy_statement,
    })
}

/// The attributes that the input's fields are for, as COPY reads a column list.
fn resolve_columns(relation: &Relation, names: Option<&[String]>) -> Result<Vec<usize>> {
    let Some(names) = names else {
        // COPY without a list: all columns but generated ones.
        return Ok(relation
            .columns
            .iter()
            .enumerate()
            .filter(|(_, c)| !c.dropped && c.generated == ' ')
            .map(|(i, _)| i)
            .collect());
    };
    let mut fields = Vec::with_capacity(names.len());
    for name in names {
        let index = find_column(relation, name)?;
        if relation.columns[index].generated != ' ' {
            return Err(Error::refused(
                "42P10",
                format!("column \"{name}\" is a generated column"),
            )
            .with_detail("Generated columns cannot be used in COPY."));
        }
        if fields.contains(&index) {
            return Err(specified_twice(name));
        }
        fields.push(index);
    }
    Ok(fields)
}

fn specified_twice(name: &str) -> Error {
    Error::refused(
        "42701",
        format!("column \"{name}\" specified more than once"),
    )
}

fn find_column(relation: &Relation, name: &str) -> Result<usize> {
    relation
        .columns
        .iter()
        .position(|c: &Column| !c.dropped && c.name == name)
        .ok_or_else(|| {
            Error::refused(
                "42703",
                format!(
                    "column \"{name}\" of relation \"{}\" does not exist",
                    relation.name
                ),
            )
        })
}

/// csv for .csv, also behind a compression's ending; text for all else.
fn format_of_path(path: &str) -> InputFormat {
    let mut endings = path.rsplit('.').map(str::to_ascii_lowercase);
    let ending = match endings.next().as_deref() {
        Some("gz" | "zst" | "lz4" | "xz") => endings.next(),
        ending => ending.map(str::to_owned),
    };
    if ending.as_deref() == Some("csv") {
        InputFormat::Csv
    } else {
        InputFormat::Text
    }
}

/// COPY's options for this table, checked as COPY checks them.
fn resolve_format(
    kind: InputFormat,
    options: &InputOptions,
    relation: &Relation,
    fields: &[usize],
    server: &ServerView<'_>,
) -> Result<Format> {
    let version = server.version;
    // Of other encodings the server reads the input.
    let encoding = Encoding::by_name(server.encoding).unwrap_or(Encoding::Utf8);
    let columns = fields
        .iter()
        .map(|&index| {
            let column = &relation.columns[index];
            InputColumn {
                has_default: column.default.is_some() || column.identity != ' ',
                ..InputColumn::named(&*column.name)
            }
        })
        .collect();
    let copy = CopyOptions {
        kind: match kind {
            InputFormat::Csv => Kind::Csv,
            InputFormat::Text => Kind::Text,
            InputFormat::Binary => Kind::Binary,
        },
        ..options.copy.clone()
    };
    let mut format = copy
        .resolve(columns, version, encoding)
        .map_err(|e| bad_option(*e, version))?;
    if format.header == Header::Match && !version.at_least(15) {
        return Err(bad_option(
            *ValueError::new("42601", "header requires a Boolean value"),
            version,
        ));
    }
    force(
        relation,
        &mut format.columns,
        options.force_null.as_ref(),
        "FORCE_NULL",
        |c| c.force_null = true,
    )?;
    force(
        relation,
        &mut format.columns,
        options.force_not_null.as_ref(),
        "FORCE_NOT_NULL",
        |c| {
            c.force_not_null = true;
        },
    )?;
    Ok(format)
}

/// An option that COPY refuses.
fn bad_option(error: ValueError, version: MajorVersion) -> Error {
    let not_here = error.message.contains("not recognized") || error.message.starts_with("header");
    let mut error = Error {
        class: Class::Usage,
        ..Error::input(error, Place::default())
    };
    error.places.clear();
    if not_here {
        error.hint = Some(format!("The server is PostgreSQL {version}."));
    } else if error.message.contains("delimiter") || error.message.contains("single one-byte") {
        error.hint = Some("A tab is written $'\\t' in the shell.".to_owned());
    }
    error
}

/// Marks the columns of `FORCE_NULL` or `FORCE_NOT_NULL`.
fn force(
    relation: &Relation,
    columns: &mut [InputColumn],
    list: Option<&ForceColumns>,
    option: &str,
    mark: impl Fn(&mut InputColumn),
) -> Result<()> {
    match list {
        None => {}
        Some(ForceColumns::All) => columns.iter_mut().for_each(mark),
        Some(ForceColumns::Named(wanted)) => {
            for (i, name) in wanted.iter().enumerate() {
                find_column(relation, name)?;
                if wanted[..i].contains(name) {
                    return Err(specified_twice(name));
                }
                let column = columns
                    .iter_mut()
                    .find(|c| c.name == *name)
                    .ok_or_else(|| {
                        Error::refused(
                            "42P10",
                            format!("{option} column \"{name}\" not referenced by COPY"),
                        )
                    })?;
                mark(column);
            }
        }
    }
    Ok(())
}

/// The COPY that the server would run for this input.
fn copy_statement(
    relation: &Relation,
    names: &[String],
    kind: InputFormat,
    options: &InputOptions,
) -> String {
    let mut with = vec![match kind {
        InputFormat::Csv => "FORMAT csv".to_owned(),
        InputFormat::Text => "FORMAT text".to_owned(),
        InputFormat::Binary => "FORMAT binary".to_owned(),
    }];
    let copy = &options.copy;
    for (name, value) in [
        ("DELIMITER", &copy.delimiter),
        ("NULL", &copy.null),
        ("QUOTE", &copy.quote),
        ("ESCAPE", &copy.escape),
        ("ENCODING", &options.encoding),
        ("DEFAULT", &copy.default),
    ] {
        if let Some(value) = value {
            with.push(format!("{name} {}", quote_literal(value)));
        }
    }
    match copy.header {
        Header::None => {}
        Header::Skip => with.push("HEADER true".into()),
        Header::Match => with.push("HEADER match".into()),
    }
    for (name, list) in [
        ("FORCE_NULL", &options.force_null),
        ("FORCE_NOT_NULL", &options.force_not_null),
    ] {
        match list {
            None => {}
            Some(ForceColumns::All) => with.push(format!("{name} *")),
            Some(ForceColumns::Named(columns)) => {
                with.push(format!("{name} ({})", identifiers(columns)));
            }
        }
    }
    let columns = if names.is_empty() {
        String::new()
    } else {
        format!(" ({})", identifiers(names))
    };
    format!(
        "COPY {}{columns} FROM STDIN WITH ({})",
        relation.qualified_name(),
        with.join(", ")
    )
}

fn identifiers(names: &[String]) -> String {
    names
        .iter()
        .map(|n| quote_ident(n))
        .collect::<Vec<_>>()
        .join(", ")
}

/// The indexes that the server builds, with the reasons.
pub fn server_indexes<'a>(
    relation: &'a Relation,
    native: &'a NativePlan,
) -> impl Iterator<Item = (&'a Index, &'a str)> {
    relation
        .indexes
        .iter()
        .zip(&native.indexes)
        .filter_map(|(index, plan)| match plan {
            IndexPlan::Server(reason) => Some((index, reason.as_str())),
            IndexPlan::Native(_) => None,
        })
}
