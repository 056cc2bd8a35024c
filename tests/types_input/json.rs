//! json and jsonb against real servers.

use crate::corpus::{Random, change};
use crate::try_all;

const DOCUMENTS: &[&str] = &[
    "",
    " ",
    "null",
    "true",
    "false",
    "nul",
    "nulls",
    "True",
    "1",
    "-1",
    "0",
    "-0",
    "00",
    "01",
    "-01",
    "1.5",
    "1.",
    ".5",
    "-.5",
    "-",
    "--1",
    "+1",
    "1e5",
    "1E5",
    "1e+5",
    "1e-5",
    "1e",
    "1e+",
    "1.5e3",
    "1x",
    "1.5x",
    "1e5x",
    "-x",
    "1.x",
    "1e-x",
    "0x1F",
    "1_000",
    "NaN",
    "Infinity",
    "-Infinity",
    "\"\"",
    "\"a\"",
    "\"a",
    "\"",
    "\"é\"",
    "\"𝄞\"",
    "\"\\\"\"",
    "\"\\\\\"",
    "\"\\/\"",
    "\"\\b\\f\\n\\r\\t\"",
    "\"\\x\"",
    "\"\\é\"",
    "\"\\",
    "\"\\u\"",
    "\"\\u0\"",
    "\"\\u004\"",
    "\"\\u0041\"",
    "\"\\u00\"",
    "\"\\u",
    "\"\\u00",
    "\"\\u004g\"",
    "\"\\u004é\"",
    "\"\\uXXXX\"",
    "\"\\u0000\"",
    "\"a\\u0000b\"",
    "\"\\u00e9\"",
    "\"\\u4e2d\"",
    "\"\\ud834\\udd1e\"",
    "\"\\ud834\"",
    "\"\\udd1e\"",
    "\"\\ud834x\"",
    "\"\\ud834\\n\"",
    "\"\\ud834\\ud834\"",
    "\"\\ud834\\u0041\"",
    "\"\\ud834\\u0000\"",
    "\"\\udd1e\\ud834\"",
    "\"\\ud834\t\"",
    "\"\\ud834",
    "\"\\uDBFF\\uDFFF\"",
    "\"\\uffff\"",
    "\"\\ud834\\x\"",
    "\"a\tb\"",
    "\"a\nb\"",
    "\"\u{1}\"",
    "\"\u{7f}\"",
    "\"\\u001f\"",
    "[]",
    "[ ]",
    "[1]",
    "[1,2]",
    "[1,]",
    "[,1]",
    "[1 2]",
    "[1",
    "[",
    "]",
    "[1}",
    "[[]]",
    "[[],{}]",
    "[null,true,false]",
    "[\"a\",1,1.5,\"b\"]",
    "[1]]",
    "[1] x",
    "[1] [2]",
    "{}",
    "{ }",
    "{\"a\":1}",
    "{\"a\" : 1 }",
    "{\"a\"}",
    "{\"a\":}",
    "{\"a\":1,}",
    "{,}",
    "{a:1}",
    "{1:1}",
    "{\"a\":1 \"b\":2}",
    "{\"a\":1,\"b\":2}",
    "{\"a\":1",
    "{",
    "}",
    "{\"a\",1}",
    "{\"a\":1]",
    "{\"a\" 1}",
    "{\"a\":1,b}",
    "{\"a\":1,\"b\"}",
    "{null:1}",
    "{[]:1}",
    "{\"b\":1,\"a\":2}",
    "{\"a\":1,\"a\":2}",
    "{\"a\":1,\"a\":2,\"a\":3}",
    "{\"\":1,\"\":2}",
    "{\"aa\":1,\"b\":2}",
    "{\"a\":{\"b\":[1,{\"c\":null}]}}",
    "{\"a\":1,\"\\u0061\":2}",
    "{\"\\u0000\":1}",
    "{\"é\":1,\"z\":2}",
    "\u{a0}1",
    "\u{feff}1",
    "١",
    "é",
    "1é",
    "@",
    "'a'",
    "[@]",
    "/* */ 1",
    "1 // x",
    "\t\n\r 1 \t\n\r",
    "\u{b}1",
    "\u{c}1",
    "1e131071",
    "1e131072",
    "1e-16383",
    "1e-16384",
    "[1e200000]",
    "[1e200000,@]",
    "[1e200000 @]",
    "{\"a\":1e200000",
    "[1e99999999999]",
    "\"abcdefgh\\u0041ijklmnop\"",
    "\"abcdefghijklmnopqrst\"",
    "\"abcdefg\u{1f}\"",
    "\"abcdefgh\u{1f}\"",
    "[\"a\", \"bc\", 1, \"d\", 2, [3], \"e\", {\"f\":4}]",
    "[1,\"a\",2,\"bb\",3,\"ccc\",4]",
    "12345678901234567890.123456789",
    "1.10",
    "100",
    "1e2",
    "0.0001",
    "truefalse",
    "true false",
    "[true false]",
    "[truex]",
    "{\"a\":truex}",
    "\"a\"\"b\"",
    "\"a\"b",
    "a\"b\"",
    "[\"a\"b]",
    "[1.2.3]",
    "[1.e5]",
    "[-]",
    "[-,1]",
];
const PIECES: &[&str] = &[
    "{",
    "}",
    "[",
    "]",
    ",",
    ":",
    "\"a\"",
    "\"b\"",
    "\"\"",
    "\"aa\"",
    "\"é\"",
    "\"\\u0041\"",
    "\"\\ud834\\udd1e\"",
    "\"\\ud834\"",
    "\"\\n\"",
    "1",
    "-1.5",
    "1e3",
    "0.10",
    "12345",
    "true",
    "false",
    "null",
    " ",
    "\n",
    "\"a\":",
    "\"b\":",
    "\"a\":1",
    "{}",
    "[]",
    "[1,2]",
    "{\"a\":1}",
    "x",
    "\"",
    "\\",
    ".",
    "-",
];

/// A well-formed document.
fn document(random: &mut Random, depth: usize) -> String {
    let space = |random: &mut Random| random.pick(&["", "", "", " ", "\n\t"]).to_owned();
    let kind = random.below(if depth == 0 { 6 } else { 9 });
    match kind {
        0 => random.pick(&["null", "true", "false"]).to_owned(),
        1 | 2 => {
            let sign = random.pick(&["", "", "-"]);
            let whole = random.next() % 10u64.pow(random.below(13) as u32 + 1);
            let fraction = match random.below(3) {
                0 => {
                    let len = 1 + random.below(9);
                    format!(".{}", random.digits(len))
                }
                _ => String::new(),
            };
            let exponent = random.pick(&["", "", "", "e3", "E-7", "e+20"]);
            format!("{sign}{whole}{fraction}{exponent}")
        }
        3..=5 => string(random),
        6 | 7 => {
            let count = match random.below(12) {
                0 => 30 + random.below(40),
                _ => random.below(5),
            };
            let elements: Vec<String> = (0..count)
                .map(|_| space(random) + &document(random, if count > 9 { 0 } else { depth - 1 }))
                .collect();
            format!("[{}{}]", elements.join(","), space(random))
        }
        _ => {
            let count = match random.below(12) {
                0 => 15 + random.below(25),
                _ => random.below(6),
            };
            let pairs: Vec<String> = (0..count)
                .map(|_| {
                    let depth = if count > 9 { 0 } else { depth - 1 };
                    format!(
                        "{}:{}{}",
                        string(random),
                        space(random),
                        document(random, depth)
                    )
                })
                .collect();
            format!("{{{}{}}}", space(random), pairs.join(","))
        }
    }
}

fn string(random: &mut Random) -> String {
    let len = random.below(5);
    let inner: String = (0..len)
        .map(|_| {
            random.pick(&[
                "a",
                "b",
                "c",
                "é",
                "日",
                "\\n",
                "\\\"",
                "\\u0041",
                "\\ud834\\udd1e",
                "\\\\",
                "\\/",
                "\\u00e9",
                "z",
                "A",
                "name",
                " ",
            ])
        })
        .collect();
    format!("\"{inner}\"")
}

fn documents() -> Vec<String> {
    let mut all = crate::texts(11, DOCUMENTS, PIECES, 2500);
    let mut random = Random::new(12);
    for i in 0..2500 {
        let good = document(&mut random, 4);
        if i % 3 == 0 {
            all.push(change(&good, PIECES, &mut random));
        }
        all.push(good);
    }
    // An entry in 32 holds a position.
    for count in [31, 32, 33, 63, 64, 65, 100] {
        let numbers: Vec<String> = (0..count).map(|n| n.to_string()).collect();
        all.push(format!("[{}]", numbers.join(",")));
        let strings: Vec<String> = (0..count).map(|n| format!("\"{n}\"")).collect();
        all.push(format!("[{}]", strings.join(",")));
        let pairs: Vec<String> = (0..count).map(|n| format!("\"k{n}\":{n}")).collect();
        all.push(format!("{{{}}}", pairs.join(",")));
    }
    all.retain(|text| text.len() < 1000);
    all
}

#[test]
fn json_is_checked_as_the_server_checks_it() {
    try_all(&["json"], &documents());
}

#[test]
fn jsonb_is_stored_and_ordered_as_by_the_server() {
    try_all(&["jsonb"], &documents());
}
