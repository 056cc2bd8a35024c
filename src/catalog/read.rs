//! Reads the catalogs.
