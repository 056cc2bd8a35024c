//! Directories: `toc.dat`, and a file for each member, perhaps compressed.
//!
//! PostgreSQL: `src/bin/pg_dump/pg_backup_directory.c`.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use super::{Archive, ArchiveFormat, Container, damaged, toc};
use crate::error::{Error, Result};
use crate::source::compressed::Compression;

/// What compressed files are called.
const ENDINGS: [(&str, Compression); 3] = [
    (".gz", Compression::Gzip),
    (".lz4", Compression::Lz4),
    (".zst", Compression::Zstd),
];

/// The table of contents of a directory, if it has one.
pub fn toc_path(directory: &Path) -> Option<PathBuf> {
    let path = directory.join("toc.dat");
    path.is_file().then_some(path)
}

/// Opens a directory.
pub fn open(directory: &Path, name: &str) -> Result<Archive> {
    let path = toc_path(directory).ok_or_else(|| {
        damaged(
            &directory.display().to_string(),
            "directory does not appear to be a valid archive (\"toc.dat\" does not exist)",
        )
    })?;
    let label = path.display().to_string();
    let file = File::open(&path).map_err(|e| Error::io("open input file", &path, &e))?;
    let mut input = super::primitives(file, &label)?;
    let (header, entries) = super::contents(&mut input, ArchiveFormat::Directory)?;
    Ok(Archive {
        header,
        entries,
        path: directory.to_path_buf(),
        label: name.to_owned(),
        container: Container::Directory,
    })
}

/// A file of the directory, or the compressed one that stands for it.
fn find(directory: &Path, name: &str) -> Result<(PathBuf, Option<Compression>)> {
    let plain = directory.join(name);
    if plain.is_file() {
        // A name that ends so was compressed by its writer.
        let known = ENDINGS.iter().find(|(ending, _)| name.ends_with(ending));
        return Ok((plain, known.map(|(_, compression)| *compression)));
    }
    for (ending, compression) in ENDINGS {
        let path = directory.join(format!("{name}{ending}"));
        if path.is_file() {
            return Ok((path, Some(compression)));
        }
    }
    Err(Error::io(
        "open input file",
        plain,
        &std::io::Error::from_raw_os_error(libc::ENOENT),
    )
    .with_hint("The dump's directory is not complete."))
}

/// A file's plain bytes.
pub fn open_file(directory: &Path, name: &str) -> Result<Box<dyn Read + Send>> {
    let (path, compression) = find(directory, name)?;
    let file = File::open(&path).map_err(|e| Error::io("open input file", &path, &e))?;
    let is_empty = file.metadata().is_ok_and(|m| m.len() == 0);
    match compression {
        None => Ok(Box::new(file)),
        // Of nothing some compressors make nothing.
        Some(_) if is_empty => Ok(Box::new(std::io::empty())),
        Some(compression) => compression.decode(Box::new(file)).map_err(|e| {
            damaged(
                &path.display().to_string(),
                format!("could not decompress data: {e}"),
            )
        }),
    }
}

/// A file that is not compressed, as a whole; `None` for one that is.
pub fn plain_file(directory: &Path, name: &str) -> Result<Option<(PathBuf, u64, u64)>> {
    let (path, compression) = find(directory, name)?;
    if compression.is_some() {
        return Ok(None);
    }
    let metadata = path
        .metadata()
        .map_err(|e| Error::io("stat file", &path, &e))?;
    Ok(Some((path, 0, metadata.len())))
}

/// The length of a file as it lies there.
pub fn stored_bytes(directory: &Path, name: &str) -> Option<u64> {
    let (path, _) = find(directory, name).ok()?;
    path.metadata().ok().map(|m| m.len())
}

/// Goes through the large objects that a list names.
pub fn large_objects(
    directory: &Path,
    list: &str,
    each: &mut dyn FnMut(u32, &mut dyn Read) -> Result<()>,
) -> Result<()> {
    let label = directory.join(list).display().to_string();
    let list = open_file(directory, list)?;
    for_each_large_object(list, &label, &mut |oid, name| {
        let (path, compression) = find(directory, name)?;
        let metadata = path.metadata();
        let bytes = metadata
            .map_err(|e| Error::io("stat file", &path, &e))?
            .len();
        // For an empty object gzip writes a header; the others write nothing at all.
        if bytes == 0 && compression != Some(Compression::Gzip) {
            return each(oid, &mut std::io::empty());
        }
        each(oid, &mut open_file(directory, name)?)
    })
}

/// Reads a list of large objects: an OID and a file on each line.
pub fn for_each_large_object(
    list: impl Read,
    label: &str,
    each: &mut dyn FnMut(u32, &str) -> Result<()>,
) -> Result<()> {
    for line in BufReader::new(list).split(b'\n') {
        let line =
            line.map_err(|e| damaged(label, format!("error reading large object TOC file: {e}")))?;
        let line = String::from_utf8_lossy(&line);
        let invalid = || {
            damaged(
                label,
                format!("invalid line in large object TOC file: \"{line}\""),
            )
        };
        let (oid, name) = line.split_once(' ').ok_or_else(invalid)?;
        let oid = oid.parse().map_err(|_| invalid())?;
        if !toc::is_plain_name(name) {
            return Err(invalid());
        }
        each(oid, name)?;
    }
    Ok(())
}
