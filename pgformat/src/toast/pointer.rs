//! The TOAST pointer: what stands in a row for a value stored out of line.
//!
//! ```text
//! 0x01 | tag 18 | va_rawsize 4 | va_extinfo 4 | va_valueid 4 | va_toastrelid 4
//! ```
//!
//! PostgreSQL: `src/include/varatt.h` (before 16: `postgres.h`), `varatt_external`.

use crate::datum::varlena;
use crate::error::FormatError;
use crate::ids::Oid;

/// Bytes of a pointer on disk (`TOAST_POINTER_SIZE`).
pub const POINTER_BYTES: usize = 18;

/// Where va_valueid lies in the pointer.
pub const VALUE_ID_POS: usize = 10;

/// The second byte of a pointer to a value on disk (`VARTAG_ONDISK`).
const TAG_ON_DISK: u8 = 18;

/// Bits of va_extinfo and of a compressed value's second word that are a size; the two above
/// are the compression method.
pub(super) const SIZE_BITS: u32 = 30;
const SIZE_MASK: u32 = (1 << SIZE_BITS) - 1;

/// The fields of a pointer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ToastPointer {
    /// Bytes of the plain value, with a 4-byte header.
    pub raw_bytes: u32,
    /// Bytes stored (low 30 bits) and compression method (high 2 bits).
    pub ext_info: u32,
    /// chunk_id of the value's chunks.
    pub value_id: Oid,
    /// pg_class.oid of the TOAST table.
    pub toast_relid: Oid,
}

impl ToastPointer {
    /// Bytes of the value as stored in its chunks, without a header.
    pub fn stored_bytes(&self) -> usize {
        (self.ext_info & SIZE_MASK) as usize
    }

    /// The method that the chunks are compressed with (0 pglz, 1 lz4), if they are.
    pub fn compression_id(&self) -> Option<u8> {
        // VARATT_EXTERNAL_IS_COMPRESSED: what is stored is shorter than the raw value.
        (self.stored_bytes() + varlena::HEADER_BYTES < self.raw_bytes as usize)
            .then_some((self.ext_info >> SIZE_BITS) as u8)
    }

    /// The bytes on disk.
    pub fn to_bytes(&self) -> [u8; POINTER_BYTES] {
        let mut bytes = [0; POINTER_BYTES];
        bytes[0] = 1;
        bytes[1] = TAG_ON_DISK;
        bytes[2..6].copy_from_slice(&self.raw_bytes.to_le_bytes());
        bytes[6..10].copy_from_slice(&self.ext_info.to_le_bytes());
        bytes[10..14].copy_from_slice(&self.value_id.to_le_bytes());
        bytes[14..18].copy_from_slice(&self.toast_relid.to_le_bytes());
        bytes
    }

    /// Reads the bytes on disk.
    ///
    /// # Errors
    /// They are not a pointer to a value on disk.
    pub fn from_bytes(bytes: &[u8]) -> Result<ToastPointer, FormatError> {
        if bytes.len() < POINTER_BYTES || bytes[0] != 1 || bytes[1] != TAG_ON_DISK {
            return Err(FormatError {
                structure: "TOAST pointer",
                field: "va_tag",
                expected: "18 bytes that begin with 01 12".into(),
                found: format!(
                    "{} bytes: {:02x?}",
                    bytes.len(),
                    &bytes[..bytes.len().min(2)]
                ),
            });
        }
        let u32_at = |pos: usize| {
            u32::from_le_bytes([bytes[pos], bytes[pos + 1], bytes[pos + 2], bytes[pos + 3]])
        };
        Ok(ToastPointer {
            raw_bytes: u32_at(2),
            ext_info: u32_at(6),
            value_id: u32_at(10),
            toast_relid: u32_at(14),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pointer_is_18_bytes_without_alignment() {
        let pointer = ToastPointer {
            raw_bytes: 10_004,
            ext_info: 0x4000_1388,
            value_id: 16_400,
            toast_relid: 16_390,
        };
        let bytes = pointer.to_bytes();
        assert_eq!(
            bytes,
            [
                1, 18, 0x14, 0x27, 0, 0, 0x88, 0x13, 0, 0x40, 0x10, 0x40, 0, 0, 0x06, 0x40, 0, 0
            ]
        );
        assert_eq!(ToastPointer::from_bytes(&bytes), Ok(pointer));
        assert_eq!(
            (pointer.stored_bytes(), pointer.compression_id()),
            (5000, Some(1))
        );
        assert!(ToastPointer::from_bytes(&bytes[..17]).is_err());
        assert!(ToastPointer::from_bytes(&[3; 18]).is_err());
    }

    #[test]
    fn a_value_stored_whole_is_not_compressed() {
        let pointer = ToastPointer {
            raw_bytes: 3004,
            ext_info: 3000,
            value_id: 1,
            toast_relid: 2,
        };
        assert_eq!(pointer.compression_id(), None);
    }
}
