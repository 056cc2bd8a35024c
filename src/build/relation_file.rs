//! A fork on disk: files of 1 GB that several threads fill at once.
//!
//! ```text
//! dir/16384      blocks 0..131072
//! dir/16384.1    blocks 131072..262144
//! ```
//!
//! Each block is written once, at its final place, in any order and by any thread. Where the
//! file system allows it, writes go around the page cache, into space that is taken ahead of
//! them; [`RelationFile::finish`] cuts the last segment to its true size and makes all of them durable. Whoever writes has
//! set the checksums: see [`RelationFile::checksums`].
//!
//! PostgreSQL: `src/backend/storage/smgr/md.c`.

use crate::error::{Error, Result};
use crate::sys::files;
use pgformat::ids::BlockNumber;
use pgformat::page::{PAGE_BYTES, Page};
use std::fs::{File, OpenOptions};
use std::os::unix::fs::{FileExt, OpenOptionsExt, fchown};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, OnceLock, PoisonError};
use std::thread;

/// Blocks of a segment (`RELSEG_SIZE`): 1 GB.
pub const SEGMENT_BLOCKS: u32 = 131_072;

/// How much disk space is taken ahead, at most and at least, in bytes.
const MAX_AHEAD_BYTES: u64 = 64 << 20;
const MIN_AHEAD_BYTES: u64 = 1 << 20;

/// How many segments are made durable at a time.
const PARALLEL_FSYNCS: usize = 8;

/// Whether writes go around the page cache.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum DirectIo {
    /// Where the file system allows it.
    #[default]
    Auto,
    /// Never.
    Off,
}

/// When files become durable.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Durable {
    /// When they are finished.
    #[default]
    WhenFinished,
    /// Later: whoever has them made syncs their file system. For small files, of which there
    /// are many: nothing is begun for one alone.
    Later,
}

/// How a relation's files are made.
#[derive(Clone, Copy, Debug)]
pub struct FileOptions {
    /// Blocks of a segment; [`SEGMENT_BLOCKS`] but in tests.
    pub segment_blocks: u32,
    /// The cluster has data checksums.
    pub checksums: bool,
    /// Around the page cache or through it.
    pub direct: DirectIo,
    /// When they become durable.
    pub durable: Durable,
    /// Permission bits: 0600, or 0640 where the cluster allows group access.
    pub mode: u32,
    /// uid and gid to give the files to, when we are not their owner.
    pub owner: Option<(u32, u32)>,
}

impl Default for FileOptions {
    fn default() -> FileOptions {
        FileOptions {
            segment_blocks: SEGMENT_BLOCKS,
            checksums: true,
            direct: DirectIo::Auto,
            durable: Durable::WhenFinished,
            mode: 0o600,
            owner: None,
        }
    }
}

/// What became of a fork.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RelationSize {
    /// Blocks over all segments.
    pub blocks: BlockNumber,
    /// Files that have a block.
    pub segments: u32,
}

impl RelationSize {
    /// The same in bytes.
    pub fn bytes(&self) -> u64 {
        self.blocks as u64 * PAGE_BYTES as u64
    }
}

/// One file.
#[derive(Debug)]
struct Segment {
    path: PathBuf,
    file: File,
    direct: bool,
    durable: Durable,
    /// The same file through the page cache, once the file system refused a direct write.
    buffered: OnceLock<File>,
    /// Bytes up to which space was taken; `u64::MAX` when no more is to be taken ahead.
    allocated_bytes: Mutex<u64>,
}

/// Counts what was begun and is not done yet, so that one can wait for all of it.
#[derive(Debug, Default)]
pub(super) struct Pending {
    count: Mutex<u64>,
    none: Condvar,
}

impl Pending {
    pub(super) fn begin(&self) {
        *self.count.lock().unwrap_or_else(PoisonError::into_inner) += 1;
    }

    pub(super) fn end(&self) {
        let mut count = self.count.lock().unwrap_or_else(PoisonError::into_inner);
        *count -= 1;
        if *count == 0 {
            self.none.notify_all();
        }
    }

    pub(super) fn wait(&self) {
        let count = self.count.lock().unwrap_or_else(PoisonError::into_inner);
        let none = self.none.wait_while(count, |count| *count > 0);
        drop(none.unwrap_or_else(PoisonError::into_inner));
    }
}

/// A fork being written.
#[derive(Debug)]
pub struct RelationFile {
    dir: PathBuf,
    base_name: String,
    options: FileOptions,
    segments: Mutex<Vec<Option<Arc<Segment>>>>,
    written_blocks: AtomicU64,
    pending: Pending,
    failed: AtomicBool,
    failure: Mutex<Option<Error>>,
}

impl RelationFile {
    /// Makes the first file, empty, of the fork `base_name` (as `16384` or `16384_vm`) in
    /// `dir`.
    ///
    /// # Errors
    /// It cannot be made, or is there already.
    pub fn create(dir: &Path, base_name: &str, options: FileOptions) -> Result<Arc<RelationFile>> {
        let file = RelationFile::deferred(dir, base_name, options);
        file.segment(0)?;
        Ok(file)
    }

    /// The same, but the first file is made when the first page is written; a fork without
    /// blocks has none.
    pub fn deferred(dir: &Path, base_name: &str, options: FileOptions) -> Arc<RelationFile> {
        assert!(options.segment_blocks > 0, "segments of no blocks");
        Arc::new(RelationFile {
            dir: dir.to_path_buf(),
            base_name: base_name.to_owned(),
            options,
            segments: Mutex::new(Vec::new()),
            written_blocks: AtomicU64::new(0),
            pending: Pending::default(),
            failed: AtomicBool::new(false),
            failure: Mutex::new(None),
        })
    }

    /// Whether whoever fills pages sets their checksums
    /// ([`crate::sys::simd::set_checksum`]).
    pub fn checksums(&self) -> bool {
        self.options.checksums
    }

    /// The first segment's path.
    pub fn path(&self) -> PathBuf {
        self.segment_path(0)
    }

    fn segment_path(&self, number: u32) -> PathBuf {
        if number == 0 {
            self.dir.join(&self.base_name)
        } else {
            self.dir.join(format!("{}.{number}", self.base_name))
        }
    }

    /// The segment `number`, made if need be.
    fn segment(&self, number: u32) -> Result<Arc<Segment>> {
        let mut segments = self.segments.lock().unwrap_or_else(PoisonError::into_inner);
        let number = number as usize;
        if segments.len() <= number {
            segments.resize(number + 1, None);
        }
        if let Some(segment) = &segments[number] {
            return Ok(Arc::clone(segment));
        }
        let segment = Arc::new(Segment::create(
            self.segment_path(number as u32),
            &self.options,
        )?);
        segments[number] = Some(Arc::clone(&segment));
        Ok(segment)
    }

    /// Writes pages at `first_block` and after; they may cross the end of a segment. Each
    /// block is written once. Their memory is a [`super::page_buffer::PageBuffer`]'s: other
    /// memory is written too, but through the page cache, and all that comes after it as well.
    ///
    /// # Errors
    /// The file system's, with the block.
    pub fn write(&self, first_block: BlockNumber, pages: &[Page]) -> Result<()> {
        let per_segment = self.options.segment_blocks;
        let (mut block, mut rest) = (first_block, pages);
        while !rest.is_empty() {
            let in_segment = block % per_segment;
            let here = rest.len().min((per_segment - in_segment) as usize);
            let segment = self.segment(block / per_segment)?;
            let start = in_segment as u64 * PAGE_BYTES as u64;
            segment
                .write(
                    start,
                    rest[..here].as_flattened(),
                    per_segment as u64 * PAGE_BYTES as u64,
                )
                .map_err(|e| {
                    Error::io(&format!("write block {block} in file"), &segment.path, &e)
                })?;
            rest = &rest[here..];
            block = block.wrapping_add(here as u32);
        }
        self.written_blocks
            .fetch_add(pages.len() as u64, Ordering::Relaxed);
        Ok(())
    }

    /// A write was queued.
    pub(super) fn begin_write(&self) {
        self.pending.begin();
    }

    /// A queued write is done, or failed.
    pub(super) fn end_write(&self, result: Result<()>) {
        if let Err(error) = result {
            self.failure
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .get_or_insert(error);
            self.failed.store(true, Ordering::Release);
        }
        self.pending.end();
    }

    /// Waits until every queued write of this fork is done.
    ///
    /// # Errors
    /// The first error of any.
    pub fn wait(&self) -> Result<()> {
        self.pending.wait();
        self.check()
    }

    /// The first error of a queued write, if there was one.
    pub(super) fn check(&self) -> Result<()> {
        if !self.failed.load(Ordering::Acquire) {
            return Ok(());
        }
        match &*self.failure.lock().unwrap_or_else(PoisonError::into_inner) {
            Some(error) => Err(error.clone()),
            None => Ok(()),
        }
    }

    /// What a fork of so many blocks is on disk.
    pub fn size(&self, blocks: BlockNumber) -> RelationSize {
        RelationSize {
            blocks,
            segments: blocks.div_ceil(self.options.segment_blocks),
        }
    }

    /// Waits for the queue, cuts the segments to their true size, makes them durable (the
    /// directory's entries are not) and closes them. Nothing is written after this.
    ///
    /// # Errors
    /// The first error of any write, or one of these.
    ///
    /// # Panics
    /// When other blocks than `0..blocks` were written.
    pub fn finish(&self, blocks: BlockNumber) -> Result<()> {
        self.wait()?;
        let written = self.written_blocks.load(Ordering::Relaxed);
        assert_eq!(
            written, blocks as u64,
            "blocks written of a fork of {blocks} blocks"
        );
        let segments: Vec<Arc<Segment>> = {
            let mut segments = self.segments.lock().unwrap_or_else(PoisonError::into_inner);
            std::mem::take(&mut *segments)
                .into_iter()
                .flatten()
                .collect()
        };
        if blocks == 0 && segments.is_empty() {
            return Ok(());
        }
        let per_segment = self.options.segment_blocks;
        // An empty file stands for no blocks.
        let expected = self.size(blocks).segments.max(1);
        assert_eq!(
            segments.len() as u32,
            expected,
            "segments of a fork of {blocks} blocks"
        );
        let last = expected - 1;
        let finish_one = |number: usize, segment: &Segment| {
            let blocks_here = if number as u32 == last {
                blocks - last * per_segment
            } else {
                per_segment
            };
            segment.finish(blocks_here as u64 * PAGE_BYTES as u64)
        };
        for (group, some) in segments.chunks(PARALLEL_FSYNCS).enumerate() {
            let first = group * PARALLEL_FSYNCS;
            if let [one] = some {
                finish_one(first, one)?;
                continue;
            }
            let results: Vec<Result<()>> = thread::scope(|scope| {
                let threads: Vec<_> = some
                    .iter()
                    .enumerate()
                    .map(|(i, segment)| scope.spawn(move || finish_one(first + i, segment)))
                    .collect();
                threads
                    .into_iter()
                    .map(|t| t.join().expect("an fsync does not panic"))
                    .collect()
            });
            results.into_iter().collect::<Result<()>>()?;
        }
        Ok(())
    }
}

impl Segment {
    fn create(path: PathBuf, options: &FileOptions) -> Result<Segment> {
        let open = |flags: i32| {
            OpenOptions::new()
                .write(true)
                .create_new(true)
                .mode(options.mode)
                .custom_flags(flags)
                .open(&path)
        };
        let mut direct = options.direct == DirectIo::Auto;
        let mut opened = open(if direct { libc::O_DIRECT } else { 0 });
        if direct
            && opened
                .as_ref()
                .is_err_and(|e| e.raw_os_error() == Some(libc::EINVAL))
        {
            // A file system that refuses the flag may have made the file all the same.
            match std::fs::remove_file(&path) {
                Err(e) if e.kind() != std::io::ErrorKind::NotFound => {
                    return Err(Error::io("remove file", &path, &e));
                }
                _ => {}
            }
            direct = false;
            opened = open(0);
        }
        let file = opened.map_err(|e| Error::io("create file", &path, &e))?;
        if let Some((uid, gid)) = options.owner {
            fchown(&file, Some(uid), Some(gid))
                .map_err(|e| Error::io("change the owner of file", &path, &e))?;
        }
        Ok(Segment {
            path,
            file,
            direct,
            durable: options.durable,
            buffered: OnceLock::new(),
            allocated_bytes: Mutex::new(0),
        })
    }

    /// Writes whole pages from `start` on.
    fn write(&self, start: u64, bytes: &[u8], segment_bytes: u64) -> std::io::Result<()> {
        if self.direct && self.buffered.get().is_none() {
            self.allocate_ahead(start + bytes.len() as u64, segment_bytes);
            match self.file.write_all_at(bytes, start) {
                Err(e) if e.raw_os_error() == Some(libc::EINVAL) => {}
                result => return result,
            }
            // Direct writes are refused only now.
            let buffered = OpenOptions::new().write(true).open(&self.path)?;
            let _ = self.buffered.set(buffered);
        }
        let file = self.buffered.get().unwrap_or(&self.file);
        file.write_all_at(bytes, start)?;
        if self.durable == Durable::WhenFinished {
            files::start_write_back(file, start, bytes.len() as u64);
        }
        Ok(())
    }

    /// Takes space up to `end` and some more, so that direct writes need not extend the file
    /// one after the other. Where that fails nothing is lost: the writes take their space
    /// themselves, and tell when there is none.
    fn allocate_ahead(&self, end: u64, segment_bytes: u64) {
        let mut allocated = self
            .allocated_bytes
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        // Most files are so small that taking space ahead would cost more than it spares.
        if end <= *allocated || end < MIN_AHEAD_BYTES {
            return;
        }
        let ahead = end.clamp(MIN_AHEAD_BYTES, MAX_AHEAD_BYTES);
        let to = (end + ahead)
            .next_multiple_of(MIN_AHEAD_BYTES)
            .min(segment_bytes);
        *allocated = match files::allocate(&self.file, *allocated, to) {
            Ok(()) => to,
            Err(_) => u64::MAX,
        };
    }

    fn finish(&self, bytes: u64) -> Result<()> {
        self.file
            .set_len(bytes)
            .map_err(|e| Error::io("truncate file", &self.path, &e))?;
        match self.durable {
            Durable::Later => Ok(()),
            Durable::WhenFinished => self
                .file
                .sync_all()
                .map_err(|e| Error::io("fsync file", &self.path, &e)),
        }
    }
}
