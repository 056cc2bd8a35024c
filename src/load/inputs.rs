//! A table's inputs as one row of chunks, which the workers take one after the other.

use crate::error::Result;
use crate::record::binary::BinaryChunks;
use crate::record::chunk::{Chunk, Chunks, Follows};
use crate::record::stream::StreamChunks;
use std::sync::{Mutex, PoisonError};

/// A chunk that a worker took.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ticket {
    /// Its number among all chunks of the table: its turn.
    pub turn: u64,
    /// The input it is of.
    pub input: usize,
    /// Its number within a file; of no meaning for streams.
    number: u64,
}

/// Where the chunks of one input come from.
#[derive(Debug)]
pub enum InputChunks<'a> {
    /// A file: any worker reads any chunk.
    File(Chunks<'a>),
    /// A stream: chunks are read in order.
    Stream(Mutex<StreamChunks<'a>>),
    /// Binary input of either kind: chunks are cut in order.
    Binary(Mutex<BinaryChunks<'a>>),
}

/// All chunks of a table.
#[derive(Debug)]
pub struct Inputs<'a> {
    inputs: Vec<InputChunks<'a>>,
    next: Mutex<Ticket>,
}

impl<'a> Inputs<'a> {
    /// The chunks of these inputs, in their order.
    pub fn new(inputs: Vec<InputChunks<'a>>) -> Inputs<'a> {
        Inputs {
            inputs,
            next: Mutex::new(Ticket {
                turn: 0,
                input: 0,
                number: 0,
            }),
        }
    }

    /// Takes the next chunk. A file's is read later, by [`Inputs::read`]; where chunks come in
    /// order it is read here, under the lock, and waited for as long as it is `wanted`. `None`
    /// when all are taken.
    pub fn take(&self, chunk: &mut Chunk, wanted: &dyn Fn() -> bool) -> Result<Option<Ticket>> {
        let mut next = self.next.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            let there_is_one = match self.inputs.get(next.input) {
                None => return Ok(None),
                Some(InputChunks::File(chunks)) => next.number < chunks.count(),
                Some(InputChunks::Stream(stream)) => stream
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .next(chunk, wanted)?,
                Some(InputChunks::Binary(chunks)) => chunks
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .next(chunk, wanted)?,
            };
            if there_is_one {
                let ticket = *next;
                next.turn += 1;
                next.number += 1;
                return Ok(Some(ticket));
            }
            next.input += 1;
            next.number = 0;
        }
    }

    /// How many chunks were taken so far.
    pub fn taken(&self) -> u64 {
        self.next
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .turn
    }

    /// Reads the chunk, where that was not done when it was taken.
    pub fn read(&self, ticket: Ticket, chunk: &mut Chunk) -> Result<()> {
        match &self.inputs[ticket.input] {
            InputChunks::File(chunks) => chunks.read(ticket.number, chunk),
            InputChunks::Stream(_) | InputChunks::Binary(_) => Ok(()),
        }
    }

    /// How the chunk stands to records of its input that ended at `ended_at`.
    pub fn follows(&self, ticket: Ticket, chunk: &Chunk, ended_at: u64) -> Follows {
        match &self.inputs[ticket.input] {
            InputChunks::File(chunks) => chunks.follows(chunk, ended_at),
            InputChunks::Stream(_) | InputChunks::Binary(_) => Follows::Yes,
        }
    }

    /// Reads the chunk again, now that it is known where it begins.
    pub fn reread(&self, ticket: Ticket, begins_at: u64, chunk: &mut Chunk) -> Result<()> {
        match &self.inputs[ticket.input] {
            InputChunks::File(chunks) => chunks.reparse_from(begins_at, ticket.number, chunk),
            InputChunks::Stream(_) | InputChunks::Binary(_) => {
                unreachable!("chunks that come in order are not guessed")
            }
        }
    }
}
