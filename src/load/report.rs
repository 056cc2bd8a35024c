//! What was done, for people and for programs.

use serde_json::{Value, json};
use std::fmt::{self, Write};
use std::time::Duration;

/// Thread time spent in each verb.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct VerbTimes {
    /// Reading input.
    pub read: Duration,
    /// Parsing records, forming tuples, extracting keys.
    pub pack: Duration,
    /// Waiting for one's turn to place.
    pub wait: Duration,
    /// Asking the server for values.
    pub server: Duration,
    /// Placing.
    pub place: Duration,
    /// Laying out pages, checksums, handing them to the writers.
    pub seal: Duration,
    /// Sorting keys and building index pages.
    pub index: Duration,
}

impl VerbTimes {
    /// Adds another worker's times.
    pub fn add(&mut self, other: &VerbTimes) {
        for ((_, mine), (_, theirs)) in self.named_mut().into_iter().zip(other.named()) {
            *mine += theirs;
        }
    }

    fn named(&self) -> [(&'static str, Duration); 7] {
        [
            ("read", self.read),
            ("pack", self.pack),
            ("wait", self.wait),
            ("server", self.server),
            ("place", self.place),
            ("seal", self.seal),
            ("index", self.index),
        ]
    }

    fn named_mut(&mut self) -> [(&'static str, &mut Duration); 7] {
        [
            ("read", &mut self.read),
            ("pack", &mut self.pack),
            ("wait", &mut self.wait),
            ("server", &mut self.server),
            ("place", &mut self.place),
            ("seal", &mut self.seal),
            ("index", &mut self.index),
        ]
    }
}

/// Who did a piece of work, and why when it was the server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum By {
    /// We.
    Native,
    /// The server, for this reason.
    Server(String),
}

/// An index of the report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IndexReport {
    /// Its name.
    pub name: String,
    /// Who built it.
    pub by: By,
    /// Size in bytes; 0 when the server built it.
    pub bytes: u64,
    /// Bytes that its sort spilled to temporary files.
    pub spilled_bytes: u64,
}

/// Constraints that are checked over rows which are in place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConstraintKind {
    /// CHECK.
    Check,
    /// FOREIGN KEY, of the referencing table.
    ForeignKey,
}

impl fmt::Display for ConstraintKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ConstraintKind::Check => "CHECK constraint",
            ConstraintKind::ForeignKey => "foreign key",
        })
    }
}

/// A table's constraints of one kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConstraintReport {
    /// What they are.
    pub kind: ConstraintKind,
    /// Their names.
    pub names: Vec<String>,
    /// How long the server took to check them all; `None` when they were trusted.
    pub checked: Option<Duration>,
}

/// Values that the server was asked for while we built the table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AskedReport {
    /// The columns, and what each is: `area (generated)`.
    pub columns: Vec<String>,
    /// Rows, each counted once for defaults and once for generated columns.
    pub rows: u64,
    /// Statements.
    pub batches: u64,
    /// From questions to answers.
    pub time: Duration,
}

/// What was in force for what the server builds itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MaintenanceReport {
    /// `maintenance_work_mem` as the server says it.
    pub memory: String,
    /// `max_parallel_maintenance_workers`.
    pub workers: i32,
}

impl fmt::Display for MaintenanceReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "by the server with maintenance_work_mem {}, up to {} parallel workers",
            self.memory, self.workers
        )
    }
}

/// A table of the report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableReport {
    /// Qualified name.
    pub name: String,
    /// It is a partition of the partitioned table before it, which has all rows.
    pub is_leaf: bool,
    /// Who loaded it.
    pub by: By,
    /// Rows loaded.
    pub rows: u64,
    /// Bytes of input, decompressed.
    pub input_bytes: u64,
    /// Bytes of the heap with its map.
    pub heap_bytes: u64,
    /// Bytes of the TOAST table with its index.
    pub toast_bytes: u64,
    /// Its indexes.
    pub indexes: Vec<IndexReport>,
    /// Its constraints, when it was loaded natively; COPY checks them as it goes.
    pub constraints: Vec<ConstraintReport>,
    /// What the server was asked for; `None` when it was nothing.
    pub asked: Option<AskedReport>,
    /// Thread time per verb.
    pub times: VerbTimes,
}

impl TableReport {
    fn output_bytes(&self) -> u64 {
        self.heap_bytes + self.toast_bytes + self.indexes.iter().map(|i| i.bytes).sum::<u64>()
    }
}

/// The report of a build.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Report {
    /// The tables in the order of the command line.
    pub tables: Vec<TableReport>,
    /// For indexes and constraints that are the server's; `None` when none was.
    pub maintenance: Option<MaintenanceReport>,
    /// Wall time from the start to the end of building.
    pub build: Duration,
    /// Wall time of the registration.
    pub register: Duration,
    /// Wall time of ANALYZE; `None` when it was not run.
    pub analyze: Option<Duration>,
    /// Wall time of everything.
    pub total: Duration,
    /// Things the user must know: what was skipped, what is not in the WAL.
    pub notes: Vec<String>,
}

impl Report {
    /// Adds what was done in another transaction.
    pub fn add(&mut self, other: Report) {
        self.tables.extend(other.tables);
        self.maintenance = other.maintenance.or(self.maintenance.take());
        self.build += other.build;
        self.register += other.register;
        self.analyze = match (self.analyze, other.analyze) {
            (Some(mine), Some(theirs)) => Some(mine + theirs),
            (mine, theirs) => mine.or(theirs),
        };
        self.notes.extend(other.notes);
    }

    /// Rows of all tables, each counted once.
    fn rows(&self) -> u64 {
        let tables = self.tables.iter().filter(|t| !t.is_leaf);
        tables.map(|t| t.rows).sum()
    }

    /// The report for people.
    pub fn to_text(&self) -> String {
        let mut out = String::new();
        for table in &self.tables {
            // Writing to a String does not fail.
            let input = if table.is_leaf {
                String::new()
            } else {
                format!(", {} in", size(table.input_bytes))
            };
            let _ = write!(
                out,
                "{}{}: {} rows{input}, {} out",
                if table.is_leaf { "partition " } else { "" },
                table.name,
                table.rows,
                size(table.output_bytes())
            );
            match &table.by {
                By::Native => {
                    let _ = writeln!(
                        out,
                        " (heap {}{})",
                        size(table.heap_bytes),
                        if table.toast_bytes > 0 {
                            format!(", TOAST {}", size(table.toast_bytes))
                        } else {
                            String::new()
                        }
                    );
                }
                By::Server(why) => {
                    let _ = writeln!(out, "\n  loaded by the server: {why}");
                }
            }
            for index in &table.indexes {
                let _ = match &index.by {
                    By::Native => writeln!(
                        out,
                        "  index {}: native, {}{}",
                        index.name,
                        size(index.bytes),
                        spilled(index.spilled_bytes)
                    ),
                    By::Server(why) => {
                        writeln!(out, "  index {}: by the server: {why}", index.name)
                    }
                };
            }
            for constraint in &table.constraints {
                if let Some(time) = constraint.checked {
                    let _ = writeln!(
                        out,
                        "  {} {}: checked in {:.2} s",
                        constraint.kind,
                        constraint.names.join(", "),
                        time.as_secs_f64()
                    );
                }
            }
            if let Some(asked) = &table.asked {
                let _ = writeln!(
                    out,
                    "  values by the server: {}: {} rows in {} batches, {:.2} s",
                    asked.columns.join(", "),
                    asked.rows,
                    asked.batches,
                    asked.time.as_secs_f64()
                );
            }
            // A stage's were told when it was built.
            if table.by == By::Native && table.times != VerbTimes::default() {
                let times: Vec<String> = table
                    .times
                    .named()
                    .into_iter()
                    .filter(|(name, time)| *name != "server" || !time.is_zero())
                    .map(|(name, time)| format!("{name} {:.2}s", time.as_secs_f64()))
                    .collect();
                let _ = writeln!(out, "  thread time: {}", times.join(", "));
            }
        }
        if let Some(maintenance) = &self.maintenance {
            let _ = writeln!(out, "{maintenance}");
        }
        for note in &self.notes {
            let _ = writeln!(out, "NOTE: {note}");
        }
        let rows = self.rows();
        let input: u64 = self.tables.iter().map(|t| t.input_bytes).sum();
        let seconds = self.total.as_secs_f64();
        let _ = writeln!(
            out,
            "{rows} rows in {seconds:.2} s, {:.0} MB/s (build {:.2} s, register {:.2} s{})",
            input as f64 / 1e6 / seconds.max(1e-9),
            self.build.as_secs_f64(),
            self.register.as_secs_f64(),
            self.analyze.map_or(String::new(), |a| format!(
                ", analyze {:.2} s",
                a.as_secs_f64()
            )),
        );
        out
    }

    /// The report for programs.
    pub fn to_json(&self) -> Value {
        let by = |by: &By| match by {
            By::Native => json!({"by": "native"}),
            By::Server(why) => json!({"by": "server", "reason": why}),
        };
        json!({
            "tables": self.tables.iter().map(|t| json!({
                "table": t.name,
                "is_partition": t.is_leaf,
                "loaded": by(&t.by),
                "rows": t.rows,
                "input_bytes": t.input_bytes,
                "heap_bytes": t.heap_bytes,
                "toast_bytes": t.toast_bytes,
                "indexes": t.indexes.iter().map(|i| json!({
                    "index": i.name,
                    "built": by(&i.by),
                    "bytes": i.bytes,
                    "spilled_bytes": i.spilled_bytes,
                })).collect::<Vec<_>>(),
                "constraints": t.constraints.iter().map(|c| json!({
                    "kind": c.kind.to_string(),
                    "names": c.names,
                    "checked": c.checked.is_some(),
                    "seconds": c.checked.map(|time| time.as_secs_f64()),
                })).collect::<Vec<_>>(),
                "server_values": t.asked.as_ref().map(|asked| json!({
                    "columns": asked.columns,
                    "rows": asked.rows,
                    "batches": asked.batches,
                    "seconds": asked.time.as_secs_f64(),
                })),
                "thread_seconds": t.times.named().into_iter()
                    .map(|(name, time)| (name.to_owned(), json!(time.as_secs_f64())))
                    .collect::<serde_json::Map<_, _>>(),
            })).collect::<Vec<_>>(),
            "maintenance": self.maintenance.as_ref().map(|maintenance| json!({
                "maintenance_work_mem": maintenance.memory,
                "max_parallel_maintenance_workers": maintenance.workers,
            })),
            "rows": self.rows(),
            "seconds": {
                "build": self.build.as_secs_f64(),
                "register": self.register.as_secs_f64(),
                "analyze": self.analyze.map(|a| a.as_secs_f64()),
                "total": self.total.as_secs_f64(),
            },
            "mb_per_second": self.tables.iter().map(|t| t.input_bytes).sum::<u64>() as f64
                / 1e6 / self.total.as_secs_f64().max(1e-9),
            "notes": self.notes,
        })
    }
}

fn spilled(bytes: u64) -> String {
    if bytes == 0 {
        String::new()
    } else {
        format!(", {} spilled while sorting", size(bytes))
    }
}

/// A size for people: 8192 bytes, 12.3 MB.
pub(super) fn size(bytes: u64) -> String {
    match bytes {
        0..10_000 => format!("{bytes} bytes"),
        10_000..10_000_000 => format!("{:.0} kB", bytes as f64 / 1e3),
        10_000_000..10_000_000_000 => format!("{:.1} MB", bytes as f64 / 1e6),
        _ => format!("{:.2} GB", bytes as f64 / 1e9),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_report_says_who_built_each_index_and_why() {
        let report = Report {
            tables: vec![TableReport {
                name: "public.t".into(),
                is_leaf: false,
                by: By::Native,
                rows: 10,
                input_bytes: 20_000_000,
                heap_bytes: 16384,
                toast_bytes: 0,
                indexes: vec![
                    IndexReport {
                        name: "t_pkey".into(),
                        by: By::Native,
                        bytes: 16384,
                        spilled_bytes: 0,
                    },
                    IndexReport {
                        name: "t_gin".into(),
                        by: By::Server("access method gin".into()),
                        bytes: 0,
                        spilled_bytes: 0,
                    },
                ],
                constraints: vec![ConstraintReport {
                    kind: ConstraintKind::Check,
                    names: vec!["a".into(), "b".into()],
                    checked: Some(Duration::from_millis(1230)),
                }],
                asked: Some(AskedReport {
                    columns: vec!["area (generated)".into()],
                    rows: 10,
                    batches: 1,
                    time: Duration::from_millis(20),
                }),
                times: VerbTimes::default(),
            }],
            total: Duration::from_secs(2),
            ..Report::default()
        };
        let text = report.to_text();
        assert!(
            text.starts_with("public.t: 10 rows, 20.0 MB in, 33 kB out (heap 16 kB)\n"),
            "{text}"
        );
        assert!(text.contains("  index t_pkey: native, 16 kB\n"), "{text}");
        assert!(
            text.contains("  index t_gin: by the server: access method gin\n"),
            "{text}"
        );
        assert!(
            text.contains("  CHECK constraint a, b: checked in 1.23 s\n"),
            "{text}"
        );
        assert!(
            text.contains(
                "  values by the server: area (generated): 10 rows in 1 batches, 0.02 s\n"
            ),
            "{text}"
        );
        assert!(text.contains("10 rows in 2.00 s, 10 MB/s"), "{text}");
        assert_eq!(
            report.to_json()["tables"][0]["indexes"][1]["built"]["reason"],
            "access method gin"
        );
    }
}
