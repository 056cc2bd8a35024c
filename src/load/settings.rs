//! What the meaning of values depends on, asked of the server's session.

use crate::catalog::Collation;
use crate::catalog::read;
use crate::cluster::facts::Facts;
use crate::error::Result;
use crate::record::encoding::Encoding;
use crate::types::Settings;
use crate::types::datetime::{DateOrder, DateTimeSettings, IntervalStyle, ZoneDb};
use postgres::Client;

/// `DEFAULT_COLLATION_OID`.
const DEFAULT_COLLATION: u32 = 100;

/// The session as the encoders and the orders of keys see it.
#[derive(Debug)]
pub(super) struct View {
    /// The encoders' settings, or why they cannot be had, so that the server must load.
    pub settings: Result<Settings, String>,
    /// What the database's default collation stands for.
    pub database_collation: Collation,
}

/// Asks the session.
pub(super) fn ask(client: &mut Client, facts: &Facts) -> Result<View> {
    let row = client.query_one(
        "SELECT (pg_catalog.date_part('epoch', pg_catalog.now() - '2000-01-01 00:00:00+00')
                 * 1000000)::pg_catalog.int8,
                pg_catalog.current_setting('array_nulls')::pg_catalog.bool",
        &[],
    )?;
    Ok(View {
        settings: settings(facts, row.get(0), row.get(1)),
        database_collation: read::collation(client, DEFAULT_COLLATION)?,
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
    let date_order = DateOrder::from_date_style(&facts.date_style)
        .ok_or_else(|| format!("DateStyle {} is not known", facts.date_style))?;
    let interval_style = IntervalStyle::from_setting(&facts.interval_style)
        .ok_or_else(|| format!("IntervalStyle {} is not known", facts.interval_style))?;
    Ok(Settings {
        version: facts.version,
        encoding: Encoding::Utf8,
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
