//! Locales of this machine's C library: strcoll for the order of text.
//!
//! PostgreSQL compares text under a libc collation by `strcoll_l`
//! (`src/backend/utils/adt/pg_locale.c`); the same function of the same library version gives
//! the same order.

use pgformat::datum::order::Collate;
use std::cell::RefCell;
use std::cmp::Ordering;
use std::ffi::{CStr, CString, c_char, c_int};
use std::sync::Arc;

unsafe extern "C" {
    fn strcoll_l(a: *const c_char, b: *const c_char, locale: libc::locale_t) -> c_int;
    fn strxfrm_l(
        key: *mut c_char,
        s: *const c_char,
        key_bytes: usize,
        locale: libc::locale_t,
    ) -> usize;
}

/// A locale's LC_COLLATE.
#[derive(Debug)]
struct Locale(libc::locale_t);

// SAFETY: a locale_t is not changed after newlocale; POSIX lets any thread use it.
unsafe impl Send for Locale {}
// SAFETY: as above.
unsafe impl Sync for Locale {}

/// The collation of a locale by its name, as `en_US.utf8`; `None` when this machine does not
/// have it.
pub fn locale(name: &str) -> Option<Arc<dyn Collate>> {
    let name = CString::new(name).ok()?;
    // SAFETY: the name ends with a NUL; a null base makes a new locale.
    let locale =
        unsafe { libc::newlocale(libc::LC_COLLATE_MASK, name.as_ptr(), std::ptr::null_mut()) };
    if locale.is_null() {
        return None;
    }
    Some(Arc::new(Locale(locale)))
}

/// The version of this machine's C library, as `2.36`.
pub fn libc_version() -> String {
    // SAFETY: the function returns a constant string.
    let version = unsafe { CStr::from_ptr(libc::gnu_get_libc_version()) };
    version.to_string_lossy().into_owned()
}

impl Drop for Locale {
    fn drop(&mut self) {
        // SAFETY: newlocale gave it, nobody else has it, and this is the last use.
        unsafe { libc::freelocale(self.0) }
    }
}

thread_local! {
    /// The two strings of a comparison, with a NUL each.
    static COPIES: RefCell<(Vec<u8>, Vec<u8>)> = const { RefCell::new((Vec::new(), Vec::new())) };
}

impl Collate for Locale {
    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        COPIES.with_borrow_mut(|(a_copy, b_copy)| {
            for (copy, s) in [(&mut *a_copy, a), (&mut *b_copy, b)] {
                copy.clear();
                copy.extend_from_slice(s);
                copy.push(0);
            }
            // SAFETY: both end with a NUL, and the locale lives as long as self.
            let order =
                unsafe { strcoll_l(a_copy.as_ptr().cast(), b_copy.as_ptr().cast(), self.0) };
            order.cmp(&0)
        })
    }

    fn prefix(&self, s: &[u8]) -> u128 {
        COPIES.with_borrow_mut(|(copy, key)| {
            copy.clear();
            copy.extend_from_slice(s);
            copy.push(0);
            loop {
                // SAFETY: the string ends with a NUL; at most the key's length is written.
                let bytes = unsafe {
                    strxfrm_l(
                        key.as_mut_ptr().cast(),
                        copy.as_ptr().cast(),
                        key.len(),
                        self.0,
                    )
                };
                if bytes < key.len() {
                    let mut first = [0; 16];
                    let len = bytes.min(first.len());
                    first[..len].copy_from_slice(&key[..len]);
                    return u128::from_be_bytes(first);
                }
                key.clear();
                key.resize(bytes + 64, 0);
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_c_locale_orders_by_bytes() {
        let c = locale("C").expect("every machine has it");
        assert_eq!(c.compare(b"B", b"a"), Ordering::Less);
        assert_eq!(c.compare(b"a", b"a"), Ordering::Equal);
        assert_eq!(c.prefix(b"ab") >> 104, 0x61_6200);
        assert_eq!(c.prefix(&[b'x'; 999]), u128::from_be_bytes([b'x'; 16]));
        assert!(locale("no_SUCH.locale").is_none());
        assert!(libc_version().starts_with("2."));
    }
}
