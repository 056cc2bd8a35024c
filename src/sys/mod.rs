//! the only unsafe code: SIMD and libc.

pub mod collate;
pub mod files;
pub mod simd;
