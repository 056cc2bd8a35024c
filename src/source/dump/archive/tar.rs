//! Tar files: a member for the table of contents, and one for each entry's data.
//!
//! PostgreSQL: `src/bin/pg_dump/pg_backup_tar.c`.

use std::collections::HashMap;
use std::fs::File;
use std::io::{BufReader, Read, Seek, SeekFrom};
use std::path::Path;

use super::super::MemberData;
use super::primitives::Primitives;
use super::{Archive, ArchiveFormat, Container, Entry, damaged, toc};
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
    let header = toc::header(&mut input, ArchiveFormat::Tar)?;
    let entries = toc::entries(&mut input, &header)?;
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

    /// A member as a part of the file.
    pub fn member(&self, path: &Path, name: &str) -> Result<MemberData> {
        let Some(member) = self.get(name) else {
            return Err(damaged(
                &path.display().to_string(),
                format!("could not find file \"{name}\" in archive"),
            ));
        };
        Ok(MemberData::Range {
            path: path.to_path_buf(),
            pos: member.pos,
            len: member.len,
        })
    }

    /// Goes through an entry's large objects, which stand before their list: from 1.16 on beginning
    /// with the one that the entry is named after, else all.
    pub fn large_objects(
        &self,
        archive: &Archive,
        entry: &Entry,
        each: &mut dyn FnMut(u32, &mut dyn Read) -> Result<()>,
    ) -> Result<()> {
        let first = if archive.header.version >= (1, 16, 0) {
            let digits = entry.tag.find(|c: char| !c.is_ascii_digit());
            let oid = &entry.tag[..digits.unwrap_or(entry.tag.len())];
            self.by_name.get(&format!("blob_{oid}.dat")).copied()
        } else {
            self.members.iter().position(|m| large_object(m).is_some())
        };
        let Some(first) = first else {
            return Err(damaged(
                &archive.label(entry),
                "could not find the large objects in archive",
            ));
        };
        for member in &self.members[first..] {
            let Some(oid) = large_object(member) else {
                break;
            };
            each(oid, &mut part(&archive.path, member)?)?;
        }
        Ok(())
    }
}

/// The OID of a member that is a large object.
fn large_object(member: &Member) -> Option<u32> {
    let name = member.name.strip_prefix("blob_")?;
    name.strip_suffix(".dat")?.parse().ok()
}
