//! A table of contents as `pg_restore -l` prints it.
//!
//! PostgreSQL: `src/bin/pg_dump/pg_backup_archiver.c`, `PrintTOCSummary`.

use std::fmt::Write;

use jiff::ZonedDateTime;
use jiff::civil::DateTime;
use jiff::tz::{Dst, Offset, TimeZone};

use super::{Archive, ArchiveCompression, ArchiveFormat, CreatedAt, Entry};

/// The list.
pub fn list(archive: &Archive, entries: &[&Entry]) -> String {
    let header = &archive.header;
    let format = match header.format {
        ArchiveFormat::Custom => "CUSTOM",
        ArchiveFormat::Directory => "DIRECTORY",
        ArchiveFormat::Tar => "TAR",
    };
    let compression = match header.compression {
        ArchiveCompression::None => "none",
        ArchiveCompression::Gzip => "gzip",
        ArchiveCompression::Lz4 => "lz4",
        ArchiveCompression::Zstd => "zstd",
    };
    let (major, minor, revision) = header.version;
    let mut out = format!(
        ";\n; Archive created at {}\n;     dbname: {}\n;     TOC Entries: {}\n;     Compression: {compression}\n\
         ;     Dump Version: {major}.{minor}-{revision}\n;     Format: {format}\n;     Integer: {} bytes\n\
         ;     Offset: {} bytes\n;     Dumped from database version: {}\n;     Dumped by pg_dump version: {}\n\
         ;\n;\n; Selected TOC Entries:\n;\n",
        stamp(header.created),
        one_line(&header.dbname),
        archive.entries.len(),
        header.int_bytes,
        header.offset_bytes,
        header.server_version,
        header.dump_version,
    );
    for entry in entries {
        let namespace = entry.namespace.as_deref().filter(|n| !n.is_empty());
        // Writing to a string does not fail.
        let _ = writeln!(
            out,
            "{}; {} {} {} {} {} {}",
            entry.dump_id,
            entry.table_oid,
            entry.oid,
            entry.desc,
            namespace.map_or("-".to_owned(), one_line),
            one_line(&entry.tag),
            one_line(&entry.owner)
        );
    }
    out
}

/// Line ends would make an entry two.
fn one_line(text: &str) -> String {
    text.replace(['\n', '\r'], " ")
}

fn stamp(created: CreatedAt) -> String {
    let zone = TimeZone::system();
    let small = |value: i32| i8::try_from(value).unwrap_or(-1);
    let year = i16::try_from(created.year.saturating_add(1900)).unwrap_or(i16::MIN);
    let time = DateTime::new(
        year,
        small(created.month.saturating_add(1)),
        small(created.day),
        small(created.hour),
        small(created.minute),
        small(created.second.min(59)),
        0,
    );
    let zoned = time.and_then(|time| {
        let zoned = zone.to_ambiguous_zoned_datetime(time).compatible()?;
        match offset_as_written(&zoned, created.is_dst) {
            None => Ok(zoned),
            Some(offset) => Ok(offset.to_timestamp(time)?.to_zoned_datetime(zone)),
        }
    });
    match zoned {
        Ok(zoned) => zoned.strftime("%Y-%m-%d %H:%M:%S %Z").to_string(),
        Err(_) => "[unknown]".to_owned(),
    }
}

/// The offset that `mktime` takes where the writer's daylight saving time is not the zone's at that
/// time: the one that was in force last when they were the same.
fn offset_as_written(zoned: &ZonedDateTime, is_dst: i32) -> Option<Offset> {
    let written = match is_dst {
        0 => Dst::No,
        1.. => Dst::Yes,
        _ => return None,
    };
    let (zone, time) = (zoned.time_zone(), zoned.timestamp());
    if zone.to_offset_info(time).dst() == written {
        return None;
    }
    let mut before = zone.preceding(time);
    let last = before.find(|transition| transition.dst() == written);
    last.map(|transition| transition.offset())
}
