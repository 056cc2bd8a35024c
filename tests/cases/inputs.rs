//! Inputs that are too long to keep, and schemas that are only a long list.

#![expect(
    clippy::format_collect,
    reason = "a line a number reads best so, and runs once a test"
)]

use std::fmt::Write;

/// SplitMix64, so that the inputs are the same everywhere.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 16) as usize % bound
    }

    /// `len` times one of these.
    fn text(&mut self, len: usize, of: &[&str]) -> String {
        (0..len).map(|_| of[self.below(of.len())]).collect()
    }

    fn letters(&mut self, len: usize) -> String {
        (0..len)
            .map(|_| char::from(b"abcdefghijklmnopqrstuvwxyz0123456789"[self.below(36)]))
            .collect()
    }
}

/// The schema of a case that has none in its folder.
pub(crate) fn schema(case: &str) -> Option<String> {
    let (columns, of) = match case {
        "119-row-too-big" => (1_100, "bigint"),
        "121-1600-columns" => (1_600, "smallint"),
        _ => return None,
    };
    let columns: Vec<String> = (0..columns).map(|i| format!("c{i} {of}")).collect();
    Some(format!("CREATE TABLE t({});", columns.join(",")))
}

/// The input files of a case that are not in its folder.
pub(crate) fn files(case: &str) -> Vec<(&'static str, String)> {
    let csv = match case {
        "031-csv-fields-across-buffers" => fields_across_buffers(),
        "117-toast-wide-rows" => return wide_rows(),
        "119-row-too-big" => {
            let row: Vec<String> = (0..1_100).map(|i| i.to_string()).collect();
            format!("{}\n{}\n", ",".repeat(1_099), row.join(","))
        }
        "121-1600-columns" => columns_1600(),
        "123-lz4-compression" => lz4(),
        "126-append-to-existing-multilevel" => (0..20_000)
            .map(|i| format!("{},k{:04},{}\n", i * 2 + 1, i % 97, -i))
            .collect(),
        "128-append-key-of-deleted-row" => (1..=500).map(|i| format!("{i},new\n")).collect(),
        "130-btree-key-2690-fits" => {
            let mut r = Random(130);
            (0..40)
                .map(|i| format!("{i},{}\n", r.letters(2_600 + i)))
                .collect()
        }
        "144-non-btree-indexes" => (0..1_500).map(other_indexes).collect(),
        "157-partition-hash-and-list" => (0..300)
            .map(|i| {
                let key = if i % 11 == 0 {
                    String::new()
                } else {
                    format!("key{i}")
                };
                let n = if i % 13 == 0 {
                    String::new()
                } else {
                    i.to_string()
                };
                format!("{key},{n}\n")
            })
            .collect(),
        _ => return Vec::new(),
    };
    vec![("data.csv", csv)]
}

/// Quotes, line ends and characters of several bytes fall on every boundary near 64 KiB.
fn fields_across_buffers() -> String {
    let mut r = Random(31);
    let mut csv = String::new();
    for i in 1..25 {
        let body = r.text(
            65_500 + i * 3,
            &["a", "b", "\"\"", "\u{e9}", "\u{1F600}", "\r\n", "\n", ","],
        );
        let _ = writeln!(csv, "{i},\"{body}\",{}", "z".repeat(i * 37));
    }
    csv
}

/// Lengths around the limits of the short header, the TOAST target, a chunk and a page.
fn wide_rows() -> Vec<(&'static str, String)> {
    const LENGTHS: [usize; 24] = [
        0, 1, 125, 126, 127, 128, 1_995, 1_996, 1_997, 2_000, 2_030, 2_031, 2_032, 2_033, 2_040,
        3_992, 3_993, 8_000, 8_100, 8_160, 8_191, 8_192, 20_000, 70_000,
    ];
    const SHORT_TARGET: [usize; 11] = [
        10, 199, 200, 201, 260, 500, 1_000, 1_999, 2_000, 5_000, 30_000,
    ];
    let mut r = Random(117);
    let or_empty = |text: String| {
        if text.is_empty() {
            "\"\"".to_owned()
        } else {
            text
        }
    };
    let mut t = String::new();
    for (at, n) in LENGTHS.into_iter().enumerate() {
        let id = at * 5;
        let hex = r.text(n * 2, &["0", "1", "7", "8", "a", "f"]);
        let numbers: Vec<String> = (0..n / 50)
            .map(|_| r.below(1_000_000_000).to_string())
            .collect();
        let _ = writeln!(t, "{},{},,,,,", id + 1, or_empty("x".repeat(n)));
        let _ = writeln!(t, "{},{},,,,,", id + 2, or_empty(r.letters(n)));
        let _ = writeln!(t, "{},,\\x{hex},,,,", id + 3);
        let (c, d) = (r.letters(n.min(7_000)), r.letters(n / 2));
        let _ = writeln!(t, "{},,,{},{},,", id + 4, or_empty(c), or_empty(d));
        let _ = writeln!(
            t,
            "{},{},\\x00,{},{},\"{{\"\"k\"\":\"\"{}\"\",\"\"n\"\":[{}]}}\",\"{{a{},NULL}}\"",
            id + 5,
            r.letters(700),
            r.letters(700),
            r.letters(700),
            r.letters(n),
            numbers.join(","),
            r.letters(n)
        );
    }
    let mut tt = String::new();
    for (at, n) in SHORT_TARGET.into_iter().enumerate() {
        let _ = writeln!(tt, "{},{}", at + 1, "ab".repeat(n / 2));
        let _ = writeln!(tt, "{},{}", at + 101, r.letters(n));
    }
    vec![("data.csv", t), ("data2.csv", tt)]
}

fn columns_1600() -> String {
    let row = |value: &dyn Fn(usize) -> String| {
        let values: Vec<String> = (0..1_600).map(value).collect();
        values.join(",") + "\n"
    };
    let when = |yes: bool, value: &str| if yes { value.to_owned() } else { String::new() };
    [
        row(&|_| String::new()),
        row(&|i| (i % 100).to_string()),
        row(&|i| when(i % 2 == 1, &i.to_string())),
        row(&|i| when(i == 1_599, "7")),
        row(&|i| when(i == 0, "5")),
        row(&|i| when(i < 8, "1")),
    ]
    .concat()
}

fn lz4() -> String {
    let mut r = Random(123);
    let mut csv = String::new();
    for (at, n) in [10, 1_999, 2_500, 9_000, 100_000].into_iter().enumerate() {
        let value = "abcdefghij".repeat(n / 10);
        let _ = writeln!(csv, "{},{value},{value}", at + 1);
    }
    for (at, n) in [10, 1_999, 2_500, 9_000, 50_000].into_iter().enumerate() {
        let value = r.letters(n);
        let _ = writeln!(csv, "{},{value},{value}", at + 11);
    }
    csv
}

fn other_indexes(i: usize) -> String {
    format!(
        "{i},\"{{\"\"k\"\":{}}}\",\"{{t{},t{}}}\",\"[{i},{})\",\"({},{})\",h{},10.0.{}.{},2020-01-{:02} {:02}:00:00,name {i} x\n",
        i % 10,
        i % 5,
        i % 7,
        i + 3,
        i % 50,
        i % 30,
        i % 60,
        i % 4,
        i % 250,
        1 + i % 28,
        i % 24,
    )
}
