//! The reader of SQL scripts, with and without runs of INSERTs.

use pgpagewrite::source::dump::script::{
    InsertRows, Item, ScriptReader, classify, copy_target, insert_target,
};
use std::io::Read;

use super::{Input, Target};

/// What a script may be refused with: what has no end, what is not supported, commands under
/// `\restrict`, a statement that is too long.
const SQLSTATES: [&str; 4] = ["42601", "0A000", "42501", "54000"];
/// A size of blocks that cuts everything somewhere.
const SMALL_BLOCK_BYTES: usize = 5;
/// Scripts up to this length are read again by small blocks, which takes quadratic time.
const MAX_SMALL_BYTES: usize = 4 << 10;

/// The target `script`.
#[derive(Debug, Default)]
pub struct ScriptTarget;

/// The items of a script as far as it is read, and the SQLSTATE that ends it.
fn items(script: &[u8], with_runs: bool, block_bytes: usize) -> (Vec<Item>, Option<String>) {
    let mut reader = ScriptReader::new(script, "script".to_owned()).with_blocks(block_bytes);
    if with_runs {
        reader = reader.with_runs();
    }
    let mut items = Vec::new();
    loop {
        match reader.next_item() {
            Ok(Some(item)) => items.push(item),
            Ok(None) => return (items, None),
            Err(error) => {
                assert!(
                    SQLSTATES.contains(&error.sqlstate.as_str()) && !error.message.is_empty(),
                    "{error:?}"
                );
                return (items, Some(error.sqlstate));
            }
        }
    }
}

/// Items are where they say, one behind the other.
fn check(script: &[u8], items: &[Item]) {
    let mut end = 0;
    let mut last_line = 1;
    for item in items {
        let (range, line) = match item {
            Item::Statement { text, pos, line } => {
                let there = &script[pos.start as usize..pos.end as usize];
                assert!(there.starts_with(text) && !text.is_empty(), "{item:?}");
                look_at(text);
                (pos.clone(), *line)
            }
            Item::Copy {
                statement,
                line,
                data,
                data_line,
            } => {
                let there = &script[data.start as usize..data.end as usize];
                assert!(there.is_empty() || there.ends_with(b"\n"), "{item:?}");
                assert!(data_line > line, "{item:?}");
                assert_eq!(*data_line, line_of(script, data.start), "{item:?}");
                look_at(statement);
                (data.clone(), *line)
            }
            Item::Inserts(inserts) => {
                let there = &script[inserts.pos.start as usize..inserts.pos.end as usize];
                assert!(there.starts_with(&inserts.head) && there.ends_with(b";"));
                assert!(insert_target(&String::from_utf8_lossy(&inserts.head)).is_some());
                let mut text = Vec::new();
                InsertRows::new(there, inserts)
                    .read_to_end(&mut text)
                    .expect("a run's rows");
                let rows = lines(&text);
                assert_eq!(rows, inserts.rows, "{inserts:?}");
                let last = inserts.line_of_row(there, rows - 1).expect("a line");
                assert!(last <= line_of(script, inserts.pos.end), "{inserts:?}");
                (inserts.pos.clone(), inserts.line)
            }
            Item::Meta { line, .. } => (end..end, *line),
        };
        assert!(range.start >= end && range.end >= range.start, "{item:?}");
        assert!(range.end <= script.len() as u64, "{item:?}");
        assert!(line >= last_line, "{item:?} behind line {last_line}");
        if !matches!(item, Item::Meta { .. } | Item::Copy { .. }) {
            assert_eq!(line, line_of(script, range.start), "{item:?}");
        }
        (end, last_line) = (range.end, line);
    }
}

fn line_of(script: &[u8], pos: u64) -> u64 {
    1 + lines(&script[..pos as usize])
}

/// Lines that end within.
fn lines(bytes: &[u8]) -> u64 {
    bytes.split(|b| *b == b'\n').count() as u64 - 1
}

/// What a statement is told to be, whatever it is.
fn look_at(statement: &[u8]) {
    let text = String::from_utf8_lossy(statement);
    classify(&text);
    copy_target(&text);
    insert_target(&text);
}

impl Target for ScriptTarget {
    fn name(&self) -> &'static str {
        "script"
    }

    fn execute(&mut self, input: &Input) -> bool {
        const BLOCK_BYTES: usize = 1 << 20;
        let script = &input.files[0].1;
        let whole = items(script, true, BLOCK_BYTES);
        check(script, &whole.0);
        let statements = items(script, false, BLOCK_BYTES);
        check(script, &statements.0);
        assert_eq!(whole.1, statements.1, "with and without runs");
        if script.len() <= MAX_SMALL_BYTES {
            assert_eq!(items(script, true, SMALL_BLOCK_BYTES), whole);
        }
        whole.1.is_none()
    }
}
