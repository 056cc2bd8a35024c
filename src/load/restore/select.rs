//! Which entries of an archive are restored, and what of them: pg_restore's rules.
//!
//! PostgreSQL: `src/bin/pg_dump/pg_backup_archiver.c`, `_tocEntryRequired` and
//! `SortTocFromFile`.

use super::options::RestoreOptions;
use crate::error::{Error, Result};
use crate::source::dump::archive::{Archive, Entry, Section};
use std::collections::{HashMap, HashSet};
use std::fs;

/// What of an entry is wanted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Wanted {
    /// Its definition.
    pub schema: bool,
    /// Its rows, or what counts as data.
    pub data: bool,
    /// Statistics.
    pub statistics: bool,
}

impl Wanted {
    const NOTHING: Wanted = Wanted {
        schema: false,
        data: false,
        statistics: false,
    };

    /// Something is wanted.
    pub fn any(self) -> bool {
        self.schema || self.data || self.statistics
    }
}

/// An entry that is wanted.
#[derive(Debug, Clone, Copy)]
pub struct Selected<'a> {
    /// The entry.
    pub entry: &'a Entry,
    /// What of it.
    pub wanted: Wanted,
}

/// The entries that are wanted, in the order in which they are restored.
///
/// # Errors
/// The list file cannot be read or names what is not there; `--strict-names`.
pub fn select<'a>(archive: &'a Archive, options: &RestoreOptions) -> Result<Vec<Selected<'a>>> {
    let listed = match &options.list_file {
        Some(path) => Some(read_list(path, archive)?),
        None => None,
    };
    let in_order: Vec<&Entry> = match &listed {
        None => archive.entries.iter().collect(),
        Some(ids) => {
            let by_id: HashMap<i32, &Entry> =
                archive.entries.iter().map(|e| (e.dump_id, e)).collect();
            let chosen: HashSet<i32> = ids.iter().copied().collect();
            let chosen_entries = ids.iter().map(|id| by_id[id]);
            // What is not in the list stays before it: only what the list does not rule may count.
            let others = archive
                .entries
                .iter()
                .filter(|e| !chosen.contains(&e.dump_id));
            others.chain(chosen_entries).collect()
        }
    };
    let chosen: Option<HashSet<i32>> = listed.map(|ids| ids.into_iter().collect());
    let by_id: HashMap<i32, &Entry> = archive.entries.iter().map(|e| (e.dump_id, e)).collect();
    let mut wanted: HashMap<i32, Wanted> = HashMap::new();
    let mut section = Section::PreData;
    let mut selected = Vec::new();
    for entry in in_order {
        // Entries of no section belong to that of the one before.
        if entry.section != Section::None {
            section = entry.section;
        }
        let is_chosen = chosen.as_ref().is_none_or(|c| c.contains(&entry.dump_id));
        let judge = Judge {
            options,
            by_id: &by_id,
            wanted: &wanted,
        };
        let its = judge.wanted(entry, section, is_chosen);
        wanted.insert(entry.dump_id, its);
        if its.any() {
            selected.push(Selected { entry, wanted: its });
        }
    }
    if options.strict_names {
        check_names(archive, options)?;
    }
    Ok(selected)
}

struct Judge<'j> {
    options: &'j RestoreOptions,
    by_id: &'j HashMap<i32, &'j Entry>,
    /// What of the entries so far is wanted.
    wanted: &'j HashMap<i32, Wanted>,
}

impl Judge<'_> {
    fn wanted(&self, entry: &Entry, section: Section, is_chosen: bool) -> Wanted {
        let RestoreOptions {
            parts, selection, ..
        } = self.options;
        let desc = entry.desc.as_str();
        let is_statistics = desc == "STATISTICS DATA";
        match desc {
            "ENCODING" | "STDSTRINGS" | "SEARCHPATH" => return Wanted::NOTHING,
            "DATABASE" | "DATABASE PROPERTIES" => {
                return Wanted {
                    schema: self.options.create,
                    ..Wanted::NOTHING
                };
            }
            "<Init>" if entry.tag == "Max OID" => return Wanted::NOTHING,
            _ => {}
        }
        let in_section = match section {
            Section::PreData => parts.pre_data,
            Section::Data => parts.data_section,
            Section::PostData => parts.post_data,
            Section::None => false,
        };
        if self.is_of_a_class_left_out(entry)
            || !in_section
            || !is_chosen
            || (is_statistics && !parts.statistics)
        {
            return Wanted::NOTHING;
        }
        if matches!(desc, "ACL" | "COMMENT" | "SECURITY LABEL") {
            if entry.tag.starts_with("DATABASE ") {
                if !self.options.create {
                    return Wanted::NOTHING;
                }
            } else if selection.is_partial() && !self.has_wanted_parent(entry) {
                return Wanted::NOTHING;
            }
        } else if !self.is_named(entry) {
            return Wanted::NOTHING;
        }
        if is_statistics {
            return Wanted {
                statistics: true,
                ..Wanted::NOTHING
            };
        }
        let of_large_objects = desc == "BLOB"
            || desc == "BLOB METADATA"
            || (matches!(desc, "ACL" | "COMMENT" | "SECURITY LABEL")
                && entry.tag.starts_with("LARGE OBJECT"));
        let counts_as_data = of_large_objects || desc == "SEQUENCE SET";
        let has_definition = !entry.definition.is_empty()
            && !entry.definition.starts_with("-- load via partition root ");
        Wanted {
            schema: parts.schema && has_definition && (entry.has_data || !counts_as_data),
            data: parts.data && (entry.has_data || counts_as_data),
            statistics: false,
        }
    }

    /// `-x`, `--no-comments` and their kind.
    fn is_of_a_class_left_out(&self, entry: &Entry) -> bool {
        let selection = &self.options.selection;
        let desc = entry.desc.as_str();
        let about = |what: &str| {
            matches!(desc, "COMMENT" | "SECURITY LABEL") && entry.tag.starts_with(what)
        };
        let of_publications = matches!(
            desc,
            "PUBLICATION" | "PUBLICATION TABLE" | "PUBLICATION TABLES IN SCHEMA"
        );
        let of_subscriptions = matches!(desc, "SUBSCRIPTION" | "SUBSCRIPTION TABLE");
        let of_policies = matches!(desc, "POLICY" | "ROW SECURITY");
        (selection.no_privileges && is_acl(entry))
            || (selection.no_comments && desc == "COMMENT")
            || (selection.no_security_labels && desc == "SECURITY LABEL")
            || (selection.no_policies && (of_policies || about("POLICY")))
            || (selection.no_publications && (of_publications || about("PUBLICATION")))
            || (selection.no_subscriptions && (of_subscriptions || about("SUBSCRIPTION")))
    }

    /// What an ACL, a comment or a label is for is wanted.
    fn has_wanted_parent(&self, entry: &Entry) -> bool {
        entry.dependencies.iter().any(|id| {
            let is_object = self.by_id.get(id).is_some_and(|e| e.desc != "ACL");
            is_object && self.wanted.get(id).is_some_and(|w| w.any())
        })
    }

    /// `-n`, `-N`, `-t`, `-I`, `-P`, `-T`.
    fn is_named(&self, entry: &Entry) -> bool {
        let selection = &self.options.selection;
        let among = |names: &[String], name: &str| names.iter().any(|n| n == name);
        let namespace = entry.namespace.as_deref();
        if !selection.schemas.is_empty() && !namespace.is_some_and(|n| among(&selection.schemas, n))
        {
            return false;
        }
        if namespace.is_some_and(|n| among(&selection.without_schemas, n)) {
            return false;
        }
        if !selection.by_name() {
            return true;
        }
        let names_of = |desc: &str| match desc {
            "TABLE"
            | "TABLE DATA"
            | "VIEW"
            | "FOREIGN TABLE"
            | "MATERIALIZED VIEW"
            | "MATERIALIZED VIEW DATA"
            | "SEQUENCE"
            | "SEQUENCE SET" => Some(&selection.tables),
            "INDEX" => Some(&selection.indexes),
            "FUNCTION" | "AGGREGATE" | "PROCEDURE" => Some(&selection.functions),
            "TRIGGER" => Some(&selection.triggers),
            _ => None,
        };
        if entry.desc == "STATISTICS DATA" {
            return entry.dependencies.iter().any(|id| {
                let parent = self.by_id.get(id);
                let parent = parent.filter(|e| {
                    matches!(
                        e.desc.as_str(),
                        "TABLE" | "VIEW" | "FOREIGN TABLE" | "MATERIALIZED VIEW" | "INDEX"
                    )
                });
                parent.is_some_and(|e| names_of(&e.desc).is_some_and(|n| among(n, &e.tag)))
            });
        }
        names_of(&entry.desc).is_some_and(|names| among(names, &entry.tag))
    }
}

/// GRANT and REVOKE.
pub fn is_acl(entry: &Entry) -> bool {
    matches!(entry.desc.as_str(), "ACL" | "ACL LANGUAGE" | "DEFAULT ACL")
}

/// The dump ids of a list file, as `-l` prints it: the first number of each line counts; what
/// follows a semicolon is a comment.
fn read_list(path: &std::path::Path, archive: &Archive) -> Result<Vec<i32>> {
    let text = fs::read(path).map_err(|e| Error::io("open TOC file", path, &e))?;
    let known: HashSet<i32> = archive.entries.iter().map(|e| e.dump_id).collect();
    let greatest = known.iter().max().copied().unwrap_or_default();
    let mut ids = Vec::new();
    let mut seen = HashSet::new();
    for (number, line) in text.split(|b| *b == b'\n').enumerate() {
        let line = String::from_utf8_lossy(line);
        let line = line.split(';').next().unwrap_or_default().trim_start();
        let digits = line.len() - line.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        if line.trim().is_empty() {
            continue;
        }
        let id = line[..digits]
            .parse::<i32>()
            .ok()
            .filter(|id| *id > 0 && *id <= greatest);
        let Some(id) = id else {
            eprintln!(
                "WARNING: line ignored: {} ({}, line {})",
                line.trim_end(),
                path.display(),
                number + 1
            );
            continue;
        };
        if !known.contains(&id) {
            return Err(
                Error::refused("22023", format!("could not find entry for ID {id}")).at(
                    crate::error::Place {
                        file: path.display().to_string(),
                        line: number as u64 + 1,
                        ..crate::error::Place::default()
                    },
                ),
            );
        }
        if seen.insert(id) {
            ids.push(id);
        }
    }
    Ok(ids)
}

/// `--strict-names`: each name must be one of the archive's.
fn check_names(archive: &Archive, options: &RestoreOptions) -> Result<()> {
    let selection = &options.selection;
    let tags = |descs: &[&str]| -> HashSet<&str> {
        let entries = archive.entries.iter();
        let entries = entries.filter(|e| descs.contains(&e.desc.as_str()));
        entries.map(|e| e.tag.as_str()).collect()
    };
    let namespaces = archive
        .entries
        .iter()
        .filter_map(|e| e.namespace.as_deref());
    for (what, names, known) in [
        ("schema", &selection.schemas, namespaces.collect()),
        (
            "table",
            &selection.tables,
            tags(&[
                "TABLE",
                "TABLE DATA",
                "VIEW",
                "FOREIGN TABLE",
                "MATERIALIZED VIEW",
                "MATERIALIZED VIEW DATA",
                "SEQUENCE",
                "SEQUENCE SET",
            ]),
        ),
        ("index", &selection.indexes, tags(&["INDEX"])),
        (
            "function",
            &selection.functions,
            tags(&["FUNCTION", "AGGREGATE", "PROCEDURE"]),
        ),
        ("trigger", &selection.triggers, tags(&["TRIGGER"])),
    ] {
        if let Some(missing) = names.iter().find(|name| !known.contains(name.as_str())) {
            return Err(Error::refused(
                "42704",
                format!("{what} \"{missing}\" not found"),
            ));
        }
    }
    Ok(())
}
