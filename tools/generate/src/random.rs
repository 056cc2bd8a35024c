//! Random numbers that are the same everywhere: SplitMix64.

/// A stream of random numbers.
pub(crate) struct Random(u64);

/// Letters and digits, 64 of them (`.` and `-` fill up), so that six bits choose one.
const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789.-";

impl Random {
    /// A stream of its own for each pair.
    pub(crate) fn new(seed: u64, number: u64) -> Random {
        let mut random = Random(seed.wrapping_mul(0xd6e8_feb8_6659_fd93) ^ number);
        random.next();
        random
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number in `0..bound`.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(bound)) >> 64) as u64
    }

    /// A number in `low..=high`.
    pub(crate) fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.below(high - low + 1)
    }

    /// True once in `n` times.
    pub(crate) fn once_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }

    /// One of these.
    pub(crate) fn pick<'a, T: ?Sized>(&mut self, of: &[&'a T]) -> &'a T {
        of[self.below(of.len() as u64) as usize]
    }

    /// Appends `len` letters and digits.
    pub(crate) fn alphanumeric(&mut self, len: u64, out: &mut Vec<u8>) {
        let mut left = len;
        while left > 0 {
            let mut bits = self.next();
            for _ in 0..left.min(10) {
                out.push(ALPHABET[(bits & 63) as usize]);
                bits >>= 6;
            }
            left = left.saturating_sub(10);
        }
    }

    /// Appends `len` digits.
    pub(crate) fn digits(&mut self, len: u64, out: &mut Vec<u8>) {
        for _ in 0..len {
            out.push(b'0' + self.below(10) as u8);
        }
    }

    /// Appends words until `len` bytes are there, cut at exactly `len`.
    pub(crate) fn words(&mut self, len: u64, out: &mut Vec<u8>) {
        const WORDS: [&str; 24] = [
            "furiously",
            "quickly",
            "carefully",
            "the",
            "ideas",
            "of",
            "page",
            "block",
            "tuple",
            "among",
            "accounts",
            "sleep",
            "above",
            "regular",
            "requests",
            "bold",
            "final",
            "deposits",
            "are",
            "packages",
            "ironic",
            "theodolites",
            "haggle",
            "pending",
        ];
        let end = out.len() + len as usize;
        while out.len() < end {
            out.extend_from_slice(self.pick(&WORDS).as_bytes());
            out.push(b' ');
        }
        out.truncate(end);
    }
}

/// Appends a number in decimal.
pub(crate) fn decimal(number: u64, out: &mut Vec<u8>) {
    let mut digits = [0; 20];
    let mut at = digits.len();
    let mut rest = number;
    loop {
        at -= 1;
        digits[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[at..]);
}
