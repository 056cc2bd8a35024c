//! Enums: a label is stored as the OID of its row in pg_enum.
//!
//! PostgreSQL: `src/backend/utils/adt/enum.c`, `enum_in`.

use super::description::EnumDescription;
use super::wording::shown;
use crate::error::ValueError;
use pgformat::ids::Oid;
use std::cmp::Ordering;

/// The labels of one enum, to be looked up.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Labels {
    type_name: String,
    /// By length, then by bytes: most searches compare numbers alone.
    sorted: Vec<(Box<[u8]>, Oid)>,
}

impl Labels {
    pub(super) fn new(type_name: &str, description: &EnumDescription) -> Labels {
        let mut sorted: Vec<_> = description
            .labels
            .iter()
            .map(|label| (Box::from(label.name.as_bytes()), label.oid))
            .collect();
        sorted.sort_by(|(a, _), (b, _)| order(a, b));
        Labels {
            type_name: type_name.to_owned(),
            sorted,
        }
    }

    /// The OID of a label. One that is too long for a name is none.
    #[inline]
    pub(super) fn enum_in(&self, field: &[u8]) -> Result<Oid, Box<ValueError>> {
        self.sorted
            .binary_search_by(|(label, _)| order(label, field))
            .map(|at| self.sorted[at].1)
            .map_err(|_| {
                ValueError::new(
                    "22P02",
                    format!(
                        "invalid input value for enum {}: \"{}\"",
                        self.type_name,
                        shown(field)
                    ),
                )
            })
    }
}

#[inline]
fn order(a: &[u8], b: &[u8]) -> Ordering {
    a.len().cmp(&b.len()).then_with(|| a.cmp(b))
}
