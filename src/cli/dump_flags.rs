//! The flags of `build DUMP`: pg_restore's, with its letters.

use crate::load::restore::options::{Parts, RestoreOptions, Selection};
use clap::Args;
use std::path::PathBuf;

/// pg_restore's options.
#[derive(Args, Debug, Clone, Default)]
#[command(next_help_heading = "Dumps, as pg_restore")]
pub struct DumpFlags {
    /// Print the table of contents and restore nothing.
    #[arg(short = 'l', long)]
    pub list: bool,
    /// Make the database that was dumped, and restore into that; -d names one to connect to first.
    #[arg(short = 'C', long)]
    pub create: bool,
    /// Drop what is restored first.
    #[arg(short = 'c', long)]
    pub clean: bool,
    /// With --clean: what is not there need not be dropped.
    #[arg(long, requires = "clean")]
    pub if_exists: bool,
    /// Only rows, large objects, and values of sequences.
    #[arg(short = 'a', long, conflicts_with = "schema_only")]
    pub data_only: bool,
    /// Only definitions.
    #[arg(short = 's', long)]
    pub schema_only: bool,
    /// Only this section: pre-data, data or post-data. May repeat.
    #[arg(long, value_name = "SECTION", value_parser = ["pre-data", "data", "post-data"])]
    pub section: Vec<String>,
    /// Only objects of this schema. May repeat.
    #[arg(short = 'n', long = "only-schema", value_name = "NAME")]
    pub only_schema: Vec<String>,
    /// No objects of this schema. May repeat.
    #[arg(short = 'N', long, value_name = "NAME")]
    pub exclude_schema: Vec<String>,
    /// Only this table, view, or sequence. May repeat.
    #[arg(short = 't', long, value_name = "NAME")]
    pub table: Vec<String>,
    /// Only this index. May repeat.
    #[arg(short = 'I', long, value_name = "NAME")]
    pub index: Vec<String>,
    /// Only this function, as "name(argument types)". May repeat.
    #[arg(short = 'P', long, value_name = "NAME(ARGS)")]
    pub function: Vec<String>,
    /// Only this trigger. May repeat.
    #[arg(short = 'T', long, value_name = "NAME")]
    pub trigger: Vec<String>,
    /// Only the entries of this list, in its order; -l prints one to be edited.
    #[arg(short = 'L', long, value_name = "FILE")]
    pub use_list: Option<PathBuf>,
    /// Each name of -n, -t and so on must be there.
    #[arg(long)]
    pub strict_names: bool,
    /// Do not restore who owns objects.
    #[arg(short = 'O', long)]
    pub no_owner: bool,
    /// Do not restore GRANT and REVOKE.
    #[arg(short = 'x', long, visible_alias = "no-acl")]
    pub no_privileges: bool,
    /// Do not restore comments.
    #[arg(long)]
    pub no_comments: bool,
    /// Do not restore security labels.
    #[arg(long)]
    pub no_security_labels: bool,
    /// Do not restore publications.
    #[arg(long)]
    pub no_publications: bool,
    /// Do not restore subscriptions.
    #[arg(long)]
    pub no_subscriptions: bool,
    /// Do not restore policies of row-level security.
    #[arg(long)]
    pub no_policies: bool,
    /// Do not restore the planner's statistics; ANALYZE gathers them.
    #[arg(long)]
    pub no_statistics: bool,
    /// Put everything into the default tablespace.
    #[arg(long)]
    pub no_tablespaces: bool,
    /// Do not restore table access methods.
    #[arg(long)]
    pub no_table_access_method: bool,
    /// With --keep-going: no rows for a table that could not be made.
    #[arg(long)]
    pub no_data_for_failed_tables: bool,
    /// SET ROLE before anything.
    #[arg(long, value_name = "ROLE")]
    pub role: Option<String>,
    /// With --data-only: triggers do not fire.
    #[arg(long)]
    pub disable_triggers: bool,
    /// Set `row_security` to on.
    #[arg(long)]
    pub enable_row_security: bool,
    /// Become the owners of objects, rather than ALTER OWNER.
    #[arg(long)]
    pub use_set_session_authorization: bool,
    /// Go on after an error, as pg_restore does without -e: what could be restored is kept, and the
    /// exit status is 1.
    #[arg(long)]
    pub keep_going: bool,
    /// Stop at the first error (always so without --keep-going).
    #[arg(short = 'e', long, conflicts_with = "keep_going")]
    pub exit_on_error: bool,
    /// In one transaction (always so).
    #[arg(short = '1', long)]
    pub single_transaction: bool,
    /// Tell of each entry.
    #[arg(short = 'v', long)]
    pub verbose: bool,
    /// Run what a script would have run outside of the server's database: COPY from programs and
    /// files of the server. Without it such a script is refused.
    #[arg(long)]
    pub trust_scripts: bool,
}

impl DumpFlags {
    /// As a restore means them.
    pub fn options(&self, dump: PathBuf) -> RestoreOptions {
        let wants =
            |section: &str| self.section.is_empty() || self.section.iter().any(|s| s == section);
        RestoreOptions {
            dump,
            create: self.create,
            clean: self.clean,
            if_exists: self.if_exists,
            parts: Parts {
                schema: !self.data_only,
                data: !self.schema_only,
                statistics: !self.no_statistics && !self.data_only && !self.schema_only,
                pre_data: wants("pre-data"),
                data_section: wants("data"),
                post_data: wants("post-data"),
            },
            selection: Selection {
                schemas: self.only_schema.clone(),
                without_schemas: self.exclude_schema.clone(),
                tables: self.table.clone(),
                indexes: self.index.clone(),
                functions: self.function.clone(),
                triggers: self.trigger.clone(),
                no_privileges: self.no_privileges,
                no_comments: self.no_comments,
                no_security_labels: self.no_security_labels,
                no_publications: self.no_publications,
                no_subscriptions: self.no_subscriptions,
                no_policies: self.no_policies,
            },
            list_file: self.use_list.clone(),
            no_owner: self.no_owner,
            set_session_authorization: self.use_set_session_authorization,
            no_tablespaces: self.no_tablespaces,
            no_table_access_method: self.no_table_access_method,
            role: self.role.clone(),
            disable_triggers: self.disable_triggers,
            enable_row_security: self.enable_row_security,
            strict_names: self.strict_names,
            no_data_for_failed_tables: self.no_data_for_failed_tables,
            keep_going: self.keep_going,
            verbose: self.verbose,
            trust_scripts: self.trust_scripts,
        }
    }
}
