//! What the catalogs say of a type, as far as its values go: what an encoder is made of.

use pgformat::datum::array::ElementLayout;
use pgformat::ids::Oid;
use std::sync::Arc;

/// A type. `pg_type` tells all of it, `pg_enum` the labels.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TypeDescription {
    /// pg_type.oid.
    pub oid: Oid,
    /// format_type(oid, NULL), for messages.
    pub name: String,
    /// How values lie in an array of the type.
    pub layout: ElementLayout,
    /// typdelim.
    pub delimiter: u8,
    /// What it is.
    pub kind: TypeKind,
}

/// What a type is made of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TypeKind {
    /// A type of its own; its OID tells whether it is native.
    Base,
    /// A type of an extension that keeps its input as text does (typinput is `textin`, typreceive
    /// `textrecv`): citext.
    LikeText,
    /// An enum.
    Enum(EnumDescription),
    /// A domain.
    Domain(DomainDescription),
    /// An array (typinput is `array_in`) of this type.
    Array(Arc<TypeDescription>),
}

/// An enum's labels.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EnumDescription {
    /// In their order (enumsortorder).
    pub labels: Vec<Label>,
    /// The transaction that reads this may have added labels to it, of which the server says
    /// when they may be used.
    pub has_uncommitted: bool,
}

/// A row of pg_enum.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Label {
    /// oid: what is stored.
    pub oid: Oid,
    /// enumlabel.
    pub name: String,
}

/// A domain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DomainDescription {
    /// typbasetype, which may be a domain again.
    pub base: Arc<TypeDescription>,
    /// typtypmod: the modifier of the base type.
    pub typmod: i32,
    /// typnotnull.
    pub not_null: bool,
    /// Names of its CHECK constraints, in their names' order; those of a base domain are there.
    pub checks: Vec<String>,
}

impl TypeDescription {
    /// What a domain's values are, through all domains; else the type itself.
    pub fn base(&self) -> &TypeDescription {
        match &self.kind {
            TypeKind::Domain(domain) => domain.base.base(),
            _ => self,
        }
    }

    /// The first CHECK constraint of a domain, or of a domain below; with the domain.
    fn check(&self) -> Option<(&str, &str)> {
        match &self.kind {
            TypeKind::Domain(domain) => match domain.checks.first() {
                Some(check) => Some((&self.name, check)),
                None => domain.base.check(),
            },
            _ => None,
        }
    }

    /// Why values within a value cannot be checked later, if they would have to be, as a phrase.
    pub(super) fn as_element(&self) -> Result<&TypeDescription, String> {
        match self.check() {
            None => Ok(self),
            Some((domain, check)) => Err(format!(
                "its elements are of domain {domain}, which has CHECK constraint {check}"
            )),
        }
    }

    /// Whether what was stored as this type's values is the same for a later description:
    /// labels that were added do not count.
    pub fn holds_for(&self, later: &TypeDescription) -> bool {
        let kinds = match (&self.kind, &later.kind) {
            (TypeKind::Enum(ours), TypeKind::Enum(theirs)) => {
                let mut theirs = theirs.labels.iter();
                ours.labels.iter().all(|label| theirs.any(|l| l == label))
            }
            (TypeKind::Domain(ours), TypeKind::Domain(theirs)) => {
                ours.base.holds_for(&theirs.base)
                    && (ours.typmod, ours.not_null, &ours.checks)
                        == (theirs.typmod, theirs.not_null, &theirs.checks)
            }
            (TypeKind::Array(ours), TypeKind::Array(theirs)) => ours.holds_for(theirs),
            (ours, theirs) => ours == theirs,
        };
        kinds
            && (self.oid, self.layout, self.delimiter) == (later.oid, later.layout, later.delimiter)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pgformat::layout::AttrLen;

    fn mood(labels: &[(Oid, &str)]) -> TypeDescription {
        let labels = labels.iter().map(|&(oid, name)| Label {
            oid,
            name: name.to_owned(),
        });
        TypeDescription {
            oid: 20_000,
            name: "mood".to_owned(),
            layout: ElementLayout {
                len: AttrLen::Fixed(4),
                align: 4,
            },
            delimiter: b',',
            kind: TypeKind::Enum(EnumDescription {
                labels: labels.collect(),
                has_uncommitted: false,
            }),
        }
    }

    #[test]
    fn a_label_may_be_added_but_not_renamed() {
        let planned = mood(&[(2, "sad"), (4, "ok")]);
        assert!(planned.holds_for(&mood(&[(2, "sad"), (5, "so so"), (4, "ok"), (6, "happy")])));
        assert!(!planned.holds_for(&mood(&[(2, "sad"), (4, "fine")])));
        assert!(!planned.holds_for(&mood(&[(4, "ok"), (2, "sad")])));
        assert!(!planned.holds_for(&mood(&[(2, "sad")])));
    }
}
