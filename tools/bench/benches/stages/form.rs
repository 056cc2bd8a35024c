//! From attributes to heap tuples.

use crate::input::{fixed, varlena};
use criterion::{Criterion, Throughput};
use pgformat::heap::tuple::TupleBuilder;
use pgformat::layout::AttrLen;
use std::hint::black_box;
use std::sync::Arc;

const ROWS: usize = 1_000;

pub(crate) fn benches(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("form tuples");
    group.throughput(Throughput::Elements(ROWS as u64));
    let wide = vec![fixed(8); 100];
    let mixed = [vec![fixed(4); 3], vec![varlena(); 15], vec![fixed(4); 3]].concat();
    for (name, layout, null_every) in [
        ("100 bigint", wide.clone(), None),
        ("100 bigint, every third null", wide, Some(3)),
        ("6 integer and 15 text", mixed, None),
    ] {
        let mut builder = TupleBuilder::new(Arc::from(&layout[..]));
        group.bench_function(name, |bencher| {
            bencher.iter(|| {
                builder.clear();
                for _ in 0..ROWS {
                    builder.begin_row();
                    for (i, attribute) in layout.iter().enumerate() {
                        match attribute.len {
                            _ if null_every.is_some_and(|n| i % n == 0) => builder.put_null(),
                            AttrLen::Fixed(4) => builder.put_fixed(black_box(&[1; 4])),
                            AttrLen::Fixed(_) => builder.put_fixed(black_box(&[1; 8])),
                            _ => builder.put_varlena(black_box(b"twenty bytes of text")),
                        }
                    }
                    builder.finish_row();
                }
                builder.arena().len()
            });
        });
    }
    group.finish();
}
