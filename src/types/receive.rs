//! Fields of COPY's binary format to datums: the receive function of each native type.
//!
//! Numbers have their high byte first. What a value must be is checked where the input functions
//! check it; here stands how its bytes are read. Text is in the client's encoding, which
//! is UTF8 in every session of ours, whatever the option ENCODING says.
//!
//! PostgreSQL: the types' receive functions; `src/backend/libpq/pqformat.c`.

use super::{
    Encoder, Kind, Scratch, Settings, Sink, array, bits, character, datetime, json, jsonb, network,
    numeric, put_text,
};
use crate::error::{Error, ValueError};
use byteorder::{BigEndian, ReadBytesExt};
use pgformat::datum::datetime::Interval;
use pgformat::datum::network::Address;

/// The version that leads a jsonb.
const JSONB_VERSION: u8 = 1;

/// A field, or an element of an array, that is read from its front.
#[derive(Debug)]
pub(super) struct Message<'a> {
    left: &'a [u8],
    /// The element's number in its array, from 1.
    element: Option<usize>,
}

/// `pq_copymsgbytes`
#[cold]
fn insufficient() -> Box<ValueError> {
    ValueError::new("08P01", "insufficient data left in message")
}

impl<'a> Message<'a> {
    /// `pq_getmsgbyte`
    #[inline]
    pub(super) fn byte(&mut self) -> Result<u8, Box<ValueError>> {
        let byte = self.left.read_u8();
        byte.map_err(|_| ValueError::new("08P01", "no data left in message"))
    }

    /// `pq_getmsgint` of two bytes.
    #[inline]
    pub(super) fn int2(&mut self) -> Result<i16, Box<ValueError>> {
        self.left
            .read_i16::<BigEndian>()
            .map_err(|_| insufficient())
    }

    /// `pq_getmsgint` of four bytes.
    #[inline]
    pub(super) fn int4(&mut self) -> Result<i32, Box<ValueError>> {
        self.left
            .read_i32::<BigEndian>()
            .map_err(|_| insufficient())
    }

    /// `pq_getmsgint64`
    #[inline]
    fn int8(&mut self) -> Result<i64, Box<ValueError>> {
        self.left
            .read_i64::<BigEndian>()
            .map_err(|_| insufficient())
    }

    /// `pq_getmsgbytes`
    #[inline]
    fn bytes<const N: usize>(&mut self) -> Result<[u8; N], Box<ValueError>> {
        let (bytes, rest) = self.left.split_first_chunk().ok_or_else(insufficient)?;
        self.left = rest;
        Ok(*bytes)
    }

    /// `pq_copymsgbytes`
    #[inline]
    pub(super) fn slice(&mut self, len: usize) -> Result<&'a [u8], Box<ValueError>> {
        let (bytes, rest) = self.left.split_at_checked(len).ok_or_else(insufficient)?;
        self.left = rest;
        Ok(bytes)
    }

    /// An array's next element, of this number from 1; `None` is null.
    ///
    /// PostgreSQL: `src/backend/utils/adt/arrayfuncs.c`, `ReadArrayBinary`.
    pub(super) fn element(&mut self, number: usize) -> Result<Option<Self>, Box<ValueError>> {
        let len = self.int4()?;
        if len == -1 {
            return Ok(None);
        }
        let left = usize::try_from(len).ok();
        let left = left.and_then(|len| self.left.split_at_checked(len));
        let Some((left, rest)) = left else {
            return Err(ValueError::new(
                "22P03",
                "insufficient data left in message",
            ));
        };
        self.left = rest;
        Ok(Some(Message {
            left,
            element: Some(number),
        }))
    }

    /// All that is left.
    #[inline]
    fn rest(&mut self) -> &'a [u8] {
        std::mem::take(&mut self.left)
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
        if self.left.is_empty() {
            return Ok(());
        }
        Err(match self.element {
            None => ValueError::new("22P03", "incorrect binary data format"),
            Some(number) => ValueError::new(
                "22P03",
                format!("improper binary format in array element {number}"),
            ),
        })
    }
}

impl Encoder {
    /// Puts the next attribute of the row under construction from a binary field that is not
    /// null.
    ///
    /// # Errors
    /// What the type's receive function says of such a field; nothing has been put then.
    #[inline]
    pub fn receive(
        &self,
        field: &[u8],
        scratch: &mut Scratch,
        settings: &Settings,
        out: &mut impl Sink,
    ) -> Result<(), Box<ValueError>> {
        let message = Message {
            left: field,
            element: None,
        };
        self.receive_message(message, scratch, settings, out)
    }

    /// Puts what the server itself sent for a value of the type.
    ///
    /// # Errors
    /// `08P01` when it is none.
    pub fn receive_sent(
        &self,
        sent: &[u8],
        scratch: &mut Scratch,
        settings: &Settings,
        out: &mut impl Sink,
    ) -> Result<(), Error> {
        self.receive(sent, scratch, settings, out).map_err(|error| {
            let message = format!("the server sent a malformed value: {}", error.message);
            Error::environment("08P01", message)
        })
    }

    /// Puts the next value from a field or an element.
    #[inline]
    pub(super) fn receive_message(
        &self,
        mut message: Message<'_>,
        scratch: &mut Scratch,
        settings: &Settings,
        out: &mut impl Sink,
    ) -> Result<(), Box<ValueError>> {
        let (version, encoding) = (settings.version, settings.encoding);
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
                if let Some(plain) = numeric::plain_recv(m.left, typmod) {
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
            Kind::Inet => put_network(network::network_recv(m, false)?, m, out)?,
            Kind::Cidr => put_network(network::network_recv(m, true)?, m, out)?,
            Kind::Bits(length) => {
                let value = bits::bit_recv(m, length, &mut scratch.text)?;
                m.end()?;
                out.put_varlena(value);
            }
            Kind::Array(ref array) => {
                let buffers = scratch.array.get_or_insert_default();
                let value = array::array_recv(m, array, settings, buffers)?;
                m.end()?;
                out.put_varlena(value);
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
    out: &mut impl Sink,
) -> Result<(), Box<ValueError>> {
    message.end()?;
    out.put_fixed(&value);
    Ok(())
}

/// Puts an address, if the message ends behind it.
fn put_network(
    value: Address,
    message: &Message<'_>,
    out: &mut impl Sink,
) -> Result<(), Box<ValueError>> {
    message.end()?;
    out.put_varlena(value.payload());
    Ok(())
}
