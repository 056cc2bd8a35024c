//! Types that are made of others: enums, domains, arrays; and citext.

use super::assert_order;
use super::corpus::{Random, texts};
use super::oracle::{assert_same, describe, of_ours, of_server, stored_by_us};
use pgformat::datum::array::{Array, ElementLayout};
use pgformat::datum::order::{FixedOrder, Order};
use pgformat::datum::varlena;
use pgformat::layout::AttrLen;
use support::{Server, VERSIONS};

/// Tries the texts on every version, after this SQL.
fn try_made(sql: &str, sql_types: &[&str], texts: &[String]) {
    for version in VERSIONS {
        let server = Server::start(version, &[]);
        server.connect("postgres").batch_execute(sql).unwrap();
        for sql_type in sql_types {
            let ty = describe(&server, "postgres", sql_type);
            let is_ranked = *sql_type == "integer[]";
            let theirs = of_server(&server, &ty, texts, is_ranked);
            let ours = of_ours(&server, &ty, texts);
            assert_same(&server, sql_type, texts, &ours, &theirs);
            if is_ranked {
                assert_order(texts, &theirs, compare_int4s);
            }
        }
    }
}

fn compare_int4s(a: &[u8], b: &[u8]) -> std::cmp::Ordering {
    let layout = ElementLayout {
        len: AttrLen::Fixed(4),
        align: 4,
    };
    let element = Order::Fixed(FixedOrder::Int4);
    let read = |stored| Array::read(varlena::payload(stored)).expect("an array");
    read(a).compare(&read(b), layout, |a, b| element.compare(a, b))
}

const TYPES: &str = "
    CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy', 'SAD', '', ' ', 'quo\"te', 'it''s', 'NULL',
        'a,b', '{}', 'back\\slash', 'é', 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa');
    CREATE SCHEMA \"a b\";
    CREATE TYPE \"a b\".\"Mood\" AS ENUM ('sad', 'ok');
    ALTER TYPE mood ADD VALUE 'first' BEFORE 'sad';
    CREATE TYPE empty AS ENUM ();
    CREATE DOMAIN whole AS integer NOT NULL;
    CREATE DOMAIN code AS varchar(3);
    CREATE DOMAIN codes AS code[];
    CREATE DOMAIN again AS code NOT NULL;
    CREATE DOMAIN feeling AS mood;
    CREATE DOMAIN amount AS numeric(5,2);
    CREATE EXTENSION citext;";

#[test]
fn enums_are_read_as_the_server_reads_them() {
    let picked = [
        "sad",
        "ok",
        "happy",
        "SAD",
        "Sad",
        "",
        " ",
        "  ",
        "sad ",
        " sad",
        "first",
        "quo\"te",
        "it's",
        "NULL",
        "null",
        "a,b",
        "{}",
        "back\\slash",
        "é",
        "è",
        "s",
        "sadd",
        "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
        "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
    ];
    let texts = texts(30, &picked, &["sad", "ok", "S", " ", "é", "a"], 200);
    try_made(
        TYPES,
        &["mood", "\"a b\".\"Mood\"", "empty", "feeling"],
        &texts,
    );
}

#[test]
fn domains_are_read_as_their_base_types() {
    let picked = [
        "",
        "1",
        "x",
        "abc",
        "abcd",
        "abc  ",
        "123.456",
        "1234.5",
        "99999",
        "{a}",
        "{abcd}",
        "{NULL,a}",
        "[0:1]={a,b}",
        "2147483648",
    ];
    let texts = texts(31, &picked, &["1", "a", " ", ".", "{", "}", ",", "5"], 300);
    try_made(
        TYPES,
        &["whole", "code", "again", "amount", "codes", "citext"],
        &texts,
    );
}

const ARRAYS: &[&str] = &[
    "{}",
    " {} ",
    "{ }",
    "{\t\n}",
    "{{}}",
    "{{},{}}",
    "{{{}}}",
    "{{{}}",
    "{},{}",
    "{}x",
    "{} x",
    "",
    " ",
    "x",
    "1",
    "{",
    "}",
    "{1",
    "1}",
    "{1}",
    " {1} ",
    "{1,2,3}",
    "{ 1 , 2 , 3 }",
    "{1,}",
    "{,1}",
    "{,}",
    "{1,,2}",
    "{1 2}",
    "{1}{2}",
    "{{1},{2}}",
    "{{1,2},{3,4}}",
    "{{1},{2,3}}",
    "{{1,2},{3}}",
    "{1,{2}}",
    "{{1},2}",
    "{{1},{{2}}}",
    "{{{1}},{2}}",
    "{{{1},{2}},{{3},{4}}}",
    "{{{1},{2}},{{3}}}",
    "{{{{{{1}}}}}}",
    "{{{{{{{1}}}}}}}",
    "{{{{{{{}}}}}}}",
    "{{1}, {2}}",
    "{{1} ,{2}}",
    "{{1}{2}}",
    "{{1}x,{2}}",
    "{x{1}}",
    "{NULL}",
    "{null,1}",
    "{nUlL}",
    "{\"NULL\"}",
    "{\\NULL}",
    "{NULL,NULL}",
    "{NULLx}",
    "{NULL NULL}",
    "{{NULL},{1}}",
    "NULL",
    "{\"1\"}",
    "{\"1\",\"2\"}",
    "{\"1\" , \"2\"}",
    "{\"1\"\"2\"}",
    "{\"1\"2}",
    "{1\"2\"}",
    "{1\"2\"3}",
    "{\"1",
    "{\"1\"",
    "{\"\"}",
    "{\"\",\"\"}",
    "{\" \"}",
    "{\" 1 \"}",
    "{\"a\\\"b\"}",
    "{\"a\\\\b\"}",
    "{\"a\\",
    "{a\\",
    "{a\\b}",
    "{a\\ }",
    "{\\ a}",
    "{a \\}}",
    "{\\}}",
    "{\\,}",
    "{\"a{b}c\"}",
    "{\"a,b\"}",
    "{a\\,b}",
    "{a\\{b}",
    "{\"\\1\"}",
    "{1;2}",
    "{a b c}",
    "{  a  b  }",
    "{é,日本}",
    "{\"é\"}",
    "\\{1}",
    "{1}\\",
    "\"{1}\"",
    "{1}\u{a0}",
    "\u{b}{\u{c}1\r}\n",
    "[1:2]={1,2}",
    "[2:3]={1,2}",
    "[-1:0]={1,2}",
    "[0:0]={1}",
    "[1:1]={1}",
    "[+1:+2]={1,2}",
    "[1:2] = {1,2}",
    "[1:2]= {1,2}",
    " [1:2]={1,2}",
    "[1:2] ={1,2}",
    "[ 1:2]={1,2}",
    "[1 :2]={1,2}",
    "[1:2 ]={1,2}",
    "[1: 2]={1,2}",
    "[2]={1,2}",
    "[2]={1}",
    "[0]={}",
    "[0]={1}",
    "[1:0]={}",
    "[-1]={1}",
    "[2:1]={1}",
    "[1:2]={1}",
    "[1:2]={1,2,3}",
    "[1:2]={}",
    "[1:1]={}",
    "[1:2]={{1,2}}",
    "[1:1][1:2]={{1,2}}",
    "[1:1][1:2]={1,2}",
    "[1:1] [1:2]={{1,2}}",
    "[1:2][3:4]={{1,2},{3,4}}",
    "[0:1][-5:-4]={{1,2},{3,4}}",
    "[1:2][1:2]={{1,2},{3}}",
    "[1:2][1:2]={{1},{3,4}}",
    "[1:2][1:1]={{1},2}",
    "[1][1][1][1][1][1]={{{{{{1}}}}}}",
    "[1][1][1][1][1][1][1]={{{{{{{1}}}}}}}",
    "[1:2]",
    "[1:2]=",
    "[1:2]1",
    "[1:2]{1,2}",
    "[1:2]=1",
    "[1:2]=={1,2}",
    "[]={}",
    "[:]={}",
    "[1:]={1}",
    "[:2]={1,2}",
    "[a:b]={1}",
    "[1:2",
    "[1",
    "[",
    "[-]={1}",
    "[+]={1}",
    "[--1]={1}",
    "[1-2]={1}",
    "[1:2-3]={1,2}",
    "[1+]={1}",
    "[-1:-]={1}",
    "[1:2:3]={1}",
    "[1:2]]={1,2}",
    "[[1:2]={1,2}",
    "[2147483647:2147483647]={1}",
    "[2147483646:2147483646]={1}",
    "[2147483646:2147483647]={1,2}",
    "[2147483645:2147483646]={1,2}",
    "[-2147483648:-2147483648]={1}",
    "[-2147483648:2147483646]={1}",
    "[-2147483648:2147483647]={1}",
    "[1:2147483647]={1}",
    "[2147483648:2147483648]={1}",
    "[-2147483649:1]={1}",
    "[4294967297:4294967297]={1}",
    "[99999999999999999999:99999999999999999999]={1}",
    "[-99999999999999999999:1]={1}",
    "[1:134217727]={1}",
    "[1:134217728]={1}",
    "[0:2147483646]={1}",
    "[1:65536][1:65536]={{1}}",
    "[1:100000][1:100000]={{1}}",
    "{1,x}",
    "{x,1",
    "{x}}",
    "{{x},{1,2}}",
    "{2147483648}",
    "{2147483648,{}",
    "{1,2x}",
    "{abcd}",
    "{\"abcd\"}",
    "{\"abc  \"}",
    "{abc  }",
    "{a,bc,def}",
    "{1.005,22.2}",
    "{1234.5}",
    "{sad,ok}",
    "{sad,bad}",
    "{\"quo\\\"te\",it's}",
    "{first,\"\"}",
    "{\"a,b\"}",
    "{t,f,NULL,true}",
    "{1,2,3,4,5,6,7,8,NULL}",
    "{1,2,3,4,5,6,7,NULL}",
    "{1,2,3,4,5,6,7,8,9,10}",
    "{{1,NULL},{NULL,2}}",
    "{{1,2},NULL}",
    "{{1},\"a\"}",
    "{{{1}},{{2}},{{3},{4}}}",
    "{{{1,2}},{3,4}}",
    "{{{1}},{}}",
    "{{},{1}}",
    "{{1},{}}",
    "{{1,2},{}}",
    "{{},1}",
    "{1,{}}",
    "{\"1\",{2}}",
    "{\"1\"{2}}",
    "{{\"1\"},{\"2\"}}",
    "{{\"1\"}}",
    "{{ \"1\" }}",
    "{{\"1\" x}}",
];

#[test]
fn arrays_are_read_as_the_server_reads_them() {
    let pieces = [
        "{",
        "}",
        "{",
        "}",
        ",",
        "\"",
        "\\",
        " ",
        "1",
        "2",
        "a",
        "NULL",
        "null",
        "{}",
        "{1}",
        "{1,2}",
        "},{",
        "[",
        "]",
        ":",
        "=",
        "[1:2]",
        "[0:0]=",
        "[2]=",
        "[1:1][1:2]=",
        "-",
        "\t",
        "é",
        "sad",
        ";",
    ];
    let texts = texts(32, ARRAYS, &pieces, 2500);
    try_made(
        TYPES,
        &[
            "integer[]",
            "text[]",
            "mood[]",
            "boolean[]",
            "\"char\"[]",
            "name[]",
            "citext[]",
        ],
        &texts,
    );
    let picked: Vec<String> = ARRAYS.iter().map(|&text| text.to_owned()).collect();
    try_made(TYPES, &["code[]", "whole[]", "varchar(3)[]"], &picked);
}

#[test]
fn elements_of_every_width_are_aligned_as_the_server_aligns_them() {
    let picked: Vec<String> = [
        "{1}",
        "{1,NULL,22}",
        "{{1,2},{NULL,3}}",
        "{}",
        "[5:6]={1,2}",
        "{1.5,2.25}",
        "{1,22,333,4444,55555}",
        "{12:30,NULL,13:45:01}",
        "{2001-01-01,infinity}",
        "{2001-01-01 10:00,NULL}",
        "{1 day,2 months}",
        "{a,bb,ccc,dddd,NULL,eeeee}",
        "{\\\\x00ff,\\\\xaa}",
        "{\"{}\",\"[1]\"}",
        "{\"{\\\"a\\\": 1}\",1}",
        "{a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11,NULL}",
        "{é}",
        "{ab}",
        "{abcd}",
        "{123456,99999999}",
    ]
    .map(str::to_owned)
    .into();
    try_made(
        TYPES,
        &[
            "smallint[]",
            "bigint[]",
            "oid[]",
            "real[]",
            "double precision[]",
            "numeric[]",
            "numeric(5,2)[]",
            "varchar(3)[]",
            "char(3)[]",
            "bytea[]",
            "date[]",
            "time[]",
            "time(0)[]",
            "timetz[]",
            "timestamp(3)[]",
            "timestamptz[]",
            "interval[]",
            "interval day to minute[]",
            "uuid[]",
            "json[]",
            "jsonb[]",
        ],
        &picked,
    );
}

#[test]
fn array_nulls_off_reads_null_as_any_other_word() {
    // The session of COPY has it, and so have our settings.
    for version in VERSIONS {
        let server = Server::start(version, &[("array_nulls", "off")]);
        let texts = ["{NULL}", "{a,null}", "{\"NULL\"}"].map(str::to_owned);
        let ty = describe(&server, "postgres", "text[]");
        let theirs = of_server(&server, &ty, &texts, false);
        let ours = of_ours(&server, &ty, &texts);
        assert_same(&server, "text[]", &texts, &ours, &theirs);
    }
}

const ADDRESSES: &[&str] = &[
    "",
    " ",
    "1",
    "1.2",
    "1.2.3",
    "1.2.3.4",
    "1.2.3.4.",
    "1.2.3.",
    "1.2.3.4.5",
    "1.2.3.4/",
    "1.2.3.4/0",
    "1.2.3.4/32",
    "1.2.3.4/33",
    "1.2.3.4/024",
    "1.2.3.4/24",
    "1.2.3.0/24",
    "1.2.3/24",
    "1.2.3./24",
    "1.2/24",
    "1/8",
    "10/8",
    "10.1/16",
    "/8",
    "./8",
    ".1",
    "1..2",
    "256.1.1.1",
    "255.255.255.255",
    "0.0.0.0",
    "0.0.0.0/0",
    "01.02.03.04",
    "001.2.3.4",
    "1.2.3.4/4294967296",
    "1.2.3.4/4294967295",
    "1.2.3.4/4294967320",
    "1.2.3.4/-1",
    "1.2.3.4/ 8",
    " 1.2.3.4",
    "1.2.3.4 ",
    "1.2.3.4x",
    "1.2.3.4/8x",
    "x",
    "0x",
    "0x1",
    "0x0a",
    "0x0a01",
    "0X0A0102",
    "0x0a010203",
    "0x0a01020304",
    "0x0a0102030",
    "0x0a/8",
    "0x0ag",
    "0x0a/4",
    "128.1",
    "192.168",
    "192.168.1",
    "224",
    "224.0",
    "224.1",
    "225",
    "240",
    "250.1",
    "127",
    "191.255",
    "223.255.255",
    "224/4",
    "1.2.3.4/25",
    "1.2.3.128/25",
    "::",
    ":::",
    ":",
    "::1",
    "1::",
    "1:",
    ":1",
    "1:2",
    "1:2:3:4:5:6:7:8",
    "1:2:3:4:5:6:7:8:9",
    "1:2:3:4:5:6:7",
    "1:2:3:4:5:6:7::",
    "::2:3:4:5:6:7:8",
    "1::2:3:4:5:6:7:8",
    "1::8",
    "1::2::3",
    "::1::",
    "12345::",
    "ABCD::ef01",
    "g::",
    "::/0",
    "::/128",
    "::/129",
    "::/00",
    "::/01",
    "::/",
    "::1/",
    "::1/64",
    "1::/16",
    "1::/15",
    "2::/15",
    "8000::/1",
    "::1/x",
    "::ffff:1.2.3.4",
    "::1.2.3.4",
    "::1.2",
    "::1.2/24",
    "::1..2",
    "::1.2.3.4.5",
    "::01.2.3.4",
    "::1.2.3.4/96",
    "::1.2.3.256",
    "1:2:3:4:5:6:1.2.3.4",
    "1:2:3:4:5:6:7:1.2.3.4",
    "1:2:3:4:5:1.2.3.4",
    "::1.2.3.4:5",
    "1.2.3.4::",
    "::ffff:0:1",
    "0:0:0:0:0:ffff:1:2",
    "::2:1",
    "0:0:1::",
    "0:1:0:0:1:0:0:1",
    "1:0:0:2:0:0:0:3",
    "::1.2.3.",
    "::.1",
    "::1.2.3.4/0128",
    "::1 ",
    " ::1",
    "fe80::1%eth0",
    "::1.",
    "::1./8",
    "::a.2",
    "1:2:3:4:5:6:7:8/127",
    "::0:0:0:0:0:0:0:0",
    "0::0",
];

#[test]
fn addresses_are_read_as_the_server_reads_them() {
    let pieces = [
        "1", "2", "0", "10", "128", "192", "224", "240", "255", "256", ".", ".", ".", "/", "/8",
        "/24", "/32", "/64", ":", ":", "::", "::", "a", "F", "ffff", "0x", "0xa", " ", "1.2.3.4",
        "::1", "fe80::", "g", "00",
    ];
    let texts = texts(33, ADDRESSES, &pieces, 4000);
    try_ordered(&["inet", "cidr"], &texts, &Order::Network);
    let arrays: Vec<String> = ["{1.2.3.4,::1,NULL}", "{10/8}", "{\"1.2.3.4/24\"}", "{x}"]
        .map(str::to_owned)
        .into();
    try_made("", &["inet[]", "cidr[]"], &arrays);
}

#[test]
fn bit_strings_are_read_as_the_server_reads_them() {
    let picked = [
        "",
        "0",
        "1",
        "10",
        "101",
        "1010",
        "b",
        "B1",
        "b101",
        "bb1",
        "x",
        "X",
        "xA",
        "x1f",
        "XFf",
        "xg",
        "x1g",
        "xé",
        "x1é",
        "2",
        "12",
        "é",
        "1é",
        "1 ",
        " 1",
        "0b1",
        "0x1",
        "x0",
        "xfff",
        "x12345",
        "00000000",
        "000000001",
        "10101010101",
        "b2",
        "X 1",
        "\u{b}1",
        "101x",
        "1111111111111111111111111111111111111111111111111111111111111111111111111",
    ];
    let pieces = [
        "0", "1", "01", "1100", "x", "b", "f", "A", "2", " ", "é", "g",
    ];
    let texts = texts(34, &picked, &pieces, 2000);
    try_ordered(
        &[
            "bit",
            "bit(3)",
            "bit(8)",
            "varbit",
            "varbit(3)",
            "varbit(11)",
        ],
        &texts,
        &Order::Bits,
    );
    let arrays: Vec<String> = ["{101,NULL,x5}", "{101,10}", "{}", "{x}"]
        .map(str::to_owned)
        .into();
    try_made("", &["bit(3)[]", "varbit(3)[]", "varbit[]"], &arrays);
}

/// Tries types whose order there is, too.
fn try_ordered(sql_types: &[&str], texts: &[String], order: &Order) {
    for version in VERSIONS {
        let server = Server::start(version, &[]);
        for sql_type in sql_types {
            let ty = describe(&server, "postgres", sql_type);
            let theirs = of_server(&server, &ty, texts, true);
            let ours = of_ours(&server, &ty, texts);
            assert_same(&server, sql_type, texts, &ours, &theirs);
            assert_order(texts, &theirs, |a, b| {
                let by_value = order.compare(a, b);
                let by_prefix = order.prefix(a, 128).cmp(&order.prefix(b, 128));
                assert!(by_prefix.is_eq() || by_prefix == by_value, "{a:?} {b:?}");
                by_value
            });
        }
    }
}

#[test]
fn no_bytes_make_these_input_functions_panic() {
    const PIECES: &[&[u8]] = &[
        b"{",
        b"}",
        b",",
        b"[",
        b"]",
        b":",
        b"=",
        b"\\",
        b"\"",
        b"1",
        b"0",
        b"-",
        b".",
        b"/",
        b"x",
        b"2147483647",
        b" ",
        b"\xff",
        b"\xc3",
        b"NULL",
        b"::",
        b"0x",
    ];
    let mut random = Random::new(35);
    let fields: Vec<Vec<u8>> = (0..60_000)
        .map(|_| {
            (0..random.below(14))
                .flat_map(|_| random.pick(PIECES).to_vec())
                .collect()
        })
        .collect();
    for version in [14, 18] {
        let server = Server::start(version, &[]);
        server.connect("postgres").batch_execute(TYPES).unwrap();
        for sql_type in [
            "integer[]",
            "text[]",
            "codes",
            "mood",
            "inet",
            "cidr",
            "varbit",
            "bit(3)[]",
        ] {
            let ty = describe(&server, "postgres", sql_type);
            let stored = stored_by_us(&server, &ty, &fields);
            assert!((1..fields.len()).contains(&stored), "{sql_type}: {stored}");
        }
    }
}
