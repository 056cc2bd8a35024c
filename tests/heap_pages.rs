//! Heap, TOAST and visibility map pages against those that COPY FREEZE writes, byte for byte
//! under the mask, on every version.
//!
//! Rows are given as values; the server gets them by COPY in binary format, we form, toast,
//! place and lay them out ourselves.

use pgformat::heap::page::{HeapPageWriter, PageFill, RowTooBig};
use pgformat::heap::tuple::{FormedTuple, TupleBuilder};
use pgformat::heap::visibility_map;
use pgformat::layout::{AttrLen, AttributeLayout, Compression, Storage};
use pgformat::page::PAGE_BYTES;
use pgformat::page::header::PageHeader;
use pgformat::page::view::PageView;
use pgformat::toast::chunks::{ToastChunks, add_base_to_pointers};
use pgformat::toast::compress::Compressors;
use pgformat::toast::toaster::Toaster;
use pgpagewrite::build::lz4::BundledLz4;
use pgpagewrite::sys::simd::page_checksum;
use std::io::Write;
use std::sync::Arc;
use support::{Fork, Kind, Page, Server, ValueIds};

/// A value of a row, as COPY's binary format has it.
#[derive(Clone, Debug)]
enum Value {
    Null,
    Int4(i32),
    Int8(i64),
    Bytes(Vec<u8>),
}

type Row = Vec<Value>;

/// What we make of rows, or what the server made.
#[derive(Default)]
struct Files {
    heap: Vec<Page>,
    map: Vec<Page>,
    toast: Vec<Page>,
}

/// A generator of test values; the same on every run.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 >> 11
    }

    fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }

    /// Lengths of every magnitude below 2^`bits`.
    fn len(&mut self, bits: u32) -> usize {
        let magnitude = self.below(bits as usize + 1) as u32;
        self.below(1 << magnitude)
    }

    /// Bytes of one of many kinds, from noise to a single byte repeated.
    fn bytes(&mut self, len: usize) -> Vec<u8> {
        const WORDS: &[&str] = &[
            "the ",
            "quick ",
            "brown ",
            "fox ",
            "jumps ",
            "über ",
            "den ",
            "faulen ",
            "Hund. ",
            "SELECT ",
            "0123456789",
            "\t",
            "\n",
            "shadoks ",
            "pompaient ",
            "日本 ",
        ];
        let kind = self.below(9);
        let alphabet = 2 + self.below(60);
        let period = 1 + self.len(13);
        let mut bytes: Vec<u8> = Vec::with_capacity(len + 16);
        while bytes.len() < len {
            match kind {
                1 | 2 => bytes.extend(WORDS[self.below(WORDS.len())].as_bytes()),
                3 => bytes.push(b' ' + self.below(alphabet) as u8),
                4 => bytes.push(0xc0 + self.below(alphabet) as u8),
                5 if bytes.len() < period => bytes.push(self.next() as u8),
                5 => bytes.push(bytes[bytes.len() - period]),
                6 => {
                    let byte = self.next() as u8;
                    let run = 1 + self.len(10);
                    bytes.resize(bytes.len() + run, byte);
                }
                7 if self.below(20) > 0 && bytes.len() >= period => {
                    bytes.push(bytes[bytes.len() - period]);
                }
                0 | 7 => bytes.push(self.next() as u8),
                // Noise with something compressible after the first kilobyte or before.
                _ if bytes.len() < period => bytes.push(self.next() as u8),
                _ => bytes.push(b"ab"[self.below(2)]),
            }
        }
        bytes.truncate(len);
        bytes
    }
}

/// The layout of a table's attributes and its TOAST table, from its catalogs.
fn describe(server: &Server, table: &str) -> (Vec<AttributeLayout>, Option<u32>) {
    let mut client = server.connect("postgres");
    let layouts = client
        .query(
            "SELECT attlen, attalign::text, attbyval, attstorage::text, attcompression::text
               FROM pg_attribute WHERE attrelid = $1::text::regclass AND attnum > 0 ORDER BY attnum",
            &[&table],
        )
        .unwrap()
        .iter()
        .map(|row| {
            let char = |i: usize| row.get::<_, String>(i).bytes().next().unwrap_or(0);
            AttributeLayout {
                len: AttrLen::from_attlen(row.get(0)).unwrap(),
                align: AttributeLayout::align_from_char(char(1)).unwrap(),
                by_value: row.get(2),
                storage: Storage::from_char(char(3)).unwrap(),
                compression: if char(4) == b'l' { Compression::Lz4 } else { Compression::Pglz },
            }
        })
        .collect();
    let toast: u32 = client
        .query_one(
            "SELECT reltoastrelid FROM pg_class WHERE oid = $1::text::regclass",
            &[&table],
        )
        .unwrap()
        .get(0);
    (layouts, (toast != 0).then_some(toast))
}

/// The rows in COPY's binary format.
fn copy_data(rows: &[Row]) -> Vec<u8> {
    let mut data = b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0".to_vec();
    for row in rows {
        data.extend((row.len() as i16).to_be_bytes());
        for value in row {
            match value {
                Value::Null => data.extend((-1i32).to_be_bytes()),
                Value::Int4(v) => {
                    data.extend(4i32.to_be_bytes());
                    data.extend(v.to_be_bytes());
                }
                Value::Int8(v) => {
                    data.extend(8i32.to_be_bytes());
                    data.extend(v.to_be_bytes());
                }
                Value::Bytes(v) => {
                    data.extend((v.len() as i32).to_be_bytes());
                    data.extend(v);
                }
            }
        }
    }
    data.extend((-1i16).to_be_bytes());
    data
}

/// Has the server load the rows into the table, which is emptied first.
fn load(server: &Server, table: &str, rows: &[Row]) -> Result<(), postgres::Error> {
    let mut client = server.connect("postgres");
    let mut transaction = client.transaction()?;
    transaction.batch_execute(&format!("TRUNCATE {table}"))?;
    let mut writer = transaction.copy_in(&format!(
        "COPY {table} FROM STDIN WITH (FORMAT binary, FREEZE)"
    ))?;
    writer.write_all(&copy_data(rows)).unwrap();
    writer.finish()?;
    transaction.commit()
}

/// What the server made of the rows.
fn theirs(server: &Server, table: &str, toast_relid: Option<u32>, rows: &[Row]) -> Files {
    load(server, table, rows).unwrap();
    let pages = |name: &str, fork| {
        let pages = server.pages("postgres", name, fork);
        let used = support::without_trailing_zero_pages(&pages).to_vec();
        for (block, page) in used.iter().enumerate() {
            let stored = PageHeader::read(page).checksum;
            assert_eq!(
                page_checksum(page, block as u32),
                stored,
                "block {block} of {name}"
            );
        }
        used
    };
    let toast = match toast_relid {
        None => Vec::new(),
        Some(oid) => {
            let name = server.value("postgres", &format!("SELECT {oid}::regclass"));
            // The server may make a map for it, and sets no bit there.
            for page in server.pages("postgres", &name, Fork::VisibilityMap) {
                assert!(page[24..].iter().all(|b| *b == 0));
            }
            pages(&name, Fork::Main)
        }
    };
    Files {
        heap: pages(table, Fork::Main),
        map: pages(table, Fork::VisibilityMap),
        toast,
    }
}

fn put_row(builder: &mut TupleBuilder, row: &Row) -> FormedTuple {
    builder.begin_row();
    for value in row {
        match value {
            Value::Null => builder.put_null(),
            Value::Int4(v) => builder.put_fixed(&v.to_le_bytes()),
            Value::Int8(v) => builder.put_fixed(&v.to_le_bytes()),
            Value::Bytes(v) => builder.put_varlena(v),
        }
    }
    builder.finish_row()
}

/// Lays tuples out on pages.
fn lay_out(arena: &[u8], tuples: &[FormedTuple], mut fill: PageFill, toast: bool) -> Vec<Page> {
    let mut placed: Vec<Vec<FormedTuple>> = Vec::new();
    for tuple in tuples {
        if placed.is_empty() || !fill.fits(tuple.len) {
            fill.reset();
            placed.push(Vec::new());
        }
        let offset = fill.add(tuple.len);
        placed.last_mut().unwrap().push(*tuple);
        assert_eq!(offset as usize, placed.last().unwrap().len());
    }
    placed
        .iter()
        .enumerate()
        .map(|(block, tuples)| {
            let mut page = [0xa5; PAGE_BYTES];
            let mut writer = HeapPageWriter::new(&mut page, block as u32);
            for tuple in tuples {
                writer.put(&arena[tuple.pos as usize..(tuple.pos + tuple.len) as usize]);
            }
            if toast {
                writer.finish_toast();
            } else {
                writer.finish();
            }
            page
        })
        .collect()
}

/// What we make of the rows, in two batches, as threads would.
fn ours(
    layouts: &[AttributeLayout],
    toast_relid: Option<u32>,
    fillfactor: u8,
    target_bytes: usize,
    rows: &[Row],
) -> Result<Files, RowTooBig> {
    let layout: Arc<[AttributeLayout]> = Arc::from(layouts);
    let compressors = Compressors {
        lz4: Some(Box::new(BundledLz4)),
        ..Compressors::default()
    };
    let mut toaster = Toaster::new(Arc::clone(&layout), target_bytes, toast_relid, compressors);
    let (mut arena, mut tuples) = (Vec::new(), Vec::new());
    let (mut toast_arena, mut toast_tuples) = (Vec::new(), Vec::new());
    let mut base = 30_000;
    let half = rows.len() / 2;
    for batch in [&rows[..half], &rows[half..]] {
        let mut builder = TupleBuilder::new(Arc::clone(&layout));
        let mut chunks = ToastChunks::new();
        let mut formed = Vec::new();
        for row in batch {
            let mut tuple = put_row(&mut builder, row);
            if toaster.needs(&tuple) {
                tuple = toaster.toast(&mut builder, tuple, &mut chunks)?;
            }
            formed.push(tuple);
        }
        chunks.add_base(base);
        add_base_to_pointers(builder.arena_mut(), chunks.pointer_patches(), base);
        base += chunks.value_count();
        let shift = |at: usize| {
            move |t: &FormedTuple| FormedTuple {
                pos: t.pos + at as u32,
                len: t.len,
            }
        };
        tuples.extend(formed.iter().map(shift(arena.len())));
        arena.extend_from_slice(builder.arena());
        arena.resize(arena.len().next_multiple_of(8), 0);
        toast_tuples.extend(chunks.tuples().iter().map(shift(toast_arena.len())));
        toast_arena.extend_from_slice(chunks.arena());
        toast_arena.resize(toast_arena.len().next_multiple_of(8), 0);
    }
    let heap = lay_out(&arena, &tuples, PageFill::new(fillfactor), false);
    let toast = lay_out(&toast_arena, &toast_tuples, PageFill::for_toast(), true);
    Ok(Files {
        map: map(heap.len() as u32),
        heap,
        toast,
    })
}

/// The map of a heap of so many blocks.
fn map(heap_blocks: u32) -> Vec<Page> {
    (0..visibility_map::map_blocks(heap_blocks))
        .map(|block| {
            let mut page = [0xa5; PAGE_BYTES];
            visibility_map::fill_page(block, heap_blocks, &mut page);
            page
        })
        .collect()
}

/// A table, as SQL says it, and what the parts under test must know.
struct Table<'a> {
    what: &'a str,
    create: &'a str,
    fillfactor: u8,
    target_bytes: usize,
}

impl Table<'_> {
    fn create(&self, server: &Server) {
        server.execute(
            "postgres",
            &format!(
                "DROP TABLE IF EXISTS t; {}; ALTER TABLE t SET (fillfactor = {}, toast_tuple_target = {})",
                self.create, self.fillfactor, self.target_bytes
            ),
        );
    }
}

/// Asserts that our pages of these rows are the server's; gives ours.
#[track_caller]
fn assert_same_files(server: &Server, table: &Table<'_>, rows: &[Row]) -> Files {
    let (layouts, toast_relid) = describe(server, "t");
    let theirs = theirs(server, "t", toast_relid, rows);
    let ours = ours(
        &layouts,
        toast_relid,
        table.fillfactor,
        table.target_bytes,
        rows,
    )
    .expect("rows that fit");
    let heap = Kind::Heap(support::attributes(server, "postgres", "t"));
    let (mut our_ids, mut their_ids) = (ValueIds::default(), ValueIds::default());
    for (name, kind, our, their) in [
        ("heap", heap, &ours.heap, &theirs.heap),
        ("TOAST table", Kind::Toast, &ours.toast, &theirs.toast),
        ("visibility map", Kind::Map, &ours.map, &theirs.map),
    ] {
        let (mut our, mut their) = (our.clone(), their.clone());
        support::mask(&mut our, &kind, &mut our_ids);
        support::mask(&mut their, &kind, &mut their_ids);
        let what = format!(
            "{name} of {} (fillfactor {}, target {})",
            table.what, table.fillfactor, table.target_bytes
        );
        support::assert_same_pages(&what, &kind, &our, &their);
    }
    ours
}

#[test]
fn rows_go_where_copy_freeze_puts_them_at_every_fillfactor() {
    support::each_version(&[("wal_level", "minimal")], |server| {
        for fillfactor in [10, 11, 33, 50, 75, 90, 99, 100] {
            let table = Table {
                what: "short and long rows",
                create: "CREATE TABLE t (i integer, s bytea, n bigint)",
                fillfactor,
                target_bytes: 8160,
            };
            table.create(server);
            server.execute("postgres", "ALTER TABLE t ALTER s SET STORAGE PLAIN");
            let mut random = Random(fillfactor as u64 * 77 + 1);
            let rows: Vec<Row> = (0..3000)
                .map(|i| {
                    let len = if random.below(40) == 0 {
                        4000 + random.below(4090)
                    } else {
                        random.len(9)
                    };
                    vec![
                        Value::Int4(i),
                        if random.below(5) == 0 {
                            Value::Null
                        } else {
                            Value::Bytes(random.bytes(len))
                        },
                        Value::Int8(random.next() as i64),
                    ]
                })
                .collect();
            let ours = assert_same_files(server, &table, &rows);
            assert!(ours.heap.len() > 60 && ours.map.len() == 1);
        }
    });
}

#[test]
fn a_page_holds_291_rows_of_nothing() {
    support::each_version(&[], |server| {
        let table = Table {
            what: "empty rows",
            create: "CREATE TABLE t ()",
            fillfactor: 100,
            target_bytes: 2032,
        };
        table.create(server);
        let ours = assert_same_files(server, &table, &vec![Vec::new(); 1000]);
        assert_eq!(PageView::new(&ours.heap[0]).unwrap().item_count(), 291);
    });
}

#[test]
fn no_rows_are_no_blocks_in_any_fork() {
    support::each_version(&[], |server| {
        let table = Table {
            what: "no rows",
            create: "CREATE TABLE t (s text)",
            fillfactor: 100,
            target_bytes: 2032,
        };
        table.create(server);
        let ours = assert_same_files(server, &table, &[]);
        assert!(ours.heap.is_empty() && ours.map.is_empty() && ours.toast.is_empty());
    });
}

#[test]
fn values_of_every_storage_are_toasted_as_the_server_does_at_every_target() {
    support::each_version(&[("wal_level", "minimal")], |server| {
        for (target_bytes, fillfactor) in [
            (128, 100),
            (256, 70),
            (600, 100),
            (2032, 100),
            (2033, 30),
            (4000, 100),
            (8160, 100),
        ] {
            let table = Table {
                what: "values of every storage",
                create: "CREATE TABLE t (a bytea, i integer, b bytea, c bytea, n bigint, d bytea, e bytea, f bytea);
                    ALTER TABLE t ALTER b SET STORAGE EXTERNAL, ALTER c SET STORAGE MAIN,
                        ALTER d SET STORAGE PLAIN, ALTER f SET STORAGE MAIN",
                fillfactor,
                target_bytes,
            };
            table.create(server);
            let mut random = Random(target_bytes as u64 + 5);
            let rows: Vec<Row> = (0..700)
                .map(|i| {
                    let mut value = |bits: u32| {
                        if random.below(6) == 0 {
                            return Value::Null;
                        }
                        let len = random.len(bits);
                        Value::Bytes(random.bytes(len))
                    };
                    // What must stay in line never fills a page.
                    vec![
                        value(14),
                        Value::Int4(i),
                        value(13),
                        value(12),
                        if i % 3 == 0 {
                            Value::Null
                        } else {
                            Value::Int8(-1)
                        },
                        value(11),
                        value(15),
                        value(11),
                    ]
                })
                .collect();
            let ours = assert_same_files(server, &table, &rows);
            assert!(ours.toast.len() > 50, "much went out of line");
        }
    });
}

#[test]
fn equal_lengths_are_toasted_first_column_first() {
    support::each_version(&[], |server| {
        let columns: Vec<String> = (0..60).map(|i| format!("c{i} bytea")).collect();
        let create = format!("CREATE TABLE t ({})", columns.join(", "));
        let table = Table {
            what: "equal lengths",
            create: &create,
            fillfactor: 100,
            target_bytes: 2032,
        };
        table.create(server);
        let mut random = Random(99);
        let rows: Vec<Row> = (0..60)
            .map(|len| {
                (0..60)
                    .map(|_| Value::Bytes(random.bytes(20 + len * 3)))
                    .collect()
            })
            .collect();
        assert_same_files(server, &table, &rows);
    });
}

#[test]
fn more_columns_than_the_target_has_room_for_stay_as_they_are() {
    support::each_version(&[], |server| {
        // A header of 224 bytes for 1600 columns is more than the target of 128.
        let columns: Vec<String> = (0..1600).map(|i| format!("c{i} bytea")).collect();
        let create = format!("CREATE TABLE t ({})", columns.join(", "));
        let table = Table {
            what: "1600 columns",
            create: &create,
            fillfactor: 100,
            target_bytes: 128,
        };
        table.create(server);
        let mut random = Random(3);
        let rows: Vec<Row> = (0..20)
            .map(|_| {
                (0..1600)
                    .map(|i| match i % 40 {
                        0 => Value::Bytes(random.bytes(100)),
                        _ => Value::Null,
                    })
                    .collect()
            })
            .collect();
        let ours = assert_same_files(server, &table, &rows);
        assert!(ours.toast.is_empty());
    });
}

#[test]
fn pglz_gives_the_servers_bytes_for_values_of_every_kind_and_length() {
    support::each_version(&[("wal_level", "minimal")], |server| {
        let table = Table {
            what: "compressed values",
            create: "CREATE TABLE t (filler bytea, v bytea);
                ALTER TABLE t ALTER filler SET STORAGE PLAIN, ALTER v SET STORAGE EXTENDED",
            fillfactor: 100,
            target_bytes: 128,
        };
        table.create(server);
        let mut random = Random(server.version() as u64 * 1000 + 17);
        let mut rows: Vec<Row> = (25..600)
            .flat_map(|len| [len, len])
            .map(|len| vec![Value::Bytes(vec![1; 2040]), Value::Bytes(random.bytes(len))])
            .collect();
        for _ in 0..2500 {
            let len = random.len(15);
            rows.push(vec![
                Value::Bytes(vec![1; 2040]),
                Value::Bytes(random.bytes(len)),
            ]);
        }
        for len in [100_000, 1_000_000, 3_000_000] {
            for _ in 0..6 {
                rows.push(vec![Value::Null, Value::Bytes(random.bytes(len))]);
            }
        }
        assert_same_files(server, &table, &rows);
    });
}

#[test]
fn lz4_gives_the_servers_bytes_for_values_of_every_kind_and_length() {
    // Of the servers that the tests use only this one is built with lz4.
    let server = Server::start(15, &[("wal_level", "minimal")]);
    let table = Table {
        what: "values compressed by lz4",
        create: "CREATE TABLE t (filler bytea, v bytea COMPRESSION lz4, w bytea COMPRESSION lz4);
            ALTER TABLE t ALTER filler SET STORAGE PLAIN, ALTER w SET STORAGE MAIN",
        fillfactor: 100,
        target_bytes: 128,
    };
    table.create(&server);
    let mut random = Random(4);
    let mut rows: Vec<Row> = (1..600)
        .map(|len| {
            vec![
                Value::Bytes(vec![1; 2040]),
                Value::Bytes(random.bytes(len)),
                Value::Bytes(random.bytes(600 - len)),
            ]
        })
        .collect();
    for _ in 0..2500 {
        let len = random.len(15);
        rows.push(vec![
            Value::Bytes(vec![1; 2040]),
            Value::Bytes(random.bytes(len)),
            Value::Null,
        ]);
    }
    for len in [100_000, 1_000_000, 3_000_000] {
        for _ in 0..6 {
            rows.push(vec![
                Value::Null,
                Value::Null,
                Value::Bytes(random.bytes(len)),
            ]);
        }
    }
    assert_same_files(&server, &table, &rows);
}

#[test]
fn a_table_without_a_toast_table_compresses_and_then_refuses() {
    support::each_version(&[], |server| {
        let table = Table {
            what: "a table without a TOAST table",
            // Columns of at most 100 characters need none; then the catalog forgets the limit.
            create: "CREATE TABLE t (i integer, a varchar(100), b varchar(100), c varchar(100));
                ",
            fillfactor: 100,
            target_bytes: 2032,
        };
        table.create(server);
        server.execute(
            "postgres",
            "UPDATE pg_attribute SET atttypmod = -1 WHERE attrelid = 't'::regclass",
        );
        let (layouts, toast_relid) = describe(server, "t");
        assert_eq!(toast_relid, None);
        let mut random = Random(8);
        let mut text = |len: usize| {
            let alphabet = 1 + random.below(3);
            Value::Bytes(
                (0..len)
                    .map(|_| b'a' + random.below(alphabet) as u8)
                    .collect(),
            )
        };
        let rows: Vec<Row> = (0..300)
            .map(|i| {
                vec![
                    Value::Int4(i),
                    text(i as usize * 20),
                    text(2000),
                    text(i as usize * 10),
                ]
            })
            .collect();
        assert_same_files(server, &table, &rows);

        let mut random = Random(9);
        let noise = Value::Bytes((0..9000).map(|_| b' ' + random.below(90) as u8).collect());
        let refused = vec![vec![Value::Int4(1), Value::Null, noise, text(3000)]];
        assert_same_error(server, &layouts, None, &refused);
    });
}

#[test]
fn a_row_that_stays_too_big_gets_the_servers_error() {
    support::each_version(&[], |server| {
        server.execute(
            "postgres",
            "CREATE TABLE t (a bytea, b bytea); ALTER TABLE t ALTER a SET STORAGE PLAIN",
        );
        let (layouts, toast_relid) = describe(server, "t");
        for len in [8133, 8140, 20_000] {
            let row = vec![
                Value::Bytes(vec![1; len]),
                Value::Bytes(Random(1).bytes(3000)),
            ];
            assert_same_error(server, &layouts, toast_relid, &[row]);
        }
        // The longest that fits.
        let table = Table {
            what: "8160 bytes",
            create: "CREATE TABLE t (a bytea, b bytea)",
            fillfactor: 10,
            target_bytes: 2032,
        };
        table.create(server);
        server.execute("postgres", "ALTER TABLE t ALTER a SET STORAGE PLAIN");
        let row = vec![Value::Bytes(vec![1; 8132]), Value::Null];
        assert_same_files(server, &table, &[row.clone(), row]);
    });
}

#[track_caller]
fn assert_same_error(
    server: &Server,
    layouts: &[AttributeLayout],
    toast_relid: Option<u32>,
    rows: &[Row],
) {
    let theirs = load(server, "t", rows).unwrap_err();
    let theirs = theirs.as_db_error().expect("an error of the server");
    let ours = ours(layouts, toast_relid, 100, 2032, rows)
        .err()
        .expect("a row that is too big");
    assert_eq!(ours.to_string(), theirs.message());
    assert_eq!(RowTooBig::SQLSTATE, theirs.code().code());
}
