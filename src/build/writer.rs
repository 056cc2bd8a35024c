//! The threads that write: fillers hand over buffers of pages and go on.
//!
//! The queue between them is bounded, so that a slow disk slows the fillers down instead of
//! filling the memory. The first error is kept: every later [`WriterPool::submit`] returns
//! it, and so does [`RelationFile::finish`] of the file it struck.

use super::page_buffer::{BufferPool, PageBuffer};
use super::relation_file::RelationFile;
use crate::error::{Error, Result};
use pgformat::ids::BlockNumber;
use std::iter;
use std::ops::Range;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread::{self, JoinHandle};

/// Pages of a buffer of [`WriterPool::new`]: 1 MB.
pub const BUFFER_PAGES: usize = 128;

/// Pages to be written.
struct Job {
    file: Arc<RelationFile>,
    /// Block of the buffer's first page.
    first_block: BlockNumber,
    buffer: PageBuffer,
    /// Which pages of the buffer.
    runs: Vec<Range<usize>>,
}

/// Writer threads with their queue and their buffers. Dropping it writes what is queued.
#[derive(Debug)]
pub struct WriterPool {
    /// There until the threads are to end.
    queue: Option<SyncSender<Job>>,
    threads: Vec<JoinHandle<()>>,
    buffers: Arc<BufferPool>,
    failure: Arc<OnceLock<Error>>,
}

impl WriterPool {
    /// So many threads behind a queue of so many buffers, each of `buffer_pages` pages.
    pub fn new(threads: usize, queue_buffers: usize, buffer_pages: usize) -> WriterPool {
        assert!(threads > 0, "writing takes a thread");
        let (sender, receiver) = sync_channel(queue_buffers);
        let receiver = Arc::new(Mutex::new(receiver));
        let failure = Arc::new(OnceLock::new());
        let threads = (0..threads)
            .map(|_| {
                let (receiver, failure) = (Arc::clone(&receiver), Arc::clone(&failure));
                thread::Builder::new()
                    .name("writer".into())
                    .spawn(move || write_jobs(&receiver, &failure))
                    .expect("the system starts a thread")
            })
            .collect();
        WriterPool {
            queue: Some(sender),
            threads,
            buffers: BufferPool::new(buffer_pages),
            failure,
        }
    }

    /// A buffer to be filled, with whatever it held last.
    ///
    /// # Errors
    /// The kernel has no memory.
    pub fn buffer(&self) -> Result<PageBuffer> {
        self.buffers.take()
    }

    /// Pages of a buffer.
    pub fn buffer_pages(&self) -> usize {
        self.buffers.pages()
    }

    /// Queues the first `blocks` pages of `buffer` to be written at `first_block` and after;
    /// waits while the queue is full.
    ///
    /// # Errors
    /// The first error of any write so far, of whatever file.
    pub fn submit(
        &self,
        file: &Arc<RelationFile>,
        first_block: BlockNumber,
        buffer: PageBuffer,
        blocks: usize,
    ) -> Result<()> {
        self.submit_runs(file, first_block, buffer, iter::once(0..blocks).collect())
    }

    /// Queues some runs of pages of `buffer`, whose first page is block `first_block`.
    ///
    /// # Errors
    /// As [`WriterPool::submit`].
    pub(super) fn submit_runs(
        &self,
        file: &Arc<RelationFile>,
        first_block: BlockNumber,
        buffer: PageBuffer,
        runs: Vec<Range<usize>>,
    ) -> Result<()> {
        if let Some(error) = self.failure.get() {
            return Err(error.clone());
        }
        file.begin_write();
        let queue = self
            .queue
            .as_ref()
            .expect("the queue is open while the pool lives");
        let job = Job {
            file: Arc::clone(file),
            first_block,
            buffer,
            runs,
        };
        if queue.send(job).is_err() {
            unreachable!("the writers end after their queue");
        }
        Ok(())
    }
}

/// A writer thread: one job after the other, until the queue is closed.
fn write_jobs(queue: &Mutex<Receiver<Job>>, failure: &OnceLock<Error>) {
    loop {
        let next = queue.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(Job {
            file,
            first_block,
            buffer,
            runs,
        }) = next
        else {
            return;
        };
        let pages = buffer.pages();
        let result = runs
            .into_iter()
            .try_for_each(|run| file.write(first_block + run.start as u32, &pages[run]));
        // Back into the pool before anyone is told.
        drop(buffer);
        if let Err(error) = &result {
            let _ = failure.set(error.clone());
        }
        file.end_write(result);
    }
}

impl Drop for WriterPool {
    fn drop(&mut self) {
        drop(self.queue.take());
        for thread in self.threads.drain(..) {
            // A writer that panicked has said so; there is nobody left to tell.
            let _ = thread.join();
        }
    }
}
