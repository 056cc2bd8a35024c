//! The header and the table of contents.
//!
//! PostgreSQL: `src/bin/pg_dump/pg_backup_archiver.c`, `ReadHead` and `ReadToc`.

use std::io::Read;

use super::primitives::{Offset, Primitives};
use super::{
    ArchiveCompression, ArchiveFormat, CreatedAt, Entry, EntryPlace, Header, MAGIC, Section,
};
use crate::error::{Error, Result};
use crate::source::Charset;

/// The versions that are read: those of 9.4 and later.
const OLDEST_VERSION: (u8, u8) = (1, 12);
const NEWEST_VERSION: (u8, u8) = (1, 16);

/// How `WITH OIDS` tables are refused.
const WITH_OIDS: &str = "tables WITH OIDS are not supported";

/// Reads the header, which begins with the magic.
pub fn header<R: Read>(input: &mut Primitives<R>, format: ArchiveFormat) -> Result<Header> {
    let mut magic = [0; 5];
    input.bytes(&mut magic)?;
    if &magic != MAGIC {
        return Err(input.damaged("did not find magic string in file header"));
    }
    let (major, minor) = (input.byte()?, input.byte()?);
    let revision = if (major, minor) > (1, 0) {
        input.byte()?
    } else {
        0
    };
    if !(OLDEST_VERSION..=NEWEST_VERSION).contains(&(major, minor)) {
        let mut error = input.damaged(format!(
            "unsupported version ({major}.{minor}) in file header"
        ));
        "0A000".clone_into(&mut error.sqlstate);
        return Err(error.with_hint(format!(
            "Archives of versions {}.{} to {}.{} are read: those of PostgreSQL 9.4 to 18.",
            OLDEST_VERSION.0, OLDEST_VERSION.1, NEWEST_VERSION.0, NEWEST_VERSION.1
        )));
    }
    let int_bytes = input.byte()?;
    if int_bytes == 0 || int_bytes > 32 {
        return Err(input.damaged(format!("sanity check on integer size ({int_bytes}) failed")));
    }
    let offset_bytes = input.byte()?;
    if offset_bytes > 32 {
        return Err(input.damaged(format!(
            "sanity check on offset size ({offset_bytes}) failed"
        )));
    }
    input.set_sizes(int_bytes, offset_bytes);
    let found = input.byte()?;
    // A directory and a tar file hold the same table of contents.
    let expected: u8 = match format {
        ArchiveFormat::Custom => 1,
        ArchiveFormat::Tar => 3,
        ArchiveFormat::Directory => 5,
    };
    // pg_dump writes 3, that of tar, into the table of contents of directories.
    let fits = found == expected || (format == ArchiveFormat::Directory && found == 3);
    if !fits {
        return Err(input.damaged(format!(
            "expected format ({expected}) differs from format found in file ({found})"
        )));
    }
    let compression = if (major, minor) >= (1, 15) {
        match input.byte()? {
            0 => ArchiveCompression::None,
            1 => ArchiveCompression::Gzip,
            2 => ArchiveCompression::Lz4,
            3 => ArchiveCompression::Zstd,
            other => {
                return Err(input.damaged(format!("unknown compression algorithm {other}")));
            }
        }
    } else if input.int()? == 0 {
        ArchiveCompression::None
    } else {
        ArchiveCompression::Gzip
    };
    let created = CreatedAt {
        second: input.int()?,
        minute: input.int()?,
        hour: input.int()?,
        day: input.int()?,
        month: input.int()?,
        year: input.int()?,
        is_dst: input.int()?,
    };
    let mut text = || -> Result<String> {
        let bytes = input.string()?.unwrap_or_default();
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    };
    Ok(Header {
        format,
        version: (major, minor, revision),
        int_bytes,
        offset_bytes,
        compression,
        created,
        dbname: text()?,
        server_version: text()?,
        dump_version: text()?,
    })
}

/// Reads the table of contents, which follows the header.
pub fn entries<R: Read>(input: &mut Primitives<R>, header: &Header) -> Result<Vec<Entry>> {
    let count = input.int()?;
    let mut raw = Vec::new();
    for _ in 0..count.max(0) {
        raw.push(RawEntry::read(input, header)?);
    }
    let mut seen = std::collections::HashSet::new();
    if let Some(twice) = raw.iter().find(|e| !seen.insert(e.dump_id)) {
        return Err(input.damaged(format!(
            "entry ID {} stands twice in the table of contents",
            twice.dump_id
        )));
    }
    let charset = charset(&raw, input)?;
    raw.into_iter()
        .map(|entry| entry.into_entry(&charset, input))
        .collect()
}

/// An entry whose strings are in the dump's encoding.
struct RawEntry {
    dump_id: i32,
    has_data: bool,
    table_oid: u32,
    oid: u32,
    tag: Vec<u8>,
    desc: Vec<u8>,
    section: Section,
    definition: Vec<u8>,
    drop: Vec<u8>,
    copy_statement: Vec<u8>,
    namespace: Option<Vec<u8>>,
    tablespace: Option<Vec<u8>>,
    table_am: Option<Vec<u8>>,
    relkind: Option<char>,
    owner: Vec<u8>,
    dependencies: Vec<i32>,
    place: RawPlace,
}

enum RawPlace {
    Offset(Offset),
    File(Vec<u8>),
}

impl RawEntry {
    fn read<R: Read>(input: &mut Primitives<R>, header: &Header) -> Result<RawEntry> {
        let dump_id = input.int()?;
        if dump_id <= 0 {
            return Err(input.damaged(format!(
                "entry ID {dump_id} out of range -- perhaps a corrupt TOC"
            )));
        }
        let has_data = input.int()? != 0;
        let table_oid = number(input)?;
        let oid = number(input)?;
        let tag = input.string()?.unwrap_or_default();
        let desc = input.string()?.unwrap_or_default();
        let section = match input.int()? {
            1 => Section::None,
            2 => Section::PreData,
            3 => Section::Data,
            4 => Section::PostData,
            other => {
                return Err(input.damaged(format!("unknown section {other} of entry {dump_id}")));
            }
        };
        let definition = input.string()?.unwrap_or_default();
        let drop = input.string()?.unwrap_or_default();
        let copy_statement = input.string()?.unwrap_or_default();
        let namespace = input.string()?;
        let tablespace = input.string()?;
        let table_am = if header.version >= (1, 14, 0) {
            input.string()?.filter(|am| !am.is_empty())
        } else {
            None
        };
        let relkind = if header.version >= (1, 16, 0) {
            let kind = u8::try_from(input.int()?).ok();
            kind.filter(u8::is_ascii_alphabetic).map(char::from)
        } else {
            None
        };
        let owner = input.string()?.unwrap_or_default();
        if input.string()?.as_deref() == Some(b"true") {
            return Err(Error::unsupported(WITH_OIDS));
        }
        let mut dependencies = Vec::new();
        while let Some(dependency) = input.string()? {
            let id = std::str::from_utf8(&dependency)
                .ok()
                .and_then(|d| d.trim().parse().ok());
            match id {
                Some(id) => dependencies.push(id),
                None => {
                    return Err(
                        input.damaged(format!("entry {dump_id} depends on what is no number"))
                    );
                }
            }
        }
        let place = if header.format == ArchiveFormat::Custom {
            RawPlace::Offset(input.offset()?)
        } else {
            RawPlace::File(input.string()?.unwrap_or_default())
        };
        Ok(RawEntry {
            dump_id,
            has_data,
            table_oid,
            oid,
            tag,
            desc,
            section,
            definition,
            drop,
            copy_statement,
            namespace,
            tablespace,
            table_am,
            relkind,
            owner,
            dependencies,
            place,
        })
    }

    fn into_entry<R: Read>(self, charset: &Strings, input: &Primitives<R>) -> Result<Entry> {
        let id = self.dump_id;
        let text = |bytes: Vec<u8>| charset.text(bytes, id, input);
        let optional = |bytes: Option<Vec<u8>>| bytes.map(text).transpose();
        let place = match self.place {
            _ if !self.has_data => EntryPlace::Nowhere,
            RawPlace::Offset(Offset::NoData) => EntryPlace::Nowhere,
            RawPlace::Offset(Offset::NotSet) => EntryPlace::Offset(None),
            RawPlace::Offset(Offset::At(pos)) => EntryPlace::Offset(Some(pos)),
            RawPlace::File(name) if name.is_empty() => EntryPlace::Nowhere,
            RawPlace::File(name) => {
                let name = text(name)?;
                if !is_plain_name(&name) {
                    return Err(input.damaged(format!(
                        "entry {id} names the file \"{name}\", which is not one of the archive's"
                    )));
                }
                EntryPlace::File(name)
            }
        };
        Ok(Entry {
            dump_id: id,
            has_data: self.has_data,
            table_oid: self.table_oid,
            oid: self.oid,
            tag: text(self.tag)?,
            desc: text(self.desc)?,
            section: self.section,
            definition: text(self.definition)?,
            drop: text(self.drop)?,
            copy_statement: text(self.copy_statement)?,
            namespace: optional(self.namespace)?,
            tablespace: optional(self.tablespace)?,
            table_am: optional(self.table_am)?,
            relkind: self.relkind,
            owner: text(self.owner)?,
            dependencies: self.dependencies,
            place,
        })
    }
}

/// A name without a way out of the archive.
pub fn is_plain_name(name: &str) -> bool {
    !name.is_empty() && name != "." && name != ".." && !name.contains(['/', '\0'])
}

/// A number that is written as text.
fn number<R: Read>(input: &mut Primitives<R>) -> Result<u32> {
    let text = input.string()?.unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    text.trim()
        .parse()
        .map_err(|_| input.damaged(format!("\"{text}\" is not an OID")))
}

/// How strings of the archive become text.
enum Strings {
    Utf8,
    Single(Charset),
    /// Only ASCII can be read.
    Unknown(String),
}

impl Strings {
    fn text<R: Read>(&self, bytes: Vec<u8>, id: i32, input: &Primitives<R>) -> Result<String> {
        if bytes.is_ascii() {
            // ASCII is UTF-8.
            return String::from_utf8(bytes)
                .map_err(|_| input.damaged(format!("entry {id} has broken text")));
        }
        match self {
            Strings::Utf8 => String::from_utf8(bytes)
                .map_err(|_| input.damaged(format!("text of entry {id} is not valid UTF-8"))),
            Strings::Single(charset) => {
                let mut converted = Vec::new();
                charset
                    .convert(&bytes, &mut converted)
                    .map_err(|e| input.damaged(format!("text of entry {id}: {}", e.message)))?;
                String::from_utf8(converted)
                    .map_err(|_| input.damaged(format!("text of entry {id} is not valid")))
            }
            Strings::Unknown(name) => Err(Error::unsupported(format!(
                "text of entry {id} is in {name} and not ASCII"
            ))
            .with_hint("Dump with --encoding=UTF8.")),
        }
    }
}

/// The encoding that the dump says it is in.
fn charset<R: Read>(raw: &[RawEntry], input: &Primitives<R>) -> Result<Strings> {
    let Some(entry) = raw.iter().find(|e| e.desc == b"ENCODING") else {
        return Ok(Strings::Utf8);
    };
    let statement = String::from_utf8_lossy(&entry.definition);
    let name = statement.split('\'').nth(1);
    let Some(name) = name else {
        return Err(input.damaged(format!("invalid ENCODING item: {statement}")));
    };
    Ok(match name {
        "UTF8" | "UNICODE" | "SQL_ASCII" => Strings::Utf8,
        name => match Charset::by_name(name) {
            Some(charset) => Strings::Single(charset),
            None => Strings::Unknown(name.to_owned()),
        },
    })
}
