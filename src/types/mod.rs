//! fields to datums: one file per type family, one table that lists them all.
