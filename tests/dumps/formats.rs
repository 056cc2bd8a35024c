//! Every format and compression, of each pg_dump.

use super::{KINDS, OURS, SOURCE, THEIRS, assert_same, build, dumped, fresh, server_with_kinds};
use std::fs;
use std::process::Stdio;
use support::{Server, run};

/// What a pg_dump is asked for, and the file's name.
const FORMATS: [(&str, &[&str]); 9] = [
    ("custom.dump", &["-Fc"]),
    ("plain-custom.dump", &["-Fc", "-Z0"]),
    ("directory", &["-Fd"]),
    ("plain-directory", &["-Fd", "-Z0"]),
    ("archive.tar", &["-Ft"]),
    ("script.sql", &["-Fp"]),
    ("inserts.sql", &["--inserts"]),
    ("rows.sql", &["--column-inserts", "--rows-per-insert=30"]),
    ("inserts.dump", &["-Fc", "--inserts"]),
];

/// Compressions that pg_dump 17 here has.
const COMPRESSED: [(&str, &[&str]); 5] = [
    ("lz4.dump", &["-Fc", "-Z", "lz4"]),
    ("zstd.dump", &["-Fc", "-Z", "zstd"]),
    ("lz4-directory", &["-Fd", "-Z", "lz4"]),
    ("zstd-directory", &["-Fd", "-Z", "zstd"]),
    ("script.sql.zst", &["-Fp", "-Z", "zstd"]),
];

/// Restores a dump of each format and compares with what pg_restore makes of an archive.
fn every_format_restores_alike(version: u32, pg_dump: u32, formats: &[(&str, &[&str])]) {
    let server = server_with_kinds(version);
    let archive = dumped(&server, pg_dump, "theirs.dump", &["-Fc"]);
    fresh(&server, THEIRS);
    let mut restore = server.client(pg_dump, "pg_restore", "postgres");
    // A newer one sets what an older server does not know, and goes on.
    if pg_dump <= version.max(15) {
        restore.arg("-e");
    }
    run(restore.args(["-d", THEIRS]).arg(&archive));
    let theirs = server.dump(THEIRS);
    assert!(theirs.len() > 10_000, "{} lines", theirs.len());
    for (name, args) in formats {
        let dump = dumped(&server, pg_dump, name, args);
        fresh(&server, OURS);
        let ran = build(&server, OURS, &["--progress", "none"], &dump);
        let report = ran.expect_success();
        assert_same(name, &server.dump(OURS), &theirs);
        assert!(
            report.contains("shop.wide: 200 rows") && report.contains("wide_pkey: native"),
            "{name}: {report}"
        );
        support::assert_healthy(&server, OURS);
    }
}

#[test]
fn every_format_restores_as_pg_restore_does_14() {
    every_format_restores_alike(14, 15, &FORMATS);
}

#[test]
fn every_format_restores_as_pg_restore_does_15() {
    every_format_restores_alike(15, 15, &FORMATS);
}

#[test]
fn every_format_restores_as_pg_restore_does_16() {
    every_format_restores_alike(16, 16, &FORMATS);
}

#[test]
fn every_format_restores_as_pg_restore_does_17() {
    every_format_restores_alike(17, 17, &FORMATS);
}

#[test]
fn every_format_restores_as_pg_restore_does_18() {
    every_format_restores_alike(18, 18, &FORMATS);
}

#[test]
fn lz4_and_zstd_are_read_in_every_format() {
    every_format_restores_alike(17, 17, &COMPRESSED);
}

#[test]
fn a_dump_of_a_newer_pg_dump_restores_into_an_older_server() {
    every_format_restores_alike(14, 18, &FORMATS[..1]);
}

/// Feeds a dump through a pipe to standard input.
fn build_from_pipe(server: &Server, dump: &std::path::Path) {
    let mut command = std::process::Command::new(super::PROGRAM);
    command.args(["build", "--no-analyze", "-d"]);
    command.arg(server.conninfo(OURS)).arg("-");
    let mut cat = std::process::Command::new("cat")
        .arg(dump)
        .stdout(Stdio::piped())
        .spawn()
        .expect("cat");
    command.stdin(cat.stdout.take().expect("a pipe"));
    run(&mut command).expect_success();
    assert!(cat.wait().expect("cat ends").success());
}

#[test]
fn pipes_and_archives_without_places_restore_alike() {
    let server = server_with_kinds(15);
    let theirs = server.dump(SOURCE);
    // A pipe cannot be gone back in: the table of contents has no places of data.
    let path = server.dir().join("pipe.dump");
    let mut pg_dump = server.client(15, "pg_dump", SOURCE);
    let mut pg_dump = pg_dump
        .arg("-Fc")
        .stdout(Stdio::piped())
        .spawn()
        .expect("pg_dump");
    let mut from = pg_dump.stdout.take().expect("a pipe");
    let mut to = fs::File::create(&path).expect("a file");
    std::io::copy(&mut from, &mut to).expect("a dump");
    assert!(pg_dump.wait().expect("pg_dump ends").success());
    fresh(&server, OURS);
    build(&server, OURS, &[], &path).expect_success();
    assert_same("without places", &server.dump(OURS), &theirs);
    for (name, args) in [("custom.dump", &["-Fc"][..]), ("script.sql", &["-Fp"])] {
        let dump = dumped(&server, 15, name, args);
        fresh(&server, OURS);
        build_from_pipe(&server, &dump);
        assert_same(name, &server.dump(OURS), &theirs);
    }
    for program in ["gzip", "xz"] {
        let script = server.dir().join("script.sql");
        run(std::process::Command::new(program)
            .args(["-k", "-f"])
            .arg(&script))
        .expect_success();
        let ending = if program == "gzip" { "gz" } else { "xz" };
        // What it is, its content says.
        let renamed = server.dir().join(format!("compressed by {program}"));
        fs::rename(script.with_extension(format!("sql.{ending}")), &renamed).expect("renamed");
        fresh(&server, OURS);
        build(&server, OURS, &[], &renamed).expect_success();
        assert_same(program, &server.dump(OURS), &theirs);
    }
}

#[test]
fn a_new_cluster_is_made_of_a_dump() {
    let server = server_with_kinds(15);
    let dump = dumped(&server, 15, "custom.dump", &["-Fc"]);
    let pgdata = server.dir().join("new");
    let mut command = std::process::Command::new(super::PROGRAM);
    command.args([
        "build",
        "--create-cluster",
        "--database",
        "shop",
        "--no-analyze",
        "-D",
    ]);
    command.arg(&pgdata).arg("--pg-bin").arg(server.bin_dir());
    run(command.arg(&dump)).expect_success();
    assert!(pgdata.join("PG_VERSION").exists());
    // A dump that fails leaves no cluster.
    let broken = server.dir().join("broken.dump");
    let bytes = fs::read(&dump).expect("the dump");
    fs::write(&broken, &bytes[..bytes.len() / 2]).expect("half a dump");
    let pgdata = server.dir().join("none");
    let mut command = std::process::Command::new(super::PROGRAM);
    command.args(["build", "--create-cluster", "--database", "shop", "-D"]);
    command.arg(&pgdata).arg("--pg-bin").arg(server.bin_dir());
    run(command.arg(&broken)).expect_failure(1);
    assert!(!pgdata.exists());
}

#[test]
fn the_kinds_have_a_row_in_every_table() {
    // What is compared elsewhere is only as good as what is there.
    for object in [
        "CREATE POLICY",
        "CREATE EVENT TRIGGER",
        "lo_from_bytea",
        "EXCLUDE",
        "PARTITION BY HASH",
    ] {
        assert!(KINDS.contains(object), "{object}");
    }
}
