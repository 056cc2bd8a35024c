//! bytes to fields: csv, text; splitting a file for parallel parsing.
