//! Rounds, medians, ratios.

use crate::method::{Measured, Method};
use crate::workload::{Name, Prepared};
use std::fmt::Write;
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
        "\n{}: {rows} rows, {:.0} MB of input, {}",
        prepared.name.label(),
        mega(prepared.input_bytes),
        prepared.name.description()
    );
    let _ = writeln!(
        text,
        "{:<12} {:>9} {:>9} {:>9} {:>11} {:>9} {:>15}",
        "", "median s", "least s", "most s", "input MB/s", "files MB", "of pgpagewrite"
    );
    let ours = median_of(times, Method::Pgpagewrite);
    for (method, measured) in times {
        let Some(seconds) = median_of(times, *method) else {
            continue;
        };
        let least = measured.iter().map(|m| m.time).min().unwrap_or_default();
        let most = measured.iter().map(|m| m.time).max().unwrap_or_default();
        let ratio = ours.map_or_else(String::new, |ours| format!("{:.2}", seconds / ours));
        let _ = writeln!(
            text,
            "{:<12} {seconds:>9.3} {:>9.3} {:>9.3} {:>11.1} {:>9.0} {ratio:>15}",
            method.name(),
            least.as_secs_f64(),
            most.as_secs_f64(),
            mega(prepared.input_bytes) / seconds,
            mega(measured[0].bytes),
        );
    }
    text
}

fn median_of(times: &Times, method: Method) -> Option<f64> {
    let (_, measured) = times.iter().find(|(m, _)| *m == method)?;
    (!measured.is_empty()).then(|| median(measured).as_secs_f64())
}

/// All workloads in one table: the medians, and how they stand to each other.
pub(crate) fn summary(rounds: usize, all: &[(Name, Times)]) -> String {
    let mut text = String::new();
    let _ = writeln!(
        text,
        "\nmedians of {rounds} rounds in seconds, and their ratios"
    );
    let _ = write!(text, "{:<14}", "");
    for method in Method::ALL {
        let _ = write!(text, " {:>11}", method.name());
    }
    let _ = writeln!(
        text,
        " {:>10} {:>12} {:>11}",
        "copy/ours", "freeze/ours", "ours/floor"
    );
    for (name, times) in all {
        let _ = write!(text, "{:<14}", name.label());
        for method in Method::ALL {
            let _ = write!(text, " {:>11}", number(median_of(times, method), 3));
        }
        let of = |a: Method, b: Method| Some(median_of(times, a)? / median_of(times, b)?);
        let _ = writeln!(
            text,
            " {:>10} {:>12} {:>11}",
            number(of(Method::Copy, Method::Pgpagewrite), 1),
            number(of(Method::Freeze, Method::Pgpagewrite), 1),
            number(of(Method::Pgpagewrite, Method::Floor), 2),
        );
    }
    text
}

fn number(value: Option<f64>, digits: usize) -> String {
    value.map_or_else(|| "-".to_owned(), |value| format!("{value:.digits$}"))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn measured(seconds: &[u64]) -> Vec<Measured> {
        let one = |&s| Measured {
            time: Duration::from_secs(s),
            bytes: 0,
        };
        seconds.iter().map(one).collect()
    }

    #[test]
    fn the_median_of_an_even_number_lies_between_the_two_in_the_middle() {
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

    #[test]
    fn the_summary_divides_the_medians() {
        let times = vec![
            (Method::Copy, measured(&[30, 29, 31])),
            (Method::Pgpagewrite, measured(&[2, 3, 2])),
            (Method::Floor, measured(&[1, 1, 1])),
        ];
        let text = summary(3, &[(Name::Customer, times)]);
        let line = text.lines().last().expect("a line");
        let fields: Vec<&str> = line.split_whitespace().collect();
        let expected = "customer 30.000 - - 2.000 1.000 15.0 - 2.00";
        assert_eq!(fields.join(" "), expected);
    }
}
