//! What a build does in its transaction beside loading.

use super::options::BuildOptions;
use super::report::Report;
use super::source_spec::SourceSpec;
use crate::cluster::register::Registration;
use crate::error::{Error, Result};

/// SQL around a load, in its transaction, which is then open while the files are built; else it
/// begins when they are ready.
pub(super) trait Around {
    /// About how many relations will be loaded, as far as that is known before.
    fn relations(&self) -> usize {
        0
    }

    /// Whether the server may build something from the rows when they are in place.
    fn has_post_data(&self) -> bool {
        false
    }

    /// Makes the tables, and says what is loaded into them.
    fn before(&mut self, registration: &mut Registration<'_>) -> Result<Vec<SourceSpec>>;

    /// Does what needs the rows in place; COMMIT comes next.
    fn after(&mut self, registration: &mut Registration<'_>, report: &mut Report) -> Result<()>;
}

/// `--schema`.
pub(super) struct SchemaScript<'o> {
    sql: String,
    file: String,
    sources: &'o [SourceSpec],
}

impl<'o> SchemaScript<'o> {
    /// Reads the script, if there is one.
    pub fn of(options: &'o BuildOptions) -> Result<Option<SchemaScript<'o>>> {
        let script = read_script(options)?;
        Ok(script.map(|(sql, file)| SchemaScript {
            sql,
            file,
            sources: &options.sources,
        }))
    }
}

impl Around for SchemaScript<'_> {
    fn before(&mut self, registration: &mut Registration<'_>) -> Result<Vec<SourceSpec>> {
        registration.run_script(&self.sql, &self.file)?;
        Ok(self.sources.to_vec())
    }

    fn after(&mut self, _: &mut Registration<'_>, _: &mut Report) -> Result<()> {
        Ok(())
    }
}

/// The SQL of `--schema` and its file's name.
pub(super) fn read_script(options: &BuildOptions) -> Result<Option<(String, String)>> {
    let Some(path) = &options.schema else {
        return Ok(None);
    };
    let bytes = std::fs::read(path).map_err(|e| Error::io("open file", path, &e))?;
    let name = path.display().to_string();
    let sql = String::from_utf8(bytes)
        .map_err(|_| Error::refused("22021", format!("\"{name}\" is not valid UTF-8")))?;
    Ok(Some((sql, name)))
}
