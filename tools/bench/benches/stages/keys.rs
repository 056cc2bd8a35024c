//! Taking the keys of an index from a row.

use crate::input::{fixed, index, numbers, varlena};
use criterion::{Criterion, Throughput};
use pgformat::datum::order::{FixedOrder, Order, TextOrder};
use pgformat::datum::varlena;
use pgpagewrite::sys::collate;

const ROWS: usize = 1_000;

/// A short text as it is stored.
pub(crate) fn stored_text(n: u64) -> Vec<u8> {
    let text = format!("ga bu zo meu {n:x}");
    let mut stored = vec![varlena::short_header(text.len() + 1)];
    stored.extend_from_slice(text.as_bytes());
    stored
}

pub(crate) fn benches(criterion: &mut Criterion) {
    let int4 = (fixed(4), Order::Fixed(FixedOrder::Int4));
    let bytes = (varlena(), Order::Text(TextOrder::Bytes));
    let mut cases = vec![
        ("integer", vec![int4.clone()]),
        ("integer, integer", vec![int4.clone(), int4.clone()]),
        ("text, C", vec![bytes.clone()]),
        ("integer, text", vec![int4, bytes]),
    ];
    if let Some(locale) = collate::locale("en_US.utf8") {
        let order = Order::Text(TextOrder::Locale(locale));
        cases.push(("text, en_US", vec![(varlena(), order)]));
    }
    let mut group = criterion.benchmark_group("extract keys");
    group.throughput(Throughput::Elements(ROWS as u64));
    let numbers: Vec<u64> = numbers().take(ROWS).collect();
    let integers: Vec<[u8; 4]> = numbers.iter().map(|n| (*n as u32).to_le_bytes()).collect();
    let texts: Vec<Vec<u8>> = numbers.iter().map(|n| stored_text(*n)).collect();
    for (name, keys) in cases {
        let spec = index(&keys);
        let is_text: Vec<bool> = keys.iter().map(|(l, _)| *l == varlena()).collect();
        let mut buffer = spec.new_buffer();
        group.bench_function(name, |bencher| {
            bencher.iter(|| {
                buffer.truncate(0);
                for (integer, text) in integers.iter().zip(&texts) {
                    let attribute =
                        |i: usize| Some(if is_text[i] { &text[..] } else { &integer[..] });
                    spec.extract(attribute, &mut buffer).expect("a short key");
                }
                buffer.len()
            });
        });
    }
    group.finish();
}
