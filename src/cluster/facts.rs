//! What a server is, and whether files can be put under it.
//!
//! Read once when a session opens. What may change until COMMIT ([`Consumers`]) is read again
//! just before it.

use std::fs::File;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use pgformat::ids::Oid;
use pgformat::version::MajorVersion;
use postgres::GenericClient;

use super::owner::FileOwner;
use crate::error::{Class, Error, Result};

/// wal_level.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum WalLevel {
    /// `minimal`: what a transaction creates is not logged.
    Minimal,
    /// `replica`
    Replica,
    /// `logical`
    Logical,
}

/// The facts of a server and of the database that the session is in.
#[derive(Debug, Clone, PartialEq)]
pub struct Facts {
    /// The major version.
    pub version: MajorVersion,
    /// server_version_num, as 150018.
    pub version_num: u32,
    /// server_version, as it prints itself.
    pub version_text: String,
    /// data_directory, absolute.
    pub data_directory: PathBuf,
    /// Who owns its files, and their permissions.
    pub owner: FileOwner,
    /// pg_control's system identifier.
    pub system_identifier: u64,
    /// pg_control's catalog version, as 202209061: part of a tablespace's path.
    pub catalog_version: u32,
    /// wal_level
    pub wal_level: WalLevel,
    /// data_checksums
    pub checksums: bool,
    /// Blocks in a segment of a relation: 131072 unless the server was built otherwise.
    pub segment_blocks: u32,
    /// The database's OID.
    pub database: Oid,
    /// Its name.
    pub database_name: String,
    /// pg_database.dattablespace: what tablespace 0 of a relation stands for.
    pub database_tablespace: Oid,
    /// server_encoding, as `UTF8`.
    pub server_encoding: String,
    /// The share directory; `timezonesets` stands here.
    pub share_directory: PathBuf,
    /// Where the server reads time zones: its own files or the system's.
    pub timezone_directory: PathBuf,
    /// How many locks the server's table holds for sure.
    pub lock_capacity: u64,
    /// max_locks_per_transaction, for the error that names it.
    pub max_locks_per_transaction: u32,
}

impl Facts {
    /// Asks the server, and the disk.
    ///
    /// # Errors
    /// Refuses a server that is too old or too new, in recovery, built with other block sizes,
    /// on another host; a role that is no superuser; a data directory that is not ours to
    /// write.
    pub fn read(client: &mut impl GenericClient) -> Result<Facts> {
        let row = client.query_one(
            "SELECT pg_catalog.current_setting('server_version_num')::int4,
                    pg_catalog.current_setting('server_version'),
                    pg_catalog.current_setting('is_superuser') = 'on',
                    pg_catalog.pg_is_in_recovery(),
                    pg_catalog.current_setting('block_size')::int4,
                    current_user::text,
                    pg_catalog.current_setting('server_encoding')",
            &[],
        )?;
        let version_num: u32 = row.get::<_, i32>(0) as u32;
        let version_text: String = row.get(1);
        let version = MajorVersion::from_version_num(version_num).ok_or_else(|| {
            Error::unsupported(format!(
                "server version {version_text} is not supported: {} to {} are",
                MajorVersion::OLDEST,
                MajorVersion::NEWEST
            ))
        })?;
        if !row.get::<_, bool>(2) {
            return Err(Error::environment(
                "42501",
                format!("role \"{}\" is not a superuser", row.get::<_, &str>(5)),
            )
            .with_hint("Registering files needs a superuser: name one with -U."));
        }
        if row.get::<_, bool>(3) {
            return Err(Error::environment(
                "25006",
                "cannot load into a server that is in recovery",
            ));
        }
        let block_size: i32 = row.get(4);
        if block_size != 8192 {
            return Err(Error::unsupported(format!(
                "the server's block size is {block_size}; only 8192 is supported"
            )));
        }
        let server_encoding: String = row.get(6);
        let row = client.query_one(SETTINGS, &[])?;
        let data_directory = PathBuf::from(row.get::<_, String>(0));
        let share_directory = PathBuf::from(row.get::<_, String>(9));
        let configure: Option<String> = row.get(10);
        let timezone_directory = configure
            .as_deref()
            .and_then(system_tzdata)
            .map_or_else(|| share_directory.join("timezone"), PathBuf::from);
        let owner = FileOwner::of_data_directory(&data_directory).map_err(|e| {
            if e.sqlstate == "58P01" {
                not_this_host(&data_directory).with_detail(e.message)
            } else {
                e
            }
        })?;
        let facts = Facts {
            version,
            version_num,
            version_text,
            owner,
            system_identifier: row.get::<_, i64>(1) as u64,
            catalog_version: row.get::<_, i32>(2) as u32,
            wal_level: match row.get::<_, &str>(3) {
                "minimal" => WalLevel::Minimal,
                "logical" => WalLevel::Logical,
                _ => WalLevel::Replica,
            },
            checksums: row.get(4),
            segment_blocks: row.get::<_, i32>(5) as u32,
            database: row.get(6),
            database_name: row.get(7),
            database_tablespace: row.get(8),
            server_encoding,
            share_directory,
            timezone_directory,
            max_locks_per_transaction: row.get::<_, i32>(11) as u32,
            lock_capacity: row.get::<_, i64>(12) as u64,
            data_directory,
        };
        facts.check_system_identifier()?;
        Ok(facts)
    }

    /// The data directory on our disk is this server's: pg_control tells.
    ///
    /// # Errors
    /// `58P01` when it is not.
    pub fn check_system_identifier(&self) -> Result<()> {
        let path = self.data_directory.join("global/pg_control");
        let mut bytes = [0_u8; 8];
        self.owner
            .act(|| File::open(&path)?.read_exact(&mut bytes))
            .map_err(|e| not_this_host(&self.data_directory).with_detail(e.to_string()))?;
        if u64::from_le_bytes(bytes) == self.system_identifier {
            Ok(())
        } else {
            Err(not_this_host(&self.data_directory)
                .with_detail("The system identifiers differ.".to_owned()))
        }
    }

    /// The server sees the files that we write into `directory` (which lies in the cluster):
    /// a random file is read back by it.
    ///
    /// # Errors
    /// `58P01` when it does not.
    pub fn check_same_host(&self, client: &mut impl GenericClient, directory: &Path) -> Result<()> {
        self.check_system_identifier()?;
        let nonce = nonce()?;
        let path = directory.join(format!("pgsql_tmp.nonce.{}", std::process::id()));
        self.owner
            .remove_file(&path)
            .and_then(|()| self.owner.create_new(&path))
            .and_then(|mut f| f.write_all(nonce.as_bytes()))
            .map_err(|e| Error::io("write file", &path, &e))?;
        let seen = client.query_one(
            "SELECT pg_catalog.pg_read_file($1, 0, 1000, true)",
            &[&path.display().to_string()],
        );
        let removed = self.owner.remove_file(&path);
        let seen: Option<String> = seen?.get(0);
        removed.map_err(|e| Error::io("remove file", &path, &e))?;
        if seen.as_deref() == Some(nonce.as_str()) {
            Ok(())
        } else {
            Err(not_this_host(&self.data_directory)
                .with_detail("The server does not see a file that was just written there."))
        }
    }

    /// Checks that the server's lock table holds the locks of so many relations (tables, TOAST
    /// tables, indexes) in one transaction, and leaves others some room.
    ///
    /// # Errors
    /// `53200` with the value to set.
    pub fn check_lock_capacity(&self, relations: usize) -> Result<()> {
        let needed = relations as u64 + 64;
        if needed <= self.lock_capacity {
            return Ok(());
        }
        let slots = (self.lock_capacity / u64::from(self.max_locks_per_transaction.max(1))).max(1);
        Err(Error::environment(
            "53200",
            format!(
                "{relations} relations need more locks in one transaction than the server holds ({})",
                self.lock_capacity
            ),
        )
        .with_hint(format!(
            "Set max_locks_per_transaction to {} or more and restart the server.",
            needed.div_ceil(slots)
        )))
    }
}

const SETTINGS: &str = "
SELECT pg_catalog.current_setting('data_directory'),
       s.system_identifier, s.catalog_version_no,
       pg_catalog.current_setting('wal_level'),
       pg_catalog.current_setting('data_checksums') = 'on',
       (SELECT setting::int4 FROM pg_catalog.pg_settings WHERE name = 'segment_size'),
       d.oid, d.datname::text, d.dattablespace,
       (SELECT setting FROM pg_catalog.pg_config WHERE name = 'SHAREDIR'),
       (SELECT setting FROM pg_catalog.pg_config WHERE name = 'CONFIGURE'),
       pg_catalog.current_setting('max_locks_per_transaction')::int4,
       pg_catalog.current_setting('max_locks_per_transaction')::int8
         * (pg_catalog.current_setting('max_connections')::int8
            + pg_catalog.current_setting('max_prepared_transactions')::int8)
  FROM pg_catalog.pg_control_system() s, pg_catalog.pg_database d
 WHERE d.datname = pg_catalog.current_database()";

/// `--with-system-tzdata=DIR` among the options that the server was configured with.
fn system_tzdata(configure: &str) -> Option<&str> {
    let (_, rest) = configure.split_once("--with-system-tzdata=")?;
    let end = rest.find(['\'', ' ']).unwrap_or(rest.len());
    Some(&rest[..end])
}

fn nonce() -> Result<String> {
    let path = Path::new("/dev/urandom");
    let mut bytes = [0_u8; 16];
    File::open(path)
        .and_then(|mut f| f.read_exact(&mut bytes))
        .map_err(|e| Error::io("read file", path, &e))?;
    Ok(format!("{:032x}", u128::from_le_bytes(bytes)))
}

fn not_this_host(data_directory: &Path) -> Error {
    Error::environment(
        "58P01",
        format!(
            "the server's data directory \"{}\" is not on this host",
            data_directory.display()
        ),
    )
    .with_hint("Run the command on the server's host, in its container or file system.")
}

/// Who reads the server's WAL and would miss what a load bypasses.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Consumers {
    /// Connected walsenders: standbys, subscribers, receivers, base backups.
    pub walsenders: Vec<String>,
    /// Replication slots.
    pub slots: Vec<String>,
    /// archive_mode is on or always.
    pub archive_mode: bool,
    /// A base backup runs.
    pub base_backup: bool,
}

impl Consumers {
    /// Asks the server.
    pub fn read(client: &mut impl GenericClient, version: MajorVersion) -> Result<Consumers> {
        // An exclusive backup can be asked for on 14, where it still exists. One that an SQL
        // session keeps open shows nowhere else on later versions.
        let exclusive = if version.at_least(15) {
            "false"
        } else {
            "pg_catalog.pg_is_in_backup()"
        };
        let row = client.query_one(
            &format!(
                "SELECT ARRAY(SELECT application_name FROM pg_catalog.pg_stat_replication
                               ORDER BY 1),
                        ARRAY(SELECT slot_name::text FROM pg_catalog.pg_replication_slots
                               ORDER BY 1),
                        pg_catalog.current_setting('archive_mode') <> 'off',
                        {exclusive} OR EXISTS (
                          SELECT FROM pg_catalog.pg_stat_progress_basebackup)"
            ),
            &[],
        )?;
        Ok(Consumers {
            walsenders: row.get(0),
            slots: row.get(1),
            archive_mode: row.get(2),
            base_backup: row.get(3),
        })
    }

    /// Nobody reads the WAL.
    pub fn is_none(&self) -> bool {
        *self == Consumers::default()
    }

    /// Refuses a load that bypasses WAL while somebody needs it.
    ///
    /// # Errors
    /// `55000`, with who they are and what to do.
    pub fn refuse(&self) -> Result<()> {
        if self.is_none() {
            return Ok(());
        }
        let mut reasons = Vec::new();
        if !self.walsenders.is_empty() {
            reasons.push(format!(
                "a standby, subscriber or backup is connected ({})",
                self.walsenders.join(", ")
            ));
        }
        if !self.slots.is_empty() {
            reasons.push(format!(
                "there are replication slots ({})",
                self.slots.join(", ")
            ));
        }
        if self.archive_mode {
            reasons.push("archive_mode is on".to_owned());
        }
        if self.base_backup {
            reasons.push("a base backup is running".to_owned());
        }
        Err(Error::new(
            Class::Refused,
            "55000",
            "the load bypasses WAL, and something depends on the server's WAL",
        )
        .with_detail(format!("{}.", reasons.join("; ")))
        .with_hint(
            "With --wal bypass it goes on; then take a new base backup and rebuild the standbys.",
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_systems_time_zones_are_found_in_the_configure_options() {
        assert_eq!(
            system_tzdata(" '--a=b' '--with-system-tzdata=/usr/share/zoneinfo' 'AWK=mawk'"),
            Some("/usr/share/zoneinfo")
        );
        assert_eq!(system_tzdata("'--with-icu'"), None);
    }

    #[test]
    fn a_server_whose_wal_nobody_reads_is_not_refused() {
        Consumers::default().refuse().unwrap();
        let e = Consumers {
            slots: vec!["s".into()],
            archive_mode: true,
            ..Consumers::default()
        }
        .refuse()
        .unwrap_err();
        assert_eq!(
            (e.sqlstate.as_str(), e.detail.as_deref()),
            (
                "55000",
                Some("there are replication slots (s); archive_mode is on.")
            )
        );
    }
}
