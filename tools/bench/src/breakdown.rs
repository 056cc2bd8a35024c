//! Where the time of a row goes: the stages of pgpagewrite's own report, divided by what they
//! worked on.

use crate::method;
use crate::workload::{DB, Prepared};
use serde_json::Value;
use std::fmt::Write;
use std::fs;
use std::path::Path;
use support::{PAGE_BYTES, Server};

/// The stages as rows pass them.
const FLOW: [&str; 6] = ["read", "pack", "wait", "place", "seal", "index"];

/// What a load worked on, and how long.
#[derive(Debug, Clone, Default, PartialEq)]
struct Budget {
    rows: f64,
    fields: f64,
    /// Of heap, TOAST and indexes.
    pages: f64,
    index_entries: f64,
    /// Thread seconds by stage.
    stages: Vec<(String, f64)>,
    build_seconds: f64,
    register_seconds: f64,
    total_seconds: f64,
    user_seconds: f64,
    system_seconds: f64,
}

/// Loads so many times and gives the budget of the load with the median time.
pub(crate) fn of(
    prepared: &Prepared,
    server: &Server,
    program: &Path,
    options: &[String],
    rounds: usize,
) -> Result<String, String> {
    let mut budgets = Vec::new();
    for _ in 0..rounds.max(1) {
        prepared.warm(false).map_err(|e| e.to_string())?;
        prepared.reset(server);
        let columns = columns(prepared, server);
        let mut command = method::build(prepared, server, program, options);
        command.args(["--report", "json"]);
        let before = child_seconds();
        let said = support::run(&mut command).expect_success();
        let after = child_seconds();
        prepared.loaded_bytes(server);
        let report: Value =
            serde_json::from_str(&said).map_err(|e| format!("pgpagewrite's report: {e}"))?;
        let mut budget = Budget::of_report(&report, &columns);
        budget.user_seconds = after.0 - before.0;
        budget.system_seconds = after.1 - before.1;
        budgets.push(budget);
    }
    budgets.sort_by(|a, b| a.total_seconds.total_cmp(&b.total_seconds));
    let budget = budgets.swap_remove(budgets.len() / 2);
    Ok(format!(
        "\n{} ({}), budget of the median of {} loads\n{}",
        prepared.name.label(),
        prepared.name.description(),
        rounds.max(1),
        budget.to_text()
    ))
}

/// How many columns each table has.
fn columns(prepared: &Prepared, server: &Server) -> Vec<f64> {
    let count = |table: &str| {
        let sql = format!(
            "SELECT count(*) FROM pg_attribute
              WHERE attrelid = '{table}'::regclass AND attnum > 0 AND NOT attisdropped"
        );
        let count = server.value(DB, &sql).parse::<u32>();
        f64::from(count.expect("a number of columns"))
    };
    prepared.inputs.iter().map(|i| count(i.table)).collect()
}

/// Seconds that ended children spent in user and in system mode, in steps of 10 ms.
fn child_seconds() -> (f64, f64) {
    let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // proc(5): the fields after the name, which may have spaces, begin with the third.
    let mut fields = stat
        .rsplit(')')
        .next()
        .unwrap_or_default()
        .split_whitespace()
        .skip(16 - 3);
    let mut ticks = || fields.next().and_then(|f| f.parse::<f64>().ok());
    (
        ticks().unwrap_or_default() / 100.0,
        ticks().unwrap_or_default() / 100.0,
    )
}

impl Budget {
    /// From pgpagewrite's report; `columns` are those of its tables.
    fn of_report(report: &Value, columns: &[f64]) -> Budget {
        let number = |value: &Value| value.as_f64().unwrap_or_default();
        let mut budget = Budget {
            build_seconds: number(&report["seconds"]["build"]),
            register_seconds: number(&report["seconds"]["register"]),
            total_seconds: number(&report["seconds"]["total"]),
            ..Budget::default()
        };
        let mut bytes = 0.0;
        let tables = report["tables"].as_array().map_or(&[][..], Vec::as_slice);
        for (table, columns) in tables.iter().zip(columns) {
            let rows = number(&table["rows"]);
            budget.rows += rows;
            budget.fields += rows * columns;
            bytes += number(&table["heap_bytes"]) + number(&table["toast_bytes"]);
            for index in table["indexes"].as_array().into_iter().flatten() {
                bytes += number(&index["bytes"]);
                if index["built"]["by"] == "native" {
                    budget.index_entries += rows;
                }
            }
            for (stage, seconds) in table["thread_seconds"].as_object().into_iter().flatten() {
                let seconds = number(seconds);
                match budget.stages.iter_mut().find(|(name, _)| name == stage) {
                    Some((_, sum)) => *sum += seconds,
                    None => budget.stages.push((stage.clone(), seconds)),
                }
            }
        }
        // In the order of the flow; stages not known here stand behind.
        let place = |name: &str| FLOW.iter().position(|known| *known == name);
        budget
            .stages
            .sort_by_key(|(name, _)| place(name).unwrap_or(FLOW.len()));
        budget.pages = bytes / PAGE_BYTES as f64;
        budget
    }

    fn to_text(&self) -> String {
        let mut text = String::new();
        let _ = writeln!(
            text,
            "{} rows, {} fields, {} pages, {} index entries",
            self.rows, self.fields, self.pages, self.index_entries
        );
        let _ = writeln!(
            text,
            "wall: build {:.3} s, register {:.3} s, total {:.3} s; \
             processor: user {:.2} s, system {:.2} s",
            self.build_seconds,
            self.register_seconds,
            self.total_seconds,
            self.user_seconds,
            self.system_seconds
        );
        let _ = writeln!(
            text,
            "{:<10} {:>9} {:>7} {:>10} {:>10} {:>10} {:>15}",
            "stage", "thread s", "share", "ns/row", "ns/field", "ns/page", "ns/index entry"
        );
        let all: f64 = self.stages.iter().map(|(_, seconds)| seconds).sum();
        let stages = self.stages.iter().map(|(name, s)| (name.as_str(), *s));
        let cpu = self.user_seconds + self.system_seconds;
        for (name, seconds) in stages.chain([("all", all), ("processor", cpu)]) {
            let share = match name {
                "processor" => String::new(),
                _ => format!("{:.1}%", 100.0 * seconds / all.max(1e-9)),
            };
            let _ = writeln!(
                text,
                "{name:<10} {seconds:>9.3} {share:>7} {:>10} {:>10} {:>10} {:>15}",
                nanoseconds(seconds, self.rows),
                nanoseconds(seconds, self.fields),
                nanoseconds(seconds, self.pages),
                nanoseconds(seconds, self.index_entries)
            );
        }
        text
    }
}

fn nanoseconds(seconds: f64, things: f64) -> String {
    if things == 0.0 {
        "-".to_owned()
    } else {
        format!("{:.1}", seconds * 1e9 / things)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_budget_divides_the_stages_by_rows_fields_pages_and_entries() {
        let report = json!({
            "tables": [{
                "rows": 1000,
                "heap_bytes": 81_920,
                "toast_bytes": 0,
                "indexes": [
                    {"bytes": 40_960, "built": {"by": "native"}},
                    {"bytes": 40_960, "built": {"by": "native"}},
                    {"bytes": 0, "built": {"by": "server", "reason": "access method gin"}},
                ],
                "thread_seconds": {"pack": 0.003, "seal": 0.001},
            }],
            "seconds": {"build": 0.5, "register": 0.25, "total": 1.0},
        });
        let budget = Budget::of_report(&report, &[10.0]);
        let text = budget.to_text();
        let lines: Vec<Vec<&str>> = text
            .lines()
            .map(|line| line.split_whitespace().collect())
            .collect();
        assert_eq!(
            lines[0].join(" "),
            "1000 rows, 10000 fields, 20 pages, 2000 index entries"
        );
        assert_eq!(
            lines[3].join(" "),
            "pack 0.003 75.0% 3000.0 300.0 150000.0 1500.0"
        );
        assert_eq!(
            lines[5].join(" "),
            "all 0.004 100.0% 4000.0 400.0 200000.0 2000.0"
        );
    }
}
