//! From the positions of delimiters to records and their fields.

use crate::input::Csv;
use criterion::{Criterion, Throughput};
use pgpagewrite::record::ChunkReader;

pub(crate) fn benches(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("read records");
    for csv in Csv::all() {
        let mut reader = ChunkReader::new(&csv.chunk, &csv.format);
        while reader.next().expect("good records").is_some() {}
        group.throughput(Throughput::Elements(reader.records()));
        group.bench_function(csv.name, |bencher| {
            bencher.iter(|| {
                let mut reader = ChunkReader::new(&csv.chunk, &csv.format);
                let mut bytes = 0;
                while let Ok(Some(record)) = reader.next() {
                    for i in 0..record.len() {
                        bytes += record.field(i).map_or(0, <[u8]>::len);
                    }
                }
                bytes
            });
        });
    }
    group.finish();
}
