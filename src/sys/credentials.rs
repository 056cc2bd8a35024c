//! Users, and acting as another user for a moment.
//!
//! A program that root runs touches a cluster as the cluster's owner: a file is then created
//! with the right owner from its first instant, a path that the owner can bend (a symbolic
//! link in the data directory) gives nothing that the owner has not, and the server sees the
//! owner when it asks for the peer of a socket. Linux keeps these identities per thread; glibc
//! spreads a change over all threads only in its own wrappers, so the system calls are made
//! directly here.

use std::ffi::{CStr, CString};
use std::io;
use std::marker::PhantomData;

use crate::error::{Error, Result};

/// An entry of the user database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct User {
    /// Login name.
    pub name: String,
    /// User id.
    pub uid: u32,
    /// Primary group id.
    pub gid: u32,
    /// Home directory.
    pub home: std::path::PathBuf,
}

/// The effective user id of the calling thread.
pub fn effective_uid() -> u32 {
    // SAFETY: geteuid takes nothing and cannot fail.
    unsafe { libc::geteuid() }
}

/// The user named `name`.
///
/// # Errors
/// `42704` when there is none.
pub fn user_by_name(name: &str) -> Result<User> {
    let c_name = CString::new(name)
        .map_err(|_| Error::usage(format!("user name \"{name}\" has a NUL byte")))?;
    look_up(|entry, buffer, result| {
        // SAFETY: the pointers are valid for the lengths given, and `c_name` ends with a NUL.
        unsafe {
            libc::getpwnam_r(
                c_name.as_ptr(),
                entry,
                buffer.as_mut_ptr(),
                buffer.len(),
                result,
            )
        }
    })
    .ok_or_else(|| Error::environment("42704", format!("user \"{name}\" does not exist")))
}

/// The user with this id, if the user database knows it.
pub fn user_by_uid(uid: u32) -> Option<User> {
    look_up(|entry, buffer, result| {
        // SAFETY: the pointers are valid for the lengths given.
        unsafe { libc::getpwuid_r(uid, entry, buffer.as_mut_ptr(), buffer.len(), result) }
    })
}

/// Runs one of the `getpw*_r` calls with a buffer that is large enough.
fn look_up(
    call: impl Fn(*mut libc::passwd, &mut [libc::c_char], *mut *mut libc::passwd) -> i32,
) -> Option<User> {
    let mut buffer = vec![0 as libc::c_char; 4096];
    loop {
        // SAFETY: passwd is plain data of C; all zeroes (null pointers) is a value of it.
        let mut entry: libc::passwd = unsafe { std::mem::zeroed() };
        let mut result: *mut libc::passwd = std::ptr::null_mut();
        let status = call(&raw mut entry, &mut buffer, &raw mut result);
        if status == libc::ERANGE && buffer.len() < 1 << 20 {
            buffer.resize(buffer.len() * 2, 0);
            continue;
        }
        if status != 0 || result.is_null() {
            return None;
        }
        let text = |p: *const libc::c_char| {
            if p.is_null() {
                String::new()
            } else {
                // SAFETY: after success the fields point at C strings inside `buffer`.
                unsafe { CStr::from_ptr(p) }.to_string_lossy().into_owned()
            }
        };
        return Some(User {
            name: text(entry.pw_name),
            uid: entry.pw_uid,
            gid: entry.pw_gid,
            home: text(entry.pw_dir).into(),
        });
    }
}

/// While it lives, the calling thread acts with another user's rights; a no-op for who is not
/// root. It cannot leave its thread.
#[derive(Debug)]
pub struct ActingAs {
    before: Option<Before>,
    not_send: PhantomData<*const ()>,
}

#[derive(Debug)]
struct Before {
    uid: libc::uid_t,
    gid: libc::gid_t,
    groups: Vec<libc::gid_t>,
}

impl ActingAs {
    /// Takes the identity (effective and file-system user and group, no further groups).
    pub fn new(uid: u32, gid: u32) -> io::Result<ActingAs> {
        let nothing = ActingAs {
            before: None,
            not_send: PhantomData,
        };
        if effective_uid() != 0 || uid == 0 {
            return Ok(nothing);
        }
        // SAFETY: a count of zero asks for the number of groups and writes nothing.
        let count = unsafe { libc::getgroups(0, std::ptr::null_mut()) };
        let mut groups = vec![0; usize::try_from(count).unwrap_or(0)];
        // SAFETY: `groups` has room for `count` ids.
        if count < 0 || unsafe { libc::getgroups(count, groups.as_mut_ptr()) } < 0 {
            return Err(io::Error::last_os_error());
        }
        let before = Before {
            uid: 0,
            // SAFETY: getegid takes nothing and cannot fail.
            gid: unsafe { libc::getegid() },
            groups,
        };
        // From here the guard exists, so that a failure half-way is undone by its drop.
        let guard = ActingAs {
            before: Some(before),
            not_send: PhantomData,
        };
        set_groups(&[gid])?;
        set_effective_gid(gid)?;
        set_effective_uid(uid)?;
        Ok(guard)
    }
}

impl Drop for ActingAs {
    fn drop(&mut self) {
        let Some(before) = &self.before else { return };
        let restored = set_effective_uid(before.uid)
            .and_then(|()| set_effective_gid(before.gid))
            .and_then(|()| set_groups(&before.groups));
        // The saved user id is root's, so this cannot fail; going on with the wrong
        // identity would be worse than stopping.
        assert!(restored.is_ok(), "could not return to the own user id");
    }
}

const UNCHANGED: libc::c_long = -1;

fn set_effective_uid(uid: libc::uid_t) -> io::Result<()> {
    // SAFETY: takes three numbers; touches no memory of ours.
    check(unsafe {
        libc::syscall(
            libc::SYS_setresuid,
            UNCHANGED,
            uid as libc::c_long,
            UNCHANGED,
        )
    })
}

fn set_effective_gid(gid: libc::gid_t) -> io::Result<()> {
    // SAFETY: takes three numbers; touches no memory of ours.
    check(unsafe {
        libc::syscall(
            libc::SYS_setresgid,
            UNCHANGED,
            gid as libc::c_long,
            UNCHANGED,
        )
    })
}

fn set_groups(groups: &[libc::gid_t]) -> io::Result<()> {
    // SAFETY: the kernel reads `len` ids from the pointer.
    check(unsafe { libc::syscall(libc::SYS_setgroups, groups.len(), groups.as_ptr()) })
}

fn check(status: libc::c_long) -> io::Result<()> {
    if status == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

/// Sends a signal to a process; `Ok(false)` when there is no such process.
pub fn signal(pid: u32, signal: i32) -> io::Result<bool> {
    // SAFETY: takes two numbers; touches no memory of ours.
    if unsafe { libc::kill(pid as libc::pid_t, signal) } == 0 {
        return Ok(true);
    }
    let error = io::Error::last_os_error();
    if error.raw_os_error() == Some(libc::ESRCH) {
        Ok(false)
    } else {
        Err(error)
    }
}

/// Has the kernel send `signal` to the child when the thread that starts it dies, so that a
/// private server does not outlive a tool that was killed.
pub fn die_with_parent(command: &mut std::process::Command, signal: i32) {
    use std::os::unix::process::CommandExt;
    // SAFETY: between fork and exec the closure makes one system call, which is
    // async-signal-safe, and allocates nothing. It runs after the change of the user id,
    // which would clear the setting.
    unsafe {
        command.pre_exec(move || {
            if libc::prctl(libc::PR_SET_PDEATHSIG, signal as libc::c_ulong) == 0 {
                Ok(())
            } else {
                Err(io::Error::last_os_error())
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::MetadataExt;

    #[test]
    fn root_is_known_by_name_and_by_id() {
        assert_eq!(user_by_name("root").unwrap().uid, 0);
        assert_eq!(user_by_uid(0).unwrap().name, "root");
        assert_eq!(
            user_by_name("no such user").unwrap_err().message,
            "user \"no such user\" does not exist"
        );
    }

    #[test]
    fn a_file_created_while_acting_as_another_user_belongs_to_them_and_other_threads_stay() {
        if effective_uid() != 0 {
            // Who is not root acts as nobody else: the guard changes nothing.
            let before = effective_uid();
            let _guard = ActingAs::new(before + 1, 1).unwrap();
            assert_eq!(effective_uid(), before);
            return;
        }
        let dir = tempfile::tempdir().unwrap();
        std::os::unix::fs::chown(dir.path(), Some(65534), Some(65534)).unwrap();
        let path = dir.path().join("f");
        {
            let _guard = ActingAs::new(65534, 65534).unwrap();
            std::fs::File::create(&path).unwrap();
            assert_eq!(effective_uid(), 65534);
            assert_eq!(std::thread::spawn(other_thread_uid).join().unwrap(), 65534);
        }
        assert_eq!(effective_uid(), 0);
        let meta = std::fs::metadata(&path).unwrap();
        assert_eq!((meta.uid(), meta.gid()), (65534, 65534));
    }

    /// A new thread inherits its creator's identity.
    fn other_thread_uid() -> u32 {
        effective_uid()
    }

    #[test]
    fn acting_as_another_user_changes_one_thread_alone() {
        if effective_uid() != 0 {
            return;
        }
        let (ask, asked) = std::sync::mpsc::channel::<()>();
        let (tell, told) = std::sync::mpsc::channel();
        let other = std::thread::spawn(move || {
            asked.recv().unwrap();
            tell.send(effective_uid()).unwrap();
        });
        let guard = ActingAs::new(65534, 65534).unwrap();
        ask.send(()).unwrap();
        assert_eq!(told.recv().unwrap(), 0);
        drop(guard);
        other.join().unwrap();
    }
}
