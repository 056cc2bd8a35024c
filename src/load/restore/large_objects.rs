//! Large objects, which the server's own functions write.

use super::rows::ArchiveMember;
use crate::cluster::register::Registration;
use crate::error::{Error, Place, Result};
use std::io::Read;

/// Bytes of a statement: many pages of `pg_largeobject`.
const PIECE_BYTES: usize = 1 << 20;

/// Writes the large objects of a `BLOBS` entry; how many there were, and their bytes. Those of old
/// archives (before 9.0) are made here.
///
/// # Errors
/// The archive is damaged, or the server's.
pub fn restore(registration: &mut Registration<'_>, member: &ArchiveMember) -> Result<(u64, u64)> {
    let ArchiveMember { archive, entry } = member;
    let client = registration.client();
    // Permissions of objects that belong to others do not matter: a superuser writes.
    let put = client.prepare("SELECT pg_catalog.lo_put($1, $2, $3)")?;
    let (mut objects, mut bytes) = (0, 0);
    let mut piece = vec![0; PIECE_BYTES];
    archive.large_objects(entry, &mut |oid, data: &mut dyn Read| {
        objects += 1;
        let mut pos: i64 = 0;
        loop {
            let read = fill(data, &mut piece).map_err(|e| {
                let message = format!("could not read large object {oid}: {e}");
                Error::refused("22P04", message).at(Place {
                    file: archive.label(entry),
                    ..Place::default()
                })
            })?;
            if read == 0 {
                return Ok(());
            }
            client.execute(&put, &[&oid, &pos, &&piece[..read]])?;
            pos += read as i64;
            bytes += read as u64;
        }
    })?;
    Ok((objects, bytes))
}

fn fill(data: &mut dyn Read, piece: &mut [u8]) -> std::io::Result<usize> {
    let mut read = 0;
    while read < piece.len() {
        match data.read(&mut piece[read..])? {
            0 => break,
            n => read += n,
        }
    }
    Ok(read)
}
