//! Finds the bytes that give delimited text its structure, 64 at a time.
//!
//! Stage 1 of reading records: `record` hands over raw bytes and gets the positions of every
//! byte that stage 2 has to look at. All other bytes are only ever copied.
//!
//! ```text
//! csv   a,"b,""c""",d\n   quotes, and delimiters, CR and LF outside quotes
//!        ^^  ^^ ^^^^ ^
//! text  a\tb\\t\N\n       active backslashes, and delimiters, CR and LF that none escapes
//!         ^ ^   ^ ^
//! ```
//!
//! In CSV with an escape byte of its own, escape bytes within quotes are reported too and
//! escaped quotes are not.
//!
//! A block of 64 bytes becomes one bit mask per byte of interest. Whether a byte stands inside
//! quotes is the running parity of the quotes before it, which a carry-less multiplication by
//! all ones gives for 64 positions at once. The AVX2 path is chosen at run time; the portable
//! path and, for what remains of a block, the plain loop give the same positions.

/// What the bytes mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    /// Quotes hide delimiters and line ends.
    Csv {
        /// The quote.
        quote: u8,
        /// The escape within quotes, where it is not the quote itself.
        escape: Option<u8>,
    },
    /// A backslash hides the byte after it.
    Text,
}

/// How blocks are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Instructions {
    /// 32 bytes at a time; x86-64 with AVX2 and carry-less multiplication.
    #[cfg(target_arch = "x86_64")]
    Avx2,
    /// 8 bytes at a time in an ordinary register.
    Portable,
}

impl Instructions {
    /// The best that this processor has.
    pub fn detect() -> Instructions {
        #[cfg(target_arch = "x86_64")]
        if avx2_is_there() {
            return Instructions::Avx2;
        }
        Instructions::Portable
    }
}

#[cfg(target_arch = "x86_64")]
fn avx2_is_there() -> bool {
    is_x86_feature_detected!("avx2")
        && is_x86_feature_detected!("pclmulqdq")
        && is_x86_feature_detected!("bmi1")
        && is_x86_feature_detected!("popcnt")
}

/// Bytes of a block.
const BLOCK: usize = 64;

/// A scan over consecutive pieces of one text; it keeps what it knows from piece to piece.
#[derive(Debug, Clone)]
pub struct Scanner {
    instructions: Instructions,
    dialect: Dialect,
    delimiter: u8,
    /// CSV: the next byte stands inside quotes.
    in_quote: bool,
    /// Text: the next byte is escaped. CSV with its own escape: the byte before was an active
    /// escape.
    escaped: bool,
    saw_high: bool,
    saw_nul: bool,
    saw_quoted_line_end: bool,
}

impl Scanner {
    /// A scan that begins outside quotes, with the best instructions there are.
    pub fn new(dialect: Dialect, delimiter: u8) -> Scanner {
        Scanner::with_instructions(dialect, delimiter, Instructions::detect())
    }

    /// The same with given instructions.
    ///
    /// # Panics
    /// When this processor lacks them.
    pub fn with_instructions(
        dialect: Dialect,
        delimiter: u8,
        instructions: Instructions,
    ) -> Scanner {
        #[cfg(target_arch = "x86_64")]
        assert!(
            instructions != Instructions::Avx2 || avx2_is_there(),
            "AVX2 was asked for on a processor without it"
        );
        Scanner {
            instructions,
            dialect,
            delimiter,
            in_quote: false,
            escaped: false,
            saw_high: false,
            saw_nul: false,
            saw_quoted_line_end: false,
        }
    }

    /// Begins anew, inside quotes or outside.
    pub fn restart(&mut self, in_quote: bool) {
        self.in_quote = in_quote;
        self.escaped = false;
        self.saw_high = false;
        self.saw_nul = false;
        self.saw_quoted_line_end = false;
    }

    /// The next byte stands inside quotes.
    pub fn in_quote(&self) -> bool {
        self.in_quote
    }

    /// A byte above 0x7f has been seen since the restart.
    pub fn saw_high(&self) -> bool {
        self.saw_high
    }

    /// A zero byte has been seen since the restart.
    pub fn saw_nul(&self) -> bool {
        self.saw_nul
    }

    /// A CR or LF inside quotes has been seen since the restart.
    pub fn saw_quoted_line_end(&self) -> bool {
        self.saw_quoted_line_end
    }

    /// Appends to `found` the positions in `data[from..]`, counted from the start of `data`.
    ///
    /// # Panics
    /// When `data` has 4 GB or more, or `from` lies behind it.
    pub fn scan(&mut self, data: &[u8], from: usize, found: &mut Vec<u32>) {
        assert!(u32::try_from(data.len()).is_ok(), "a chunk is under 4 GB");
        let whole = from + (data.len() - from) / BLOCK * BLOCK;
        let blocks = &data[from..whole];
        match self.instructions {
            #[cfg(target_arch = "x86_64")]
            // SAFETY: with_instructions asserted that the processor has these features.
            Instructions::Avx2 => unsafe {
                match self.dialect {
                    Dialect::Csv { quote, escape } => {
                        avx2::scan_csv(self, blocks, from, quote, escape, found);
                    }
                    Dialect::Text => avx2::scan_text(self, blocks, from, found),
                }
            },
            // SAFETY: Words uses no instructions beyond the target's own.
            Instructions::Portable => unsafe {
                match self.dialect {
                    Dialect::Csv { quote, escape } => {
                        scan_csv::<Words>(self, blocks, from, quote, escape, found);
                    }
                    Dialect::Text => scan_text::<Words>(self, blocks, from, found),
                }
            },
        }
        self.scan_bytes(&data[whole..], whole, found);
    }

    /// The plain loop: it says what the positions are.
    fn scan_bytes(&mut self, bytes: &[u8], base: usize, found: &mut Vec<u32>) {
        for (i, &c) in bytes.iter().enumerate() {
            let here = (base + i) as u32;
            self.saw_high |= c >= 0x80;
            self.saw_nul |= c == 0;
            let line_end = c == b'\n' || c == b'\r';
            match self.dialect {
                Dialect::Csv { quote, escape } => {
                    let is_escape = Some(c) == escape;
                    if is_escape && self.in_quote {
                        self.escaped = !self.escaped;
                        found.push(here);
                    }
                    if c == quote && !self.escaped {
                        self.in_quote = !self.in_quote;
                        found.push(here);
                    }
                    if !is_escape {
                        self.escaped = false;
                    }
                    if self.in_quote {
                        self.saw_quoted_line_end |= line_end;
                    } else if c == self.delimiter || line_end {
                        found.push(here);
                    }
                }
                Dialect::Text => {
                    if self.escaped {
                        self.escaped = false;
                    } else if c == b'\\' {
                        self.escaped = true;
                        found.push(here);
                    } else if c == self.delimiter || line_end {
                        found.push(here);
                    }
                }
            }
        }
    }
}

/// 64 bytes that can be compared with a byte all at once.
trait Lanes: Copy {
    /// # Safety
    /// The processor must have the instructions that the implementation uses.
    unsafe fn load(block: &[u8; BLOCK]) -> Self;
    /// Bit i is set where byte i equals `byte`.
    /// # Safety
    /// As `load`.
    unsafe fn equal(self, byte: u8) -> u64;
    /// Bit i is set where byte i is above 0x7f.
    /// # Safety
    /// As `load`.
    unsafe fn high(self) -> u64;
    /// Bit i of the result is the parity of bits 0 to i of `bits`.
    /// # Safety
    /// As `load`.
    unsafe fn prefix_xor(bits: u64) -> u64;
}

/// The blocks of a CSV piece.
///
/// # Safety
/// The processor must have the instructions of `L`.
#[inline(always)]
#[expect(
    clippy::inline_always,
    reason = "takes on the caller's target features"
)]
unsafe fn scan_csv<L: Lanes>(
    scanner: &mut Scanner,
    blocks: &[u8],
    base: usize,
    quote: u8,
    escape: Option<u8>,
    found: &mut Vec<u32>,
) {
    let delimiter = scanner.delimiter;
    let mut inside = if scanner.in_quote { u64::MAX } else { 0 };
    let (mut high, mut nul, mut quoted_ends) = (0, 0, 0);
    let (chunks, _) = blocks.as_chunks::<BLOCK>();
    for (i, block) in chunks.iter().enumerate() {
        let here = base + i * BLOCK;
        // SAFETY: the caller vouches for the instructions.
        let (quotes, ends, delimiters, escapes) = unsafe {
            let lanes = L::load(block);
            high |= lanes.high();
            nul |= lanes.equal(0);
            (
                lanes.equal(quote),
                lanes.equal(b'\n') | lanes.equal(b'\r'),
                lanes.equal(delimiter),
                match escape {
                    Some(escape) => lanes.equal(escape),
                    None => 0,
                },
            )
        };
        if escapes != 0 || scanner.escaped {
            // An escape of its own is rare: the plain loop takes the block.
            scanner.in_quote = inside != 0;
            scanner.scan_bytes(block, here, found);
            inside = if scanner.in_quote { u64::MAX } else { 0 };
            continue;
        }
        // SAFETY: the caller vouches for the instructions.
        let quoted = unsafe { L::prefix_xor(quotes) } ^ inside;
        inside = ((quoted as i64) >> 63) as u64;
        quoted_ends |= ends & quoted;
        push_positions(found, quotes | ((ends | delimiters) & !quoted), here);
    }
    scanner.in_quote = inside != 0;
    scanner.saw_high |= high != 0;
    scanner.saw_nul |= nul != 0;
    scanner.saw_quoted_line_end |= quoted_ends != 0;
}

/// The blocks of a text piece.
///
/// # Safety
/// The processor must have the instructions of `L`.
#[inline(always)]
#[expect(
    clippy::inline_always,
    reason = "takes on the caller's target features"
)]
unsafe fn scan_text<L: Lanes>(
    scanner: &mut Scanner,
    blocks: &[u8],
    base: usize,
    found: &mut Vec<u32>,
) {
    let delimiter = scanner.delimiter;
    let mut carry = u64::from(scanner.escaped);
    let (mut high, mut nul) = (0, 0);
    let (chunks, _) = blocks.as_chunks::<BLOCK>();
    for (i, block) in chunks.iter().enumerate() {
        // SAFETY: the caller vouches for the instructions.
        let (backslashes, others) = unsafe {
            let lanes = L::load(block);
            high |= lanes.high();
            nul |= lanes.equal(0);
            (
                lanes.equal(b'\\'),
                lanes.equal(b'\n') | lanes.equal(b'\r') | lanes.equal(delimiter),
            )
        };
        let (active, escaped) = if backslashes | carry == 0 {
            (0, 0)
        } else {
            split_backslashes(backslashes, &mut carry)
        };
        push_positions(found, active | (others & !escaped), base + i * BLOCK);
    }
    scanner.escaped = carry != 0;
    scanner.saw_high |= high != 0;
    scanner.saw_nul |= nul != 0;
}

/// Which backslashes of a block are active, and which bytes they escape. `carry` is 1 when the
/// block's first byte is escaped from before, and is set for the next block.
///
/// In a run of active candidates every second one is escaped. Subtracting the candidates from
/// their successors, with the odd bits lent in, carries through each run and leaves its
/// alternation.
#[inline]
fn split_backslashes(backslashes: u64, carry: &mut u64) -> (u64, u64) {
    const ODD: u64 = 0xaaaa_aaaa_aaaa_aaaa;
    let candidates = backslashes & !*carry;
    let successors = (candidates << 1) | ODD;
    let alternation = successors.wrapping_sub(candidates) ^ ODD;
    let escaped = alternation ^ (backslashes | *carry);
    let active = alternation & backslashes;
    *carry = active >> 63;
    (active, escaped)
}

/// Appends the positions of the set bits. Most blocks hold few: four are written without
/// asking how many there are.
#[inline(always)]
#[expect(
    clippy::inline_always,
    reason = "takes on the caller's target features"
)]
fn push_positions(found: &mut Vec<u32>, mut bits: u64, base: usize) {
    if found.capacity() - found.len() < BLOCK + 4 {
        found.reserve(found.capacity().max(4096));
    }
    let count = bits.count_ones() as usize;
    let base = base as u32;
    let length = found.len();
    // SAFETY: room for BLOCK + 4 more was reserved above. At most `count` rounded up to four,
    // so at most 64 positions are written behind the length, and the length grows by `count`,
    // each of which is written.
    unsafe {
        let mut to = found.as_mut_ptr().add(length);
        let end = to.add(count);
        loop {
            for k in 0..4 {
                *to.add(k) = base.wrapping_add(bits.trailing_zeros());
                bits &= bits.wrapping_sub(1);
            }
            to = to.add(4);
            if to >= end {
                break;
            }
        }
        found.set_len(length + count);
    }
}

/// Eight bytes at a time in ordinary registers.
#[derive(Clone, Copy)]
struct Words([u64; 8]);

const LOW7: u64 = 0x7f7f_7f7f_7f7f_7f7f;
const HIGH: u64 = 0x8080_8080_8080_8080;

/// Gathers the top bits of eight bytes into one byte, lowest byte first.
#[inline]
fn gather(tops: u64) -> u64 {
    ((tops >> 7).wrapping_mul(0x0102_0408_1020_4080)) >> 56
}

impl Lanes for Words {
    #[inline(always)]
    unsafe fn load(block: &[u8; BLOCK]) -> Words {
        let mut words = [0; 8];
        let (eights, _) = block.as_chunks::<8>();
        for (word, eight) in words.iter_mut().zip(eights) {
            *word = u64::from_le_bytes(*eight);
        }
        Words(words)
    }

    #[inline(always)]
    unsafe fn equal(self, byte: u8) -> u64 {
        let pattern = u64::from(byte) * 0x0101_0101_0101_0101;
        let mut mask = 0;
        for (i, word) in self.0.iter().enumerate() {
            let x = word ^ pattern;
            // A byte's top bit: set only where all its eight bits are zero.
            let zero = !(((x & LOW7) + LOW7) | x) & HIGH;
            mask |= gather(zero) << (8 * i);
        }
        mask
    }

    #[inline(always)]
    unsafe fn high(self) -> u64 {
        let mut mask = 0;
        for (i, word) in self.0.iter().enumerate() {
            mask |= gather(word & HIGH) << (8 * i);
        }
        mask
    }

    #[inline(always)]
    unsafe fn prefix_xor(mut bits: u64) -> u64 {
        for shift in [1, 2, 4, 8, 16, 32] {
            bits ^= bits << shift;
        }
        bits
    }
}

#[cfg(target_arch = "x86_64")]
mod avx2 {
    //! 32 bytes at a time.

    use std::arch::x86_64::{
        __m256i, _mm_clmulepi64_si128, _mm_cvtsi128_si64, _mm_set_epi64x, _mm_set1_epi8,
        _mm256_cmpeq_epi8, _mm256_loadu_si256, _mm256_movemask_epi8, _mm256_set1_epi8,
    };

    use super::{BLOCK, Lanes, Scanner};

    #[derive(Clone, Copy)]
    struct Vectors(__m256i, __m256i);

    #[inline(always)]
    fn join(low: i32, high: i32) -> u64 {
        u64::from(low as u32) | u64::from(high as u32) << 32
    }

    impl Lanes for Vectors {
        #[inline(always)]
        #[expect(clippy::cast_ptr_alignment, reason = "the loads need no alignment")]
        unsafe fn load(block: &[u8; BLOCK]) -> Vectors {
            // SAFETY: both halves of 32 bytes lie in the block; the loads need no alignment.
            unsafe {
                let at = block.as_ptr().cast::<__m256i>();
                Vectors(_mm256_loadu_si256(at), _mm256_loadu_si256(at.add(1)))
            }
        }

        #[inline(always)]
        unsafe fn equal(self, byte: u8) -> u64 {
            // SAFETY: the caller vouches for AVX2.
            unsafe {
                let pattern = _mm256_set1_epi8(byte as i8);
                join(
                    _mm256_movemask_epi8(_mm256_cmpeq_epi8(self.0, pattern)),
                    _mm256_movemask_epi8(_mm256_cmpeq_epi8(self.1, pattern)),
                )
            }
        }

        #[inline(always)]
        unsafe fn high(self) -> u64 {
            // SAFETY: the caller vouches for AVX2.
            unsafe { join(_mm256_movemask_epi8(self.0), _mm256_movemask_epi8(self.1)) }
        }

        #[inline(always)]
        unsafe fn prefix_xor(bits: u64) -> u64 {
            // SAFETY: the caller vouches for carry-less multiplication.
            unsafe {
                let product =
                    _mm_clmulepi64_si128::<0>(_mm_set_epi64x(0, bits as i64), _mm_set1_epi8(-1));
                _mm_cvtsi128_si64(product) as u64
            }
        }
    }

    /// # Safety
    /// The processor must have the features named.
    #[target_feature(enable = "avx2,pclmulqdq,bmi1,popcnt")]
    pub(super) unsafe fn scan_csv(
        scanner: &mut Scanner,
        blocks: &[u8],
        base: usize,
        quote: u8,
        escape: Option<u8>,
        found: &mut Vec<u32>,
    ) {
        // SAFETY: as this function's own condition.
        unsafe { super::scan_csv::<Vectors>(scanner, blocks, base, quote, escape, found) }
    }

    /// # Safety
    /// The processor must have the features named.
    #[target_feature(enable = "avx2,pclmulqdq,bmi1,popcnt")]
    pub(super) unsafe fn scan_text(
        scanner: &mut Scanner,
        blocks: &[u8],
        base: usize,
        found: &mut Vec<u32>,
    ) {
        // SAFETY: as this function's own condition.
        unsafe { super::scan_text::<Vectors>(scanner, blocks, base, found) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const CSV: Dialect = Dialect::Csv {
        quote: b'"',
        escape: None,
    };

    fn positions(dialect: Dialect, data: &[u8]) -> Vec<u32> {
        let mut found = Vec::new();
        Scanner::new(dialect, b',').scan(data, 0, &mut found);
        found
    }

    fn all_instructions() -> Vec<Instructions> {
        let mut all = vec![Instructions::Portable];
        if Instructions::detect() != Instructions::Portable {
            all.push(Instructions::detect());
        }
        all
    }

    #[test]
    fn quotes_hide_delimiters_and_line_ends() {
        assert_eq!(
            positions(CSV, b"a,\"b,\n\"\"c\",d\r\n"),
            vec![1, 2, 6, 7, 9, 10, 12, 13]
        );
    }

    #[test]
    fn a_backslash_hides_the_byte_after_it_and_every_second_backslash_of_a_run() {
        assert_eq!(
            positions(Dialect::Text, b"a\\,b\\\\,\\N\n"),
            vec![1, 4, 6, 7, 9]
        );
    }

    #[test]
    fn high_and_zero_bytes_are_noticed_in_blocks_and_in_the_rest() {
        for instructions in all_instructions() {
            for length in [1, 63, 64, 65, 200] {
                for at in [0, length - 1] {
                    let mut data = vec![b'a'; length];
                    let mut scanner = Scanner::with_instructions(CSV, b',', instructions);
                    scanner.scan(&data, 0, &mut Vec::new());
                    assert!(!scanner.saw_high() && !scanner.saw_nul());
                    data[at] = 0x80;
                    scanner.scan(&data, 0, &mut Vec::new());
                    assert!(scanner.saw_high() && !scanner.saw_nul());
                    scanner.restart(false);
                    data[at] = 0;
                    scanner.scan(&data, 0, &mut Vec::new());
                    assert!(!scanner.saw_high() && scanner.saw_nul());
                }
            }
        }
    }

    fn dialects() -> impl Strategy<Value = Dialect> {
        prop_oneof![
            Just(CSV),
            Just(Dialect::Csv {
                quote: b'"',
                escape: Some(b'\\')
            }),
            Just(Dialect::Text)
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(400))]

        #[test]
        fn blocks_give_what_the_plain_loop_gives(
            dialect in dialects(),
            in_quote: bool,
            data in proptest::collection::vec(
                proptest::sample::select(&b"aaaaaa,,\"\"\n\r\\\\\\."[..]), 0..400),
            cut in 0usize..400,
        ) {
            let mut plain = Scanner::new(dialect, b',');
            plain.restart(in_quote);
            let mut expected = Vec::new();
            plain.scan_bytes(&data, 0, &mut expected);
            for instructions in all_instructions() {
                let mut scanner = Scanner::with_instructions(dialect, b',', instructions);
                scanner.restart(in_quote);
                let mut found = Vec::new();
                let cut = cut.min(data.len());
                scanner.scan(&data[..cut], 0, &mut found);
                scanner.scan(&data, cut, &mut found);
                prop_assert_eq!(&found, &expected);
                prop_assert_eq!(scanner.in_quote, plain.in_quote);
                prop_assert_eq!(scanner.escaped, plain.escaped);
                prop_assert_eq!(scanner.saw_quoted_line_end, plain.saw_quoted_line_end);
            }
        }
    }
}
