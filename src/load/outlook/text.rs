//! An outlook for people and for programs.

use super::{Outlook, TableOutlook};
use crate::load::report::{By, size};
use serde_json::{Value, json};
use std::fmt::Write;

impl Outlook {
    /// For people.
    pub fn to_text(&self) -> String {
        let mut out = String::new();
        for table in &self.tables {
            table_text(table, &mut out);
        }
        // Writing to a String does not fail.
        let _ = writeln!(out, "WAL: {}", self.wal);
        for demand in &self.space {
            let _ = writeln!(
                out,
                "space in the file system of {}: about {} needed, {} free",
                demand.directory.display(),
                size(demand.bytes),
                size(demand.room.free_bytes)
            );
        }
        let _ = writeln!(
            out,
            "locks: {} relations, of {} that the server has room for",
            self.locked_relations, self.lock_capacity
        );
        let _ = writeln!(
            out,
            "threads: {}; memory: {}, of it {} for sorts",
            self.jobs,
            size(self.memory_bytes as u64),
            size(self.sort_bytes as u64)
        );
        for note in &self.notes {
            let _ = writeln!(out, "NOTE: {note}");
        }
        out
    }

    /// For programs.
    pub fn to_json(&self) -> Value {
        json!({
            "tables": self.tables.iter().map(table_json).collect::<Vec<_>>(),
            "wal": self.wal,
            "space": self.space.iter().map(|demand| json!({
                "directory": demand.directory.display().to_string(),
                "needed_bytes": demand.bytes,
                "free_bytes": demand.room.free_bytes,
            })).collect::<Vec<_>>(),
            "locks": {"relations": self.locked_relations, "capacity": self.lock_capacity},
            "jobs": self.jobs,
            "memory_bytes": self.memory_bytes,
            "sort_bytes": self.sort_bytes,
            "notes": self.notes,
            "refused": self.refusal.as_ref().map(|error| json!({
                "sqlstate": error.sqlstate,
                "message": error.message,
                "detail": error.detail,
            })),
        })
    }
}

fn table_text(table: &TableOutlook, out: &mut String) {
    let _ = match &table.by {
        By::Native if table.is_leaf => writeln!(out, "partition {}: native", table.name),
        By::Native => writeln!(out, "{}: native", table.name),
        By::Server(why) => writeln!(out, "{}: by the server's COPY: {why}", table.name),
    };
    for input in &table.inputs {
        let length = input.bytes.map_or_else(|| "size unknown".to_owned(), size);
        let compressed = match &input.compression {
            Some(how) => format!(", compressed ({})", compression_name(*how)),
            None => String::new(),
        };
        let _ = writeln!(
            out,
            "  input {}: {}, {length}{compressed}",
            input.label, input.format
        );
    }
    let columns: Vec<String> = table
        .columns
        .iter()
        .map(|column| {
            let maker = match (&column.encoder, column.not_in_the_input) {
                // Values are made as those of the partitioned table.
                _ if table.is_leaf => return format!("{} {}", column.name, column.type_name),
                (_, true) => "not in the input",
                (Some(encoder), false) => encoder,
                (None, false) => "by the server",
            };
            format!("{} {} ({maker})", column.name, column.type_name)
        })
        .collect();
    let _ = writeln!(out, "  columns: {}", columns.join(", "));
    if let Some(estimate) = &table.estimate {
        let likely = &estimate.likely;
        let toast = if likely.toast_bytes > 0 {
            format!(", TOAST {}", size(likely.toast_bytes))
        } else {
            String::new()
        };
        let unknown = match estimate.unknown_inputs {
            0 => String::new(),
            n => format!(", and what {n} inputs of unknown size hold"),
        };
        let _ = writeln!(
            out,
            "  about {} rows, heap {}{toast}{unknown}; built in {}",
            likely.rows,
            size(likely.heap_bytes),
            table.staged_in.display()
        );
    }
    if table.replaces_bytes > 0 {
        let _ = writeln!(out, "  replaces a heap of {}", size(table.replaces_bytes));
    }
    for index in &table.indexes {
        let _ = match (&index.by, index.bytes) {
            (By::Native, Some(bytes)) => writeln!(
                out,
                "  index {}: native, at most about {}",
                index.name,
                size(bytes)
            ),
            (By::Native, None) => writeln!(out, "  index {}: native", index.name),
            (By::Server(why), _) => {
                writeln!(out, "  index {}: by the server: {why}", index.name)
            }
        };
    }
    for (constraint, how) in &table.constraints {
        let _ = writeln!(out, "  {constraint}: {how}");
    }
}

fn table_json(table: &TableOutlook) -> Value {
    let by = |by: &By| match by {
        By::Native => json!({"by": "native"}),
        By::Server(why) => json!({"by": "server", "reason": why}),
    };
    json!({
        "table": table.name,
        "is_partition": table.is_leaf,
        "loaded": by(&table.by),
        "inputs": table.inputs.iter().map(|input| json!({
            "input": input.label,
            "format": input.format,
            "bytes": input.bytes,
            "compression": input.compression.map(compression_name),
        })).collect::<Vec<_>>(),
        "columns": table.columns.iter().map(|column| json!({
            "column": column.name,
            "type": column.type_name,
            "encoder": column.encoder,
            "in_the_input": !column.not_in_the_input,
        })).collect::<Vec<_>>(),
        "indexes": table.indexes.iter().map(|index| json!({
            "index": index.name,
            "built": by(&index.by),
            "bytes": index.bytes,
        })).collect::<Vec<_>>(),
        "constraints": table.constraints.iter().map(|(constraint, how)| json!({
            "constraint": constraint,
            "checked": how,
        })).collect::<Vec<_>>(),
        "staged_in": table.staged_in.display().to_string(),
        "replaces_bytes": table.replaces_bytes,
        "estimate": table.estimate.as_ref().map(|estimate| json!({
            "rows": estimate.likely.rows,
            "heap_bytes": estimate.likely.heap_bytes,
            "toast_bytes": estimate.likely.toast_bytes,
            "least_bytes": estimate.least.total_bytes(),
            "input_bytes": estimate.known_bytes,
            "inputs_of_unknown_size": estimate.unknown_inputs,
        })),
    })
}

fn compression_name(compression: crate::source::compressed::Compression) -> &'static str {
    use crate::source::compressed::Compression;
    match compression {
        Compression::Gzip => "gzip",
        Compression::Zlib => "zlib",
        Compression::Xz => "xz",
        Compression::Zstd => "zstd",
        Compression::Lz4 => "lz4",
    }
}
