//! the only unsafe code: SIMD and libc.

pub mod credentials;
