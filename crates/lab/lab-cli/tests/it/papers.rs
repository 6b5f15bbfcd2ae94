//! `papers` and `teach` as a user sees them: pictures, parts on a trace, lessons.

use coldframe_toolbox::command::{done, json, shipped, Folder};

#[test]
fn the_figures_of_a_paper_are_drawn_as_svg() {
    let folder = Folder::new();
    let path = folder.at("ddb.svg");
    json(&format!("papers ddb --strict -o {path}"));
    let drawn = std::fs::read_to_string(path).unwrap();
    for figure in ["Figure 5", "Figure 6", "Figure 7"] {
        assert!(drawn.contains(figure));
    }
    // Figure 5 has two curves of one program and two points of the paper's table 5; figures 6 and 7 have one curve for
    // each of three programs and the paper's means of two ranges.
    assert_eq!(drawn.matches("<polyline").count(), 2 + 2 + 2 * (3 + 2));
}

/// A table of 80 columns, a picture, JSON.
#[test]
fn the_papers_parts_on_a_trace_of_ones_own() {
    let (folder, worker) = (Folder::new(), shipped("worker.parquet"));
    let picture = folder.at("parts.svg");
    let on = format!("papers --on {worker} --ram 30%");
    let text = done(&format!("{on} -o {picture}"));
    assert!(
        text.contains("SWL: search in load") && text.contains("Equal bytes: drswap has 1.9 MiB of RAM and 632 KiB of"),
        "{text}"
    );
    let own = |line: &&str| !line.contains(&worker);
    assert!(text.lines().filter(own).all(|line| line.chars().count() <= 80), "{text}");
    assert!(std::fs::read_to_string(&picture).unwrap().contains("Fault time"));
    let markdown = done(&format!("{on} --format markdown"));
    assert!(markdown.contains("| SWL: PA-Clock | ") && markdown.contains("\n- Not sap: "), "{markdown}");
    let studies = json(&on);
    let times = studies[0]["combinations"].as_array().unwrap().iter().map(|one| one["fault_time_ps"].as_u64().unwrap());
    let times: Vec<u64> = times.collect();
    assert!(times.iter().min() < times.first());
}

#[test]
fn a_lesson_is_printed_whole_if_input_is_no_terminal() {
    let text = done("teach belady");
    let end = "So: 9 faults with 3 frames, 10 with 4.\n";
    assert!(text.contains(" 12. read page 5: hit") && text.ends_with(end), "{text}");
    let lesson = json("teach belady");
    let steps = |run: usize| lesson["runs"][run]["steps"].as_array().unwrap();
    let hits = |run: usize| steps(run).iter().filter(|step| step["hit"] == true).count();
    assert_eq!((hits(0), hits(1)), (3, 2));
    let names = done("teach");
    for name in ["belady", "second-chance", "parallel", "pa-clock", "dual-buffering"] {
        assert!(names.contains(name), "{name}");
        done(&format!("teach {name} --all"));
    }
}
