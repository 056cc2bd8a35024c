//! What the server's conversion makes of each code of a multi-byte encoding.
//!
//! PL/pgSQL goes over the codes: it can catch the error of one and go on.

use crate::error::{Error, Result};
use crate::source::charset::multibyte::{Block, Meaning, MultiByte, MultiByteSet};
use postgres::GenericClient;

/// Asks for the map of a set to UTF8, in a database in UTF8; `None` where PL/pgSQL is missing.
pub fn multi_byte(client: &mut impl GenericClient, set: MultiByteSet) -> Result<Option<MultiByte>> {
    let has_language = client.query_opt(
        "SELECT 1 FROM pg_catalog.pg_language WHERE lanname = 'plpgsql'",
        &[],
    )?;
    if has_language.is_none() {
        return Ok(None);
    }
    let mut meanings = Vec::new();
    for block in set.blocks() {
        client.batch_execute(&ask(set, block))?;
        let row = client.query_one(
            "SELECT pg_catalog.current_setting('pgpagewrite.map'),
                    pg_catalog.set_config('pgpagewrite.map', '', false)",
            &[],
        )?;
        for answer in row.get::<_, &str>(0).split(',') {
            meanings.push(meaning(answer)?);
        }
    }
    Ok(Some(MultiByte::new(set, meanings)))
}

/// Puts the meanings of a block's codes into a setting.
fn ask(set: MultiByteSet, block: Block) -> String {
    let mut code = Vec::new();
    let mut from = Vec::new();
    let mut order = Vec::new();
    for (i, (low, high)) in block.iter().enumerate() {
        code.push(format!("pg_catalog.lpad(pg_catalog.to_hex(b{i}), 2, '0')"));
        from.push(format!("pg_catalog.generate_series({low}, {high}) b{i}"));
        order.push(format!("b{i}"));
    }
    format!(
        "DO $do$
         DECLARE
           code pg_catalog.bytea;
           meaning pg_catalog.text;
           meanings pg_catalog.text[] := '{{}}';
         BEGIN
           FOR code IN SELECT pg_catalog.decode({code}, 'hex') FROM {from} ORDER BY {order} LOOP
             BEGIN
               meaning := pg_catalog.encode(
                   pg_catalog.convert_to(pg_catalog.convert_from(code, '{name}'), 'UTF8'), 'hex');
             EXCEPTION
               WHEN untranslatable_character THEN meaning := '-';
               WHEN character_not_in_repertoire THEN meaning := '';
             END;
             -- Within the block above the whole array would be copied each time.
             meanings := pg_catalog.array_append(meanings, meaning);
           END LOOP;
           PERFORM pg_catalog.set_config(
               'pgpagewrite.map', pg_catalog.array_to_string(meanings, ','), false);
         END $do$",
        code = code.join(" || "),
        from = from.join(", "),
        order = order.join(", "),
        name = set.name(),
    )
}

fn meaning(answer: &str) -> Result<Meaning> {
    match answer {
        "" => return Ok(Meaning::Invalid),
        "-" => return Ok(Meaning::Unknown),
        _ => {}
    }
    let bytes: Option<Vec<u8>> = answer
        .as_bytes()
        .chunks(2)
        .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok())
        .collect();
    match bytes {
        Some(utf8) if utf8.len() <= 8 && !utf8.contains(&0) => Ok(Meaning::Utf8(utf8)),
        _ => Err(Error::environment(
            "08P01",
            format!("the server converts a character to \"{answer}\""),
        )),
    }
}
