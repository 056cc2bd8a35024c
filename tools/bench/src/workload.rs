//! What is loaded: tables, their schema, and their input on disk.

use clap::ValueEnum;
use generate::{TpchTable, Workload};
use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use support::Server;

/// The database of the tables.
pub(crate) const DB: &str = "postgres";

/// A workload by name.
#[derive(Clone, Copy, ValueEnum, Debug, PartialEq, Eq)]
pub(crate) enum Name {
    /// DBT-2's customer: primary key ascending, second index random.
    Customer,
    /// TPC-H's lineitem: a primary key of two columns, two more indexes.
    Lineitem,
    /// 100 columns of bigint, no index.
    Bigint100,
    /// Short rows, an index on text in the order of bytes.
    Shadoks,
    /// The same, the index in the order of en_US.UTF-8.
    ShadoksEnUs,
    /// 1 to 200 KB of text a row.
    Wide,
    /// All eight tables of TPC-H.
    Tpch,
}

/// What to load, and how much of it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Choice {
    pub(crate) name: Name,
    /// 1 is the whole workload.
    pub(crate) scale: Option<f64>,
}

impl FromStr for Choice {
    type Err = String;

    /// Reads `NAME` or `NAME@SCALE`.
    fn from_str(text: &str) -> Result<Choice, String> {
        let (name, scale) = match text.split_once('@') {
            Some((name, number)) => (name, Some(scale(number)?)),
            None => (text, None),
        };
        let names = || {
            let all = Name::value_variants().iter().map(|name| name.label());
            all.collect::<Vec<_>>().join(", ")
        };
        let name = Name::from_str(name, false)
            .map_err(|_| format!("no workload: {name}; there are {}", names()))?;
        Ok(Choice { name, scale })
    }
}

impl Name {
    /// Those that are compared when none is named.
    pub(crate) const USUAL: [Name; 6] = [
        Name::Customer,
        Name::Lineitem,
        Name::Bigint100,
        Name::Shadoks,
        Name::ShadoksEnUs,
        Name::Wide,
    ];

    pub(crate) fn label(self) -> &'static str {
        match self {
            Name::Customer => "customer",
            Name::Lineitem => "lineitem",
            Name::Bigint100 => "bigint100",
            Name::Shadoks => "shadoks",
            Name::ShadoksEnUs => "shadoks-en-us",
            Name::Wide => "wide",
            Name::Tpch => "tpch",
        }
    }

    /// What it is, in a few words.
    pub(crate) fn description(self) -> &'static str {
        match self {
            Name::Customer => "21 columns, 570 bytes a row, 2 indexes on integer",
            Name::Lineitem => "16 columns, 3 indexes on integers and a date",
            Name::Bigint100 => "100 columns of bigint, no index",
            Name::Shadoks => "3 columns, index on text, collation C",
            Name::ShadoksEnUs => "3 columns, index on text, collation en_US.UTF-8",
            Name::Wide => "texts of 1 to 200 KB, every second one compressible, 1 index",
            Name::Tpch => "8 tables of TPC-H, 16 indexes",
        }
    }

    fn schema(self) -> String {
        match self {
            Name::Customer => include_str!("../../../fixtures/schemas/customer.sql").to_owned(),
            Name::Lineitem => include_str!("../schemas/lineitem.sql").to_owned(),
            Name::Bigint100 => bigint100(),
            Name::Shadoks => include_str!("../schemas/shadoks.sql").to_owned(),
            Name::ShadoksEnUs => include_str!("../schemas/shadoks_en_us.sql").to_owned(),
            Name::Wide => include_str!("../../../fixtures/schemas/wide.sql").to_owned(),
            Name::Tpch => include_str!("../../../fixtures/schemas/tpch.sql").to_owned(),
        }
    }

    /// The tables with their rows; `scale` 1 is the whole workload.
    pub(crate) fn tables(self, scale: f64) -> Vec<(&'static str, Workload)> {
        let rows = |all: u32| ((f64::from(all) * scale) as u64).max(1);
        match self {
            Name::Customer => {
                let rows = rows(1_750_000);
                vec![("customer", Workload::Customer { rows })]
            }
            Name::Lineitem => {
                let table = TpchTable::Lineitem;
                vec![(table.name(), Workload::Tpch { scale, table })]
            }
            Name::Bigint100 => {
                let rows = rows(1_000_000);
                vec![("bigint100", Workload::Bigint100 { rows })]
            }
            Name::Shadoks | Name::ShadoksEnUs => {
                let rows = rows(10_000_000);
                vec![("shadoks", Workload::Shadoks { rows })]
            }
            Name::Wide => {
                let rows = rows(100_000);
                vec![("wide", Workload::Wide { rows })]
            }
            Name::Tpch => TpchTable::ALL
                .into_iter()
                .map(|table| (table.name(), Workload::Tpch { scale, table }))
                .collect(),
        }
    }

    /// The scale of about so many bytes of input.
    pub(crate) fn scale_of(self, size_bytes: u64) -> f64 {
        let whole_bytes = match self {
            Name::Customer => 1.0e9,
            Name::Lineitem => 760e6,
            Name::Bigint100 => 1.08e9,
            Name::Shadoks | Name::ShadoksEnUs => 335e6,
            Name::Wide => 10.3e9,
            Name::Tpch => 1.1e9,
        };
        size_bytes as f64 / whole_bytes
    }

    fn is_dbgens(self) -> bool {
        matches!(self, Name::Lineitem | Name::Tpch)
    }
}

fn bigint100() -> String {
    let mut sql = String::from("CREATE TABLE bigint100 (c001 bigint");
    for column in 2..=100 {
        let _ = write!(sql, ", c{column:03} bigint");
    }
    sql + ")"
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
    pub(crate) fn new(name: Name, scale: f64, server: &Server) -> io::Result<Prepared> {
        let mut input_bytes = 0;
        let mut inputs = Vec::new();
        for (table, workload) in name.tables(scale) {
            let path = server.dir().join(format!("{table}.input"));
            let mut file = CountingLines {
                inner: File::create(&path)?,
                lines: 0,
            };
            workload.write(&mut file)?;
            input_bytes += fs::metadata(&path)?.len();
            let mut copy_path = path.clone();
            if name.is_dbgens() {
                copy_path = server.dir().join(format!("{table}.copy"));
                without_last_delimiters(&path, &copy_path)?;
            }
            inputs.push(Input {
                table,
                path,
                copy_path,
                rows: file.lines,
            });
        }
        Ok(Prepared {
            name,
            inputs,
            input_bytes,
        })
    }

    /// Makes the tables anew, empty, and waits until nothing of the past is left to write.
    pub(crate) fn reset(&self, server: &Server) {
        self.drop_tables(server);
        server.execute(DB, &self.name.schema());
        server.execute(DB, "CHECKPOINT");
        settle();
    }

    fn drop_tables(&self, server: &Server) {
        for input in &self.inputs {
            server.execute(DB, &format!("DROP TABLE IF EXISTS {}", input.table));
        }
    }

    /// Reads what a method will read, so that it lies in the page cache.
    pub(crate) fn warm(&self, is_copy: bool) -> io::Result<()> {
        let mut buffer = vec![0; 1 << 20];
        for input in &self.inputs {
            let path = if is_copy {
                &input.copy_path
            } else {
                &input.path
            };
            let mut file = File::open(path)?;
            while file.read(&mut buffer)? > 0 {}
        }
        Ok(())
    }

    /// Makes room for the next workload.
    pub(crate) fn remove(self, server: &Server) -> io::Result<()> {
        self.drop_tables(server);
        for input in self.inputs {
            fs::remove_file(&input.path)?;
            if input.copy_path != input.path {
                fs::remove_file(&input.copy_path)?;
            }
        }
        Ok(())
    }

    /// COPY's options.
    pub(crate) fn copy_options(&self) -> &'static str {
        if self.name.is_dbgens() {
            "DELIMITER '|'"
        } else {
            "FORMAT csv"
        }
    }

    /// The options of pgpagewrite that mean the same.
    pub(crate) fn build_options(&self) -> &'static [&'static str] {
        if self.name.is_dbgens() {
            &["--trailing-delimiter"]
        } else {
            &["--format", "csv"]
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

/// Waits until the kernel has nothing left to write.
pub(crate) fn settle() {
    support::run(&mut std::process::Command::new("sync")).expect_success();
}

/// A file that knows how many lines went into it.
struct CountingLines {
    inner: File,
    lines: u64,
}

impl Write for CountingLines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.inner.write(bytes)?;
        let ends = bytes[..written].iter().filter(|b| **b == b'\n');
        self.lines += ends.count() as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

/// Copies dbgen's lines without the delimiter that ends each.
fn without_last_delimiters(from: &Path, to: &Path) -> io::Result<()> {
    let mut from = BufReader::with_capacity(1 << 20, File::open(from)?);
    let mut to = BufWriter::with_capacity(1 << 20, File::create(to)?);
    let mut line = Vec::new();
    while from.read_until(b'\n', &mut line)? > 0 {
        to.write_all(line.strip_suffix(b"|\n").unwrap_or(&line))?;
        to.write_all(b"\n")?;
        line.clear();
    }
    to.flush()
}

/// Reads a scale.
pub(crate) fn scale(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(scale) if scale > 0.0 && scale <= 1000.0 => Ok(scale),
        _ => Err(format!("no scale: {text}")),
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
    use super::*;

    #[test]
    fn sizes_are_read_with_their_units() {
        assert_eq!(size("300MB"), Ok(300 << 20));
        assert_eq!(size("12"), Ok(12));
        assert!(size("1TBx").is_err());
        assert!(size("99999999999999999999").is_err());
    }

    #[test]
    fn a_workload_is_named_with_its_scale() {
        let choice = |name, scale| Ok(Choice { name, scale });
        assert_eq!("shadoks-en-us".parse(), choice(Name::ShadoksEnUs, None));
        assert_eq!("wide@0.1".parse(), choice(Name::Wide, Some(0.1)));
        for wrong in ["wide@", "wide@0", "wide@-1", "wide@x", "x@1", ""] {
            assert!(wrong.parse::<Choice>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn the_size_of_a_workload_is_as_told() {
        for name in Name::value_variants() {
            // A million bytes of each.
            let tables = name.tables(name.scale_of(4_000_000));
            let bytes: usize = tables.iter().map(|(_, w)| w.bytes().len()).sum();
            assert!(
                (2_800_000..=5_200_000).contains(&bytes),
                "{name:?}: {bytes}"
            );
        }
    }

    #[test]
    fn copy_gets_lines_without_a_delimiter_at_the_end() {
        let dir = tempfile::tempdir().expect("a directory");
        let (from, to) = (dir.path().join("from"), dir.path().join("to"));
        fs::write(&from, "1|a|\n2|b|\n").expect("written");
        without_last_delimiters(&from, &to).expect("copied");
        assert_eq!(fs::read(&to).expect("read"), b"1|a\n2|b\n");
    }
}
