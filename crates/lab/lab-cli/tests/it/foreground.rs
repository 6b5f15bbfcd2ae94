//! `generate phone` and `sim --system drswap` as a user sees them.

use coldframe_toolbox::command::{done, json, shipped, Folder};

/// Two applications of half a megabyte and one service; the rest as shipped.
const SMALL: &str = "[categories]\npair = [0.5, 0.5]\n";

/// The shipped parameters.
fn parameters() -> String {
    done("generate phone --parameters")
}

fn small_phone() -> String {
    let shipped = parameters();
    let head = shipped.split("[categories]").next().expect("there is a head");
    assert!(head.contains("count = 8"));
    head.replace("count = 8", "count = 1") + SMALL
}

#[test]
fn a_generated_phone_is_an_ordinary_trace_and_its_seed_decides() {
    let dir = Folder::new();
    let phone = dir.write("p.toml", small_phone());
    let [a, b, c] = ["a", "b", "c"].map(|name| dir.at(&format!("{name}.parquet")));
    let make =
        |to: &str, seed: u64| json(&format!("generate phone --workload {phone} --category pair --seed {seed} -o {to}"));
    let made = make(&a, 7);
    assert_eq!((&made["tasks"], &made["seed"]), (&3.into(), &7.into()));
    make(&b, 7);
    make(&c, 8);
    assert_eq!(json(&format!("trace info {a}"))["references"], made["references"]);
    let bytes = |path: &str| std::fs::read(path).expect("a trace");
    assert!(bytes(&a) == bytes(&b) && bytes(&a) != bytes(&c));
}

#[test]
fn a_generated_category_has_fewer_swap_ins_with_direct_read() {
    let dir = Folder::new();
    let trace = dir.at("gaming.parquet");
    json(&format!("generate phone --category gaming -o {trace}"));
    let devices = "--swap-device nvm,nvm-dr --swap-size 128MiB";
    let runs = json(&format!("sim {trace} --system drswap --ram {} {devices}", shipped_ram()));
    // Table IV: direct read saves most of the swap-ins of a category (in the mean of all 3,298 and 1,066).
    let swap_ins = |run: usize| runs[run]["counts"]["swap_ins"].as_u64().unwrap();
    assert!(swap_ins(1) > 0 && 2 * swap_ins(1) < swap_ins(0), "{} and {}", swap_ins(0), swap_ins(1));
    assert!(runs[1]["counts"]["direct_reads"].as_u64().unwrap() > 0);
    let energy = &runs[1]["foreground"]["energy_pj"];
    let terms: i64 = energy["terms"].as_object().unwrap().values().map(|v| v.as_i64().unwrap()).sum();
    assert_eq!(Some(terms), energy["total"].as_i64());
    assert!(runs[0]["counts"]["direct_reads"].is_null(), "zeros are left out");
    assert_eq!(runs[1]["foreground"]["switches"].as_array().map(Vec::len), Some(15), "five applications, three rounds");
}

#[test]
fn recorded_programs_are_switched_and_direct_read_saves_swap_ins() {
    let dir = Folder::new();
    let mix = dir.at("five.parquet");
    let tasks = ["sqlite", "shop", "game", "cjpeg", "djpeg"].map(|name| shipped(&format!("{name}.parquet")));
    let made = json(&format!("trace mix --rounds 3 --visit 60s -o {mix} --task {}", tasks.join(" --task ")));
    assert_eq!(made["programs"], 5);
    // This phone leaves no RAM to pages of files when the area is full.
    let phone = dir.write("p.toml", parameters().replace("files_min_mb = 16", "files_min_mb = 0"));
    let how = "--system drswap --ram 30% --swap-size 100% --swap-device nvm,nvm-dr";
    let run = json(&format!("sim {mix} {how} --set swap.phone={phone}"));
    let runs = run.as_array().expect("two runs");
    for run in runs {
        assert_eq!(run["foreground"]["switches"].as_array().map(Vec::len), Some(15), "five programs, three rounds");
    }
    let [disabled, enabled] = [0, 1].map(|run: usize| runs[run]["counts"]["swap_ins"].as_u64().expect("a number"));
    assert!(0 < enabled && enabled < disabled, "{enabled} with direct read, {disabled} without");
}

fn shipped_ram() -> String {
    let shipped = parameters();
    let line = shipped.lines().find(|line| line.starts_with("ram_mb")).expect("the file says so");
    let digits: String = line.chars().skip_while(|c| !c.is_ascii_digit()).take_while(char::is_ascii_digit).collect();
    format!("{digits}MB")
}
