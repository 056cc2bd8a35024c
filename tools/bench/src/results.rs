//! Results that are kept: as text in tools/bench/results, and read back for the picture.

use crate::method::Method;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// The median times of a workload.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Workload {
    pub(crate) name: String,
    /// What the text says of it: rows, input, what it is.
    pub(crate) about: String,
    pub(crate) seconds: Vec<(Method, f64)>,
}

/// Where results `name` are kept, with this extension.
///
/// # Errors
/// When the name is none.
pub(crate) fn path(name: &str, extension: &str) -> io::Result<PathBuf> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_' || c == '.';
    if name.is_empty() || name.starts_with('.') || !name.chars().all(is_plain) {
        return Err(io::Error::other(format!("not the name of results: {name}")));
    }
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("results");
    Ok(dir.join(format!("{name}.{extension}")))
}

/// Keeps a text and says where.
pub(crate) fn keep(name: &str, extension: &str, text: &str) -> io::Result<()> {
    let path = path(name, extension)?;
    if let Some(dir) = path.parent() {
        fs::create_dir_all(dir)?;
    }
    fs::write(&path, text)?;
    eprintln!("kept in {}", path.display());
    Ok(())
}

/// Reads the tables of the workloads in a kept text.
pub(crate) fn parse(text: &str) -> Vec<Workload> {
    let mut workloads: Vec<Workload> = Vec::new();
    let mut in_table = false;
    for line in text.lines() {
        if let Some((name, about)) = line.split_once(": ")
            && about.contains(" rows, ")
            && !name.contains(' ')
        {
            workloads.push(Workload {
                name: name.to_owned(),
                about: about.to_owned(),
                seconds: Vec::new(),
            });
            in_table = true;
        } else if line.is_empty() {
            in_table = false;
        } else if in_table && let Some(workload) = workloads.last_mut() {
            let mut words = line.split_whitespace();
            let method = words.next().and_then(Method::by_name);
            let seconds = words.next().and_then(|word| word.parse().ok());
            workload.seconds.extend(method.zip(seconds));
        }
    }
    workloads.retain(|workload| !workload.seconds.is_empty());
    workloads
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::{self, tests::measured};
    use crate::workload::{Name, Prepared};

    #[test]
    fn what_was_kept_is_read_back() {
        let prepared = Prepared {
            name: Name::ShadoksEnUs,
            inputs: Vec::new(),
            input_bytes: 5_000_000,
        };
        let times = vec![
            (Method::Copy, measured(&[30])),
            (Method::Pgpagewrite, measured(&[2])),
        ];
        let text = format!(
            "server       PostgreSQL 15\n{}{}",
            report::table(&prepared, &times),
            report::summary(1, &[(Name::ShadoksEnUs, times)])
        );
        let expected = Workload {
            name: "shadoks-en-us".to_owned(),
            about: format!("0 rows, 5 MB of input, {}", Name::ShadoksEnUs.description()),
            seconds: vec![(Method::Copy, 30.0), (Method::Pgpagewrite, 2.0)],
        };
        assert_eq!(parse(&text), [expected]);
    }

    #[test]
    fn results_stay_in_their_directory() {
        assert!(path("../x", "txt").is_err());
        assert!(path("", "txt").is_err());
        assert!(path("2-cores", "svg").is_ok_and(|path| path.ends_with("results/2-cores.svg")));
    }
}
