//! What the meaning of values depends on, asked of the server's session.

use crate::catalog::Collation;
use crate::catalog::read;
use crate::cluster::facts::Facts;
use crate::error::Result;
use crate::record::encoding::Encoding;
use crate::source::charset::{MultiByte, MultiByteSet};
use crate::types::Settings;
use crate::types::datetime::{DateOrder, DateTimeSettings, IntervalStyle, ZoneDb};
use postgres::{Client, Row};
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
    let parameters = client.query_one(PARAMETERS, &[])?;
    Ok(View {
        settings: settings(facts, &parameters),
        database_collation: read::collation(client, DEFAULT_COLLATION)?,
        input_map: match input_encoding.and_then(MultiByteSet::by_name) {
            Some(set) if facts.server_encoding == Encoding::Utf8.name() => {
                read::multi_byte(client, set)?.map(Arc::new)
            }
            _ => None,
        },
    })
}

/// What a session may set at any time, as a script that runs before the rows may.
const PARAMETERS: &str = "
SELECT pg_catalog.current_setting('DateStyle'),
       pg_catalog.current_setting('IntervalStyle'),
       pg_catalog.current_setting('TimeZone'),
       pg_catalog.current_setting('timezone_abbreviations'),
       pg_catalog.current_setting('array_nulls')::pg_catalog.bool,
       (pg_catalog.date_part('epoch', pg_catalog.now() - '2000-01-01 00:00:00+00')
        * 1000000)::pg_catalog.int8";

fn settings(facts: &Facts, parameters: &Row) -> Result<Settings, String> {
    let (date_style, interval_style): (&str, &str) = (parameters.get(0), parameters.get(1));
    let (time_zone, abbreviations): (&str, &str) = (parameters.get(2), parameters.get(3));
    let zones = ZoneDb::open_parts(
        &facts.timezone_directory,
        &facts.share_directory.join("timezonesets"),
        abbreviations,
    )
    .map_err(|e| e.message)?;
    let zone = zones.zone(time_zone).map_err(|e| e.message)?;
    let encoding = Encoding::by_name(&facts.server_encoding)
        .ok_or_else(|| format!("the database's encoding is {}", facts.server_encoding))?;
    let date_order = DateOrder::from_date_style(date_style)
        .ok_or_else(|| format!("DateStyle {date_style} is not known"))?;
    let interval_style = IntervalStyle::from_setting(interval_style)
        .ok_or_else(|| format!("IntervalStyle {interval_style} is not known"))?;
    Ok(Settings {
        version: facts.version,
        encoding,
        array_nulls: parameters.get(4),
        datetime: DateTimeSettings::new(
            date_order,
            interval_style,
            zone,
            zones.into(),
            parameters.get(5),
            facts.version,
        ),
    })
}
