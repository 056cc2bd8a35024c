//! Running programs to their end and keeping what they said.

use std::process::{Command, Stdio};

/// What a program left behind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ran {
    /// The exit status; `None` when a signal ended it.
    pub status: Option<i32>,
    /// Standard output, invalid UTF-8 replaced.
    pub stdout: String,
    /// Standard error, invalid UTF-8 replaced.
    pub stderr: String,
}

/// Runs a command to its end with no standard input (unless the command has its own).
///
/// # Panics
/// When the program cannot be started.
pub fn run(command: &mut Command) -> Ran {
    let output = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .output()
        .unwrap_or_else(|e| panic!("could not run {command:?}: {e}"));
    Ran {
        status: output.status.code(),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

impl Ran {
    /// Whether it ended with status 0.
    pub fn succeeded(&self) -> bool {
        self.status == Some(0)
    }

    /// Asserts status 0 and gives standard output.
    ///
    /// # Panics
    /// With all that the program said when it failed.
    #[track_caller]
    pub fn expect_success(self) -> String {
        assert!(
            self.succeeded(),
            "the program ended with status {:?}\nstdout: {}\nstderr: {}",
            self.status,
            self.stdout,
            self.stderr
        );
        self.stdout
    }

    /// Asserts this exit status and gives standard error.
    ///
    /// # Panics
    /// With all that the program said when it ended in another way.
    #[track_caller]
    pub fn expect_failure(self, status: i32) -> String {
        assert_eq!(
            self.status,
            Some(status),
            "stdout: {}\nstderr: {}",
            self.stdout,
            self.stderr
        );
        self.stderr
    }

    /// The SQLSTATE of the first `ERROR xxxxx:` on standard error.
    pub fn sqlstate(&self) -> Option<&str> {
        let code = self.stderr.split("ERROR ").nth(1)?.get(..5)?;
        code.bytes()
            .all(|b| b.is_ascii_digit() || b.is_ascii_uppercase())
            .then_some(code)
    }
}
