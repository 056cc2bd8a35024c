//! What the stages work on.

use generate::Workload;
use pgformat::datum::order::Order;
use pgformat::ids::Tid;
use pgformat::layout::{AttrLen, AttributeLayout, Compression, Storage};
use pgformat::version::MajorVersion;
use pgpagewrite::record::{Chunk, Chunks, Format, InputColumn};
use pgpagewrite::sort::{ColumnDefinition, IndexDefinition, IndexSpec, KeyDefinition};
use pgpagewrite::source::FileSource;
use std::fs;

/// A chunk of a workload's CSV as the workers get it.
pub(crate) struct Csv {
    pub(crate) name: &'static str,
    pub(crate) format: Format,
    pub(crate) chunk: Chunk,
}

impl Csv {
    fn new(name: &'static str, workload: Workload, columns: usize) -> Csv {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("input");
        fs::write(&path, workload.bytes()).expect("the input written");
        let columns = (0..columns).map(|i| InputColumn::named(format!("c{i}")));
        let format = Format::csv(columns.collect(), version());
        let source = FileSource::open(&path).expect("the input");
        let chunks = Chunks::open(&source, &format).expect("its first line");
        let mut chunk = Chunk::new();
        chunks.read(0, &mut chunk).expect("its first chunk");
        Csv {
            name,
            format,
            chunk,
        }
    }

    /// A chunk of each kind: long rows, short rows, many numbers.
    pub(crate) fn all() -> [Csv; 3] {
        [
            Csv::new("customer", Workload::Customer { rows: 4_000 }, 21),
            Csv::new("shadoks", Workload::Shadoks { rows: 80_000 }, 3),
            Csv::new("bigint100", Workload::Bigint100 { rows: 2_000 }, 100),
        ]
    }
}

pub(crate) fn version() -> MajorVersion {
    MajorVersion::from_version_num(150_000).expect("a version")
}

/// Numbers without an order, the same each time.
pub(crate) fn numbers() -> impl Iterator<Item = u64> {
    std::iter::successors(Some(0x9e37_79b9_7f4a_7c15u64), |last| {
        Some(
            last.wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407),
        )
    })
    .map(|n| n >> 20)
}

/// integer, bigint and their like.
pub(crate) fn fixed(bytes: u8) -> AttributeLayout {
    AttributeLayout {
        len: AttrLen::Fixed(bytes.into()),
        align: bytes.min(8),
        by_value: bytes <= 8,
        storage: Storage::Plain,
        compression: Compression::Pglz,
    }
}

/// text and its like.
pub(crate) fn varlena() -> AttributeLayout {
    AttributeLayout {
        len: AttrLen::Varlena,
        align: 4,
        by_value: false,
        storage: Storage::Extended,
        compression: Compression::Pglz,
    }
}

/// An index on the first columns of a table, that is not unique.
pub(crate) fn index(keys: &[(AttributeLayout, Order)]) -> IndexSpec {
    IndexSpec::new(IndexDefinition {
        name: "i".to_owned(),
        unique: false,
        nulls_not_distinct: false,
        fillfactor: 90,
        deduplicate_items: true,
        allequalimage: true,
        columns: keys
            .iter()
            .enumerate()
            .map(|(attribute, (layout, _))| ColumnDefinition {
                attribute,
                layout: *layout,
            })
            .collect(),
        keys: keys
            .iter()
            .map(|(_, order)| KeyDefinition {
                order: order.clone(),
                descending: false,
                nulls_first: false,
            })
            .collect(),
    })
}

/// The TIDs of a heap of 100 tuples a page, from tuple `first` on.
pub(crate) fn tids(first: usize, count: usize) -> Vec<Tid> {
    (first..first + count)
        .map(|i| Tid {
            block: (i / 100) as u32,
            offset: (i % 100 + 1) as u16,
        })
        .collect()
}
