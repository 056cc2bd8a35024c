//! From sorted entries to leaf tuples: the unique check and posting lists.
//!
//! PostgreSQL: `src/backend/access/nbtree/nbtsort.c` (`_bt_load`,
//! `_bt_sort_dedup_finish_pending`), `nbtdedup.c` (`_bt_dedup_start_pending`,
//! `_bt_dedup_save_htid`).

use super::tree::TreeBuilder;
use super::{BuildError, BuiltIndex, PageSink};
use crate::error::Result;
use crate::sort::codec;
use crate::sort::records::Prefix;
use crate::sort::words::{self, Entry, WordPlan};
use crate::sort::{IndexSpec, Sorted, SortedRecords, SortedWords, Sorter, order_not_proven};
use pgformat::btree::page::MAX_BUILD_POSTING_BYTES;
use pgformat::btree::tuple;
use pgformat::ids::Tid;
use pgformat::layout::AttrLen;

impl Sorter {
    /// Sorts all entries and builds the index's pages.
    ///
    /// # Errors
    /// `Duplicate` when the index is unique and two rows have the same key; pages that were
    /// given to the sink before are of no use then. `Io` when a run cannot be read, or the sink
    /// fails.
    pub fn build<S: PageSink>(mut self, sink: &mut S) -> Result<BuiltIndex, BuildError> {
        let spec = self.spec().clone();
        let definition = spec.definition();
        let tree = TreeBuilder::new(
            spec.order().clone(),
            definition.fillfactor,
            definition.allequalimage,
            sink,
        );
        match self.finish()? {
            Sorted::Two(sorted) => build_words(&spec, sorted, tree),
            Sorted::Three(sorted) => build_words(&spec, sorted, tree),
            Sorted::Four(sorted) => build_words(&spec, sorted, tree),
            Sorted::Records(sorted) => build_records(&spec, sorted, tree),
        }
    }
}

/// Equal keys waiting to become one tuple.
struct Pending {
    base: Vec<u8>,
    tids: Vec<Tid>,
    posting: Vec<u8>,
}

impl Pending {
    fn new() -> Pending {
        Pending {
            base: Vec::new(),
            tids: Vec::new(),
            posting: Vec::new(),
        }
    }

    #[inline]
    fn start(&mut self, base: &[u8], tid: Tid) {
        self.base.clear();
        self.base.extend_from_slice(base);
        self.tids.clear();
        self.tids.push(tid);
    }

    /// Takes one more TID, unless the tuple would grow too long.
    #[inline]
    fn save(&mut self, tid: Tid) -> bool {
        let fits =
            tuple::posting_bytes(self.base.len(), self.tids.len() + 1) <= MAX_BUILD_POSTING_BYTES;
        if fits {
            self.tids.push(tid);
        }
        fits
    }

    #[inline]
    fn finish<S: PageSink>(&mut self, tree: &mut TreeBuilder<S>) -> Result<()> {
        match self.tids.len() {
            0 => Ok(()),
            1 => tree.add(&self.base, 0),
            _ => {
                let extra = tuple::form_posting(&self.base, &self.tids, &mut self.posting);
                tree.add(&self.posting, extra)
            }
        }
    }
}

fn build_words<S: PageSink, const W: usize>(
    spec: &IndexSpec,
    sorted: SortedWords<'_, W>,
    tree: TreeBuilder<S>,
) -> Result<BuiltIndex, BuildError> {
    match sorted {
        SortedWords::Memory(mut entries) => load_words(spec, || Ok(entries.next()), tree),
        SortedWords::Merged(mut merged) => load_words(spec, || merged.next_entry(), tree),
    }
}

fn load_words<S: PageSink, const W: usize>(
    spec: &IndexSpec,
    next: impl FnMut() -> Result<Option<Entry<W>>>,
    tree: TreeBuilder<S>,
) -> Result<BuiltIndex, BuildError> {
    let plan = spec.word_plan();
    if spec.deduplicates() {
        load_words_deduplicated(plan, next, tree)
    } else {
        load_words_plain(spec, plan, next, tree)
    }
}

fn load_words_plain<S: PageSink, const W: usize>(
    spec: &IndexSpec,
    plan: &WordPlan,
    mut next: impl FnMut() -> Result<Option<Entry<W>>>,
    mut tree: TreeBuilder<S>,
) -> Result<BuiltIndex, BuildError> {
    let definition = spec.definition();
    let mut tuples = plan.tuples();
    let mut count = 0;
    let mut last: Option<Entry<W>> = None;
    while let Some(entry) = next()? {
        if definition.unique {
            if let Some(last) = &last
                && words::same_key(last, &entry)
                && (definition.nulls_not_distinct || !plan.has_null(&entry))
            {
                let (first, second) = first_pair(spec, plan, next, (*last, entry))?;
                return Err(duplicate(spec, words::tid(&first), tuples.tuple(&second)));
            }
            last = Some(entry);
        }
        tree.add(tuples.tuple(&entry), 0)?;
        count += 1;
    }
    Ok(tree.finish(count)?.0)
}

fn load_words_deduplicated<S: PageSink, const W: usize>(
    plan: &WordPlan,
    mut next: impl FnMut() -> Result<Option<Entry<W>>>,
    mut tree: TreeBuilder<S>,
) -> Result<BuiltIndex, BuildError> {
    let mut tuples = plan.tuples();
    let mut pending = Pending::new();
    let mut base = [0; W];
    let mut count = 0;
    while let Some(entry) = next()? {
        let tid = words::tid(&entry);
        let saved = count > 0 && words::same_key(&base, &entry) && pending.save(tid);
        if !saved {
            pending.finish(&mut tree)?;
            pending.start(tuples.tuple(&entry), tid);
            base = entry;
        }
        count += 1;
    }
    pending.finish(&mut tree)?;
    Ok(tree.finish(count)?.0)
}

fn build_records<S: PageSink>(
    spec: &IndexSpec,
    mut sorted: SortedRecords<'_>,
    mut tree: TreeBuilder<S>,
) -> Result<BuiltIndex, BuildError> {
    let definition = spec.definition();
    let order = spec.order();
    let deduplicates = spec.deduplicates();
    let proven = sorted.is_proven();
    let mut pending = Pending::new();
    let mut pending_prefix = 0;
    let mut count = 0;
    while let Some((prefix, tuple)) = sorted.next_record()? {
        let tid = tuple::tid(tuple);
        let may_equal = count > 0 && prefix == pending_prefix;
        if !proven && count > 0 && !may_equal && order.compare_from(0, &pending.base, tuple).is_gt()
        {
            return Err(order_not_proven().into());
        }
        if definition.unique
            && may_equal
            && order.compare_from(0, &pending.base, tuple).is_eq()
            && (definition.nulls_not_distinct || !order.has_null_key(tuple))
        {
            let pair = (pending.tids[0], tuple.to_vec());
            let (first, second) = first_record_pair(spec, &mut sorted, prefix, pair)?;
            return Err(duplicate(spec, first, &second));
        }
        let saved = deduplicates
            && may_equal
            && order.same_image(&pending.base, tuple)
            && pending.save(tid);
        if !saved {
            pending.finish(&mut tree)?;
            pending.start(tuple, tid);
            pending_prefix = prefix;
        }
        count += 1;
    }
    pending.finish(&mut tree)?;
    Ok(tree.finish(count)?.0)
}

/// Of all pairs of rows with one key, the one whose later row comes first in the input: COPY
/// stops there. `pair` is the first in the index's order; `next` goes on behind it.
fn first_pair<const W: usize>(
    spec: &IndexSpec,
    plan: &WordPlan,
    mut next: impl FnMut() -> Result<Option<Entry<W>>>,
    pair: (Entry<W>, Entry<W>),
) -> Result<(Entry<W>, Entry<W>)> {
    let mut best = pair;
    let mut last = pair.1;
    // Within a key rows come in the order of the input: its second row decides.
    let mut is_paired = true;
    while let Some(entry) = next()? {
        let is_equal = words::same_key(&last, &entry)
            && (spec.definition().nulls_not_distinct || !plan.has_null(&entry));
        if is_equal && !is_paired && words::tid(&entry) < words::tid(&best.1) {
            best = (last, entry);
        }
        is_paired = is_equal;
        last = entry;
    }
    Ok(best)
}

/// The same for entries that are tuples.
fn first_record_pair(
    spec: &IndexSpec,
    sorted: &mut SortedRecords<'_>,
    prefix: Prefix,
    pair: (Tid, Vec<u8>),
) -> Result<(Tid, Vec<u8>)> {
    let order = spec.order();
    let (mut last_prefix, mut last) = (prefix, pair.1.clone());
    let mut best = pair;
    let mut is_paired = true;
    while let Some((prefix, tuple)) = sorted.next_record()? {
        let is_equal = prefix == last_prefix
            && order.compare_from(0, &last, tuple).is_eq()
            && (spec.definition().nulls_not_distinct || !order.has_null_key(tuple));
        if is_equal && !is_paired && tuple::tid(tuple) < tuple::tid(&best.1) {
            best = (tuple::tid(&last), tuple.to_vec());
        }
        is_paired = is_equal;
        last_prefix = prefix;
        last.clear();
        last.extend_from_slice(tuple);
    }
    Ok(best)
}

fn duplicate(spec: &IndexSpec, first: Tid, second: &[u8]) -> BuildError {
    let order = spec.order();
    let key_layout = &order.layout[..order.keys.len()];
    BuildError::Duplicate {
        first,
        second: tuple::tid(second),
        key: tuple::attributes(key_layout, second)
            .zip(key_layout)
            .map(|(value, layout)| {
                let value = value?;
                Some(match layout.len {
                    AttrLen::Varlena => codec::plain(value).into_owned(),
                    _ => value.to_vec(),
                })
            })
            .collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sort::{ColumnDefinition, IndexDefinition, KeyDefinition};
    use pgformat::datum::order::{Collate, Order, TextOrder};
    use pgformat::ids::BlockNumber;
    use pgformat::layout::{AttrLen, AttributeLayout, Compression, Storage};
    use pgformat::page::Page;
    use std::cmp::Ordering;
    use std::sync::Arc;

    /// A library whose strxfrm breaks its promise.
    #[derive(Debug)]
    struct Liar;

    impl Collate for Liar {
        fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
            a.cmp(b)
        }

        fn prefix(&self, s: &[u8]) -> u128 {
            !(s[0] as u128) << 120
        }
    }

    struct Nowhere;

    impl PageSink for Nowhere {
        fn page(&mut self, _block: BlockNumber, _page: &Page) -> Result<()> {
            Ok(())
        }
    }

    #[test]
    fn an_order_that_strxfrm_got_wrong_is_noticed_in_memory_and_on_disk() {
        let spec = IndexSpec::new(IndexDefinition {
            name: "i".to_owned(),
            unique: false,
            nulls_not_distinct: false,
            fillfactor: 90,
            deduplicate_items: true,
            allequalimage: true,
            columns: vec![ColumnDefinition {
                attribute: 0,
                layout: AttributeLayout {
                    len: AttrLen::Varlena,
                    align: 4,
                    by_value: false,
                    storage: Storage::Extended,
                    compression: Compression::Pglz,
                },
            }],
            keys: vec![KeyDefinition {
                order: Order::Text(TextOrder::Locale(Arc::new(Liar))),
                descending: false,
                nulls_first: false,
            }],
        });
        for budget_bytes in [1 << 30, 0] {
            let dir = tempfile::tempdir().expect("a directory");
            let sorter = Sorter::new(spec.clone(), budget_bytes, dir.path());
            let mut buffer = spec.new_buffer();
            for (block, value) in [[5, b'a'], [5, b'b']].iter().enumerate() {
                spec.extract(|_| Some(value), &mut buffer)
                    .expect("it is short");
                let block = block as u32;
                let tid = Tid { block, offset: 1 };
                sorter.add(&mut buffer, &[tid]).expect("there is room");
            }
            let Err(BuildError::Io(error)) = sorter.build(&mut Nowhere) else {
                panic!("b came before a");
            };
            assert_eq!(error.sqlstate, "0A000");
        }
    }
}
