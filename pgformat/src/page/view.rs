//! Reading a page that may be anything: every access is checked.

use super::header::{HEADER_BYTES, PAGE_SIZE_AND_VERSION, PD_VALID_FLAG_BITS, PageHeader};
use super::item_id::{ITEM_ID_BYTES, ItemId};
use super::{PAGE_BYTES, Page};
use crate::error::FormatError;
use crate::ids::OffsetNumber;

/// A page whose header was checked.
#[derive(Clone, Copy, Debug)]
pub struct PageView<'p> {
    page: &'p Page,
    header: PageHeader,
}

fn wrong(
    field: &'static str,
    expected: impl Into<String>,
    found: impl Into<String>,
) -> FormatError {
    FormatError {
        structure: "page header",
        field,
        expected: expected.into(),
        found: found.into(),
    }
}

impl<'p> PageView<'p> {
    /// Checks a page's header as `PageIsVerified` does, without the checksum.
    ///
    /// # Errors
    /// The first field that no page of PostgreSQL can have; a page of zeros (`PageIsNew`)
    /// fails with pd_lower.
    pub fn new(page: &'p Page) -> Result<PageView<'p>, FormatError> {
        let header = PageHeader::read(page);
        if header.page_size_and_version != PAGE_SIZE_AND_VERSION && header.upper != 0 {
            return Err(wrong(
                "pd_pagesize_version",
                format!("{PAGE_SIZE_AND_VERSION:#06x}"),
                format!("{:#06x}", header.page_size_and_version),
            ));
        }
        if header.flags & !PD_VALID_FLAG_BITS != 0 {
            return Err(wrong(
                "pd_flags",
                "bits 0x0007 only",
                format!("{:#06x}", header.flags),
            ));
        }
        if (header.lower as usize) < HEADER_BYTES
            || !(header.lower as usize - HEADER_BYTES).is_multiple_of(ITEM_ID_BYTES)
        {
            return Err(wrong(
                "pd_lower",
                "24 and a multiple of 4 more",
                header.lower.to_string(),
            ));
        }
        if header.upper < header.lower {
            return Err(wrong(
                "pd_upper",
                format!("at least pd_lower {}", header.lower),
                header.upper.to_string(),
            ));
        }
        if header.special < header.upper
            || header.special as usize > PAGE_BYTES
            || !header.special.is_multiple_of(8)
        {
            return Err(wrong(
                "pd_special",
                format!(
                    "a multiple of 8 from pd_upper {} to {PAGE_BYTES}",
                    header.upper
                ),
                header.special.to_string(),
            ));
        }
        Ok(PageView { page, header })
    }

    /// A page of which nothing was written yet (`PageIsNew`).
    pub fn is_new(page: &Page) -> bool {
        PageHeader::read(page).upper == 0
    }

    /// The header.
    pub fn header(&self) -> &PageHeader {
        &self.header
    }

    /// How many line pointers there are (`PageGetMaxOffsetNumber`).
    pub fn item_count(&self) -> OffsetNumber {
        ((self.header.lower as usize - HEADER_BYTES) / ITEM_ID_BYTES) as OffsetNumber
    }

    /// The line pointer of `offset`, from 1; `None` past the last.
    pub fn item_id(&self, offset: OffsetNumber) -> Option<ItemId> {
        if offset == 0 || offset > self.item_count() {
            return None;
        }
        let pos = ItemId::place(offset);
        let bytes = &self.page[pos..pos + ITEM_ID_BYTES];
        Some(ItemId::from_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
    }

    /// The bytes of the item at `offset`.
    ///
    /// # Errors
    /// There is no such line pointer, or it points outside of the items' space.
    pub fn item(&self, offset: OffsetNumber) -> Result<&'p [u8], FormatError> {
        let item = self.item_id(offset).ok_or_else(|| FormatError {
            structure: "line pointer",
            field: "offset number",
            expected: format!("1 to {}", self.item_count()),
            found: offset.to_string(),
        })?;
        let (start, end) = (item.pos(), item.pos() + item.len());
        if start < self.header.upper as usize || end > self.header.special as usize {
            return Err(FormatError {
                structure: "line pointer",
                field: "lp_off",
                expected: format!("an item in {}..{}", self.header.upper, self.header.special),
                found: format!("{start}..{end}"),
            });
        }
        Ok(&self.page[start..end])
    }

    /// The special space.
    pub fn special(&self) -> &'p [u8] {
        &self.page[self.header.special as usize..]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_of_zeros_is_new_and_has_no_view() {
        let page = [0u8; PAGE_BYTES];
        assert!(PageView::is_new(&page));
        assert_eq!(PageView::new(&page).unwrap_err().field, "pd_lower");
    }

    #[test]
    fn a_line_pointer_that_leads_outside_is_an_error() {
        let mut page = [0u8; PAGE_BYTES];
        let header = PageHeader {
            lower: 28,
            upper: 8184,
            ..PageHeader::empty(0)
        };
        header.write(&mut page);
        page[24..28].copy_from_slice(&ItemId::normal(8184, 9).to_bytes());
        let view = PageView::new(&page).unwrap();
        assert_eq!(view.item(1).unwrap_err().found, "8184..8193");
        assert_eq!(view.item(2).unwrap_err().expected, "1 to 1");
    }

    #[test]
    fn bytes_of_any_kind_are_refused_without_a_panic() {
        let mut seed = 1u32;
        for _ in 0..2000 {
            let mut page = [0u8; PAGE_BYTES];
            for byte in &mut page[..64] {
                seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                *byte = (seed >> 24) as u8;
            }
            page[18..20].copy_from_slice(&PAGE_SIZE_AND_VERSION.to_le_bytes());
            page[10..12].fill(0);
            page[13] &= 0x1f;
            page[15] &= 0x1f;
            if let Ok(view) = PageView::new(&page) {
                for offset in 0..=view.item_count() {
                    if let Ok(item) = view.item(offset) {
                        assert!(item.len() < PAGE_BYTES);
                    }
                }
            }
        }
    }
}
