//! How large a table will be: some chunks of its inputs are packed, and the rest is taken to be
//! like them.
//!
//! Two figures: what is likely, for people; and what a load surely writes, for the refusal of
//! one that cannot end well. The second is half of what the thinnest sample would make of the
//! whole: a load must not be refused for a guess. An input whose size is not known (it is
//! compressed, or a stream) adds nothing to either.

use crate::error::Result;
use crate::load::defaults::number::Given;
use crate::load::pack::{Packer, Packing};
use crate::load::plan::{InputPlan, NativePlan, TablePlan};
use crate::record::chunk::{Chunk, Chunks};
use crate::record::format::Kind;
use crate::record::reader::ChunkReader;
use crate::source::Input;
use crate::types::Settings;
use pgformat::heap::page::PageFill;
use pgformat::heap::tuple::FormedTuple;
use pgformat::page::PAGE_BYTES;
use std::ops::AddAssign;

/// Chunks of an input that are looked at.
const SAMPLES: u64 = 8;
/// Bytes of a line pointer.
const ITEM_ID_BYTES: u64 = 4;
/// Bytes of an entry in a posting list, which is the least that a row takes in an index.
const POSTING_TID_BYTES: u64 = 6;
/// A chunk of a TOAST table in its index: a tuple of 16 bytes, on pages that are nine tenths full.
const TOAST_ENTRY_BYTES: u64 = 22;

/// Sizes of a table, in bytes where nothing else is said.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Sizes {
    /// Rows.
    pub rows: u64,
    /// The heap.
    pub heap_bytes: u64,
    /// The TOAST table with its index.
    pub toast_bytes: u64,
    /// Entries of each native index.
    pub index_bytes: Vec<u64>,
}

/// How large a table will be.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Estimate {
    /// Likely.
    pub likely: Sizes,
    /// Surely.
    pub least: Sizes,
    /// Bytes of the inputs whose size is known.
    pub known_bytes: u64,
    /// Inputs whose size is not known.
    pub unknown_inputs: usize,
}

/// What some bytes of input became.
#[derive(Debug, Clone, Default)]
struct Sample {
    input_bytes: u64,
    sizes: Sizes,
    /// The least that the index entries take.
    least_index_bytes: Vec<u64>,
}

impl Sizes {
    /// All bytes.
    pub fn total_bytes(&self) -> u64 {
        self.heap_bytes + self.toast_bytes + self.index_bytes.iter().sum::<u64>()
    }

    /// The same of `times` as much input.
    fn scaled(&self, times: f64) -> Sizes {
        let scale = |n: u64| (n as f64 * times) as u64;
        Sizes {
            rows: scale(self.rows),
            heap_bytes: scale(self.heap_bytes),
            toast_bytes: scale(self.toast_bytes),
            index_bytes: self.index_bytes.iter().map(|n| scale(*n)).collect(),
        }
    }
}

impl AddAssign<&Sizes> for Sizes {
    fn add_assign(&mut self, other: &Sizes) {
        self.rows += other.rows;
        self.heap_bytes += other.heap_bytes;
        self.toast_bytes += other.toast_bytes;
        let wanted = self.index_bytes.len().max(other.index_bytes.len());
        self.index_bytes.resize(wanted, 0);
        for (mine, theirs) in self.index_bytes.iter_mut().zip(&other.index_bytes) {
            *mine += theirs;
        }
    }
}

/// Estimates a table that is loaded natively.
///
/// # Errors
/// Those of opening and reading the inputs, and that of a bad row at the beginning of one.
pub fn estimate(table: &TablePlan, native: &NativePlan, settings: &Settings) -> Result<Estimate> {
    let mut estimate = Estimate::default();
    let indexes = native.native_indexes().count();
    estimate.likely.index_bytes = vec![0; indexes];
    estimate.least.index_bytes = vec![0; indexes];
    if native.defaults.sources.iter().any(Option::is_some) {
        // Rows cannot be packed before their values are there.
        estimate.unknown_inputs = table.inputs.len();
        return Ok(estimate);
    }
    let mut packer = Packer::new(table, native, settings);
    for (number, input) in table.inputs.iter().enumerate() {
        let Some(Input::File(file)) = opened(input)? else {
            estimate.unknown_inputs += 1;
            continue;
        };
        estimate.known_bytes += file.len();
        let chunks = Chunks::open(&file, &input.format)?;
        let samples = samples(&chunks, table, native, &mut packer, number)?;
        add(&mut estimate, &samples, file.len());
    }
    Ok(estimate)
}

/// The input, unless opening it would take bytes from somebody.
fn opened(input: &InputPlan) -> Result<Option<Input>> {
    // Records of the binary format are found from the beginning only.
    if input.format.kind == Kind::Binary || input.origin.is_fleeting() {
        return Ok(None);
    }
    let opened = input.origin.open(&input.label, input.conversion.clone());
    opened.map(Some)
}

/// Packs some chunks, evenly spread.
fn samples(
    chunks: &Chunks<'_>,
    table: &TablePlan,
    native: &NativePlan,
    packer: &mut Packer<'_>,
    input: usize,
) -> Result<Vec<Sample>> {
    let count = chunks.count();
    let mut numbers: Vec<u64> = (0..SAMPLES.min(count))
        .map(|i| i * count / SAMPLES.min(count))
        .collect();
    numbers.dedup();
    let mut samples = Vec::new();
    let mut chunk = Chunk::new();
    for number in numbers {
        chunks.read(number, &mut chunk)?;
        match sample(&chunk, table, native, packer, input) {
            Ok(sample) => samples.push(sample),
            // Where the input begins the error is one; elsewhere the chunk's beginning was
            // guessed.
            Err(error) if number == 0 => return Err(error),
            Err(_) => {}
        }
    }
    Ok(samples)
}

fn sample(
    chunk: &Chunk,
    table: &TablePlan,
    native: &NativePlan,
    packer: &mut Packer<'_>,
    input: usize,
) -> Result<Sample> {
    let plan = &table.inputs[input];
    let specs: Vec<_> = native.native_indexes().map(|(_, spec)| spec).collect();
    let mut sample = Sample {
        input_bytes: chunk.bytes(),
        least_index_bytes: vec![0; specs.len()],
        ..Sample::default()
    };
    sample.sizes.index_bytes = vec![0; specs.len()];
    let mut reader = ChunkReader::new(chunk, &plan.format);
    let mut heap = Filling::new(PageFill::new(table.relation.fillfactor));
    let mut toast = Filling::new(PageFill::for_toast());
    loop {
        let packing = packer
            .pack(&mut reader, input, plan, &mut Given::default())
            .map_err(|error| error.locate(&plan.label, 0))?;
        let packed = packer.packed();
        heap.add_all(&packed.tuples);
        toast.add_all(packed.toast.tuples());
        sample.sizes.rows += packed.tuples.len() as u64;
        sample.sizes.toast_bytes += packed.toast.tuples().len() as u64 * TOAST_ENTRY_BYTES;
        for (number, (spec, keys)) in specs.iter().zip(&packed.keys).enumerate() {
            let entries = spec.tuple_bytes(keys) + keys.len() as u64 * ITEM_ID_BYTES;
            sample.sizes.index_bytes[number] += entries;
            sample.least_index_bytes[number] += if spec.deduplicates() {
                keys.len() as u64 * POSTING_TID_BYTES
            } else {
                entries
            };
        }
        if packing == Packing::Done {
            break;
        }
    }
    sample.sizes.heap_bytes = heap.bytes();
    sample.sizes.toast_bytes += toast.bytes();
    Ok(sample)
}

/// Adds an input of so many bytes to the estimate.
fn add(estimate: &mut Estimate, samples: &[Sample], bytes: u64) {
    let ratio = |sample: &Sample| bytes as f64 / sample.input_bytes.max(1) as f64;
    let mut all = Sample::default();
    for sample in samples {
        all.input_bytes += sample.input_bytes;
        all.sizes += &sample.sizes;
    }
    if all.input_bytes == 0 {
        return;
    }
    estimate.likely += &all.sizes.scaled(ratio(&all));
    let least = samples
        .iter()
        .filter(|sample| sample.input_bytes > 0)
        .map(|sample| {
            let mut sizes = sample.sizes.clone();
            sizes.index_bytes.clone_from(&sample.least_index_bytes);
            sizes.scaled(ratio(sample) / 2.0)
        })
        .min_by_key(Sizes::total_bytes);
    if let Some(least) = least {
        estimate.least += &least;
    }
}

/// Pages as they fill.
struct Filling {
    fill: PageFill,
    full_pages: u64,
    /// Bytes on the page in hand.
    page_bytes: u64,
}

impl Filling {
    fn new(fill: PageFill) -> Filling {
        Filling {
            fill,
            full_pages: 0,
            page_bytes: 0,
        }
    }

    fn add_all(&mut self, tuples: &[FormedTuple]) {
        for tuple in tuples {
            if !self.fill.fits(tuple.len) {
                self.full_pages += 1;
                self.page_bytes = 0;
                self.fill.reset();
            }
            self.fill.add(tuple.len);
            self.page_bytes += u64::from(tuple.len) + ITEM_ID_BYTES;
        }
    }

    fn bytes(&self) -> u64 {
        self.full_pages * PAGE_BYTES as u64 + self.page_bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(input_bytes: u64, heap_bytes: u64) -> Sample {
        Sample {
            input_bytes,
            sizes: Sizes {
                rows: 10,
                heap_bytes,
                index_bytes: vec![100],
                ..Sizes::default()
            },
            least_index_bytes: vec![60],
        }
    }

    #[test]
    fn the_least_is_half_of_what_the_thinnest_sample_makes_of_the_whole() {
        let mut estimate = Estimate::default();
        add(
            &mut estimate,
            &[sample(1000, 2000), sample(1000, 500), sample(0, 0)],
            10_000,
        );
        assert_eq!(estimate.likely.heap_bytes, 12_500);
        assert_eq!(estimate.likely.rows, 150);
        assert_eq!(estimate.least.heap_bytes, 2500);
        assert_eq!(estimate.least.index_bytes, [300]);
    }

    #[test]
    fn an_input_without_samples_adds_nothing() {
        let mut estimate = Estimate::default();
        add(&mut estimate, &[], 1 << 40);
        assert_eq!(estimate, Estimate::default());
    }
}
