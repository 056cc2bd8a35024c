//! On what machine and server a comparison ran.

use crate::method::Method;
use std::fmt::Write;
use std::fs;
use std::path::Path;
use std::process::Command;
use support::Server;

/// Lines of facts.
pub(crate) fn describe(
    server: &Server,
    settings: &[(&str, &str)],
    program: &Path,
    options: &[String],
    methods: &[Method],
) -> String {
    let mut text = String::new();
    let cpu = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = cpu
        .lines()
        .find_map(|line| line.strip_prefix("model name")?.split(": ").nth(1))
        .unwrap_or("unknown");
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let memory = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let memory_kb: u64 = memory
        .lines()
        .find_map(|line| {
            let rest = line.strip_prefix("MemTotal:")?.trim();
            rest.split(' ').next()?.parse().ok()
        })
        .unwrap_or(0);
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let settings: Vec<String> = settings
        .iter()
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    let facts = [
        ("date", said(Command::new("date").arg("+%Y-%m-%d"))),
        (
            "machine",
            format!("{model}, {cores} cores, {} MB", memory_kb / 1024),
        ),
        ("kernel", kernel.trim().to_owned()),
        (
            "disk",
            said(
                Command::new("findmnt")
                    .args(["-n", "-o", "SOURCE,FSTYPE,OPTIONS", "-T"])
                    .arg(server.dir()),
            ),
        ),
        ("server", server.value("postgres", "SELECT version()")),
        (
            "settings",
            format!(
                "{}, data checksums on, all else default",
                settings.join(" ")
            ),
        ),
        (
            "program",
            format!(
                "{} {}",
                said(Command::new(program).arg("--version")),
                options.join(" ")
            )
            .trim()
            .to_owned(),
        ),
        (
            "rounds",
            "every way into new files, in turn, input in the page cache, fsync included; \
             from the start of the command to its end"
                .to_owned(),
        ),
    ];
    for (name, fact) in facts {
        let _ = writeln!(text, "{name:<12} {fact}");
    }
    for method in methods {
        let _ = writeln!(text, "{:<12} {}", method.name(), method.description());
    }
    text
}

/// What a command prints.
fn said(command: &mut Command) -> String {
    command
        .output()
        .map(|o| String::from_utf8_lossy(&o.stdout).trim().to_owned())
        .unwrap_or_default()
}
