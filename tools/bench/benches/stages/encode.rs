//! From fields to attributes, type by type.

use crate::input::{fixed, numbers, varlena, version};
use criterion::{Criterion, Throughput};
use pgformat::datum::type_oid;
use pgformat::heap::tuple::TupleBuilder;
use pgformat::ids::Oid;
use pgformat::layout::AttributeLayout;
use pgpagewrite::record::Encoding;
use pgpagewrite::types::datetime::{DateOrder, DateTimeSettings, IntervalStyle, ZoneDb};
use pgpagewrite::types::{Encoder, Scratch, Settings};
use std::fs;
use std::sync::Arc;

const VALUES: usize = 1_000;

/// A type, its modifier and layout, and how to make a field of a number.
type Case = (&'static str, Oid, i32, AttributeLayout, fn(u64) -> String);

fn cases() -> [Case; 13] {
    [
        ("integer", type_oid::INT4, -1, fixed(4), |n| {
            (n as i32).to_string()
        }),
        ("bigint", type_oid::INT8, -1, fixed(8), |n| {
            (n * 1_000).to_string()
        }),
        (
            "numeric(12,2)",
            type_oid::NUMERIC,
            786_438,
            varlena(),
            |n| format!("{}.{:02}", n % 100_000, n % 100),
        ),
        ("numeric", type_oid::NUMERIC, -1, varlena(), |n| {
            format!("-{n}.{n}")
        }),
        ("double precision", type_oid::FLOAT8, -1, fixed(8), |n| {
            (n as f64 / 1e7).to_string()
        }),
        ("text", type_oid::TEXT, -1, varlena(), |n| {
            "a line of words, ".repeat(n as usize % 8)
        }),
        ("varchar(16)", type_oid::VARCHAR, 20, varlena(), |n| {
            format!("name {}", n % 1_000_000)
        }),
        ("char(16)", type_oid::BPCHAR, 20, varlena(), |n| {
            (n % 10_000_000).to_string()
        }),
        ("date", type_oid::DATE, -1, fixed(4), |n| {
            format!("{}-{:02}-{:02}", 1992 + n % 7, n % 12 + 1, n % 28 + 1)
        }),
        ("timestamp", type_oid::TIMESTAMP, -1, fixed(8), |n| {
            format!(
                "2024-{:02}-{:02} {:02}:59:01",
                n % 12 + 1,
                n % 28 + 1,
                n % 24
            )
        }),
        ("uuid", type_oid::UUID, -1, uuid(), |n| {
            let n = format!("{n:032x}");
            [&n[..8], &n[8..12], &n[12..16], &n[16..20], &n[20..]].join("-")
        }),
        ("bytea", type_oid::BYTEA, -1, varlena(), |n| {
            format!("\\x{n:032x}")
        }),
        ("jsonb", type_oid::JSONB, -1, varlena(), |n| {
            format!("{{\"id\": {n}, \"tags\": [\"a\", true, null], \"name\": \"n {n}\"}}")
        }),
    ]
}

fn uuid() -> AttributeLayout {
    AttributeLayout {
        align: 1,
        ..fixed(16)
    }
}

fn settings() -> Settings {
    // The fields name no zone: a database of zones with nothing in it will do.
    let share = tempfile::tempdir().expect("a directory");
    for (dir, file) in [("timezone", "UTC"), ("timezonesets", "Default")] {
        fs::create_dir(share.path().join(dir)).expect("a directory");
        fs::write(share.path().join(dir).join(file), "").expect("a file");
    }
    let zones = ZoneDb::open(share.path(), "Default").expect("zones");
    let zone = zones.zone("GMT").expect("a zone that is always there");
    Settings {
        version: version(),
        encoding: Encoding::Utf8,
        array_nulls: true,
        datetime: DateTimeSettings::new(
            DateOrder::from_date_style("ISO, MDY").expect("a date style"),
            IntervalStyle::from_setting("postgres").expect("an interval style"),
            zone,
            Arc::new(zones),
            0,
            version(),
        ),
    }
}

pub(crate) fn benches(criterion: &mut Criterion) {
    let settings = settings();
    let mut scratch = Scratch::new();
    let mut group = criterion.benchmark_group("encode");
    group.throughput(Throughput::Elements(VALUES as u64));
    for (name, type_oid, typmod, layout, make) in cases() {
        // Fields stand within their data, as in a chunk of input.
        let mut data = String::new();
        let mut fields = Vec::new();
        for field in numbers().take(VALUES).map(make) {
            fields.push(data.len()..data.len() + field.len());
            data.push_str(&field);
            data.push('|');
        }
        let encoder = Encoder::resolve(type_oid, typmod, &settings).expect("a native type");
        let mut builder = TupleBuilder::new(Arc::from([layout]));
        group.bench_function(name, |bencher| {
            bencher.iter(|| {
                builder.clear();
                for field in &fields {
                    builder.begin_row();
                    let (data, field) = (data.as_bytes(), field.clone());
                    encoder
                        .encode_at(data, field, &mut scratch, &settings, &mut builder)
                        .expect("a good field");
                    builder.finish_row();
                }
                builder.arena().len()
            });
        });
    }
    group.finish();
}
