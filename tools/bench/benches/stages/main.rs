//! Benchmarks of the stages that a row passes on its way from the input to the pages, one
//! after the other on one core: where `bench run --breakdown` tells how much time a stage takes,
//! these tell what a change to it does.
//!
//! ```text
//! cargo bench -p bench              all
//! cargo bench -p bench -- sort      those whose names contain "sort"
//! ```

mod encode;
mod form;
mod input;
mod keys;
mod page;
mod place;
mod read;
mod scan;
mod sort;
mod toast;

use criterion::Criterion;
use std::time::Duration;

fn main() {
    let mut criterion = Criterion::default()
        .warm_up_time(Duration::from_secs(1))
        .measurement_time(Duration::from_secs(3))
        .configure_from_args();
    scan::benches(&mut criterion);
    read::benches(&mut criterion);
    encode::benches(&mut criterion);
    form::benches(&mut criterion);
    place::benches(&mut criterion);
    page::benches(&mut criterion);
    keys::benches(&mut criterion);
    sort::benches(&mut criterion);
    toast::benches(&mut criterion);
    criterion.final_summary();
}
