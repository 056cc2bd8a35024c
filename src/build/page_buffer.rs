//! Memory for pages on their way to disk: aligned as direct I/O asks, and used again.

use crate::error::{Error, Result};
use memmap2::{Advice, MmapMut};
use pgformat::page::{PAGE_BYTES, Page};
use std::sync::{Arc, Mutex, PoisonError};

/// The buffers of one size that are not in use.
///
/// It never waits: what bounds the memory is the writers' queue, and how many buffers their
/// fillers hold.
#[derive(Debug)]
pub struct BufferPool {
    pages: usize,
    free: Mutex<Vec<MmapMut>>,
}

impl BufferPool {
    /// A pool of buffers of so many pages.
    pub fn new(pages: usize) -> Arc<BufferPool> {
        assert!(pages > 0, "a buffer of no pages");
        Arc::new(BufferPool {
            pages,
            free: Mutex::new(Vec::new()),
        })
    }

    /// Pages of each buffer.
    pub fn pages(&self) -> usize {
        self.pages
    }

    /// A buffer, with whatever it held last.
    ///
    /// # Errors
    /// The kernel has no memory.
    pub fn take(self: &Arc<BufferPool>) -> Result<PageBuffer> {
        let used = self
            .free
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .pop();
        let memory = if let Some(memory) = used {
            memory
        } else {
            let memory = MmapMut::map_anon(self.pages * PAGE_BYTES)
                .map_err(|e| Error::environment("53200", format!("out of memory: {e}")))?;
            // One fault instead of hundreds, where the kernel has huge pages to give.
            let _ = memory.advise(Advice::HugePage);
            memory
        };
        Ok(PageBuffer {
            memory: Some(memory),
            pool: Arc::clone(self),
        })
    }
}

/// A buffer of pages; it goes back to its pool when dropped.
#[derive(Debug)]
pub struct PageBuffer {
    /// Always there, but while it is dropped.
    memory: Option<MmapMut>,
    pool: Arc<BufferPool>,
}

impl PageBuffer {
    fn memory(&self) -> &MmapMut {
        self.memory.as_ref().expect("a buffer in use has memory")
    }

    /// All its pages.
    pub fn pages(&self) -> &[Page] {
        self.memory().as_chunks().0
    }

    /// All its pages, to be filled.
    pub fn pages_mut(&mut self) -> &mut [Page] {
        self.memory
            .as_mut()
            .expect("a buffer in use has memory")
            .as_chunks_mut()
            .0
    }
}

impl Drop for PageBuffer {
    fn drop(&mut self) {
        if let Some(memory) = self.memory.take() {
            self.pool
                .free
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .push(memory);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_is_aligned_to_4096_bytes_and_used_again() {
        let pool = BufferPool::new(3);
        let mut buffer = pool.take().unwrap();
        assert_eq!(buffer.pages().len(), 3);
        assert_eq!(buffer.pages().as_ptr().addr() % 4096, 0);
        buffer.pages_mut()[2][8191] = 7;
        let place = buffer.pages().as_ptr();
        drop(buffer);
        let again = pool.take().unwrap();
        assert_eq!(again.pages().as_ptr(), place);
        assert_eq!(again.pages()[2][8191], 7);
        assert_ne!(pool.take().unwrap().pages().as_ptr(), place);
    }
}
