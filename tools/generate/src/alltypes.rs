//! A row with every native type, for `fixtures/schemas/alltypes.sql`.
//!
//! Each value is an edge of its type now and then, null now and then, and otherwise random
//! within what every version from 14 to 18 accepts. Texts are short, long, compressible
//! or too long for a page.

use crate::random::{Random, decimal};
use std::io::Write;
use std::ops::Range;

/// Appends these rows, counted from 0.
pub(crate) fn rows(seed: u64, numbers: Range<u64>, out: &mut Vec<u8>) {
    for number in numbers {
        let r = &mut Random::new(seed.wrapping_add(0xa11), number);
        decimal(number + 1, out);
        for column in COLUMNS {
            out.push(b',');
            if r.once_in(9) {
                continue; // null
            }
            let mut value = Vec::new();
            column(r, &mut value);
            quoted(&value, out);
        }
        out.push(b'\n');
    }
}

/// Appends a CSV field, always in quotes, so that an empty value is not null.
fn quoted(value: &[u8], out: &mut Vec<u8>) {
    out.push(b'"');
    for &byte in value {
        if byte == b'"' {
            out.push(b'"');
        }
        out.push(byte);
    }
    out.push(b'"');
}

type Column = fn(&mut Random, &mut Vec<u8>);

/// The columns after `id`, in the schema's order.
const COLUMNS: [Column; 34] = [
    boolean,
    char,
    bpchar,
    varchar,
    text,
    name,
    bytea,
    int2,
    int4,
    int8,
    oid,
    float4,
    float8,
    numeric,
    numeric_12_3,
    date,
    time,
    time_0,
    timetz,
    timestamp,
    timestamp_3,
    timestamptz,
    interval,
    uuid,
    json,
    jsonb,
    external,
    main,
    plain,
    few,
    tag,
    tiny,
    note,
    jsonb_key,
];

macro_rules! put {
    ($out:expr, $($arg:tt)*) => {
        write!($out, $($arg)*).expect("writing into memory does not fail")
    };
}

/// An edge value once in six times.
fn edge(r: &mut Random, edges: &[&str], out: &mut Vec<u8>) -> bool {
    if r.once_in(6) {
        out.extend_from_slice(r.pick(edges).as_bytes());
        return true;
    }
    false
}

fn boolean(r: &mut Random, out: &mut Vec<u8>) {
    out.extend_from_slice(r.pick(&["t", "f", "true", "no", " ON ", "0"]).as_bytes());
}

fn char(r: &mut Random, out: &mut Vec<u8>) {
    out.push(b'!' + r.below(90) as u8);
    out.retain(|&b| b != b'\\');
}

fn bpchar(r: &mut Random, out: &mut Vec<u8>) {
    if !edge(r, &["", " ", "a         ", "éèêëàâäôöù", "  b"], out) {
        let len = r.between(1, 10);
        r.alphanumeric(len, out);
    }
}

fn varchar(r: &mut Random, out: &mut Vec<u8>) {
    if !edge(
        r,
        &["", "é", "line\nbreak", "comma, \"quote\"", "\\.", "日本語"],
        out,
    ) {
        let len = r.between(1, 40);
        r.alphanumeric(len, out);
    }
}

fn text(r: &mut Random, out: &mut Vec<u8>) {
    if edge(r, &["", "x", "a \u{1F418} b", "tab\there"], out) {
        return;
    }
    match r.below(20) {
        0 => {
            let len = r.between(2_000, 12_000);
            r.alphanumeric(len, out);
        }
        1 | 2 => {
            let len = r.between(1_500, 30_000);
            r.words(len, out);
        }
        3..6 => {
            let len = r.between(120, 1_900);
            r.words(len, out);
        }
        // Around the longest that a short header carries.
        6 | 7 => {
            let len = r.between(124, 129);
            r.alphanumeric(len, out);
        }
        _ => {
            let len = r.between(1, 60);
            r.alphanumeric(len, out);
        }
    }
}

fn name(r: &mut Random, out: &mut Vec<u8>) {
    if !edge(r, &["", "public", "Ünïcode"], out) {
        let len = r.between(1, 70); // longer ones are cut at 63 bytes
        r.alphanumeric(len, out);
    }
}

fn bytea(r: &mut Random, out: &mut Vec<u8>) {
    if edge(r, &["", "\\x", "\\x00", "\\000\\\\a", "\\xDEADbeef"], out) {
        return;
    }
    out.extend_from_slice(b"\\x");
    let len = if r.once_in(12) {
        r.between(1_000, 2_600)
    } else {
        r.between(1, 80)
    };
    for _ in 0..len {
        put!(out, "{:02x}", r.below(256));
    }
}

/// A signed number of any magnitude up to `bits` bits.
fn signed(r: &mut Random, bits: u64) -> i64 {
    let magnitude = (r.next() >> (64 - r.between(1, bits))) as i64;
    if r.once_in(2) { -magnitude } else { magnitude }
}

fn int2(r: &mut Random, out: &mut Vec<u8>) {
    if !edge(r, &["-32768", "32767", "0", " 7 ", "+5"], out) {
        put!(out, "{}", signed(r, 15));
    }
}

fn int4(r: &mut Random, out: &mut Vec<u8>) {
    if !edge(r, &["-2147483648", "2147483647", "0", "-0", "007"], out) {
        put!(out, "{}", signed(r, 31));
    }
}

fn int8(r: &mut Random, out: &mut Vec<u8>) {
    if !edge(
        r,
        &["-9223372036854775808", "9223372036854775807", "0"],
        out,
    ) {
        put!(out, "{}", signed(r, 63));
    }
}

fn oid(r: &mut Random, out: &mut Vec<u8>) {
    if !edge(r, &["0", "4294967295", "-1", "2147483648"], out) {
        put!(out, "{}", r.below(1 << 32));
    }
}

fn float4(r: &mut Random, out: &mut Vec<u8>) {
    const EDGES: [&str; 9] = [
        "NaN",
        "Infinity",
        "-Infinity",
        "0",
        "-0",
        "3.4028235e38",
        "1.1754944e-38",
        "1e-40",
        "0.1",
    ];
    if !edge(r, &EDGES, out) {
        put!(out, "{}e{}", signed(r, 24), r.below(40) as i64 - 20);
    }
}

fn float8(r: &mut Random, out: &mut Vec<u8>) {
    const EDGES: [&str; 9] = [
        "nan",
        "inf",
        "-inf",
        "0",
        "-0",
        "1.7976931348623157e308",
        "2.2250738585072014e-308",
        "1e-310",
        "0.1",
    ];
    if !edge(r, &EDGES, out) {
        put!(out, "{}e{}", signed(r, 60), r.below(100) as i64 - 60);
    }
}

fn numeric(r: &mut Random, out: &mut Vec<u8>) {
    const EDGES: [&str; 12] = [
        "NaN",
        "Infinity",
        "-Infinity",
        "0",
        "0.000",
        "-0",
        "1e100",
        "1e-100",
        "10000",
        "0.0001",
        "9999.9999",
        "123456789012345678901234567890.123456789012345678901234567890",
    ];
    if edge(r, &EDGES, out) {
        return;
    }
    if r.once_in(2) {
        out.push(b'-');
    }
    let (whole, fraction) = (r.between(1, 40), r.below(30));
    r.digits(whole, out);
    if fraction > 0 {
        out.push(b'.');
        r.digits(fraction, out);
    }
}

fn numeric_12_3(r: &mut Random, out: &mut Vec<u8>) {
    if !edge(
        r,
        &[
            "NaN",
            "999999999.999",
            "-999999999.9994",
            "0.0005",
            "0.00049",
            "1e8",
        ],
        out,
    ) {
        put!(out, "{}.", signed(r, 29));
        let fraction = r.between(1, 6);
        r.digits(fraction, out);
    }
}

fn date(r: &mut Random, out: &mut Vec<u8>) {
    const EDGES: [&str; 9] = [
        "4713-01-01 BC",
        "5874897-12-31",
        "infinity",
        "-infinity",
        "2000-02-29",
        "epoch",
        "Jan 8 1999",
        "19990108",
        "0001-12-31 BC",
    ];
    if !edge(r, &EDGES, out) {
        ymd(r, out);
    }
}

fn ymd(r: &mut Random, out: &mut Vec<u8>) {
    put!(
        out,
        "{:04}-{:02}-{:02}",
        r.between(1, 2200),
        r.between(1, 12),
        r.between(1, 28)
    );
}

fn hms(r: &mut Random, out: &mut Vec<u8>) {
    put!(
        out,
        "{:02}:{:02}:{:02}",
        r.below(24),
        r.below(60),
        r.below(60)
    );
    let fraction = r.below(7);
    if fraction > 0 {
        out.push(b'.');
        r.digits(fraction, out);
    }
}

fn time(r: &mut Random, out: &mut Vec<u8>) {
    if !edge(
        r,
        &[
            "00:00:00",
            "24:00:00",
            "23:59:60",
            "04:05 PM",
            "040506",
            "12:00:00.0000005",
        ],
        out,
    ) {
        hms(r, out);
    }
}

fn time_0(r: &mut Random, out: &mut Vec<u8>) {
    if !edge(r, &["23:59:59.5", "00:00:00.499999", "00:00:00.5"], out) {
        hms(r, out);
    }
}

fn timetz(r: &mut Random, out: &mut Vec<u8>) {
    if !edge(
        r,
        &[
            "00:00:00+15:59",
            "24:00:00-15:59",
            "04:05:06 PST",
            "04:05:06Z",
            "12:00+05:30:15",
        ],
        out,
    ) {
        hms(r, out);
        put!(out, "{:+03}", r.below(27) as i64 - 13);
    }
}

fn timestamp(r: &mut Random, out: &mut Vec<u8>) {
    const EDGES: [&str; 8] = [
        "4713-01-01 00:00:00 BC",
        "294276-12-31 23:59:59.999999",
        "infinity",
        "-infinity",
        "2000-01-01 00:00:00",
        "1999-01-08T04:05:06",
        "epoch",
        "Sat Jan 08 04:05:06 1999",
    ];
    if !edge(r, &EDGES, out) {
        ymd(r, out);
        out.push(b' ');
        hms(r, out);
    }
}

fn timestamp_3(r: &mut Random, out: &mut Vec<u8>) {
    if !edge(
        r,
        &["1999-12-31 23:59:59.9996", "1969-12-31 23:59:59.0005"],
        out,
    ) {
        ymd(r, out);
        out.push(b' ');
        hms(r, out);
    }
}

fn timestamptz(r: &mut Random, out: &mut Vec<u8>) {
    const EDGES: [&str; 8] = [
        "infinity",
        "-infinity",
        "4713-01-01 00:00:00+00 BC",
        "2021-03-14 02:30:00 America/New_York",
        "2021-11-07 01:30:00 America/New_York",
        "1999-01-08 04:05:06 PST",
        "2020-06-01 12:00:00 Europe/Paris",
        "1900-01-01 00:00:00 Asia/Kolkata",
    ];
    if !edge(r, &EDGES, out) {
        ymd(r, out);
        out.push(b' ');
        hms(r, out);
        put!(
            out,
            "{:+03}:{:02}",
            r.below(27) as i64 - 13,
            r.pick(&[&0, &30, &45])
        );
    }
}

fn interval(r: &mut Random, out: &mut Vec<u8>) {
    const EDGES: [&str; 8] = [
        "0",
        "178000000 years",
        "-178000000 years",
        "P1Y2M3DT4H5M6S",
        "1 year 2 mons -3 days 04:05:06.789",
        "@ 3 hours 2 mins ago",
        "1.5 months",
        "1-2 3 4:05:06",
    ];
    if !edge(r, &EDGES, out) {
        put!(
            out,
            "{} mons {} days {} hours {} secs",
            signed(r, 8),
            signed(r, 10),
            signed(r, 12),
            signed(r, 20)
        );
    }
}

fn uuid(r: &mut Random, out: &mut Vec<u8>) {
    const EDGES: [&str; 3] = [
        "00000000-0000-0000-0000-000000000000",
        "{FFFFFFFF-FFFF-FFFF-FFFF-FFFFFFFFFFFF}",
        "a0eebc999c0b4ef8bb6d6bb9bd380a11",
    ];
    if !edge(r, &EDGES, out) {
        let (a, b) = (r.next(), r.next());
        put!(
            out,
            "{:08x}-{:04x}-{:04x}-{:04x}-{:012x}",
            a >> 32,
            a >> 16 & 0xffff,
            a & 0xffff,
            b >> 48,
            b & 0xffff_ffff_ffff
        );
    }
}

/// A JSON value of a few levels.
fn document(r: &mut Random, depth: u64, out: &mut Vec<u8>) {
    match r.below(if depth < 4 { 9 } else { 6 }) {
        0 => out.extend_from_slice(b"null"),
        1 => out.extend_from_slice(r.pick(&["true", "false"]).as_bytes()),
        2 => put!(out, "{}", signed(r, 62)),
        3 => put!(
            out,
            "{}.{:03}e{}",
            signed(r, 20),
            r.below(1_000),
            r.below(9)
        ),
        4 => out.extend_from_slice(
            r.pick(&[
                r#""""#,
                r#""a\u00e9\n\"b\\""#,
                r#""\ud83d\udc18""#,
                r#""日本""#,
            ])
            .as_bytes(),
        ),
        5 => {
            out.push(b'"');
            let len = r.between(1, 30);
            r.alphanumeric(len, out);
            out.push(b'"');
        }
        6 | 7 => {
            out.push(b'{');
            for i in 0..r.below(7) {
                if i > 0 {
                    out.extend_from_slice(b", ");
                }
                // Short keys, so that some come twice.
                let len = r.between(1, 3);
                put!(out, "\"{}\": ", "kx".repeat(len as usize));
                document(r, depth + 1, out);
            }
            out.push(b'}');
        }
        _ => {
            out.push(b'[');
            for i in 0..r.below(6) {
                if i > 0 {
                    out.push(b',');
                }
                document(r, depth + 1, out);
            }
            out.push(b']');
        }
    }
}

fn json(r: &mut Random, out: &mut Vec<u8>) {
    if !edge(
        r,
        &["{}", "[]", " { \"a\" : 1 } ", "null", "\"\\u0000\""],
        out,
    ) {
        document(r, 0, out);
    }
}

fn jsonb(r: &mut Random, out: &mut Vec<u8>) {
    if edge(
        r,
        &[
            "{}",
            "[]",
            "{\"b\":1,\"a\":2,\"b\":3}",
            "null",
            "1e5",
            "1.50",
            "-0",
            "[[[]]]",
        ],
        out,
    ) {
        return;
    }
    if r.once_in(15) {
        // More children than one stride of offsets and lengths.
        out.push(b'[');
        for i in 0..r.between(30, 400) {
            if i > 0 {
                out.push(b',');
            }
            document(r, 4, out);
        }
        out.push(b']');
    } else {
        document(r, 0, out);
    }
}

fn external(r: &mut Random, out: &mut Vec<u8>) {
    let len = if r.once_in(15) {
        r.between(1_900, 9_000)
    } else {
        r.between(0, 50)
    };
    r.words(len, out);
}

fn main(r: &mut Random, out: &mut Vec<u8>) {
    let len = if r.once_in(15) {
        r.between(1_000, 7_000)
    } else {
        r.between(0, 50)
    };
    r.words(len, out);
}

fn plain(r: &mut Random, out: &mut Vec<u8>) {
    let len = r.between(0, 140);
    r.alphanumeric(len, out);
}

/// Few distinct values: posting lists.
fn few(r: &mut Random, out: &mut Vec<u8>) {
    put!(out, "{}", r.below(7));
}

/// Few distinct texts, some long: posting lists and suffix truncation.
fn tag(r: &mut Random, out: &mut Vec<u8>) {
    let number = r.below(60);
    let one = &mut Random::new(60, number);
    let len = one.between(1, 90);
    one.words(len, out);
    put!(out, "{number}");
}

fn tiny(r: &mut Random, out: &mut Vec<u8>) {
    put!(out, "{}", r.below(2));
}

/// Words that an index compresses when they are long.
fn note(r: &mut Random, out: &mut Vec<u8>) {
    let len = if r.once_in(10) {
        r.between(480, 2_600)
    } else {
        r.between(0, 130)
    };
    r.words(len, out);
}

/// jsonb short enough for an index.
fn jsonb_key(r: &mut Random, out: &mut Vec<u8>) {
    if !edge(r, &["{}", "[]", "null", "\"\"", "1.50", "1.5", "[[]]"], out) {
        document(r, 3, out);
    }
}
