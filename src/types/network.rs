//! inet and cidr.
//!
//! ```text
//! payload  family 1 (2 is IPv4, 3 IPv6) | bits of the netmask 1 | address 4 or 16
//! ```
//!
//! PostgreSQL: `src/backend/utils/adt/network.c` (`network_in`, `network_recv`), `inet_net_pton.c`.

use super::receive::Message;
use super::wording::invalid_syntax;
use crate::error::ValueError;
use pgformat::datum::network::{Address, FAMILY_V4, FAMILY_V6, V4_BYTES, V6_BYTES};

/// Reads an inet, or a cidr, whose address has no bit behind the netmask.
pub(super) fn network_in(field: &[u8], is_cidr: bool) -> Result<Address, Box<ValueError>> {
    let type_name = if is_cidr { "cidr" } else { "inet" };
    let parsed = if field.contains(&b':') {
        v6(field).map(|(bytes, bits)| Address::v6(bytes, bits))
    } else {
        let parsed = if is_cidr {
            cidr_v4(field)
        } else {
            inet_v4(field)
        };
        parsed.map(|(bytes, bits)| Address::v4(bytes, bits))
    };
    let address = parsed.ok_or_else(|| invalid_syntax(type_name, field))?;
    if is_cidr && !address.is_network() {
        let shown = super::wording::shown(field);
        return Err(
            ValueError::new("22P02", format!("invalid cidr value: \"{shown}\""))
                .with_detail("Value has bits set to right of mask."),
        );
    }
    Ok(address)
}

/// Receives an inet or a cidr: family, bits of the netmask, a byte that does not matter, length
/// and bytes of the address.
pub(super) fn network_recv(
    message: &mut Message<'_>,
    is_cidr: bool,
) -> Result<Address, Box<ValueError>> {
    let type_name = if is_cidr { "cidr" } else { "inet" };
    let invalid = |what: &str| {
        let message = format!("invalid {what}external \"{type_name}\" value");
        ValueError::new("22P03", message)
    };
    let address_bytes = match message.byte()? {
        FAMILY_V4 => V4_BYTES,
        FAMILY_V6 => V6_BYTES,
        _ => return Err(invalid("address family in ")),
    };
    let bits = message.byte()?;
    if usize::from(bits) > address_bytes * 8 {
        return Err(invalid("bits in "));
    }
    message.byte()?;
    if usize::from(message.byte()?) != address_bytes {
        return Err(invalid("length in "));
    }
    let mut bytes = [0; V6_BYTES];
    for byte in &mut bytes[..address_bytes] {
        *byte = message.byte()?;
    }
    let address = match bytes.first_chunk() {
        Some(v4) if address_bytes == V4_BYTES => Address::v4(*v4, bits),
        _ => Address::v6(bytes, bits),
    };
    if is_cidr && !address.is_network() {
        return Err(invalid("").with_detail("Value has bits set to right of mask."));
    }
    Ok(address)
}

/// A text with a cursor; the end reads as zero.
struct Cursor<'a> {
    text: &'a [u8],
    pos: usize,
}

impl Cursor<'_> {
    fn peek(&self) -> u8 {
        self.text.get(self.pos).copied().unwrap_or(0)
    }

    fn next(&mut self) -> u8 {
        let byte = self.peek();
        self.pos += 1;
        byte
    }

    /// A decimal octet.
    fn octet(&mut self) -> Option<u8> {
        let mut value = 0_u32;
        while self.peek().is_ascii_digit() {
            value = value * 10 + u32::from(self.next() - b'0');
            if value > 255 {
                return None;
            }
        }
        Some(value as u8)
    }

    /// The bits after a slash, up to the end of the text; -1 where neither stands here. They are
    /// added up as the server's int does.
    fn bits(&mut self, has_octets: bool) -> Option<i32> {
        let mut bits = -1;
        let after = self.text.get(self.pos + 1).copied().unwrap_or(0);
        if self.peek() == b'/' && after.is_ascii_digit() && has_octets {
            self.pos += 1;
            bits = 0_i32;
            while self.peek().is_ascii_digit() {
                let digit = i32::from(self.next() - b'0');
                bits = bits.wrapping_mul(10).wrapping_add(digit);
            }
            if bits > 32 {
                return None;
            }
        }
        (self.pos >= self.text.len()).then_some(bits)
    }
}

/// The octets of an address and the bits of its mask.
type V4 = ([u8; V4_BYTES], u8);

/// An IPv4 address with bits, which may be left out behind four octets. A dot may end it.
fn inet_v4(field: &[u8]) -> Option<V4> {
    let mut cursor = Cursor {
        text: field,
        pos: 0,
    };
    let mut address = [0; V4_BYTES];
    let mut octets = 0;
    while cursor.peek().is_ascii_digit() {
        let octet = cursor.octet()?;
        *address.get_mut(octets)? = octet;
        octets += 1;
        match cursor.peek() {
            0 | b'/' => break,
            b'.' => cursor.pos += 1,
            _ => return None,
        }
    }
    let mut bits = cursor.bits(octets > 0)?;
    if bits == -1 {
        if octets < V4_BYTES {
            return None;
        }
        bits = 32;
    }
    if octets == 0 || bits / 8 > octets as i32 {
        return None;
    }
    Some((address, u8::try_from(bits).ok()?))
}

/// An IPv4 network: decimal octets or hexadecimal digits; without bits, those of its class.
fn cidr_v4(field: &[u8]) -> Option<V4> {
    let mut cursor = Cursor {
        text: field,
        pos: 0,
    };
    let mut address = [0; V4_BYTES];
    let mut octets = 0;
    match *field {
        [b'0', b'x' | b'X', digit, ..] if digit.is_ascii_hexdigit() => {
            cursor.pos = 2;
            let mut nibbles = 0;
            while let Some(nibble) = char::from(cursor.peek()).to_digit(16) {
                let place = address.get_mut(nibbles / 2)?;
                *place |= (nibble as u8) << if nibbles % 2 == 0 { 4 } else { 0 };
                nibbles += 1;
                cursor.pos += 1;
            }
            octets = nibbles.div_ceil(2);
        }
        [b'0'..=b'9', ..] => loop {
            let octet = cursor.octet()?;
            *address.get_mut(octets)? = octet;
            octets += 1;
            match cursor.peek() {
                0 | b'/' => break,
                b'.' => cursor.pos += 1,
                _ => return None,
            }
            if !cursor.peek().is_ascii_digit() {
                return None;
            }
        },
        _ => return None,
    }
    let mut bits = cursor.bits(octets > 0)?;
    if bits == -1 {
        bits = match address[0] {
            240.. => 32,
            224.. => 8,
            192.. => 24,
            128.. => 16,
            _ => 8,
        };
        bits = bits.max(octets as i32 * 8);
        // A class D network.
        if bits == 8 && address[0] == 224 {
            bits = 4;
        }
    }
    Some((address, u8::try_from(bits).ok()?))
}

/// Bits up to the end of the text, without zeros in front.
fn v6_bits(text: &[u8]) -> Option<u8> {
    if text.is_empty() || text.len() > 3 || text.len() > 1 && text[0] == b'0' {
        return None;
    }
    let bits = text.iter().try_fold(0_u32, |bits, digit| {
        char::from(*digit).to_digit(10).map(|d| bits * 10 + d)
    })?;
    u8::try_from(bits).ok().filter(|&bits| bits <= 128)
}

/// The IPv4 address and the bits that end an IPv6 address. Octets may be missing.
fn v4_in_v6(text: &[u8]) -> Option<([u8; V4_BYTES], Option<u8>)> {
    let mut address = [0; V4_BYTES];
    let mut octets = 0;
    let mut value = 0_u32;
    let mut digits = 0;
    for (at, &byte) in text.iter().enumerate() {
        match byte {
            b'0'..=b'9' => {
                if digits > 0 && value == 0 {
                    return None;
                }
                digits += 1;
                value = value * 10 + u32::from(byte - b'0');
                if value > 255 {
                    return None;
                }
            }
            b'.' | b'/' => {
                *address.get_mut(octets)? = value as u8;
                octets += 1;
                if byte == b'/' {
                    return Some((address, Some(v6_bits(&text[at + 1..])?)));
                }
                (value, digits) = (0, 0);
            }
            _ => return None,
        }
    }
    if digits == 0 {
        return None;
    }
    *address.get_mut(octets)? = value as u8;
    Some((address, None))
}

/// An IPv6 address, with bits or without.
fn v6(field: &[u8]) -> Option<([u8; V6_BYTES], u8)> {
    let mut address = [0; V6_BYTES];
    let mut end = 0;
    // Where `::` stands.
    let mut gap = None;
    let mut bits = None;
    let mut value = 0_u32;
    let mut digits = 0;
    let mut pos = 0;
    if field.first() == Some(&b':') {
        if field.get(1) != Some(&b':') {
            return None;
        }
        pos = 1;
    }
    let mut token = pos;
    let put = |value: u32, address: &mut [u8; V6_BYTES], end: &mut usize| {
        let place = address.get_mut(*end..*end + 2)?;
        place.copy_from_slice(&(value as u16).to_be_bytes());
        *end += 2;
        Some(())
    };
    while let Some(&byte) = field.get(pos) {
        pos += 1;
        if let Some(digit) = char::from(byte).to_digit(16) {
            value = value << 4 | digit;
            digits += 1;
            if digits > 4 {
                return None;
            }
            continue;
        }
        match byte {
            b':' => {
                token = pos;
                if digits == 0 {
                    if gap.is_some() {
                        return None;
                    }
                    gap = Some(end);
                    continue;
                }
                if pos == field.len() {
                    return None;
                }
                put(value, &mut address, &mut end)?;
                (value, digits) = (0, 0);
            }
            b'.' => {
                let place = address.get_mut(end..end + V4_BYTES)?;
                let (octets, v4_bits) = v4_in_v6(&field[token..])?;
                place.copy_from_slice(&octets);
                end += V4_BYTES;
                bits = v4_bits;
                digits = 0;
                break;
            }
            b'/' => {
                bits = Some(v6_bits(&field[pos..])?);
                break;
            }
            _ => return None,
        }
    }
    if digits > 0 {
        put(value, &mut address, &mut end)?;
    }
    if let Some(gap) = gap {
        if end == V6_BYTES {
            return None;
        }
        let moved = end - gap;
        address.copy_within(gap..end, V6_BYTES - moved);
        address[gap..V6_BYTES - moved].fill(0);
        end = V6_BYTES;
    }
    (end == V6_BYTES).then_some((address, bits.unwrap_or(128)))
}
