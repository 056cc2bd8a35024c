//! What is loaded: tables, their schema, and their input on disk.

use clap::ValueEnum;
use generate::{TpchTable, Workload};
use std::fs::{self, File};
use std::io::Write;
use std::path::PathBuf;
use support::Server;

/// The database of the tables.
pub(crate) const DB: &str = "postgres";

/// A workload by name.
#[derive(Clone, Copy, ValueEnum, Debug, PartialEq, Eq)]
pub(crate) enum Name {
    /// DBT-2's customer: primary key ascending, second index random.
    Customer,
    /// All eight tables of TPC-H.
    Tpch,
    /// 100 columns of bigint.
    Bigint100,
    /// Short rows, an index on text.
    Shadoks,
    /// 1 to 200 KB of text a row.
    Wide,
}

impl Name {
    pub(crate) const ALL: [Name; 5] = [
        Name::Customer,
        Name::Tpch,
        Name::Bigint100,
        Name::Shadoks,
        Name::Wide,
    ];

    pub(crate) fn label(self) -> &'static str {
        match self {
            Name::Customer => "customer",
            Name::Tpch => "tpch",
            Name::Bigint100 => "bigint100",
            Name::Shadoks => "shadoks",
            Name::Wide => "wide",
        }
    }

    fn schema(self) -> &'static str {
        match self {
            Name::Customer => include_str!("../../../fixtures/schemas/customer.sql"),
            Name::Tpch => include_str!("../../../fixtures/schemas/tpch.sql"),
            Name::Bigint100 => include_str!("../../../fixtures/schemas/bigint100.sql"),
            Name::Shadoks => include_str!("../../../fixtures/schemas/shadoks.sql"),
            Name::Wide => include_str!("../../../fixtures/schemas/wide.sql"),
        }
    }

    /// The tables with their rows for about so many bytes of input.
    fn tables(self, size_bytes: u64) -> Vec<(&'static str, Workload)> {
        let rows = |sample: fn(u64) -> Workload| {
            let sample_bytes = sample(1_000).bytes().len() as u64;
            (size_bytes * 1_000 / sample_bytes).max(1)
        };
        match self {
            Name::Customer => {
                let rows = rows(|rows| Workload::Customer { rows });
                vec![("customer", Workload::Customer { rows })]
            }
            Name::Tpch => {
                // Scale 1 is 1,049 MB of .tbl files.
                let scale = size_bytes as f64 / 1.1e9;
                TpchTable::ALL
                    .into_iter()
                    .map(|table| (table.name(), Workload::Tpch { scale, table }))
                    .collect()
            }
            Name::Bigint100 => {
                let rows = rows(|rows| Workload::Bigint100 { rows });
                vec![("bigint100", Workload::Bigint100 { rows })]
            }
            Name::Shadoks => {
                let rows = rows(|rows| Workload::Shadoks { rows });
                vec![("shadoks", Workload::Shadoks { rows })]
            }
            Name::Wide => {
                let rows = rows(|rows| Workload::Wide { rows });
                vec![("wide", Workload::Wide { rows })]
            }
        }
    }
}

/// A table and its input.
pub(crate) struct Input {
    pub(crate) table: &'static str,
    /// What pgpagewrite reads.
    pub(crate) path: PathBuf,
    /// What COPY reads: the same but for dbgen's delimiter at the end of lines.
    pub(crate) copy_path: PathBuf,
    /// Rows.
    pub(crate) rows: u64,
}

/// A workload with its input on disk.
pub(crate) struct Prepared {
    pub(crate) name: Name,
    pub(crate) inputs: Vec<Input>,
    pub(crate) input_bytes: u64,
}

impl Prepared {
    /// Writes the input where the server can read it.
    pub(crate) fn new(name: Name, size_bytes: u64, server: &Server) -> Prepared {
        let mut input_bytes = 0;
        let inputs = name
            .tables(size_bytes)
            .into_iter()
            .map(|(table, workload)| {
                let path = server.dir().join(format!("{table}.input"));
                let mut file = File::create(&path).expect("the input");
                workload.write(&mut file).expect("the input written");
                file.flush().expect("the input written");
                input_bytes += fs::metadata(&path).expect("the input").len();
                let copy_path = if name == Name::Tpch {
                    let copy_path = server.dir().join(format!("{table}.copy"));
                    let text = fs::read_to_string(&path).expect("the input");
                    fs::write(&copy_path, text.replace("|\n", "\n")).expect("COPY's input");
                    copy_path
                } else {
                    path.clone()
                };
                let bytes = fs::read(&path).expect("the input");
                let rows = bytes.split(|&b| b == b'\n').count() as u64 - 1;
                Input {
                    table,
                    path,
                    copy_path,
                    rows,
                }
            })
            .collect();
        Prepared {
            name,
            inputs,
            input_bytes,
        }
    }

    /// Makes the tables anew, empty, and waits until nothing of the past is left to write.
    pub(crate) fn reset(&self, server: &Server) {
        for input in &self.inputs {
            server.execute(DB, &format!("DROP TABLE IF EXISTS {}", input.table));
        }
        server.execute(DB, self.name.schema());
        server.execute(DB, "CHECKPOINT");
        support::run(&mut std::process::Command::new("sync")).expect_success();
    }

    /// COPY's options.
    pub(crate) fn copy_options(&self) -> &'static str {
        match self.name {
            Name::Tpch => "DELIMITER '|'",
            _ => "FORMAT csv",
        }
    }

    /// The options of pgpagewrite that mean the same.
    pub(crate) fn build_options(&self) -> &'static [&'static str] {
        match self.name {
            Name::Tpch => &["--trailing-delimiter"],
            _ => &["--format", "csv"],
        }
    }

    /// Asserts that all rows are there and gives the bytes of all files of the tables.
    pub(crate) fn loaded_bytes(&self, server: &Server) -> u64 {
        let mut bytes = 0;
        for input in &self.inputs {
            let rows = server.value(DB, &format!("SELECT count(*) FROM {}", input.table));
            assert_eq!(rows, input.rows.to_string(), "rows of {}", input.table);
            let size = server.value(
                DB,
                &format!("SELECT pg_total_relation_size('{}')", input.table),
            );
            bytes += size.parse::<u64>().expect("a number of bytes");
        }
        bytes
    }
}

/// Reads a number of bytes with kB, MB, GB or none.
pub(crate) fn size(text: &str) -> Result<u64, String> {
    let at = text
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(at);
    let number: u64 = number.parse().map_err(|_| format!("no size: {text}"))?;
    let unit = match unit.to_ascii_lowercase().as_str() {
        "" => 1,
        "kb" => 1 << 10,
        "mb" => 1 << 20,
        "gb" => 1 << 30,
        _ => return Err(format!("no size: {text}")),
    };
    number
        .checked_mul(unit)
        .ok_or_else(|| format!("too large: {text}"))
}

#[cfg(test)]
mod tests {
    #[test]
    fn sizes_are_read_with_their_units() {
        assert_eq!(super::size("300MB"), Ok(300 << 20));
        assert_eq!(super::size("12"), Ok(12));
        assert!(super::size("1TBx").is_err());
        assert!(super::size("99999999999999999999").is_err());
    }
}
