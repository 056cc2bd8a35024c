//! Everything that talks to a server or touches a data directory.
//!
//! A [`target::Target`] opens a [`session::Session`]: a connection to a running server, or to
//! one that is started privately for a stopped cluster. [`facts`] say what the server is and
//! refuse what cannot be loaded; [`staging`] is where relation files are built; [`register`]
//! makes them part of the cluster in one transaction; [`journal`] and [`recover`] clean up
//! after a crash in the middle of it.

pub mod conninfo;
pub mod facts;
pub mod faults;
pub mod journal;
pub mod oids;
pub mod owner;
pub mod private;
pub mod programs;
pub mod recover;
pub mod register;
pub mod script;
pub mod session;
pub mod staging;
pub mod target;
