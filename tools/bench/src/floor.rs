//! The least that a load costs: the input read once, pages with checksums written, all durable.

use pgpagewrite::sys::{files, simd};
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::thread;
use support::{PAGE_BYTES, Page};

/// Bytes of one write.
const WRITE_BYTES: usize = 1 << 20;
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
    /// Where to write; the files are removed at the end.
    #[arg(long)]
    dir: PathBuf,
    /// Threads that write.
    #[arg(long, default_value_t = 2)]
    writers: u64,
}

/// Reads and writes at the same time.
pub(crate) fn run(arguments: &Arguments) -> io::Result<()> {
    let dir = arguments.dir.join(format!("floor.{}", std::process::id()));
    fs::create_dir(&dir)?;
    let blocks = arguments.bytes / PAGE_BYTES as u64;
    let writers = arguments.writers.max(1);
    let result = thread::scope(|scope| {
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
        File::open(&dir)?.sync_all()
    });
    fs::remove_dir_all(&dir)?;
    result
}

fn read(path: &Path) -> io::Result<()> {
    let mut file = File::open(path)?;
    let mut buffer = vec![0; WRITE_BYTES];
    while file.read(&mut buffer)? > 0 {}
    Ok(())
}

fn write(path: &Path, blocks: u64) -> io::Result<()> {
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
    let mut storage = vec![0u8; WRITE_BYTES + ALIGN_BYTES];
    let start = storage.as_ptr().align_offset(ALIGN_BYTES);
    let buffer = &mut storage[start..start + WRITE_BYTES];
    // Bytes that neither a disk nor a file system could leave out.
    let mut word = 0x9e37_79b9_7f4a_7c15u64;
    for bytes in buffer.as_chunks_mut::<8>().0 {
        word = word.wrapping_mul(0x5851_f42d_4c95_7f2d).rotate_left(17) ^ 1;
        *bytes = word.to_le_bytes();
    }
    let mut block = 0;
    while block < blocks {
        let count = (blocks - block).min((WRITE_BYTES / PAGE_BYTES) as u64);
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
    fn the_floor_leaves_nothing_behind() {
        let dir =
            std::env::temp_dir().join(format!("pgpagewrite-floor-test-{}", std::process::id()));
        fs::create_dir(&dir).unwrap();
        let input = dir.join("input");
        fs::write(&input, vec![7; 100_000]).unwrap();
        let arguments = Arguments {
            inputs: vec![input],
            bytes: 3_000_000,
            dir: dir.clone(),
            writers: 3,
        };
        run(&arguments).unwrap();
        assert_eq!(fs::read_dir(&dir).unwrap().count(), 1);
        fs::remove_dir_all(&dir).unwrap();
    }
}
