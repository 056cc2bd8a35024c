//! TPC-H through the `tpchgen` crate, whose rows print as dbgen's .tbl lines.

use crate::parallel::write_chunks;
use std::fmt::Display;
use std::io::{self, Write};
use std::str::FromStr;
use tpchgen::generators as tpch;

/// A table of TPC-H.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TpchTable {
    /// 5 rows.
    Region,
    /// 25 rows.
    Nation,
    /// 10,000 rows at scale 1.
    Supplier,
    /// 150,000 rows at scale 1.
    Customer,
    /// 200,000 rows at scale 1.
    Part,
    /// 800,000 rows at scale 1.
    Partsupp,
    /// 1,500,000 rows at scale 1.
    Orders,
    /// About 6,000,000 rows at scale 1.
    Lineitem,
}

impl TpchTable {
    /// All eight, referenced ones before those that reference them.
    pub const ALL: [TpchTable; 8] = [
        TpchTable::Region,
        TpchTable::Nation,
        TpchTable::Supplier,
        TpchTable::Customer,
        TpchTable::Part,
        TpchTable::Partsupp,
        TpchTable::Orders,
        TpchTable::Lineitem,
    ];

    /// Its name in SQL.
    pub fn name(self) -> &'static str {
        match self {
            TpchTable::Region => "region",
            TpchTable::Nation => "nation",
            TpchTable::Supplier => "supplier",
            TpchTable::Customer => "customer",
            TpchTable::Part => "part",
            TpchTable::Partsupp => "partsupp",
            TpchTable::Orders => "orders",
            TpchTable::Lineitem => "lineitem",
        }
    }
}

impl FromStr for TpchTable {
    type Err = String;

    fn from_str(name: &str) -> Result<TpchTable, String> {
        TpchTable::ALL
            .into_iter()
            .find(|table| table.name() == name)
            .ok_or_else(|| format!("TPC-H has no table \"{name}\""))
    }
}

/// Writes a table at a scale.
pub(crate) fn write(out: &mut dyn Write, scale: f64, table: TpchTable) -> io::Result<()> {
    // About a megabyte of lineitem a part.
    let parts = match table {
        TpchTable::Region | TpchTable::Nation => 1,
        _ => ((scale * 600.0) as i32).clamp(1, 60_000),
    };
    write_chunks(out, parts as u64, |chunk, out| {
        let part = chunk as i32 + 1;
        match table {
            TpchTable::Region => lines(tpch::RegionGenerator::new(scale, part, parts), out),
            TpchTable::Nation => lines(tpch::NationGenerator::new(scale, part, parts), out),
            TpchTable::Supplier => lines(tpch::SupplierGenerator::new(scale, part, parts), out),
            TpchTable::Customer => lines(tpch::CustomerGenerator::new(scale, part, parts), out),
            TpchTable::Part => lines(tpch::PartGenerator::new(scale, part, parts), out),
            TpchTable::Partsupp => lines(tpch::PartSuppGenerator::new(scale, part, parts), out),
            TpchTable::Orders => lines(tpch::OrderGenerator::new(scale, part, parts), out),
            TpchTable::Lineitem => lines(tpch::LineItemGenerator::new(scale, part, parts), out),
        }
    })
}

fn lines<R: Display>(rows: impl IntoIterator<Item = R>, out: &mut Vec<u8>) {
    for row in rows {
        writeln!(out, "{row}").expect("writing into memory does not fail");
    }
}
