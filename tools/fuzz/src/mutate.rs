//! Changes in bytes as damage, bad programs and bad people make them.

use super::{Input, Random};

/// Numbers at the ends of ranges.
const EDGES: [u32; 12] = [
    0,
    1,
    0x7f,
    0x80,
    0xff,
    0x100,
    0x7fff,
    0xffff,
    0x7fff_fffe,
    0x7fff_ffff,
    0x8000_0000,
    0xffff_ffff,
];
/// The longest run that is moved, removed or put in, in bytes.
const MAX_RUN_BYTES: usize = 600;
/// Inputs do not grow over this many bytes.
const MAX_FILE_BYTES: usize = 1 << 17;

/// Changes one file of the input in one to four places. `others` lend their bytes.
pub fn mutate(input: &mut Input, others: &[Input], random: &mut Random) {
    let which = random.below(input.files.len());
    let bytes = &mut input.files[which].1;
    for _ in 0..=random.below(4) {
        change(bytes, others, random);
    }
    bytes.truncate(MAX_FILE_BYTES);
}

fn change(bytes: &mut Vec<u8>, others: &[Input], random: &mut Random) {
    let len = bytes.len();
    let at = random.below(len);
    let run = 1 + random.below(MAX_RUN_BYTES.min((len - at).max(1)));
    match random.below(9) {
        _ if bytes.is_empty() => bytes.push(random.byte()),
        0 => bytes[at] ^= 1 << random.below(8),
        1 => bytes[at] = random.byte(),
        2 => bytes[at] = EDGES[random.below(EDGES.len())] as u8,
        3 => {
            // A number of four bytes, the least first, or the greatest.
            let edge = EDGES[random.below(EDGES.len())];
            let number = if random.below(2) == 0 {
                edge.to_le_bytes()
            } else {
                edge.to_be_bytes()
            };
            for (byte, new) in bytes[at..].iter_mut().zip(number) {
                *byte = new;
            }
        }
        4 => bytes.truncate(at),
        5 => {
            bytes.drain(at..(at + run).min(len));
        }
        6 => {
            let copy = bytes[at..(at + run).min(len)].to_vec();
            let to = random.below(len);
            bytes.splice(to..to, copy);
        }
        7 => {
            let fill = random.byte();
            bytes[at..(at + run).min(len)].fill(fill);
        }
        _ => {
            let other = &others[random.below(others.len())];
            let other = &other.files[random.below(other.files.len())].1;
            let from = random.below(other.len());
            let until = (from + run).min(other.len());
            let keeps_length = random.below(2) == 0;
            let end = if keeps_length {
                (at + until - from).min(len)
            } else {
                at
            };
            bytes.splice(at..end, other[from..until].iter().copied());
        }
    }
}
