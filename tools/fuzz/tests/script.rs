//! Scripts, damaged in every place.

use fuzz::script::ScriptTarget;
use fuzz::{Input, Options, Target, run};
use std::path::Path;

fn seeds() -> Vec<Input> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/dumps/scripts");
    let mut paths: Vec<_> = std::fs::read_dir(directory)
        .expect("the scripts")
        .map(|file| file.expect("a script").path())
        .collect();
    paths.sort();
    assert!(paths.len() >= 3, "{paths:?}");
    paths
        .iter()
        .map(|path| Input::read(path).expect("a script"))
        .collect()
}

#[test]
fn a_script_that_is_cut_off_anywhere_does_no_harm() {
    let mut target = ScriptTarget;
    for seed in seeds() {
        assert!(target.execute(&seed));
        for len in 0..seed.files[0].1.len() {
            let mut input = seed.clone();
            input.files[0].1.truncate(len);
            target.execute(&input);
        }
    }
}

#[test]
fn mutated_scripts_do_no_harm() {
    let options = Options {
        executions: 30_000,
        seed: 15,
        findings: std::env::temp_dir(),
    };
    let summary =
        run(&mut ScriptTarget, &seeds(), &options).unwrap_or_else(|finding| panic!("{finding}"));
    // Mutations that are all refused at the door would try nothing.
    assert!(
        summary.taken > options.executions / 50 && summary.taken < options.executions,
        "{summary:?}"
    );
}
