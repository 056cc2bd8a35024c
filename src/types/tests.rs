//! Layouts stated as literals, and properties that hold for any value. What the servers say of
//! thousands of texts is asked in `tests/types_input`.

use super::{Encoder, Scratch, Settings, datetime};
use super::{boolean, bytea, character, float, integer, json, jsonb, numeric, uuid};
use crate::error::ValueError;
use crate::record::Encoding;
use pgformat::datum::{jsonb as stored_jsonb, numeric as stored_numeric, type_oid};
use pgformat::heap::tuple::TupleBuilder;
use pgformat::ids::Oid;
use pgformat::layout::{AttrLen, AttributeLayout, Compression, Storage};
use pgformat::version::MajorVersion;
use proptest::prelude::*;

fn version(number: u32) -> MajorVersion {
    MajorVersion::from_version_num(number * 10_000).unwrap()
}

fn numeric_at(number: u32, text: &str, typmod: i32) -> Result<Vec<u8>, Box<ValueError>> {
    let typmod = numeric::Typmod::new(typmod);
    let mut buffers = numeric::Buffers::default();
    let slow = numeric::numeric_in(text.as_bytes(), typmod, version(number), &mut buffers);
    let slow = slow.map(<[u8]>::to_vec);
    if let Some(plain) = numeric::plain(text.as_bytes(), typmod) {
        assert_eq!(slow.as_deref(), Ok(plain.as_bytes()), "{text}");
    }
    slow
}

fn numeric(text: &str) -> Vec<u8> {
    numeric_at(15, text, -1).unwrap()
}

fn settings() -> Settings {
    Settings {
        version: version(15),
        encoding: Encoding::Utf8,
        array_nulls: true,
        datetime: datetime::tests::settings(15),
    }
}

/// A builder of rows of one column, the first of which has begun.
fn one_attribute(type_oid: Oid) -> TupleBuilder {
    let (len, align, storage) = match type_oid {
        type_oid::INT4 => (AttrLen::Fixed(4), 4, Storage::Plain),
        type_oid::INT8 => (AttrLen::Fixed(8), 8, Storage::Plain),
        _ => (AttrLen::Varlena, 4, Storage::Extended),
    };
    let mut builder = TupleBuilder::new(
        [AttributeLayout {
            len,
            align,
            by_value: storage == Storage::Plain,
            storage,
            compression: Compression::Pglz,
        }]
        .into(),
    );
    builder.begin_row();
    builder
}

/// The modifier of numeric(precision, scale).
fn typmod(precision: i32, scale: i32) -> i32 {
    (precision << 16 | scale & 0x7ff) + 4
}

fn jsonb(text: &str) -> Result<Vec<u8>, Box<ValueError>> {
    let mut buffers = jsonb::Buffers::default();
    jsonb::jsonb_in(text.as_bytes(), version(15), Encoding::Utf8, &mut buffers).map(<[u8]>::to_vec)
}

fn detail(error: ValueError) -> String {
    error.detail.unwrap()
}

#[test]
fn a_numeric_is_a_header_and_digits_of_base_10000() {
    assert_eq!(numeric("0"), [0x00, 0x80]);
    assert_eq!(numeric("1"), [0x00, 0x80, 1, 0]);
    assert_eq!(numeric("-1.5"), [0x80, 0xa0, 1, 0, 0x88, 0x13]);
    assert_eq!(numeric("10000"), [0x01, 0x80, 1, 0]);
    assert_eq!(numeric("0.0001"), [0x7f, 0x82, 1, 0]);
    assert_eq!(
        numeric("12345.678"),
        [0x81, 0x81, 1, 0, 0x29, 0x09, 0x7c, 0x1a]
    );
    assert_eq!(numeric("1e300"), [0, 0, 75, 0, 1, 0]);
    assert_eq!(numeric("NaN"), [0x00, 0xc0]);
    assert_eq!(numeric("-infinity"), [0x00, 0xf0]);
}

#[test]
fn a_numeric_rounds_half_away_from_zero_to_its_scale() {
    for (text, rounded) in [
        ("999.994", "999.99"),
        ("-0.005", "-0.01"),
        ("0.00499", "0.00"),
        ("9.995", "10.00"),
        ("7", "7.00"),
    ] {
        let stored = numeric_at(15, text, typmod(5, 2)).unwrap();
        assert_eq!(stored_numeric::to_text(&stored), rounded);
    }
    let stored = numeric_at(15, "1550", typmod(3, -2)).unwrap();
    assert_eq!(stored_numeric::to_text(&stored), "1600");
    let error = numeric_at(15, "999.995", typmod(5, 2)).unwrap_err();
    assert_eq!(
        (error.sqlstate, &*error.message),
        ("22003", "numeric field overflow")
    );
    assert_eq!(
        detail(*error),
        "A field with precision 5, scale 2 must round to an absolute value less than 10^3."
    );
    let error = numeric_at(15, "inf", typmod(5, 2)).unwrap_err();
    assert_eq!(
        detail(*error),
        "A field with precision 5, scale 2 cannot hold an infinite value."
    );
}

#[test]
fn other_bases_and_underscores_came_with_16() {
    let int = |text: &str, number| {
        integer::int_in(text.as_bytes(), &integer::INTEGER, version(number)).ok()
    };
    assert_eq!((int("0x1F", 15), int("0x1F", 16)), (None, Some(31)));
    assert_eq!((int("1_000", 15), int("1_000", 16)), (None, Some(1000)));
    assert_eq!(numeric_at(16, "0x1F", -1).unwrap(), numeric("31"));
    assert_eq!(numeric_at(16, "1_0.5_0", -1).unwrap(), numeric("10.50"));
    assert!(numeric_at(15, "0x1F", -1).is_err());
    // A leading zero of an oid announces octal.
    assert_eq!(integer::oid_in(b"010", version(15)), Ok(10));
    assert_eq!(integer::oid_in(b"010", version(16)), Ok(8));
}

#[test]
fn an_exponent_may_follow_white_space_until_15() {
    assert_eq!(numeric_at(15, "1e 2", -1).unwrap(), numeric("100"));
    assert!(numeric_at(16, "1e 2", -1).is_err());
}

#[test]
fn an_integer_out_of_range_is_22003_with_the_field() {
    let error = integer::int_in(b"32768", &integer::SMALLINT, version(15)).unwrap_err();
    assert_eq!(error.sqlstate, "22003");
    assert_eq!(
        error.message,
        "value \"32768\" is out of range for type smallint"
    );
    let smallest = integer::int_in(b"-9223372036854775808", &integer::BIGINT, version(15));
    assert_eq!(smallest, Ok(i64::MIN));
}

#[test]
fn floats_round_to_nearest_in_decimal_and_hexadecimal() {
    assert_eq!(
        float::float8_in(b"9007199254740993"),
        Ok(9_007_199_254_740_992.0)
    );
    assert_eq!(float::float8_in(b"0x1.8p1"), Ok(3.0));
    assert_eq!(float::float8_in(b"0x1p-1074"), Ok(f64::from_bits(1)));
    assert_eq!(float::float4_in(b"16777217", version(15)), Ok(16_777_216.0));
    let error = float::float8_in(b"1e400").unwrap_err();
    assert_eq!(error.sqlstate, "22003");
    assert_eq!(
        error.message,
        "\"1e400\" is out of range for type double precision"
    );
    // Until 15 the message about a real shows white space too.
    let message = |number| {
        float::float4_in(b" 1e50 ", version(number))
            .unwrap_err()
            .message
    };
    assert_eq!(message(15), "\" 1e50 \" is out of range for type real");
    assert_eq!(message(16), "\"1e50\" is out of range for type real");
}

#[test]
fn the_length_of_text_counts_characters() {
    let mut buffer = Vec::new();
    let mut bpchar = |text: &str, n| {
        character::bpchar_in(text.as_bytes(), n, Encoding::Utf8, &mut buffer).map(<[u8]>::to_vec)
    };
    assert_eq!(bpchar("é", 3).unwrap(), "é  ".as_bytes());
    assert_eq!(bpchar("ééé  ", 3).unwrap(), "ééé".as_bytes());
    let error = bpchar("éééx", 3).unwrap_err();
    assert_eq!(error.sqlstate, "22001");
    assert_eq!(error.message, "value too long for type character(3)");
    let latin1 = Encoding::by_name("LATIN1").unwrap();
    assert_eq!(
        character::varchar_in(b"\xe9\xe9 ", 2, latin1),
        Ok(&b"\xe9\xe9"[..])
    );
}

#[test]
fn a_name_is_cut_before_the_character_that_crosses_63_bytes() {
    let name = character::name_in("é".repeat(40).as_bytes(), Encoding::Utf8);
    assert_eq!(name[..62], *"é".repeat(31).as_bytes());
    assert_eq!(name[62..], [0, 0]);
}

#[test]
fn both_formats_of_bytea_give_bytes() {
    let mut buffer = Vec::new();
    let mut bytea = |text: &str| {
        bytea::bytea_in(text.as_bytes(), Encoding::Utf8, &mut buffer).map(<[u8]>::to_vec)
    };
    assert_eq!(bytea("\\xDE ad").unwrap(), [0xde, 0xad]);
    assert_eq!(bytea("a\\\\\\001").unwrap(), *b"a\\\x01");
    let error = bytea("\\x0é").unwrap_err();
    assert_eq!(error.sqlstate, "22023");
    assert_eq!(error.message, "invalid hexadecimal digit: \"é\"");
}

#[test]
fn a_uuid_may_have_braces_and_other_hyphens() {
    let usual = uuid::uuid_in(b"a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11");
    assert_eq!(
        uuid::uuid_in(b"{A0EEBC99-9C0B4EF8-BB6D6BB9-BD380A11}"),
        usual
    );
    assert!(uuid::uuid_in(b"a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a1-1").is_err());
}

#[test]
fn a_prefix_of_a_boolean_word_is_enough_unless_ambiguous() {
    assert_eq!(boolean::bool_in(b" TR "), Ok(true));
    assert_eq!(boolean::bool_in(b"of"), Ok(false));
    let error = boolean::bool_in(b"o").unwrap_err();
    assert_eq!(
        error.message,
        "invalid input syntax for type boolean: \"o\""
    );
}

#[test]
fn a_scalar_jsonb_is_an_array_of_one() {
    // header: one element, array, scalar; entry: string that ends at 1
    assert_eq!(
        jsonb("\"a\"").unwrap(),
        [1, 0, 0, 0x50, 1, 0, 0, 0x80, b'a']
    );
}

#[test]
fn an_object_has_its_keys_by_length_and_its_numbers_aligned() {
    assert_eq!(
        jsonb("{\"bb\":1, \"a\":null, \"bb\":\"x\"}").unwrap(),
        [
            2, 0, 0, 0x20, // two pairs
            1, 0, 0, 0x80, // key that ends at 1
            2, 0, 0, 0, // key of 2 bytes
            0, 0, 0, 0x40, // null
            1, 0, 0, 0, // string of 1 byte: the later value stays
            b'a', b'b', b'b', b'x',
        ]
    );
    assert_eq!(
        jsonb("[\"a\",1]").unwrap(),
        [
            2, 0, 0, 0x40, // two elements
            1, 0, 0, 0x80, // string that ends at 1
            11, 0, 0, 0x10, // numeric of 3 bytes of padding and 8
            b'a', 0, 0, 0, 0x20, 0, 0, 0, 0, 0x80, 1, 0,
        ]
    );
}

#[test]
fn every_32nd_entry_of_a_container_is_a_position() {
    let text = format!("[{}]", vec!["\"x\""; 40].join(","));
    let stored = jsonb(&text).unwrap();
    let entry = |i: usize| u32::from_le_bytes(stored[4 + i * 4..][..4].try_into().unwrap());
    assert_eq!(
        (entry(0), entry(31), entry(32)),
        (0x8000_0001, 1, 0x8000_0021)
    );
}

#[test]
fn json_errors_have_the_server_s_details() {
    for (text, expected) in [
        ("", "The input string ended unexpectedly."),
        ("[1", "The input string ended unexpectedly."),
        ("[1 2]", "Expected \",\" or \"]\", but found \"2\"."),
        ("{1:2}", "Expected string or \"}\", but found \"1\"."),
        ("{\"a\" 1}", "Expected \":\", but found \"1\"."),
        ("{\"a\":1,}", "Expected string, but found \"}\"."),
        ("tru", "Token \"tru\" is invalid."),
        ("\"\\x\"", "Escape sequence \"\\x\" is invalid."),
        ("\"a\tb\"", "Character with value 0x09 must be escaped."),
        (
            "\"\\u00\"",
            "\"\\u\" must be followed by four hexadecimal digits.",
        ),
    ] {
        let mut buffers = json::Buffers::default();
        let error =
            json::json_in(text.as_bytes(), version(15), Encoding::Utf8, &mut buffers).unwrap_err();
        assert_eq!(error.sqlstate, "22P02");
        assert_eq!(detail(*error), expected);
        assert_eq!(detail(*jsonb(text).unwrap_err()), expected);
    }
    let error = jsonb("\"\\u0000\"").unwrap_err();
    assert_eq!(error.sqlstate, "22P05");
    assert_eq!(detail(*error), "\\u0000 cannot be converted to text.");
    assert_eq!(
        detail(*jsonb("\"\\ud834\"").unwrap_err()),
        "Unicode low surrogate must follow a high surrogate."
    );
}

/// Well-formed documents.
fn document() -> impl Strategy<Value = String> {
    let scalar = prop_oneof![
        Just("null".to_owned()),
        Just("true".to_owned()),
        "-?(0|[1-9][0-9]{0,20})(\\.[0-9]{1,20})?([eE][+-]?[0-9]{1,2})?",
        "\"([a-zé日]|\\\\n|\\\\u00e9|\\\\\\\\){0,40}\"",
    ];
    scalar.prop_recursive(4, 64, 40, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..40)
                .prop_map(|elements| format!("[{}]", elements.join(" , "))),
            prop::collection::vec(("[a-c]{0,3}", inner), 0..40).prop_map(|pairs| {
                let pairs: Vec<String> = pairs
                    .into_iter()
                    .map(|(key, value)| format!("\"{key}\":{value}"))
                    .collect();
                format!("{{{}}}", pairs.join(","))
            }),
        ]
    })
}

proptest! {
    #[test]
    fn a_numeric_reads_back_as_it_was_written(text in "(-?[1-9][0-9]{0,40}|0)(\\.[0-9]{1,40})?") {
        let stored = numeric(&text);
        prop_assert_eq!(stored_numeric::to_text(&stored), text);
    }

    #[test]
    fn numerics_order_as_the_integers_they_say(a: i128, b: i128) {
        let (x, y) = (numeric(&a.to_string()), numeric(&b.to_string()));
        prop_assert_eq!(stored_numeric::compare(&x, &y), a.cmp(&b));
    }

    #[test]
    fn integers_read_as_rust_reads_them(text in "[-+]?[0-9]{1,21}") {
        let expected = text.parse::<i64>().ok();
        for number in [15, 16] {
            let read = integer::int_in(text.as_bytes(), &integer::BIGINT, version(number));
            prop_assert_eq!(read.ok(), expected);
        }
    }

    #[test]
    fn floats_read_as_rust_reads_them(text in "-?([0-9]{1,20}\\.?|[0-9]{0,20}\\.[0-9]{1,20})(e[+-]?[0-9]{1,2})?") {
        let expected = text.parse::<f64>().unwrap();
        let read = float::float8_in(text.as_bytes()).unwrap();
        prop_assert_eq!(read.to_bits(), expected.to_bits());
        let expected = text.parse::<f32>().unwrap();
        match float::float4_in(text.as_bytes(), version(15)) {
            Ok(read) => prop_assert_eq!(read.to_bits(), expected.to_bits()),
            Err(_) => prop_assert!(expected == 0.0 || expected.is_infinite()),
        }
    }

    #[test]
    fn a_jsonb_s_text_is_stored_as_the_same_bytes(text in document()) {
        let stored = jsonb(&text).unwrap();
        let again = stored_jsonb::to_text(&stored);
        prop_assert_eq!(jsonb(&again).unwrap(), stored);
    }

    /// Of a field within its data much is read at once that does not belong to it.
    #[test]
    fn what_stands_around_a_field_changes_nothing(
        before in prop::collection::vec(any::<u8>(), 0..30),
        field in "-?[0-9]{0,12}[.]?[0-9]{0,10}|[ -~é]{0,20}|[a-z ]{0,80}",
        after in prop::collection::vec(any::<u8>(), 0..80),
    ) {
        for (type_oid, typmod) in [
            (type_oid::INT4, -1),
            (type_oid::INT8, -1),
            (type_oid::NUMERIC, -1),
            (type_oid::NUMERIC, typmod(12, 2)),
            (type_oid::TEXT, -1),
            (type_oid::VARCHAR, 4 + 7),
            (type_oid::BPCHAR, -1),
            (type_oid::BPCHAR, 4 + 1),
            (type_oid::BPCHAR, 4 + 16),
            (type_oid::BPCHAR, 4 + 64),
            (type_oid::BPCHAR, 4 + 70),
        ] {
            let mut alone = one_attribute(type_oid);
            let mut within = one_attribute(type_oid);
            let settings = settings();
            let encoder = Encoder::resolve(type_oid, typmod, &settings).unwrap();
            let mut scratch = Scratch::new();
            let data = [&before[..], field.as_bytes(), &after].concat();
            let place = before.len()..before.len() + field.len();
            let expected = encoder.encode(field.as_bytes(), &mut scratch, &settings, &mut alone);
            let said = encoder.encode_at(&data, place, &mut scratch, &settings, &mut within);
            prop_assert_eq!(&said, &expected);
            if said.is_ok() {
                prop_assert_eq!(within.finish_row(), alone.finish_row());
                prop_assert_eq!(within.arena(), alone.arena());
            }
        }
    }

    #[test]
    fn no_bytes_make_an_input_function_panic(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
        for number in [14, 18] {
            let version = version(number);
            for encoding in [Encoding::Utf8, Encoding::SingleByte("LATIN1")] {
                let mut buffer = Vec::new();
                let _ = bytea::bytea_in(&bytes, encoding, &mut buffer);
                let escaped = [b"\\x", &bytes[..]].concat();
                let _ = bytea::bytea_in(&escaped, encoding, &mut buffer);
                let _ = character::bpchar_in(&bytes, 7, encoding, &mut buffer);
                let _ = character::varchar_in(&bytes, 7, encoding);
                let _ = character::name_in(&bytes, encoding);
                let mut buffers = jsonb::Buffers::default();
                let _ = jsonb::jsonb_in(&bytes, version, encoding, &mut buffers);
                let quoted = [b"\"", &bytes[..], b"\""].concat();
                let _ = jsonb::jsonb_in(&quoted, version, encoding, &mut buffers);
            }
            let mut buffers = numeric::Buffers::default();
            let _ = numeric::numeric_in(&bytes, None, version, &mut buffers);
            let _ = integer::int_in(&bytes, &integer::BIGINT, version);
            let _ = integer::oid_in(&bytes, version);
            let _ = float::float4_in(&bytes, version);
            let _ = float::float8_in(&bytes);
            let _ = boolean::bool_in(&bytes);
            let _ = uuid::uuid_in(&bytes);
            let _ = stored_jsonb::to_text(&bytes);
            let _ = stored_jsonb::compare(&bytes, &bytes[bytes.len() / 2..], <[u8]>::cmp);
        }
    }
}
