//! Finding delimiters, quotes and line ends in raw bytes.

use crate::input::Csv;
use criterion::{Criterion, Throughput};
use pgpagewrite::sys::delimiters::{Instructions, Scanner};

pub(crate) fn benches(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("scan");
    for csv in Csv::all() {
        let data = csv.chunk.data();
        group.throughput(Throughput::Bytes(data.len() as u64));
        let mut found = Vec::new();
        for (kind, instructions) in [
            ("", Instructions::detect()),
            (", portable", Instructions::Portable),
        ] {
            group.bench_function(format!("{}{kind}", csv.name), |bencher| {
                bencher.iter(|| {
                    found.clear();
                    let (dialect, delimiter) = (csv.format.dialect(), csv.format.delimiter);
                    Scanner::with_instructions(dialect, delimiter, instructions)
                        .scan(data, 0, &mut found);
                    found.len()
                });
            });
        }
    }
    group.finish();
}
