//! Compressed files: which they are, and their decoders.

use std::io::{self, BufReader, Read};
use std::path::Path;

/// How a file is compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compression {
    /// gzip, also several members in a row.
    Gzip,
    /// The zlib format, inside of archives.
    Zlib,
    /// Zstandard, also several frames in a row.
    Zstd,
    /// LZ4's frame format, also several frames in a row.
    Lz4,
    /// xz, also several streams in a row.
    Xz,
}

impl Compression {
    /// By the file's name, or by how it begins.
    pub fn of(name: &Path, head: &[u8]) -> Option<Compression> {
        let extension = name.extension().and_then(|extension| extension.to_str());
        match extension.map(str::to_ascii_lowercase).as_deref() {
            Some("gz") => return Some(Compression::Gzip),
            Some("zst") => return Some(Compression::Zstd),
            Some("lz4") => return Some(Compression::Lz4),
            Some("xz") => return Some(Compression::Xz),
            _ => {}
        }
        Compression::of_head(head)
    }

    /// By how a file begins.
    pub fn of_head(head: &[u8]) -> Option<Compression> {
        match head {
            [0x1f, 0x8b, ..] => Some(Compression::Gzip),
            [0x28, 0xb5, 0x2f, 0xfd, ..] => Some(Compression::Zstd),
            [0x04, 0x22, 0x4d, 0x18, ..] => Some(Compression::Lz4),
            [0xfd, b'7', b'z', b'X', b'Z', 0, ..] => Some(Compression::Xz),
            _ => None,
        }
    }

    /// The plain bytes of `reader`.
    ///
    /// # Errors
    /// No memory for the decoder.
    pub fn decode<'r>(
        self,
        reader: Box<dyn Read + Send + 'r>,
    ) -> io::Result<Box<dyn Read + Send + 'r>> {
        let mut reader = BufReader::with_capacity(128 << 10, reader);
        // No compressor writes nothing at all, not even for nothing: this is a file cut off.
        if io::BufRead::fill_buf(&mut reader)?.is_empty() {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(match self {
            Compression::Gzip => Box::new(flate2::bufread::MultiGzDecoder::new(reader)),
            Compression::Zlib => Box::new(flate2::bufread::ZlibDecoder::new(reader)),
            Compression::Xz => Box::new(liblzma::bufread::XzDecoder::new_multi_decoder(reader)),
            Compression::Zstd => Box::new(zstd::stream::read::Decoder::with_buffer(reader)?),
            Compression::Lz4 => Box::new(Lz4Frames {
                decoder: Some(lz4::Decoder::new(reader)?),
            }),
        })
    }
}

/// LZ4 frames one after another.
struct Lz4Frames<R: Read> {
    /// `None` once all is read.
    decoder: Option<lz4::Decoder<BufReader<R>>>,
}

impl<R: Read> Read for Lz4Frames<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        loop {
            let Some(decoder) = &mut self.decoder else {
                return Ok(0);
            };
            let read = decoder.read(into)?;
            if read > 0 || into.is_empty() {
                return Ok(read);
            }
            let Some(decoder) = self.decoder.take() else {
                return Ok(0);
            };
            let (mut reader, result) = decoder.finish();
            // The crate calls a frame that breaks off an interruption, which callers would retry.
            result.map_err(|error| io::Error::new(io::ErrorKind::UnexpectedEof, error))?;
            if !io::BufRead::fill_buf(&mut reader)?.is_empty() {
                self.decoder = Some(lz4::Decoder::new(reader)?);
            }
        }
    }
}
