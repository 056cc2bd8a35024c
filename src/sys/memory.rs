//! What is said to the processor about memory beforehand.

/// Has the memory that `bytes` begin at brought near, to be read soon.
#[inline(always)]
pub fn prefetch(bytes: &[u8]) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T1, _mm_prefetch};
        // SAFETY: a hint: the processor reads nothing on its account that it may not.
        unsafe { _mm_prefetch::<_MM_HINT_T1>(bytes.as_ptr().cast()) };
    }
    let _ = bytes;
}
