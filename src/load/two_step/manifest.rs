//! The manifest of a stage: a JSON object over many lines, then a line with its CRC-32C.

use super::super::built::{BuiltFork, BuiltIndex, BuiltTable, BuiltToast};
use super::super::marks::{ChunkMark, Marks, RowLines};
use crate::catalog::describe::Description;
use crate::cluster::facts::Facts;
use crate::cluster::owner::{FileOwner, fsync_directory};
use crate::error::{Class, Error, Result};
use pgformat::ids::{Oid, Tid};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// The manifest's name in the stage's directory.
pub(super) const NAME: &str = "pgpagewrite.manifest";

/// The form of the manifest that this program writes, and the one it reads.
const FORMAT: u64 = 2;

/// What a stage holds and what it was built for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Manifest {
    /// The program's version.
    pub program: String,
    /// Facts of the server that must still hold, by their names in messages.
    pub server: Vec<(String, String)>,
    /// `--trust-constraints` was given.
    pub trust_constraints: bool,
    /// `--skip-triggers` was given.
    pub skip_triggers: bool,
    /// The tables.
    pub tables: Vec<StagedTable>,
    /// Every file.
    pub files: Vec<StagedFile>,
}

/// A table of a stage.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StagedTable {
    /// pg_class.oid.
    pub oid: Oid,
    /// Its name as messages show it.
    pub name: String,
    /// How many of the tables behind it are its leaves, which have its rows.
    pub leaves: usize,
    /// The attributes that its inputs give, in the order of the fields; `None` for a leaf, and
    /// without inputs.
    pub fields: Option<Vec<usize>>,
    /// As the catalogs described it.
    pub description: Description,
    /// What was built; paths are names in the stage's directory.
    pub built: BuiltTable,
}

/// A file of a stage.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StagedFile {
    /// Its name in the stage's directory.
    pub name: String,
    /// Its length.
    pub length_bytes: u64,
    /// The CRC-32C of all its bytes.
    pub crc32c: u32,
}

/// What of a server decides whether files fit it.
pub(super) fn server_facts(facts: &Facts) -> Vec<(String, String)> {
    [
        ("major version", facts.version.to_string()),
        ("system identifier", facts.system_identifier.to_string()),
        ("catalog version", facts.catalog_version.to_string()),
        ("database", facts.database.to_string()),
        ("encoding", facts.server_encoding.clone()),
        ("segment size", facts.segment_blocks.to_string()),
        (
            "data checksums",
            if facts.checksums { "on" } else { "off" }.to_owned(),
        ),
    ]
    .map(|(name, value)| (name.to_owned(), value))
    .to_vec()
}

impl Manifest {
    /// Writes the manifest into the stage's directory and makes both durable. It appears whole or not
    /// at all.
    pub fn write(&self, directory: &Path, owner: FileOwner) -> Result<()> {
        let path = directory.join(NAME);
        let unfinished = directory.join(format!("{NAME}.new"));
        // Not as the owner, who may have no way to the directory.
        OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&unfinished)
            .and_then(|mut file| {
                owner.apply(&file)?;
                file.write_all(self.to_text().as_bytes())?;
                file.sync_all()
            })
            .and_then(|()| std::fs::rename(&unfinished, &path))
            .map_err(|e| Error::io("write file", &path, &e))?;
        fsync_directory(directory)?;
        match directory.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => fsync_directory(parent),
            _ => Ok(()),
        }
    }

    /// Reads the manifest of a stage.
    ///
    /// # Errors
    /// `58P01` when there is none; `XX001` when it is damaged; `0A000` when another version of
    /// the program wrote it in another form.
    pub fn read(directory: &Path) -> Result<Manifest> {
        let path = directory.join(NAME);
        let bytes = std::fs::read(&path).map_err(|e| {
            Error::io("open file", &path, &e)
                .with_hint("register takes a directory that \"build --stage-only\" finished.")
        })?;
        let damaged = || {
            Error::new(
                Class::Corruption,
                "XX001",
                format!("manifest \"{}\" is damaged", path.display()),
            )
            .with_hint("Build the stage again.")
        };
        let json = checked(&bytes).ok_or_else(damaged)?;
        let value: Value = serde_json::from_slice(json).map_err(|_| damaged())?;
        match value["format"].as_u64() {
            Some(FORMAT) => {}
            Some(other) => {
                return Err(Error::unsupported(format!(
                    "manifest \"{}\" has format {other}; this program reads {FORMAT}",
                    path.display()
                )));
            }
            None => return Err(damaged()),
        }
        Manifest::from_json(&value)
            .filter(Manifest::is_whole)
            .ok_or_else(damaged)
    }

    fn to_text(&self) -> String {
        let json = format!("{:#}\n", self.to_json());
        format!("{json}{:08x}\n", crc32c::crc32c(json.as_bytes()))
    }

    fn to_json(&self) -> Value {
        json!({
            "format": FORMAT,
            "program": self.program,
            "server": pairs_to_json(&self.server),
            "trust_constraints": self.trust_constraints,
            "skip_triggers": self.skip_triggers,
            "tables": self.tables.iter().map(|table| json!({
                "oid": table.oid,
                "name": table.name,
                "leaves": table.leaves,
                "fields": table.fields,
                "description": pairs_to_json(&table.description.0),
                "built": built_to_json(&table.built),
            })).collect::<Vec<_>>(),
            "files": self.files.iter().map(|file| json!({
                "name": file.name,
                "bytes": file.length_bytes,
                "crc32c": format!("{:08x}", file.crc32c),
            })).collect::<Vec<_>>(),
        })
    }

    fn from_json(value: &Value) -> Option<Manifest> {
        Some(Manifest {
            program: text(&value["program"])?,
            server: pairs(&value["server"])?,
            trust_constraints: value["trust_constraints"].as_bool()?,
            skip_triggers: value["skip_triggers"].as_bool()?,
            tables: list(&value["tables"], |table| {
                Some(StagedTable {
                    oid: number(&table["oid"])?,
                    name: text(&table["name"])?,
                    leaves: number(&table["leaves"])?,
                    fields: optional(&table["fields"], |fields| list(fields, number))?,
                    description: Description(pairs(&table["description"])?),
                    built: built(&table["built"])?,
                })
            })?,
            files: list(&value["files"], |file| {
                Some(StagedFile {
                    name: text(&file["name"])?,
                    length_bytes: file["bytes"].as_u64()?,
                    crc32c: u32::from_str_radix(file["crc32c"].as_str()?, 16).ok()?,
                })
            })?,
        })
    }

    /// Whether the forks and the list of files tell of the same files, each once, and the marks
    /// tell where each row came from.
    fn is_whole(&self) -> bool {
        let marks_are_right = self.tables.iter().all(|table| {
            let marks = table.built.marks.chunks();
            let first = marks.first().map(|mark| mark.first);
            (table.built.heap.blocks == 0
                || first
                    == Some(Tid {
                        block: 0,
                        offset: 1,
                    }))
                && marks.iter().all(|m| m.input < table.built.inputs.len())
        });
        let mut listed: HashMap<&str, u64> = self
            .files
            .iter()
            .map(|file| (file.name.as_str(), file.length_bytes))
            .collect();
        let forks_are_listed = self.tables.iter().all(|table| {
            forks(&table.built).into_iter().all(|fork| {
                if fork.segment_count as usize > self.files.len() {
                    return false;
                }
                let lengths: Option<Vec<u64>> = fork
                    .segments()
                    .iter()
                    .map(|path| listed.remove(path.to_str()?))
                    .collect();
                lengths.is_some_and(|lengths| lengths.iter().sum::<u64>() == fork.bytes())
            })
        });
        marks_are_right && forks_are_listed && listed.is_empty() && self.heads().is_some()
    }

    /// The tables that were named for the stage, without the leaves behind them; `None` when leaves
    /// are missing or have leaves.
    pub(super) fn heads(&self) -> Option<Vec<&StagedTable>> {
        let mut heads = Vec::new();
        let mut rest = &self.tables[..];
        while let Some((head, behind)) = rest.split_first() {
            let (leaves, others) = behind.split_at_checked(head.leaves)?;
            if leaves.iter().any(|leaf| leaf.leaves > 0) {
                return None;
            }
            heads.push(head);
            rest = others;
        }
        Some(heads)
    }
}

/// Every fork of a table.
pub(super) fn forks(built: &BuiltTable) -> Vec<&BuiltFork> {
    let toast = built.toast.iter().flat_map(|toast| {
        [&toast.heap, &toast.index]
            .into_iter()
            .chain(&toast.visibility_map)
    });
    std::iter::once(&built.heap)
        .chain(&built.visibility_map)
        .chain(toast)
        .chain(built.indexes.iter().map(|index| &index.file))
        .collect()
}

/// The JSON of a manifest whose last line is right.
fn checked(bytes: &[u8]) -> Option<&[u8]> {
    let end = bytes
        .strip_suffix(b"\n")?
        .iter()
        .rposition(|b| *b == b'\n')?
        + 1;
    let (json, crc) = bytes.split_at(end);
    let crc = std::str::from_utf8(crc.trim_ascii_end()).ok()?;
    (u32::from_str_radix(crc, 16).ok()? == crc32c::crc32c(json)).then_some(json)
}

fn pairs_to_json(pairs: &[(String, String)]) -> Value {
    pairs
        .iter()
        .map(|(name, text)| json!([name, text]))
        .collect()
}

fn pairs(value: &Value) -> Option<Vec<(String, String)>> {
    list(value, |pair| Some((text(&pair[0])?, text(&pair[1])?)))
}

fn built_to_json(built: &BuiltTable) -> Value {
    json!({
        "rows": built.rows,
        "input_bytes": built.input_bytes,
        "heap": fork_to_json(&built.heap),
        "visibility_map": built.visibility_map.as_ref().map(fork_to_json),
        "toast": built.toast.as_ref().map(|toast| json!({
            "heap": fork_to_json(&toast.heap),
            "visibility_map": toast.visibility_map.as_ref().map(fork_to_json),
            "tuples": toast.tuples,
            "index": fork_to_json(&toast.index),
        })),
        "inputs": built.inputs,
        "marks": built.marks.chunks().iter().map(|mark| json!([
            mark.first.block, mark.first.offset, mark.input, mark.first_row_line,
            hex(mark.row_lines.as_bytes()),
        ])).collect::<Vec<_>>(),
        "indexes": built.indexes.iter().map(|index| json!({
            "number": index.number,
            "tuples": index.tuples,
            "file": fork_to_json(&index.file),
        })).collect::<Vec<_>>(),
    })
}

fn built(value: &Value) -> Option<BuiltTable> {
    Some(BuiltTable {
        rows: value["rows"].as_u64()?,
        input_bytes: value["input_bytes"].as_u64()?,
        heap: fork(&value["heap"])?,
        visibility_map: optional(&value["visibility_map"], fork)?,
        toast: optional(&value["toast"], |toast| {
            Some(BuiltToast {
                heap: fork(&toast["heap"])?,
                visibility_map: optional(&toast["visibility_map"], fork)?,
                tuples: toast["tuples"].as_u64()?,
                index: fork(&toast["index"])?,
            })
        })?,
        indexes: list(&value["indexes"], |index| {
            Some(BuiltIndex {
                number: number(&index["number"])?,
                tuples: index["tuples"].as_u64()?,
                file: fork(&index["file"])?,
                spilled_bytes: 0,
            })
        })?,
        inputs: list(&value["inputs"], text)?,
        marks: marks(&value["marks"])?,
        ..BuiltTable::default()
    })
}

fn marks(value: &Value) -> Option<Marks> {
    let mut marks = Marks::default();
    for mark in list(value, |mark| {
        Some(ChunkMark {
            first: Tid {
                block: number(&mark[0])?,
                offset: number(&mark[1])?,
            },
            input: number(&mark[2])?,
            first_row_line: mark[3].as_u64()?,
            row_lines: RowLines::from_bytes(from_hex(mark[4].as_str()?)?)?,
        })
    })? {
        let last = marks.chunks().last();
        last.is_none_or(|last| last.first < mark.first)
            .then_some(())?;
        marks.push(mark);
    }
    Some(marks)
}

fn fork_to_json(fork: &BuiltFork) -> Value {
    let name = fork.path.file_name().unwrap_or_default();
    json!({
        "file": name.to_string_lossy(),
        "blocks": fork.blocks,
        "segments": fork.segment_count,
    })
}

fn fork(value: &Value) -> Option<BuiltFork> {
    let name = text(&value["file"])?;
    // A name and nothing else: no way out of the directory.
    let plain = |b: u8| b.is_ascii_digit() || b"_vm".contains(&b);
    name.bytes().all(plain).then_some(())?;
    let segment_count = number(&value["segments"])?;
    // What has no blocks has no file, and may have no name.
    (segment_count == 0 || !name.is_empty()).then_some(())?;
    Some(BuiltFork {
        path: PathBuf::from(name),
        blocks: number(&value["blocks"])?,
        segment_count,
    })
}

/// Bytes as hexadecimal digits.
fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write;
    let mut digits = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        // Writing to a String does not fail.
        let _ = write!(digits, "{byte:02x}");
    }
    digits
}

fn from_hex(digits: &str) -> Option<Vec<u8>> {
    let value = |digit: u8| char::from(digit).to_digit(16);
    let pairs = digits.as_bytes().chunks(2);
    pairs
        .map(|pair| {
            let &[high, low] = pair else { return None };
            u8::try_from(value(high)? << 4 | value(low)?).ok()
        })
        .collect()
}

fn text(value: &Value) -> Option<String> {
    value.as_str().map(str::to_owned)
}

fn number<T: TryFrom<u64>>(value: &Value) -> Option<T> {
    T::try_from(value.as_u64()?).ok()
}

fn list<T>(value: &Value, read: impl Fn(&Value) -> Option<T>) -> Option<Vec<T>> {
    value.as_array()?.iter().map(read).collect()
}

/// What may be null; the outer `None` is a damaged value.
#[expect(clippy::option_option, reason = "absent and damaged are two things")]
fn optional<T>(value: &Value, read: impl Fn(&Value) -> Option<T>) -> Option<Option<T>> {
    match value {
        Value::Null => Some(None),
        value => read(value).map(Some),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fork(name: &str, blocks: u32) -> BuiltFork {
        BuiltFork {
            path: name.into(),
            blocks,
            segment_count: 1,
        }
    }

    fn manifest() -> Manifest {
        let file = |name: &str, blocks: u64| StagedFile {
            name: name.to_owned(),
            length_bytes: blocks * 8192,
            crc32c: 0x1234_abcd,
        };
        Manifest {
            program: "0.1.0".into(),
            server: vec![("encoding".into(), "UTF8".into())],
            trust_constraints: true,
            skip_triggers: false,
            tables: vec![StagedTable {
                oid: 16385,
                name: "public.\"t\n\"".into(),
                leaves: 0,
                fields: Some(vec![1, 0]),
                description: Description(vec![("its name".into(), "(\"a\", \"b\")".into())]),
                built: BuiltTable {
                    rows: 7,
                    inputs: vec!["a.csv".into()],
                    marks: marks(&json!([[0, 1, 0, 2, "0301"], [0, 5, 0, 9, ""]])).unwrap(),
                    heap: fork("16385", 2),
                    visibility_map: Some(fork("16385_vm", 1)),
                    indexes: vec![BuiltIndex {
                        number: 0,
                        file: fork("16390", 3),
                        tuples: 7,
                        spilled_bytes: 0,
                    }],
                    ..BuiltTable::default()
                },
            }],
            files: vec![file("16385", 2), file("16385_vm", 1), file("16390", 3)],
        }
    }

    #[test]
    fn what_is_written_is_read_and_no_byte_may_change() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join(NAME);
        let text = manifest().to_text();
        std::fs::write(&path, &text).unwrap();
        assert_eq!(Manifest::read(directory.path()).unwrap(), manifest());
        for at in (0..text.len()).step_by(7).chain([text.len() - 2]) {
            let mut bytes = text.clone().into_bytes();
            bytes[at] ^= 1;
            std::fs::write(&path, &bytes).unwrap();
            let error = Manifest::read(directory.path()).unwrap_err();
            assert_eq!(
                (error.sqlstate.as_str(), error.exit_status()),
                ("XX001", 4),
                "{at}"
            );
        }
        for length in [0, 1, 8, 9, text.len() / 2, text.len() - 1] {
            std::fs::write(&path, &text[..length]).unwrap();
            let error = Manifest::read(directory.path()).unwrap_err();
            assert_eq!(error.sqlstate, "XX001", "{length}");
        }
    }

    #[test]
    fn forks_and_the_list_of_files_must_agree() {
        let mut missing = manifest();
        missing.files.pop();
        let mut too_many = manifest();
        too_many.files.push(StagedFile {
            name: "5".into(),
            length_bytes: 0,
            crc32c: 0,
        });
        let mut shorter = manifest();
        shorter.files[0].length_bytes -= 1;
        let mut twice = manifest();
        twice.tables[0].built.visibility_map = Some(fork("16385", 2));
        let mut endless = manifest();
        endless.tables[0].built.heap.segment_count = u32::MAX;
        let mut unmarked = manifest();
        unmarked.tables[0].built.marks = Marks::default();
        let mut of_nothing = manifest();
        of_nothing.tables[0].built.inputs.clear();
        let mut leafless = manifest();
        leafless.tables[0].leaves = 1;
        let mut nameless = manifest();
        nameless.tables[0].built.heap.path = PathBuf::new();
        for wrong in [
            unmarked, of_nothing, leafless, nameless, missing, too_many, shorter, twice, endless,
        ] {
            assert!(!wrong.is_whole(), "{wrong:?}");
        }
        assert!(manifest().is_whole());
    }

    #[test]
    fn a_file_outside_the_directory_is_not_named() {
        let mut outside = manifest();
        outside.tables[0].built.heap.path = "16385".into();
        let json = outside.to_json().to_string();
        let json = json.replace("\"file\":\"16385\"", "\"file\":\"../16385\"");
        let value: Value = serde_json::from_str(&json).unwrap();
        assert_eq!(Manifest::from_json(&value), None);
    }
}
