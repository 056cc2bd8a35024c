//! inet and cidr: their bytes, order and text.
//!
//! ```text
//! payload  family 1 (2 is IPv4, 3 IPv6) | bits of the netmask 1 | address 4 or 16
//! ```
//!
//! PostgreSQL: `src/include/utils/inet.h`, `src/backend/utils/adt/network.c`
//! (`network_cmp_internal`, `network_out`), `src/port/inet_net_ntop.c`.

use std::fmt::Write as _;

/// Bytes of an IPv4 address.
pub const V4_BYTES: usize = 4;
/// Bytes of an IPv6 address.
pub const V6_BYTES: usize = 16;

/// The family of IPv4 addresses (`PGSQL_AF_INET`).
pub const FAMILY_V4: u8 = 2;
/// The family of IPv6 addresses (`PGSQL_AF_INET6`).
pub const FAMILY_V6: u8 = 3;

/// An address with its netmask.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Address {
    payload: [u8; 2 + V6_BYTES],
    len: usize,
}

impl Address {
    /// An IPv4 address; bits up to 32.
    pub fn v4(address: [u8; V4_BYTES], bits: u8) -> Address {
        debug_assert!(bits <= 32);
        let mut payload = [0; 2 + V6_BYTES];
        payload[..2].copy_from_slice(&[FAMILY_V4, bits]);
        payload[2..2 + V4_BYTES].copy_from_slice(&address);
        Address {
            payload,
            len: 2 + V4_BYTES,
        }
    }

    /// An IPv6 address; bits up to 128.
    pub fn v6(address: [u8; V6_BYTES], bits: u8) -> Address {
        debug_assert!(bits <= 128);
        let mut payload = [0; 2 + V6_BYTES];
        payload[..2].copy_from_slice(&[FAMILY_V6, bits]);
        payload[2..].copy_from_slice(&address);
        Address {
            payload,
            len: 2 + V6_BYTES,
        }
    }

    /// From a varlena's payload; `None` when it is no address's.
    pub fn read(payload: &[u8]) -> Option<Address> {
        match *payload {
            [FAMILY_V4, bits @ ..=32, ref address @ ..] => {
                Some(Address::v4(address.try_into().ok()?, bits))
            }
            [FAMILY_V6, bits @ ..=128, ref address @ ..] => {
                Some(Address::v6(address.try_into().ok()?, bits))
            }
            _ => None,
        }
    }

    /// The varlena's payload.
    pub fn payload(&self) -> &[u8] {
        &self.payload[..self.len]
    }

    fn is_v6(&self) -> bool {
        self.payload[0] == FAMILY_V6
    }

    fn bits(&self) -> u8 {
        self.payload[1]
    }

    /// The address, left-aligned.
    fn address(&self) -> u128 {
        let bytes: [u8; V6_BYTES] = std::array::from_fn(|i| self.payload[2 + i]);
        u128::from_be_bytes(bytes)
    }

    /// The address without the bits behind the netmask.
    fn network(&self) -> u128 {
        match self.bits() {
            0 => 0,
            bits => self.address() & u128::MAX << (128 - u32::from(bits)),
        }
    }

    /// Whether no bit is set behind the netmask.
    pub fn is_network(&self) -> bool {
        self.network() == self.address()
    }

    /// By family, network, bits, address: a tuple that orders as the values do.
    pub fn key(&self) -> (bool, u128, u8, u128) {
        (self.is_v6(), self.network(), self.bits(), self.address())
    }

    /// A number that orders as the values do; for IPv6, ties say nothing.
    pub(super) fn prefix(&self) -> u128 {
        if self.is_v6() {
            return 1 << 127 | self.network() >> 1;
        }
        // 32 bits of the network, 8 of the mask, 32 of the address, below the family's bit.
        self.network() >> 1 | u128::from(self.bits()) << 87 | self.address() >> 96 << 55
    }

    /// What the output function of inet or cidr writes.
    pub fn to_text(&self, is_cidr: bool) -> String {
        let mut out = if self.is_v6() {
            self.v6_text()
        } else {
            dotted(&self.payload[2..2 + V4_BYTES])
        };
        let all = if self.is_v6() { 128 } else { 32 };
        if is_cidr || self.bits() != all {
            let _ = write!(out, "/{}", self.bits());
        }
        out
    }

    /// The longest run of zero words, if longer than one, becomes `::`.
    fn v6_text(&self) -> String {
        const WORDS: usize = V6_BYTES / 2;
        let words: [u16; WORDS] = std::array::from_fn(|i| {
            u16::from_be_bytes([self.payload[2 + 2 * i], self.payload[3 + 2 * i]])
        });
        let (mut best, mut best_len) = (WORDS, 1);
        let mut i = 0;
        while i < WORDS {
            let len = words[i..].iter().take_while(|&&word| word == 0).count();
            if len > best_len {
                (best, best_len) = (i, len);
            }
            i += len + 1;
        }
        if best == WORDS {
            best_len = 0;
        }
        let holds_v4 = best == 0
            && (best_len == 6
                || best_len == 7 && words[7] != 1
                || best_len == 5 && words[5] == 0xffff);
        let mut out = String::new();
        for (i, word) in words.iter().enumerate() {
            if (best..best + best_len).contains(&i) {
                if i == best {
                    out.push(':');
                }
                continue;
            }
            if i != 0 {
                out.push(':');
            }
            if i == 6 && holds_v4 {
                out.push_str(&dotted(&self.payload[14..]));
                return out;
            }
            let _ = write!(out, "{word:x}");
        }
        if best_len > 0 && best + best_len == WORDS {
            out.push(':');
        }
        out
    }
}

fn dotted(octets: &[u8]) -> String {
    let octets: Vec<String> = octets.iter().map(u8::to_string).collect();
    octets.join(".")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks_order_before_what_they_hold() {
        let v4 = |a, bits| Address::v4(a, bits);
        let ascending = [
            v4([0; 4], 0),
            v4([10, 0, 0, 0], 8),
            v4([10, 1, 2, 3], 8),
            v4([10, 0, 0, 0], 16),
            v4([10, 0, 0, 1], 32),
            v4([10, 1, 0, 0], 16),
            v4([255; 4], 32),
            Address::v6([0; 16], 0),
            Address::v6([0; 16], 128),
            Address::v6([0xff; 16], 3),
            Address::v6([0xff; 16], 128),
        ];
        assert!(ascending.is_sorted_by(|a, b| a.key() < b.key() && a.prefix() <= b.prefix()));
        assert!(ascending[..8].is_sorted_by(|a, b| a.prefix() < b.prefix()));
    }

    #[test]
    fn bytes_that_are_no_address_do_not_panic() {
        for len in 0..20 {
            for family in 0..5 {
                for byte in [0, 33, 129, 255] {
                    let mut payload = vec![byte; len];
                    if let Some(first) = payload.first_mut() {
                        *first = family;
                    }
                    if let Some(address) = Address::read(&payload) {
                        let _ = (address.to_text(true), address.prefix());
                    }
                }
            }
        }
    }
}
