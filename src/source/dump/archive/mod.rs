//! Archives of `pg_dump`: a header, a table of contents, and the data of its entries.
//!
//! | format | where the table of contents is | where data are |
//! |---|---|---|
//! | custom | the file's beginning | blocks behind it, each member one stream |
//! | directory | `toc.dat` | a file for each member |
//! | tar | its member `toc.dat` | a member for each |
//!
//! PostgreSQL: `src/bin/pg_dump/pg_backup_archiver.c` and the files of its formats.

mod custom;
mod directory;
mod list;
mod primitives;
mod tar;
mod toc;

use std::collections::HashMap;
use std::fs::File;
use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};

use super::MemberData;
use crate::error::{Error, Result};
use crate::source::compressed::Compression;
use primitives::Primitives;

/// The magic of custom archives and of each `toc.dat`.
const MAGIC: &[u8; 5] = b"PGDMP";
/// Where a tar header has its magic.
const TAR_MAGIC_POS: usize = 257;

/// A directory or a file of the three formats.
#[derive(Debug)]
pub struct Archive {
    /// What it says of itself.
    pub header: Header,
    /// Its table of contents.
    pub entries: Vec<Entry>,
    path: PathBuf,
    /// Its name in messages.
    label: String,
    container: Container,
}

/// Where members are.
#[derive(Debug)]
enum Container {
    Custom(custom::Blocks),
    Directory,
    Tar(tar::Members),
}

/// The format of an archive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ArchiveFormat {
    /// `-Fc`
    Custom,
    /// `-Fd`
    Directory,
    /// `-Ft`
    Tar,
}

/// How data are compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ArchiveCompression {
    /// They are not.
    None,
    /// zlib in custom archives, gzip in directories.
    Gzip,
    /// LZ4 frames.
    Lz4,
    /// Zstandard.
    Zstd,
}

impl ArchiveCompression {
    /// How a custom archive's data are decompressed; `None` where they are plain.
    fn in_custom(self) -> Option<Compression> {
        match self {
            ArchiveCompression::None => None,
            ArchiveCompression::Gzip => Some(Compression::Zlib),
            ArchiveCompression::Lz4 => Some(Compression::Lz4),
            ArchiveCompression::Zstd => Some(Compression::Zstd),
        }
    }
}

/// What an archive says of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Header {
    /// The format.
    pub format: ArchiveFormat,
    /// The version of the format: 1.14.0 of 12 to 15, 1.15.0 of 16, 1.16.0 of 17 and later.
    pub version: (u8, u8, u8),
    /// Bytes of an integer.
    pub int_bytes: u8,
    /// Bytes of an offset.
    pub offset_bytes: u8,
    /// How data are compressed.
    pub compression: ArchiveCompression,
    /// When it was made.
    pub created: CreatedAt,
    /// The database.
    pub dbname: String,
    /// The server.
    pub server_version: String,
    /// The `pg_dump`.
    pub dump_version: String,
}

/// The local time at which an archive was begun, as `struct tm` has it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CreatedAt {
    /// 0 to 60.
    pub second: i32,
    /// 0 to 59.
    pub minute: i32,
    /// 0 to 23.
    pub hour: i32,
    /// 1 to 31.
    pub day: i32,
    /// 0 to 11.
    pub month: i32,
    /// Since 1900.
    pub year: i32,
    /// Daylight saving time was in force: positive; not: 0; unknown: negative.
    pub is_dst: i32,
}

/// When an entry is restored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Section {
    /// With what stands before it.
    None,
    /// Before the rows.
    PreData,
    /// With the rows.
    Data,
    /// Behind the rows.
    PostData,
}

/// An entry of the table of contents.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Its number, from 1.
    pub dump_id: i32,
    /// It has data of its own.
    pub has_data: bool,
    /// The catalog that the object is in; 0 for none.
    pub table_oid: u32,
    /// The object's OID; 0 for none.
    pub oid: u32,
    /// The object's name.
    pub tag: String,
    /// The kind of object, as `TABLE DATA`.
    pub desc: String,
    /// When it is restored.
    pub section: Section,
    /// The SQL that makes the object.
    pub definition: String,
    /// The SQL that drops it.
    pub drop: String,
    /// `COPY ... FROM stdin` before its rows; empty where the data are INSERTs.
    pub copy_statement: String,
    /// The object's schema.
    pub namespace: Option<String>,
    /// Its tablespace: empty is the database's, `None` is for what has none.
    pub tablespace: Option<String>,
    /// Its table access method.
    pub table_am: Option<String>,
    /// `relkind` of a relation (1.16 and later).
    pub relkind: Option<char>,
    /// Its owner's name.
    pub owner: String,
    /// Dump ids of what must be restored before.
    pub dependencies: Vec<i32>,
    place: EntryPlace,
}

impl Entry {
    /// The object's name with its schema, as messages show it.
    pub fn name(&self) -> String {
        match &self.namespace {
            Some(namespace) => format!("{namespace}.{}", self.tag),
            None => self.tag.clone(),
        }
    }
}

/// Where an entry's data are.
#[derive(Debug, Clone, PartialEq, Eq)]
enum EntryPlace {
    /// It has none.
    Nowhere,
    /// At this byte of the file; `None` when the writer could not go back to say so.
    Offset(Option<u64>),
    /// In this file of the directory or member of the tar file.
    File(String),
}

/// Whether a file that begins so is an archive.
pub fn is_archive(head: &[u8]) -> bool {
    head.starts_with(MAGIC)
        || head
            .get(TAR_MAGIC_POS..)
            .is_some_and(|magic| magic.starts_with(b"ustar"))
}

/// Whether a directory is an archive.
pub fn is_directory_archive(path: &Path) -> bool {
    directory::toc_path(path).is_some()
}

impl Archive {
    /// Opens an archive and reads its table of contents; `label` is its name in messages.
    ///
    /// # Errors
    /// It cannot be read; `22P04` where it is no archive, is damaged, or of a newer version.
    pub fn open(path: &Path, label: &str) -> Result<Archive> {
        if path.is_dir() {
            return directory::open(path, label);
        }
        let mut file = File::open(path).map_err(|e| Error::io("open input file", path, &e))?;
        let mut magic = [0; 5];
        let read = read_fully(&mut file, &mut magic);
        let read = read.map_err(|e| Error::io("read file", path, &e))?;
        if read == magic.len() && &magic == MAGIC {
            custom::open(path, label)
        } else {
            tar::open(path, label)
        }
    }

    /// The rows of a `TABLE DATA` entry as they are in COPY's text (with its end marker) or as INSERTs;
    /// `None` when there are none.
    ///
    /// # Errors
    /// The archive cannot be read or is damaged there.
    pub fn member(&self, entry: &Entry) -> Result<Option<MemberData>> {
        match (&self.container, &entry.place) {
            (Container::Custom(blocks), EntryPlace::Offset(_)) => {
                let reader = blocks.member(self, entry)?;
                self.decompressed(Box::new(reader), entry).map(Some)
            }
            (Container::Directory | Container::Tar(_), EntryPlace::File(name)) => Ok(Some(
                if let Some((path, pos, len)) = self.plain_part(entry)? {
                    MemberData::Range { path, pos, len }
                } else {
                    MemberData::Stream(directory::open_file(&self.path, name)?)
                },
            )),
            _ => Ok(None),
        }
    }

    /// Whether an entry has data here.
    pub fn has_member(&self, entry: &Entry) -> bool {
        entry.place != EntryPlace::Nowhere
    }

    /// The file, position and length of a member that lies there as it is; nothing is opened.
    /// `None` where it must be read forwards.
    ///
    /// # Errors
    /// The member is not there.
    pub fn plain_part(&self, entry: &Entry) -> Result<Option<(PathBuf, u64, u64)>> {
        match (&self.container, &entry.place) {
            (Container::Directory, EntryPlace::File(name)) => {
                directory::plain_file(&self.path, name)
            }
            (Container::Tar(members), EntryPlace::File(name)) => {
                let (pos, len) = members.place(&self.label, name)?;
                Ok(Some((self.path.clone(), pos, len)))
            }
            _ => Ok(None),
        }
    }

    /// How many bytes are stored of an entry's data, by dump ids; of one that is not told nothing is
    /// known.
    ///
    /// # Errors
    /// The archive cannot be read or is damaged.
    pub fn stored_bytes(&self) -> Result<HashMap<i32, u64>> {
        if let Container::Custom(blocks) = &self.container {
            return blocks.stored_bytes(self);
        }
        let bytes_of = |entry: &Entry| match (&self.container, &entry.place) {
            (Container::Directory, EntryPlace::File(name)) => {
                directory::stored_bytes(&self.path, name)
            }
            (Container::Tar(members), EntryPlace::File(name)) => {
                members.place(&self.label, name).ok().map(|(_, len)| len)
            }
            _ => None,
        };
        let entries = self.entries.iter().filter(|e| e.has_data);
        Ok(entries
            .filter_map(|e| Some((e.dump_id, bytes_of(e)?)))
            .collect())
    }

    /// The large objects of a `BLOBS` entry: `each` gets their OIDs and bytes, in order.
    ///
    /// # Errors
    /// The archive cannot be read or is damaged there, and those of `each`.
    pub fn large_objects(
        &self,
        entry: &Entry,
        each: &mut dyn FnMut(u32, &mut dyn Read) -> Result<()>,
    ) -> Result<()> {
        match (&self.container, &entry.place) {
            (Container::Custom(blocks), EntryPlace::Offset(_)) => {
                blocks.large_objects(self, entry, each)
            }
            (Container::Directory, EntryPlace::File(name)) => {
                // Up to 1.15 the entry's name of the file was not its name.
                let name = if self.header.version >= (1, 16, 0) {
                    name
                } else {
                    "blobs.toc"
                };
                directory::large_objects(&self.path, name, each)
            }
            (Container::Tar(members), EntryPlace::File(_)) => {
                members.large_objects(self, entry, each)
            }
            _ => Ok(()),
        }
    }

    /// Its table of contents as `pg_restore -l` prints it. `wanted` tells which entries are listed.
    pub fn list(&self, entries: &[&Entry]) -> String {
        list::list(self, entries)
    }

    /// The name in messages of an entry's data.
    pub fn label(&self, entry: &Entry) -> String {
        format!("{}, {} {}", self.label, entry.desc, entry.name())
    }

    /// Its name in messages.
    pub fn label_of_file(&self) -> &str {
        &self.label
    }

    /// A custom archive's member, decompressed.
    fn decompressed(&self, reader: Box<dyn Read + Send>, entry: &Entry) -> Result<MemberData> {
        let Some(compression) = self.header.compression.in_custom() else {
            return Ok(MemberData::Stream(reader));
        };
        let decoder = compression.decode(reader).map_err(|e| {
            damaged(
                &self.label(entry),
                format!("could not decompress data: {e}"),
            )
        })?;
        Ok(MemberData::Stream(decoder))
    }
}

/// Something in an archive is not as it must be.
#[cold]
fn damaged(label: &str, message: impl Into<String>) -> Error {
    Error::refused("22P04", message)
        .at(crate::error::Place {
            file: label.to_owned(),
            ..crate::error::Place::default()
        })
        .with_hint("The archive is damaged or incomplete; nothing of it was restored.")
}

/// Reads as much as there is.
fn read_fully(reader: &mut impl Read, into: &mut [u8]) -> std::io::Result<usize> {
    let mut read = 0;
    while read < into.len() {
        match reader.read(&mut into[read..]) {
            Ok(0) => break,
            Ok(n) => read += n,
            Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    Ok(read)
}

/// The header and the table of contents.
fn contents(
    input: &mut Primitives<impl Read>,
    format: ArchiveFormat,
) -> Result<(Header, Vec<Entry>)> {
    let header = toc::header(input, format)?;
    let entries = toc::entries(input, &header)?;
    Ok((header, entries))
}

/// A buffered reader of an archive's own integers and strings.
fn primitives(file: File, label: &str) -> Result<Primitives<BufReader<File>>> {
    let len = file
        .metadata()
        .map_err(|e| Error::io("stat file", label, &e))?
        .len();
    Ok(Primitives::new(
        BufReader::with_capacity(128 << 10, file),
        label.to_owned(),
        len,
    ))
}
