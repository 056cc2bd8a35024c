//! Integers, strings and offsets as archives have them.
//!
//! PostgreSQL: `src/bin/pg_dump/pg_backup_archiver.c`, `ReadInt`, `ReadStr`, `ReadOffset`.

use std::io::Read;

use super::damaged;
use crate::error::{Error, Result};

/// The server takes no longer statement (`MaxAllocSize`).
const MAX_STRING_BYTES: u64 = 0x3fff_ffff;

/// What `ReadOffset` finds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Offset {
    /// The writer could not go back to fill it in.
    NotSet,
    /// The data begin here.
    At(u64),
    /// There are no data.
    NoData,
}

/// Reads from an archive and knows how far it came.
pub struct Primitives<R> {
    reader: R,
    label: String,
    /// Bytes read so far.
    pos: u64,
    /// Bytes that there are.
    len: u64,
    int_bytes: u8,
    offset_bytes: u8,
}

impl<R: Read> Primitives<R> {
    /// Reads `len` bytes of `reader`; `label` is for messages.
    pub fn new(reader: R, label: String, len: u64) -> Primitives<R> {
        Primitives {
            reader,
            label,
            pos: 0,
            len,
            int_bytes: 4,
            offset_bytes: 8,
        }
    }

    /// The same from a position on, with sizes that are known.
    pub fn from(
        reader: R,
        label: String,
        (pos, len): (u64, u64),
        (int_bytes, offset_bytes): (u8, u8),
    ) -> Primitives<R> {
        Primitives {
            pos,
            int_bytes,
            offset_bytes,
            ..Primitives::new(reader, label, len)
        }
    }

    /// How many bytes integers and offsets have from here on.
    pub fn set_sizes(&mut self, int_bytes: u8, offset_bytes: u8) {
        self.int_bytes = int_bytes;
        self.offset_bytes = offset_bytes;
    }

    /// Where the next byte stands.
    pub fn pos(&self) -> u64 {
        self.pos
    }

    /// The error for what is read here.
    #[cold]
    pub fn damaged(&self, message: impl std::fmt::Display) -> Error {
        damaged(
            &self.label,
            format!("{message} (at byte {} of the file)", self.pos),
        )
    }

    /// Fills `into`.
    ///
    /// # Errors
    /// The file ends, or cannot be read.
    pub fn bytes(&mut self, into: &mut [u8]) -> Result<()> {
        match self.reader.read_exact(into) {
            Ok(()) => {
                self.pos += into.len() as u64;
                Ok(())
            }
            Err(e) if e.kind() == std::io::ErrorKind::UnexpectedEof => {
                Err(self.damaged("could not read from input file: end of file"))
            }
            Err(e) => Err(Error::io("read file", self.label.as_str(), &e)),
        }
    }

    /// One byte.
    ///
    /// # Errors
    /// Those of [`Primitives::bytes`].
    pub fn byte(&mut self) -> Result<u8> {
        let mut byte = [0];
        self.bytes(&mut byte)?;
        Ok(byte[0])
    }

    /// One byte; `None` at the end of the file.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn byte_or_end(&mut self) -> Result<Option<u8>> {
        if self.pos >= self.len {
            return Ok(None);
        }
        self.byte().map(Some)
    }

    /// An integer: a byte for its sign, then its bytes, the least first.
    ///
    /// # Errors
    /// Those of [`Primitives::bytes`]; it has more than 32 bits.
    pub fn int(&mut self) -> Result<i32> {
        let sign = self.byte()?;
        let mut value: u64 = 0;
        for i in 0..self.int_bytes {
            let byte = u64::from(self.byte()?);
            if i < 4 {
                value |= byte << (8 * i);
            } else if byte != 0 {
                return Err(self.damaged("an integer is too large"));
            }
        }
        let value = i32::try_from(value).map_err(|_| self.damaged("an integer is too large"))?;
        Ok(if sign == 0 { value } else { -value })
    }

    /// The number of a block's bytes, or an OID: 32 bits without a sign.
    ///
    /// # Errors
    /// Those of [`Primitives::int`].
    pub fn unsigned(&mut self) -> Result<u32> {
        let sign = self.byte()?;
        let mut value: u32 = 0;
        for i in 0..self.int_bytes {
            let byte = self.byte()?;
            if i < 4 {
                value |= u32::from(byte) << (8 * i);
            } else if byte != 0 {
                return Err(self.damaged("an integer is too large"));
            }
        }
        // OIDs over 2^31 were written as negative integers.
        Ok(if sign == 0 {
            value
        } else {
            value.wrapping_neg()
        })
    }

    /// A string; `None` where there is none.
    ///
    /// # Errors
    /// Those of [`Primitives::bytes`].
    pub fn string(&mut self) -> Result<Option<Vec<u8>>> {
        let len = self.int()?;
        let Ok(len) = u64::try_from(len) else {
            return Ok(None);
        };
        if len > self.len.saturating_sub(self.pos) {
            return Err(self.damaged("a string is longer than what is left of the file"));
        }
        if len > MAX_STRING_BYTES {
            return Err(self.damaged("a string is longer than a statement can be"));
        }
        let mut string = vec![0; len as usize];
        self.bytes(&mut string)?;
        Ok(Some(string))
    }

    /// A place in the file.
    ///
    /// # Errors
    /// Those of [`Primitives::bytes`]; its flag is unknown; it has more than 64 bits.
    pub fn offset(&mut self) -> Result<Offset> {
        let flag = self.byte()?;
        let mut value: u64 = 0;
        for i in 0..self.offset_bytes {
            let byte = u64::from(self.byte()?);
            if i < 8 {
                value |= byte << (8 * i);
            } else if byte != 0 {
                return Err(self.damaged("file offset in dump file is too large"));
            }
        }
        match flag {
            1 => Ok(Offset::NotSet),
            2 => Ok(Offset::At(value)),
            3 => Ok(Offset::NoData),
            flag => Err(self.damaged(format!("unexpected data offset flag {flag}"))),
        }
    }

    /// Goes over bytes.
    ///
    /// # Errors
    /// The file ends before.
    pub fn skip(&mut self, bytes: u64) -> Result<()>
    where
        R: std::io::Seek,
    {
        if bytes > self.len.saturating_sub(self.pos) {
            return Err(self.damaged("could not read from input file: end of file"));
        }
        let signed = i64::try_from(bytes).map_err(|_| self.damaged("a block is too long"))?;
        self.reader
            .seek_relative(signed)
            .map_err(|e| Error::io("seek in file", self.label.as_str(), &e))?;
        self.pos += bytes;
        Ok(())
    }
}
