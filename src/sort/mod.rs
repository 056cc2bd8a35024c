//! index keys, runs, merge, memory budget.
//!
//! An index's rows come here from the workers that pack the table and leave in order for the
//! page builder:
//!
//! ```text
//! IndexSpec::extract  -> KeyBuffer   per worker, TIDs not yet known
//! Sorter::add         -> chunks      TIDs known; runs over the budget are sorted and spilled
//! Sorter::finish      -> Sorted      what is in memory sorted in parallel, runs merged
//! ```
//!
//! Keys whose columns are all of fixed width become plain numbers ([`words`]): the entry is the
//! key in its normal form followed by the TID, and the index tuple is made again from it.
//! All else becomes a [`records`] entry: a prefix of the normal form and the formed tuple.
//! Either way entries order totally (keys, then TID), so the outcome does not depend on how
//! they were cut into runs.

mod buckets;
pub(crate) mod codec;
pub mod compare;
mod merge;
mod radix;
pub mod records;
mod sorter;
pub mod spec;
mod spill;
pub mod words;

pub(crate) use sorter::order_not_proven;
pub use sorter::{MergedWords, Sorted, SortedRecords, SortedWords, Sorter};
pub use spec::{ColumnDefinition, IndexDefinition, IndexSpec, KeyBuffer, KeyDefinition};
