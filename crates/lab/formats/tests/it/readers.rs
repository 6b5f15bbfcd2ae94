//! The readers of other tools' traces: what each makes of a good trace, what it refuses, and its error messages.
//!
//! Real output: perf 6.1 (`perf-*.txt`), fio 3.33 (`job.iolog`), blkparse 1.2 (`sample.blkparse.txt`, printed from
//! hand-made binary files). The others are made by hand from the documented layouts, because their
//! tools or data sets are not available.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use coldframe_formats::{import, parse_spec, Options};
use coldframe_store::{Fidelity, Kind, Provenance, Reader, Reference};

use crate::common::{read, read_file};

/// The declarations that make every format readable.
fn declared(format: &str) -> Options {
    let mut options = Options::default();
    match format {
        "oracleGeneral" => options.declare_units("address=4KiB").unwrap(),
        "keys" => {
            options.declare_columns("kind=op,address=key,size=size").unwrap();
            options.declare_units("address=4KiB").unwrap();
            options.number_objects = true;
        }
        "csv" | "tsv" | "blanks" => {
            options.declare_columns("time=1,task=2,kind=3,address=4,size=5").unwrap();
            options.declare_units("time=s,address=512B,size=1B").unwrap();
        }
        _ => {}
    }
    options
}

fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name)
}

fn row(address: u64, size: u32, kind: Kind, task: u32, time: u64) -> Reference {
    Reference { task, time, ..Reference::new(address, size, kind) }
}

use Kind::{Fetch, Read as Load, Write as Store};

#[test]
fn every_text_format_becomes_the_rows_that_its_layout_says() {
    // Format, text, rows, skipped lines.
    let cases: &[(&str, &str, &[Reference], u64)] = &[
        (
            "msr",
            "128166372003061629,src1,0,Read,7014609920,24576,41286\n128166372003061639,src1,1,Write,512,4096,1\n",
            &[row(7_014_609_920, 24576, Load, 0, 0), row(512, 4096, Store, 1, 1000)],
            0,
        ),
        (
            "fio",
            "fio version 2 iolog\n/dev/x add\n/dev/x open\n/dev/x read 4096 512\nx wait 7 0\n/dev/y write 0 4096\n",
            &[row(4096, 512, Load, 0, 0), row(0, 4096, Store, 1, 7000)],
            4,
        ),
        (
            "csv",
            "0.5,1,W,2,100\n0.75,2,read,\"0x10\",1,more\n",
            &[row(1024, 100, Store, 1, 0), row(8192, 1, Load, 2, 250_000_000)],
            0,
        ),
        ("tsv", "0\t0\tfetch\t1\t4\n", &[row(512, 4, Fetch, 0, 0)], 0),
        ("blanks", " 0 3  R\t8 512 6 0\n", &[row(4096, 512, Load, 3, 0)], 0),
        // Keys of a cache's objects: any text, any size, 0 for what it does not have.
        (
            "keys",
            "op,key,size\nGET,\"user:7\",0\nset,b2,900000\nget,user:7,12\n",
            &[row(0, 4096, Load, 0, 0), row(4096, 4096, Store, 0, 0), row(0, 4096, Load, 0, 0)],
            1,
        ),
    ];
    for (format, text, rows, skipped) in cases {
        let name = if *format == "keys" { "csv" } else { format };
        let (read, _, skips) =
            read(name, text.as_bytes(), &declared(format)).unwrap_or_else(|e| panic!("{format}: {e}"));
        assert_eq!(read, *rows, "{format}");
        assert_eq!(skips, *skipped, "{format}");
    }
}

#[test]
fn a_bad_line_of_any_text_format_is_named_with_field_place_and_remedy() {
    // Format, text, line, field, offset, length, remedy.
    type Case = (&'static str, &'static str, u64, &'static str, usize, usize, &'static str);
    let cases: &[Case] = &[
        (
            "msr",
            "128166372003061629,a,0,Read,0,512,1\n128166372003061629,b,0,Read,0,512,1\n",
            2,
            "Hostname",
            19,
            1,
            "trace merge",
        ),
        ("msr", "1,a,0,read,0,512,1\n", 1, "Type", 6, 4, "Type Read or Write"),
        ("msr", "1,a,0,Read,0,512\n", 1, "ResponseTime", 16, 0, "Timestamp,Hostname"),
        ("msr", "1,a,0,Read,0,512,1,2\n", 1, "line", 19, 1, "Timestamp,Hostname"),
        ("msr", "1,a,0,Read,-5,512,1\n", 1, "Offset", 11, 2, "Timestamp,Hostname"),
        ("msr", "99999999999999999999999999,a,0,Read,0,512,1\n", 1, "Timestamp", 0, 26, "100 ns"),
        ("fio", "fio version 1 iolog\n", 1, "version", 0, 19, "version 2 iolog"),
        ("fio", "fio version 3 iolog\n1 f jump\n", 2, "action", 4, 4, "write_iolog"),
        ("fio", "fio version 3 iolog\n1 f read 0\n", 2, "length", 10, 0, "OFFSET LENGTH"),
        ("fio", "fio version 3 iolog\nx f read 0 1\n", 2, "timestamp", 0, 1, "MICROSECONDS"),
        ("blkparse", "8,0 0 1 0.0 1 D W 8 8 [x]\n", 1, "+", 20, 1, "SECTOR + BLOCKS"),
        ("blkparse", "8 0 1 0.0 1 D W 8 + 8 [x]\n", 1, "device", 0, 1, "DEVICE CPU"),
        ("blkparse", "8,0 0 1 0.0 1 ZZ W 8 + 8 [x]\n", 1, "action", 14, 2, "without -f"),
        ("blkparse", "8,0 0 1 0.0 1 D Q 8 + 8 [x]\n", 1, "rwbs", 16, 1, "RWBS"),
        ("csv", "0,0,r,1,4\n0,0,7,1,4\n", 2, "kind", 4, 1, "--kinds 0=read"),
        ("csv", "0,0,r,x,4\n", 1, "address", 6, 1, "--columns"),
        ("csv", "0,0,r,1\n", 1, "size", 7, 0, "--columns"),
    ];
    for &(format, text, line, field, offset, len, remedy) in cases {
        crate::common::bad_line(format, text.as_bytes(), &declared(format), (line, (field, offset, len)), remedy);
    }
}

/// Records of 24 bytes.
fn oracle(records: &[(u32, u64, u32)]) -> Vec<u8> {
    let bytes = |(time, id, size): &(u32, u64, u32)| {
        [&time.to_le_bytes()[..], &id.to_le_bytes(), &size.to_le_bytes(), &(-1i64).to_le_bytes()].concat()
    };
    records.iter().flat_map(bytes).collect()
}

#[test]
fn libcachesim_traces_are_requests_of_numbered_objects() {
    let plain = oracle(&[(10, 7, 100), (11, 3, 9000), (11, 7, 100)]);
    let options = declared("oracleGeneral");
    let rows = [
        row(7 * 4096, 100, Load, 0, 0),
        row(3 * 4096, 9000, Load, 0, 1_000_000_000),
        row(7 * 4096, 100, Load, 0, 1_000_000_000),
    ];
    assert_eq!(read("oracleGeneral", &plain, &options).unwrap().0, rows);
    let numbered = Options { number_objects: true, ..options.clone() };
    let huge = oracle(&[(10, u64::MAX, 100), (11, 3, 9000), (11, u64::MAX, 100)]);
    let rows = [row(0, 100, Load, 0, 0), row(4096, 4096, Load, 0, 1_000_000_000), row(0, 100, Load, 0, 1_000_000_000)];
    assert_eq!(read("oracleGeneral", &huge, &numbered).unwrap().0, rows);
    let error = read("oracleGeneral", &huge, &options).unwrap_err();
    assert!(
        error.to_string().contains("record 0, byte 0: id") && error.to_string().contains("--number-objects"),
        "{error}"
    );
}

/// CloudPhysics' records of 32 bytes, and the same in 40.
fn vscsi(records: &[(u16, u32, u64, u64)]) -> [Vec<u8>; 2] {
    let (mut first, mut second) = (Vec::new(), Vec::new());
    for (i, (command, bytes, sector, us)) in (0u32..).zip(records) {
        let (i, command, one) = (i.to_le_bytes(), command.to_le_bytes(), 1u32.to_le_bytes());
        let (bytes, sector, us) = (bytes.to_le_bytes(), sector.to_le_bytes(), us.to_le_bytes());
        first.extend([&i[..], &bytes, &one, &command, &[0, 1], &sector, &us].concat());
        second.extend([&command[..], &[0, 2], &i, &bytes, &one, &sector, &us, &[7; 8]].concat());
    }
    [first, second]
}

#[test]
fn cloudphysics_traces_of_both_layouts_are_reads_and_writes_of_sectors() {
    // 0x35 flushes the disk's cache.
    let requests =
        [(0x28, 4096, 8, 1_000_000), (0x35, 0, 0, 1_000_001), (0x2a, 512, 3, 1_000_250), (0x88, 0, 1, 1_000_300)];
    let rows = [row(4096, 4096, Load, 0, 0), row(1536, 512, Store, 0, 250_000)];
    for bytes in vscsi(&requests) {
        let (found, _, skipped) = read("vscsi", &bytes, &Options::default()).unwrap();
        assert_eq!((&found[..], skipped), (&rows[..], 2));
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("w105.vscsitrace");
        fs::write(&path, &bytes).unwrap();
        let spec = parse_spec(path.to_str().unwrap()).unwrap();
        assert_eq!((spec.format.name, spec.guessed), ("vscsi", true));
    }
}

#[test]
fn a_bad_record_is_named_with_its_number_byte_field_and_remedy() {
    let cases: Vec<(&str, Vec<u8>, &str, &str)> = vec![
        (
            "oracleGeneral",
            oracle(&[(1, 1, 1)])[..7].to_vec(),
            "record 0, byte 0: record: the data end after 7 of 24",
            "cut off",
        ),
        (
            "vscsi",
            [&vscsi(&[(0x28, 512, 1, 1); 4])[0][..], &[0; 32]].concat(),
            "record 4, byte 128: version: 0x0000 is not of layout 1",
            "check the format",
        ),
        ("oracleGeneral", oracle(&[(1, 1, 1), (1, 1, 0)]), "record 1, byte 24: size: 0 bytes", "1 byte to 1 GiB"),
    ];
    for (format, bytes, place, remedy) in cases {
        let error = read(format, &bytes, &declared(format)).expect_err(place);
        let text = error.to_string();
        assert!(text.contains(place) && text.contains(remedy) && error.code() == 3, "{format}: {text}");
    }
}

#[test]
fn blkparse_text_is_the_requests_issued_to_the_device() {
    let (rows, _, skipped) = read_file("blkparse", &data("sample.blkparse.txt"), &Options::default()).unwrap();
    let device = 8 << 20;
    let expected = [
        row(223_490 * 512, 4096, Store, device, 0),
        row(64 * 512, 512, Load, device, 1000),
        row(8 * 512, 1024, Load, device, 78_000),
        row(1000 * 512, 16384, Load, device, 88_000),
    ];
    assert_eq!(rows, expected);
    assert_eq!(skipped, 34);
}

#[test]
fn real_output_of_fio_is_read_to_its_last_line() {
    let options = Options::default();
    let (rows, lines, skipped) = read_file("fio", &data("job.iolog"), &options).unwrap();
    let text = fs::read_to_string(data("job.iolog")).unwrap();
    assert_eq!(lines, text.lines().count() as u64);
    let requests = text.lines().filter(|line| line.contains(" read ") || line.contains(" write ")).count();
    assert_eq!((rows.len(), skipped), (requests, lines - requests as u64));
    assert!(rows.iter().all(|row| row.size == 4096) && rows.iter().map(|row| row.address).max() < Some(65536));
}

#[test]
fn damo_json_is_read_plain_and_compressed_with_numbers_as_damo_writes_them() {
    let text = br#"[{"target_id": 0, "extra": null, "snapshots": [
        {"start_time": "1,000,000,000", "end_time": "1,100,000,000", "regions": [
            {"start": "94,827,419,009,024", "end": "94,827,419,013,120",
             "nr_accesses": {"samples": "3", "percent": null}, "age": null},
            {"start": 4096, "end": 8192, "nr_accesses": {"samples": 0}}]}]}]"#;
    let expected = [Reference { count: 3, ..row(94_827_419_009_024, 4096, Load, 0, 0) }];
    let options = Options::default();
    assert_eq!(read("damon", text, &options).unwrap(), (expected.to_vec(), 2, 1));
    let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::best());
    encoder.write_all(text).unwrap();
    let packed = encoder.finish().unwrap();
    assert_eq!(read("damon", &packed, &options).unwrap().0, expected);
    for (bad, place) in [
        (&text[..200], "t.txt:3:"),
        (&b"[{\"target_id\": 0}]"[..], "missing field `snapshots`"),
        (&packed[..packed.len() / 2], "zlib data"),
        (b"[{\"target_id\": -1, \"snapshots\": []}]", "target_id: -1, not a whole number"),
    ] {
        let error = read("damon", bad, &options).unwrap_err();
        assert!(error.code() == 3 && error.to_string().contains(place), "{error}");
        assert!(error.to_string().contains("damo"), "{error}");
    }
    // A bomb: 300 MiB of blanks in 300 KiB.
    let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::best());
    let blanks = vec![b' '; 1 << 20];
    (0..300).for_each(|_| encoder.write_all(&blanks).unwrap());
    let error = read("damon", &encoder.finish().unwrap(), &options).unwrap_err();
    assert!(error.to_string().contains("more than 268435456 bytes"), "{error}");
}

#[test]
fn what_a_format_cannot_know_must_be_declared_and_nothing_else_may_be() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("t");
    fs::write(&path, "1 0 8 8 1\n").unwrap();
    for (format, remedy) in [("oracleGeneral", "--unit address=512B"), ("csv", "--columns address=offset")] {
        let error = read_file(format, &path, &Options::default()).unwrap_err();
        assert!(error.code() == 2 && error.to_string().contains(remedy), "{error}");
    }
    let mut options = Options::default();
    options.declare_columns("address=1").unwrap();
    let error = read_file("csv", &path, &options).unwrap_err();
    assert!(error.to_string().contains("--unit size=1B"), "{error}");
    let error = read_file("msr", &path, &declared("oracleGeneral")).unwrap_err();
    assert!(error.code() == 2 && error.to_string().contains("the format fixes this itself"), "{error}");
}

#[test]
fn columns_named_by_the_header_are_found_and_hexadecimal_is_declared() {
    let mut options = Options::default();
    options.declare_columns("address=addr,kind=op").unwrap();
    options.declare_units("address=hex:1B,size=64B").unwrap();
    options.declare_kinds("0=write,1=read").unwrap();
    let text = b"id,\"op\",addr\n1,0,ff10\n2,1,0x20\n\n";
    let expected = vec![row(0xff10, 64, Store, 0, 0), row(0x20, 64, Load, 0, 0)];
    assert_eq!(read("csv", text, &options).unwrap(), (expected, 4, 2));
    let error = read("csv", b"id,op\n", &options).unwrap_err();
    assert!(error.to_string().contains("no column `addr`"), "{error}");
}

/// Block traces of storage studies and SSD simulators, by the options that the book gives for them.
#[test]
fn the_books_recipes_read_block_traces_of_other_columns() {
    let book = include_str!("../../../../../docs/book/src/traces.md");
    // Columns, units, kinds, text, rows.
    type Case = (&'static str, &'static str, &'static str, &'static str, [Reference; 2]);
    let cases: [Case; 4] = [
        (
            "task=1,address=2,size=3,kind=4,time=5",
            "address=512B,size=1B,time=s",
            "",
            "0,20941264,8192,W,0.551706,x\n1,2,512,r,0.554041000\n",
            [row(20_941_264 * 512, 8192, Store, 0, 0), row(1024, 512, Load, 1, 2_335_000)],
        ),
        (
            "task=1,kind=2,address=3,size=4,time=5",
            "address=1B,size=1B,time=us",
            "",
            "419,W,8792731648,16384,1577808000000046\n725,R,0,4096,1577808000000047\n",
            [row(8_792_731_648, 16384, Store, 419, 0), row(0, 4096, Load, 725, 1000)],
        ),
        (
            "time=1,address=2,size=3,kind=4,task=5",
            "address=512B,size=512B,time=s",
            "0=read,1=write",
            "1538323200,12910952,128,0,1063\n1538323201,8,8,1,1064\n",
            [row(12_910_952 * 512, 65536, Load, 1063, 0), row(4096, 4096, Store, 1064, 1_000_000_000)],
        ),
        (
            "time=1,task=2,address=3,size=4,kind=5",
            "address=512B,size=512B,time=ns",
            "0=write,1=read",
            "100,0,1048576,8,1\n150,1,8,1,0\n",
            [row(1_048_576 * 512, 4096, Load, 0, 0), row(4096, 512, Store, 1, 50)],
        ),
    ];
    for (columns, units, kinds, text, rows) in cases {
        let mut options = Options::default();
        options.declare_columns(columns).unwrap();
        options.declare_units(units).unwrap();
        let mut words = format!("--columns {columns} --unit {units}");
        if !kinds.is_empty() {
            options.declare_kinds(kinds).unwrap();
            words += &format!(" --kinds {kinds}");
        }
        assert!(book.contains(&words), "the book does not say {words}");
        assert_eq!(read("block-csv", text.as_bytes(), &options).unwrap().0, rows, "{words}");
    }
}

#[test]
fn bad_lines_are_counted_and_the_first_is_shown_when_the_user_allows_them() {
    let directory = tempfile::tempdir().unwrap();
    let (path, out) = (directory.path().join("t"), directory.path().join("t.parquet"));
    fs::write(&path, "0 10\nhello\n1 20\n0 zz\n").unwrap();
    let mut spec = parse_spec(&format!("din:{}", path.display())).unwrap();
    spec.options.skip_bad = true;
    let summary = import(&spec, &out, &mut |_| ()).unwrap();
    assert_eq!((summary.references, summary.bad, summary.skipped, summary.lines), (2, 2, 0, 4));
    assert!(summary.first_bad.unwrap().contains("t:2:1: label:"));
    let notes = provenance(&out).notes.join("\n");
    assert!(notes.contains("2 lines that break the format were left out; the first:"), "{notes}");
}

fn provenance(path: &Path) -> Provenance {
    Reader::open(path).unwrap().provenance().clone()
}

#[test]
fn marks_tasks_and_clock_reach_the_header_of_the_store() {
    let directory = tempfile::tempdir().unwrap();
    let out = directory.path().join("t.parquet");
    for (spec, fidelity, tasks) in [
        (format!("blkparse:{}", data("sample.blkparse.txt").display()), Fidelity::BlockOnly, 1),
        (format!("fio:{}", data("job.iolog").display()), Fidelity::BlockOnly, 1),
    ] {
        let summary = import(&parse_spec(&spec).unwrap(), &out, &mut |_| ()).unwrap();
        let provenance = provenance(&out);
        assert_eq!((provenance.fidelity, provenance.tasks.len()), (fidelity, tasks), "{spec}");
        assert!(provenance.started.is_some() && provenance.clock.is_some(), "{spec}");
        assert_eq!(summary.references, provenance.references);
    }
}

#[test]
fn a_bare_path_is_guessed_only_where_the_contents_leave_no_choice() {
    for (file, format) in [
        ("histogram.lackey", "lackey"),
        ("two_lines.lackey.xz", "lackey"),
        ("job.iolog", "fio"),
        ("sample.blkparse.txt", "blkparse"),
    ] {
        let spec = parse_spec(&data(file).display().to_string()).unwrap();
        assert_eq!((spec.format.name, spec.guessed), (format, true), "{file}");
    }
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("t");
    for text in ["0 10\n1 20\n", "1 0 8 8 1\n", "1,2,3,0,5\n", ""] {
        fs::write(&path, text).unwrap();
        let error = parse_spec(&path.display().to_string()).unwrap_err();
        assert!(error.code() == 2 && error.to_string().contains("write FORMAT:PATH"), "{text:?}: {error}");
    }
    fs::write(&path, "ts_ns,op,slot,pid\n5,out,17,1\n").unwrap();
    let error = parse_spec(&path.display().to_string()).unwrap_err();
    assert!(error.to_string().contains("a swap trace") && error.to_string().contains("sim --system lobi"), "{error}");
}
