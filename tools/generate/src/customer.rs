//! DBT-2's customer, filled as clause 4.3.3.1 of TPC-C says, but numbered through: c_id
//! ascends over all rows, and c_d_id is any integer, so that one index grows at its end
//! and one everywhere.

use crate::random::{Random, decimal};
use std::ops::Range;

const SYLLABLES: [&str; 10] = [
    "BAR", "OUGHT", "ABLE", "PRI", "PRES", "ESE", "ANTI", "CALLY", "ATION", "EING",
];
/// Rows of a warehouse.
const WAREHOUSE_ROWS: u64 = 30_000;

/// Appends these rows, counted from 0.
pub(crate) fn rows(numbers: Range<u64>, out: &mut Vec<u8>) {
    for number in numbers {
        row(number, out);
    }
}

fn row(number: u64, out: &mut Vec<u8>) {
    let r = &mut Random::new(0xdb72, number);
    decimal(number + 1, out); // c_id
    out.push(b',');
    decimal(r.below(1 << 31), out); // c_d_id
    out.push(b',');
    decimal(number / WAREHOUSE_ROWS + 1, out); // c_w_id
    out.push(b',');
    let first = r.between(8, 16);
    r.alphanumeric(first, out); // c_first
    out.extend_from_slice(b",OE,"); // c_middle
    let in_district = number % 3_000;
    let name = if in_district < 1_000 {
        in_district
    } else {
        non_uniform(r)
    };
    for digit in [name / 100, name / 10 % 10, name % 10] {
        out.extend_from_slice(SYLLABLES[digit as usize].as_bytes()); // c_last
    }
    for _ in 0..3 {
        out.push(b',');
        let len = r.between(10, 20);
        r.alphanumeric(len, out); // c_street_1, c_street_2, c_city
    }
    out.push(b',');
    r.alphanumeric(2, out); // c_state
    out.push(b',');
    r.digits(4, out);
    out.extend_from_slice(b"11111,"); // c_zip
    r.digits(16, out); // c_phone
    out.push(b',');
    since(number, out); // c_since
    out.extend_from_slice(if r.once_in(10) { b",BC" } else { b",GC" }); // c_credit
    out.extend_from_slice(b",50000.00,0."); // c_credit_lim
    let discount = r.below(5_000);
    for digit in [
        discount / 1_000,
        discount / 100 % 10,
        discount / 10 % 10,
        discount % 10,
    ] {
        out.push(b'0' + digit as u8); // c_discount
    }
    // c_balance, c_ytd_payment, c_payment_cnt, c_delivery_cnt
    out.extend_from_slice(b",-10.00,10.00,1,0,");
    let len = r.between(300, 500);
    r.alphanumeric(len, out); // c_data
    out.push(b'\n');
}

/// Clause 2.1.6: NURand(255, 0, 999).
fn non_uniform(r: &mut Random) -> u64 {
    (r.below(256) | r.below(1_000)) % 1_000
}

/// The moment a row was made, had the generator made 50,000 rows a second.
fn since(number: u64, out: &mut Vec<u8>) {
    let second = number / 50_000;
    out.extend_from_slice(b"2026-01-");
    for (value, end) in [
        (second / 86_400 % 28 + 1, b' '),
        (second / 3_600 % 24, b':'),
        (second / 60 % 60, b':'),
        (second % 60, b' '),
    ] {
        out.push(b'0' + (value / 10) as u8);
        out.push(b'0' + (value % 10) as u8);
        out.push(end);
    }
    out.pop();
}
