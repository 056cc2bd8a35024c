//! The threads that write, and those that make files durable: whoever fills buffers of pages
//! hands them over and goes on.
//!
//! ```text
//! submit   -> queue (bounded) -> writers      pages to their final places
//! finish   -> queue           -> finishers    wait for a file's writes, cut it to size, fsync
//! finished <- all of them
//! ```
//!
//! The queue of buffers is bounded, so that a slow disk slows the fillers down instead of
//! filling the memory; as long as there is room in it they compute while the disk works. The
//! first error is kept: every later [`WriterPool::submit`] returns it, and so does
//! [`WriterPool::finished`].

use super::page_buffer::{BufferPool, PageBuffer};
use super::relation_file::{Pending, RelationFile, RelationSize};
use crate::error::{Error, Result};
use pgformat::ids::BlockNumber;
use pgformat::page::PAGE_BYTES;
use std::iter;
use std::ops::Range;
use std::panic::{self, AssertUnwindSafe};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread::{self, JoinHandle};

/// Pages of a buffer of [`WriterPool::new`]: 2 MB, which is a huge page of the usual processors.
pub const BUFFER_PAGES: usize = 256;
/// Bytes of it.
pub const BUFFER_BYTES: usize = BUFFER_PAGES * PAGE_BYTES;

/// Threads that make files durable. They wait for the disk, not for a processor.
const FINISHERS: usize = 8;

/// Pages to be written.
struct Job {
    file: Arc<RelationFile>,
    /// Block of the buffer's first page.
    first_block: BlockNumber,
    buffer: PageBuffer,
    /// Which pages of the buffer.
    runs: Vec<Range<usize>>,
}

/// A file to be finished, and its blocks.
struct Finish {
    file: Arc<RelationFile>,
    blocks: BlockNumber,
}

/// What the threads share.
#[derive(Debug, Default)]
struct Shared {
    /// The first error of any write or finish.
    failure: OnceLock<Error>,
    /// What is still queued will never be asked for.
    abandoned: AtomicBool,
    /// Files that are not finished yet.
    unfinished: Pending,
}

impl Shared {
    fn check(&self) -> Result<()> {
        self.failure.get().map_or(Ok(()), |e| Err(e.clone()))
    }

    /// The work, unless nobody wants it any more; its error is kept. A broken invariant is an
    /// error too: whoever waits must be told.
    fn run(&self, work: impl FnOnce() -> Result<()>) -> Result<()> {
        if self.abandoned.load(Ordering::Relaxed) {
            return Err(Error::environment("57014", "the build was abandoned"));
        }
        let result = panic::catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|payload| {
            let text = payload
                .downcast_ref::<String>()
                .map_or("a file could not be written", String::as_str);
            Err(Error::environment("XX000", text))
        });
        if let Err(error) = &result {
            let _ = self.failure.set(error.clone());
        }
        result
    }
}

/// The threads with their queues and buffers. Dropping it abandons what is still queued: what
/// is to be kept was waited for by [`WriterPool::finished`].
#[derive(Debug)]
pub struct WriterPool {
    /// There until the threads are to end.
    queues: Option<(SyncSender<Job>, Sender<Finish>)>,
    threads: Vec<JoinHandle<()>>,
    buffers: Arc<BufferPool>,
    shared: Arc<Shared>,
}

impl WriterPool {
    /// So many writers behind a queue of so many buffers, each of `buffer_pages` pages.
    pub fn new(writers: usize, queue_buffers: usize, buffer_pages: usize) -> WriterPool {
        assert!(writers > 0, "writing takes a thread");
        let shared = Arc::new(Shared::default());
        let (jobs, written) = sync_channel(queue_buffers);
        let (finishes, finished) = channel();
        let mut threads = start(writers, "writer", written, &shared, write_one);
        threads.extend(start(FINISHERS, "finisher", finished, &shared, finish_one));
        WriterPool {
            queues: Some((jobs, finishes)),
            threads,
            buffers: BufferPool::new(buffer_pages),
            shared,
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
        self.shared.check()?;
        file.begin_write();
        let (queue, _) = self.queues();
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

    /// Finishes a file of so many blocks ([`RelationFile::finish`]) beside whatever goes on, when
    /// its queued writes are done, and tells what it will be. Nothing is written to it after this.
    pub fn finish(&self, file: &Arc<RelationFile>, blocks: BlockNumber) -> RelationSize {
        self.shared.unfinished.begin();
        let (_, queue) = self.queues();
        let finish = Finish {
            file: Arc::clone(file),
            blocks,
        };
        if queue.send(finish).is_err() {
            unreachable!("the finishers end after their queue");
        }
        file.size(blocks)
    }

    /// Waits until every file given to [`WriterPool::finish`] is finished.
    ///
    /// # Errors
    /// The first error of any write or finish.
    pub fn finished(&self) -> Result<()> {
        self.shared.unfinished.wait();
        self.shared.check()
    }

    fn queues(&self) -> &(SyncSender<Job>, Sender<Finish>) {
        self.queues
            .as_ref()
            .expect("the queues are open while the pool lives")
    }
}

/// Starts threads that do one thing after the other until their queue is closed.
fn start<T: Send + 'static>(
    count: usize,
    name: &str,
    queue: Receiver<T>,
    shared: &Arc<Shared>,
    work: fn(T, &Shared),
) -> Vec<JoinHandle<()>> {
    let queue = Arc::new(Mutex::new(queue));
    (0..count)
        .map(|_| {
            let (queue, shared) = (Arc::clone(&queue), Arc::clone(shared));
            let run = move || {
                loop {
                    let next = queue.lock().unwrap_or_else(PoisonError::into_inner).recv();
                    match next {
                        Ok(item) => work(item, &shared),
                        Err(_) => return,
                    }
                }
            };
            thread::Builder::new()
                .name(name.to_owned())
                .spawn(run)
                .expect("the system starts a thread")
        })
        .collect()
}

fn write_one(job: Job, shared: &Shared) {
    let Job {
        file,
        first_block,
        buffer,
        runs,
    } = job;
    let result = shared.run(|| {
        let pages = buffer.pages();
        runs.into_iter()
            .try_for_each(|run| file.write(first_block + run.start as u32, &pages[run]))
    });
    // Back into the pool before anyone is told.
    drop(buffer);
    file.end_write(result);
}

fn finish_one(Finish { file, blocks }: Finish, shared: &Shared) {
    // The error is kept for whoever waits for all.
    let _ = shared.run(|| file.finish(blocks));
    shared.unfinished.end();
}

impl Drop for WriterPool {
    fn drop(&mut self) {
        self.shared.abandoned.store(true, Ordering::Relaxed);
        drop(self.queues.take());
        for thread in self.threads.drain(..) {
            // A thread that panicked has said so; there is nobody left to tell.
            let _ = thread.join();
        }
    }
}
