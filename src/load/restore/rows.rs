//! Rows of a dump as inputs of a build: COPY's options from its statement, bytes from their place.

use super::super::options::{ForceColumns, InputFormat, InputOptions};
use super::super::source_spec::{InputSource, Rows, SourceSpec};
use super::arrange::Step;
use super::inserts::{Inserted, InsertsMember};
use crate::error::{Error, Result};
use crate::record::format::{CopyOptions, Header, Kind};
use crate::source::dump::MemberData;
use crate::source::dump::archive::{Archive, Entry};
use crate::source::dump::script::{CopyTarget, CopyTargetOptions, insert_target};
use crate::source::{FileSource, Member, Origin};
use std::collections::HashMap;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Rows for a table.
#[derive(Debug, Clone)]
pub struct DumpedTable {
    /// What COPY's statement says; `None` where only the server understands it.
    pub target: Option<CopyTarget>,
    /// The statement itself; empty where rows are inserted.
    pub statement: String,
    /// Where the rows are.
    pub source: InputSource,
    /// The name of the entry in an archive.
    pub entry_name: Option<String>,
    /// The statement that sets the `search_path` by which the table's name is read; `None` where
    /// that is the same for the whole dump.
    pub search_path: Option<String>,
    /// They come as another role than that of the session.
    pub as_role: bool,
    /// They are inserted.
    pub inserted: Option<Inserted>,
}

/// Where rows stand in a dump: the name of their source, and the lines before them.
pub type RowsPlace = (String, u64);

/// The rows that an error is of, if it names some of these.
pub fn place_of<'a>(error: &Error, rows: &'a [RowsPlace]) -> Option<&'a RowsPlace> {
    error.places.iter().find_map(|place| {
        let of_source = rows.iter().filter(|(label, _)| *label == place.file);
        of_source
            .filter(|(_, before)| *before < place.line.max(1))
            .max_by_key(|(_, before)| *before)
    })
}

impl DumpedTable {
    /// Where its rows stand.
    pub fn place(&self) -> RowsPlace {
        (self.source.label.clone(), self.source.lines_before)
    }

    /// Rows that statements with this head insert; `label` is their name, `otherwise` runs the
    /// statements. `None` for a head that is not understood.
    pub fn inserted(
        head: &str,
        member: InsertsMember,
        label: String,
        encoding: &str,
        otherwise: Step,
    ) -> Option<DumpedTable> {
        let target = insert_target(head)?;
        let member = Arc::new(member);
        let as_copy = CopyTarget {
            table: target.table,
            columns: target.columns,
            options: CopyTargetOptions::default(),
        };
        Some(DumpedTable {
            statement: String::new(),
            source: InputSource {
                label,
                origin: Origin::Member(Arc::clone(&member) as Arc<dyn Member>),
                lines_before: 0,
                // They end with the last statement.
                ends_with_marker: false,
                input: input_options(&as_copy, encoding),
            },
            target: Some(as_copy),
            entry_name: None,
            search_path: None,
            as_role: false,
            inserted: Some(Inserted {
                member,
                overriding_system_value: target.overriding_system_value,
                otherwise: Box::new(otherwise),
            }),
        })
    }

    /// As a source of a build, for the table of this name.
    pub fn spec(&self, table: String) -> SourceSpec {
        SourceSpec {
            table,
            columns: self.target.as_ref().and_then(|t| t.columns.clone()),
            rows: Rows::Dumped(Box::new(self.source.clone())),
        }
    }
}

/// COPY's options as those of a build.
pub fn input_options(target: &CopyTarget, encoding: &str) -> InputOptions {
    let options = &target.options;
    let force = |list: &Option<Vec<String>>| {
        list.as_ref().map(|columns| match columns.as_slice() {
            [star] if star == "*" => ForceColumns::All,
            columns => ForceColumns::Named(columns.to_vec()),
        })
    };
    let format = match options.format.as_deref() {
        Some("csv") => InputFormat::Csv,
        Some("binary") => InputFormat::Binary,
        _ => InputFormat::Text,
    };
    let encoding = options.encoding.as_deref().unwrap_or(encoding);
    InputOptions {
        format: Some(format),
        encoding: (encoding != "UTF8").then(|| encoding.to_owned()),
        force_null: force(&options.force_null),
        force_not_null: force(&options.force_not_null),
        copy: CopyOptions {
            kind: Kind::default(),
            delimiter: options.delimiter.clone(),
            null: options.null.clone(),
            default: options.default.clone(),
            quote: options.quote.clone(),
            escape: options.escape.clone(),
            header: match options.header.as_deref() {
                None | Some("false") => Header::None,
                Some("match") => Header::Match,
                Some(_) => Header::Skip,
            },
            force_null: options.force_null.is_some(),
            force_not_null: options.force_not_null.is_some(),
            trailing_delimiter: false,
        },
    }
}

/// The files that members are parts of, each opened once.
#[derive(Debug, Default)]
pub struct OpenFiles(HashMap<PathBuf, FileSource>);

impl OpenFiles {
    /// A part of a file.
    ///
    /// # Errors
    /// The file cannot be opened, or ends before.
    pub fn part(&mut self, path: &Path, label: &str, pos: u64, len: u64) -> Result<Origin> {
        if !self.0.contains_key(path) {
            self.0.insert(path.to_path_buf(), FileSource::open(path)?);
        }
        let file = &self.0[path];
        Ok(Origin::Part(file.part(label.to_owned(), pos, len)?))
    }
}

/// Where an entry's rows lie; `None` when it has none.
///
/// # Errors
/// The archive is damaged.
pub fn origin_of_entry(
    archive: &Arc<Archive>,
    entry: &Entry,
    files: &mut OpenFiles,
) -> Result<Option<Origin>> {
    if !archive.has_member(entry) {
        return Ok(None);
    }
    if let Some((path, pos, len)) = archive.plain_part(entry)? {
        return files.part(&path, &archive.label(entry), pos, len).map(Some);
    }
    Ok(Some(Origin::Member(Arc::new(ArchiveMember {
        archive: Arc::clone(archive),
        entry: entry.clone(),
    }))))
}

/// An entry's data, read forwards.
#[derive(Debug, Clone)]
pub struct ArchiveMember {
    /// Of this archive.
    pub archive: Arc<Archive>,
    /// The entry whose data it is.
    pub entry: Entry,
}

impl Member for ArchiveMember {
    fn open(&self) -> Result<Box<dyn Read + Send>> {
        Ok(match self.archive.member(&self.entry)? {
            None => Box::new(std::io::empty()),
            Some(MemberData::Stream(reader)) => reader,
            Some(MemberData::Range { path, pos, len }) => {
                let file = FileSource::open(&path)?;
                Box::new(
                    file.part(self.archive.label(&self.entry), pos, len)?
                        .reader(),
                )
            }
        })
    }
}
