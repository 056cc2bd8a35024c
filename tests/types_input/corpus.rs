//! Texts to try: picked by hand, then put together at random from pieces that a type knows.

/// A generator of random numbers that gives the same in each run (xorshift).
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Random {
        Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// 0 to `end` - 1.
    pub(crate) fn below(&mut self, end: usize) -> usize {
        (self.next() >> 11) as usize % end
    }

    pub(crate) fn pick<'a, T: ?Sized>(&mut self, from: &[&'a T]) -> &'a T {
        from[self.below(from.len())]
    }

    pub(crate) fn digits(&mut self, len: usize) -> String {
        (0..len)
            .map(|_| (b'0' + self.below(10) as u8) as char)
            .collect()
    }
}

/// Texts picked by hand with `count` random ones: some made of pieces, some picked ones with a
/// change.
pub(crate) fn texts(seed: u64, picked: &[&str], pieces: &[&str], count: usize) -> Vec<String> {
    let mut random = Random::new(seed);
    let mut all: Vec<String> = picked.iter().map(|&s| s.to_owned()).collect();
    for i in 0..count {
        all.push(if i % 3 == 0 && !picked.is_empty() {
            change(random.pick(picked), pieces, &mut random)
        } else {
            let len = 1 + random.below(7);
            (0..len).map(|_| random.pick(pieces)).collect()
        });
    }
    all.retain(|text| !text.contains('\0') && text.len() < 1900);
    all
}

/// One or two characters taken out, doubled, or replaced by a piece.
pub(crate) fn change(text: &str, pieces: &[&str], random: &mut Random) -> String {
    let mut text = text.to_owned();
    for _ in 0..=random.below(2) {
        let at: Vec<usize> = text.char_indices().map(|(at, _)| at).collect();
        if at.is_empty() {
            text.push_str(random.pick(pieces));
            continue;
        }
        let at = at[random.below(at.len())];
        match random.below(4) {
            0 => {
                text.remove(at);
            }
            1 => text.insert_str(at, random.pick(pieces)),
            2 => {
                let c = text[at..].chars().next().unwrap();
                text.insert(at, c);
            }
            _ => {
                text.remove(at);
                text.insert_str(at, random.pick(pieces));
            }
        }
    }
    text
}
