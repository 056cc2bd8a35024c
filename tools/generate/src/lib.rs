//! Makes the input of demos, tests and benchmarks.
//!
//! A [`Workload`] is a table's worth of rows. Its rows are made in chunks, each from its own
//! seed, on all cores, and written in order: the same workload gives the same bytes on any
//! machine. The tables to load them into are in `fixtures/schemas`.

mod alltypes;
mod customer;
mod parallel;
mod random;
mod small;
mod tpch;
mod wide;

pub use tpch::TpchTable;

use std::io::{self, Write};

/// A table's worth of rows.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Workload {
    /// DBT-2's customer, CSV.
    Customer {
        /// How many.
        rows: u64,
    },
    /// A table of TPC-H, .tbl.
    Tpch {
        /// 1.0 is about 1 GB for all eight tables.
        scale: f64,
        /// Which of the eight.
        table: TpchTable,
    },
    /// 100 columns of bigint, CSV.
    Bigint100 {
        /// How many.
        rows: u64,
    },
    /// id integer, name text, value integer; CSV.
    Shadoks {
        /// How many.
        rows: u64,
    },
    /// id integer, body text of 1 to 200 KB; CSV.
    Wide {
        /// How many.
        rows: u64,
    },
    /// Every native type; CSV.
    AllTypes {
        /// How many.
        rows: u64,
        /// Another seed gives other rows.
        seed: u64,
    },
}

impl Workload {
    /// Writes all rows.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        use parallel::write_rows;
        match *self {
            Workload::Customer { rows } => write_rows(out, rows, 2_000, customer::rows),
            Workload::Tpch { scale, table } => tpch::write(out, scale, table),
            Workload::Bigint100 { rows } => write_rows(out, rows, 1_000, small::bigint100),
            Workload::Shadoks { rows } => write_rows(out, rows, 50_000, small::shadoks),
            Workload::Wide { rows } => write_rows(out, rows, 16, wide::rows),
            Workload::AllTypes { rows, seed } => write_rows(out, rows, 200, move |numbers, out| {
                alltypes::rows(seed, numbers, out);
            }),
        }
    }

    /// All rows in memory.
    pub fn bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        self.write(&mut bytes)
            .expect("writing into memory does not fail");
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(workload: Workload) -> Vec<String> {
        let text = String::from_utf8(workload.bytes()).unwrap();
        text.lines().map(str::to_owned).collect()
    }

    #[test]
    fn the_same_workload_gives_the_same_bytes() {
        for workload in [
            Workload::Customer { rows: 5_000 },
            Workload::Shadoks { rows: 120_000 },
            Workload::AllTypes { rows: 900, seed: 3 },
        ] {
            assert!(workload.bytes() == workload.bytes(), "{workload:?}");
        }
        assert!(
            Workload::AllTypes { rows: 9, seed: 1 }.bytes()
                != Workload::AllTypes { rows: 9, seed: 2 }.bytes()
        );
    }

    #[test]
    fn a_longer_workload_begins_with_the_shorter_one() {
        let (short, long) = (
            Workload::Customer { rows: 2_500 }.bytes(),
            Workload::Customer { rows: 4_100 }.bytes(),
        );
        assert!(long.starts_with(&short));
    }

    #[test]
    fn customer_rows_have_21_columns_ascending_ids_and_the_known_width() {
        let lines = lines(Workload::Customer { rows: 4_000 });
        assert_eq!(lines.len(), 4_000);
        for (i, line) in lines.iter().enumerate() {
            let fields: Vec<&str> = line.split(',').collect();
            assert_eq!(fields.len(), 21);
            assert_eq!(fields[0], (i + 1).to_string());
            assert!((300..=500).contains(&fields[20].len()));
        }
        let mean = lines.iter().map(String::len).sum::<usize>() / lines.len();
        assert!((555..=585).contains(&mean), "{mean} bytes a row");
    }

    #[test]
    fn every_tpch_table_has_the_rows_of_its_scale() {
        let expected = [
            ("region", 5),
            ("nation", 25),
            ("supplier", 100),
            ("customer", 1_500),
            ("part", 2_000),
            ("partsupp", 8_000),
            ("orders", 15_000),
        ];
        for (table, rows) in expected {
            let table: TpchTable = table.parse().unwrap();
            let lines = lines(Workload::Tpch { scale: 0.01, table });
            assert_eq!(lines.len(), rows, "{table:?}");
            assert!(lines.iter().all(|l| l.ends_with('|')));
        }
        let table = TpchTable::Lineitem;
        let lines = lines(Workload::Tpch { scale: 0.01, table });
        assert_eq!(lines.len(), 60_175);
        assert_eq!(lines[0].split('|').count(), 17);
    }

    #[test]
    fn every_second_wide_row_is_made_of_words() {
        let lines = lines(Workload::Wide { rows: 20 });
        assert_eq!(lines.len(), 20);
        for (i, line) in lines.iter().enumerate() {
            let (id, body) = line.split_once(',').unwrap();
            assert_eq!(id, (i + 1).to_string());
            assert!((1_024..=204_800).contains(&body.len()));
            assert_eq!(body.contains(' '), i % 2 == 1);
        }
    }
}
