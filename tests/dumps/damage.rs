//! Dumps that are not whole: a clear error, and nothing stays.

use super::{NOTHING, OURS, build, dumped, fresh, objects, server_with_kinds};
use std::fs;

#[test]
fn a_dump_that_is_cut_off_leaves_nothing() {
    let server = server_with_kinds(15);
    for (name, args) in [
        ("custom.dump", &["-Fc"][..]),
        ("plain.dump", &["-Fc", "-Z0"]),
        ("archive.tar", &["-Ft"]),
        ("script.sql", &["-Fp"]),
    ] {
        let dump = dumped(&server, 15, name, args);
        let bytes = fs::read(&dump).expect("the dump");
        let data = if name == "script.sql" { 0 } else { 60_000 };
        for len in [
            10,
            3000,
            data + (bytes.len() - data) / 3,
            bytes.len() - 100_000.min(bytes.len() / 4),
        ] {
            let cut = server.dir().join(format!("cut-{name}"));
            fs::write(&cut, &bytes[..len]).expect("a part of the dump");
            fresh(&server, OURS);
            let ran = build(&server, OURS, &[], &cut);
            let is_empty_script = name == "script.sql" && len == 10;
            if is_empty_script {
                // A comment alone is a script, too.
                ran.expect_success();
            } else {
                let stderr = ran.expect_failure(1);
                assert!(
                    stderr.contains(&format!("cut-{name}")),
                    "{name} {len}: {stderr}"
                );
            }
            assert_eq!(objects(&server, OURS), NOTHING, "{name} {len}");
        }
    }
}

#[test]
fn a_row_that_does_not_parse_is_told_with_its_member_and_line() {
    let server = server_with_kinds(15);
    let script = dumped(&server, 15, "script.sql", &["-Fp"]);
    let text = fs::read_to_string(&script).expect("the script");
    let row = text.find("\n17\t").expect("a row") + 1;
    let line = text[..row].matches('\n').count() + 1;
    let broken = server.dir().join("broken.sql");
    fs::write(&broken, format!("{}x{}", &text[..row], &text[row..])).expect("a script");
    fresh(&server, OURS);
    let stderr = build(&server, OURS, &[], &broken).expect_failure(1);
    assert!(
        stderr.contains("22P02") && stderr.contains(&format!("broken.sql, line {line}, column")),
        "line {line}: {stderr}"
    );
    assert_eq!(objects(&server, OURS), NOTHING);
    let directory = dumped(&server, 15, "directory", &["-Fd", "-Z0"]);
    let files = fs::read_dir(&directory).expect("the directory");
    let member = files
        .map(|f| f.expect("a file").path())
        .find(|p| fs::read(p).is_ok_and(|b| b.starts_with(b"1\tline 1\\n")))
        .expect("the member of shop.wide");
    let bytes = fs::read(&member).expect("the member");
    fs::write(&member, [b"y", bytes.as_slice()].concat()).expect("a member");
    let stderr = build(&server, OURS, &[], &directory).expect_failure(1);
    assert!(
        stderr.contains("TABLE DATA shop.wide, line 1, column id: \"y1\""),
        "{stderr}"
    );
    fs::remove_file(&member).expect("removed");
    let stderr = build(&server, OURS, &[], &directory).expect_failure(3);
    assert!(
        stderr.contains("58P01") && stderr.contains(".dat"),
        "{stderr}"
    );
    assert_eq!(objects(&server, OURS), NOTHING);
}

#[test]
fn archives_that_cannot_be_read_are_told_apart() {
    let server = server_with_kinds(15);
    let dump = dumped(&server, 15, "custom.dump", &["-Fc"]);
    let mut bytes = fs::read(&dump).expect("the dump");
    bytes[6] = 99;
    let newer = server.dir().join("newer.dump");
    fs::write(&newer, &bytes).expect("a dump");
    fresh(&server, OURS);
    let stderr = build(&server, OURS, &[], &newer).expect_failure(1);
    assert!(
        stderr.contains("unsupported version (1.99) in file header"),
        "{stderr}"
    );
    let empty = server.dir().join("empty directory");
    fs::create_dir(&empty).expect("a directory");
    let stderr = build(&server, OURS, &[], &empty).expect_failure(1);
    assert!(
        stderr.contains("does not appear to be a valid archive"),
        "{stderr}"
    );
    let stderr = build(&server, OURS, &[], &server.dir().join("nowhere")).expect_failure(3);
    assert!(stderr.contains("58P01"), "{stderr}");
    let script = dumped(&server, 15, "script.sql", &["-Fp", "-s"]);
    let stderr = build(&server, OURS, &["-t", "wide"], &script).expect_failure(2);
    assert!(stderr.contains("has no table of contents"), "{stderr}");
    assert_eq!(objects(&server, OURS), NOTHING);
}

#[test]
fn rows_that_are_missing_at_the_end_of_a_file_are_missed() {
    let server = server_with_kinds(15);
    // One table is built, the other goes through the server's COPY.
    for (table, first) in [("wide", "1\tline 1\\n"), ("kinds", "(1,b1)\t")] {
        for (name, args) in [("plain", &["-Fd", "-Z0"][..]), ("gzip", &["-Fd"])] {
            let directory = dumped(&server, 15, &format!("{table}-{name}"), args);
            let files = fs::read_dir(&directory).expect("the directory");
            let files = files.map(|f| f.expect("a file").path());
            let unzip = |path: &std::path::Path| {
                let mut command = std::process::Command::new("gzip");
                let ran = command.arg("-dcf").arg(path).output().expect("gzip");
                ran.stdout
            };
            let member = files
                .into_iter()
                .find(|p| unzip(p).starts_with(first.as_bytes()))
                .expect("the member");
            let rows = unzip(&member);
            let end = rows.len() - 40;
            let end = end
                - rows[..end]
                    .iter()
                    .rev()
                    .position(|b| *b == b'\n')
                    .expect("a row");
            let short = server.dir().join("short");
            fs::write(&short, &rows[..end]).expect("some rows");
            if name == "gzip" {
                let mut command = std::process::Command::new("gzip");
                let zipped = command.arg("-c").arg(&short).output().expect("gzip").stdout;
                fs::write(&member, zipped).expect("the member");
            } else {
                fs::rename(&short, &member).expect("the member");
            }
            fresh(&server, OURS);
            let stderr = build(&server, OURS, &[], &directory).expect_failure(1);
            assert!(
                stderr.contains("the marker \\. is missing")
                    && stderr.contains(&format!("TABLE DATA shop.{table}")),
                "{stderr}"
            );
            assert_eq!(objects(&server, OURS), NOTHING);
        }
    }
}
