//! `coldframe-lab run`: policies, handlers, swap areas and journals of the papers with real programs.

use std::io::Write;
use std::path::Path;
use std::process::Command;

use coldframe_toolbox::command::{done, error as stderr};
use coldframe_toolbox::programs::{compiled, finish};
use coldframe_toolbox::{have, GCC};
use serde_json::Value;

fn coldframe(arguments: &[&str], folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_coldframe-lab"));
    command.arg("run").args(["--backing", folder.to_str().unwrap()]).args(arguments).env("NO_COLOR", "1");
    command
}

#[test]
fn a_device_that_gives_wrong_bytes_stops_the_program_with_a_message() {
    if !have(&[("sqlite3", "sqlite3")]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let query = "with recursive c(x) as (select 1 union all select x+1 from c where x<90000) select count(*) from \
        (select x||'abc' y from c order by y)";
    let inject = r#"{"seed":1,"read_flip":1}"#;
    let mut run = coldframe(&["--ram", "1MiB", "--inject", inject, "--"], folder.path());
    run.args(["sqlite3", ":memory:", "pragma temp_store=memory; pragma cache_size=-100000;", query]);
    let output = finish(run);
    assert_eq!(output.status.code(), Some(125), "{}", stderr(&output));
    assert!(stderr(&output).contains("checksum differs"), "{}", stderr(&output));
}

/// Programs with a swap area that is collected: the output equals the plain run's, and the journal replays.
#[test]
fn programs_with_a_swap_area_print_the_same_and_their_journals_replay() {
    let perl = "my %h; my $x = 1; for my $r (1..3) { for (1..6000) { $x = ($x * 75 + 74) % 65537; \
                $h{$x} .= $r } } print join ',', map { $h{$_} } sort keys %h";
    let folder = tempfile::tempdir().unwrap();
    let numbers = folder.path().join("numbers");
    let mut random = fastrand::Rng::with_seed(1);
    let lines: Vec<String> = (0..200_000).map(|_| format!("{}\n", random.u32(..))).collect();
    std::fs::write(&numbers, lines.concat()).unwrap();
    let numbers = numbers.display().to_string();
    let all: [(&[&str], &str, &str, &str); 2] = [
        (&["sort", "-S", "16M", "--parallel=1", &numbers], "2MiB", "14MiB", "cost-age-times:4"),
        (&["perl", "-e", perl], "3MiB", "8MiB", "greedy"),
    ];
    for (program, ram, size, collector) in all {
        let plain = finish({
            let mut plain = Command::new(program[0]);
            plain.args(&program[1..]).env("PERL_HASH_SEED", "0");
            plain
        });
        let (journals, stats) = (folder.path().join(collector), folder.path().join("stats"));
        std::fs::create_dir(&journals).unwrap();
        let area = ["--system", "lobi", "--collector", collector, "--swap-size", size, "--stats"];
        let mut run = coldframe(&["--ram", ram], folder.path());
        run.args(area).arg(&stats).arg("--journal").arg(&journals).arg("--").args(program).env("PERL_HASH_SEED", "0");
        let output = finish(run);
        assert!(output.status.success(), "{}", stderr(&output));
        assert!(output.stdout == plain.stdout && !plain.stdout.is_empty(), "{program:?}");
        assert!(stderr(&output).contains("erases in"), "{}", stderr(&output));
        let stats: Value = serde_json::from_str(&std::fs::read_to_string(stats).unwrap()).unwrap();
        let of = |name: &str| stats["swap_area"][name].as_f64().unwrap();
        assert!(of("programs") > 1000.0 && of("write_amplification") >= 1.0, "{stats}");
        assert_eq!(stats["counts"]["swap_erases"].as_f64().unwrap(), of("erases"));
        let mut replayed = 0;
        for journal in std::fs::read_dir(&journals).unwrap() {
            done(&format!("replay {}", journal.unwrap().path().display()));
            replayed += 1;
        }
        assert!(replayed > 0);
    }
}

#[test]
fn a_run_can_be_replayed_from_its_journal() {
    if !have(&[("bzip2", "bzip2")]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let journal = folder.path().join("journal");
    let input = folder.path().join("input");
    let bytes = std::fs::read(std::env::current_exe().unwrap()).unwrap();
    std::fs::File::create(&input).unwrap().write_all(&bytes[..bytes.len().min(600_000)]).unwrap();
    let mut run = coldframe(&["--ram", "3MiB", "--policy", "pa-clock", "--journal"], folder.path());
    run.arg(&journal).args(["--", "bzip2", "-k"]).arg(&input);
    assert!(finish(run).status.success());
    done(&format!("replay {}", journal.display()));
}

#[test]
fn a_run_is_priced_by_a_sheet_and_what_the_sheet_lacks_is_said() {
    if !have(&[GCC]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let source =
        "#include <stdlib.h>\nint main(void) { volatile char *v = malloc(600 * 4096); for (int k = 0; k < 3; k++) \
                  for (int i = 0; i < 600; i++) v[i * 4096] = k + i; return 0; }";
    let program = compiled(folder.path(), "program", source, &[]);
    let priced = |more: &[&str]| {
        let stats = folder.path().join("stats.json");
        let mut run = coldframe(&["--ram", "1MiB", "--stats", stats.to_str().unwrap()], folder.path());
        run.args(more).arg("--").arg(&program);
        let output = finish(run);
        assert!(output.status.success(), "{}", stderr(&output));
        let value: Value = serde_json::from_str(&std::fs::read_to_string(stats).unwrap()).unwrap();
        (value, stderr(&output))
    };
    let (stats, words) = priced(&["--device", "LOBI-NAND", "--swap-size", "128MiB"]);
    let count = |name: &str| stats["counts"][name].as_u64().unwrap();
    let (pages, blocks) =
        (count("device_bytes_written").div_ceil(4096), count("device_bytes_written").div_ceil(128 << 10));
    let price = &stats["priced"];
    assert!(pages > 300 && price["page_programs"] == pages && price["block_erases"] == blocks, "{stats}");
    // By the sheet: a load takes 20 us + 37.92 us, a program 37.92 us + 180 us, an erase 1500 us.
    let time = count("device_bytes_read") / 4096 * 57_920_000 + pages * 217_920_000 + blocks * 1_500_000_000;
    assert_eq!(price["time_ps"], time);
    let seconds = stats["program"]["seconds"].as_f64().unwrap();
    let years = 100_000.0 * f64::from(128 << 20) / (count("device_bytes_written") as f64 / seconds) / 31_557_600.0;
    assert!((price["life_years"].as_f64().unwrap() / years - 1.0).abs() < 1e-6, "{years}: {price}");
    assert_eq!((&price["energy_pj"], &price["not_in_sheet"]), (&Value::Null, &serde_json::json!(["energy.load"])));
    // The message gives the prices that the sheet has, and names the missing ones.
    assert!(words.contains("; time ") && !words.contains("; energy"), "{words}");
    assert!(
        words.contains("not in the sheet of LOBI-NAND: energy.load") && words.contains("years of 128 MiB of swap"),
        "{words}"
    );
    let (stats, _) = priced(&["--device", "LOBI-NAND"]);
    assert!(stats["priced"]["not_in_sheet"].to_string().contains("geometry.capacity"), "{stats}");
}
