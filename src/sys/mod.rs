//! the only unsafe code: SIMD and libc.
