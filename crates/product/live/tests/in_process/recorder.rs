//! Recording: the content of the file, and that recording changes no byte of the program.

use std::path::Path;

use crate::common::{forked, in_child, pager, round_of, stamp, succeeds, wait_for, SMALL};
use coldframe_live::{LiveError, Options, Pager, Recorder, Region, PAGE};
use coldframe_recording::entries::{Record, Word, HEAD, MAGIC, RECORD};

const PAGES: usize = 300;
const WINDOW: usize = 64;

fn recorded(folder: &Path, window: Option<usize>) -> Pager {
    let record = Recorder { folder: folder.to_path_buf(), window, patience: 0 };
    pager(SMALL, |options| options.record = Some(record))
}

/// The words and records of each file in a folder, the first process's file first.
fn files(folder: &Path) -> Vec<(Vec<u64>, Vec<Record>)> {
    let read = |path: std::path::PathBuf| {
        let bytes = std::fs::read(path).unwrap();
        let word = |bytes: &[u8]| u64::from_ne_bytes(bytes.try_into().unwrap());
        let words: Vec<u64> = bytes[..512].chunks_exact(8).map(word).collect();
        assert_eq!(words[Word::Magic as usize], MAGIC);
        let records = bytes[HEAD..].chunks_exact(RECORD).take(words[Word::Records as usize] as usize);
        let decode = |b: &[u8]| Record::decode([word(&b[..8]), word(&b[8..])]).expect("each record has been written");
        (words, records.map(decode).collect())
    };
    let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| read(entry.unwrap().path())).collect();
    files.sort_by_key(|(words, _): &(Vec<u64>, _)| words[Word::Started as usize]);
    files
}

/// Pages in order of entry, numbered from the first one.
fn entered(records: &[Record]) -> Vec<u32> {
    let page = |record: &Record| if let Record::Entry { page, .. } = record { Some(*page) } else { None };
    let pages: Vec<u32> = records.iter().filter_map(page).collect();
    let first = *pages.iter().min().unwrap();
    pages.into_iter().map(|page| page - first).collect()
}

fn changed(records: &[Record]) -> usize {
    records.iter().filter(|record| matches!(record, Record::Changed { .. })).count()
}

/// Writes all pages in turn, once for each round.
fn sweep(region: &mut Region, rounds: std::ops::RangeInclusive<u64>) {
    for round in rounds {
        for page in 0..PAGES {
            assert_eq!(round_of(region, page), round - 1);
            stamp(region, page, round);
        }
    }
}

#[test]
fn each_page_that_enters_is_recorded_and_its_bytes_stay_in_ram() {
    let folder = tempfile::tempdir().unwrap();
    succeeds(|| {
        let pager = recorded(folder.path(), Some(WINDOW));
        let mut region = pager.anonymous(PAGES * PAGE).unwrap();
        sweep(&mut region, 1..=3);
        let sum: usize = (0..PAGES).map(|page| round_of(&region, page) as usize).sum();
        assert_eq!(sum, 3 * PAGES);
        let stats = pager.stats();
        assert_eq!((stats.device_reads, stats.device_writes, stats.cold_faults), (0, 0, PAGES as u64));
        pager.check();
        pager.end();
    });
    let files = files(folder.path());
    let (words, records) = &files[0];
    let passes: Vec<u32> = (0..4).flat_map(|_| 0..PAGES as u32).collect();
    assert_eq!(entered(records), passes);
    assert_eq!(words[Word::ZeroFills as usize], PAGES as u64);
    assert_eq!(words[Word::Managed as usize], PAGES as u64);
    assert_eq!((words[Word::Whole as usize], words[Word::Threads as usize]), (1, 1));
    // Each write of the three rounds has left the window, except those of the last pages. The fourth pass, which reads,
    // has pushed these out.
    assert_eq!(changed(records), 3 * PAGES);
}

#[test]
fn a_killed_programs_file_has_all_that_came_before() {
    let folder = tempfile::tempdir().unwrap();
    let (status, stderr) = in_child(|| {
        let pager = recorded(folder.path(), Some(WINDOW));
        let mut region = pager.anonymous(PAGES * PAGE).unwrap();
        sweep(&mut region, 1..=2);
        // SAFETY: a signal to this process.
        unsafe { libc::raise(libc::SIGKILL) };
    });
    assert_eq!(status, -libc::SIGKILL, "{stderr}");
    let files = files(folder.path());
    let (words, records) = &files[0];
    assert_eq!(entered(records).len(), 2 * PAGES);
    assert_eq!(words[Word::Whole as usize], 0);
}

#[test]
fn a_forked_child_has_a_file_of_its_own() {
    let folder = tempfile::tempdir().unwrap();
    succeeds(|| {
        let pager = recorded(folder.path(), Some(WINDOW));
        let mut region = pager.anonymous(PAGES * PAGE).unwrap();
        sweep(&mut region, 1..=1);
        assert_eq!(wait_for(forked(|| sweep(&mut region, 2..=2))), 0);
        assert!((0..PAGES).all(|page| round_of(&region, page) == 1), "the child's writes are its own");
    });
    let files = files(folder.path());
    let process = |i: usize, word: Word| files[i].0[word as usize];
    assert_eq!(files.len(), 2);
    assert_eq!((process(0, Word::Parent), process(1, Word::Parent)), (0, process(0, Word::Process)));
    // The window had the last pages when the child began.
    assert_eq!(entered(&files[1].1)[..PAGES - WINDOW], (0..(PAGES - WINDOW) as u32).collect::<Vec<_>>());
    assert_eq!(process(1, Word::ZeroFills), 0, "what a parent has touched a child need not fill");
}

#[test]
fn what_is_given_back_is_recorded_and_comes_back_as_zeros() {
    let folder = tempfile::tempdir().unwrap();
    succeeds(|| {
        let pager = recorded(folder.path(), Some(WINDOW));
        let mut region = pager.anonymous(PAGES * PAGE).unwrap();
        sweep(&mut region, 1..=1);
        region.discard(0..PAGES * PAGE).unwrap();
        sweep(&mut region, 1..=1);
    });
    let files = files(folder.path());
    let (words, records) = &files[0];
    let released = records.iter().filter(|record| matches!(record, Record::Released { .. })).count();
    assert!(released >= PAGES, "{released}");
    assert_eq!((words[Word::ZeroFills as usize], words[Word::Managed as usize]), (2 * PAGES as u64, PAGES as u64));
}

#[test]
fn a_folder_that_takes_no_file_is_named() {
    let record = Recorder { folder: "/proc/no/such".into(), window: None, patience: 0 };
    let options = Options { max_memory: 1 << 26, handlers: 1, record: Some(record), ..Options::new(SMALL) };
    match Pager::start(options) {
        Err(LiveError::Backing { path, .. }) => assert_eq!(path, Path::new("/proc/no/such")),
        other => panic!("{other:?}"),
    }
}
