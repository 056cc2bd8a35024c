//! What the compressor gives, as literals and against the server's way of searching written
//! down plainly; against the servers themselves it is compared by the integration tests.

use super::*;
use proptest::prelude::*;

fn compressed(source: &[u8]) -> Option<Vec<u8>> {
    let mut out = b"kept".to_vec();
    let done = Pglz::new().compress(source, &mut out);
    assert_eq!(&out[..4], b"kept");
    if !done {
        assert_eq!(out.len(), 4);
    }
    done.then(|| out[4..].to_vec())
}

/// Numbers without an order, the same each time.
struct Random(u32);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (self.0 >> 8) as usize % limit
    }

    /// Bytes of `kinds` values.
    fn bytes(&mut self, len: usize, kinds: usize) -> Vec<u8> {
        (0..len).map(|_| self.below(kinds) as u8).collect()
    }
}

/// All the positions of each list, and every one looked at: what [`Pglz::compress`] must give.
fn plainly(source: &[u8]) -> Option<Vec<u8>> {
    let len = source.len();
    if len < 32 {
        return None;
    }
    let limit = if len > 21_474_836 {
        len / 100 * 75
    } else {
        len * 75 / 100
    };
    let lists_count = [(128, 512), (256, 1024), (512, 2048), (1024, 4096)]
        .iter()
        .find(|(below, _)| len < *below)
        .map_or(8192, |(_, lists)| *lists);
    let list_of = |at: usize| {
        let c = |i: usize| source[at + i] as std::ffi::c_char as i32;
        let hash = if len - at < 4 {
            c(0)
        } else {
            c(0) << 6 ^ c(1) << 4 ^ c(2) << 2 ^ c(3)
        };
        (hash & (lists_count - 1)) as usize
    };
    let mut lists = vec![Vec::new(); lists_count as usize];
    let mut out = Vec::new();
    let (mut items, mut found_any) = (0, false);
    let mut control_pos = 0;
    let mut at = 0;
    while at < len {
        if out.len() >= limit || (!found_any && out.len() >= 1024) {
            return None;
        }
        let (mut best, mut distance, mut good) = (0, 0, 128);
        for candidate in lists[list_of(at)].iter().rev() {
            if at - candidate >= 4095 {
                break;
            }
            let longest = (len - at).min(273);
            let same = (0..longest).take_while(|i| source[candidate + i] == source[at + i]);
            let same = same.count();
            if same > best {
                (best, distance) = (same, at - candidate);
            }
            if best >= good {
                break;
            }
            good -= good * 10 / 100;
        }
        if items % 8 == 0 {
            control_pos = out.len();
            out.push(0);
        }
        let step = if best > 2 {
            out[control_pos] |= 1 << (items % 8);
            found_any = true;
            let high = (distance >> 8 << 4) as u8;
            if best > 17 {
                out.extend([high | 15, distance as u8, (best - 18) as u8]);
            } else {
                out.extend([high | (best - 3) as u8, distance as u8]);
            }
            best
        } else {
            out.push(source[at]);
            1
        };
        items += 1;
        for passed in at..at + step {
            lists[list_of(passed)].push(passed);
        }
        at += step;
    }
    (out.len() < limit).then_some(out)
}

/// `source` compressed by a compressor that has done much else is what it must be.
#[track_caller]
fn check(pglz: &mut Pglz, source: &[u8]) {
    let mut out = Vec::new();
    let done = pglz.compress(source, &mut out);
    let expected = plainly(source);
    // Not the bytes: they may be millions.
    assert!(
        done.then_some(&out) == expected.as_ref(),
        "{} bytes give {}, not {}",
        source.len(),
        out.len(),
        expected.map_or(0, |bytes| bytes.len()),
    );
}

#[test]
fn a_hundred_equal_bytes_are_a_literal_and_one_match() {
    // 99 bytes one byte back: 0x0f, distance 1, 99 - 18.
    assert_eq!(compressed(&[b'x'; 100]).unwrap(), [0b10, b'x', 0x0f, 1, 81]);
}

#[test]
fn thirty_one_bytes_are_never_compressed() {
    assert_eq!(compressed(&[b'x'; 31]), None);
    assert!(compressed(&[b'x'; 32]).is_some());
}

#[test]
fn a_kilobyte_without_a_match_ends_the_attempt() {
    let mut noise = Random(1).bytes(1100, 256);
    noise.resize(100_000, 0);
    assert_eq!(compressed(&noise), None);
    // 910 literals and 114 control bytes: what is found at position 910 comes too late.
    for (unlike, done) in [(909, true), (910, false)] {
        let mut value: Vec<u8> = (0..unlike as u16)
            .map(|i| if i % 2 == 0 { i >> 4 } else { i << 4 | 5 } as u8)
            .collect();
        value[unlike - 4..].copy_from_slice(b"\xd5ab\xd7");
        value.extend_from_within(unlike - 4..);
        value.resize(100_000, 0xd1);
        assert_eq!(compressed(&value).is_some(), done, "{unlike}");
        assert_eq!(compressed(&value), plainly(&value));
    }
}

#[test]
fn values_of_every_short_length_are_compressed_as_the_server_does() {
    let mut pglz = Pglz::new();
    let mut random = Random(5);
    for len in (0..300).chain([511, 512, 513, 1023, 1024, 1025]) {
        for kinds in [1, 2, 3, 5, 16] {
            let mut value = random.bytes(len, kinds);
            check(&mut pglz, &value);
            for byte in &mut value {
                *byte ^= 0xf0;
            }
            check(&mut pglz, &value);
            // The end repeats something, cut at each of the last places.
            let back = value.len() / 2;
            value.extend_from_within(back..);
            check(&mut pglz, &value);
        }
    }
}

#[test]
fn matches_are_as_long_and_as_far_away_as_the_server_has_them() {
    let mut pglz = Pglz::new();
    let mut random = Random(6);
    for distance in [
        1, 2, 3, 7, 8, 9, 15, 16, 17, 272, 273, 274, 4093, 4094, 4095, 4096,
    ] {
        for len in [
            3, 4, 7, 8, 9, 15, 16, 17, 18, 23, 24, 25, 271, 272, 273, 274, 546, 547,
        ] {
            let mut value = vec![b'-'; 40];
            value.extend(random.bytes(distance, 256));
            for _ in 0..len {
                value.push(value[value.len() - distance]);
            }
            value.push(!value[value.len() - distance]);
            value.extend([b'-'; 6000]);
            check(&mut pglz, &value);
        }
    }
}

#[test]
fn searches_end_where_the_server_is_content() {
    // Each candidate is a byte longer than the one after it, and up to 60 are passed first.
    let mut pglz = Pglz::new();
    let mut random = Random(7);
    for shortest in [4, 7, 8, 9, 12, 16, 30, 60, 120] {
        for between in [0, 1, 3, 17] {
            let pattern = random.bytes(300, 256);
            let mut value = Vec::new();
            for len in (shortest..shortest + 60).rev() {
                value.extend(&pattern[..len]);
                value.push(!pattern[len]);
                value.extend(random.bytes(between, 256));
            }
            value.extend(&pattern);
            value.resize(value.len() + 20_000, b'-');
            check(&mut pglz, &value);
        }
    }
}

#[test]
fn long_lists_and_long_values_are_compressed_as_the_server_does() {
    let mut pglz = Pglz::new();
    let mut random = Random(8);
    for period in [1, 2, 3, 5, 20, 21, 64, 255, 4094, 4095] {
        // Repeats, with a byte changed now and then.
        let once = random.bytes(period, 4);
        let mut value: Vec<u8> = once.iter().copied().cycle().take(150_000).collect();
        for _ in 0..600 {
            let at = random.below(value.len());
            value[at] = random.below(6) as u8;
        }
        check(&mut pglz, &value);
    }
    // More bytes than the server can take percents of.
    let mut value = vec![7; 22_000_000];
    for at in (0..value.len()).step_by(10_007) {
        value[at] = random.below(256) as u8;
    }
    check(&mut pglz, &value);
}

#[test]
fn a_compressor_gives_the_same_bytes_for_its_first_and_any_later_value() {
    // Positions come round many times, with short values, long ones, and ones given up.
    let mut pglz = Pglz::new();
    let mut random = Random(9);
    for round in 0..400 {
        let len = [40, 200, 700, 5000, 20_000, 513, 512][round % 7] + random.below(100);
        let kinds = [2, 11, 40, 256][random.below(4)];
        let value = random.bytes(len, kinds);
        let mut out = Vec::new();
        let done = pglz.compress(&value, &mut out);
        assert_eq!(
            done.then_some(out),
            compressed(&value),
            "round {round}, {len}"
        );
    }
}

/// A piece of a value.
#[derive(Clone, Debug)]
enum Piece {
    Bytes(Vec<u8>),
    Run(u8, usize),
    Copy { distance: usize, len: usize },
}

fn piece() -> impl Strategy<Value = Piece> {
    let bytes = |kinds| proptest::collection::vec(0u8..kinds, 1..40).prop_map(Piece::Bytes);
    let distance = prop_oneof![1usize..10, 1usize..4000, 4090usize..4100];
    let len = prop_oneof![1usize..40, 260usize..290];
    prop_oneof![
        bytes(3),
        bytes(40),
        bytes(255),
        (200u8.., 1usize..600).prop_map(|(byte, len)| Piece::Run(byte, len)),
        (distance.clone(), len.clone()).prop_map(|(distance, len)| Piece::Copy { distance, len }),
        (distance, len).prop_map(|(distance, len)| Piece::Copy { distance, len }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn values_of_any_kind_are_compressed_as_the_server_does(
        values in proptest::collection::vec(proptest::collection::vec(piece(), 0..120), 1..4)
    ) {
        let mut pglz = Pglz::new();
        for pieces in values {
            let mut value: Vec<u8> = Vec::new();
            for piece in pieces {
                match piece {
                    Piece::Bytes(bytes) => value.extend(bytes),
                    Piece::Run(byte, len) => value.extend(std::iter::repeat_n(byte, len)),
                    Piece::Copy { distance, len } if distance <= value.len() => {
                        for _ in 0..len {
                            value.push(value[value.len() - distance]);
                        }
                    }
                    Piece::Copy { .. } => {}
                }
            }
            let mut out = Vec::new();
            let done = pglz.compress(&value, &mut out);
            let expected = plainly(&value);
            prop_assert_eq!(done.then_some(&out), expected.as_ref());
            if done {
                let mut raw = Vec::new();
                prop_assert!(decompress(&out, value.len(), &mut raw));
                prop_assert_eq!(raw, value);
            }
        }
    }
}

#[test]
fn what_was_compressed_comes_back() {
    let mut pglz = Pglz::new();
    let mut random = Random(7);
    for len in (32..3000).step_by(37) {
        let value: Vec<u8> = (0..len).map(|_| b"aaab\xff\xfe"[random.below(6)]).collect();
        let mut out = Vec::new();
        if pglz.compress(&value, &mut out) {
            let mut raw = Vec::new();
            assert!(decompress(&out, len, &mut raw));
            assert_eq!(raw, value);
            assert!(!decompress(&out, len + 1, &mut raw));
            assert!(!decompress(&out[..out.len() - 1], len, &mut raw));
            assert_eq!(raw, value);
        }
    }
}

#[test]
fn a_match_before_the_start_is_refused() {
    let mut out = b"before".to_vec();
    assert!(!decompress(&[0b10, b'x', 0x00, 2], 4, &mut out));
    assert!(!decompress(&[0b10, b'x', 0x00, 0], 4, &mut out));
    assert!(decompress(&[0b10, b'x', 0x00, 1], 4, &mut out));
    assert_eq!(out, b"beforexxxx");
}
