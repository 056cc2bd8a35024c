//! A table's description as text, by its parts: what a plan that is kept in a file is compared by.
//!
//! Whatever a [`Relation`] holds is in it, so that nothing can be forgotten when the catalogs'
//! view grows; its size is not. Two descriptions are equal where a plan made for one table holds
//! for the other. The text is that of this program's own structures: another version of the
//! program may write another one, which only leads to a refusal.

use super::{Features, Relation};

/// The parts of a table, each with its name in messages and its text.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Description(pub Vec<(String, String)>);

impl Description {
    /// Describes a table.
    pub fn of(relation: &Relation) -> Description {
        let part = |name: &str, text: &dyn std::fmt::Debug| (name.to_owned(), format!("{text:?}"));
        let rest = Relation {
            name: String::new(),
            schema: String::new(),
            tablespace: 0,
            columns: Vec::new(),
            indexes: Vec::new(),
            toast: None,
            features: Features::default(),
            size_bytes: 0,
            partitions: None,
            ..relation.clone()
        };
        let mut parts = vec![
            part("its name", &(&relation.schema, &relation.name)),
            part("its tablespace", &relation.tablespace),
        ];
        parts.extend(relation.columns.iter().map(|column| {
            let name = if column.dropped {
                format!("dropped column {}", column.attnum)
            } else {
                format!("column \"{}\"", column.name)
            };
            part(&name, column)
        }));
        parts.push(part("its TOAST table", &relation.toast));
        parts.extend(
            relation
                .indexes
                .iter()
                .map(|index| part(&format!("index \"{}\"", index.name), index)),
        );
        parts.push(part(
            "its triggers, rules or constraints",
            &relation.features,
        ));
        parts.push(part("its kind or storage parameters", &rest));
        Description(parts)
    }

    /// What differs in a later description of the same table, in words; `None` when nothing does.
    pub fn difference(&self, later: &Description) -> Option<String> {
        for (name, text) in &self.0 {
            match later.0.iter().find(|(other, _)| other == name) {
                None => return Some(format!("{name} is gone")),
                Some((_, other)) if other != text => return Some(format!("{name} changed")),
                Some(_) => {}
            }
        }
        later
            .0
            .iter()
            .find(|(name, _)| self.0.iter().all(|(known, _)| known != name))
            .map(|(name, _)| format!("{name} is new"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn description(parts: &[(&str, &str)]) -> Description {
        Description(
            parts
                .iter()
                .map(|(name, text)| ((*name).to_owned(), (*text).to_owned()))
                .collect(),
        )
    }

    #[test]
    fn a_difference_names_the_part_that_is_gone_changed_or_new() {
        let before = description(&[("column \"a\"", "1"), ("index \"i\"", "2")]);
        let same = before.difference(&before);
        assert_eq!(same, None);
        let told = |later: &[(&str, &str)]| before.difference(&description(later)).unwrap();
        assert_eq!(told(&[("column \"a\"", "1")]), "index \"i\" is gone");
        assert_eq!(
            told(&[("column \"a\"", "3"), ("index \"i\"", "2")]),
            "column \"a\" changed"
        );
        assert_eq!(
            told(&[("column \"a\"", "1"), ("index \"i\"", "2"), ("x", "")]),
            "x is new"
        );
    }
}
