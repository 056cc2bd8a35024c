//! A server that only writes down what psql sends.

use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

/// What psql did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// It connected.
    Connect { database: String, user: String },
    /// It sent a query.
    Query(String),
    /// It sent the rows of a COPY.
    Copy(Vec<u8>),
}

/// The server, which listens as long as the process runs.
pub struct FakeServer {
    port: u16,
    events: Arc<Mutex<Vec<Event>>>,
}

impl FakeServer {
    /// Listens on a port of its own.
    pub fn start() -> FakeServer {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let events = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&events);
        thread::spawn(move || {
            // psql has one connection at a time, but opens the next before it closes the last.
            for stream in listener.incoming() {
                let seen = Arc::clone(&seen);
                thread::spawn(move || serve(&stream.expect("a connection"), &seen));
            }
        });
        FakeServer { port, events }
    }

    /// Its port.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// What happened since it was asked last.
    pub fn take_events(&self) -> Vec<Event> {
        std::mem::take(&mut self.events.lock().expect("no panic"))
    }
}

/// PostgreSQL: the documentation's "Message Formats".
fn serve(mut stream: &TcpStream, events: &Mutex<Vec<Event>>) -> io::Result<()> {
    let note = |event| events.lock().expect("no panic").push(event);
    let start_up = read_counted(stream)?;
    let mut words = start_up[4..]
        .split(|b| *b == 0)
        .map(|w| String::from_utf8_lossy(w).into_owned());
    let (mut user, mut database) = (String::new(), String::new());
    while let (Some(name), Some(value)) = (words.next(), words.next()) {
        match name.as_str() {
            "user" => user = value,
            "database" => database = value,
            _ => {}
        }
    }
    note(Event::Connect { database, user });
    message(stream, b'R', &0_i32.to_be_bytes())?;
    for parameter in [
        "server_version\x0015.0\0",
        "server_encoding\0UTF8\0",
        "client_encoding\0UTF8\0",
        "standard_conforming_strings\0on\0",
    ] {
        message(stream, b'S', parameter.as_bytes())?;
    }
    message(stream, b'K', &[0; 8])?;
    message(stream, b'Z', b"I")?;
    loop {
        let mut kind = [0];
        stream.read_exact(&mut kind)?;
        let body = read_counted(stream)?;
        if kind[0] != b'Q' {
            return Ok(());
        }
        let text = String::from_utf8_lossy(&body[..body.len() - 1]).into_owned();
        let upper = text.to_ascii_uppercase();
        note(Event::Query(text));
        if upper.contains("COPY T FROM STDIN") {
            // One column of text.
            message(stream, b'G', &[0, 0, 1, 0, 0])?;
            note(Event::Copy(copy_data(stream)?));
        }
        for value in ["on", "off"] {
            let set = format!("SET STANDARD_CONFORMING_STRINGS = {value};");
            if upper.ends_with(&set.to_ascii_uppercase()) {
                let parameter = format!("standard_conforming_strings\0{value}\0");
                message(stream, b'S', parameter.as_bytes())?;
            }
        }
        message(stream, b'C', b"DO\0")?;
        message(stream, b'Z', b"I")?;
    }
}

/// The rows that follow, up to their end.
fn copy_data(mut stream: &TcpStream) -> io::Result<Vec<u8>> {
    let mut data = Vec::new();
    loop {
        let mut kind = [0];
        stream.read_exact(&mut kind)?;
        let body = read_counted(stream)?;
        match kind[0] {
            b'd' => data.extend_from_slice(&body),
            b'c' => return Ok(data),
            other => return Err(io::Error::other(format!("message {other} in COPY"))),
        }
    }
}

/// A length that counts itself, and what it counts.
fn read_counted(mut stream: &TcpStream) -> io::Result<Vec<u8>> {
    let mut length = [0; 4];
    stream.read_exact(&mut length)?;
    let mut body = vec![0; u32::from_be_bytes(length) as usize - 4];
    stream.read_exact(&mut body)?;
    Ok(body)
}

fn message(mut stream: &TcpStream, kind: u8, body: &[u8]) -> io::Result<()> {
    let mut bytes = vec![kind];
    bytes.extend_from_slice(&(body.len() as u32 + 4).to_be_bytes());
    bytes.extend_from_slice(body);
    stream.write_all(&bytes)
}
