//! What a dump may not do: leave the database, or the transaction.
//!
//! This is for statements that say so. What a function or a DO block of the dump does is run by the
//! server like everything else of it: a dump is to be trusted as its maker is.

use crate::error::{Error, Place, Result};
use crate::source::dump::script::{Class, Item, ScriptReader, classify};

/// Refuses SQL of an archive's entry that goes to programs or files of the server, or ends the
/// transaction.
///
/// # Errors
/// 0A000 with the entry and the line of its SQL.
pub fn check(sql: &str, label: &str, trust_scripts: bool) -> Result<()> {
    let mut reader = ScriptReader::new(sql.as_bytes(), label.to_owned());
    while let Some(item) = reader.next_item()? {
        // What psql alone understands, the server refuses.
        if let Item::Statement { text, line, .. } = item {
            let class = classify(&String::from_utf8_lossy(&text));
            check_class(&class, label, line, trust_scripts)?;
            if class == Class::TransactionControl {
                let message = "an entry of the archive ends the transaction";
                return Err(Error::unsupported(message).at(place(label, line)));
            }
        }
    }
    Ok(())
}

/// Refuses a statement that goes to programs or files of the server.
///
/// # Errors
/// 0A000 with its line.
pub fn check_class(class: &Class, label: &str, line: u64, trust_scripts: bool) -> Result<()> {
    if *class != Class::CopyElsewhere || trust_scripts {
        return Ok(());
    }
    let message = "COPY to or from a program or a file of the server is not run";
    let error = Error::unsupported(message).at(place(label, line));
    Err(error.with_hint("--trust-scripts runs it."))
}

fn place(label: &str, line: u64) -> Place {
    Place {
        file: label.to_owned(),
        line,
        ..Place::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_that_leave_the_database_are_found_among_others() {
        for sql in [
            "CREATE TABLE t (a text);\nCOPY t FROM PROGRAM 'touch x';",
            "copy t from program $$touch x$$",
            "COPY (SELECT 1) TO '/tmp/x'",
            "CREATE TABLE t (a text); COMMIT; BEGIN;",
        ] {
            let error = check(sql, "entry", false).expect_err(sql);
            assert_eq!(error.sqlstate, "0A000", "{sql}");
            assert_eq!(error.places[0].file, "entry", "{sql}");
        }
        for sql in [
            "COMMENT ON TABLE t IS 'COPY t FROM PROGRAM ''x''; COMMIT;';",
            "CREATE FUNCTION f() RETURNS int LANGUAGE plpgsql AS $$ BEGIN COMMIT; END $$;",
            "CREATE FUNCTION f() RETURNS int LANGUAGE sql BEGIN ATOMIC SELECT 1; END;",
        ] {
            check(sql, "entry", false).expect(sql);
        }
        check("COPY t FROM PROGRAM 'x'", "entry", true).expect("trusted");
    }
}
