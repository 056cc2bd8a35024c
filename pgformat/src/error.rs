//! What is wrong with bytes that claim to be PostgreSQL's.

/// A structure on disk is not what it should be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{structure}: {field}: expected {expected}, found {found}")]
pub struct FormatError {
    /// The structure, as "page header" or "`pg_control`".
    pub structure: &'static str,
    /// The field of it.
    pub field: &'static str,
    /// What the format asks for.
    pub expected: String,
    /// What stands there.
    pub found: String,
}
