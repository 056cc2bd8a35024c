//! What a restore is asked to do: pg_restore's options, with its meanings.

use std::path::PathBuf;

/// pg_restore's options.
#[derive(Debug, Clone, Default)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a flag of its own on the command line"
)]
pub struct RestoreOptions {
    /// The dump: a file, a directory, or `-`.
    pub dump: PathBuf,
    /// `-C`: make the database that was dumped, and restore into that.
    pub create: bool,
    /// `-c`: drop what is restored first.
    pub clean: bool,
    /// `--if-exists`: dropping what is not there is no error.
    pub if_exists: bool,
    /// The parts that are wanted.
    pub parts: Parts,
    /// Which entries are wanted.
    pub selection: Selection,
    /// `-L`: the entries and their order.
    pub list_file: Option<PathBuf>,
    /// `-O`: objects belong to whoever restores.
    pub no_owner: bool,
    /// `--use-set-session-authorization`: become the owner, rather than ALTER ... OWNER TO.
    pub set_session_authorization: bool,
    /// `--no-tablespaces`.
    pub no_tablespaces: bool,
    /// `--no-table-access-method`.
    pub no_table_access_method: bool,
    /// `--role`: SET ROLE first.
    pub role: Option<String>,
    /// `--disable-triggers`: triggers do not fire for the rows of a data-only restore.
    pub disable_triggers: bool,
    /// `--enable-row-security`.
    pub enable_row_security: bool,
    /// `--strict-names`: each name of the selection must be there.
    pub strict_names: bool,
    /// `--no-data-for-failed-tables`: with `keep_going`, no rows for tables that could not be made.
    pub no_data_for_failed_tables: bool,
    /// `--keep-going`: an error does not end the restore.
    pub keep_going: bool,
    /// `-v`: tell of each entry as it is done.
    pub verbose: bool,
    /// `--trust-scripts`: what a script has run outside of the server is run.
    pub trust_scripts: bool,
}

impl RestoreOptions {
    /// Something was given that needs an archive's table of contents.
    pub fn selects(&self) -> bool {
        self.create
            || self.clean
            || self.list_file.is_some()
            || self.selection.is_partial()
            || Parts {
                statistics: true,
                ..self.parts
            } != Parts::default()
    }
}

/// The parts of a dump that are wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each part on its own")]
pub struct Parts {
    /// Definitions.
    pub schema: bool,
    /// Rows, large objects, values of sequences.
    pub data: bool,
    /// The planner's statistics, where the dump has them.
    pub statistics: bool,
    /// The section before the rows.
    pub pre_data: bool,
    /// The section of the rows.
    pub data_section: bool,
    /// The section behind the rows.
    pub post_data: bool,
}

impl Default for Parts {
    fn default() -> Parts {
        Parts {
            schema: true,
            data: true,
            statistics: true,
            pre_data: true,
            data_section: true,
            post_data: true,
        }
    }
}

/// Which entries are wanted; lists without a name select nothing by themselves.
#[derive(Debug, Clone, Default)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a flag of its own on the command line"
)]
pub struct Selection {
    /// `-n`.
    pub schemas: Vec<String>,
    /// `-N`.
    pub without_schemas: Vec<String>,
    /// `-t`: tables, views, sequences and the like.
    pub tables: Vec<String>,
    /// `-I`.
    pub indexes: Vec<String>,
    /// `-P`: as `name(argument types)`.
    pub functions: Vec<String>,
    /// `-T`.
    pub triggers: Vec<String>,
    /// `-x`.
    pub no_privileges: bool,
    /// `--no-comments`.
    pub no_comments: bool,
    /// `--no-security-labels`.
    pub no_security_labels: bool,
    /// `--no-publications`.
    pub no_publications: bool,
    /// `--no-subscriptions`.
    pub no_subscriptions: bool,
    /// `--no-policies`.
    pub no_policies: bool,
}

impl Selection {
    /// Objects are named one by one: whatever is not named is left out.
    pub fn by_name(&self) -> bool {
        [&self.tables, &self.indexes, &self.functions, &self.triggers]
            .iter()
            .any(|names| !names.is_empty())
    }

    /// Some entries are left out by name or schema.
    pub fn is_partial(&self) -> bool {
        self.by_name() || !self.schemas.is_empty() || !self.without_schemas.is_empty()
    }
}
