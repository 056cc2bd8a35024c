//! Random numbers that are the same in each run (xorshift).

/// A generator.
#[derive(Debug, Clone)]
pub struct Random(u64);

impl Random {
    /// Begins anywhere.
    pub fn new(seed: u64) -> Random {
        // Neighbouring seeds shall not begin alike, and none with 0.
        Random(seed.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// The next 64 bits.
    pub fn next_u64(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// A number under `end`; 0 where `end` is 0.
    pub fn below(&mut self, end: usize) -> usize {
        if end == 0 {
            return 0;
        }
        ((u128::from(self.next_u64()) * end as u128) >> 64) as usize
    }

    /// A byte.
    pub fn byte(&mut self) -> u8 {
        (self.next_u64() >> 56) as u8
    }
}
