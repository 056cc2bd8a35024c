//! Tar files: a member for the table of contents, and one for each entry's data.
//!
//! PostgreSQL: `src/bin/pg_dump/pg_backup_tar.c`.

use std::collections::HashMap;
use std::fs::File;
use std::io::{BufReader, Read, Seek, SeekFrom};
use std::path::Path;

use super::primitives::Primitives;
use super::{Archive, ArchiveFormat, Container, Entry, damaged, directory};
use crate::error::{Error, Result};

/// Members in the order of the file.
#[derive(Debug)]
pub struct Members {
    members: Vec<Member>,
    by_name: HashMap<String, usize>,
}

#[derive(Debug)]
struct Member {
    name: String,
    pos: u64,
    len: u64,
}

/// Opens a tar file.
pub fn open(path: &Path, label: &str) -> Result<Archive> {
    let file = File::open(path).map_err(|e| Error::io("open input file", path, &e))?;
    let members = Members::read(file, label)?;
    let Some(contents) = members.get("toc.dat") else {
        return Err(damaged(
            label,
            "input file does not appear to be a valid archive",
        ));
    };
    let file = part(path, contents)?;
    let mut input = Primitives::new(BufReader::new(file), label.to_owned(), contents.len);
    let (header, entries) = super::contents(&mut input, ArchiveFormat::Tar)?;
    Ok(Archive {
        header,
        entries,
        path: path.to_path_buf(),
        label: label.to_owned(),
        container: Container::Tar(members),
    })
}

/// A member's bytes.
fn part(path: &Path, member: &Member) -> Result<impl Read + Send + use<>> {
    let mut file = File::open(path).map_err(|e| Error::io("open input file", path, &e))?;
    file.seek(SeekFrom::Start(member.pos))
        .map_err(|e| Error::io("seek in file", path, &e))?;
    Ok(file.take(member.len))
}

impl Members {
    fn read(file: File, label: &str) -> Result<Members> {
        let len = file
            .metadata()
            .map_err(|e| Error::io("stat file", label, &e))?
            .len();
        let broken = |e: &std::io::Error| damaged(label, format!("corrupt tar header found: {e}"));
        let mut archive = ::tar::Archive::new(file);
        let mut members = Vec::new();
        for entry in archive.entries_with_seek().map_err(|e| broken(&e))? {
            let entry = entry.map_err(|e| broken(&e))?;
            let name = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
            let member = Member {
                name,
                pos: entry.raw_file_position(),
                len: entry.size(),
            };
            if member
                .pos
                .checked_add(member.len)
                .is_none_or(|end| end > len)
            {
                return Err(damaged(
                    label,
                    format!("member \"{}\" of the tar file is cut off", member.name),
                ));
            }
            members.push(member);
        }
        let names = members.iter().enumerate();
        let by_name = names.map(|(i, m)| (m.name.clone(), i)).collect();
        Ok(Members { members, by_name })
    }

    fn get(&self, name: &str) -> Option<&Member> {
        self.by_name.get(name).map(|i| &self.members[*i])
    }

    /// A member that must be there.
    fn find(&self, label: &str, name: &str) -> Result<&Member> {
        self.get(name)
            .ok_or_else(|| damaged(label, format!("could not find file \"{name}\" in archive")))
    }

    /// Where a member begins in the file, and its length.
    pub fn place(&self, label: &str, name: &str) -> Result<(u64, u64)> {
        self.find(label, name)
            .map(|member| (member.pos, member.len))
    }

    /// Goes through the large objects that an entry's list names. (`pg_restore` takes what stands in a
    /// row, and so does not see where a file was cut off.)
    pub fn large_objects(
        &self,
        archive: &Archive,
        entry: &Entry,
        each: &mut dyn FnMut(u32, &mut dyn Read) -> Result<()>,
    ) -> Result<()> {
        let list = large_object_list(archive, entry);
        let label = archive.label(entry);
        let find = |name: &str| self.find(&label, name);
        let list = part(&archive.path, find(&list)?)?;
        directory::for_each_large_object(list, &label, &mut |oid, name| {
            each(oid, &mut part(&archive.path, find(name)?)?)
        })
    }
}

/// The name of an entry's list of large objects: from 1.16 on there may be several.
fn large_object_list(archive: &Archive, entry: &Entry) -> String {
    if archive.header.version >= (1, 16, 0) {
        format!("blobs_{}.toc", entry.dump_id)
    } else {
        "blobs.toc".to_owned()
    }
}
