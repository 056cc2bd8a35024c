//! the only unsafe code: SIMD and libc.

pub mod files;
pub mod simd;
