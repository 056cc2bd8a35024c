//! On what machine and server a comparison ran.

use std::fmt::Write;
use std::fs;
use std::process::Command;
use support::Server;

/// Lines of facts.
pub(crate) fn describe(server: &Server, settings: &[(&str, &str)]) -> String {
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
    let disk = Command::new("findmnt")
        .args(["-n", "-o", "SOURCE,FSTYPE,OPTIONS", "-T"])
        .arg(server.dir())
        .output()
        .map(|o| String::from_utf8_lossy(&o.stdout).trim().to_owned())
        .unwrap_or_default();
    let _ = writeln!(
        text,
        "machine  {model}, {cores} cores, {} MB",
        memory_kb / 1024
    );
    let _ = writeln!(text, "kernel   {}", kernel.trim());
    let _ = writeln!(text, "disk     {disk}");
    let _ = writeln!(
        text,
        "server   {}",
        server.value("postgres", "SELECT version()")
    );
    let settings: Vec<String> = settings
        .iter()
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    let _ = writeln!(text, "set      {}", settings.join(" "));
    text
}
