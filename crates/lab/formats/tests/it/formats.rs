//! The text formats from outside: what they take, what they refuse and how they say so, plain and compressed.

use std::fs;
use std::io::Write;

use coldframe_formats::{import, parse_spec, Options};
use coldframe_store::{Block, Fidelity, Kind, Reader, Reference, Summary, TraceError, Wanted};

fn read(format: &str, text: &[u8]) -> Result<crate::common::Read, TraceError> {
    crate::common::read(format, text, &Options::default())
}

#[test]
fn lackey_lines_become_references_and_chatter_is_counted() {
    let text = b"==1== Lackey\n\nI  0401ab70,3\n L 1fff000740,8\r\n S ffffffffffffffff,1\n--1-- warning\n M \
                 0,65536\n \t\nI  AbCd,2";
    let (rows, lines, skipped) = read("lackey", text).unwrap();
    assert_eq!(
        rows,
        [
            Reference::new(0x0401_ab70, 3, Kind::Fetch),
            Reference::new(0x1f_ff00_0740, 8, Kind::Read),
            Reference::new(u64::MAX, 1, Kind::Write),
            Reference::new(0, 65536, Kind::Write),
            Reference::new(0xabcd, 2, Kind::Fetch),
        ]
    );
    assert_eq!((lines, skipped), (9, 4));
}

#[test]
fn din_lines_become_aligned_references_of_four_bytes() {
    let text = b"2 400103 anything goes\n0 0x10\n1\t7fffffff\n 2  8\n3 0\n4\n\n0 FFFFFFFFFFFFFFFF\r\n4 5";
    let (rows, lines, skipped) = read("din", text).unwrap();
    assert_eq!(
        rows,
        [
            Reference::new(0x40_0100, 4, Kind::Fetch),
            Reference::new(0x10, 4, Kind::Read),
            Reference::new(0x7fff_fffc, 4, Kind::Write),
            Reference::new(8, 4, Kind::Fetch),
            Reference::new(u64::MAX - 3, 4, Kind::Read),
        ]
    );
    assert_eq!((lines, skipped), (9, 4));
}

#[test]
fn a_bad_line_is_named_with_its_place_its_field_and_a_remedy() {
    let long = [b"==1== ".to_vec(), vec![b'x'; 70_000], b"\n".to_vec()].concat();
    let endless = vec![b'I'; 600_000];
    // Format, text, line, (field, offset, length), remedy.
    type Case<'a> = (&'a str, &'a [u8], u64, (&'a str, usize, usize), &'a str);
    let cases: &[Case] = &[
        ("lackey", b"I 0401ab70,3\n", 1, ("kind", 0, 3), "a line begins with `I  `"),
        ("lackey", b"I  0401ab70,3\nhello\n", 2, ("kind", 0, 3), "--log-file"),
        ("lackey", b"\n\n X 0401ab70,3\n", 3, ("kind", 0, 3), "a line begins with"),
        ("lackey", b"L  0401ab70,3\n", 1, ("kind", 0, 3), "a line begins with"),
        ("lackey", b"**1** client message\n", 1, ("kind", 0, 3), "program's own output"),
        ("lackey", b"I", 1, ("kind", 0, 1), "a line begins with"),
        ("lackey", b"I  ,3\n", 1, ("address", 3, 0), "1 to 16 hexadecimal digits"),
        ("lackey", b"I  \n", 1, ("address", 3, 0), "1 to 16 hexadecimal digits"),
        ("lackey", b" L 0x401000,4\n", 1, ("address", 3, 8), "1 to 16 hexadecimal digits"),
        ("lackey", b" L 40g000,4\n", 1, ("address", 3, 6), "1 to 16 hexadecimal digits"),
        ("lackey", b" L 10000000000000000,4\n", 1, ("address", 3, 17), "1 to 16 hexadecimal digits"),
        ("lackey", b" S 401000 4\n", 1, ("address", 3, 6), "and a comma"),
        ("lackey", b"I  401000,4\n S 40100", 2, ("address", 3, 5), "if the line is cut"),
        ("lackey", b" S 401000,\n", 1, ("size", 10, 0), "1 to 65536"),
        ("lackey", b" S 401000,0\n", 1, ("size", 10, 1), "1 to 65536"),
        ("lackey", b" S 401000,65537\n", 1, ("size", 10, 5), "1 to 65536"),
        ("lackey", b" S 401000,99999999999999999999\n", 1, ("size", 10, 20), "1 to 65536"),
        ("lackey", b" S 401000,-4\n", 1, ("size", 10, 2), "in decimal"),
        ("lackey", b" S 401000,4 \n", 1, ("size", 10, 2), "ends the line"),
        ("lackey", b" S 401000,4,4\n", 1, ("size", 10, 3), "ends the line"),
        ("lackey", b" S ffffffffffffffff,2\n", 1, ("address", 3, 18), "within 64 bits"),
        ("lackey", b"I  401000,3\n==1== \0\n", 2, ("line", 6, 1), "not a text trace"),
        ("lackey", b"I\0 \0 \0", 1, ("line", 1, 1), "UTF-16"),
        ("lackey", &long, 1, ("line", 0, 200), "not a text trace"),
        ("lackey", &endless, 1, ("line", 0, 200), "not a text trace"),
        ("din", b"0 10\n5 10\n", 2, ("label", 0, 1), "0 (read), 1 (write), 2 (fetch)"),
        ("din", b"r 10 4\n", 1, ("label", 0, 1), "extended din"),
        ("din", b"-1 10\n", 1, ("label", 0, 2), "a label is"),
        ("din", b"  22 10\n", 1, ("label", 2, 2), "a label is"),
        ("din", b"33\n", 1, ("label", 0, 2), "a label is"),
        ("din", b"I  0401ab70,3\n", 1, ("label", 0, 1), "a label is"),
        ("din", b"0\n", 1, ("address", 1, 0), "after the label comes an address"),
        ("din", b"0  \n", 1, ("address", 3, 0), "after the label comes an address"),
        ("din", b"1 0x\n", 1, ("address", 4, 0), "1 to 16 hexadecimal digits"),
        ("din", b"1 12345678123456781\n", 1, ("address", 2, 17), "1 to 16 hexadecimal digits"),
        ("din", b"1 zz 4\n", 1, ("address", 2, 2), "1 to 16 hexadecimal digits"),
        ("din", b"1 10,4\n", 1, ("address", 2, 2), "then a blank"),
        ("din", b"1 10 \0\n", 1, ("line", 5, 1), "not a text trace"),
    ];
    for &(format, text, line, place, remedy) in cases {
        crate::common::bad_line(format, text, &Options::default(), (line, place), remedy);
    }
}

#[test]
fn a_line_as_long_as_allowed_is_skipped_across_buffer_borders() {
    let chatter = [b"==".to_vec(), vec![b'x'; 65_000], b"\nI  10,1\n".to_vec()].concat();
    let (rows, lines, skipped) = read("lackey", &chatter.repeat(40)).unwrap();
    assert_eq!((rows.len(), lines, skipped), (40, 80, 40));
}

fn gzip(text: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(text).unwrap();
    encoder.finish().unwrap()
}

fn zstd(text: &[u8]) -> Vec<u8> {
    // With a checksum, as the zstd tool writes it.
    let mut encoder = zstd::stream::write::Encoder::new(Vec::new(), 1).unwrap();
    encoder.include_checksum(true).unwrap();
    encoder.write_all(text).unwrap();
    encoder.finish().unwrap()
}

/// `printf 'I  0401ab70,3\n L 1fff000740,8\n' | xz -9 | xxd`, since the decoder's crate is used without its encoder.
const XZ: &[u8] = include_bytes!("../data/two_lines.lackey.xz");

#[test]
fn compressed_traces_are_recognised_by_content_with_all_their_members() {
    let first: Vec<u8> = (0..20_000).flat_map(|row| format!("I  {:08x},3\n", row * 7919).into_bytes()).collect();
    let second = b" L 1fff000740,8\n".repeat(5);
    let plain = read("lackey", &[&first[..], &second].concat()).unwrap();
    assert_eq!(plain.0.len(), 20_005);
    for (name, packed) in [
        ("one gzip member", gzip(&[&first[..], &second].concat())),
        ("two gzip members", [gzip(&first), gzip(&second)].concat()),
        ("one zstd frame", zstd(&[&first[..], &second].concat())),
        ("two zstd frames", [zstd(&first), zstd(&second)].concat()),
    ] {
        assert_eq!(read("lackey", &packed).unwrap(), plain, "{name}");
    }
    let expected = [Reference::new(0x0401_ab70, 3, Kind::Fetch), Reference::new(0x1f_ff00_0740, 8, Kind::Read)];
    assert_eq!(read("lackey", XZ).unwrap().0, expected);
    assert_eq!(read("lackey", &[XZ, XZ].concat()).unwrap().0, [expected, expected].concat());
}

#[test]
fn compressed_data_that_stop_in_the_middle_are_an_error_wherever_they_stop() {
    let text: Vec<u8> = (0..3000).flat_map(|row| format!("I  {:08x},3\n", row * 7919).into_bytes()).collect();
    let two_members = [gzip(b"I  10,1\n"), gzip(&text)].concat();
    let two_frames = [zstd(b"I  10,1\n"), zstd(&text)].concat();
    let xz_streams = [XZ, XZ].concat();
    for (name, packed, member) in [
        ("gzip", two_members, gzip(b"I  10,1\n").len()),
        ("zstd", two_frames, zstd(b"I  10,1\n").len()),
        ("xz", xz_streams, XZ.len()),
    ] {
        for length in (6..packed.len()).filter(|length| *length < 600 || length % 97 == 0) {
            let result = read("lackey", &packed[..length]);
            if length == member {
                // Whole members are a whole trace.
                assert_eq!(result.unwrap().0.len(), if name == "xz" { 2 } else { 1 }, "{name}");
                continue;
            }
            let error = result.expect_err(&format!("{name}, {length} bytes"));
            let TraceError::Compressed { format, .. } = &error else { panic!("{name}, {length} bytes: {error}") };
            assert_eq!((*format, error.code()), (name, 3));
            assert!(error.to_string().contains("copy or record"), "{error}");
        }
        let error = read("lackey", &packed[..packed.len() - 3]).unwrap_err();
        assert!(error.to_string().contains("truncated"), "{name}: {error}");
    }
}

#[test]
fn corrupt_or_unknown_compression_is_named() {
    let text: Vec<u8> = (0..3000).flat_map(|row| format!("I  {:08x},3\n", row * 7919).into_bytes()).collect();
    for mut packed in [gzip(&text), zstd(&text)] {
        let middle = packed.len() / 2;
        packed[middle..middle + 4].iter_mut().for_each(|byte| *byte ^= 0x5a);
        let error = read("lackey", &packed).unwrap_err();
        // Damage may also produce text that is not a trace.
        assert!(matches!(error, TraceError::Compressed { .. } | TraceError::Line(_)), "{error}");
    }
    for (bytes, remedy) in [
        (&b"BZh91AY"[..], "unpack it first, or pipe"),
        (&[4, 0x22, 0x4d, 0x18, 0, 0], "unpack it first, or pipe"),
        (b"PK\x03\x04..", "unpack it first"),
        (b"PAR1....PAR1", "csv:PATH"),
    ] {
        let error = read("din", bytes).unwrap_err();
        assert_eq!(error.code(), 3);
        assert!(error.to_string().contains(remedy), "{error}");
    }
}

#[test]
fn inputs_that_cannot_be_read_are_io_errors() {
    let directory = tempfile::tempdir().unwrap();
    let mut cases = vec![
        (directory.path().to_owned(), "name a file, not a directory"),
        (directory.path().join("none"), "check the path"),
    ];
    if cfg!(target_os = "linux") {
        // Opens for its owner, and address 0 is never mapped: EIO at the first read.
        cases.push(("/proc/self/mem".into(), "check the file"));
    }
    for (path, remedy) in cases {
        let error = crate::common::read_file("din", &path, &Options::default()).unwrap_err();
        assert!(matches!(error, TraceError::Io { .. }) && error.code() == 5, "{error}");
        assert!(error.to_string().contains(remedy), "{error}");
    }
}

#[test]
fn a_trace_without_references_is_not_imported() {
    let directory = tempfile::tempdir().unwrap();
    let (path, out) = (directory.path().join("t.txt"), directory.path().join("t.parquet"));
    for (format, text, lines) in [("lackey", "", 0), ("lackey", "==1== nothing\n", 1), ("din", "3 0\n4 0\n", 2)] {
        fs::write(&path, text).unwrap();
        let spec = parse_spec(&format!("{format}:{}", path.display())).unwrap();
        let error = import(&spec, &out, &mut |_| ()).unwrap_err();
        let TraceError::Empty { lines: read, skipped, .. } = &error else { panic!("{error}") };
        assert_eq!((*read, *skipped, error.code()), (lines, lines, 3));
        assert!(error.to_string().contains(&format!("a whole {format} trace")), "{error}");
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
    }
    // What a text has, and what is sought: requests that were queued and completed, none that was issued.
    let line = |action: &str| format!("8,0 3 1 0.1 697 {action} W 64 + 8 [k]\n");
    fs::write(&path, ["Q", "G", "C"].map(line).concat()).unwrap();
    let spec = parse_spec(&format!("blkparse:{}", path.display())).unwrap();
    let error = import(&spec, &out, &mut |_| ()).unwrap_err().to_string();
    let named = "no references in 3 lines (3 skipped); skipped are actions other than D (issued to the device)";
    assert!(error.contains(named), "{error}");
    let spec = parse_spec(&format!("din:{}", path.display())).unwrap();
    let error = import(&spec, &path, &mut |_| ()).unwrap_err();
    assert!(error.code() == 2 && error.to_string().contains("name another file"), "{error}");
}

/// `histogram.lackey` is the whole output of valgrind 3.19 lackey for
/// ```c
/// static int histogram[64];
/// static const char text[] = "the quick brown fox jumps over the lazy dog";
/// void _start(void) {
///     for (int i = 0; text[i]; i++) histogram[text[i] & 63]++;
///     __asm__ volatile("xor %%edi,%%edi; mov $60,%%eax; syscall" ::: "memory");
/// }
/// ```
/// built with `gcc -O1 -static -nostdlib -fno-stack-protector`. Counted with `wc -l` (375 lines), `grep -c '^=='` (25),
/// `grep -c '^I  '` (264, as lackey's own "guest instrs: 264"), `grep -c '^ L '` (43, the letters), `grep -c '^ S '`
/// (0) and `grep -c '^ M '` (43); granules by a Python set over all bytes touched (3: text, constants, data).
#[test]
fn a_real_lackey_trace_is_imported_with_the_counts_that_grep_gives() {
    let directory = tempfile::tempdir().unwrap();
    let out = directory.path().join("t.parquet");
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/histogram.lackey");
    let mut calls = Vec::new();
    let summary = import(&parse_spec(&format!("lackey:{path}")).unwrap(), &out, &mut |progress| calls.push(progress));
    let expected = Summary {
        references: 350,
        instructions: 264,
        reads: 43,
        writes: 43,
        rows: 350,
        skipped: 25,
        bad: 0,
        first_bad: None,
        lines: 375,
        bytes_written: fs::metadata(&out).unwrap().len(),
        pages_1KiB: 3,
    };
    assert_eq!(summary.unwrap(), expected);
    assert_eq!(
        (calls.len(), calls[0].references, calls[0].bytes_total),
        (1, 350, Some(fs::metadata(path).unwrap().len()))
    );

    let mut reader = Reader::open(&out).unwrap();
    let provenance = reader.provenance();
    assert_eq!(provenance.command.as_deref(), Some("./tiny"));
    assert_eq!((provenance.recorder.as_str(), provenance.fidelity), ("import lackey", Fidelity::ExactReferences));
    assert_eq!((provenance.references, provenance.pages_1KiB), (350, 3));
    let mut block = Block::new();
    reader.read(&mut block, Wanted::ALL).unwrap();
    assert_eq!(block.get(0), Reference::new(0x0040_1000, 7, Kind::Fetch));
    assert_eq!(block.get(5), Reference::new(0x0040_30d0, 4, Kind::Write));
}
