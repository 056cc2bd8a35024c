//! Files, globs, compressed files and pipes.

use std::fs;
use std::io::Write;
use std::path::Path;

use super::*;

fn write(dir: &Path, name: &str, bytes: &[u8]) -> PathBuf {
    let path = dir.join(name);
    fs::write(&path, bytes).expect("write");
    path
}

fn drain(path: &Path, charset: Option<&str>) -> Result<Vec<u8>> {
    let charset =
        charset.map(|name| Conversion::FromSingle(Charset::by_name(name).expect("known")));
    let mut all = Vec::new();
    match open_with_blocks(path, charset, 100)? {
        Input::File(file) => {
            all.resize(file.len() as usize, 0);
            file.read_at(0, &mut all)?;
        }
        Input::Stream(mut stream) => {
            while let Some(block) = stream.next_block(&|| true)? {
                assert!(!block.is_empty());
                all.extend_from_slice(&block);
                stream.recycle(block);
            }
        }
    }
    Ok(all)
}

fn sample() -> Vec<u8> {
    (0..500)
        .flat_map(|i| format!("{i},text\n").into_bytes())
        .collect()
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).expect("compress");
    encoder.finish().expect("compress")
}

fn zstandard(bytes: &[u8]) -> Vec<u8> {
    zstd::stream::encode_all(bytes, 1).expect("compress")
}

fn lz4_frame(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = lz4::EncoderBuilder::new()
        .build(Vec::new())
        .expect("encoder");
    encoder.write_all(bytes).expect("compress");
    let (frame, result) = encoder.finish();
    result.expect("compress");
    frame
}

#[test]
fn compressed_files_are_known_by_name_or_beginning_and_may_have_several_members() {
    let dir = tempfile::tempdir().expect("directory");
    let plain = sample();
    let (first, second) = plain.split_at(1234);
    for (name, compress) in [
        ("a.gz", gzip as fn(&[u8]) -> Vec<u8>),
        ("a.zst", zstandard),
        ("a.lz4", lz4_frame),
    ] {
        let members = [compress(first), compress(second)].concat();
        let path = write(dir.path(), name, &members);
        assert_eq!(drain(&path, None).expect("read"), plain, "{name}");
        let path = write(dir.path(), "nameless", &members);
        assert_eq!(drain(&path, None).expect("read"), plain, "{name} by magic");
        let path = write(dir.path(), name, b"");
        // Even of nothing a compressor makes something: an empty file is one cut off.
        let error = drain(&path, None).expect_err("it is cut off");
        assert!(
            error.message.contains("unexpected end of file"),
            "{name}: {error}"
        );
    }
}

#[test]
fn a_compressed_file_that_breaks_off_is_refused() {
    let dir = tempfile::tempdir().expect("directory");
    for (name, bytes) in [
        ("a.gz", gzip(&sample())),
        ("a.zst", zstandard(&sample())),
        ("a.lz4", lz4_frame(&sample())),
    ] {
        for len in [bytes.len() / 2, bytes.len() - 1] {
            let path = write(dir.path(), name, &bytes[..len]);
            let error = drain(&path, None).expect_err(name);
            assert_eq!(error.sqlstate, "22P04", "{name}: {error}");
            assert!(error.message.starts_with("could not decompress"), "{error}");
        }
    }
}

#[test]
fn a_charset_turns_a_file_into_a_converted_stream() {
    let dir = tempfile::tempdir().expect("directory");
    let path = write(dir.path(), "a.csv", &[b'x', 0xe9].repeat(150));
    assert_eq!(
        drain(&path, Some("latin1")).expect("read"),
        "x\u{e9}".repeat(150).as_bytes()
    );
}

#[test]
fn a_pipe_is_a_stream() {
    let dir = tempfile::tempdir().expect("directory");
    let path = dir.path().join("pipe");
    let made = std::process::Command::new("mkfifo").arg(&path).status();
    assert!(made.expect("mkfifo").success());
    let writer = std::thread::spawn({
        let path = path.clone();
        move || fs::write(path, sample()).expect("write")
    });
    assert_eq!(drain(&path, None).expect("read"), sample());
    writer.join().expect("the writer");
}

#[test]
fn a_file_that_changes_while_it_is_read_is_an_error() {
    let dir = tempfile::tempdir().expect("directory");
    let path = write(dir.path(), "a.csv", b"0123456789");
    let file = FileSource::open(&path).expect("open");
    let mut bytes = [0; 4];
    file.read_at(3, &mut bytes).expect("read");
    assert_eq!(&bytes, b"3456");
    file.check_unchanged().expect("unchanged");
    fs::write(&path, b"0123").expect("write");
    assert_eq!(
        file.read_at(3, &mut bytes).expect_err("changed").sqlstate,
        "55006"
    );
    assert_eq!(
        file.check_unchanged().expect_err("changed").sqlstate,
        "55006"
    );
}

#[test]
fn a_pattern_stands_for_the_files_it_matches_in_order() {
    let dir = tempfile::tempdir().expect("directory");
    let [b, a, odd] = ["b.csv", "a.csv", "x[1].csv"].map(|name| write(dir.path(), name, b""));
    let pattern = |name: &str| dir.path().join(name).display().to_string();
    assert_eq!(expand(&pattern("?.csv")).expect("found"), vec![a, b]);
    assert_eq!(expand(&pattern("x[1].csv")).expect("found"), vec![odd]);
    let error = expand(&pattern("*.tbl")).expect_err("nothing matches");
    assert_eq!(
        error.message,
        format!(
            "could not open file \"{}\" for reading: No such file or directory",
            pattern("*.tbl")
        )
    );
}

#[test]
fn a_directory_or_nothing_is_refused() {
    let dir = tempfile::tempdir().expect("directory");
    let error = open(dir.path(), None).expect_err("a directory");
    assert_eq!(error.sqlstate, "42809");
    let error = open(&dir.path().join("none"), None).expect_err("nothing");
    assert_eq!(error.sqlstate, "58P01");
}
