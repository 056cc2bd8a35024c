//! Fields to datums: one file per type family, and here the one table that lists them all.
//!
//! In the plan each column is resolved to an [`Encoder`] once; in pack [`Encoder::encode`] turns
//! each field of that column into the attribute's bytes, right in the tuple under construction.
//! What a field means, and the error when it means nothing, is what the input function of the
//! server's version says.
//!
//! Enums, domains, arrays and types that extensions add are known to the catalogs alone: a
//! [`TypeDescription`] tells of them, and [`Encoder::of_type`] makes the encoder.
//!
//! Fields come in the database's encoding and are valid in it. White space is that of ASCII, as
//! isspace() has it in UTF-8 and in the C locale.

#![expect(
    clippy::unnecessary_box_returns,
    reason = "values are refused rarely: a result stays small when its error is boxed"
)]

pub mod datetime;

mod array;
mod bits;
mod boolean;
mod bytea;
mod character;
mod description;
mod digits;
mod enumeration;
mod float;
mod integer;
mod json;
mod jsonb;
mod network;
mod numeric;
mod output;
mod receive;
#[cfg(test)]
mod tests;
mod uuid;
pub mod wire;
mod wording;

use crate::error::ValueError;
use crate::record::Encoding;
use datetime::DateTimeSettings;
pub use description::{DomainDescription, EnumDescription, Label, TypeDescription, TypeKind};
use pgformat::datum::{type_oid, varlena};
use pgformat::heap::tuple::TupleBuilder;
use pgformat::ids::Oid;
use pgformat::version::MajorVersion;
use std::ops::Range;
use std::sync::Arc;

/// What the meaning of fields depends on besides their type.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The target server's version.
    pub version: MajorVersion,
    /// The database's encoding: lengths of text, clipped names and the `\u` escapes of jsonb
    /// depend on it.
    pub encoding: Encoding,
    /// The setting array_nulls: an element `NULL` without quotes is null.
    pub array_nulls: bool,
    /// For the date/time family.
    pub datetime: DateTimeSettings,
}

/// Storage that the encoders keep from value to value; one for each thread.
#[derive(Debug, Default)]
pub struct Scratch {
    text: Vec<u8>,
    numeric: numeric::Buffers,
    json: json::Buffers,
    jsonb: jsonb::Buffers,
    array: Option<Box<array::Buffers>>,
}

impl Scratch {
    /// Without storage yet.
    pub fn new() -> Scratch {
        Scratch::default()
    }
}

/// Where an encoder puts values: a tuple, or an array's elements.
pub trait Sink {
    /// The next value, of fixed length, is these bytes.
    fn put_fixed<const N: usize>(&mut self, bytes: &[u8; N]);

    /// The next value is a varlena with this payload.
    fn put_varlena(&mut self, payload: &[u8]);

    /// The same, of the first `len` of these bytes.
    #[inline(always)]
    fn put_short_varlena<const N: usize>(&mut self, bytes: &[u8; N], len: usize) {
        self.put_varlena(&bytes[..len]);
    }
}

impl Sink for TupleBuilder {
    #[inline(always)]
    fn put_fixed<const N: usize>(&mut self, bytes: &[u8; N]) {
        TupleBuilder::put_fixed(self, bytes);
    }

    #[inline(always)]
    fn put_varlena(&mut self, payload: &[u8]) {
        TupleBuilder::put_varlena(self, payload);
    }

    #[inline(always)]
    fn put_short_varlena<const N: usize>(&mut self, bytes: &[u8; N], len: usize) {
        TupleBuilder::put_short_varlena(self, bytes, len);
    }
}

/// How the fields of one column become attributes: a type and its modifier.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Encoder {
    kind: Kind,
    /// The domain that refuses nulls.
    not_null_domain: Option<Arc<str>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Kind {
    Bool,
    Bytea,
    Char,
    Name,
    Int2,
    Int4,
    Int8,
    Oid,
    /// text, and varchar and bpchar without a length
    Text,
    Varchar {
        max_chars: u32,
    },
    Bpchar {
        max_chars: u32,
    },
    Json,
    Jsonb,
    Float4,
    Float8,
    Numeric(Option<numeric::Typmod>),
    Uuid,
    Date,
    Time {
        typmod: i32,
    },
    Timetz {
        typmod: i32,
    },
    Timestamp {
        typmod: i32,
    },
    Timestamptz {
        typmod: i32,
    },
    Interval {
        typmod: i32,
    },
    Inet,
    Cidr,
    Bits(bits::Length),
    Enum(Arc<enumeration::Labels>),
    Array(Arc<array::ArrayType>),
}

/// Every type of the core that is built natively, beside arrays of them.
pub const NATIVE_TYPES: [Oid; 27] = [
    type_oid::BOOL,
    type_oid::BYTEA,
    type_oid::CHAR,
    type_oid::NAME,
    type_oid::INT8,
    type_oid::INT2,
    type_oid::INT4,
    type_oid::TEXT,
    type_oid::OID,
    type_oid::JSON,
    type_oid::FLOAT4,
    type_oid::FLOAT8,
    type_oid::BPCHAR,
    type_oid::VARCHAR,
    type_oid::DATE,
    type_oid::TIME,
    type_oid::TIMESTAMP,
    type_oid::TIMESTAMPTZ,
    type_oid::INTERVAL,
    type_oid::TIMETZ,
    type_oid::NUMERIC,
    type_oid::UUID,
    type_oid::JSONB,
    type_oid::INET,
    type_oid::CIDR,
    type_oid::BIT,
    type_oid::VARBIT,
];

/// The longest field that a varlena can hold as it stands.
const MAX_PAYLOAD_BYTES: usize = varlena::MAX_BYTES - varlena::HEADER_BYTES;

impl Encoder {
    /// Its name, for people: the kind of value that it makes, as `int4` or `varchar`.
    pub fn name(&self) -> String {
        let kind = format!("{:?}", self.kind);
        let end = kind.find(|c: char| !c.is_ascii_alphanumeric());
        kind[..end.unwrap_or(kind.len())].to_ascii_lowercase()
    }

    /// The encoder of a column of this type (`atttypid`) and modifier (`atttypmod`); `None` when
    /// the type is not built natively. Domains are the caller's to look through.
    pub fn resolve(type_oid: Oid, typmod: i32, _settings: &Settings) -> Option<Encoder> {
        let kind = match type_oid {
            type_oid::BOOL => Kind::Bool,
            type_oid::BYTEA => Kind::Bytea,
            type_oid::CHAR => Kind::Char,
            type_oid::NAME => Kind::Name,
            type_oid::INT8 => Kind::Int8,
            type_oid::INT2 => Kind::Int2,
            type_oid::INT4 => Kind::Int4,
            type_oid::TEXT => Kind::Text,
            type_oid::OID => Kind::Oid,
            type_oid::JSON => Kind::Json,
            type_oid::FLOAT4 => Kind::Float4,
            type_oid::FLOAT8 => Kind::Float8,
            type_oid::BPCHAR => match character::max_chars(typmod) {
                Some(max_chars) => Kind::Bpchar { max_chars },
                None => Kind::Text,
            },
            type_oid::VARCHAR => match character::max_chars(typmod) {
                Some(max_chars) => Kind::Varchar { max_chars },
                None => Kind::Text,
            },
            type_oid::DATE => Kind::Date,
            type_oid::TIME => Kind::Time { typmod },
            type_oid::TIMESTAMP => Kind::Timestamp { typmod },
            type_oid::TIMESTAMPTZ => Kind::Timestamptz { typmod },
            type_oid::INTERVAL => Kind::Interval { typmod },
            type_oid::TIMETZ => Kind::Timetz { typmod },
            type_oid::NUMERIC => Kind::Numeric(numeric::Typmod::new(typmod)),
            type_oid::UUID => Kind::Uuid,
            type_oid::JSONB => Kind::Jsonb,
            type_oid::INET => Kind::Inet,
            type_oid::CIDR => Kind::Cidr,
            type_oid::BIT => Kind::Bits(bits::Length::new(typmod, false)),
            type_oid::VARBIT => Kind::Bits(bits::Length::new(typmod, true)),
            _ => return None,
        };
        Some(Encoder {
            kind,
            not_null_domain: None,
        })
    }

    /// The encoder of a column of this type and modifier. What it makes of a domain has still to
    /// be held against the domain's CHECK constraints.
    ///
    /// # Errors
    /// Why there is none, as a phrase: "its type is not native".
    pub fn of_type(
        description: &TypeDescription,
        typmod: i32,
        settings: &Settings,
    ) -> Result<Encoder, String> {
        let name = &description.name;
        let kind = match &description.kind {
            TypeKind::Base
                if description.oid == type_oid::JSONB
                    && matches!(settings.encoding, Encoding::Euc(_)) =>
            {
                // Its escapes of Unicode are converted.
                let encoding = settings.encoding.name();
                return Err(format!("type {name} is not native in {encoding}"));
            }
            TypeKind::Base => {
                return Encoder::resolve(description.oid, typmod, settings)
                    .ok_or_else(|| format!("type {name} is not native"));
            }
            TypeKind::LikeText => Kind::Text,
            TypeKind::Enum(labels) if labels.has_uncommitted => {
                return Err(format!(
                    "enum {name} has labels that this transaction may have added"
                ));
            }
            // The catalogs are read in UTF-8.
            TypeKind::Enum(labels)
                if settings.encoding != Encoding::Utf8
                    && labels.labels.iter().any(|label| !label.name.is_ascii()) =>
            {
                return Err(format!("enum {name} has labels that are not ASCII"));
            }
            TypeKind::Enum(labels) => Kind::Enum(Arc::new(enumeration::Labels::new(name, labels))),
            TypeKind::Domain(domain) => {
                let mut encoder = Encoder::of_type(&domain.base, domain.typmod, settings)?;
                // The outermost domain is the one that speaks.
                if domain.not_null || encoder.not_null_domain.is_some() {
                    encoder.not_null_domain = Some(name.as_str().into());
                }
                return Ok(encoder);
            }
            TypeKind::Array(element) => Kind::Array(Arc::new(array::ArrayType {
                element_type: element.oid,
                element: Encoder::of_type(element.as_element()?, typmod, settings)?,
                layout: element.layout,
                delimiter: element.delimiter,
            })),
        };
        Ok(Encoder {
            kind,
            not_null_domain: None,
        })
    }

    /// Whether a null in the input is refused by the type, as a domain may do.
    #[inline]
    pub fn refuses_null(&self) -> bool {
        self.not_null_domain.is_some()
    }

    /// Says what the type says of a null in the input.
    ///
    /// # Errors
    /// 23502 of a domain that is NOT NULL.
    ///
    /// PostgreSQL: `src/backend/utils/adt/domains.c`, `domain_check_input`.
    pub fn check_null(&self) -> Result<(), Box<ValueError>> {
        match &self.not_null_domain {
            None => Ok(()),
            Some(domain) => Err(ValueError::new(
                "23502",
                format!("domain {domain} does not allow null values"),
            )),
        }
    }

    /// Puts the next attribute from `field` of `data`: as [`Encoder::encode`], and faster where
    /// it helps to look at the bytes before a field.
    ///
    /// # Errors
    /// As [`Encoder::encode`].
    #[inline(always)]
    pub fn encode_at(
        &self,
        data: &[u8],
        field: Range<usize>,
        scratch: &mut Scratch,
        settings: &Settings,
        out: &mut TupleBuilder,
    ) -> Result<(), Box<ValueError>> {
        let version = settings.version;
        match self.kind {
            Kind::Int4 => {
                let value = integer::int_at::<false>(data, field, &integer::INTEGER, version)?;
                out.put_fixed(&(value as i32).to_le_bytes());
            }
            Kind::Int8 => {
                let value = integer::int_at::<true>(data, field, &integer::BIGINT, version)?;
                out.put_fixed(&value.to_le_bytes());
            }
            Kind::Numeric(typmod) => match numeric::plain_at(data, field.clone(), typmod) {
                Some(plain) => out.put_short_varlena(&plain.bytes, plain.len),
                None => return self.encode(&data[field], scratch, settings, out),
            },
            Kind::Text => put_text_at(data, field, out)?,
            Kind::Varchar { max_chars } if field.len() <= max_chars as usize => {
                put_text_at(data, field, out)?;
            }
            Kind::Bpchar { max_chars } => {
                let chars = max_chars as usize;
                if chars <= 16
                    && let Some(filled) =
                        character::short_bpchar::<16>(data, field.clone(), max_chars)
                {
                    out.put_short_varlena(&filled, chars);
                } else if let Some(filled) =
                    character::short_bpchar::<64>(data, field.clone(), max_chars)
                {
                    out.put_short_varlena(&filled, chars);
                } else {
                    return self.encode(&data[field], scratch, settings, out);
                }
            }
            _ => return self.encode(&data[field], scratch, settings, out),
        }
        Ok(())
    }

    /// Puts the next attribute of the row under construction from a field that is not null.
    ///
    /// # Errors
    /// What the type's input function says of such a field; nothing has been put then.
    #[inline]
    pub fn encode(
        &self,
        field: &[u8],
        scratch: &mut Scratch,
        settings: &Settings,
        out: &mut impl Sink,
    ) -> Result<(), Box<ValueError>> {
        let (version, encoding) = (settings.version, settings.encoding);
        match self.kind {
            Kind::Int4 => {
                let value = integer::int_in(field, &integer::INTEGER, version)?;
                out.put_fixed(&(value as i32).to_le_bytes());
            }
            Kind::Int8 => {
                let value = integer::int_in(field, &integer::BIGINT, version)?;
                out.put_fixed(&value.to_le_bytes());
            }
            Kind::Text => put_text(field, out)?,
            Kind::Varchar { max_chars } => {
                put_text(character::varchar_in(field, max_chars, encoding)?, out)?;
            }
            Kind::Bpchar { max_chars } => {
                let value = character::bpchar_in(field, max_chars, encoding, &mut scratch.text)?;
                put_text(value, out)?;
            }
            Kind::Numeric(typmod) => match numeric::plain(field, typmod) {
                Some(plain) => out.put_short_varlena(&plain.bytes, plain.len),
                None => {
                    out.put_varlena(numeric::numeric_in(
                        field,
                        typmod,
                        version,
                        &mut scratch.numeric,
                    )?);
                }
            },
            Kind::Bool => out.put_fixed(&[boolean::bool_in(field)?.into()]),
            Kind::Int2 => {
                let value = integer::int_in(field, &integer::SMALLINT, version)?;
                out.put_fixed(&(value as i16).to_le_bytes());
            }
            Kind::Float4 => out.put_fixed(&float::float4_in(field, version)?.to_le_bytes()),
            Kind::Float8 => out.put_fixed(&float::float8_in(field)?.to_le_bytes()),
            Kind::Date => {
                let value = datetime::date_in(field, &settings.datetime)?;
                out.put_fixed(&value.to_le_bytes());
            }
            Kind::Timestamp { typmod } => {
                let value = datetime::timestamp_in(field, typmod, &settings.datetime)?;
                out.put_fixed(&value.to_le_bytes());
            }
            Kind::Timestamptz { typmod } => {
                let value = datetime::timestamptz_in(field, typmod, &settings.datetime)?;
                out.put_fixed(&value.to_le_bytes());
            }
            Kind::Uuid => out.put_fixed(&uuid::uuid_in(field)?),
            Kind::Bytea => out.put_varlena(bytea::bytea_in(
                field,
                settings.encoding,
                &mut scratch.text,
            )?),
            Kind::Json => {
                json::json_in(field, version, encoding, &mut scratch.json)?;
                put_text(field, out)?;
            }
            Kind::Jsonb => out.put_varlena(jsonb::jsonb_in(
                field,
                version,
                encoding,
                &mut scratch.jsonb,
            )?),
            Kind::Oid => out.put_fixed(&integer::oid_in(field, version)?.to_le_bytes()),
            Kind::Char => out.put_fixed(&[character::char_in(field, version)]),
            Kind::Name => out.put_fixed(&character::name_in(field, encoding)),
            Kind::Time { typmod } => {
                let value = datetime::time_in(field, typmod, &settings.datetime)?;
                out.put_fixed(&value.to_le_bytes());
            }
            Kind::Timetz { typmod } => {
                let (micros, west_secs) = datetime::timetz_in(field, typmod, &settings.datetime)?;
                out.put_fixed(&datetime::timetz_bytes(micros, west_secs));
            }
            Kind::Interval { typmod } => {
                let value = datetime::interval_in(field, typmod, &settings.datetime)?;
                out.put_fixed(&datetime::interval_bytes(value));
            }
            Kind::Inet => out.put_varlena(network::network_in(field, false)?.payload()),
            Kind::Cidr => out.put_varlena(network::network_in(field, true)?.payload()),
            Kind::Bits(length) => {
                out.put_varlena(bits::bit_in(field, length, encoding, &mut scratch.text)?);
            }
            Kind::Enum(ref labels) => out.put_fixed(&labels.enum_in(field)?.to_le_bytes()),
            Kind::Array(ref array) => {
                let buffers = scratch.array.get_or_insert_default();
                out.put_varlena(array::array_in(field, array, settings, buffers)?);
            }
        }
        Ok(())
    }
}

/// Puts the text `field` of `data` as it stands; a short one without a branch on its length.
#[inline]
fn put_text_at(
    data: &[u8],
    field: Range<usize>,
    out: &mut TupleBuilder,
) -> Result<(), Box<ValueError>> {
    /// Bytes that are copied of any short text.
    const WIDE: usize = 64;
    if field.len() <= WIDE
        && let Some(wide) = data[field.start..].first_chunk::<WIDE>()
    {
        out.put_short_varlena(wide, field.len());
        return Ok(());
    }
    put_text(&data[field], out)
}

/// Puts text as it stands, if a varlena can hold so much.
#[inline]
fn put_text(text: &[u8], out: &mut impl Sink) -> Result<(), Box<ValueError>> {
    if text.len() > MAX_PAYLOAD_BYTES {
        let wanted = text.len() + varlena::HEADER_BYTES;
        return Err(wording::invalid_allocation(wanted as u64));
    }
    out.put_varlena(text);
    Ok(())
}
