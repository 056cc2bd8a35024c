//! Merging sorted runs, all at once.
//!
//! A tree of losers: each inner node remembers the source that lost there, the winner of all
//! stands apart. When the winner moves on only the matches on its way up are played again.

use crate::error::Result;

/// A sorted run that is read entry by entry.
pub(super) trait Source {
    /// Moves to the next entry (first of all: to the first); false at the end.
    fn advance(&mut self) -> Result<bool>;
    /// Whether this source's entry comes before the other's; both have one.
    fn before(&self, other: &Self) -> bool;
}

/// The merge of sources.
#[derive(Debug)]
pub(super) struct Merge<S> {
    sources: Vec<S>,
    /// Whether each source has an entry.
    live: Vec<bool>,
    /// `losers[n]` lost at inner node n; node 0 has the winner.
    losers: Vec<usize>,
    started: bool,
}

impl<S: Source> Merge<S> {
    /// Places each source on its first entry.
    pub(super) fn new(mut sources: Vec<S>) -> Result<Merge<S>> {
        let live = sources
            .iter_mut()
            .map(Source::advance)
            .collect::<Result<Vec<bool>>>()?;
        let mut merge = Merge {
            losers: vec![usize::MAX; sources.len().max(1)],
            sources,
            live,
            started: false,
        };
        for source in 0..merge.sources.len() {
            merge.enter(source);
        }
        Ok(merge)
    }

    /// Moves to the next entry of all and returns the source that stands on it.
    #[inline]
    pub(super) fn next(&mut self) -> Result<Option<&S>> {
        if self.sources.is_empty() {
            return Ok(None);
        }
        if self.started {
            let winner = self.losers[0];
            if self.live[winner] {
                self.live[winner] = self.sources[winner].advance()?;
                self.replay(winner);
            }
        }
        self.started = true;
        let winner = self.losers[0];
        Ok(self.live[winner].then(|| &self.sources[winner]))
    }

    #[inline]
    fn wins(&self, a: usize, b: usize) -> bool {
        match (self.live[a], self.live[b]) {
            (true, true) => self.sources[a].before(&self.sources[b]),
            (a_live, _) => a_live,
        }
    }

    /// The leaves stand behind the inner nodes; the parent of node n is n / 2.
    #[inline]
    fn leaf(&self, source: usize) -> usize {
        self.sources.len() + source
    }

    /// Lets a source climb from its leaf to the first node nobody has reached yet.
    fn enter(&mut self, source: usize) {
        let mut winner = source;
        let mut node = self.leaf(source) / 2;
        while node > 0 {
            if self.losers[node] == usize::MAX {
                self.losers[node] = winner;
                return;
            }
            if self.wins(self.losers[node], winner) {
                std::mem::swap(&mut self.losers[node], &mut winner);
            }
            node /= 2;
        }
        self.losers[0] = winner;
    }

    /// Plays the matches above a source's leaf again.
    #[inline]
    fn replay(&mut self, source: usize) {
        let mut winner = source;
        let mut node = self.leaf(source) / 2;
        while node > 0 {
            if self.wins(self.losers[node], winner) {
                std::mem::swap(&mut self.losers[node], &mut winner);
            }
            node /= 2;
        }
        self.losers[0] = winner;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    struct Numbers {
        rest: std::vec::IntoIter<u32>,
        current: u32,
    }

    impl Source for Numbers {
        fn advance(&mut self) -> Result<bool> {
            let next = self.rest.next();
            self.current = next.unwrap_or_default();
            Ok(next.is_some())
        }

        fn before(&self, other: &Self) -> bool {
            self.current < other.current
        }
    }

    proptest! {
        #[test]
        fn a_merge_equals_the_naive_sort(
            runs in proptest::collection::vec(proptest::collection::vec(0u32..1000, 0..40), 0..20),
        ) {
            let mut naive = runs.concat();
            naive.sort_unstable();
            let sources = runs.into_iter().map(|mut run| {
                run.sort_unstable();
                Numbers { rest: run.into_iter(), current: 0 }
            });
            let mut merge = Merge::new(sources.collect()).unwrap();
            let mut merged = Vec::new();
            while let Some(source) = merge.next().unwrap() {
                merged.push(source.current);
            }
            prop_assert_eq!(merged, naive);
        }
    }
}
