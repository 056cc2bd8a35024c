//! Which value of a sequence belongs to which draw, and where the sequence then stands.
//!
//! nextval takes values in blocks of CACHE, and all draws of a load are of one session. A block
//! ends early at the sequence's end; a sequence that cycles goes on in a new block:
//!
//! ```text
//! START 7 MAXVALUE 10 MINVALUE 1 CYCLE CACHE 3
//! draw    0  1  2 | 3 | 4  5  6 | 7  8  9 | ..
//! value   7  8  9 |10 | 1  2  3 | 4  5  6 | ..
//! ```
//!
//! PostgreSQL: src/backend/commands/sequence.c, nextval_internal.

use crate::catalog::{Sequence, SequenceState};
use crate::error::ValueError;

/// A sequence and where it stood when the load began.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SequencePlan {
    /// Its definition.
    pub sequence: Sequence,
    /// Where it stood.
    pub from: SequenceState,
}

/// A run of values without a cycle in between.
struct Stretch {
    /// The draw that takes its first value.
    first_draw: i128,
    /// That value.
    first_value: i128,
    /// How many values it has.
    len: i128,
}

impl SequencePlan {
    /// Of a sequence whose state is yet to be read.
    pub fn new(sequence: Sequence) -> SequencePlan {
        SequencePlan {
            sequence,
            from: SequenceState {
                last_value: 0,
                is_called: false,
            },
        }
    }

    /// The value that draw `number` gives, from 0.
    ///
    /// # Errors
    /// `2200H` when the sequence ends before.
    pub fn value(&self, number: u64) -> Result<i64, Box<ValueError>> {
        let number = i128::from(number);
        let stretch = self.stretch(number).ok_or_else(|| self.exhausted())?;
        let steps = number - stretch.first_draw;
        Ok((stretch.first_value + steps * i128::from(self.sequence.increment)) as i64)
    }

    /// Where the sequence stands after so many draws.
    pub fn after(&self, draws: u64) -> SequenceState {
        let Some(last_draw) = draws.checked_sub(1).map(i128::from) else {
            return self.from;
        };
        let Some(stretch) = self.stretch(last_draw) else {
            return self.from;
        };
        let cache = i128::from(self.sequence.cache);
        let in_stretch = last_draw - stretch.first_draw;
        let last_cached = ((in_stretch / cache + 1) * cache).min(stretch.len) - 1;
        let value = stretch.first_value + last_cached * i128::from(self.sequence.increment);
        SequenceState {
            last_value: value as i64,
            is_called: true,
        }
    }

    /// The stretch that a draw lies in; `None` behind the end.
    fn stretch(&self, draw: i128) -> Option<Stretch> {
        let increment = i128::from(self.sequence.increment);
        let (begin, end) = if increment > 0 {
            (self.sequence.min, self.sequence.max)
        } else {
            (self.sequence.max, self.sequence.min)
        };
        let (begin, end) = (i128::from(begin), i128::from(end));
        let len = |first: i128| ((end - first) / increment + 1).max(0);
        let last_value = i128::from(self.from.last_value);
        let mut first_value = last_value;
        if self.from.is_called {
            first_value += increment;
        }
        let is_past_the_end = (first_value - end) * increment.signum() > 0;
        // A value that setval put there is given out even if it were out of bounds.
        let mut first_len = if is_past_the_end { 0 } else { len(first_value) };
        if !self.from.is_called {
            first_len = first_len.max(1);
        }
        if draw < first_len {
            return Some(Stretch {
                first_draw: 0,
                first_value,
                len: first_len,
            });
        }
        if !self.sequence.cycle {
            return None;
        }
        let whole = len(begin);
        Some(Stretch {
            first_draw: first_len + (draw - first_len) / whole * whole,
            first_value: begin,
            len: whole,
        })
    }

    #[cold]
    #[expect(clippy::unnecessary_box_returns, reason = "ValueError travels boxed")]
    fn exhausted(&self) -> Box<ValueError> {
        let Sequence {
            name,
            increment,
            min,
            max,
            ..
        } = &self.sequence;
        let (what, bound) = if *increment > 0 {
            ("maximum", max)
        } else {
            ("minimum", min)
        };
        ValueError::new(
            "2200H",
            format!("nextval: reached {what} value of sequence \"{name}\" ({bound})"),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(increment: i64, min: i64, max: i64, cache: i64, cycle: bool) -> SequencePlan {
        SequencePlan {
            sequence: Sequence {
                oid: 1,
                schema: "public".into(),
                name: "s".into(),
                increment,
                min,
                max,
                cache,
                cycle,
            },
            from: SequenceState {
                last_value: 7,
                is_called: false,
            },
        }
    }

    fn values(plan: &SequencePlan, count: u64) -> Vec<i64> {
        (0..count).map_while(|n| plan.value(n).ok()).collect()
    }

    #[test]
    fn values_go_on_behind_the_last_and_blocks_end_where_nextval_ends_them() {
        let cycling = plan(1, 1, 10, 3, true);
        assert_eq!(
            values(&cycling, 15),
            [7, 8, 9, 10, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 1]
        );
        let ends: Vec<i64> = (1..9).map(|n| cycling.after(n).last_value).collect();
        assert_eq!(ends, [9, 9, 9, 10, 3, 3, 3, 6]);
        assert_eq!(cycling.after(0), cycling.from);
    }

    #[test]
    fn a_sequence_that_does_not_cycle_ends_as_the_server_says() {
        let down = plan(-3, 1, 10, 1, false);
        assert_eq!(values(&down, 9), [7, 4, 1]);
        assert_eq!(
            down.value(3).unwrap_err().message,
            "nextval: reached minimum value of sequence \"s\" (1)"
        );
        let mut up = plan(i64::MAX, 1, i64::MAX, 5, false);
        up.from.is_called = true;
        assert_eq!(up.value(0).unwrap_err().sqlstate, "2200H");
    }
}
