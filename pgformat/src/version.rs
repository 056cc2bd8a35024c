//! The server versions whose format we know, and what differs between them, as data.

use std::fmt;

/// A major version of PostgreSQL that we build files for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct MajorVersion(u16);

impl MajorVersion {
    /// The oldest version supported.
    pub const OLDEST: MajorVersion = MajorVersion(14);
    /// The newest version supported.
    pub const NEWEST: MajorVersion = MajorVersion(18);

    /// The major version of a `server_version_num` such as 150018; `None` when not supported.
    pub fn from_version_num(num: u32) -> Option<MajorVersion> {
        let major = MajorVersion(u16::try_from(num / 10_000).ok()?);
        (Self::OLDEST..=Self::NEWEST)
            .contains(&major)
            .then_some(major)
    }

    /// 14 to 18.
    pub fn number(self) -> u16 {
        self.0
    }

    /// Whether this version is `major` or newer.
    pub fn at_least(self, major: u16) -> bool {
        self.0 >= major
    }
}

impl fmt::Display for MajorVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_outside_14_to_18_are_not_known() {
        assert_eq!(MajorVersion::from_version_num(130_022), None);
        assert_eq!(
            MajorVersion::from_version_num(140_023).map(MajorVersion::number),
            Some(14)
        );
        assert_eq!(
            MajorVersion::from_version_num(180_004).map(MajorVersion::number),
            Some(18)
        );
        assert_eq!(MajorVersion::from_version_num(190_000), None);
    }
}
