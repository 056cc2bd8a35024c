//! What the standard library does not say to the kernel about files.

use std::ffi::CString;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Takes disk space for bytes `start..end` of the file and makes it at least `end` bytes long.
///
/// # Errors
/// The kernel's; `EOPNOTSUPP` where the file system cannot.
pub fn allocate(file: &File, start: u64, end: u64) -> io::Result<()> {
    loop {
        // SAFETY: the descriptor is open as long as `file` lives; the call takes numbers only.
        let result = unsafe {
            libc::fallocate(
                file.as_raw_fd(),
                0,
                start as libc::off_t,
                (end - start) as libc::off_t,
            )
        };
        if result == 0 {
            return Ok(());
        }
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
}

/// Makes durable everything that was written to the file system that `file` lies in.
///
/// # Errors
/// The kernel's; since Linux 5.8 also those of writing back any file of the file system since
/// `file` was opened.
pub fn sync_file_system(file: &File) -> io::Result<()> {
    // SAFETY: the descriptor is open as long as `file` lives; the call takes a number only.
    if unsafe { libc::syncfs(file.as_raw_fd()) } == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

/// Renames two files of one file system, each to the other's name, in one step.
///
/// # Errors
/// The kernel's; `EINVAL` or `ENOSYS` where the file system or the kernel cannot.
pub fn exchange(one: &Path, other: &Path) -> io::Result<()> {
    let one = CString::new(one.as_os_str().as_bytes())?;
    let other = CString::new(other.as_os_str().as_bytes())?;
    // SAFETY: both are strings that end in a zero byte and live until the call returns.
    let result = unsafe {
        libc::renameat2(
            libc::AT_FDCWD,
            one.as_ptr(),
            libc::AT_FDCWD,
            other.as_ptr(),
            libc::RENAME_EXCHANGE,
        )
    };
    if result == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

/// Lets this process open as many files as it may. A limit that stays as it is is told of by
/// the open that goes beyond it.
pub fn raise_open_files_limit() {
    let mut limit = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: the kernel fills the structure that the pointer is to.
    if unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) } == 0 {
        limit.rlim_cur = limit.rlim_max;
        // SAFETY: the kernel reads the structure that the pointer is to.
        unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit) };
    }
}

/// Asks the kernel to begin writing these bytes of the page cache to disk; a hint, so errors
/// do not matter: the fsync at the end tells them.
pub fn start_write_back(file: &File, start: u64, len_bytes: u64) {
    // SAFETY: the descriptor is open as long as `file` lives; the call takes numbers only.
    unsafe {
        libc::sync_file_range(
            file.as_raw_fd(),
            start as libc::off_t,
            len_bytes as libc::off_t,
            libc::SYNC_FILE_RANGE_WRITE,
        );
    }
}

/// The room of a file system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Room {
    /// Its device number: two directories with the same one share the room.
    pub device: u64,
    /// Bytes that this process may still take.
    pub free_bytes: u64,
    /// Whether a file takes as much room as it has bytes: not so where the file system compresses.
    pub is_plain: bool,
}

/// File systems that may compress. Linux: `include/uapi/linux/magic.h`; OpenZFS and bcachefs have
/// their own.
const COMPRESSING: [i64; 4] = [0x9123_683e, 0x2fc1_2fc1, 0xf2f5_2010, 0xca45_1a4e];

/// Asks for the room of the file system that a file or a directory lies in.
///
/// # Errors
/// The kernel's.
pub fn room(file: &File) -> io::Result<Room> {
    // SAFETY: both structures are plain data of C; all zeroes is a value of each.
    let (mut sizes, mut kind): (libc::statvfs, libc::statfs) = unsafe { std::mem::zeroed() };
    // SAFETY: the descriptor is open as long as `file` lives; the kernel fills the structures.
    let failed = unsafe {
        libc::fstatvfs(file.as_raw_fd(), &raw mut sizes) != 0
            || libc::fstatfs(file.as_raw_fd(), &raw mut kind) != 0
    };
    if failed {
        return Err(io::Error::last_os_error());
    }
    // Root writes into what is reserved, too.
    let free_blocks = if super::credentials::effective_uid() == 0 {
        sizes.f_bfree
    } else {
        sizes.f_bavail
    };
    Ok(Room {
        device: std::os::unix::fs::MetadataExt::dev(&file.metadata()?),
        free_bytes: free_blocks.saturating_mul(sizes.f_frsize),
        is_plain: !COMPRESSING.contains(&kind.f_type),
    })
}
