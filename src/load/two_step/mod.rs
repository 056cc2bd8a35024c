//! Building now and registering later: `build --stage-only DIR`, then `register DIR`.
//!
//! ```text
//! DIR/16385  16385_vm  16389 ...   the files of all tables, named by OIDs
//! DIR/pgpagewrite.manifest         written last: without it the directory is no stage
//! ```
//!
//! The manifest tells what the files were built for: the server's facts, each table's description,
//! and the length and checksum of every file. A registration believes none of it before it has
//! compared it with the server and read every file; what it puts into the cluster is a copy, so
//! that the stage outlives a registration that fails.

mod copy;
mod manifest;
mod register;
mod stage;

pub use register::{RegisterOptions, register};
