//! Which indexes are built natively, and what the builder must know of them.

use super::{Collation, Column, Index};
use crate::sort::{ColumnDefinition, IndexDefinition, IndexSpec, KeyDefinition};
use crate::sys::collate;
use crate::types::{EnumDescription, TypeDescription, TypeKind};
use pgformat::datum::order::{ArrayOrder, EnumOrder, FixedOrder, Order, TextOrder};
use pgformat::datum::type_oid;
use pgformat::version::MajorVersion;
use std::sync::Arc;

impl IndexSpec {
    /// The index of a table of these columns as the sorter and the page builder need it.
    /// `our_libc_version` is this
    /// process's own (`sys::collate::libc_version`), by whose strcoll text would be ordered.
    /// `database_collation` is what the database's default stands for; strings in jsonb are
    /// ordered by it.
    ///
    /// # Errors
    /// Why the server must build the index, as a phrase: "it is an expression index".
    pub fn native(
        index: &Index,
        columns: &[Column],
        version: MajorVersion,
        our_libc_version: &str,
        database_collation: Option<&Collation>,
    ) -> Result<IndexSpec, String> {
        if index.exclusion {
            return Err("it is the index of an exclusion constraint".to_owned());
        }
        if index.access_method != "btree" {
            return Err(format!("its access method is {}", index.access_method));
        }
        if index.has_predicate {
            return Err("it is a partial index".to_owned());
        }
        if index.columns.iter().any(|c| c.attnum == 0) {
            return Err("it is an expression index".to_owned());
        }
        if index.columns.iter().any(|c| c.attnum < 0) {
            return Err("it has a system column".to_owned());
        }
        let allequalimage = index
            .allequalimage
            .ok_or("it is not known whether the server would deduplicate it (btm_allequalimage)")?;
        if index.key_count == 0 || index.key_count > index.columns.len() {
            return Err("its description has no key column".to_owned());
        }
        let orders = KeyOrders {
            version,
            our_libc: our_libc_version,
            database_collation,
        };
        let keys = index.columns[..index.key_count]
            .iter()
            .map(|column| {
                let description = columns
                    .get(column.attnum as usize - 1)
                    .and_then(|c| c.description.as_deref());
                Ok(KeyDefinition {
                    order: orders.of_key(
                        (&column.opclass, column.opclass_is_core),
                        column.collation.as_ref(),
                        description,
                    )?,
                    descending: column.descending,
                    nulls_first: column.nulls_first,
                })
            })
            .collect::<Result<_, String>>()?;
        Ok(IndexSpec::new(IndexDefinition {
            name: index.name.clone(),
            unique: index.unique,
            nulls_not_distinct: index.nulls_not_distinct,
            fillfactor: index.fillfactor,
            deduplicate_items: index.deduplicate_items,
            allequalimage,
            columns: index
                .columns
                .iter()
                .map(|column| ColumnDefinition {
                    attribute: column.attnum as usize - 1,
                    layout: column.layout,
                })
                .collect(),
            keys,
        }))
    }
}

/// What orders depend on besides operator class, type and collation.
#[derive(Debug, Clone, Copy)]
pub struct KeyOrders<'a> {
    /// The server's version.
    pub version: MajorVersion,
    /// The version of this process's own libc.
    pub our_libc: &'a str,
    /// What the database's default collation stands for.
    pub database_collation: Option<&'a Collation>,
}

impl KeyOrders<'_> {
    /// The order of a key of this btree operator class (its name, and whether it stands in
    /// pg_catalog), collation and type.
    ///
    /// # Errors
    /// Why it is not known here, as a phrase.
    pub fn of_key(
        &self,
        (opclass, opclass_is_core): (&str, bool),
        collation: Option<&Collation>,
        description: Option<&TypeDescription>,
    ) -> Result<Order, String> {
        if !opclass_is_core {
            return Err(format!(
                "its operator class {opclass} is not one of the core"
            ));
        }
        let kind = description.map(|description| &description.base().kind);
        match (opclass, kind) {
            ("enum_ops", Some(TypeKind::Enum(labels))) => Ok(enum_order(labels)),
            ("array_ops", Some(TypeKind::Array(element))) => self.of_array(element, collation),
            (opclass, _) => self.of_opclass(opclass, collation),
        }
    }

    /// `array_ops`.
    ///
    /// PostgreSQL: `src/backend/utils/adt/arrayfuncs.c`, `array_cmp`: the element type's default
    /// operator class, under the array's collation.
    fn of_array(
        &self,
        element: &TypeDescription,
        collation: Option<&Collation>,
    ) -> Result<Order, String> {
        let base = element.base();
        let order = match &base.kind {
            TypeKind::Enum(labels) => enum_order(labels),
            TypeKind::Array(_) => return Err("its elements are a domain over arrays".to_owned()),
            TypeKind::Base => match default_opclass(base.oid) {
                Some(opclass) => self.of_opclass(opclass, collation)?,
                None => return Err(format!("the order of type {} is not known", base.name)),
            },
            TypeKind::LikeText | TypeKind::Domain(_) => {
                return Err(format!("the order of type {} is not known", base.name));
            }
        };
        Ok(Order::Array(Arc::new(ArrayOrder {
            element: order,
            layout: element.layout,
        })))
    }

    /// The order of an operator class that knows its type.
    fn of_opclass(&self, opclass: &str, collation: Option<&Collation>) -> Result<Order, String> {
        let of = |collation| text_order(collation, self.version, self.our_libc);
        Ok(match opclass {
            "bool_ops" | "char_ops" => Order::Fixed(FixedOrder::Byte),
            "int2_ops" => Order::Fixed(FixedOrder::Int2),
            "int4_ops" | "date_ops" => Order::Fixed(FixedOrder::Int4),
            "int8_ops" | "time_ops" | "timestamp_ops" | "timestamptz_ops" => {
                Order::Fixed(FixedOrder::Int8)
            }
            "oid_ops" => Order::Fixed(FixedOrder::Oid),
            "float4_ops" => Order::Fixed(FixedOrder::Float4),
            "float8_ops" => Order::Fixed(FixedOrder::Float8),
            "timetz_ops" => Order::Fixed(FixedOrder::TimeTz),
            "interval_ops" => Order::Fixed(FixedOrder::Interval),
            "uuid_ops" => Order::Fixed(FixedOrder::Uuid),
            "numeric_ops" => Order::Numeric,
            "jsonb_ops" => Order::Jsonb(of(self.database_collation)?),
            "bytea_ops" => Order::Bytea,
            "inet_ops" | "cidr_ops" => Order::Network,
            "bit_ops" | "varbit_ops" => Order::Bits,
            "text_pattern_ops" | "varchar_pattern_ops" => Order::Text(TextOrder::Bytes),
            "bpchar_pattern_ops" => Order::Bpchar(TextOrder::Bytes),
            "text_ops" | "varchar_ops" => Order::Text(of(collation)?),
            "bpchar_ops" => Order::Bpchar(of(collation)?),
            "name_ops" => Order::Name(of(collation)?),
            other => return Err(format!("the order of operator class {other} is not known")),
        })
    }
}

/// The order of an enum: that of the OIDs, unless labels were put before others.
fn enum_order(labels: &EnumDescription) -> Order {
    let oids = labels.labels.iter().map(|label| label.oid);
    if oids.clone().is_sorted() {
        Order::Fixed(FixedOrder::Oid)
    } else {
        Order::Enum(EnumOrder::new(oids))
    }
}

/// The default btree operator class of a native type.
///
/// PostgreSQL: `src/include/catalog/pg_opclass.dat`.
fn default_opclass(type_oid: u32) -> Option<&'static str> {
    Some(match type_oid {
        type_oid::BOOL => "bool_ops",
        type_oid::CHAR => "char_ops",
        type_oid::NAME => "name_ops",
        type_oid::INT2 => "int2_ops",
        type_oid::INT4 => "int4_ops",
        type_oid::INT8 => "int8_ops",
        type_oid::OID => "oid_ops",
        type_oid::FLOAT4 => "float4_ops",
        type_oid::FLOAT8 => "float8_ops",
        type_oid::NUMERIC => "numeric_ops",
        type_oid::TEXT | type_oid::VARCHAR => "text_ops",
        type_oid::BPCHAR => "bpchar_ops",
        type_oid::BYTEA => "bytea_ops",
        type_oid::DATE => "date_ops",
        type_oid::TIME => "time_ops",
        type_oid::TIMETZ => "timetz_ops",
        type_oid::TIMESTAMP => "timestamp_ops",
        type_oid::TIMESTAMPTZ => "timestamptz_ops",
        type_oid::INTERVAL => "interval_ops",
        type_oid::UUID => "uuid_ops",
        type_oid::JSONB => "jsonb_ops",
        type_oid::INET | type_oid::CIDR => "inet_ops",
        type_oid::BIT => "bit_ops",
        type_oid::VARBIT => "varbit_ops",
        _ => return None,
    })
}

/// The order that a collation gives to strings.
fn text_order(
    collation: Option<&Collation>,
    version: MajorVersion,
    our_libc: &str,
) -> Result<TextOrder, String> {
    let collation = collation.ok_or("the collation of a column is not known")?;
    let name = &collation.name;
    if !collation.deterministic {
        return Err(format!("collation \"{name}\" is not deterministic"));
    }
    match collation.provider {
        // The builtin provider has no order but that of code points, which in UTF-8 is that of
        // the bytes.
        'b' if version.at_least(17) => Ok(TextOrder::Bytes),
        'c' if is_bytewise(&collation.locale) => Ok(TextOrder::Bytes),
        'c' => {
            same_version(collation, our_libc)?;
            collate::locale(&collation.locale)
                .map(TextOrder::Locale)
                .ok_or_else(|| {
                    format!(
                        "locale \"{}\" of collation \"{name}\" is not installed here",
                        collation.locale
                    )
                })
        }
        'i' => Err(format!("collation \"{name}\" is ICU's")),
        other => Err(format!(
            "the provider '{other}' of collation \"{name}\" is not known"
        )),
    }
}

/// Whether libc orders a locale by bytes: C and POSIX, for which the server does not ask libc,
/// and C.UTF-8, which has no version and which glibc orders by code points.
fn is_bytewise(locale: &str) -> bool {
    ["C", "POSIX", "C.UTF-8", "C.UTF8"]
        .iter()
        .any(|bytewise| locale.eq_ignore_ascii_case(bytewise))
}

/// The version recorded with the collation (where there is one), the server's libc and ours
/// must be one, for their orders to be one.
fn same_version(collation: &Collation, our_libc: &str) -> Result<(), String> {
    let name = &collation.name;
    let Some(actual) = &collation.actual_version else {
        return Err(format!(
            "the server does not tell the version of collation \"{name}\""
        ));
    };
    if let Some(recorded) = &collation.recorded_version
        && recorded != actual
    {
        return Err(format!(
            "collation \"{name}\" was created with version {recorded}, the server's library has {actual}"
        ));
    }
    if actual != our_libc {
        return Err(format!(
            "collation \"{name}\" has version {actual} in the server, {our_libc} here"
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::IndexColumn;
    use pgformat::layout::{AttrLen, AttributeLayout, Compression, Storage};

    fn libc_collation(locale: &str, recorded: Option<&str>, actual: Option<&str>) -> Collation {
        Collation {
            oid: 100,
            name: locale.to_owned(),
            provider: 'c',
            locale: locale.to_owned(),
            deterministic: true,
            recorded_version: recorded.map(str::to_owned),
            actual_version: actual.map(str::to_owned),
        }
    }

    fn index(opclass: &str, collation: Option<Collation>) -> Index {
        Index {
            oid: 1,
            name: "i".to_owned(),
            schema: "public".to_owned(),
            access_method: "btree".to_owned(),
            tablespace: 0,
            unique: false,
            primary: false,
            nulls_not_distinct: false,
            exclusion: false,
            immediate: true,
            clustered: false,
            valid: true,
            has_predicate: false,
            fillfactor: 90,
            deduplicate_items: true,
            columns: vec![IndexColumn {
                attnum: 1,
                type_oid: 25,
                layout: AttributeLayout {
                    len: AttrLen::Varlena,
                    align: 4,
                    by_value: false,
                    storage: Storage::Extended,
                    compression: Compression::Pglz,
                },
                opclass: opclass.to_owned(),
                opclass_is_core: true,
                descending: false,
                nulls_first: false,
                collation,
            }],
            key_count: 1,
            definition: String::new(),
            allequalimage: Some(true),
        }
    }

    fn refusal(index: &Index) -> Option<String> {
        let version = MajorVersion::from_version_num(170_000).expect("supported");
        IndexSpec::native(index, &[], version, "2.36", None).err()
    }

    #[test]
    fn text_is_native_where_all_three_versions_are_one() {
        let text = |locale, recorded, actual| {
            refusal(&index(
                "text_ops",
                Some(libc_collation(locale, recorded, actual)),
            ))
        };
        assert_eq!(text("C", None, None), None);
        assert_eq!(text("c.utf8", None, None), None);
        assert_eq!(
            text("xx_XX", Some("2.31"), Some("2.36")).as_deref(),
            Some(
                "collation \"xx_XX\" was created with version 2.31, the server's library has 2.36"
            )
        );
        assert_eq!(
            text("xx_XX", None, Some("2.39")).as_deref(),
            Some("collation \"xx_XX\" has version 2.39 in the server, 2.36 here")
        );
        assert_eq!(
            text("xx_XX", None, None).as_deref(),
            Some("the server does not tell the version of collation \"xx_XX\"")
        );
        assert_eq!(
            text("xx_XX", None, Some("2.36")).as_deref(),
            Some("locale \"xx_XX\" of collation \"xx_XX\" is not installed here")
        );
        assert_eq!(refusal(&index("text_pattern_ops", None)), None);
    }

    #[test]
    fn what_only_the_server_can_build_is_told() {
        let mut expression = index("int4_ops", None);
        expression.columns[0].attnum = 0;
        assert_eq!(
            refusal(&expression).as_deref(),
            Some("it is an expression index")
        );
        let mut hash = index("int4_ops", None);
        hash.access_method = "hash".to_owned();
        assert_eq!(refusal(&hash).as_deref(), Some("its access method is hash"));
        let mut partial = index("int4_ops", None);
        partial.has_predicate = true;
        assert_eq!(refusal(&partial).as_deref(), Some("it is a partial index"));
        let mut unknown = index("int4_ops", None);
        unknown.allequalimage = None;
        assert!(refusal(&unknown).is_some_and(|r| r.contains("btm_allequalimage")));
        let mut foreign = index("my_ops", None);
        foreign.columns[0].opclass_is_core = false;
        assert_eq!(
            refusal(&foreign).as_deref(),
            Some("its operator class my_ops is not one of the core")
        );
        assert_eq!(
            refusal(&index("macaddr_ops", None)).as_deref(),
            Some("the order of operator class macaddr_ops is not known")
        );
    }
}
