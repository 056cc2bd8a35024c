//! The text of stored values of types that only the catalogs know, for messages.

use super::description::{TypeDescription, TypeKind};
use pgformat::datum::array::Array;
use pgformat::datum::{text, type_oid, varlena};

impl TypeDescription {
    /// The text that the type's output function gives for a stored attribute; as
    /// [`text::output`].
    pub fn output(&self, stored: Option<&[u8]>) -> String {
        let Some(bytes) = stored else {
            return text::output(self.oid, None);
        };
        match &self.kind {
            TypeKind::Base => text::output(self.oid, stored),
            TypeKind::LikeText => text::output(type_oid::TEXT, stored),
            TypeKind::Domain(domain) => domain.base.output(stored),
            TypeKind::Enum(labels) => labels
                .labels
                .iter()
                .find(|label| label.oid.to_le_bytes() == *bytes)
                .map_or_else(|| text::output(self.oid, stored), |l| l.name.clone()),
            TypeKind::Array(element) => {
                let plain = matches!(
                    bytes.first().map(|_| varlena::form(bytes)),
                    Some(varlena::Form::Full | varlena::Form::Short)
                );
                let array = plain
                    .then(|| Array::read(varlena::payload(bytes)))
                    .flatten();
                array.map_or_else(
                    || text::output(self.oid, stored),
                    |array| {
                        let delimiter = char::from(element.delimiter);
                        array.to_text(element.layout, delimiter, |e| element.output(Some(e)))
                    },
                )
            }
        }
    }
}
