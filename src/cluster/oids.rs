//! Value ids for out-of-line values.

use pgformat::ids::Oid;
use postgres::GenericClient;

use crate::error::{Error, Result};

/// The first OID that initdb never gives. PostgreSQL: `FirstNormalObjectId`.
const FIRST_NORMAL_OBJECT_ID: u64 = 16384;
/// One past the last OID.
const OID_END: u64 = 1 << 32;

/// The first of `count` consecutive value ids for a TOAST table that is empty.
///
/// The range ends below the server's OID counter, so that the counter, which also gives the
/// value ids of later rows, comes to it only after going once around; where the room below is
/// too small, the range ends at the last OID, which is below the counter in the same sense.
/// Ids are unique within one TOAST table only, so several tables may take the same range.
///
/// # Errors
/// `54000` when no range is long enough.
pub fn toast_value_ids(client: &mut impl GenericClient, count: u64) -> Result<Oid> {
    let next: Oid = client
        .query_one(
            "SELECT pg_catalog.pg_nextoid('pg_catalog.pg_class', 'oid',
                                          'pg_catalog.pg_class_oid_index')",
            &[],
        )?
        .get(0);
    range(u64::from(next), count).ok_or_else(|| {
        Error::refused(
            "54000",
            format!("one table cannot hold {count} values out of line"),
        )
    })
}

fn range(next: u64, count: u64) -> Option<Oid> {
    let below = next.checked_sub(count);
    let top = OID_END.checked_sub(count);
    let first = match (below, top) {
        (Some(first), _) if first >= FIRST_NORMAL_OBJECT_ID => first,
        (_, Some(first)) if first > next.max(FIRST_NORMAL_OBJECT_ID) => first,
        _ => return None,
    };
    // The count of zero would end one past the last OID.
    Some(first.min(OID_END - 1) as Oid)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_of_value_ids_ends_below_the_counter_or_at_the_last_oid() {
        assert_eq!(range(20_000, 1000), Some(19_000));
        assert_eq!(range(20_000, 3616), Some(16_384));
        assert_eq!(range(20_000, 3617), Some(4_294_963_679));
        assert_eq!(range(4_000_000_000, 3_999_000_000), Some(1_000_000));
        assert_eq!(range(2_000_000_000, 2_200_000_000), Some(2_094_967_296));
        assert_eq!(range(2_200_000_000, 2_199_999_999), None);
        assert_eq!(range(20_000, 1 << 40), None);
    }
}
