//! Compares the search on a shortened string with the search on the whole string, on a trace made here.

use std::path::Path;

use coldframe_experiment::string::run;
use coldframe_experiment::Settings;
use coldframe_search::{advise, Advice, Question};
use coldframe_store::{Block, Columns, Fidelity, Kind, Provenance, Reference, Writer};

const PAGES: u64 = 600;

/// A hot set that is always in use, a working set that moves, and an occasional sweep over all pages (xorshift64,
/// Marsaglia 2003).
fn trace(path: &Path) -> u64 {
    let mut x = 2_026_u64;
    let mut random = move |below: u64| {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        x % below
    };
    let mut block = Block::new();
    let mut instructions = 0;
    let mut push = |page: u64, writes: bool| {
        block.push(Reference::new(0x40_0000 + random_line(page), 8, if writes { Kind::Write } else { Kind::Read }));
        block.push(Reference::new(page % 5 * 4096, 4, Kind::Fetch));
        instructions += 1;
    };
    for phase in 0..40 {
        let base = phase * 7;
        for _ in 0..2500 {
            let near = random(12);
            let page = match random(16) {
                0 => base + random(260),
                1 | 2 => base + random(60),
                _ => 5 + near,
            };
            push(page, random(4) == 0);
        }
        if phase % 8 == 7 {
            (0..PAGES).for_each(|page| push(page, false));
        }
    }
    let columns = Columns::default();
    let mut writer = Writer::create(path, columns).unwrap();
    writer.write(&block).unwrap();
    writer.finish(Provenance::new("test", Fidelity::ExactReferences)).unwrap();
    instructions
}

fn random_line(page: u64) -> u64 {
    page * 4096 + page % 64 * 64
}

fn answer(path: &Path, work_max: u64) -> Advice {
    let base = Settings { handler: Some("parallel".into()), ..Settings::default() };
    let mut question = Question { base, work_max: Some(work_max), ..Question::default() };
    // Each instruction of this string stands for hundreds. With a shorter time, only RAM for all pages would meet the
    // limit.
    question.base.front_end.instruction = Some("10us".into());
    question.limits.slowdown = Some(20.0);
    advise(path, &question, &mut |_| ()).unwrap()
}

#[test]
fn what_a_shortened_search_advises_is_what_the_search_of_everything_advises_and_its_numbers_are_of_the_whole_trace() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.parquet");
    assert!(trace(&path) > 100_000);
    let (short, all) = (answer(&path, 1), answer(&path, u64::MAX));
    let searched = short.search.short.expect("one unit of work is too little for everything");
    assert!(searched.references > 0 && searched.families <= 4 && short.search.rounds.is_empty());
    assert!(all.search.short.is_none() && short.search.configurations * 4 < all.search.configurations);
    let (best, expected) = (short.best.as_ref().unwrap(), all.best.as_ref().unwrap());
    let (frames, least) = (best.point.frames as f64, expected.point.frames as f64);
    assert!(
        (frames / least - 1.0).abs() <= 0.02,
        "{} with {frames}, {} with {least}",
        best.point.family(),
        expected.point.family()
    );
    assert!(best.misses.is_empty() && !short.below.as_ref().unwrap().misses.is_empty());
    // Each number of the answer equals that of the whole trace.
    for candidate in short.curves.iter().flatten() {
        let again = run(&path, &[candidate.point.config.settings().unwrap()], &mut |_| ()).unwrap().remove(0);
        let lane = again.lane().unwrap();
        assert_eq!((again.true_faults(), lane.paging), (candidate.point.true_faults, candidate.point.paging));
    }
    // OPT's count is equal too, at every size.
    assert_eq!(short.search.bound, all.search.bound);
    let opt = &short.search.bound.as_ref().unwrap().faults;
    assert!(opt.len() >= 15);
    for (ram, faults) in opt {
        let settings = Settings { policy: Some("opt".into()), frames: Some(ram.0 / 4096), ..Settings::default() };
        assert_eq!(run(&path, &[settings], &mut |_| ()).unwrap()[0].true_faults(), *faults);
    }
    // The costs of the best run come from the search itself; a separate run would have other costs.
    assert_eq!(short.run.as_ref().unwrap().true_faults(), best.point.true_faults);
    assert!(!short.regions.is_empty());
}
