//! SQL scripts as psql reads them: statements, commands of psql, and COPY's data.

pub mod lexer;
mod reader;
mod statement;

pub use reader::{Connect, Item, Meta, ScriptReader};
pub use statement::{Class, CopyTarget, CopyTargetOptions, classify, copy_target};
