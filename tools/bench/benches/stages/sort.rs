//! Sorting an index's entries, and building its pages of them.

use crate::input::{fixed, index, numbers, tids, varlena};
use crate::keys::stored_text;
use criterion::{BatchSize, Criterion, Throughput};
use pgformat::datum::order::{FixedOrder, Order, TextOrder};
use pgformat::ids::BlockNumber;
use pgformat::page::Page;
use pgpagewrite::build::btree::PageSink;
use pgpagewrite::error::Result;
use pgpagewrite::sort::{IndexSpec, Sorter};
use pgpagewrite::sys::collate;

const ROWS: usize = 100_000;
/// Rows that a worker hands over at once.
const CHUNK_ROWS: usize = 2_000;
const BUDGET_BYTES: usize = 1 << 30;

/// Where pages go that nobody wants.
struct Nowhere;

impl PageSink for Nowhere {
    fn page(&mut self, _block: BlockNumber, _page: &Page) -> Result<()> {
        Ok(())
    }
}

/// A sorter with all entries of keys in stored form.
fn filled(spec: &IndexSpec, keys: &[Vec<u8>]) -> Sorter {
    let sorter = Sorter::new(spec.clone(), BUDGET_BYTES, &std::env::temp_dir());
    let mut buffer = spec.new_buffer();
    for (chunk, keys) in keys.chunks(CHUNK_ROWS).enumerate() {
        for key in keys {
            spec.extract(|_| Some(key), &mut buffer)
                .expect("a short key");
        }
        sorter
            .add(&mut buffer, &tids(chunk * CHUNK_ROWS, keys.len()))
            .expect("room in memory");
    }
    sorter
}

pub(crate) fn benches(criterion: &mut Criterion) {
    let integers = index(&[(fixed(4), Order::Fixed(FixedOrder::Int4))]);
    let bytes = index(&[(varlena(), Order::Text(TextOrder::Bytes))]);
    let stored = |n: u64| (n as u32 & 0x7fff_ffff).to_le_bytes().to_vec();
    let random: Vec<Vec<u8>> = numbers().take(ROWS).map(stored).collect();
    let ascending: Vec<Vec<u8>> = (0..ROWS as u64).map(stored).collect();
    let few: Vec<Vec<u8>> = numbers().take(ROWS).map(|n| stored(n % 10)).collect();
    let texts: Vec<Vec<u8>> = numbers().take(ROWS).map(stored_text).collect();
    let mut cases = vec![
        ("integer, random", &integers, &random),
        ("integer, ascending", &integers, &ascending),
        ("integer, ten values", &integers, &few),
        ("text, C", &bytes, &texts),
    ];
    let by_locale = collate::locale("en_US.utf8")
        .map(|locale| index(&[(varlena(), Order::Text(TextOrder::Locale(locale)))]));
    if let Some(by_locale) = &by_locale {
        cases.push(("text, en_US", by_locale, &texts));
    }
    let mut group = criterion.benchmark_group("sort");
    group.throughput(Throughput::Elements(ROWS as u64));
    for (name, spec, keys) in &cases {
        group.bench_function(*name, |bencher| {
            bencher.iter_batched_ref(
                || filled(spec, keys),
                |sorter| sorter.finish().is_ok(),
                BatchSize::PerIteration,
            );
        });
    }
    group.finish();
    let mut group = criterion.benchmark_group("sort and build btree");
    group.throughput(Throughput::Elements(ROWS as u64));
    for (name, spec, keys) in &cases {
        group.bench_function(*name, |bencher| {
            bencher.iter_batched(
                || filled(spec, keys),
                |sorter| sorter.build(&mut Nowhere).expect("no key twice"),
                BatchSize::PerIteration,
            );
        });
    }
    group.finish();
}
