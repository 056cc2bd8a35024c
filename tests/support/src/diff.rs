//! Differences between two files, told in the words of the format.

use crate::mask::{Attribute, Item, Kind, is_metapage, item_count, u16_at, values};
use crate::server::{PAGE_BYTES, Page};
use std::fmt::Write;

/// How many differing runs of bytes a report shows before it only counts pages.
const SHOWN: usize = 12;

/// Asserts that two files, masked, are the same. `what` names them in the report.
///
/// # Panics
/// With the first differences: block, item, byte and field, ours and theirs.
#[track_caller]
pub fn assert_same_pages(what: &str, kind: &Kind, ours: &[Page], theirs: &[Page]) {
    if let Some(report) = differences(kind, ours, theirs) {
        panic!("{what} differs from what the server wrote\n{report}");
    }
}

/// A report of the differences; `None` when there are none.
pub fn differences(kind: &Kind, ours: &[Page], theirs: &[Page]) -> Option<String> {
    let mut report = String::new();
    if ours.len() != theirs.len() {
        let _ = writeln!(
            report,
            "blocks: ours {}, theirs {}",
            ours.len(),
            theirs.len()
        );
    }
    let mut shown = 0;
    let mut differing = 0;
    for (block, (our, their)) in ours.iter().zip(theirs).enumerate() {
        if our == their {
            continue;
        }
        differing += 1;
        for (start, end) in runs(our, their) {
            shown += 1;
            if shown <= SHOWN {
                let _ = writeln!(
                    report,
                    "block {block}, byte {start} ({}): ours {}, theirs {}",
                    place(their, start, kind),
                    hex(&our[start..end]),
                    hex(&their[start..end])
                );
            }
        }
    }
    if differing > 0 {
        let _ = writeln!(
            report,
            "{differing} of {} blocks differ, in {shown} places",
            ours.len().min(theirs.len())
        );
    }
    (!report.is_empty()).then_some(report)
}

/// Runs of differing bytes; runs less than four bytes apart are one.
fn runs(ours: &Page, theirs: &Page) -> Vec<(usize, usize)> {
    let mut runs: Vec<(usize, usize)> = Vec::new();
    for pos in (0..PAGE_BYTES).filter(|&pos| ours[pos] != theirs[pos]) {
        match runs.last_mut() {
            Some((_, end)) if pos < *end + 4 => *end = pos + 1,
            _ => runs.push((pos, pos + 1)),
        }
    }
    runs
}

fn hex(bytes: &[u8]) -> String {
    let mut text = String::new();
    for byte in bytes.iter().take(24) {
        let _ = write!(text, "{byte:02x}");
    }
    if bytes.len() > 24 {
        let _ = write!(text, "... ({} bytes)", bytes.len());
    }
    text
}

/// What stands at a byte of a page.
fn place(page: &Page, pos: usize, kind: &Kind) -> String {
    const HEADER: [(usize, &str); 9] = [
        (24, "pd_prune_xid"),
        (20, "pd_pagesize_version"),
        (18, "pd_special"),
        (16, "pd_upper"),
        (14, "pd_lower"),
        (12, "pd_flags"),
        (10, "pd_checksum"),
        (8, "pd_lsn"),
        (0, ""),
    ];
    if pos < 24 {
        let field = HEADER.iter().rev().find(|(end, _)| pos < *end);
        return field.map_or("", |f| f.1).to_owned();
    }
    let is_index = matches!(kind, Kind::Btree | Kind::ToastIndex);
    if *kind == Kind::Map {
        return format!("map byte {}", pos - 24);
    }
    if is_index && pos >= PAGE_BYTES - 16 {
        return match pos - (PAGE_BYTES - 16) {
            0..4 => "btpo_prev",
            4..8 => "btpo_next",
            8..12 => "btpo_level",
            12..14 => "btpo_flags",
            _ => "btpo_cycleid",
        }
        .to_owned();
    }
    if is_index && is_metapage(page) {
        return format!("metapage, {}", meta_field(pos - 24));
    }
    if pos < u16_at(page, 12) {
        return format!("line pointer {}", (pos - 24) / 4 + 1);
    }
    for number in 1..=item_count(page) {
        if let Some(item) = Item::of(page, number)
            && (item.pos..item.pos + item.len.next_multiple_of(8)).contains(&pos)
        {
            let tuple = &page[item.pos..item.pos + item.len];
            let inside = pos - item.pos;
            let field = match kind {
                Kind::Heap(attributes) => heap_field(tuple, inside, attributes),
                Kind::Toast => heap_field(tuple, inside, &[]),
                _ => index_field(inside),
            };
            return format!("item {number} of {}, {field}", item_count(page));
        }
    }
    "hole".to_owned()
}

fn meta_field(inside: usize) -> &'static str {
    match inside {
        0..4 => "btm_magic",
        4..8 => "btm_version",
        8..12 => "btm_root",
        12..16 => "btm_level",
        16..20 => "btm_fastroot",
        20..24 => "btm_fastlevel",
        24..28 => "btm_last_cleanup_num_delpages",
        32..40 => "btm_last_cleanup_num_heap_tuples",
        40 => "btm_allequalimage",
        _ => "unused",
    }
}

fn index_field(inside: usize) -> String {
    match inside {
        0..4 => "t_tid block".to_owned(),
        4..6 => "t_tid offset".to_owned(),
        6..8 => "t_info".to_owned(),
        _ => format!("key byte {}", inside - 8),
    }
}

fn heap_field(tuple: &[u8], inside: usize, attributes: &[Attribute]) -> String {
    let fixed = match inside {
        0..4 => "t_xmin",
        4..8 => "t_xmax",
        8..12 => "t_field3",
        12..18 => "t_ctid",
        18..20 => "t_infomask2",
        20..22 => "t_infomask",
        22 => "t_hoff",
        _ => "",
    };
    if !fixed.is_empty() {
        return fixed.to_owned();
    }
    let hoff = tuple.get(22).map_or(0, |&b| b as usize);
    if inside < hoff {
        return "t_bits".to_owned();
    }
    let last = if tuple.len() >= 24 {
        values(tuple, attributes)
            .into_iter()
            .take_while(|(pos, _)| *pos <= inside)
            .last()
    } else {
        None
    };
    match last {
        Some((pos, index)) => format!("column {}, byte {}", attributes[index].name, inside - pos),
        None => format!("data byte {}", inside - hoff),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_is_told_by_block_item_and_field() {
        let mut theirs = [0; PAGE_BYTES];
        theirs[12..14].copy_from_slice(&28u16.to_le_bytes());
        let word: u32 = 0x1f40 | 1 << 15 | 28 << 17;
        theirs[24..28].copy_from_slice(&word.to_le_bytes());
        theirs[8018] = 1;
        theirs[8022] = 24;
        let mut ours = theirs;
        ours[8020] = 1;
        ours[8026] = 7;
        ours[18] = 5;
        let kind = Kind::Heap(vec![Attribute {
            name: "i".into(),
            len: 4,
            align: 4,
        }]);
        let report = differences(&kind, &[theirs, ours], &[theirs, theirs]).unwrap();
        assert_eq!(
            report,
            "block 1, byte 18 (pd_pagesize_version): ours 05, theirs 00\n\
             block 1, byte 8020 (item 1 of 1, t_infomask): ours 01, theirs 00\n\
             block 1, byte 8026 (item 1 of 1, column i, byte 2): ours 07, theirs 00\n\
             1 of 2 blocks differ, in 3 places\n"
        );
        assert_eq!(differences(&kind, &[ours], &[ours]), None);
    }

    #[test]
    fn a_difference_in_length_is_told_first() {
        let page = [0; PAGE_BYTES];
        assert_eq!(
            differences(&Kind::Map, &[page], &[]).unwrap(),
            "blocks: ours 1, theirs 0\n"
        );
    }
}
