//! Custom archives: the data of entries are runs of blocks, each with its length before it.
//!
//! PostgreSQL: `src/bin/pg_dump/pg_backup_custom.c`.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use super::primitives::Primitives;
use super::{Archive, ArchiveFormat, Container, Entry, EntryPlace};
use crate::error::{Error, Result};

/// Blocks of rows.
const BLK_DATA: u8 = 1;
/// Blocks of large objects.
const BLK_BLOBS: u8 = 3;

/// Where the data of entries are.
#[derive(Debug)]
pub struct Blocks {
    /// Where the first data begin.
    start: u64,
    /// Places by dump id, found by going over all data: for archives whose writer could not
    /// write places.
    found: Mutex<Option<HashMap<i32, u64>>>,
}

type Input = Primitives<BufReader<File>>;

/// Opens a custom archive.
pub fn open(path: &Path, label: &str) -> Result<Archive> {
    let file = File::open(path).map_err(|e| Error::io("open input file", path, &e))?;
    let mut input = super::primitives(file, label)?;
    let (header, entries) = super::contents(&mut input, ArchiveFormat::Custom)?;
    Ok(Archive {
        header,
        entries,
        path: path.to_path_buf(),
        label: label.to_owned(),
        container: Container::Custom(Blocks {
            start: input.pos(),
            found: Mutex::new(None),
        }),
    })
}

impl Blocks {
    /// The bytes of a member as they are stored.
    pub fn member(&self, archive: &Archive, entry: &Entry) -> Result<BlockReader<Input>> {
        let input = self.at_entry(archive, entry, BLK_DATA)?;
        Ok(BlockReader::new(input))
    }

    /// Goes through large objects.
    pub fn large_objects(
        &self,
        archive: &Archive,
        entry: &Entry,
        each: &mut dyn FnMut(u32, &mut dyn Read) -> Result<()>,
    ) -> Result<()> {
        let mut input = self.at_entry(archive, entry, BLK_BLOBS)?;
        let label = archive.label(entry);
        loop {
            let oid = input.unsigned()?;
            if oid == 0 {
                return Ok(());
            }
            let mut blocks = BlockReader::new(&mut input);
            // An empty object may have no block at all.
            let is_empty = blocks.next_block().map_err(|e| blocks_error(&label, &e))?;
            let compression = archive.header.compression.in_custom();
            match compression.filter(|_| !is_empty) {
                None => each(oid, &mut blocks)?,
                Some(compression) => {
                    let mut decoder = compression
                        .decode(Box::new(&mut blocks))
                        .map_err(|e| blocks_error(&label, &e))?;
                    each(oid, &mut decoder)?;
                }
            }
            io::copy(&mut blocks, &mut io::sink()).map_err(|e| blocks_error(&label, &e))?;
        }
    }

    /// How many bytes are stored of each entry's data: up to where the next one's begin.
    pub fn stored_bytes(&self, archive: &Archive) -> Result<HashMap<i32, u64>> {
        let path = &archive.path;
        let end = path
            .metadata()
            .map_err(|e| Error::io("stat file", path, &e))?
            .len();
        let mut places = archive
            .entries
            .iter()
            .filter_map(|entry| match entry.place {
                EntryPlace::Offset(Some(pos)) => Some(Ok((pos, entry.dump_id))),
                EntryPlace::Offset(None) => {
                    Some(self.find(archive, entry).map(|pos| (pos, entry.dump_id)))
                }
                _ => None,
            })
            .collect::<Result<Vec<_>>>()?;
        places.sort_unstable();
        let ends = places.iter().skip(1).map(|(pos, _)| *pos).chain([end]);
        Ok(places
            .iter()
            .zip(ends)
            .map(|((pos, id), end)| (*id, end.saturating_sub(*pos)))
            .collect())
    }

    /// The archive's file, at the first block of an entry.
    fn at_entry(&self, archive: &Archive, entry: &Entry, kind: u8) -> Result<Input> {
        let pos = match entry.place {
            EntryPlace::Offset(Some(pos)) => pos,
            _ => self.find(archive, entry)?,
        };
        let mut input = at(archive, pos)?;
        let found_kind = input.byte()?;
        let id = input.int()?;
        if id != entry.dump_id {
            return Err(input.damaged(format!(
                "found unexpected block ID ({id}) when reading data -- expected {}",
                entry.dump_id
            )));
        }
        if found_kind != kind {
            return Err(input.damaged(format!(
                "unrecognized data block type {found_kind} while restoring archive"
            )));
        }
        Ok(input)
    }

    /// Looks for an entry's data.
    fn find(&self, archive: &Archive, entry: &Entry) -> Result<u64> {
        let mut found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        let places = match &*found {
            Some(places) => places,
            None => found.insert(self.places(archive)?),
        };
        places.get(&entry.dump_id).copied().ok_or_else(|| {
            super::damaged(
                &archive.label(entry),
                format!(
                    "could not find block ID {} in archive -- possibly corrupt archive",
                    entry.dump_id
                ),
            )
        })
    }

    /// Goes over all data and notes where each entry's begin.
    fn places(&self, archive: &Archive) -> Result<HashMap<i32, u64>> {
        let mut places = HashMap::new();
        let mut input = at(archive, self.start)?;
        loop {
            let pos = input.pos();
            let Some(kind) = input.byte_or_end()? else {
                return Ok(places);
            };
            let id = input.int()?;
            places.insert(id, pos);
            match kind {
                BLK_DATA => skip_blocks(&mut input)?,
                BLK_BLOBS => {
                    while input.unsigned()? != 0 {
                        skip_blocks(&mut input)?;
                    }
                }
                kind => {
                    return Err(input.damaged(format!(
                        "unrecognized data block type ({kind}) while searching archive"
                    )));
                }
            }
        }
    }
}

fn skip_blocks(input: &mut Input) -> Result<()> {
    loop {
        match input.unsigned()? {
            0 => return Ok(()),
            len => input.skip(u64::from(len))?,
        }
    }
}

/// The archive's file from a position on.
fn at(archive: &Archive, pos: u64) -> Result<Input> {
    let path = &archive.path;
    let mut file = File::open(path).map_err(|e| Error::io("open input file", path, &e))?;
    let len = file
        .metadata()
        .map_err(|e| Error::io("stat file", path, &e))?
        .len();
    file.seek(SeekFrom::Start(pos))
        .map_err(|e| Error::io("seek in file", path, &e))?;
    Ok(Primitives::from(
        BufReader::with_capacity(256 << 10, file),
        archive.label.clone(),
        (pos, len),
        (archive.header.int_bytes, archive.header.offset_bytes),
    ))
}

fn blocks_error(label: &str, error: &io::Error) -> Error {
    if error.raw_os_error().is_some() {
        return Error::io("read file", label, error);
    }
    super::damaged(label, format!("could not read large objects: {error}"))
}

/// The bytes of a run of blocks, up to the empty one that ends it.
pub struct BlockReader<I> {
    input: I,
    /// Bytes of the block that are not read yet.
    left: u64,
    ended: bool,
}

/// What blocks are read from.
pub trait BlockInput {
    /// The length of the next block.
    fn block_len(&mut self) -> Result<u32>;
    /// Fills `into`.
    fn fill(&mut self, into: &mut [u8]) -> Result<()>;
}

impl BlockInput for Input {
    fn block_len(&mut self) -> Result<u32> {
        self.unsigned()
    }
    fn fill(&mut self, into: &mut [u8]) -> Result<()> {
        self.bytes(into)
    }
}

impl BlockInput for &mut Input {
    fn block_len(&mut self) -> Result<u32> {
        self.unsigned()
    }
    fn fill(&mut self, into: &mut [u8]) -> Result<()> {
        self.bytes(into)
    }
}

impl<I: BlockInput> BlockReader<I> {
    fn new(input: I) -> BlockReader<I> {
        BlockReader {
            input,
            left: 0,
            ended: false,
        }
    }

    /// Begins the next block where one is over; whether there is none.
    fn next_block(&mut self) -> io::Result<bool> {
        if self.left == 0 && !self.ended {
            self.left = u64::from(self.input.block_len().map_err(io_error)?);
            self.ended = self.left == 0;
        }
        Ok(self.ended)
    }
}

impl<I: BlockInput> Read for BlockReader<I> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let mut read = 0;
        // Blocks may be as small as a row.
        while read < into.len() && !self.next_block()? {
            let wanted = self.left.min((into.len() - read) as u64) as usize;
            self.input
                .fill(&mut into[read..read + wanted])
                .map_err(io_error)?;
            self.left -= wanted as u64;
            read += wanted;
        }
        Ok(read)
    }
}

fn io_error(error: Error) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error.message)
}
