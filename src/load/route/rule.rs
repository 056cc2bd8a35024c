//! The rule by which one partitioned table picks the partition of a row.
//!
//! PostgreSQL: `src/backend/executor/execPartition.c`, `get_partition_for_tuple`.

use crate::catalog::partitions::{Partition, PartitionBound, PartitionTarget, RangeEdge};
use pgformat::datum::hash::{self, HashFunction};
use pgformat::datum::order::Order;
use std::cmp::Ordering;

/// Remainders that a table of them is made for.
const MODULUS_MAX: u32 = 1 << 16;

/// The rule.
#[derive(Debug)]
pub(super) enum Rule {
    /// LIST.
    List {
        order: Order,
        /// The values, in order.
        values: Vec<(Vec<u8>, PartitionTarget)>,
        null: Option<PartitionTarget>,
        default: Option<PartitionTarget>,
    },
    /// RANGE.
    Range {
        orders: Vec<Order>,
        /// The ranges, in order; none overlaps another.
        ranges: Vec<Range>,
        default: Option<PartitionTarget>,
    },
    /// HASH.
    Hash {
        functions: Vec<HashFunction>,
        /// For each remainder by the greatest modulus.
        remainders: Vec<Option<PartitionTarget>>,
    },
}

/// A range of rows.
#[derive(Debug)]
pub(super) struct Range {
    lower: Vec<RangeEdge>,
    upper: Vec<RangeEdge>,
    target: PartitionTarget,
}

impl Rule {
    /// The rule of a table that is partitioned by list.
    pub(super) fn list(mut orders: Vec<Order>, partitions: &[Partition]) -> Result<Rule, String> {
        let (Some(order), true) = (orders.pop(), orders.is_empty()) else {
            return Err("a list of more than one column".to_owned());
        };
        let (mut values, mut null, mut default) = (Vec::new(), None, None);
        for partition in partitions {
            match &partition.bound {
                PartitionBound::Default => default = Some(partition.target),
                PartitionBound::List(of_partition) => {
                    for value in of_partition {
                        match value {
                            None => null = Some(partition.target),
                            Some(value) => values.push((value.clone(), partition.target)),
                        }
                    }
                }
                _ => return Err("a list with other bounds".to_owned()),
            }
        }
        values.sort_by(|a, b| order.compare(&a.0, &b.0));
        Ok(Rule::List {
            order,
            values,
            null,
            default,
        })
    }

    /// The rule of a table that is partitioned by range.
    pub(super) fn range(orders: Vec<Order>, partitions: &[Partition]) -> Result<Rule, String> {
        let (mut ranges, mut default) = (Vec::new(), None);
        for partition in partitions {
            match &partition.bound {
                PartitionBound::Default => default = Some(partition.target),
                PartitionBound::Range { lower, upper }
                    if (lower.len(), upper.len()) == (orders.len(), orders.len()) =>
                {
                    ranges.push(Range {
                        lower: lower.clone(),
                        upper: upper.clone(),
                        target: partition.target,
                    });
                }
                _ => return Err("a range with other bounds".to_owned()),
            }
        }
        ranges.sort_by(|a, b| compare_bounds(&orders, &a.lower, &b.lower));
        Ok(Rule::Range {
            orders,
            ranges,
            default,
        })
    }

    /// The rule of a table that is partitioned by hash.
    pub(super) fn hash(
        functions: Vec<HashFunction>,
        partitions: &[Partition],
    ) -> Result<Rule, String> {
        let mut parts = Vec::new();
        for partition in partitions {
            match partition.bound {
                PartitionBound::Hash { modulus, remainder } if remainder < modulus => {
                    parts.push((modulus, remainder, partition.target));
                }
                _ => return Err("a hash with other bounds".to_owned()),
            }
        }
        // Each modulus divides the next larger one.
        let greatest = parts.iter().map(|part| part.0).max().unwrap_or(1);
        if greatest > MODULUS_MAX {
            return Err(format!("modulus {greatest}"));
        }
        let mut remainders = vec![None; greatest as usize];
        for (modulus, remainder, target) in parts {
            for place in remainders
                .iter_mut()
                .skip(remainder as usize)
                .step_by(modulus as usize)
            {
                *place = Some(target);
            }
        }
        Ok(Rule::Hash {
            functions,
            remainders,
        })
    }

    /// The partition of a row whose key's values are these; `None` when there is none.
    #[inline]
    pub(super) fn partition<'v>(
        &self,
        key: impl Fn(usize) -> Option<&'v [u8]>,
    ) -> Option<PartitionTarget> {
        match self {
            Rule::List {
                order,
                values,
                null,
                default,
            } => match key(0) {
                None => null.or(*default),
                Some(value) => {
                    let found = values.binary_search_by(|v| order.compare(&v.0, value));
                    found.ok().map(|place| values[place].1).or(*default)
                }
            },
            Rule::Range {
                orders,
                ranges,
                default,
            } => {
                // Null is in no range.
                if (0..orders.len()).any(|number| key(number).is_none()) {
                    return *default;
                }
                let place = |bound: &[RangeEdge]| compare_to_key(orders, bound, &key);
                let after = ranges.partition_point(|range| place(&range.lower).is_le());
                after
                    .checked_sub(1)
                    .map(|number| &ranges[number])
                    .filter(|range| place(&range.upper).is_gt())
                    .map(|range| range.target)
                    .or(*default)
            }
            Rule::Hash {
                functions,
                remainders,
            } => {
                let hash = (functions.iter().enumerate())
                    .filter_map(|(number, function)| Some((function, key(number)?)))
                    .map(|(function, value)| function.hash(value, hash::PARTITION_SEED))
                    .fold(0, hash::combine);
                remainders[(hash % remainders.len() as u64) as usize]
            }
        }
    }
}

/// Where a bound lies beside a key without nulls.
///
/// PostgreSQL: `src/backend/partitioning/partbounds.c`, `partition_rbound_datum_cmp`.
fn compare_to_key<'v>(
    orders: &[Order],
    bound: &[RangeEdge],
    key: impl Fn(usize) -> Option<&'v [u8]>,
) -> Ordering {
    for (number, (order, edge)) in orders.iter().zip(bound).enumerate() {
        let ordering = match edge {
            RangeEdge::Least => Ordering::Less,
            RangeEdge::Greatest => Ordering::Greater,
            RangeEdge::Value(value) => {
                key(number).map_or(Ordering::Less, |key| order.compare(value, key))
            }
        };
        if ordering.is_ne() {
            return ordering;
        }
    }
    Ordering::Equal
}

/// The order of two bounds of the same kind.
///
/// PostgreSQL: `partition_rbound_cmp`.
fn compare_bounds(orders: &[Order], a: &[RangeEdge], b: &[RangeEdge]) -> Ordering {
    let rank = |edge: &RangeEdge| match edge {
        RangeEdge::Least => 0,
        RangeEdge::Value(_) => 1,
        RangeEdge::Greatest => 2,
    };
    for ((order, a), b) in orders.iter().zip(a).zip(b) {
        let ordering = match (a, b) {
            (RangeEdge::Value(a), RangeEdge::Value(b)) => order.compare(a, b),
            // What follows an edge without a value says nothing.
            _ if rank(a) == rank(b) => return Ordering::Equal,
            _ => rank(a).cmp(&rank(b)),
        };
        if ordering.is_ne() {
            return ordering;
        }
    }
    Ordering::Equal
}

#[cfg(test)]
mod tests {
    use super::*;
    use pgformat::datum::order::FixedOrder;

    const INT4: Order = Order::Fixed(FixedOrder::Int4);

    fn int(value: i32) -> Vec<u8> {
        value.to_le_bytes().to_vec()
    }

    fn value(value: i32) -> RangeEdge {
        RangeEdge::Value(int(value))
    }

    fn route(rule: &Rule, keys: &[Option<i32>]) -> Option<PartitionTarget> {
        let keys: Vec<Option<Vec<u8>>> = keys.iter().map(|k| k.map(int)).collect();
        rule.partition(|number| keys[number].as_deref())
    }

    #[test]
    fn ranges_of_two_columns_hold_their_lower_bound_and_not_their_upper() {
        use PartitionTarget::Leaf;
        use RangeEdge::{Greatest, Least};
        let range = |lower, upper, leaf| Partition {
            bound: PartitionBound::Range { lower, upper },
            target: Leaf(leaf),
        };
        let partitions = [
            range(vec![value(20), Least], vec![Greatest, Greatest], 2),
            range(vec![value(10), value(5)], vec![value(10), Greatest], 1),
            range(vec![Least, Least], vec![value(10), value(5)], 0),
        ];
        let rule = Rule::range(vec![INT4, INT4], &partitions).unwrap();
        let routed = |a, b| route(&rule, &[Some(a), Some(b)]);
        assert_eq!(routed(i32::MIN, 7), Some(Leaf(0)));
        assert_eq!(routed(10, 4), Some(Leaf(0)));
        assert_eq!(routed(10, 5), Some(Leaf(1)));
        assert_eq!(routed(10, i32::MAX), Some(Leaf(1)));
        assert_eq!(routed(11, 0), None);
        assert_eq!(routed(20, i32::MIN), Some(Leaf(2)));
        assert_eq!(routed(i32::MAX, i32::MAX), Some(Leaf(2)));
        assert_eq!(route(&rule, &[Some(1), None]), None);
    }

    #[test]
    fn a_list_has_null_where_it_says_so_and_else_in_its_default() {
        use PartitionTarget::Leaf;
        let list = |values: Vec<Option<i32>>, leaf| Partition {
            bound: PartitionBound::List(values.into_iter().map(|v| v.map(int)).collect()),
            target: Leaf(leaf),
        };
        let default = Partition {
            bound: PartitionBound::Default,
            target: Leaf(9),
        };
        let with_null = [list(vec![Some(3), None], 0), list(vec![Some(-1)], 1)];
        let rule = Rule::list(vec![INT4], &with_null).unwrap();
        assert_eq!(route(&rule, &[None]), Some(Leaf(0)));
        assert_eq!(route(&rule, &[Some(-1)]), Some(Leaf(1)));
        assert_eq!(route(&rule, &[Some(4)]), None);
        let rule = Rule::list(vec![INT4], &[list(vec![Some(3)], 0), default]).unwrap();
        assert_eq!(route(&rule, &[None]), Some(Leaf(9)));
        assert_eq!(route(&rule, &[Some(4)]), Some(Leaf(9)));
    }
}
