//! What the meaning of values depends on, asked of the server's session.

use crate::catalog::Collation;
use crate::catalog::read;
use crate::cluster::facts::Facts;
use crate::error::Result;
use crate::record::encoding::Encoding;
use crate::source::charset::{MultiByte, MultiByteSet};
use crate::types::Settings;
use crate::types::datetime::{DateOrder, DateTimeSettings, IntervalStyle, ZoneDb};
use postgres::Client;
use std::sync::Arc;

/// `DEFAULT_COLLATION_OID`.
const DEFAULT_COLLATION: u32 = 100;

/// The session as the encoders and the orders of keys see it.
#[derive(Debug)]
pub(super) struct View {
    /// The encoders' settings, or why they cannot be had, so that the server must load.
    pub settings: Result<Settings, String>,
    /// What the database's default collation stands for.
    pub database_collation: Collation,
    /// The map of the input's encoding, where the server was asked for it.
    pub input_map: Option<Arc<MultiByte>>,
}

/// Asks the session. `input_encoding` is the option ENCODING.
pub(super) fn ask(
    client: &mut Client,
    facts: &Facts,
    input_encoding: Option<&str>,
) -> Result<View> {
    let row = client.query_one(
        "SELECT (pg_catalog.date_part('epoch', pg_catalog.now() - '2000-01-01 00:00:00+00')
                 * 1000000)::pg_catalog.int8,
                pg_catalog.current_setting('array_nulls')::pg_catalog.bool",
        &[],
    )?;
    Ok(View {
        settings: settings(facts, row.get(0), row.get(1)),
        database_collation: read::collation(client, DEFAULT_COLLATION)?,
        input_map: match input_encoding.and_then(MultiByteSet::by_name) {
            Some(set) if facts.server_encoding == Encoding::Utf8.name() => {
                read::multi_byte(client, set)?.map(Arc::new)
            }
            _ => None,
        },
    })
}

fn settings(facts: &Facts, now_micros: i64, array_nulls: bool) -> Result<Settings, String> {
    let zones = ZoneDb::open_parts(
        &facts.timezone_directory,
        &facts.share_directory.join("timezonesets"),
        &facts.timezone_abbreviations,
    )
    .map_err(|e| e.message)?;
    let zone = zones.zone(&facts.time_zone).map_err(|e| e.message)?;
    let encoding = Encoding::by_name(&facts.server_encoding)
        .ok_or_else(|| format!("the database's encoding is {}", facts.server_encoding))?;
    let date_order = DateOrder::from_date_style(&facts.date_style)
        .ok_or_else(|| format!("DateStyle {} is not known", facts.date_style))?;
    let interval_style = IntervalStyle::from_setting(&facts.interval_style)
        .ok_or_else(|| format!("IntervalStyle {} is not known", facts.interval_style))?;
    Ok(Settings {
        version: facts.version,
        encoding,
        array_nulls,
        datetime: DateTimeSettings::new(
            date_order,
            interval_style,
            zone,
            zones.into(),
            now_micros,
            facts.version,
        ),
    })
}
