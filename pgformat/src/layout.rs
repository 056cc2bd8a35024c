//! How an attribute lies in a tuple: what `pg_attribute` says of its bytes.
//!
//! PostgreSQL: `src/include/catalog/pg_attribute.h` (attlen, attalign, attbyval, attstorage,
//! attcompression), `src/include/access/tupmacs.h`.

/// The strictest alignment of the platform (`MAXIMUM_ALIGNOF`), in bytes.
pub const MAXALIGN_BYTES: usize = 8;

/// Rounds a length or position up to a multiple of `align` (a power of two).
#[inline(always)]
pub const fn align_up(pos: usize, align: usize) -> usize {
    (pos + align - 1) & !(align - 1)
}

/// Rounds up to [`MAXALIGN_BYTES`].
#[inline(always)]
pub const fn maxalign(pos: usize) -> usize {
    align_up(pos, MAXALIGN_BYTES)
}

/// attlen: how long a value is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum AttrLen {
    /// Exactly so many bytes (1 to 64 for the types of the core).
    Fixed(u16),
    /// A varlena: a header of one or four bytes tells the length. attlen -1.
    Varlena,
    /// A C string with its NUL. attlen -2.
    CString,
}

impl AttrLen {
    /// From `pg_attribute.attlen`; `None` when it is none of the format's values.
    pub fn from_attlen(attlen: i16) -> Option<AttrLen> {
        match attlen {
            -1 => Some(AttrLen::Varlena),
            -2 => Some(AttrLen::CString),
            n if n > 0 => Some(AttrLen::Fixed(n as u16)),
            _ => None,
        }
    }
}

/// attstorage.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum Storage {
    /// `p`: always inline, never compressed, never with a short header.
    Plain,
    /// `e`: out of line, never compressed.
    External,
    /// `x`: compressed, then out of line.
    Extended,
    /// `m`: compressed, out of line only as the last resort.
    Main,
}

impl Storage {
    /// From `pg_attribute.attstorage`.
    pub fn from_char(c: u8) -> Option<Storage> {
        Some(match c {
            b'p' => Storage::Plain,
            b'e' => Storage::External,
            b'x' => Storage::Extended,
            b'm' => Storage::Main,
            _ => return None,
        })
    }
}

/// The method that compresses an attribute (attcompression, or default_toast_compression
/// where that is unset).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum Compression {
    /// `p`
    Pglz,
    /// `l`
    Lz4,
}

/// The layout of one attribute.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AttributeLayout {
    /// attlen.
    pub len: AttrLen,
    /// attalign in bytes: 1, 2, 4 or 8.
    pub align: u8,
    /// attbyval.
    pub by_value: bool,
    /// attstorage.
    pub storage: Storage,
    /// How values of it are compressed.
    pub compression: Compression,
}

impl AttributeLayout {
    /// attalign as bytes: `c`, `s`, `i`, `d` are 1, 2, 4, 8.
    pub fn align_from_char(c: u8) -> Option<u8> {
        Some(match c {
            b'c' => 1,
            b's' => 2,
            b'i' => 4,
            b'd' => 8,
            _ => return None,
        })
    }

    /// Whether a varlena of it may take a header of one byte.
    ///
    /// PostgreSQL: `VARLENA_ATT_IS_PACKABLE`.
    #[inline]
    pub fn is_packable(&self) -> bool {
        self.len == AttrLen::Varlena && self.storage != Storage::Plain
    }
}
