//! Chunks made on all cores, written in order.

use std::io::{self, Write};
use std::ops::Range;
use std::sync::mpsc::sync_channel;
use std::thread;

/// Writes rows `0..rows` in chunks of `chunk_rows`; `make` appends the rows of a range.
pub(crate) fn write_rows(
    out: &mut dyn Write,
    rows: u64,
    chunk_rows: u64,
    make: impl Fn(Range<u64>, &mut Vec<u8>) + Sync,
) -> io::Result<()> {
    write_chunks(out, rows.div_ceil(chunk_rows), |chunk, out| {
        let start = chunk * chunk_rows;
        make(start..(start + chunk_rows).min(rows), out);
    })
}

/// Writes chunks `0..chunks`; `make` appends the bytes of one.
///
/// Worker w of n makes the chunks w, w + n, w + 2n, ..., a few ahead of the writer.
pub(crate) fn write_chunks(
    out: &mut dyn Write,
    chunks: u64,
    make: impl Fn(u64, &mut Vec<u8>) + Sync,
) -> io::Result<()> {
    let cores = thread::available_parallelism().map_or(1, usize::from) as u64;
    let workers = cores.min(chunks);
    let make = &make;
    thread::scope(|scope| {
        let queues: Vec<_> = (0..workers)
            .map(|worker| {
                let (send, receive) = sync_channel::<Vec<u8>>(2);
                scope.spawn(move || {
                    for chunk in (worker..chunks).step_by(workers as usize) {
                        let mut bytes = Vec::with_capacity(1 << 20);
                        make(chunk, &mut bytes);
                        if send.send(bytes).is_err() {
                            return; // the writer failed
                        }
                    }
                });
                receive
            })
            .collect();
        for chunk in 0..chunks {
            let queue = &queues[(chunk % workers) as usize];
            out.write_all(&queue.recv().map_err(io::Error::other)?)?;
        }
        Ok(())
    })
}
