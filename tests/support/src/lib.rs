//! The harness of the integration tests: everything that a test asks of a real server.
//!
//! A test starts a [`Server`], or runs on [`each_version`], loads something, takes the
//! [`pages`](Server::pages) of a relation, and compares them under the mask of law 1
//! ([`assert_same_pages`]) or asks the server's own checkers ([`assert_healthy`]).
//!
//! ```no_run
//! support::each_version(&[("wal_level", "minimal")], |server| {
//!     let mut client = server.connect("postgres");
//!     client.batch_execute("CREATE TABLE t (i integer)").unwrap();
//!     let pages = server.pages("postgres", "t", support::Fork::Main);
//!     assert!(pages.is_empty());
//!     support::assert_healthy(server, "postgres");
//! });
//! ```
//!
//! A server that is not installed fails the test; nothing is skipped.

mod check;
mod diff;
mod disk;
mod files;
mod mask;
mod program;
mod server;

pub use check::{assert_checksums, assert_healthy, findings};
pub use diff::{assert_same_pages, differences};
pub use disk::SmallDisk;
pub use files::{File, assert_same_files, files};
pub use mask::{Attribute, Kind, ValueIds, attributes, mask, without_trailing_zero_pages};
pub use program::{Ran, run};
pub use server::{Fork, PAGE_BYTES, Page, Server, VERSIONS, each_version, servers_dir};
