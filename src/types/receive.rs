//! Fields of COPY's binary format to datums: the receive function of each native type.
//!
//! Numbers have their high byte first. What a value must be is checked where the input functions
//! check it; here stands how its bytes are read. Text is in the client's encoding, which
//! is UTF8 in every session of ours, whatever the option ENCODING says.
//!
//! PostgreSQL: the types' receive functions; `src/backend/libpq/pqformat.c`.

use super::{
    Encoder, Kind, Scratch, Settings, character, datetime, json, jsonb, numeric, put_text,
};
use crate::error::ValueError;
use byteorder::{BigEndian, ReadBytesExt};
use pgformat::datum::datetime::Interval;
use pgformat::heap::tuple::TupleBuilder;

/// The version that leads a jsonb.
const JSONB_VERSION: u8 = 1;

/// A field that is read from its front.
#[derive(Debug)]
pub(super) struct Message<'a>(&'a [u8]);

/// `pq_copymsgbytes`
#[cold]
fn insufficient() -> Box<ValueError> {
    ValueError::new("08P01", "insufficient data left in message")
}

impl<'a> Message<'a> {
    /// `pq_getmsgbyte`
    #[inline]
    fn byte(&mut self) -> Result<u8, Box<ValueError>> {
        let byte = self.0.read_u8();
        byte.map_err(|_| ValueError::new("08P01", "no data left in message"))
    }

    /// `pq_getmsgint` of two bytes.
    #[inline]
    pub(super) fn int2(&mut self) -> Result<i16, Box<ValueError>> {
        self.0.read_i16::<BigEndian>().map_err(|_| insufficient())
    }

    /// `pq_getmsgint` of four bytes.
    #[inline]
    fn int4(&mut self) -> Result<i32, Box<ValueError>> {
        self.0.read_i32::<BigEndian>().map_err(|_| insufficient())
    }

    /// `pq_getmsgint64`
    #[inline]
    fn int8(&mut self) -> Result<i64, Box<ValueError>> {
        self.0.read_i64::<BigEndian>().map_err(|_| insufficient())
    }

    /// `pq_getmsgbytes`
    #[inline]
    fn bytes<const N: usize>(&mut self) -> Result<[u8; N], Box<ValueError>> {
        let (bytes, rest) = self.0.split_first_chunk().ok_or_else(insufficient)?;
        self.0 = rest;
        Ok(*bytes)
    }

    /// All that is left.
    #[inline]
    fn rest(&mut self) -> &'a [u8] {
        std::mem::take(&mut self.0)
    }

    /// `pq_getmsgtext` of all that is left, in the database's encoding.
    #[inline]
    fn text(&mut self, settings: &Settings) -> Result<&'a [u8], Box<ValueError>> {
        let text = self.rest();
        let lowest = text
            .iter()
            .fold(i8::MAX, |low, &b| low.min(b.cast_signed()));
        if lowest > 0 {
            return Ok(text);
        }
        match settings.encoding.first_invalid(text) {
            None => Ok(text),
            Some(at) => Err(settings.encoding.refusal(&text[at..])),
        }
    }

    /// The receive function must have read all.
    #[inline]
    fn end(&self) -> Result<(), Box<ValueError>> {
        if self.0.is_empty() {
            return Ok(());
        }
        Err(ValueError::new("22P03", "incorrect binary data format"))
    }
}

impl Encoder {
    /// Whether fields of the binary format are read.
    pub fn receives(&self) -> bool {
        !matches!(
            self.kind,
            Kind::Inet | Kind::Cidr | Kind::Bits(_) | Kind::Array(_)
        )
    }

    /// Puts the next attribute of the row under construction from a binary field that is not
    /// null.
    ///
    /// Only of an encoder that [`Encoder::receives`].
    ///
    /// # Errors
    /// What the type's receive function says of such a field; nothing has been put then.
    #[inline]
    pub fn receive(
        &self,
        field: &[u8],
        scratch: &mut Scratch,
        settings: &Settings,
        out: &mut TupleBuilder,
    ) -> Result<(), Box<ValueError>> {
        let (version, encoding) = (settings.version, settings.encoding);
        let mut message = Message(field);
        let m = &mut message;
        match self.kind {
            Kind::Int4 | Kind::Oid | Kind::Float4 => put(m.int4()?.to_le_bytes(), m, out)?,
            Kind::Int8 | Kind::Float8 => put(m.int8()?.to_le_bytes(), m, out)?,
            Kind::Int2 => put(m.int2()?.to_le_bytes(), m, out)?,
            Kind::Text => put_text(m.text(settings)?, out)?,
            Kind::Varchar { max_chars } => {
                let text = m.text(settings)?;
                put_text(character::varchar_in(text, max_chars, encoding)?, out)?;
            }
            Kind::Bpchar { max_chars } => {
                let text = m.text(settings)?;
                let value = character::bpchar_in(text, max_chars, encoding, &mut scratch.text)?;
                put_text(value, out)?;
            }
            Kind::Numeric(typmod) => {
                if let Some(plain) = numeric::plain_recv(field, typmod) {
                    out.put_short_varlena(&plain.bytes, plain.len);
                    return Ok(());
                }
                let value = numeric::numeric_recv(m, typmod, &mut scratch.numeric)?;
                m.end()?;
                out.put_varlena(value);
            }
            Kind::Bool => put([u8::from(m.byte()? != 0)], m, out)?,
            Kind::Char => put([m.byte()?], m, out)?,
            Kind::Date => put(datetime::date_recv(m.int4()?)?.to_le_bytes(), m, out)?,
            Kind::Time { typmod } => {
                put(
                    datetime::time_recv(m.int8()?, typmod)?.to_le_bytes(),
                    m,
                    out,
                )?;
            }
            Kind::Timetz { typmod } => {
                let micros = datetime::time_recv(m.int8()?, typmod)?;
                let west_secs = datetime::zone_recv(m.int4()?)?;
                put(datetime::timetz_bytes(micros, west_secs), m, out)?;
            }
            Kind::Timestamp { typmod } | Kind::Timestamptz { typmod } => {
                let micros = datetime::timestamp_recv(m.int8()?, typmod)?;
                put(micros.to_le_bytes(), m, out)?;
            }
            Kind::Interval { typmod } => {
                let received = Interval {
                    micros: m.int8()?,
                    days: m.int4()?,
                    months: m.int4()?,
                };
                let value = datetime::interval_recv(received, typmod, version)?;
                put(datetime::interval_bytes(value), m, out)?;
            }
            Kind::Uuid => put(m.bytes::<16>()?, m, out)?,
            Kind::Bytea => put_text(m.rest(), out)?,
            Kind::Name => {
                let name = character::name_recv(m.text(settings)?)?;
                out.put_fixed(&name);
            }
            Kind::Json => {
                let text = m.text(settings)?;
                json::json_in(text, version, encoding, &mut scratch.json)?;
                put_text(text, out)?;
            }
            Kind::Jsonb => {
                let [jsonb_version] = m.bytes()?;
                if jsonb_version != JSONB_VERSION {
                    return Err(ValueError::new(
                        "XX000",
                        format!("unsupported jsonb version number {jsonb_version}"),
                    ));
                }
                let text = m.text(settings)?;
                let value = jsonb::jsonb_in(text, version, encoding, &mut scratch.jsonb)?;
                out.put_varlena(value);
            }
            Kind::Enum(ref labels) => {
                let label = m.text(settings)?;
                out.put_fixed(&labels.enum_in(label)?.to_le_bytes());
            }
            Kind::Inet | Kind::Cidr | Kind::Bits(_) | Kind::Array(_) => {
                unreachable!(
                    "the plan leaves binary input of {} to the server",
                    self.name()
                )
            }
        }
        Ok(())
    }
}

/// Puts a value of fixed length, if the message ends behind it.
#[inline]
fn put<const N: usize>(
    value: [u8; N],
    message: &Message<'_>,
    out: &mut TupleBuilder,
) -> Result<(), Box<ValueError>> {
    message.end()?;
    out.put_fixed(&value);
    Ok(())
}
