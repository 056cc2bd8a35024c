//! What the tests of btree pages share: rows out of heap pages, indexes out of the catalogs, and
//! building an index out of both.

use pgformat::datum::varlena;
use pgformat::ids::{BlockNumber, Oid, Tid};
use pgformat::layout::{AttrLen, AttributeLayout, Compression, Storage, align_up};
use pgformat::page::Page;
use pgformat::page::view::PageView;
use pgformat::toast::pointer::ToastPointer;
use pgformat::version::MajorVersion;
use pgpagewrite::build::btree::{BuildError, PageSink};
use pgpagewrite::catalog::{Collation, Index, IndexColumn};
use pgpagewrite::error::{Result, ValueError};
use pgpagewrite::sort::{IndexSpec, Sorter};
use pgpagewrite::sys::collate;
use rayon::prelude::*;
use std::collections::HashMap;
use support::{Fork, Kind, Server, ValueIds};

/// Rows of a chunk of input.
const CHUNK_ROWS: usize = 1000;

/// A row's attributes in stored form, TOAST pointers replaced by what they point to.
pub(crate) type Row = Vec<Option<Vec<u8>>>;

/// The rows of a table with their TIDs, in TID order.
pub(crate) struct Heap {
    tids: Vec<Tid>,
    rows: Vec<Row>,
}

impl Heap {
    /// Reads a table's pages.
    pub(crate) fn read(server: &Server, table: &str) -> Heap {
        let layout = layouts(server, table);
        let toast = server.value(
            "postgres",
            &format!("SELECT reltoastrelid::text FROM pg_class WHERE oid = '{table}'::regclass"),
        );
        let mut heap = Heap::of_pages(&layout, &server.pages("postgres", table, Fork::Main));
        if toast != "0" {
            let toast = server.value("postgres", &format!("SELECT {toast}::regclass::text"));
            let chunks = Heap::of_pages(
                &layouts(server, &toast),
                &server.pages("postgres", &toast, Fork::Main),
            );
            heap.detoast(&chunks);
        }
        heap
    }

    /// The rows with their TIDs.
    pub(crate) fn rows(&self) -> impl Iterator<Item = (Tid, &Row)> {
        self.tids.iter().copied().zip(&self.rows)
    }

    fn of_pages(layout: &[AttributeLayout], pages: &[Page]) -> Heap {
        let mut heap = Heap {
            tids: Vec::new(),
            rows: Vec::new(),
        };
        for (block, page) in pages.iter().enumerate() {
            if PageView::is_new(page) {
                continue;
            }
            let view = PageView::new(page).expect("the server's page");
            for offset in 1..=view.item_count() {
                let tuple = view.item(offset).expect("the server's tuple");
                heap.tids.push(Tid {
                    block: block as BlockNumber,
                    offset,
                });
                heap.rows.push(attributes(layout, tuple));
            }
        }
        heap
    }

    /// Puts the values themselves, plain or compressed, in place of pointers to chunks.
    fn detoast(&mut self, chunks: &Heap) {
        let mut values: HashMap<Oid, Vec<u8>> = HashMap::new();
        for row in &chunks.rows {
            let [Some(id), Some(_), Some(data)] = &row[..] else {
                panic!("a chunk without nulls");
            };
            let id = Oid::from_le_bytes(id[..].try_into().expect("four bytes"));
            values
                .entry(id)
                .or_default()
                .extend_from_slice(varlena::payload(data));
        }
        for stored in self.rows.iter_mut().flatten().flatten() {
            if stored.len() == 18 && stored[..2] == [1, 18] {
                let pointer = ToastPointer::from_bytes(stored).expect("the server's pointer");
                let data = &values[&pointer.value_id];
                let total = data.len() as u32 + 4;
                let form = u32::from(pointer.compression_id().is_some()) << 1;
                let mut inline = (total << 2 | form).to_le_bytes().to_vec();
                inline.extend_from_slice(data);
                *stored = inline;
            }
        }
    }
}

fn layouts(server: &Server, relation: &str) -> Vec<AttributeLayout> {
    server
        .connect("postgres")
        .query(
            "SELECT attlen, attalign::text, attbyval, attstorage::text, attcompression::text
               FROM pg_attribute WHERE attrelid = $1::text::regclass AND attnum > 0 ORDER BY attnum",
            &[&relation],
        )
        .expect("the attributes")
        .iter()
        .map(|row| {
            let char = |i: usize| row.get::<_, String>(i).bytes().next().unwrap_or(0);
            AttributeLayout {
                len: AttrLen::from_attlen(row.get(0)).expect("a length"),
                align: AttributeLayout::align_from_char(char(1)).expect("an alignment"),
                by_value: row.get(2),
                storage: Storage::from_char(char(3)).expect("a storage"),
                compression: match char(4) {
                    b'l' => Compression::Lz4,
                    _ => Compression::Pglz,
                },
            }
        })
        .collect()
}

/// The attributes of a heap tuple.
fn attributes(layout: &[AttributeLayout], tuple: &[u8]) -> Row {
    let has_null = tuple[20] & 1 != 0;
    let mut pos = tuple[22] as usize;
    let mut row = Vec::with_capacity(layout.len());
    for (i, attribute) in layout.iter().enumerate() {
        if has_null && tuple[23 + i / 8] >> (i % 8) & 1 == 0 {
            row.push(None);
            continue;
        }
        let aligned = align_up(pos, attribute.align as usize);
        let (start, len) = match attribute.len {
            AttrLen::Fixed(len) => (aligned, len as usize),
            AttrLen::CString => panic!("no table has a cstring"),
            AttrLen::Varlena if tuple[pos] == 1 => (pos, 18),
            AttrLen::Varlena if tuple[pos] & 1 == 1 => (pos, (tuple[pos] >> 1) as usize),
            AttrLen::Varlena => {
                let header = tuple[aligned..aligned + 4].try_into().expect("four bytes");
                (aligned, (u32::from_le_bytes(header) >> 2) as usize)
            }
        };
        row.push(Some(tuple[start..start + len].to_vec()));
        pos = start + len;
    }
    row
}

/// An index of the server as the catalogs describe it.
pub(crate) fn index_of(server: &Server, name: &str) -> Index {
    let mut client = server.connect("postgres");
    let index = client
        .query_one(
            "SELECT i.indexrelid, i.indisunique, i.indnkeyatts::int,
                    coalesce((SELECT option_value FROM pg_options_to_table(c.reloptions)
                               WHERE option_name = 'fillfactor'), '90'),
                    coalesce((SELECT option_value FROM pg_options_to_table(c.reloptions)
                               WHERE option_name = 'deduplicate_items'), 'on'),
                    coalesce((to_jsonb(i) ->> 'indnullsnotdistinct')::bool, false)
               FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
              WHERE i.indexrelid = $1::text::regclass",
            &[&name],
        )
        .expect("the index");
    let columns = client
        .query(
            "SELECT i.indkey[a.attnum - 1], a.atttypid, coalesce(o.opcname::text, ''),
                    coalesce(i.indoption[a.attnum - 1], 0)::int2, l.oid, l.collname::text,
                    l.collprovider::text,
                    CASE WHEN l.collprovider = 'd' THEN d.datcollate ELSE l.collcollate END::text,
                    coalesce(l.collisdeterministic, true), l.collversion,
                    pg_collation_actual_version(l.oid)
               FROM pg_attribute a JOIN pg_index i ON i.indexrelid = a.attrelid
                    JOIN pg_database d ON d.datname = current_database()
               LEFT JOIN pg_opclass o ON o.oid = i.indclass[a.attnum - 1]
               LEFT JOIN pg_collation l ON l.oid = i.indcollation[a.attnum - 1]
              WHERE a.attrelid = $1::text::regclass ORDER BY a.attnum",
            &[&name],
        )
        .expect("the index's columns");
    let metapage = server.pages("postgres", name, Fork::Main)[0];
    let columns = columns
        .iter()
        .zip(layouts(server, name))
        .map(|(row, layout)| IndexColumn {
            attnum: row.get(0),
            type_oid: row.get(1),
            layout,
            opclass: row.get(2),
            opclass_is_core: true,
            descending: row.get::<_, i16>(3) & 1 != 0,
            nulls_first: row.get::<_, i16>(3) & 2 != 0,
            collation: row.get::<_, Option<Oid>>(4).map(|oid| Collation {
                oid,
                name: row.get(5),
                // The default of the tests' clusters is libc's.
                provider: match row.get::<_, String>(6).chars().next() {
                    Some('d') | None => 'c',
                    Some(provider) => provider,
                },
                locale: row.get::<_, Option<String>>(7).unwrap_or_default(),
                deterministic: row.get(8),
                recorded_version: row.get(9),
                actual_version: row.get(10),
            }),
        })
        .collect();
    Index {
        oid: index.get(0),
        name: name.to_owned(),
        schema: "public".to_owned(),
        access_method: "btree".to_owned(),
        tablespace: 0,
        unique: index.get(1),
        primary: false,
        nulls_not_distinct: index.get(5),
        exclusion: false,
        immediate: true,
        valid: true,
        clustered: false,
        has_predicate: false,
        fillfactor: index.get::<_, String>(3).parse().expect("a number"),
        deduplicate_items: index.get::<_, String>(4) != "off",
        columns,
        key_count: index.get::<_, i32>(2) as usize,
        definition: String::new(),
        allequalimage: Some(metapage[64] == 1),
    }
}

/// An index to be built.
pub(crate) struct Table {
    spec: IndexSpec,
}

impl Table {
    /// The index, which must be native on this version.
    pub(crate) fn new(index: &Index, version: u32) -> Table {
        let database_collation = Collation {
            oid: 100,
            name: "default".to_owned(),
            provider: 'c',
            locale: "C.UTF-8".to_owned(),
            deterministic: true,
            recorded_version: None,
            actual_version: None,
        };
        let libc = collate::libc_version();
        let spec = IndexSpec::native(
            index,
            &[],
            self::version(version),
            &libc,
            Some(&database_collation),
        )
        .unwrap_or_else(|why| panic!("{}: {why}", index.name));
        Table { spec }
    }
}

/// Pages by block.
#[derive(Default)]
pub(crate) struct Pages(pub(crate) Vec<Page>);

impl PageSink for Pages {
    fn page(&mut self, block: BlockNumber, page: &Page) -> Result<()> {
        let block = block as usize;
        if self.0.len() <= block {
            self.0.resize(block + 1, [0; 8192]);
        }
        assert_eq!(self.0[block], [0; 8192], "block {block} came twice");
        self.0[block] = *page;
        Ok(())
    }
}

/// Builds an index with all in memory.
pub(crate) fn build(table: &Table, heap: &Heap) -> std::result::Result<Vec<Page>, BuildError> {
    build_with(table, heap, 2, 1 << 30)
}

/// Builds an index with so many threads, which take chunks of rows in any order, and so much
/// memory.
pub(crate) fn build_with(
    table: &Table,
    heap: &Heap,
    threads: usize,
    budget_bytes: usize,
) -> std::result::Result<Vec<Page>, BuildError> {
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(threads)
        .build()
        .expect("threads");
    pool.install(|| {
        let sorter = Sorter::new(table.spec.clone(), budget_bytes, &std::env::temp_dir());
        heap.rows
            .par_chunks(CHUNK_ROWS)
            .zip(heap.tids.par_chunks(CHUNK_ROWS))
            .try_for_each_init(
                || table.spec.new_buffer(),
                |buffer, (rows, tids)| {
                    for row in rows {
                        table
                            .spec
                            .extract(|i| row[i].as_deref(), buffer)
                            .unwrap_or_else(|e| panic!("{e:?}"));
                    }
                    sorter.add(buffer, tids)
                },
            )?;
        let mut pages = Pages::default();
        let built = sorter.build(&mut pages)?;
        assert_eq!(built.blocks as usize, pages.0.len());
        assert_eq!(built.tuples as usize, heap.tids.len());
        Ok(pages.0)
    })
}

/// What the extraction of each row says.
pub(crate) fn extract_each(table: &Table, heap: &Heap) -> Vec<Option<ValueError>> {
    let mut buffer = table.spec.new_buffer();
    heap.rows
        .iter()
        .map(|row| {
            let before = buffer.len();
            let result = table.spec.extract(|i| row[i].as_deref(), &mut buffer);
            assert_eq!(buffer.len(), before + usize::from(result.is_ok()));
            result.err().map(|e| *e)
        })
        .collect()
}

/// A version of the tests' servers.
pub(crate) fn version(number: u32) -> MajorVersion {
    MajorVersion::from_version_num(number * 10_000).expect("supported")
}

/// Compares an index of ours with the server's under the mask.
#[track_caller]
pub(crate) fn assert_same_pages(what: &str, mut ours: Vec<Page>, mut theirs: Vec<Page>) {
    for side in [&mut ours, &mut theirs] {
        support::mask(side, &Kind::Btree, &mut ValueIds::default());
    }
    support::assert_same_pages(what, &Kind::Btree, &ours, &theirs);
}
