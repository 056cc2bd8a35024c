//! Which page each tuple goes to: the one step that workers take turns at.

use crate::input::numbers;
use criterion::{Criterion, Throughput};
use pgformat::heap::page::PageFill;
use pgformat::ids::Tid;

const TUPLES: usize = 10_000;

pub(crate) fn benches(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("place");
    group.throughput(Throughput::Elements(TUPLES as u64));
    for (name, least, most) in [("short tuples", 32, 48), ("long tuples", 500, 700)] {
        let lengths: Vec<u32> = numbers()
            .take(TUPLES)
            .map(|n| least + n as u32 % (most - least))
            .collect();
        let mut tids = Vec::with_capacity(TUPLES);
        group.bench_function(name, |bencher| {
            bencher.iter(|| {
                tids.clear();
                let mut fill = PageFill::new(100);
                let mut block = 0;
                for &length in &lengths {
                    if !fill.fits(length) {
                        block += 1;
                        fill.reset();
                    }
                    let offset = fill.add(length);
                    tids.push(Tid { block, offset });
                }
                block
            });
        });
    }
    group.finish();
}
