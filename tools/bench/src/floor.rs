//! The least that a load costs: the input read once, pages with checksums written, all durable.
//!
//! Nothing is parsed. One thread reads the input while others fill new files, whose space they
//! take first, by direct I/O from aligned buffers: the quickest way to get so many bytes into new
//! files that we know of.

use pgpagewrite::sys::{files, simd};
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::thread;
use support::{PAGE_BYTES, Page};

/// Bytes of one read or write.
const TRANSFER_BYTES: usize = 1 << 20;
/// What direct I/O wants buffers to start at a multiple of.
const ALIGN_BYTES: usize = 4096;

/// What to read and how much to write.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Files to read.
    inputs: Vec<PathBuf>,
    /// Bytes to write.
    #[arg(long)]
    bytes: u64,
    /// A directory to make and to write into.
    #[arg(long)]
    dir: PathBuf,
    /// Threads that write.
    #[arg(long, default_value_t = 2)]
    writers: u64,
}

/// Reads and writes at the same time. The files stay: taking them away is no part of a load.
pub(crate) fn run(arguments: &Arguments) -> io::Result<()> {
    let dir = &arguments.dir;
    fs::create_dir(dir)?;
    let blocks = arguments.bytes.div_ceil(PAGE_BYTES as u64);
    let writers = arguments.writers.max(1);
    thread::scope(|scope| {
        let writing: Vec<_> = (0..writers)
            .map(|writer| {
                let path = dir.join(writer.to_string());
                let blocks = blocks * (writer + 1) / writers - blocks * writer / writers;
                scope.spawn(move || write(&path, blocks))
            })
            .collect();
        for input in &arguments.inputs {
            read(input)?;
        }
        for thread in writing {
            thread
                .join()
                .map_err(|_| io::Error::other("a writer panicked"))??;
        }
        File::open(dir)?.sync_all()
    })
}

/// Storage and where a buffer of [`TRANSFER_BYTES`] begins in it.
fn aligned() -> (Vec<u8>, usize) {
    let storage = vec![0u8; TRANSFER_BYTES + ALIGN_BYTES];
    let start = storage.as_ptr().align_offset(ALIGN_BYTES);
    (storage, start)
}

fn read(path: &Path) -> io::Result<()> {
    let mut file = File::open(path)?;
    let (mut storage, start) = aligned();
    let buffer = &mut storage[start..start + TRANSFER_BYTES];
    while file.read(buffer)? > 0 {}
    Ok(())
}

fn write(path: &Path, blocks: u64) -> io::Result<()> {
    if blocks == 0 {
        return Ok(());
    }
    let mut options = fs::OpenOptions::new();
    options.write(true).create_new(true);
    // Some file systems have no direct I/O: then through the page cache.
    let file = options
        .clone()
        .custom_flags(libc::O_DIRECT)
        .open(path)
        .or_else(|_| {
            let _ = fs::remove_file(path);
            options.open(path)
        })?;
    files::allocate(&file, 0, blocks * PAGE_BYTES as u64)?;
    let (mut storage, start) = aligned();
    let buffer = &mut storage[start..start + TRANSFER_BYTES];
    // Bytes that neither a disk nor a file system could leave out.
    let mut word = 0x9e37_79b9_7f4a_7c15u64;
    for bytes in buffer.as_chunks_mut::<8>().0 {
        word = word.wrapping_mul(0x5851_f42d_4c95_7f2d).rotate_left(17) ^ 1;
        *bytes = word.to_le_bytes();
    }
    let mut block = 0;
    while block < blocks {
        let count = (blocks - block).min((TRANSFER_BYTES / PAGE_BYTES) as u64);
        let bytes = &mut buffer[..count as usize * PAGE_BYTES];
        let pages: &mut [Page] = bytes.as_chunks_mut::<PAGE_BYTES>().0;
        for (i, page) in pages.iter_mut().enumerate() {
            simd::set_checksum(page, block as u32 + i as u32);
        }
        file.write_all_at(bytes, block * PAGE_BYTES as u64)?;
        block += count;
    }
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_floor_writes_every_page_with_its_checksum() {
        let parent = tempfile::tempdir().expect("a directory");
        let input = parent.path().join("input");
        fs::write(&input, vec![7; 100_000]).expect("the input");
        let dir = parent.path().join("floor");
        let arguments = Arguments {
            inputs: vec![input],
            bytes: 3_000_000,
            dir: dir.clone(),
            writers: 3,
        };
        run(&arguments).expect("the floor");
        let mut blocks = 0;
        for file in fs::read_dir(&dir).expect("the directory") {
            let bytes = fs::read(file.expect("a file").path()).expect("its bytes");
            for (block, page) in bytes.as_chunks::<PAGE_BYTES>().0.iter().enumerate() {
                let sum = u16::from_le_bytes([page[8], page[9]]);
                assert_eq!(sum, simd::page_checksum(page, block as u32));
                blocks += 1;
            }
        }
        assert_eq!(blocks, 3_000_000usize.div_ceil(PAGE_BYTES));
        assert!(run(&arguments).is_err(), "files are new or none");
    }
}
