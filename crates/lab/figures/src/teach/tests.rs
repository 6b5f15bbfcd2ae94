//! The statements of the lessons agree with their sources.

use super::*;

fn played(name: &str) -> Vec<Played> {
    play(find(name).unwrap()).unwrap()
}

fn hits(played: &Played) -> Vec<u32> {
    played.steps.iter().filter(|step| step.hit).map(|step| step.page).collect()
}

#[test]
fn belady_s_twelve_references_fault_nine_times_in_three_frames_and_ten_times_in_four() {
    let all = played("belady");
    assert_eq!((all[0].faults(), all[1].faults()), (9, 10));
    assert_eq!((hits(&all[0]), hits(&all[1])), (vec![1, 2, 5], vec![1, 2]));
    // The last state by hand: with three frames 5 3 4, with four 4 5 2 3.
    let last = |played: &Played| -> Vec<u32> {
        let mut pages: Vec<u32> = played.steps.last().unwrap().frames.iter().flatten().map(|held| held.page).collect();
        pages.sort_unstable();
        pages
    };
    assert_eq!((last(&all[0]), last(&all[1])), (vec![3, 4, 5], vec![2, 3, 4, 5]));
}

#[test]
fn the_page_in_use_keeps_its_frame_with_clock_and_not_with_fifo() {
    let all = played("second-chance");
    assert!(hits(&all[1]).iter().all(|page| *page == 2) && hits(&all[1]).len() == 5);
    assert!(hits(&all[0]).len() < 5);
    // The written page is seen to be dirty and is written when it leaves.
    let clock = &all[1].steps;
    let written = clock.iter().position(|step| step.writing).unwrap();
    assert!(clock[written].frames.iter().flatten().any(|held| held.dirty));
    assert!(clock.iter().flat_map(|step| &step.lines).any(|line| line.starts_with("page 6 is written")));
}

#[test]
fn the_parallel_handler_starts_the_load_before_the_search() {
    let all = played("parallel");
    let place = |played: &Played, word: &str| {
        played.steps.last().unwrap().lines.iter().position(|line| line.contains(word)).unwrap()
    };
    assert!(place(&all[0], "begins to load") > place(&all[0], "GetFreeframe"));
    assert!(place(&all[1], "begins to load") < place(&all[1], "GetFreeframe"));
    // Figure 7 of SWL, sequential: 86.1 us at one step, 137.95 us at 60; four steps are on that line.
    let on_the_line = 86.1 + 3.0 * (137.95 - 86.1) / 59.0;
    assert!((all[0].longest().0 as f64 / 1e6 - on_the_line).abs() < 0.001, "{:?}", all[0].longest());
    // The parallel handler's faults all take what its load takes (figure 7: constant).
    assert_eq!(all[1].longest(), Ps(77_300_000));
}

#[test]
fn clock_walks_all_round_and_pa_clock_thirteen_steps() {
    let all = played("pa-clock");
    let walks = |played: &Played| -> Vec<String> {
        let lines = played.steps.iter().flat_map(|step| &step.lines);
        lines.filter(|line| line.contains("frames examined")).cloned().collect()
    };
    assert!(walks(&all[0])[0].contains(" 21 frames examined"), "{:?}", walks(&all[0]));
    assert!(walks(&all[1])[0].contains(" 13 frames examined"), "{:?}", walks(&all[1]));
    assert_eq!(all[1].longest(), Ps(77_300_000));
    assert!(all[0].longest() > all[1].longest());
}

#[test]
fn a_page_stays_in_its_buffer_until_the_next_load() {
    let all = played("dual-buffering");
    assert!(all[0].steps.iter().all(|step| step.buffers.iter().all(Option::is_none)));
    assert_eq!(all[1].steps[0].buffers.iter().flatten().collect::<Vec<_>>(), [&1]);
    assert_eq!(all[1].steps[1].buffers.iter().flatten().collect::<Vec<_>>(), [&2]);
    // A load alone (DDB table 3, t_pl) is the whole of a fault; the sequential handler moves the page, too (t_pm).
    assert_eq!((all[1].longest(), all[0].longest()), (Ps(29_330_000), Ps(29_330_000 + 12_860_000)));
    assert!(words::timeline(&all[1]).contains("buffer 1"));
}

#[test]
fn latencies_shown_are_those_of_the_lane() {
    for lesson in ALL {
        for played in play(lesson).unwrap() {
            if !played.priced {
                continue;
            }
            let sum = played.steps.iter().filter_map(|step| step.fault).fold(Ps::ZERO, |sum, latency| sum + latency);
            assert_eq!(sum, played.paging, "{}", lesson.name);
            let shown_times =
                played.steps.iter().flat_map(|step| &step.lines).filter(|line| line.contains("after its fault"));
            assert_eq!(shown_times.count(), played.faults(), "{}", lesson.name);
        }
    }
}

/// A stage's line, and a page that leaves: `PreProcess: 2.93 us`, in hundredths of a microsecond.
fn hundredths(line: &str) -> u64 {
    let counts = line.split(':').next().is_some_and(|name| !name.contains(' ') || name.ends_with("is written"));
    let time = line.split_once(": ").filter(|_| counts).map_or("0 us", |(_, rest)| rest);
    let number = time.split([' ', ',']).next().unwrap();
    let unit = match time.split([' ', ',']).nth(1) {
        Some("us") => 100.0,
        Some("ns") => 0.1,
        _ if number == "0" => 0.0,
        unit => panic!("{unit:?}: {line}"),
    };
    (number.parse::<f64>().unwrap() * unit).round() as u64
}

#[test]
fn the_times_shown_for_a_fault_add_up_to_it() {
    for lesson in ALL {
        for played in play(lesson).unwrap().into_iter().filter(|played| played.priced) {
            for step in &played.steps {
                let shown_times: u64 = step.lines.iter().map(|line| hundredths(line)).sum();
                // Each line is rounded to a hundredth, and so is the sum.
                let fault = (step.fault.unwrap_or_default().0 as f64 / 1e4).round() as u64;
                assert!(shown_times.abs_diff(fault) <= 1, "{}, {fault}: {:#?}", lesson.name, step.lines);
            }
        }
    }
}

#[test]
fn an_unknown_lesson_is_named_with_the_nearest() {
    assert!(find("beladi").unwrap_err().to_string().contains("did you mean `belady`"));
}

#[test]
fn the_teacher_s_page_names_every_lesson() {
    let page = include_str!("../../../../../docs/book/src/start/teacher.md");
    for lesson in ALL {
        assert!(page.contains(&format!("coldframe-lab teach {} --all", lesson.name)), "{}", lesson.name);
    }
}

#[test]
fn a_lesson_about_misses_has_no_time_in_any_form() {
    for lesson in ALL.iter().filter(|lesson| !lesson.priced) {
        let played = play(lesson).unwrap();
        let json = serde_json::to_string(&LessonRuns::new(lesson, &played)).unwrap();
        assert!(!json.contains("_ps\""), "{json}");
        let text = words::whole(lesson, &played, true);
        let times = ["us", "ns", "ms", "PreProcess", "UpdateMMU", "prices"];
        let mut words = text.split(|c: char| !c.is_alphanumeric());
        assert!(words.all(|word| !times.contains(&word)), "{}:\n{text}", lesson.name);
    }
}

#[test]
fn a_handout_has_the_begin_and_the_end_of_a_lesson_and_counts_what_is_between() {
    for lesson in ALL {
        let played = play(lesson).unwrap();
        let handout = words::whole(lesson, &played, false);
        let lines = handout.lines().count();
        assert!(lines < 190, "{}: {lines} lines", lesson.name);
        // What is left out is counted, and a hint is there.
        let left = handout.lines().filter_map(|line| line.trim().strip_prefix("... ")?.strip_suffix(" more steps ..."));
        let left: usize = left.map(|steps| steps.parse::<usize>().unwrap()).sum();
        assert_eq!(handout.contains("on the list"), lesson.name == "list", "{handout}");
        assert!(handout.contains("So: "), "{handout}");
        let all = words::whole(lesson, &played, true);
        let steps: usize = played.iter().map(|one| one.steps.len()).sum();
        let numbered = |text: &str| {
            text.lines().filter(|line| line.contains(". read page") || line.contains(". write page")).count()
        };
        assert_eq!((numbered(&all), numbered(&handout) + left), (steps, steps), "{}", lesson.name);
        assert_eq!(left > 0, played.iter().any(|one| one.steps.len() > 12), "{}", lesson.name);
    }
}

#[test]
fn a_log_s_collector_copies_what_is_needed_and_erases_the_rest() {
    let all = played("log");
    let copies = |played: &Played| played.mentions("collector copies");
    assert!(copies(&all[0]) > copies(&all[1]), "more room, fewer copies");
    for played in &all {
        assert!(played.mentions("is erased") > 0, "{:#?}", played.steps);
        // Each page is in the log at most once, and never in more slots than a block has.
        for step in &played.steps {
            assert!(step.log.len() >= 7 && step.log.iter().all(|block| block.len() == 2), "{:?}", step.log);
            let slots: Vec<&String> =
                step.log.iter().flatten().filter(|slot| !["x", "-"].contains(&slot.as_str())).collect();
            assert!(
                slots.iter().all(|slot| slots.iter().filter(|other| other == &slot).count() == 1),
                "{:?}",
                step.log
            );
        }
    }
}

#[test]
fn a_prefetching_list_saves_faults_and_a_direct_read_saves_loads() {
    let list = played("list");
    assert!(list[1].faults() < list[0].faults() && list[1].mentions("on the list") > 0, "{:#?}", list[1].steps);
    assert_eq!(list[0].mentions("on the list"), 0);
    let direct = played("direct-read");
    let loads = |played: &Played| played.mentions("begins to load");
    assert!(loads(&direct[1]) < loads(&direct[0]) && direct[1].mentions("where it is") > 0, "{:#?}", direct[1].steps);
    assert_eq!(direct[0].mentions("where it is"), 0);
}
