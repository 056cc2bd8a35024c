//! The time zones and abbreviations that a server knows, looked up by name without a lock.
//!
//! A server built with its own data has it in `timezone/` of its share directory; a server
//! built `--with-system-tzdata`, as Debian's, uses the system's. Its abbreviations stand in
//! `timezonesets/` of the share directory either way.
//!
//! PostgreSQL: `src/timezone/pgtz.c` (`pg_tzset`, `pg_open_tzfile`),
//! `src/backend/utils/misc/tzparser.c`.

use std::collections::HashMap;
use std::fs;
use std::io::Read as _;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock, PoisonError, RwLock};

use super::posix;
use super::tokens::TOKEN_MAX_BYTES;
use super::zone::Zone;
use crate::error::{Error, Result};

/// The longest zone name.
const NAME_MAX_BYTES: usize = 255;
/// How deep zone directories nest at most.
const DIRECTORY_MAX_DEPTH: usize = 10;
/// How deep files of abbreviations include one another at most.
const INCLUDE_MAX_DEPTH: usize = 3;
/// The longest line of a file of abbreviations, its end included.
const LINE_MAX_BYTES: usize = 1022;
/// Where the system keeps its zones.
const SYSTEM_ZONES: &str = "/usr/share/zoneinfo";
/// How many zones given as POSIX strings are remembered; more are computed each time.
const POSIX_ZONES_MAX: usize = 256;

/// The zones and abbreviations of one server.
#[derive(Debug)]
pub struct ZoneDb {
    /// By name in upper case.
    files: HashMap<Box<[u8]>, ZoneFile>,
    gmt: Arc<Zone>,
    posix: RwLock<HashMap<Box<[u8]>, Arc<Zone>>>,
    /// Ascending by abbreviation.
    abbreviations: Vec<Abbreviation>,
}

#[derive(Debug)]
struct ZoneFile {
    path: PathBuf,
    zone: OnceLock<Option<Arc<Zone>>>,
}

/// An entry of the table of abbreviations.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Abbreviation {
    /// In lower case.
    pub(super) name: Box<[u8]>,
    pub(super) meaning: Meaning,
}

/// What an abbreviation stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Meaning {
    /// A fixed offset.
    Offset {
        /// Seconds east of Greenwich.
        offset_secs: i32,
        is_dst: bool,
    },
    /// What it meant in this zone at the time.
    Zone(Box<[u8]>),
}

/// A zone found by name.
#[derive(Debug)]
pub(super) enum FoundZone<'a> {
    Kept(&'a Zone),
    Made(Arc<Zone>),
}

impl Deref for FoundZone<'_> {
    type Target = Zone;

    fn deref(&self) -> &Zone {
        match self {
            FoundZone::Kept(zone) => zone,
            FoundZone::Made(zone) => zone,
        }
    }
}

impl ZoneDb {
    /// Opens the zones of a server: of `share_dir` (what `pg_config --sharedir` prints), or of
    /// the system where the server has none of its own, with the abbreviations of the file
    /// that the server's `timezone_abbreviations` names (usually `Default`).
    ///
    /// # Errors
    /// When there are no zones, or when the abbreviations cannot be read: then the server
    /// itself must read the text.
    pub fn open(share_dir: &Path, abbreviations: &str) -> Result<ZoneDb> {
        let own = share_dir.join("timezone");
        let zones = if own.is_dir() {
            own
        } else {
            PathBuf::from(SYSTEM_ZONES)
        };
        Self::open_parts(&zones, &share_dir.join("timezonesets"), abbreviations)
    }

    /// The same with both directories given.
    ///
    /// # Errors
    /// As [`ZoneDb::open`].
    pub fn open_parts(zones: &Path, sets: &Path, abbreviations: &str) -> Result<ZoneDb> {
        let mut files = HashMap::new();
        list_zones(zones, &mut Vec::new(), 0, &mut files)?;
        if files.is_empty() {
            return Err(Error::environment(
                "58P01",
                format!("no time zones in directory \"{}\"", zones.display()),
            ));
        }
        let mut table = AbbreviationTable {
            sets,
            entries: Vec::new(),
        };
        table.read(abbreviations, 0)?;
        let Some(gmt) = posix::parse(b"GMT", true) else {
            unreachable!("a name alone is always a zone");
        };
        Ok(ZoneDb {
            files,
            gmt: Arc::new(gmt),
            posix: RwLock::default(),
            abbreviations: table.entries,
        })
    }

    /// A zone by its full name or POSIX string, in any case: what a session's `TimeZone` is.
    ///
    /// # Errors
    /// When there is no such zone.
    pub fn zone(&self, name: &str) -> Result<Arc<Zone>> {
        match self.find(name.as_bytes()) {
            Some(FoundZone::Made(zone)) => Ok(zone),
            Some(FoundZone::Kept(zone)) => Ok(Arc::new(zone.clone())),
            None => Err(Error::environment(
                "22023",
                format!("time zone \"{name}\" not recognized"),
            )),
        }
    }

    /// A zone by its full name or POSIX string, in any case.
    ///
    /// PostgreSQL: `pgtz.c`, `pg_tzset`.
    pub(super) fn find(&self, name: &[u8]) -> Option<FoundZone<'_>> {
        if name.len() > NAME_MAX_BYTES {
            return None;
        }
        let mut upper = [0; NAME_MAX_BYTES];
        let upper = &mut upper[..name.len()];
        upper.copy_from_slice(name);
        upper.make_ascii_uppercase();
        // GMT is never read from a file.
        if upper == b"GMT" {
            return Some(FoundZone::Kept(&self.gmt));
        }
        let file_name = upper.strip_prefix(b":").unwrap_or(upper);
        if let Some(file) = self.files.get(file_name)
            && let Some(zone) = file.zone()
        {
            return Some(FoundZone::Kept(zone));
        }
        if upper.first() == Some(&b':') {
            return None;
        }
        // A poisoned lock still guards a whole map.
        let known = self.posix.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(zone) = known.get(&*upper) {
            return Some(FoundZone::Made(Arc::clone(zone)));
        }
        drop(known);
        let zone = Arc::new(posix::parse(upper, false)?);
        let mut known = self.posix.write().unwrap_or_else(PoisonError::into_inner);
        if known.len() < POSIX_ZONES_MAX {
            known.insert(Box::from(&*upper), Arc::clone(&zone));
        }
        Some(FoundZone::Made(zone))
    }

    /// An abbreviation of the table, by its name in lower case cut to 10 bytes.
    pub(super) fn abbreviation(&self, name: &[u8]) -> Option<&Abbreviation> {
        let i = self
            .abbreviations
            .binary_search_by(|entry| (*entry.name).cmp(name))
            .ok()?;
        Some(&self.abbreviations[i])
    }
}

impl ZoneFile {
    /// The file's zone, read when it is first asked for; `None` when it is no zone file.
    fn zone(&self) -> Option<&Arc<Zone>> {
        self.zone
            .get_or_init(|| {
                let mut bytes = Vec::new();
                // Far more than any zone has; the reader cuts it further.
                let limit = 1 << 20;
                fs::File::open(&self.path)
                    .and_then(|file| file.take(limit).read_to_end(&mut bytes))
                    .ok()?;
                Zone::from_tzif(&bytes).map(Arc::new)
            })
            .as_ref()
    }
}

/// Lists the files of a directory of zones; hidden ones are passed over, as the server does.
fn list_zones(
    directory: &Path,
    prefix: &mut Vec<u8>,
    depth: usize,
    files: &mut HashMap<Box<[u8]>, ZoneFile>,
) -> Result<()> {
    use std::os::unix::ffi::OsStrExt as _;

    let failed = |e: &std::io::Error| Error::io("read directory", directory, e);
    for entry in fs::read_dir(directory).map_err(|e| failed(&e))? {
        let entry = entry.map_err(|e| failed(&e))?;
        let name = entry.file_name();
        let name = name.as_bytes();
        if name.first() == Some(&b'.') {
            continue;
        }
        let path = entry.path();
        let kind = entry.file_type().map_err(|e| failed(&e))?;
        let is_directory = kind.is_dir() || (kind.is_symlink() && path.is_dir());
        let prefix_bytes = prefix.len();
        prefix.extend(name.to_ascii_uppercase());
        if !is_directory {
            let zone = OnceLock::new();
            files
                .entry(prefix.clone().into_boxed_slice())
                .or_insert(ZoneFile { path, zone });
        } else if depth + 1 < DIRECTORY_MAX_DEPTH {
            prefix.push(b'/');
            list_zones(&path, prefix, depth + 1, files)?;
        }
        prefix.truncate(prefix_bytes);
    }
    Ok(())
}

/// The table of abbreviations while its files are read.
struct AbbreviationTable<'a> {
    sets: &'a Path,
    /// Ascending by abbreviation.
    entries: Vec<Abbreviation>,
}

impl AbbreviationTable<'_> {
    /// Reads a file and those it includes.
    ///
    /// PostgreSQL: `tzparser.c`, `ParseTzFile`.
    fn read(&mut self, name: &str, depth: usize) -> Result<()> {
        let refuse = |line: usize, what: &str| {
            Error::environment(
                "F0000",
                format!("{what} in time zone file \"{name}\", line {line}"),
            )
        };
        if name.is_empty() || !name.bytes().all(|b| b.is_ascii_alphabetic()) {
            return Err(Error::environment(
                "F0000",
                format!("invalid time zone file name \"{name}\""),
            ));
        }
        if depth > INCLUDE_MAX_DEPTH {
            return Err(Error::environment(
                "F0000",
                format!("time zone file recursion limit exceeded in file \"{name}\""),
            ));
        }
        let path = self.sets.join(name);
        let text = fs::read(&path).map_err(|e| Error::io("read time zone file", &path, &e))?;
        let mut replaces = false;
        for (i, line) in text.split(|&b| b == b'\n').enumerate() {
            if line.len() > LINE_MAX_BYTES {
                return Err(refuse(i + 1, "line is too long"));
            }
            let mut words = line
                .split(|b| matches!(b, b' ' | b'\t' | b'\r' | b'\x0b' | b'\x0c'))
                .filter(|word| !word.is_empty());
            let Some(first) = words.next() else {
                continue;
            };
            if first[0] == b'#' {
                continue;
            }
            if let Some(rest) = strip_prefix_ignoring_case(first, b"@INCLUDE") {
                let file = if rest.is_empty() {
                    words.next()
                } else {
                    Some(rest)
                };
                let file = file
                    .and_then(|f| std::str::from_utf8(f).ok())
                    .ok_or_else(|| refuse(i + 1, "@INCLUDE without file name"))?;
                self.read(file, depth + 1)?;
            } else if strip_prefix_ignoring_case(first, b"@OVERRIDE").is_some() {
                replaces = true;
            } else {
                let entry = parse_entry(first, words).map_err(|what| refuse(i + 1, what))?;
                self.add(entry, replaces)
                    .map_err(|()| refuse(i + 1, "time zone abbreviation multiply defined"))?;
            }
        }
        Ok(())
    }

    /// Adds an entry; one that is there already must say the same, unless it is replaced.
    fn add(&mut self, entry: Abbreviation, replaces: bool) -> Result<(), ()> {
        match self.entries.binary_search_by(|e| e.name.cmp(&entry.name)) {
            Ok(i) if self.entries[i].meaning == entry.meaning => Ok(()),
            Ok(i) if replaces => {
                self.entries[i].meaning = entry.meaning;
                Ok(())
            }
            Ok(_) => Err(()),
            Err(i) => {
                self.entries.insert(i, entry);
                Ok(())
            }
        }
    }
}

/// `NAME OFFSET [D]` or `NAME ZONE`, maybe with a comment.
///
/// PostgreSQL: `tzparser.c`, `splitTzLine`, `validateTzEntry`.
fn parse_entry<'a>(
    name: &[u8],
    mut words: impl Iterator<Item = &'a [u8]>,
) -> Result<Abbreviation, &'static str> {
    const OFFSET_MAX_SECS: i32 = 14 * 3600;
    if name.len() > TOKEN_MAX_BYTES {
        return Err("time zone abbreviation is too long");
    }
    let value = words.next().ok_or("missing time zone offset")?;
    let mut after = words.next();
    let meaning = if value[0].is_ascii_digit() || matches!(value[0], b'+' | b'-') {
        let offset_secs: i32 = std::str::from_utf8(value)
            .ok()
            .and_then(|text| text.parse().ok())
            .ok_or("invalid number for time zone offset")?;
        if !(-OFFSET_MAX_SECS..=OFFSET_MAX_SECS).contains(&offset_secs) {
            return Err("time zone offset is out of range");
        }
        let is_dst = after.is_some_and(|word| word.eq_ignore_ascii_case(b"D"));
        if is_dst {
            after = words.next();
        }
        Meaning::Offset {
            offset_secs,
            is_dst,
        }
    } else {
        Meaning::Zone(Box::from(value))
    };
    match after {
        Some(word) if word[0] != b'#' => Err("invalid syntax"),
        _ => Ok(Abbreviation {
            name: name.to_ascii_lowercase().into_boxed_slice(),
            meaning,
        }),
    }
}

fn strip_prefix_ignoring_case<'a>(text: &'a [u8], prefix: &[u8]) -> Option<&'a [u8]> {
    let (head, rest) = text.split_at_checked(prefix.len())?;
    head.eq_ignore_ascii_case(prefix).then_some(rest)
}
