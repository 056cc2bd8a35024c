//! Laying out heap pages, and their checksums.

use crate::input::fixed;
use criterion::{Criterion, Throughput};
use pgformat::heap::page::{HeapPageWriter, PageFill};
use pgformat::heap::tuple::TupleBuilder;
use pgformat::page::{PAGE_BYTES, Page};
use pgpagewrite::sys::simd;
use std::hint::black_box;
use std::sync::Arc;

pub(crate) fn benches(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("page");
    group.throughput(Throughput::Bytes(PAGE_BYTES as u64));
    let mut page: Page = [0; PAGE_BYTES];
    for columns in [1, 12, 75] {
        let mut builder = TupleBuilder::new(Arc::from(vec![fixed(8); columns]));
        builder.begin_row();
        for _ in 0..columns {
            builder.put_fixed(&[1; 8]);
        }
        let length = builder.finish_row().len;
        let tuple = builder.arena()[..length as usize].to_vec();
        let mut fill = PageFill::new(100);
        while fill.fits(length) {
            fill.add(length);
        }
        let tuples = fill.tuples();
        group.bench_function(format!("layout, {tuples} tuples"), |bencher| {
            bencher.iter(|| {
                let mut writer = HeapPageWriter::new(&mut page, 7);
                for _ in 0..tuples {
                    writer.put(black_box(&tuple));
                }
                writer.finish();
            });
        });
    }
    group.bench_function("checksum", |bencher| {
        bencher.iter(|| simd::page_checksum(black_box(&page), 7));
    });
    group.bench_function("checksum, portable", |bencher| {
        bencher.iter(|| pgformat::page::checksum::checksum(black_box(&page), 7));
    });
    group.finish();
}
