//! What is known of the bytes within reach, and the search for the match that the server finds.
//!
//! The server keeps a list of earlier positions for each value of a weak hash of four bytes. It
//! walks a list from the newest to the oldest position within reach, takes the longest match
//! (of equals the newest), and settles for less the longer it takes: for 128 bytes at first, a
//! tenth less after each position, 9 in the end.
//!
//! A match of eight bytes or more cannot end the search before one of nine, so where there is any,
//! the shorter ones do not matter. So there are two ways through the same history:
//!
//! ```text
//! lists    the server's lists, and how long a position's list was before it (its rank)
//! eights   the positions with the same eight bytes: few of those on the list
//! ```
//!
//! A search goes along `eights` first. How many positions the server would have passed on its
//! list before one of them is the difference of their ranks. Only where no eight bytes match
//! it walks the list, and as less than nine never end a walk, there it need not count.
//!
//! The server links a position when it has gone past it, whatever it found there. So the links
//! do not depend on the matches, and are made for a block of positions at once, ahead of
//! the searches. Links are rings; a position too old is recognised by its distance, so nothing
//! is ever unlinked, nor cleared between values: positions count on from one value to the
//! next, modulo 65536. Now and then the heads are swept, so that none comes round looking young.
//!
//! PostgreSQL: `src/common/pg_lzcompress.c`, `pglz_find_match`, `pglz_hist_add`.

use std::ffi::c_char;

/// The longest match.
pub(super) const MAX_MATCH_BYTES: usize = 273;
/// From this distance on a position is out of reach.
const OUT_OF_REACH: u32 = 0x0fff;
/// What a search is content with at first, and by how much less after each position.
const GOOD_MATCH_BYTES: usize = 128;
const GOOD_DROP_PERCENT: usize = 10;

/// How many positions a search passes at most, by the length of the best match so far.
const ENOUGH_PASSED: [u16; 512] = {
    let mut enough = [u16::MAX; 512];
    let mut good = GOOD_MATCH_BYTES;
    let mut passed = 1;
    let mut len = MAX_MATCH_BYTES;
    loop {
        while len >= good {
            enough[len] = passed;
            len -= 1;
        }
        let drop = good * GOOD_DROP_PERCENT / 100;
        if drop == 0 {
            break;
        }
        good -= drop;
        passed += 1;
    }
    enough
};

/// A search needs so many bytes ahead; the last ones are [`History::find_at_end`]'s.
pub(super) const SEARCHED_BYTES: usize = 16;
/// The last bytes have no place on a list.
const LISTED_BYTES: usize = 4;

/// Positions that are linked at once; each block begins at a multiple of it.
const BLOCK: usize = 512;
/// Positions whose links are kept: those within reach, and a block.
const RING: usize = 8192;
/// Positions left out between values, so that no value is within reach of another.
const GAP: u32 = 0x1000;
/// Positions from one sweep to the next. The oldest head, what is linked until the next look,
/// and the reach are together under 65536.
const SWEEP_AFTER: u32 = 0x8000;
/// Values of the server's hash.
const LISTS: usize = 8192;
/// Values of the hash of eight bytes.
const HASH_BITS: u32 = 13;
const HASHES: usize = 1 << HASH_BITS;

/// A match, or none when it is too short. Of two the greater is better: longer, or newer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Match(u32);

impl Match {
    #[inline(always)]
    fn new(len: u32, distance: u32) -> Match {
        Match(len << 16 | (distance ^ 0xffff))
    }

    /// No match of more than `len` bytes.
    #[inline(always)]
    fn none_above(len: u32) -> Match {
        Match(len << 16 | 0xffff)
    }

    #[inline(always)]
    pub(super) fn len(self) -> usize {
        (self.0 >> 16) as usize
    }

    /// How many bytes back it lies.
    #[inline(always)]
    pub(super) fn distance(self) -> u32 {
        self.0 & 0xffff ^ 0xffff
    }

    /// How many positions on the list are enough then.
    #[inline(always)]
    fn enough_passed(self) -> u16 {
        ENOUGH_PASSED[self.len() % ENOUGH_PASSED.len()]
    }
}

/// A place on one of the server's lists, as one word that is loaded and stored whole: below
/// a position modulo 65536, above its rank modulo 65536, of which only differences count.
#[derive(Clone, Copy, Debug)]
struct Listed(u32);

impl Listed {
    #[inline(always)]
    fn position(self) -> u32 {
        self.0 & 0xffff
    }

    #[inline(always)]
    fn rank(self) -> u16 {
        (self.0 >> 16) as u16
    }

    #[inline(always)]
    fn at(self, position: u16) -> Listed {
        Listed(self.0 & 0xffff_0000 | position as u32)
    }

    /// The place behind it.
    #[inline(always)]
    fn next(self, position: u16) -> Listed {
        Listed(self.0.wrapping_add(0x1_0000)).at(position)
    }
}

/// The positions within reach, with their links.
#[derive(Debug)]
pub(super) struct History {
    /// The newest position on each of the server's lists; its rank is the next one's.
    lists: [Listed; LISTS],
    /// What a position's list had before it, and the position's own rank.
    older: [Listed; RING],
    /// The newest position of each hash of eight bytes.
    eights: [u16; HASHES],
    /// The last position before with the same hash of eight bytes.
    older_eights: [u16; RING],
    /// The next position.
    next: u16,
    /// Positions since the heads were swept.
    unswept: u32,
}

impl History {
    /// Nothing within reach.
    #[expect(
        clippy::large_stack_arrays,
        reason = "a constant, which goes onto the heap once for a compressor"
    )]
    pub(super) const EMPTY: History = History {
        lists: [Listed(0); LISTS],
        older: [Listed(0); RING],
        eights: [0; HASHES],
        older_eights: [0; RING],
        next: GAP as u16,
        unswept: 0,
    };

    /// Begins a value: nothing that was is within reach.
    pub(super) fn begin(&mut self) {
        self.advance(GAP);
    }

    /// The position of the next block.
    pub(super) fn next(&self) -> u16 {
        self.next
    }

    /// Goes on by `count` positions, and to the beginning of a block.
    fn advance(&mut self, count: u32) {
        let count = count.next_multiple_of(BLOCK as u32);
        self.next = self.next.wrapping_add(count as u16);
        self.unswept += count;
        if self.unswept > SWEEP_AFTER {
            self.unswept = 0;
            self.sweep();
        }
    }

    /// Lets what is far out of reach look no older than that.
    fn sweep(&mut self) {
        let next = self.next;
        let younger = |head: u16| next.wrapping_sub(next.wrapping_sub(head).min(2 * GAP as u16));
        for head in &mut self.lists {
            *head = head.at(younger(head.0 as u16));
        }
        for head in &mut self.eights {
            *head = younger(*head);
        }
    }

    /// Links the next positions of `source`, from `from` on. Returns where they end, which is before
    /// the last three bytes.
    #[inline(never)]
    pub(super) fn link_block(&mut self, source: &[u8], from: usize, mask: u16) -> usize {
        let ahead = &source[from..source.len().min(from + BLOCK + 7)];
        let count = BLOCK.min(ahead.len() - (LISTED_BYTES - 1));
        let mut lists = [0u16; BLOCK];
        let fours = ahead
            .iter()
            .zip(&ahead[1..])
            .zip(&ahead[2..])
            .zip(&ahead[3..]);
        for (list, (((a, b), c), d)) in lists.iter_mut().zip(fours) {
            *list = list_hash(*a, *b, *c, *d) & mask;
        }
        let begin = self.next as usize % RING;
        let mut position = self.next;
        let links = self.older[begin..begin + BLOCK]
            .iter_mut()
            .zip(&mut self.older_eights[begin..begin + BLOCK]);
        let eights = ahead.windows(8);
        let with_eight = eights.len().min(count);
        for ((list, bytes), (older, older_eight)) in lists.iter().zip(eights).zip(links) {
            let head = &mut self.lists[*list as usize % LISTS];
            *older = *head;
            *head = head.next(position);
            let head = &mut self.eights[hash_eight(eight(bytes, 0))];
            *older_eight = *head;
            *head = position;
            position = position.wrapping_add(1);
        }
        // The value's last ones have no eight bytes.
        let links = &mut self.older[begin + with_eight..begin + count];
        for (list, older) in lists[with_eight..count].iter().zip(links) {
            let head = &mut self.lists[*list as usize % LISTS];
            *older = *head;
            *head = head.next(position);
            position = position.wrapping_add(1);
        }
        self.advance(count as u32);
        from + count
    }

    /// The match that the server finds for what is at `at`, [`SEARCHED_BYTES`] or more, and
    /// has been linked as `position`. None has less than four bytes.
    #[inline(always)]
    pub(super) fn find(&self, source: &[u8], at: usize, position: u16) -> Match {
        let newest = self.older[position as usize % RING].position();
        if distance(position, newest) >= OUT_OF_REACH {
            return Match::none_above(3);
        }
        let newest_eight = self.older_eights[position as usize % RING] as u32;
        if distance(position, newest_eight) < OUT_OF_REACH {
            let found = self.find_long(source, at, position, newest_eight);
            if found.len() >= 8 {
                return found;
            }
        }
        self.find_short(source, at, position, newest)
    }

    /// The match among those of eight bytes or more.
    #[inline(never)]
    fn find_long(&self, source: &[u8], at: usize, position: u16, mut candidate: u32) -> Match {
        let (first, second) = (eight(source, at), eight(source, at + 8));
        let rank = self.older[position as usize % RING].rank();
        let mut best = Match::none_above(7);
        let mut back = distance(position, candidate);
        while back < OUT_OF_REACH {
            let link = candidate as usize % RING;
            let behind: &[u8; SEARCHED_BYTES] = source[at - back as usize..]
                .first_chunk()
                .expect("more bytes than ahead");
            // Otherwise just their hash is the same.
            if eight(behind, 0) == first {
                let passed = rank.wrapping_sub(self.older[link].rank()).wrapping_sub(1);
                if passed >= best.enough_passed() {
                    break;
                }
                let differ = eight(behind, 8) ^ second;
                if differ == 0 {
                    let len = common_bytes(source, at, back as usize);
                    best = best.max(Match::new(len as u32, back));
                    if len == MAX_MATCH_BYTES {
                        break;
                    }
                } else {
                    best = best.max(Match::new(8 + differ.trailing_zeros() / 8, back));
                }
            }
            candidate = self.older_eights[link] as u32;
            back = distance(position, candidate);
        }
        best
    }

    /// The match on the list when none has eight bytes.
    #[inline(always)]
    fn find_short(&self, source: &[u8], at: usize, position: u16, mut candidate: u32) -> Match {
        let first = eight(source, at);
        let mut best = Match::none_above(3);
        let mut back = distance(position, candidate);
        while back < OUT_OF_REACH {
            let differ = eight(source, at - back as usize) ^ first;
            best = best.max(Match::new(differ.trailing_zeros() / 8, back));
            candidate = self.older[candidate as usize % RING].position();
            back = distance(position, candidate);
        }
        best
    }

    /// The match that the server finds for the last bytes, when all are linked. None has less
    /// than three bytes.
    pub(super) fn find_at_end(&self, source: &[u8], at: usize, position: u16, mask: u16) -> Match {
        let ahead = &source[at..];
        let mut candidate = match *ahead {
            [_, _, _, _, ..] => self.older[position as usize % RING].position(),
            // Less than four bytes are looked up by the first one alone.
            [first, ..] => self.lists[(wide(first) & mask) as usize % LISTS].position(),
            [] => return Match::none_above(2),
        };
        let mut best = Match::none_above(2);
        let mut passed = 0;
        loop {
            let back = distance(position, candidate);
            if back >= OUT_OF_REACH || passed >= best.enough_passed() {
                return best;
            }
            let behind = &source[at - back as usize..];
            let len = behind.iter().zip(ahead).take_while(|(x, y)| x == y).count();
            best = best.max(Match::new(len as u32, back));
            candidate = self.older[candidate as usize % RING].position();
            passed += 1;
        }
    }
}

/// How far `candidate` lies before `position`, both modulo 65536.
#[inline(always)]
fn distance(position: u16, candidate: u32) -> u32 {
    (position as u32).wrapping_sub(candidate) & 0xffff
}

#[inline(always)]
fn eight(bytes: &[u8], at: usize) -> u64 {
    let eight = bytes[at..].first_chunk().expect("eight more bytes");
    u64::from_le_bytes(*eight)
}

#[inline(always)]
fn hash_eight(eight: u64) -> usize {
    (eight.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - HASH_BITS)) as usize
}

/// A byte as the platform's `char`, signed or not, made an `int`.
#[inline(always)]
fn wide(byte: u8) -> u16 {
    byte as c_char as u16
}

/// Four bytes, hashed the server's way before its mask, which leaves no more than 13 bits.
///
/// PostgreSQL: `pglz_hist_idx`.
#[inline(always)]
fn list_hash(a: u8, b: u8, c: u8, d: u8) -> u16 {
    wide(a) << 6 ^ wide(b) << 4 ^ wide(c) << 2 ^ wide(d)
}

/// The length of a match at `at` whose first 16 bytes are known to agree.
#[inline(never)]
fn common_bytes(source: &[u8], at: usize, back: usize) -> usize {
    let end = source.len().min(at + MAX_MATCH_BYTES);
    let ahead = &source[at + SEARCHED_BYTES..end];
    let behind = &source[at + SEARCHED_BYTES - back..end - back];
    let (ahead, ahead_rest) = ahead.as_chunks::<8>();
    let (behind, behind_rest) = behind.as_chunks::<8>();
    for (i, (x, y)) in ahead.iter().zip(behind).enumerate() {
        let differ = u64::from_le_bytes(*x) ^ u64::from_le_bytes(*y);
        if differ != 0 {
            return SEARCHED_BYTES + i * 8 + differ.trailing_zeros() as usize / 8;
        }
    }
    let rest = ahead_rest.iter().zip(behind_rest);
    SEARCHED_BYTES + ahead.len() * 8 + rest.take_while(|(x, y)| x == y).count()
}
