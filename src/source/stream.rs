//! A source read forwards by a thread of its own, which decompresses and converts ahead of the
//! reader.
//!
//! ```text
//! thread: read -> decompress -> fill a block -> convert --blocks--> reader
//!                                    ^----------- empty blocks --------/
//! ```
//!
//! A few blocks travel in a circle, so memory is bounded and a slow reader stops the thread.

use std::io::Read;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, SyncSender, channel, sync_channel};
use std::thread;
use std::time::Duration;

use super::BLOCK_BYTES;
use super::charset::Conversion;
use super::compressed::Compression;
use crate::error::{Error, Result, ValueError};

/// Full blocks that may wait for the reader.
const BLOCKS_AHEAD: usize = 4;
/// How long the reader waits for a block before it asks whether there is a reason to.
const ASK_EVERY: Duration = Duration::from_millis(100);

/// What the thread says.
enum Message {
    /// The next bytes; never none.
    Block(Vec<u8>),
    /// Here stands a character that cannot be converted: the input ends with it.
    Defect(Box<ValueError>),
    /// Reading or decoding failed.
    Failure(Box<Error>),
}

/// Opens what a stream reads.
pub type Opening = Box<dyn FnOnce() -> Result<Box<dyn Read + Send>> + Send>;

/// A stream of blocks.
pub struct Stream {
    name: String,
    state: State,
    defect: Option<Box<ValueError>>,
}

enum State {
    /// Nobody has asked for a block.
    Deferred(Opening, Option<Conversion>),
    /// The thread reads.
    Running(Running),
    /// There are no more blocks.
    Ended,
}

/// The ends of the channels to and from the thread.
struct Running {
    blocks: Receiver<Message>,
    empty: Sender<Vec<u8>>,
}

impl std::fmt::Debug for Stream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Stream")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

impl Stream {
    /// Starts reading `reader`. Every block but the last has `block_bytes` before conversion.
    ///
    /// # Errors
    /// No thread can be started.
    pub fn start(
        name: String,
        reader: Box<dyn Read + Send>,
        compression: Option<Compression>,
        conversion: Option<Conversion>,
        block_bytes: usize,
    ) -> Result<Stream> {
        let running = Running::start(&name, reader, compression, conversion, block_bytes)?;
        Ok(Stream {
            name,
            state: State::Running(running),
            defect: None,
        })
    }

    /// A stream whose reader is opened, and whose thread is started, when the first block is asked for.
    pub fn deferred(name: String, open: Opening, conversion: Option<Conversion>) -> Stream {
        Stream {
            name,
            state: State::Deferred(open, conversion),
            defect: None,
        }
    }

    /// Its name as the user wrote it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The next block; `None` at the end. Whoever feeds the stream may let it wait for ever:
    /// from time to time `wanted` is asked whether the block still is.
    ///
    /// # Errors
    /// The stream cannot be read or decoded; `57014` when the block is wanted no more.
    pub fn next_block(&mut self, wanted: &dyn Fn() -> bool) -> Result<Option<Vec<u8>>> {
        let running = match std::mem::replace(&mut self.state, State::Ended) {
            State::Ended => return Ok(None),
            State::Running(running) => running,
            State::Deferred(open, conversion) => {
                Running::start(&self.name, open()?, None, conversion, BLOCK_BYTES)?
            }
        };
        let message = loop {
            match running.blocks.recv_timeout(ASK_EVERY) {
                Err(RecvTimeoutError::Timeout) if wanted() => {}
                Err(RecvTimeoutError::Timeout) => {
                    self.state = State::Running(running);
                    let message = format!("stopped reading \"{}\"", self.name);
                    return Err(Error::environment("57014", message));
                }
                Err(RecvTimeoutError::Disconnected) => break None,
                Ok(message) => break Some(message),
            }
        };
        match message {
            Some(Message::Block(block)) => {
                self.state = State::Running(running);
                Ok(Some(block))
            }
            Some(Message::Failure(error)) => Err(*error),
            Some(Message::Defect(defect)) => {
                self.defect = Some(defect);
                Ok(None)
            }
            // The thread has sent all and ended.
            None => Ok(None),
        }
    }

    /// Gives a block back, to be filled again.
    pub fn recycle(&self, block: Vec<u8>) {
        if let State::Running(running) = &self.state {
            // The thread may have ended.
            let _ = running.empty.send(block);
        }
    }

    /// What ended the input before its time: a character that cannot be converted.
    pub fn take_defect(&mut self) -> Option<Box<ValueError>> {
        self.defect.take()
    }
}

impl Running {
    fn start(
        name: &str,
        reader: Box<dyn Read + Send>,
        compression: Option<Compression>,
        conversion: Option<Conversion>,
        block_bytes: usize,
    ) -> Result<Running> {
        assert!(block_bytes > 0, "a block has bytes");
        let (to_reader, blocks) = sync_channel(BLOCKS_AHEAD);
        let (empty, from_reader) = channel();
        let thread_name = name.to_owned();
        thread::Builder::new()
            .name("read ahead".to_owned())
            .spawn(move || {
                let outcome = read_ahead(
                    reader,
                    compression,
                    conversion.as_ref(),
                    block_bytes,
                    &to_reader,
                    &from_reader,
                );
                if let Err(error) = outcome {
                    let failure = failure(&thread_name, compression, &error);
                    // Nobody listens when the load has ended.
                    let _ = to_reader.send(Message::Failure(Box::new(failure)));
                }
            })
            .map_err(|error| Error::io("start a thread to read", name, &error))?;
        Ok(Running { blocks, empty })
    }
}

/// The thread's work.
fn read_ahead(
    reader: Box<dyn Read + Send>,
    compression: Option<Compression>,
    conversion: Option<&Conversion>,
    block_bytes: usize,
    to_reader: &SyncSender<Message>,
    from_reader: &Receiver<Vec<u8>>,
) -> std::io::Result<()> {
    let mut reader = match compression {
        Some(compression) => compression.decode(reader)?,
        None => reader,
    };
    // What is not converted yet: a block behind the beginning of a character.
    let mut raw = Vec::new();
    loop {
        let mut block = from_reader.try_recv().unwrap_or_default();
        block.clear();
        let into = if conversion.is_some() {
            &mut raw
        } else {
            &mut block
        };
        into.reserve(block_bytes);
        let read = reader.by_ref().take(block_bytes as u64).read_to_end(into)?;
        let converted = match conversion {
            Some(conversion) => conversion.convert(&raw, read == 0, &mut block),
            None => Ok(0),
        };
        if !block.is_empty() && to_reader.send(Message::Block(block)).is_err() {
            return Ok(());
        }
        match converted {
            Ok(taken) => raw.drain(..taken),
            Err(defect) => {
                let _ = to_reader.send(Message::Defect(defect));
                return Ok(());
            }
        };
        if read == 0 {
            return Ok(());
        }
    }
}

fn failure(name: &str, compression: Option<Compression>, error: &std::io::Error) -> Error {
    if error.raw_os_error().is_none() {
        let what = if compression.is_some() {
            "decompress"
        } else {
            "read"
        };
        return Error::refused("22P04", format!("could not {what} \"{name}\": {error}"));
    }
    Error::io("read file", name, error)
}
