//! The only unsafe code: SIMD and libc behind safe fronts.

pub mod collate;
pub mod credentials;
pub mod decimal;
pub mod delimiters;
pub mod files;
pub mod mapping;
pub mod memory;
pub mod simd;
