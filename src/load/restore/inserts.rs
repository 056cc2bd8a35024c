//! INSERTs of a dump as rows of a build: where COPY means the same by their constants.

use super::arrange::Step;
use crate::error::{Error, Result};
use crate::source::dump::script::{Constants, InsertRows, Inserts};
use crate::source::{Member, Origin};
use std::collections::HashSet;
use std::io::{self, Read};
use std::sync::Arc;

/// Rows that a dump inserts.
#[derive(Debug, Clone)]
pub struct Inserted {
    /// The rows, as they are in COPY's text.
    pub member: Arc<InsertsMember>,
    /// OVERRIDING SYSTEM VALUE.
    pub overriding_system_value: bool,
    /// What is done where COPY does not mean the same: the statements are run.
    pub otherwise: Box<Step>,
}

/// A run of INSERTs, whose rows are read forwards.
#[derive(Debug)]
pub struct InsertsMember {
    /// The run.
    pub inserts: Inserts,
    /// The SQL that it is in.
    pub sql: Origin,
    /// The name of that SQL.
    pub label: String,
}

impl InsertsMember {
    fn statements(&self) -> Result<Box<dyn Read + Send>> {
        let pos = &self.inserts.pos;
        let mut sql: Box<dyn Read + Send> = match &self.sql {
            Origin::Part(part) => {
                let len = pos.end - pos.start;
                return Ok(Box::new(
                    part.part(self.label.clone(), pos.start, len)?.reader(),
                ));
            }
            Origin::Member(member) => member.open()?,
            Origin::Named(_) => unreachable!("a dump is no data file"),
        };
        io::copy(&mut sql.by_ref().take(pos.start), &mut io::sink())
            .map_err(|e| Error::io("read file", self.label.as_str(), &e))?;
        Ok(Box::new(sql.take(pos.end - pos.start)))
    }

    /// Says of an error in a row where that is in the dump. `label` is the name of the rows.
    pub fn locate(&self, error: &mut Error, label: &str) {
        for place in error.places.iter_mut().filter(|p| p.file == label) {
            let row = place.line.checked_sub(1);
            let line = row.and_then(|row| {
                let statements = self.statements().ok()?;
                self.inserts.line_of_row(statements, row).ok()
            });
            place.line = line.unwrap_or(self.inserts.line);
            place.file.clone_from(&self.label);
        }
    }
}

impl Member for InsertsMember {
    fn open(&self) -> Result<Box<dyn Read + Send>> {
        let rows = InsertRows::new(self.statements()?, &self.inserts);
        Ok(Box::new(rows))
    }
}

/// Where all bytes of a character beyond ASCII are beyond ASCII, too, so that quotes are quotes.
pub fn quotes_are_plain(encoding: &str) -> bool {
    let others = [
        "BIG5", "GBK", "UHC", "GB18030", "JOHAB", "936", "949", "950",
    ];
    !encoding.contains("JIS_2004")
        && !encoding.contains("SJIS")
        && !encoding.contains("SHIFT")
        && !others.iter().any(|other| encoding.contains(other))
}

/// A column of a table.
#[derive(Debug, Clone)]
pub struct Column {
    /// Its name.
    pub name: String,
    /// GENERATED ALWAYS AS IDENTITY.
    pub is_always_identity: bool,
    /// GENERATED ALWAYS AS an expression.
    pub is_generated: bool,
    /// The OID of its type, of a domain's that of its base type.
    pub type_oid: u32,
    /// An array of intervals of some precision: INSERT reads the whole interval and cuts it then.
    pub is_array_of_cut_intervals: bool,
}

/// `int2`, `int4`, `int8`, `oid`.
const INTEGERS: [u32; 4] = [21, 23, 20, 26];
/// `float4`, `float8`, `numeric`.
const DECIMALS: [u32; 3] = [700, 701, 1700];
const BOOL: u32 = 16;
/// `bit`, `varbit`.
const BIT_STRINGS: [u32; 2] = [1560, 1562];

impl Column {
    /// The constants by which INSERT and COPY mean the same.
    ///
    /// A string is read by the type's input function in both. A number is a value of a type of its
    /// own, which is cast: that may round, where COPY refuses.
    fn same(&self) -> Constants {
        let mut same = Constants::NULL;
        if !self.is_array_of_cut_intervals {
            same = same.and(Constants::STRING);
        }
        if INTEGERS.contains(&self.type_oid) {
            same = same.and(Constants::INTEGER);
        }
        if DECIMALS.contains(&self.type_oid) {
            same = same.and(Constants::INTEGER).and(Constants::DECIMAL);
        }
        if self.type_oid == BOOL {
            same = same.and(Constants::BOOLEAN);
        }
        if BIT_STRINGS.contains(&self.type_oid) {
            same = same.and(Constants::BITS);
        }
        same
    }
}

impl Inserted {
    /// The columns that the rows fill, in their order; `None` where INSERT does otherwise than COPY.
    /// `listed` are those that the statements name.
    pub fn columns(&self, listed: Option<&[String]>, table: &[Column]) -> Option<Vec<String>> {
        let inserts = &self.member.inserts;
        let mut seen = HashSet::new();
        let mut filled = Vec::new();
        for (value, constants) in inserts.constants.iter().enumerate() {
            let column = match listed {
                Some(names) => table.iter().find(|c| c.name == names[value])?,
                None => table.get(value)?,
            };
            if !seen.insert(&column.name) {
                return None;
            }
            if inserts.is_default(value) {
                continue;
            }
            let is_computed =
                column.is_generated || column.is_always_identity && !self.overriding_system_value;
            if is_computed || !constants.are_within(column.same()) {
                return None;
            }
            filled.push(column.name.clone());
        }
        (!filled.is_empty()).then_some(filled)
    }
}
