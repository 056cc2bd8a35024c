//! pgpagewrite builds PostgreSQL data files directly and registers them in a cluster.
//!
//! The modules stand in layers; each imports only what stands below it:
//!
//! ```text
//! cli > load > cluster > catalog > build > sort, types > record > source > sys > pgformat
//! ```
//!
//! `error` and `text` (small helpers of wording) may be used by all. `sys` holds the only unsafe code.

pub mod build;
pub mod catalog;
pub mod cli;
pub mod cluster;
pub mod error;
pub mod load;
pub mod record;
pub mod sort;
pub mod source;
pub mod sys;
pub mod types;
