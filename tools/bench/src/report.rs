//! Rounds, medians, ratios.

use crate::method::{Measured, Method};
use crate::workload::Prepared;
use std::fmt::Write;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// The times of each method, one a round.
pub(crate) type Times = Vec<(Method, Vec<Measured>)>;

/// Runs all methods in turn, so many times.
pub(crate) fn rounds(
    rounds: usize,
    methods: &[Method],
    mut load: impl FnMut(Method) -> Measured,
) -> Times {
    let mut times: Times = methods.iter().map(|&m| (m, Vec::new())).collect();
    for round in 1..=rounds {
        for (method, measured) in &mut times {
            let one = load(*method);
            eprintln!(
                "round {round}: {} {:.2} s",
                method.name(),
                one.time.as_secs_f64()
            );
            measured.push(one);
        }
    }
    times
}

fn median(measured: &[Measured]) -> Duration {
    let mut times: Vec<Duration> = measured.iter().map(|m| m.time).collect();
    times.sort();
    let half = times.len() / 2;
    if times.len() % 2 == 1 {
        times[half]
    } else {
        (times[half - 1] + times[half]) / 2
    }
}

/// The table of a workload: seconds and how many times each is slower than pgpagewrite.
pub(crate) fn table(prepared: &Prepared, times: &Times) -> String {
    let mega = |bytes: u64| bytes as f64 / 1e6;
    let rows: u64 = prepared.inputs.iter().map(|input| input.rows).sum();
    let mut text = String::new();
    let _ = writeln!(
        text,
        "\n{}: {rows} rows, {:.0} MB of input",
        prepared.name.label(),
        mega(prepared.input_bytes)
    );
    let _ = writeln!(
        text,
        "{:<12} {:>9} {:>9} {:>9} {:>11} {:>9} {:>15}",
        "", "median s", "least s", "most s", "input MB/s", "files MB", "of pgpagewrite"
    );
    let ours = times
        .iter()
        .find(|(method, measured)| *method == Method::Pgpagewrite && !measured.is_empty())
        .map(|(_, measured)| median(measured).as_secs_f64());
    for (method, measured) in times {
        if measured.is_empty() {
            continue;
        }
        let seconds = median(measured).as_secs_f64();
        let least = measured.iter().map(|m| m.time).min().unwrap_or_default();
        let most = measured.iter().map(|m| m.time).max().unwrap_or_default();
        let ratio = ours.map_or_else(String::new, |ours| format!("{:.2}", seconds / ours));
        let _ = writeln!(
            text,
            "{:<12} {seconds:>9.2} {:>9.2} {:>9.2} {:>11.1} {:>9.0} {ratio:>15}",
            method.name(),
            least.as_secs_f64(),
            most.as_secs_f64(),
            mega(prepared.input_bytes) / seconds,
            mega(measured[0].bytes),
        );
    }
    text
}

/// Keeps a report under today's date.
pub(crate) fn save(text: &str) {
    let date = Command::new("date")
        .arg("+%Y-%m-%d-%H%M")
        .output()
        .map(|o| String::from_utf8_lossy(&o.stdout).trim().to_owned())
        .expect("the date");
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../results");
    fs::create_dir_all(&dir).expect("tools/results");
    let path = dir.join(format!("{date}.txt"));
    fs::write(&path, text).expect("the report written");
    eprintln!("kept in {}", path.display());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_of_an_even_number_lies_between_the_two_in_the_middle() {
        let measured = |seconds: &[u64]| -> Vec<Measured> {
            let one = |&s| Measured {
                time: Duration::from_secs(s),
                bytes: 0,
            };
            seconds.iter().map(one).collect()
        };
        assert_eq!(median(&measured(&[9, 1, 5])), Duration::from_secs(5));
        assert_eq!(median(&measured(&[8, 1, 9, 4])), Duration::from_secs(6));
    }

    #[test]
    fn methods_take_turns() {
        let mut order = Vec::new();
        rounds(2, &[Method::Copy, Method::Floor], |method| {
            order.push(method);
            Measured {
                time: Duration::ZERO,
                bytes: 0,
            }
        });
        assert_eq!(
            order,
            [Method::Copy, Method::Floor, Method::Copy, Method::Floor]
        );
    }
}
