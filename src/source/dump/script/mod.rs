//! SQL scripts as psql reads them: statements, commands of psql, and COPY's data.

mod inserts;
pub mod lexer;
mod reader;
mod statement;

pub use inserts::{Constants, InsertRows, Inserts};
pub use reader::{Connect, Item, Meta, ScriptReader};
pub use statement::{
    Class, CopyTarget, CopyTargetOptions, InsertTarget, classify, copy_target, insert_target,
};
