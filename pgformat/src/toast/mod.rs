//! Values that do not fit: compression, and storage out of line.
//!
//! A formed tuple longer than [`toaster::TOAST_TUPLE_THRESHOLD`] goes through the
//! [`toaster`], which compresses values ([`compress`], [`pglz`]) and moves values out of line
//! into [`chunks`], leaving a [`mod@pointer`] in the row, until the tuple is as short as the table asks.

pub mod chunks;
pub mod compress;
pub mod pglz;
pub mod pointer;
pub mod toaster;

#[cfg(test)]
mod tests;
