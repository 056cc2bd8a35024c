//! pglz: values that shrink, and values that are given up.

use criterion::{Criterion, Throughput};
use generate::Workload;
use pgformat::toast::pglz::Pglz;

pub(crate) fn benches(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("pglz");
    let csv = Workload::Wide { rows: 8 }.bytes();
    let lines = csv.split(|b| *b == b'\n').filter(|line| !line.is_empty());
    let (mut words, mut noise) = (Vec::new(), Vec::new());
    for (i, line) in lines.enumerate() {
        if i % 2 == 1 {
            words.push(line);
        } else {
            noise.push(line);
        }
    }
    let mut pglz = Pglz::new();
    let mut out = Vec::new();
    for (name, values) in [("words", words), ("noise", noise)] {
        let bytes: usize = values.iter().map(|value| value.len()).sum();
        group.throughput(Throughput::Bytes(bytes as u64));
        group.bench_function(name, |bencher| {
            bencher.iter(|| {
                out.clear();
                for value in &values {
                    pglz.compress(value, &mut out);
                }
                out.len()
            });
        });
    }
    group.finish();
}
