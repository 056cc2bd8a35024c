//! The toaster on small rows, as literals; what the servers make of rows of every kind is
//! compared by the integration tests.

use super::chunks::{ToastChunks, add_base_to_pointers};
use super::compress::Compressors;
use super::pointer::ToastPointer;
use super::toaster::{TOAST_TUPLE_TARGET, Toaster};
use crate::datum::varlena::{self, Form};
use crate::heap::page::RowTooBig;
use crate::heap::tuple::{FormedTuple, TupleBuilder};
use crate::layout::{AttrLen, AttributeLayout, Compression, Storage};
use std::sync::Arc;

const TOAST_RELID: u32 = 16_390;

fn varlena(storage: Storage) -> AttributeLayout {
    AttributeLayout {
        len: AttrLen::Varlena,
        align: 4,
        by_value: false,
        storage,
        compression: Compression::Pglz,
    }
}

/// A builder and a toaster for columns of these storages.
fn table(storages: &[Storage], toast_relid: Option<u32>) -> (TupleBuilder, Toaster) {
    let layout: Arc<[AttributeLayout]> = storages.iter().copied().map(varlena).collect();
    let builder = TupleBuilder::new(Arc::clone(&layout));
    let toaster = Toaster::new(
        layout,
        TOAST_TUPLE_TARGET,
        toast_relid,
        Compressors::default(),
    );
    (builder, toaster)
}

fn row(builder: &mut TupleBuilder, values: &[&[u8]]) -> FormedTuple {
    builder.begin_row();
    for value in values {
        builder.put_varlena(value);
    }
    builder.finish_row()
}

fn noise(len: usize) -> Vec<u8> {
    let mut seed = len as u32;
    (0..len)
        .map(|_| {
            seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (seed >> 24) as u8
        })
        .collect()
}

#[test]
fn a_row_of_2032_bytes_is_left_alone() {
    let (mut builder, toaster) = table(&[Storage::Extended], Some(TOAST_RELID));
    let tuple = row(&mut builder, &[&noise(2004)]);
    assert_eq!(tuple.len, 2032);
    assert!(!toaster.needs(&tuple));
    let tuple = row(&mut builder, &[&noise(2005)]);
    assert!(toaster.needs(&tuple));
}

#[test]
fn an_incompressible_value_goes_out_of_line_and_an_index_still_sees_it() {
    let storages = [Storage::Extended, Storage::Extended];
    let (mut builder, mut toaster) = table(&storages, Some(TOAST_RELID));
    let mut chunks = ToastChunks::new();
    row(&mut builder, &[b"a row before", b""]);
    let value = noise(5000);
    let tuple = row(&mut builder, &[b"short", &value]);
    let tuple = toaster.toast(&mut builder, tuple, &mut chunks).unwrap();
    assert_eq!(tuple.len, 24 + 6 + 18);
    assert_eq!(builder.attribute(0), Some(&b"\x0dshort"[..]));

    let stored = builder.attribute(1).unwrap();
    assert_eq!(
        ToastPointer::from_bytes(stored).unwrap(),
        ToastPointer {
            raw_bytes: 5004,
            ext_info: 5000,
            value_id: 0,
            toast_relid: TOAST_RELID
        }
    );
    let mut scratch = Vec::new();
    let seen = chunks.index_datum(stored, &mut scratch);
    assert_eq!(varlena::form(seen), Form::Full);
    assert_eq!(seen[..4], varlena::full_header(5004));
    assert_eq!(varlena::payload(seen), value);

    let lens: Vec<u32> = chunks.tuples().iter().map(|t| t.len).collect();
    assert_eq!(lens, [2032, 2032, 36 + 1008]);

    chunks.add_base(70_000);
    add_base_to_pointers(builder.arena_mut(), chunks.pointer_patches(), 70_000);
    let pointer = ToastPointer::from_bytes(builder.attribute(1).unwrap()).unwrap();
    assert_eq!(pointer.value_id, 70_000);
    assert_eq!(chunks.key(chunks.tuples()[2]), (70_000, 2));
}

#[test]
fn a_compressible_value_is_compressed_in_line() {
    let (mut builder, mut toaster) = table(&[Storage::Extended], Some(TOAST_RELID));
    let mut chunks = ToastChunks::new();
    let tuple = row(&mut builder, &[&[b'x'; 4000]]);
    let tuple = toaster.toast(&mut builder, tuple, &mut chunks).unwrap();
    let stored = builder.attribute(0).unwrap();
    assert_eq!(varlena::form(stored), Form::Compressed);
    assert_eq!(stored[4..8], 4000u32.to_le_bytes());
    assert_eq!(tuple.len as usize, 24 + stored.len());
    assert_eq!(chunks.value_count(), 0);
    let mut raw = Vec::new();
    assert!(super::pglz::decompress(&stored[8..], 4000, &mut raw));
    assert_eq!(raw, [b'x'; 4000]);
}

#[test]
fn a_value_compressed_and_then_moved_is_seen_compressed_by_an_index() {
    let (mut builder, mut toaster) = table(&[Storage::Extended], Some(TOAST_RELID));
    let mut chunks = ToastChunks::new();
    let value: Vec<u8> = noise(6000).iter().flat_map(|b| [*b, 0, 0, 0]).collect();
    let tuple = row(&mut builder, &[&value]);
    toaster.toast(&mut builder, tuple, &mut chunks).unwrap();
    let pointer = ToastPointer::from_bytes(builder.attribute(0).unwrap()).unwrap();
    assert_eq!(
        (pointer.raw_bytes, pointer.compression_id()),
        (24_004, Some(0))
    );
    let mut scratch = Vec::new();
    let seen = chunks.index_datum(builder.attribute(0).unwrap(), &mut scratch);
    assert_eq!(varlena::form(seen), Form::Compressed);
    assert_eq!(seen.len(), 4 + pointer.stored_bytes());
    let mut raw = Vec::new();
    assert!(super::pglz::decompress(&seen[8..], 24_000, &mut raw));
    assert_eq!(raw, value);
}

#[test]
fn external_values_are_moved_and_main_values_stay_while_the_row_fits_on_a_page() {
    let storages = [Storage::Main, Storage::External, Storage::Plain];
    let (mut builder, mut toaster) = table(&storages, Some(TOAST_RELID));
    let mut chunks = ToastChunks::new();
    let zeros = [0u8; 3000];
    let tuple = row(&mut builder, &[&noise(5000), &zeros, &noise(100)]);
    toaster.toast(&mut builder, tuple, &mut chunks).unwrap();
    let forms: Vec<Form> = (0..3)
        .map(|i| varlena::form(builder.attribute(i).unwrap()))
        .collect();
    assert_eq!(forms, [Form::Full, Form::External, Form::Full]);

    let tuple = row(&mut builder, &[&noise(9000), b"", &noise(100)]);
    toaster.toast(&mut builder, tuple, &mut chunks).unwrap();
    assert_eq!(varlena::form(builder.attribute(0).unwrap()), Form::External);
    assert_eq!(chunks.value_count(), 2);
}

#[test]
fn of_equal_values_the_first_goes_and_a_short_one_gets_a_full_header_for_an_index() {
    // 20 values of 111 bytes stored: three must go.
    let (mut builder, mut toaster) = table(&[Storage::External; 20], Some(TOAST_RELID));
    let mut chunks = ToastChunks::new();
    let value = noise(110);
    let tuple = row(&mut builder, &[value.as_slice(); 20]);
    assert_eq!(tuple.len, 24 + 20 * 111);
    let tuple = toaster.toast(&mut builder, tuple, &mut chunks).unwrap();
    assert_eq!(tuple.len, 24 + 17 * 111 + 3 * 18);
    let external: Vec<usize> = (0..20)
        .filter(|i| varlena::form(builder.attribute(*i).unwrap()) == Form::External)
        .collect();
    assert_eq!(external, [0, 1, 2]);
    let mut scratch = Vec::new();
    let seen = chunks.index_datum(builder.attribute(1).unwrap(), &mut scratch);
    assert_eq!(seen[..4], varlena::full_header(114));
    assert_eq!(seen[4..], value);
}

#[test]
fn a_row_that_stays_too_big_leaves_nothing_behind() {
    let storages = [Storage::Plain, Storage::External];
    let (mut builder, mut toaster) = table(&storages, Some(TOAST_RELID));
    let mut chunks = ToastChunks::new();
    let before = row(&mut builder, &[b"x", b"y"]);
    let tuple = row(&mut builder, &[&noise(8200), &noise(3000)]);
    let error = toaster.toast(&mut builder, tuple, &mut chunks).unwrap_err();
    assert_eq!(error, RowTooBig { size: 24 + 8224 });
    assert_eq!((chunks.value_count(), chunks.tuples().len()), (0, 0));
    assert!(chunks.arena().is_empty() && chunks.pointer_patches().is_empty());
    let end = (before.pos + before.len) as usize;
    assert!(builder.arena().len() <= end.next_multiple_of(8));
    // The next row stands where the refused one stood.
    let next = row(&mut builder, &[b"z", b""]);
    assert_eq!(next.pos as usize, end.next_multiple_of(8));
}

#[test]
fn without_a_toast_table_nothing_goes_out_of_line() {
    let (mut builder, mut toaster) = table(&[Storage::Extended], None);
    let mut chunks = ToastChunks::new();
    let tuple = row(&mut builder, &[&noise(8000)]);
    assert_eq!(toaster.toast(&mut builder, tuple, &mut chunks), Ok(tuple));
    let tuple = row(&mut builder, &[&noise(8200)]);
    assert!(toaster.toast(&mut builder, tuple, &mut chunks).is_err());
}
