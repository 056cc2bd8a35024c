//! How `--memory` is shared out: workers, sorts, and pages that wait for the disk.

use crate::build::writer::BUFFER_BYTES;

/// Threads that write.
pub const WRITERS: usize = 3;
/// Memory of a worker besides its sorts.
const WORKER_BYTES: usize = 8 << 20;
/// Memory of everything that is there once.
const SHARED_BYTES: usize = 32 << 20;
/// Pages that wait for the disk take this part of the rest, at most so much: a disk that falls
/// further behind sets the pace anyway.
const QUEUE_PART: usize = 8;
const MAX_QUEUE_BYTES: usize = 1 << 30;

/// What may be used of the memory, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Budget {
    /// All sorts together.
    pub sort_bytes: usize,
    /// Buffers of pages in the writers' queue.
    pub queue_buffers: usize,
}

impl Budget {
    /// Shares out `memory_bytes` among `jobs` workers and the rest.
    pub fn new(memory_bytes: usize, jobs: usize) -> Budget {
        let rest = memory_bytes
            .saturating_sub(SHARED_BYTES + jobs * WORKER_BYTES)
            .max(memory_bytes / 4);
        let queue_bytes = (rest / QUEUE_PART).min(MAX_QUEUE_BYTES);
        Budget {
            sort_bytes: rest - queue_bytes,
            // The least number is part of what is there once.
            queue_buffers: (queue_bytes / BUFFER_BYTES).max(jobs + WRITERS),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parts_stay_within_the_whole() {
        for (memory_mb, jobs) in [(64, 1), (64, 7), (512, 2), (6000, 2), (100_000, 32)] {
            let memory = memory_mb << 20;
            let budget = Budget::new(memory, jobs);
            let queue = budget.queue_buffers * BUFFER_BYTES;
            assert!(budget.sort_bytes >= memory / 8, "{memory_mb} {jobs}");
            assert!(budget.sort_bytes + queue <= memory, "{memory_mb} {jobs}");
            assert!(budget.queue_buffers >= jobs + WRITERS);
            assert!(queue <= MAX_QUEUE_BYTES);
        }
    }
}
