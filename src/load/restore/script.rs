//! Scripts of SQL, as psql runs them.

use super::super::options::BuildOptions;
use super::Restored;
use super::options::RestoreOptions;
use crate::cluster::target::Target;
use crate::error::{Error, Result};
use std::sync::atomic::AtomicBool;

/// Restores a script.
pub fn restore(
    _target: &Target,
    options: &RestoreOptions,
    _build_options: &BuildOptions,
    _interrupted: &AtomicBool,
) -> Result<Restored> {
    Err(Error::unsupported(format!(
        "\"{}\" is a script",
        options.dump.display()
    )))
}
