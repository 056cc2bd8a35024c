//! Every input function of the types that are built natively, against real servers: the stored
//! bytes, the text, and every word of the errors. (Dates and times have a test of their own; here
//! they only go through the table of types.)

mod binary;
mod corpus;
mod json;
mod made;
mod oracle;

use corpus::{Random, texts};
use oracle::{Outcome, assert_same, describe, of_ours, of_server};
use pgformat::datum::{float, jsonb, numeric, type_oid, varlena};
use std::cmp::Ordering;
use support::{Server, VERSIONS};

/// Tries the texts on every version, for every spelling of the type.
fn try_all(sql_types: &[&str], texts: &[String]) {
    for version in VERSIONS {
        let server = Server::start(version, &[]);
        for sql_type in sql_types {
            if version < 15 && (sql_type.contains('-') || *sql_type == "numeric(3,6)") {
                // Negative scales and those above precision came with 15.
                continue;
            }
            try_one(&server, sql_type, texts);
        }
    }
}

fn try_one(server: &Server, sql_type: &str, texts: &[String]) {
    let ty = describe(server, "postgres", sql_type);
    let compare = comparison(ty.oid);
    let theirs = of_server(server, &ty, texts, compare.is_some());
    let ours = of_ours(server, &ty, texts);
    assert_same(server, sql_type, texts, &ours, &theirs);
    if let Some(compare) = compare {
        assert_order(texts, &theirs, compare);
    }
}

/// Our order of stored values of a type, where this library has one.
/// How two stored values of a type compare.
type Comparison = fn(&[u8], &[u8]) -> Ordering;

fn comparison(type_oid: u32) -> Option<Comparison> {
    Some(match type_oid {
        type_oid::NUMERIC => |a, b| numeric::compare(varlena::payload(a), varlena::payload(b)),
        type_oid::JSONB => {
            |a, b| jsonb::compare(varlena::payload(a), varlena::payload(b), std::cmp::Ord::cmp)
        }
        type_oid::FLOAT4 => |a, b| {
            let read = |bytes: &[u8]| f32::from_le_bytes(bytes.try_into().unwrap());
            float::compare4(read(a), read(b))
        },
        type_oid::FLOAT8 => |a, b| {
            let read = |bytes: &[u8]| f64::from_le_bytes(bytes.try_into().unwrap());
            float::compare8(read(a), read(b))
        },
        _ => return None,
    })
}

/// Asserts that values whose ranks the server gave compare as their ranks do: neighbours, and
/// many pairs far apart.
fn assert_order(
    texts: &[String],
    theirs: &[(Outcome, Option<i64>)],
    compare: impl Fn(&[u8], &[u8]) -> Ordering,
) {
    let mut ranked: Vec<(i64, &[u8], &str)> = theirs
        .iter()
        .zip(texts)
        .filter_map(|((outcome, rank), text)| match outcome {
            Outcome::Stored { bytes, .. } => Some((rank.unwrap(), bytes.as_slice(), text.as_str())),
            Outcome::Refused { .. } => None,
        })
        .collect();
    ranked.sort_unstable();
    let mut random = Random::new(1);
    let neighbours: Vec<(usize, usize)> = (1..ranked.len()).map(|i| (i - 1, i)).collect();
    let pairs =
        (0..ranked.len() * 4).map(|_| (random.below(ranked.len()), random.below(ranked.len())));
    for (i, j) in neighbours.into_iter().chain(pairs) {
        let (a, b) = (&ranked[i], &ranked[j]);
        assert_eq!(compare(a.1, b.1), a.0.cmp(&b.0), "{:?} and {:?}", a.2, b.2);
        assert_eq!(compare(b.1, a.1), b.0.cmp(&a.0), "{:?} and {:?}", b.2, a.2);
    }
}

const INTEGERS: &[&str] = &[
    "",
    " ",
    "0",
    "-0",
    "+0",
    "1",
    "-1",
    "+1",
    " 12 ",
    "\t12\n",
    "12\u{b}",
    "\u{c}12\r",
    "1 2",
    "--1",
    "+-1",
    "- 1",
    "1.0",
    "1e3",
    "x",
    "12x",
    "x12",
    "32767",
    "32768",
    "-32768",
    "-32769",
    "32769x",
    "32768x",
    "-32769x",
    "2147483647",
    "2147483648",
    "-2147483648",
    "-2147483649",
    "2147483648x",
    "2147483649x",
    "2147483650x",
    "-2147483649x",
    "9223372036854775807",
    "9223372036854775808",
    "-9223372036854775808",
    "-9223372036854775809",
    "9223372036854775808x",
    "9223372036854775810x",
    "18446744073709551615",
    "18446744073709551616",
    "99999999999999999999999999",
    "99999999999999999999999999x",
    "0000000000000000000000000000000012",
    "4294967295",
    "4294967296",
    "-4294967295",
    "-4294967296",
    "-2147483648",
    "-3000000000",
    "0x1F",
    "0X1f",
    "-0x8000",
    "0x7FFF",
    "0x8000",
    "0x80000000",
    "-0x80000000",
    "0x7fffffff",
    "0xFFFFFFFF",
    "0x100000000",
    "0x8000000000000000",
    "-0x8000000000000000",
    "0x7fffffffffffffff",
    "0x",
    "0x_1",
    "0x_",
    "0o17",
    "0O17",
    "0o18",
    "0o100000",
    "0o77777",
    "0b101",
    "0B101",
    "0b102",
    "0b",
    "0o",
    "010",
    "08",
    "09",
    "1_000",
    "1__000",
    "_1",
    "1_",
    "1_000_",
    "1_x",
    "0b1_0",
    "0x1_F",
    "-_1",
    "+1_0",
    " 0x1F ",
    "0b1000000000000000",
    "0b111111111111111",
    "-0b1000000000000000",
    "٣",
    "1٣",
    "é",
    "1é",
    "12345678",
    "123456789",
    "1234567890123456",
    "12345678901234567",
    "-1234567890123456",
    "0xg",
    "00x1",
    "0 x1",
    "-0x1",
    "+0x1",
    "-0",
    "-00",
    "0e",
    "1a",
    "0a",
];
const INTEGER_PIECES: &[&str] = &[
    "0",
    "1",
    "2",
    "7",
    "8",
    "9",
    "12",
    "99",
    "327",
    "67",
    "68",
    "2147483",
    "647",
    "648",
    "649",
    "9223372036",
    "854775807",
    "854775808",
    "-",
    "+",
    " ",
    "\t",
    "\n",
    "_",
    "0x",
    "0X",
    "0o",
    "0b",
    "f",
    "F",
    "a",
    "x",
    ".",
    "e",
    "4294967",
    "295",
    "296",
    "-",
];

#[test]
fn integers_and_oids_are_read_as_the_server_reads_them() {
    let texts = texts(1, INTEGERS, INTEGER_PIECES, 3000);
    try_all(&["smallint", "integer", "bigint", "oid"], &texts);
}

#[test]
fn booleans_are_read_as_the_server_reads_them() {
    let picked = [
        "t",
        "f",
        "T",
        "F",
        "true",
        "false",
        "TRUE",
        "False",
        "tru",
        "fals",
        "yes",
        "no",
        "y",
        "n",
        "ye",
        "on",
        "off",
        "of",
        "o",
        "O",
        "ON",
        "oFF",
        "1",
        "0",
        "10",
        "01",
        "",
        " ",
        " t ",
        "\tfalse\n",
        "o ",
        " o",
        "truex",
        "true x",
        "yess",
        "noo",
        "onn",
        "offf",
        "2",
        "-1",
        "٣",
        "tt",
        "null",
        "1 ",
        " 0",
        "11",
        "o n",
        "of f",
        "\u{b}t\u{c}\r",
    ];
    let pieces = [
        "t", "r", "u", "e", "f", "a", "l", "s", "y", "n", "o", "1", "0", " ", "\t", "T", "O", "F",
        "true", "false", "yes", "no", "on", "off",
    ];
    try_all(&["boolean"], &texts(2, &picked, &pieces, 2000));
}

const CHARACTERS: &[&str] = &[
    "",
    " ",
    "a",
    "ab",
    "abc",
    "abcd",
    "abc ",
    "abc  ",
    "ab   ",
    "ab  x",
    "   ",
    "    ",
    "    x",
    "é",
    "éé",
    "ééé",
    "éééé",
    "ééé ",
    "ééé  é",
    "日本語",
    "日本語 ",
    "日本語x",
    "a\u{301}bc",
    "𝄞𝄞𝄞",
    "𝄞𝄞𝄞𝄞",
    "\t\t\t\t",
    "abc\n",
    "\\",
    "\\1",
    "\\101",
    "\\377",
    "\\400",
    "\\378",
    "\\1011",
    "\\000",
    "\\x41",
    "\\\\",
    "\\12",
    "\\12x",
    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaé",
    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa日本",
    "ééééééééééééééééééééééééééééééééé",
    "𝄞𝄞𝄞𝄞𝄞𝄞𝄞𝄞𝄞𝄞𝄞𝄞𝄞𝄞𝄞𝄞𝄞",
];

#[test]
fn character_types_are_read_as_the_server_reads_them() {
    let pieces = [
        "a",
        "b",
        " ",
        "  ",
        "é",
        "日",
        "𝄞",
        "\n",
        "\t",
        "\\",
        "1",
        "0",
        "3",
        "7",
        "8",
        "aaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
        "éééééééééé",
        "                      ",
    ];
    let mut texts = texts(3, CHARACTERS, &pieces, 2000);
    // Around the length where a header becomes long.
    texts.extend((120..132).map(|n| "x".repeat(n)));
    try_all(
        &[
            "text",
            "varchar",
            "varchar(1)",
            "varchar(3)",
            "varchar(60)",
            "bpchar",
            "char",
            "char(3)",
            "char(60)",
            "char(126)",
            "char(127)",
            "name",
            "\"char\"",
        ],
        &texts,
    );
}

#[test]
fn byteas_are_read_as_the_server_reads_them() {
    let picked = [
        "",
        "abc",
        "\\x",
        "\\x00",
        "\\xDEADbeef",
        "\\xdeadbee",
        "\\xde ad\tbe\nef\r",
        "\\xd eadbeef",
        "\\x g0",
        "\\xg0",
        "\\x0g",
        "\\x0é",
        "\\xé",
        "\\x日本",
        "\\x0𝄞",
        "\\X00",
        "\\x\u{b}00",
        "\\x0 ",
        "\\x 0",
        "\\x00 0",
        "\\000\\001\\377",
        "\\400",
        "\\08",
        "\\",
        "\\\\",
        "a\\\\b",
        "a\\",
        "\\12",
        "\\1234",
        "é",
        "\\é",
        "\\\\\\",
        "\\xx",
        "x",
        "\\x0x00",
        "abc\\x00",
        "\\x7f",
        "\\x0\u{7f}",
        "\\x\u{7f}0",
    ];
    let pieces = [
        "\\", "x", "0", "1", "3", "4", "7", "8", "a", "F", "g", " ", "\t", "\n", "é", "\\x",
        "\\000", "\\377", "\\\\", "00", "de", "AD", "日",
    ];
    let mut all = texts(4, &picked, &pieces, 3000);
    let hex = texts(5, &["\\x00ff"], &["00", "0a", "Ff", "9", " ", "e"], 500);
    all.extend(hex.into_iter().map(|text| format!("\\x{text}")));
    try_all(&["bytea"], &all);
}

#[test]
fn uuids_are_read_as_the_server_reads_them() {
    let picked = [
        "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11",
        "A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11",
        "{a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11}",
        "a0eebc999c0b4ef8bb6d6bb9bd380a11",
        "a0ee-bc99-9c0b-4ef8-bb6d-6bb9-bd38-0a11",
        "{a0eebc99-9c0b4ef8-bb6d6bb9-bd380a11}",
        "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a1",
        "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a111",
        "{a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11",
        "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11}",
        "a0-eebc99-9c0b-4ef8-bb6d-6bb9bd380a11",
        "a0eebc99--9c0b-4ef8-bb6d-6bb9bd380a11",
        " a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11",
        "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11 ",
        "",
        "{}",
        "{",
        "-",
        "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11-",
        "g0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11",
        "a0eebc99x9c0b-4ef8-bb6d-6bb9bd380a11",
        "é0eebc99-9c0b-4ef8-bb6d-6bb9bd380a1",
        "00000000-0000-0000-0000-000000000000",
        "ffffffff-ffff-ffff-ffff-ffffffffffff",
    ];
    let pieces = [
        "0", "a", "F", "-", "{", "}", "g", " ", "12", "é", "4ef8", "bb6d-",
    ];
    try_all(&["uuid"], &texts(6, &picked, &pieces, 3000));
}

const FLOATS: &[&str] = &[
    "",
    " ",
    "0",
    "-0",
    "+0",
    "1",
    "-1.5",
    "+1.5",
    ".5",
    "5.",
    "-.5",
    "+.",
    ".",
    "-",
    "1e5",
    "1E5",
    "1e+5",
    "1e-5",
    "1e",
    "1e+",
    "1.e5",
    ".5e1",
    ".e5",
    "e5",
    " 1 ",
    "\t1.5\n",
    "1 x",
    "1x",
    "- 1",
    "1,5",
    "1_000",
    "NaN",
    "nan",
    "-nan",
    "+nan",
    "nanx",
    "nan(",
    "nan()",
    "nan(12)",
    "nan(0x12)",
    "nan(0)",
    "nan(x)",
    "nan(a_b)",
    "nan(é)",
    "nan(12",
    "nan(12)x",
    "nan(077)",
    "nan(08)",
    "nan(99999999999999999999999)",
    "-nan(5)",
    "nan(0x)",
    "nan(0xffffffffffffffff)",
    "nan( 1)",
    "nan(-1)",
    "inf",
    "-inf",
    "+inf",
    "Infinity",
    "-INFINITY",
    "+infinity",
    "infinit",
    "infx",
    "infinityx",
    "inf ",
    " inf",
    "i",
    "1e400",
    "-1e400",
    "1e400x",
    "1e308",
    "1.8e308",
    "1.7976931348623157e308",
    "1.7976931348623159e308",
    "1e-400",
    "-1e-400",
    "0e-400",
    "0e400",
    "0e99999999999999999999",
    "1e99999999999999999999",
    "1e-99999999999999999999",
    "5e-324",
    "4e-324",
    "2e-324",
    "2.4703282292062327e-324",
    "2.4703282292062328e-324",
    "1e-310",
    "2.2250738585072011e-308",
    "2.2250738585072014e-308",
    "3.4e38",
    "3.4028235e38",
    "3.4028236e38",
    "3.4028235677973366e38",
    "1e39",
    "1e-45",
    "7e-46",
    "7.1e-46",
    "1.4e-45",
    "1.1754943e-38",
    "1e-40",
    "0.1",
    "0.2",
    "0.30000000000000004",
    "16777217",
    "16777219",
    "33554433",
    "9007199254740993",
    "9007199254740992.5",
    "123456789012345678",
    "0.000000000000000000000000000001",
    "1.0000000000000001",
    "1.0000000000000002",
    "8.5",
    "8.25",
    "123.456",
    "99999999999999.99",
    "1234567.1",
    "12345678.1",
    "1e22",
    "1e23",
    "1e15",
    "1e16",
    "123456",
    "1234567",
    "0.0001",
    "0.00001",
    "100000",
    "1000000",
    "1.00000005960464477539",
    "1.000000059604644775390625",
    "1.0000000596046447753906251",
    "0x1p3",
    "0x1P-3",
    "0x.8",
    "0x.8p1",
    "0x1.8",
    "0x1.",
    "0x",
    "0x.",
    "0xp1",
    "0x1p",
    "0x1p+",
    "0x1.fffffffffffff8p0",
    "0x1.fffffffffffff7fp0",
    "0x1.fffffffffffffp1023",
    "0x1.fffffffffffff8p1023",
    "0x1.fffffffffffff7p1023",
    "0x1p1024",
    "0x1p-1074",
    "0x1p-1075",
    "0x1.8p-1075",
    "0x0.1p-1071",
    "0x1.000001p-1074",
    "0x1p99999999999999999999",
    "0x1p-99999999999999999999",
    "0x0p99999",
    "0x1.fffffep127",
    "0x1.ffffffp127",
    "0x1.fffffefp127",
    "0x1p-149",
    "0x1p-150",
    "0x1.8p-150",
    "0x1.000001p0",
    "0x1.0000018p0",
    "-0x1p0",
    "+0x1p0",
    "0x1g",
    "0X1F",
    "0x123456789abcdef012345",
    "0x00000000000000000000001p0",
    "0x0.00000000000000000000001p0",
    "0x1.00000000000008p0",
    "0x1.000000000000080000000001p0",
    "0x1.00000000000018p0",
    "٣",
    "1٣",
    "1e400 ",
    "1e-400x",
    "2.2250738585072012e-308",
    "6.9e-46",
    "0x0.8p-149",
    "0x0.80001p-149",
    "0x0.8p-1074",
    "0x0.8000000001p-1074",
];

#[test]
fn floats_are_read_and_ordered_as_by_the_server() {
    let pieces = [
        "0",
        "1",
        "2",
        "9",
        "5",
        "00",
        "123",
        "4567",
        "89012345",
        ".",
        ".",
        "e",
        "E",
        "-",
        "+",
        "e5",
        "e-5",
        "e30",
        "e-30",
        "e300",
        "e-300",
        "e-45",
        "e38",
        "0x",
        "p",
        "p3",
        "p-120",
        "f",
        "A",
        " ",
        "nan",
        "inf",
        "x",
        "_",
        "999999999999",
    ];
    let mut all = texts(7, FLOATS, &pieces, 3000);
    let mut random = Random::new(8);
    // Decimals and binary patterns of every magnitude, in shortest form and with digits more.
    for _ in 0..1500 {
        let bits = random.next();
        let double = f64::from_bits(bits);
        let float = f32::from_bits(bits as u32);
        if double.is_finite() && float.is_finite() {
            all.push(format!("{double:e}"));
            all.push(format!("{float:e}"));
            all.push(format!("{double:.25e}"));
            all.push(format!("{}", (bits >> 20) as f64 / 1024.0));
        }
        let (a, b) = (1 + random.below(9), 1 + random.below(9));
        all.push(format!("{}.{}", random.digits(a), random.digits(b)));
        let exponent = random.below(80) as i32 - 40;
        all.push(format!(
            "-{}.{}e{exponent}",
            random.digits(a),
            random.digits(b)
        ));
    }
    // Powers of two: shortest digits on the edge of the interval.
    for exponent in -1074..=1023 {
        all.push(format!("{:e}", f64::powi(2.0, exponent)));
    }
    for exponent in -149..=127 {
        all.push(format!("{:e}", f32::powi(2.0, exponent)));
    }
    try_all(&["real", "double precision"], &all);
}

const NUMERICS: &[&str] = &[
    "",
    " ",
    "0",
    "-0",
    "+0",
    "0.0",
    "-0.00",
    "00.00",
    "1",
    "-1",
    "+1",
    "1.",
    ".1",
    "-.1",
    ".",
    "-.",
    "-",
    "+",
    "1.5",
    "-1.50",
    "001.500",
    "12345.6789",
    "123456789.123456789",
    "1 ",
    " 1",
    "\t1\n",
    "1 2",
    "1.2.3",
    "1..2",
    "1e5",
    "1E5",
    "1e+5",
    "1e-5",
    "1e",
    "1e+",
    "1e 5",
    "1e\t-5",
    "1e+ 5",
    "1e5x",
    "1e5.5",
    "1.5e3",
    "1.5e1",
    "1.50e-3",
    ".5e1",
    "e5",
    "0e5",
    "0e-5",
    "0.00e3",
    "1e-20",
    "NaN",
    "nan",
    "-nan",
    "+nan",
    "nan ",
    "nanx",
    "Infinity",
    "-Infinity",
    "+Infinity",
    "inf",
    "-inf",
    "+inf",
    "infinityx",
    "infx",
    "infinit",
    "- inf",
    "999.99",
    "999.994",
    "999.995",
    "999.996",
    "99.999",
    "9.995",
    "0.995",
    "0.994999",
    "0.005",
    "0.004999",
    "-999.995",
    "1000",
    "99999",
    "99500",
    "99499",
    "100000",
    "-99999",
    "500",
    "499",
    "5000",
    "4999",
    "0.000001",
    "0.0009994",
    "0.0009995",
    "0.00099949",
    "0.001",
    "0.0005",
    "0.00000049",
    "0.0000005",
    "9999.9999",
    "9999.99995",
    "99999999.99999999",
    "9999999999999999",
    "99999999999999999",
    "9999999999999999.9999999999999999",
    "1234567890123456.1234567890123456",
    "12345678901234567.1",
    "1.12345678901234567",
    "0.0000000000000001",
    "0.00000000000000001",
    "10000",
    "100000000",
    "1000000000000",
    "10000000000000000",
    "0.0001",
    "0.00010",
    "0.00001",
    "0.00000001",
    "0x1F",
    "0X1f",
    "-0x1F",
    "+0x1F",
    "0o17",
    "0b101",
    "0x",
    "0xg",
    "0x1F.5",
    "0x1Fe1",
    "0x_1F",
    "0x1__F",
    "0x1F_",
    "0xFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF",
    "0x0",
    "0x0000000000000",
    "0o18",
    "0b12",
    "0o777777777777777777777777777777",
    "1_000",
    "1__000",
    "_1",
    "1_",
    "1_.5",
    "1._5",
    "1.5_5",
    "1.5_",
    "1e1_0",
    "1e_1",
    "1e1_",
    "1_000.000_1e-1_0",
    "0_1",
    "-0x0",
    "1e131071",
    "1e131072",
    "9.9e131071",
    "1e131070",
    "1e-16383",
    "1e-16384",
    "1e-16382",
    "1e1073741822",
    "1e1073741823",
    "1e1073741824",
    "1e-1073741822",
    "1e-1073741823",
    "1e-1073741824",
    "1e99999999999999999999",
    "1e-99999999999999999999",
    "1e99999999999999999999x",
    "0e1073741822",
    "0e-1073741822",
    "1e-63",
    "1e-64",
    "1e252",
    "1e255",
    "1e256",
    "1e-252",
    "1e-256",
    "1e-260",
    "12.34e100",
    "1.5e-100",
    "٣",
    "1٣",
    "é",
    "1é",
    "1,5",
    "$1",
    "--1",
    "+-1",
    "-+1",
    "1e--5",
    "0.1e1",
    "10e-1",
    "100e-4",
    "123e-2",
    "0.00012e4",
    "5e-1",
    "4e-1",
    "15e-1",
    "25e-1",
];
const NUMERIC_PIECES: &[&str] = &[
    "0", "1", "4", "5", "9", "00", "0000", "99", "9999", "4999", "5000", "12345", "99999999", ".",
    ".", "-", "+", "e", "e1", "e-1", "e5", "e-7", "e20", "e-20", "E300", " ", "_", "0x", "0b1",
    "F", "nan", "inf", "x",
];

#[test]
fn numerics_are_read_and_ordered_as_by_the_server() {
    let mut all = texts(9, NUMERICS, NUMERIC_PIECES, 3000);
    let mut random = Random::new(10);
    for _ in 0..1500 {
        let (a, b) = (random.below(22), random.below(22));
        all.push(format!("{}.{}", random.digits(a), random.digits(b)));
        let exponent = random.below(60) as i32 - 30;
        all.push(format!(
            "-{}.{}e{exponent}",
            random.digits(a),
            random.digits(b)
        ));
        all.push(random.digits(1 + a));
        let zeros = "0".repeat(b);
        all.push(format!("0.{zeros}{}", random.digits(1 + a % 5)));
        all.push(format!("{}{zeros}", random.digits(1 + a % 5)));
    }
    // Long numbers, just above and below what fits.
    for len in [100, 400, 1000] {
        all.push(random.digits(len));
        all.push(format!("0.{}", random.digits(len)));
        all.push(format!("0x{}", random.digits(len)));
        all.push(format!("{}.{}", "9".repeat(len / 2), "9".repeat(len / 2)));
    }
    try_all(
        &[
            "numeric",
            "numeric(5,2)",
            "numeric(3)",
            "numeric(4,4)",
            "numeric(38,10)",
            "numeric(1000,500)",
            "numeric(3,-2)",
            "numeric(5,-6)",
            "numeric(3,6)",
        ],
        &all,
    );
}

#[test]
fn numbers_at_the_edge_of_the_numeric_format_are_as_the_server_says() {
    // Too long to lie in line: the server's digest stands for the bytes.
    for version in [14, 15, 16, 18] {
        let server = Server::start(version, &[]);
        let ty = describe(&server, "postgres", "numeric");
        let texts: Vec<String> = [
            "9".repeat(131_072),
            "9".repeat(131_073),
            format!("0.{}", "1".repeat(16_383)),
            format!("0.{}", "1".repeat(16_384)),
            format!("{}.{}", "7".repeat(131_072), "3".repeat(16_383)),
            format!("0x{}", "F".repeat(108_800)),
            format!("0x{}", "F".repeat(108_900)),
            format!("0x{}x", "F".repeat(120_000)),
        ]
        .into();
        let mut client = server.connect("postgres");
        let ours = of_ours(&server, &ty, &texts);
        for (text, our) in texts.iter().zip(ours) {
            let start = &text[..8];
            let theirs = client.query_one(
                "SELECT md5(numeric_send(numeric_in(textout($1), 0, -1)))",
                &[text],
            );
            match (our, theirs) {
                (Outcome::Stored { bytes, .. }, Ok(row)) => {
                    let ours = client
                        .query_one("SELECT md5($1::bytea)", &[&as_sent(&bytes)])
                        .unwrap();
                    assert_eq!(ours.get::<_, String>(0), row.get::<_, String>(0), "{start}");
                }
                (
                    Outcome::Refused {
                        sqlstate, message, ..
                    },
                    Err(e),
                ) => {
                    let db = e.as_db_error().unwrap();
                    assert_eq!((&*sqlstate, &*message), (db.code().code(), db.message()));
                }
                (our, their) => panic!("{version} {start}: ours {our:.60?}, theirs {their:.60?}"),
            }
        }
    }
}

/// A long stored numeric in the form that numeric_send gives.
fn as_sent(stored: &[u8]) -> Vec<u8> {
    let payload = varlena::payload(stored);
    let word = u16::from_le_bytes([payload[0], payload[1]]);
    assert!(word & 0x8000 == 0, "the long form was expected");
    let mut sent = Vec::new();
    sent.extend((((payload.len() - 4) / 2) as u16).to_be_bytes());
    sent.extend([payload[3], payload[2]]);
    sent.extend((word & 0x4000).to_be_bytes());
    sent.extend((word & 0x3fff).to_be_bytes());
    for digit in payload[4..].chunks(2) {
        sent.extend([digit[1], digit[0]]);
    }
    sent
}

#[test]
fn in_a_database_of_a_single_byte_encoding_a_character_is_a_byte() {
    let texts: Vec<String> = [
        "",
        "a",
        "é",
        "éé",
        "ééé",
        "ééé ",
        "éééé",
        "ééé é",
        "\u{80}\u{ff}\u{a0}",
        "\u{a0}",
        "ééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééé",
    ]
    .map(str::to_owned)
    .into();
    for version in VERSIONS {
        let server = Server::start(version, &[]);
        for encoding in ["LATIN1", "SQL_ASCII"] {
            create_database(&server, encoding);
            for sql_type in [
                "varchar(3)",
                "char(3)",
                "char(4)",
                "name",
                "\"char\"",
                "text",
            ] {
                let ty = describe(&server, encoding, sql_type);
                let theirs = of_server(&server, &ty, &texts, false);
                let ours = of_ours(&server, &ty, &texts);
                for ((text, our), (their, _)) in texts.iter().zip(ours).zip(theirs) {
                    match (our, their) {
                        (
                            Outcome::Stored { bytes: ours, .. },
                            Outcome::Stored { bytes: theirs, .. },
                        ) => assert_eq!(ours, theirs, "{text} in {encoding} on {version}"),
                        (our, their) => {
                            assert_eq!(our, their, "{text} in {encoding} on {version}");
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn escapes_in_jsonb_become_characters_of_the_database_or_are_refused() {
    let texts: Vec<String> = [
        r#""\u0041""#,
        r#""\u00e9""#,
        r#""\u4e2d""#,
        r#""\u0416""#,
        r#""\u20ac""#,
        r#""\u0080""#,
        r#""\ud834\udd1e""#,
        r#""\u0000""#,
        r#""\u00a0""#,
        r#"{"\u00e9":1,"a":2}"#,
        r#"["\x"]"#,
    ]
    .map(str::to_owned)
    .into();
    for version in VERSIONS {
        let server = Server::start(version, &[]);
        for encoding in ["LATIN1", "SQL_ASCII", "WIN1251", "LATIN9"] {
            create_database(&server, encoding);
            let ty = describe(&server, encoding, "jsonb");
            let theirs = of_server(&server, &ty, &texts, false);
            let ours = of_ours(&server, &ty, &texts);
            for ((text, our), (their, _)) in texts.iter().zip(ours).zip(theirs) {
                match (our, their) {
                    (
                        Outcome::Stored { bytes: ours, .. },
                        Outcome::Stored { bytes: theirs, .. },
                    ) => assert_eq!(ours, theirs, "{text} in {encoding} on {version}"),
                    (our, their) => assert_eq!(our, their, "{text} in {encoding} on {version}"),
                }
            }
        }
    }
}

fn create_database(server: &Server, encoding: &str) {
    server.execute(
        "postgres",
        &format!(
            "CREATE DATABASE \"{encoding}\" TEMPLATE template0 ENCODING '{encoding}'
               LC_COLLATE 'C' LC_CTYPE 'C'"
        ),
    );
}

#[test]
fn documents_nest_as_deep_as_the_server_can_read_them() {
    for version in VERSIONS {
        let server = Server::start(version, &[]);
        for sql_type in ["json", "jsonb"] {
            let ty = describe(&server, "postgres", sql_type);
            let nested = |n: usize| {
                [
                    format!("{}{}", "[".repeat(n), "]".repeat(n)),
                    format!("{}1{}", "{\"\":".repeat(n), "}".repeat(n)),
                ]
            };
            // Within the limit the values are too long to lie in line.
            let mut client = server.connect("postgres");
            for (text, ours) in nested(13_000)
                .iter()
                .zip(of_ours(&server, &ty, &nested(13_000)))
            {
                let Outcome::Stored { text: ours, .. } = ours else {
                    panic!("{ours:?}");
                };
                let theirs = client
                    .query_one(&format!("SELECT $1::text::{sql_type}::text"), &[text])
                    .unwrap();
                assert!(
                    ours == theirs.get::<_, String>(0),
                    "{sql_type} on {version}"
                );
            }
            let texts = nested(25_000);
            let theirs = of_server(&server, &ty, &texts, false);
            assert_same(
                &server,
                sql_type,
                &texts,
                &of_ours(&server, &ty, &texts),
                &theirs,
            );
        }
    }
}

#[test]
fn dates_and_times_go_through_the_same_table() {
    let texts: Vec<String> = [
        "2001-12-31",
        "2001-12-31 04:05:06.789",
        "2001-12-31 04:05:06.789+01",
        "04:05:06.789",
        "04:05:06.789+01",
        "1 day 02:03:04.5678",
        "infinity",
        "epoch",
        "0044-03-15 BC",
        "",
        "x",
        "2001-02-30",
        "25:00:00",
        "2001-12-31 23:59:59.9999999",
    ]
    .map(str::to_owned)
    .into();
    try_all(
        &[
            "date",
            "time",
            "time(2)",
            "timetz",
            "timetz(2)",
            "timestamp",
            "timestamp(3)",
            "timestamptz",
            "timestamptz(3)",
            "interval",
            "interval(2)",
            "interval day to minute",
        ],
        &texts,
    );
}
