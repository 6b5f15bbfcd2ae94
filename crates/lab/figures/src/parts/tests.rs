//! The study of parts, by what must be so without running it.

use coldframe_formats::{merge, Order};

use super::*;

fn trace(name: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../data/traces").join(name)
}

fn of(name: &str, sets: &[&str]) -> Study {
    let sets: Vec<String> = sets.iter().map(ToString::to_string).collect();
    study(&trace(name), &Settings::read(None, &sets).unwrap(), &mut |_| ()).unwrap()
}

#[test]
fn a_set_of_no_parts_is_what_sim_finds_with_its_settings() {
    let study = of("worker.parquet", &["ram=30%"]);
    let set =
        ["device=OneNAND-4K", "handler=sequential", "machine.dma=false", "tasks.prefetch=off", "swap.layout=linux"];
    let mut again = Settings::read(None, &set.map(String::from)).unwrap();
    again.machine.cache_line = Some("32B".into());
    again.swap.blocks = Some(blocks(study.written).to_string());
    let at = |frames: &u64| Settings { frames: Some(*frames), ..again.clone() };
    let all: Vec<Settings> = study.frames.iter().map(at).collect();
    let outcomes = tasks::run(&trace("worker.parquet"), &all, &mut |_| ()).unwrap();
    let mean = |of: fn(&TasksOutcome) -> u64| outcomes.iter().map(of).sum::<u64>() / outcomes.len() as u64;
    assert_eq!(study.none().time_ps, mean(|outcome| outcome.result.time.0));
    assert_eq!(study.none().device_reads, mean(|outcome| outcome.result.device_reads));
    assert!(study.none().parts.is_empty() && study.none().device_reads > 0);
}

#[test]
fn what_cannot_be_tried_says_so() {
    let study = of("worker.parquet", &["ram=30%"]);
    let reason_of = |parts: &[&str]| study.excluded.iter().find(|one| one.parts == parts).map(|one| one.why.clone());
    assert!(reason_of(&["sap"]).is_some_and(|why| why.contains("one task")), "{:?}", study.excluded);
    assert!(study.combinations.iter().flat_map(|one| &one.parts).all(|part| part != "sap"));
    assert!(!show::bars(std::slice::from_ref(&study))[0].names.iter().any(|name| name.contains("SAP")));
    // All sets of four systems' parts, SWL's policies alone, and in place of its handler in the best set.
    assert!(study.of(&["swl", "ddb", "lobi", "drswap"]).is_some() && study.of(&["pa-clock"]).is_some());
    assert_eq!((study.excluded.len(), study.dma), (1, false));
    let best = study.best().unwrap();
    assert!(best.parts.len() == 1 || study.combinations.len() == 16 + 2 + 2, "{:?}", best.parts);
    // A plain NAND chip has one page buffer, which cannot be read as memory.
    let study = of("worker.parquet", &["ram=30%", "device=NAND01GW3B2B"]);
    let ddb = study.excluded.iter().find(|one| one.parts == ["ddb"]).expect("excluded");
    assert!(ddb.why.contains("time.read"), "{}", ddb.why);
}

/// Two workers. All five parts go together; the prefetcher has the DMA that it needs, and so has everything else.
#[test]
fn all_five_can_be_together_and_each_set_has_the_same_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let mix = folder.path().join("mix.parquet");
    merge(&[trace("worker.parquet"), trace("worker.parquet")], Order::References(2000), &mix).unwrap();
    let study = study(&mix, &Settings::read(None, &["ram=30%".into()]).unwrap(), &mut |_| ()).unwrap();
    assert!(study.excluded.is_empty() && study.dma, "{:?}", study.excluded);
    let five = study.of(&["swl", "ddb", "lobi", "drswap", "sap"]).expect("all five");
    assert!(five.energy_terms_pj.keys().any(|term| term == "area") && five.device_writes > 0);
}

#[test]
fn a_page_that_is_never_written_stays_out_of_nvm() {
    // Instruction fetches: no page is ever written, so the area stays empty and its device idle but for its standby.
    let study = of("render.parquet", &["ram=30%"]);
    let (none, nvm) = (study.none(), study.of(&["drswap"]).unwrap());
    assert!(nvm.fault_time_ps >= none.fault_time_ps && nvm.dirty_evictions == 0, "a quarter of its memory is empty");
    assert!(nvm.energy_pj > none.energy_pj, "a second chip stands by");
    let lobi = study.of(&["lobi"]).unwrap();
    assert!(lobi.idle.is_some_and(|why| why.contains("its log stayed empty")), "{:?}", lobi.idle);
    let bytes = |one: &Combination| {
        let area = one.config.swap.backed.as_ref().map_or(0, |area| quantity::bytes(&area.size).unwrap().0);
        one.config.settings.frames.unwrap() * study.page_bytes + area
    };
    assert!(study.combinations.iter().all(|one| bytes(one) == study.ram_bytes), "equal bytes");
}

#[test]
fn searching_during_the_load_moves_no_page_more_and_takes_no_longer() {
    let study = of("worker.parquet", &["ram=30%"]);
    let (none, swl) = (study.none(), study.of(&["swl"]).unwrap());
    // One task: the order of stages changes no decision, only the clock, and the device does the same work.
    assert_eq!((swl.device_reads, swl.energy_pj), (none.device_reads, none.energy_pj));
    assert!(swl.fault_time_ps < none.fault_time_ps);
    // A fault gains at most its load, 20 us of the sheet, and the wait for the write before it: 37.92 and 180 us.
    let most = none.device_reads * 20_000_000 + none.device_writes * 217_920_000;
    assert!(none.fault_time_ps - swl.fault_time_ps <= most, "{} {} {most}", none.fault_time_ps, swl.fault_time_ps);
}

#[test]
fn each_row_stands_once_and_a_part_that_is_a_parts_own_is_refused() {
    let study = of("worker.parquet", &["ram=30%"]);
    let rows = show::rows(&study);
    let several = usize::from(study.best().unwrap().parts.len() > 1);
    assert_eq!(rows.len(), 1 + 6 + several, "none, six alone, the best set if it has several");
    let text = show::table(std::slice::from_ref(&study));
    assert!(text.lines().skip(1).all(|line| line.chars().count() <= 80), "{text}");
    let bars = show::bars(&[study]);
    assert_eq!((bars.len(), bars[0].groups[0].1.len()), (2, 7));
    for set in ["handler=parallel", "swap.layout=log", "tasks.prefetch=75"] {
        let settings = Settings::read(None, &[set.to_string()]).unwrap();
        assert!(check(&settings).unwrap_err().to_string().contains("part"), "{set}");
    }
    assert!(all().all(|part| part.text.len() <= 20));
}
