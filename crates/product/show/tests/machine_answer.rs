//! Run time by RAM on this machine. The window traces are made here, and their faults are known without an engine.

use std::path::{Path, PathBuf};

use coldframe_answer::machine::prices::Price;
use coldframe_answer::predict::counts::Counts;
use coldframe_answer::predict::rows::{Rows, MANAGED};
use coldframe_answer::predict::simulate::simulate;
use coldframe_answer::{pager, Answer, AnswerError, Common, Costs, Limits, Pager, Question, Reading, Recorded};
use coldframe_core::Ps;
use coldframe_recording::span::{Span, BASE_RECORDED, PAGE};
use coldframe_sheet::here::Here;
use coldframe_sheet::quantity::human_size;
use coldframe_sheet::sheet::machine::Spread;
use coldframe_show::machine_answer::words;
use coldframe_store::{Block, Columns, Fidelity, Kind, Mapping, ProgramFacts, Provenance, Reference, Task, Writer};

const SPAN: Span = Span { start: BASE_RECORDED, len: 1 << 30 };

fn facts(seconds: f64) -> ProgramFacts {
    ProgramFacts { seconds, not_paged_bytes: 11 << 20, exit: Some(0), processes: 1, threads: 1, ..Default::default() }
}

fn provenance(facts: ProgramFacts) -> Provenance {
    Provenance {
        command: Some("/usr/bin/python3 m.py --with some --more arguments".into()),
        page_size: Some(PAGE),
        window: Some(64),
        program: Some(facts),
        tasks: vec![Task { id: 0, name: "thread 1".into(), space: 0 }],
        ..Provenance::new("window of mapped pages", Fidelity::Window)
    }
}

fn touch(page: u64, kind: Kind) -> Reference {
    Reference::new(BASE_RECORDED + page * PAGE, 1, kind)
}

fn write(folder: &Path, provenance: Provenance, rows: impl IntoIterator<Item = Reference>) -> PathBuf {
    let path = folder.join("trace.parquet");
    let mut writer = Writer::create(&path, Columns { time: true, task: true, count: false }).unwrap();
    let mut block = Block::new();
    for row in rows {
        block.push(row);
        if block.len() == block.capacity() {
            writer.write(&block).unwrap();
            block.clear();
        }
    }
    writer.write(&block).unwrap();
    writer.finish(provenance).unwrap();
    path
}

/// A mean in microseconds; the low bound is a fifth less, the high bound a half more.
fn us(us: u64) -> Spread {
    Spread { low: Ps(us * 800_000), mean: Ps(us * 1_000_000), high: Ps(us * 1_500_000) }
}

fn question() -> Question {
    let here = Here {
        zero_fill_native: us(1),
        zero_fill: us(4),
        device_fault: us(50),
        read_ahead: us(10),
        memory_fault: us(6),
        false_fault: us(5),
        first_write: us(3),
        evict_clean: us(2),
        evict_dirty: us(6),
        entry: us(4),
    };
    let costs = Costs { here, ..Costs::default() };
    let zram = Price {
        fault: us(12),
        ahead: us(12),
        kind: "zram".into(),
        compressed: true,
        make: None,
        source: String::new(),
    };
    let (measured, pager) = (String::new(), pager(&here));
    Question { costs, measured, swaps: vec![zram], pager, limits: Limits::default() }
}

/// Pseudo-random numbers (SplitMix64).
fn random(seed: &mut u64) -> u64 {
    *seed = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let z = (*seed ^ (*seed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// The answer about a trace.
fn answer(path: &Path, question: &Question) -> Result<Answer, AnswerError> {
    timed(path, question, None)
}

/// The same with the stand-alone time.
fn timed(path: &Path, question: &Question, seconds: Option<f64>) -> Result<Answer, AnswerError> {
    coldframe_answer::answer(&Reading::read(path, seconds, None)?, question).map(Answer::Recorder)
}

fn rows(path: &Path) -> Rows {
    Reading::read(path, None, None).unwrap().rows
}

fn counts(path: &Path, pager: &Pager, sizes: &[u64]) -> Vec<Counts> {
    simulate(&rows(path), pager, sizes).unwrap()
}

#[test]
fn with_ram_for_all_pages_only_first_touches_fault() {
    let (folder, mut seed) = (tempfile::tempdir().unwrap(), 1);
    let pages = 3000;
    let rows = (0..40_000).map(|i| touch(random(&mut seed) % pages, if i % 3 == 0 { Kind::Write } else { Kind::Read }));
    let path = write(folder.path(), provenance(facts(1.0)), rows);
    let pager = question().pager;
    let enough = pager.ram_for(pages).0;
    let result = counts(&path, &pager, &[enough, 2 * enough, enough - 8 * PAGE]);
    for counts in &result[..2] {
        let first = Counts { true_faults: counts.true_faults, zero_fills: pages as f64, ..Counts::default() };
        assert_eq!(*counts, first);
        assert!(5.0 * counts.true_faults < pages as f64, "first touches come in blocks: {counts:?}");
    }
    assert!(result[2].true_faults > result[0].true_faults && result[2].evictions() > 0.0);
    let answer = answer(&path, &question()).unwrap();
    assert_eq!(answer.managed_bytes, pages * PAGE);
    let full = answer.curve[0];
    assert_eq!((full.zero_fills, full.device_reads, full.evictions), (pages, 0, 0));
    // While all fits, first touches are the kernel's; if all of the memory is asked for at once, they are ours.
    assert!((full.seconds - 1.0).abs() < 1e-9, "{full:?}");
    assert!(full.seconds_high.is_some_and(|high| high > 1.0 + pages as f64 * 3e-6), "{full:?}");
}

#[test]
fn a_loop_over_more_than_ram_misses_always_and_its_pages_come_ahead_of_it() {
    let folder = tempfile::tempdir().unwrap();
    let (pages, turns) = (4000, 10);
    let all = (0..turns).flat_map(|_| 0..pages).map(|page| touch(page, Kind::Write));
    let path = write(folder.path(), provenance(facts(1.0)), all);
    let pager = Pager { read_ahead: 0, ..question().pager };
    let result = counts(&path, &pager, &[pages / 2 * PAGE, pages / 8 * PAGE]);
    for counts in result {
        // The first turn's pages come in blocks, and the policy sees the last of them late: a few are hit in the second
        // turn.
        let misses = (pages * (turns - 1)) as f64;
        assert!(counts.true_faults > 0.98 * misses && counts.true_faults < 1.05 * misses, "{counts:?}");
        assert!(counts.device_reads() > 0.98 * misses && counts.device_reads() <= misses, "{counts:?}");
        assert_eq!((counts.zero_fills, counts.device_ahead), (pages as f64, 0.0));
        assert_eq!((counts.clean_exposed, counts.clean_hidden), (0.0, 0.0), "every page was written to");
    }
    let ahead = counts(&path, &question().pager, &[pages / 2 * PAGE])[0];
    assert!(ahead.true_faults < 0.2 * (pages * turns) as f64, "16 pages come with a fault: {ahead:?}");
    assert!(ahead.device_ahead > 0.95 * ahead.device_reads(), "{ahead:?}");
}

#[test]
fn what_was_just_written_comes_back_from_memory_and_what_is_read_leaves_clean() {
    let folder = tempfile::tempdir().unwrap();
    // 300 pages in turn through fewer frames: each page returns before 224 others were written.
    let steps = (0..20).flat_map(|_| 0..300u64).map(|i| touch(i * 7 % 300, Kind::Write));
    let path = write(folder.path(), provenance(facts(1.0)), steps);
    let pager = Pager { read_ahead: 0, ..question().pager };
    let result = counts(&path, &pager, &[200 * PAGE])[0];
    assert!(result.memory_loads > 0.9 * (result.true_faults - result.zero_fills), "{result:?}");
    let read = (0..5).flat_map(|_| 0..2000u64).map(|page| touch(page, Kind::Read));
    let path = write(folder.path(), provenance(facts(1.0)), read);
    let result = counts(&path, &pager, &[500 * PAGE])[0];
    assert_eq!((result.dirty(), result.device_reads()), (0.0, 0.0), "pages never written to are zeros again");
    assert!(result.zero_fills > 9_000.0 && result.zero_fills <= 10_000.0, "{result:?}");
}

/// A Zipf string over this many pages, in blocks of 16 equally popular pages.
fn zipf(pages: u64, rows: usize) -> Vec<Reference> {
    let mut seed = 7;
    let blocks = pages / 16;
    let weights: Vec<f64> = (1..=blocks)
        .scan(0.0, |sum, rank| {
            *sum += 1.0 / (rank as f64).powf(0.8);
            Some(*sum)
        })
        .collect();
    let total = weights[weights.len() - 1];
    let mut row = || {
        let at = (random(&mut seed) >> 11) as f64 / (1u64 << 53) as f64 * total;
        let block = weights.partition_point(|weight| *weight < at) as u64;
        let kind = if random(&mut seed).is_multiple_of(4) { Kind::Write } else { Kind::Read };
        touch(block * 2_654_435_761 % blocks * 16 + random(&mut seed) % 16, kind)
    };
    (0..rows).map(|_| row()).collect()
}

#[test]
fn a_sample_says_what_the_whole_says_within_its_error() {
    let folder = tempfile::tempdir().unwrap();
    let pages = 32_768;
    let rows = zipf(pages, 500_000);
    let path = write(folder.path(), provenance(facts(2.0)), rows.iter().copied());
    let whole = answer(&path, &question()).unwrap();
    // As a recorder keeps them: a quarter of the chunks, by another hash; the facts are those of all chunks.
    let is_sampled = |row: &&Reference| ((row.address / PAGE / 16).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 62) == 0;
    let mut sampled = provenance(ProgramFacts {
        managed_bytes: whole.managed_bytes,
        zero_fills: whole.curve[0].zero_fills,
        ..facts(2.0)
    });
    sampled.sample = Some(0.25);
    let path = write(folder.path(), sampled, rows.iter().filter(is_sampled).copied());
    let sample = answer(&path, &question()).unwrap();
    assert!(
        sample.recorded().unwrap().sampled.is_some_and(|s| s.share == 0.25 && s.error_percent > 0.0)
            && whole.recorded().unwrap().sampled.is_none()
    );
    // Limits of a half, a quarter and an eighth of the heap, and of what is beside it.
    let heap = whole.needed_bytes - whole.not_paged_bytes;
    for ram in [2, 4, 8].map(|part| heap / part + whole.not_paged_bytes) {
        let at = |answer: &Answer| *answer.curve.iter().min_by_key(|p| p.ram_bytes.abs_diff(ram)).unwrap();
        let (whole, sample) = (at(&whole), at(&sample));
        assert_eq!(whole.ram_bytes, sample.ram_bytes);
        assert!(
            sample.seconds_low <= whole.seconds && whole.seconds <= sample.worst(),
            "{ram}: {whole:?}, sampled {sample:?}"
        );
        let off = (sample.seconds - whole.seconds).abs() / whole.seconds;
        assert!(off < 0.15, "{ram}: {} s, sampled {} s", whole.seconds, sample.seconds);
    }
}

#[test]
fn the_answer_has_its_keys_in_order_and_fits_a_terminal() {
    let folder = tempfile::tempdir().unwrap();
    let path = write(folder.path(), provenance(facts(2.0)), zipf(20_000, 200_000));
    let result = answer(&path, &question()).unwrap();
    let json = serde_json::to_value(&result).unwrap();
    for key in ["program_seconds", "not_paged_bytes", "ram_bytes", "managed_bytes", "thrash_bytes", "policy", "sampled"]
    {
        assert!(json.get(key).is_some(), "{key} is missing: {json}");
    }
    assert_eq!((json["device"].as_str(), json["schema_version"].as_u64()), (Some("here"), Some(1)));
    assert!(result.curve.len() >= 5);
    for two in result.curve.windows(2) {
        assert!(two[0].ram_bytes > two[1].ram_bytes, "largest first: {two:?}");
    }
    for point in &result.curve {
        assert!(point.seconds_low <= point.seconds && point.seconds <= point.worst(), "{point:?}");
        assert!(point.device_reads + point.memory_loads + point.zero_fills >= point.true_faults, "{point:?}");
    }
    let least = result.curve[result.curve.len() - 1];
    assert!(least.seconds > 1.2 * result.curve[0].seconds, "{least:?}");
    let again: Answer = serde_json::from_value(json).unwrap();
    assert_eq!(again, result);
    let text = words(&result, Some(Path::new("python3.coldframe/report.html")), "");
    assert!(text.lines().count() <= 18, "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    let sizes = [result.managed_bytes + (11 << 20), result.managed_bytes].map(human_size);
    let needs = format!("python3 takes about 2.00 s and needs {}: heap {}, the rest 11 MiB", sizes[0], sizes[1]);
    assert!(text.split_whitespace().collect::<Vec<_>>().join(" ").starts_with(&needs), "{text}");
    assert!(text.contains("Recommended: --ram ") && text.contains("coldframe run --ram "), "{text}");
}

#[test]
fn what_was_given_back_is_neither_stored_nor_loaded() {
    let folder = tempfile::tempdir().unwrap();
    // 2000 pages, released, and then 2000 others: never more than 2000 at a time.
    let mut rows: Vec<Reference> = (0..2000).map(|page| touch(page, Kind::Write)).collect();
    let notes = SPAN.release(SPAN.start..SPAN.start + 2000 * PAGE);
    rows.extend(notes.map(|address| Reference::new(address, 1, Kind::Read)));
    rows.extend((2000..4000).map(|page| touch(page, Kind::Write)));
    let mut facts_of_trace = provenance(facts(1.0));
    let end = SPAN.start + SPAN.len;
    facts_of_trace.mappings = vec![Mapping { name: MANAGED.into(), start: SPAN.start, end, protection: "rw-p".into() }];
    let path = write(folder.path(), facts_of_trace, rows.iter().copied());
    let result = answer(&path, &question()).unwrap();
    assert_eq!((result.managed_bytes, result.curve[0].zero_fills), (2000 * PAGE, 4000));
    // The same without notes: the recorder's peak gives the same result.
    let peak = ProgramFacts { managed_bytes: 2000 * PAGE, zero_fills: 4000, ..facts(1.0) };
    let plain = rows.iter().filter(|row| row.address < end).copied();
    let path = write(folder.path(), provenance(peak), plain);
    let rows = self::rows(&path);
    assert!(rows.inferred.is_some());
    let pager = question().pager;
    let counts = simulate(&rows, &pager, &[pager.ram_for(2000).0]).unwrap()[0];
    assert_eq!((counts.evictions(), counts.zero_fills), (0.0, 4000.0), "{counts:?}");
}

#[test]
fn a_trace_without_the_programs_own_time_is_refused_with_the_remedy() {
    let folder = tempfile::tempdir().unwrap();
    let mut bare = provenance(facts(1.0));
    bare.program = None;
    for fidelity in [Fidelity::Window, Fidelity::PageReferences, Fidelity::ExactReferences] {
        let path =
            write(folder.path(), Provenance { fidelity, ..bare.clone() }, (0..500).map(|i| touch(i, Kind::Write)));
        let error = answer(&path, &question()).unwrap_err().to_string();
        assert!(error.contains("coldframe record"), "{error}");
        assert_eq!(error.contains("coldframe-lab advise"), fidelity != Fidelity::Window, "{error}");
        // With a given program time there is an answer, whatever recorded the rows.
        assert_eq!(timed(&path, &question(), Some(0.5)).unwrap().program_seconds, 0.5);
    }
    let path =
        write(folder.path(), Provenance { page_size: Some(1024), ..provenance(facts(1.0)) }, [touch(1, Kind::Read)]);
    assert!(answer(&path, &question()).unwrap_err().to_string().contains("other sizes"));
}

#[test]
fn the_kernels_zram_has_a_sentence_with_its_command_and_the_text_fits() {
    let folder = tempfile::tempdir().unwrap();
    let loops = || (0..20u64).flat_map(|_| (0..4000).map(|page| touch(page * 7919 % 4000, Kind::Write)));
    let result = answer(&write(folder.path(), provenance(facts(1.0)), loops()), &question()).unwrap();
    let text = words(&result, None, "");
    let one = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(one.contains("By the kernel, with swap on zram (--by kernel --swap zram): --ram "), "{text}");
    let fits = |text: &str| text.lines().count() <= 18 && text.lines().all(|line| line.chars().count() <= 80);
    assert!(fits(&text), "{text}");
    // Even with every part at its longest, the last line is the command.
    let common = Common {
        thrash_bytes: Some(result.curve[2].ram_bytes),
        exit: Some(3),
        command: Some("program ".to_string() + &"argument ".repeat(15)),
        how_sure: vec!["a reason for doubt".repeat(3); 20],
        ..Common::clone(&result)
    };
    let longest = Answer::Recorder(Recorded { common, ..result.recorded().unwrap().clone() });
    let text = words(&longest, Some(Path::new("p/report.html")), "");
    assert!(fits(&text) && text.contains("--swap zram"), "{text}");
    let last: Vec<&str> = text.lines().rev().take(2).collect();
    assert!(last[0] == "xdg-open p/report.html" && last[1].contains("put `coldframe run --ram "), "{text}");
}

#[test]
fn no_size_is_recommended_of_which_the_window_tells_nothing() {
    let folder = tempfile::tempdir().unwrap();
    // Except for first touches, all rows are in a hundredth of the pages, so little RAM would seem enough.
    let rows = (0..4000).chain((0..20_000).map(|i| i % 40)).map(|page| touch(page, Kind::Write));
    let wide = Provenance { window: Some(1000), ..provenance(facts(10.0)) };
    let path = write(folder.path(), wide, rows);
    let result = answer(&path, &question()).unwrap();
    // One and a quarter of the window, and 11 MiB beside the heap, in quarters of a MiB.
    let covered = (1250 * PAGE + (11 << 20)).next_multiple_of(256 << 10);
    assert_eq!(result.covered_bytes, covered);
    assert!(
        result.ram_bytes.is_some_and(|ram| (covered..covered + (1 << 20)).contains(&ram)),
        "{:?}",
        result.ram_bytes
    );
    assert!(result.curve.iter().all(|point| point.seconds_high.is_some() == (point.ram_bytes >= result.covered_bytes)));
    assert!(result.how_sure.iter().any(|note| note.contains("may take longer")), "{:?}", result.how_sure);
}

#[test]
fn processes_have_ram_of_their_own() {
    let folder = tempfile::tempdir().unwrap();
    let mut two = provenance(facts(1.0));
    two.tasks =
        vec![Task { id: 0, name: "thread 1".into(), space: 0 }, Task { id: 1, name: "thread 2".into(), space: 1 }];
    // The same addresses, used for other pages.
    let rows = (0..4)
        .flat_map(|_| 0..1000u64)
        .flat_map(|page| [0, 1].map(|task| Reference { task, ..touch(page, Kind::Write) }));
    let path = write(folder.path(), two, rows);
    let pager = question().pager;
    let counts = counts(&path, &pager, &[pager.ram_for(1000).0])[0];
    assert_eq!((counts.zero_fills, counts.evictions()), (2000.0, 0.0));
    assert!(5.0 * counts.true_faults < 2000.0, "{counts:?}");
    let result = answer(&path, &question()).unwrap();
    assert_eq!((result.processes, result.managed_bytes), (2, 1000 * PAGE));
    assert!(result.how_sure.iter().any(|note| note.contains("2 processes")));
}
