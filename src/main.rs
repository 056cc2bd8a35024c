//! The program: parses the command line, runs the command, prints errors, exits.

use std::process::ExitCode;

fn main() -> ExitCode {
    pgpagewrite::cli::main()
}
