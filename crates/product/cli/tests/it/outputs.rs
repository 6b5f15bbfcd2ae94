//! The output of each verb fits 80 columns, and 120; with `--format json` it matches `docs/schema`. The check knows the
//! keywords that those files use, and refuses any other keyword.

use std::path::{Path, PathBuf};
use std::process::Command;

use coldframe_kernel::{Place, Tree};
use coldframe_toolbox::programs::{alone, can_page, message, stderr, stdout};
use coldframe_toolbox::{command_of, verbs};
use serde_json::{json, Value};

/// Commands, one per line; `$` is the folder of the shipped traces, `!` stands before one without JSON. Later commands
/// use files of earlier ones.
const COMMANDS: &str = "\
trace import din:t.din -o t.parquet
trace info $/shop.parquet
trace info $/cjpeg.parquet
trace info t.parquet
trace info $/swap-desktop.csv.zst
trace heatmap t.parquet
!trace cut $/shop.parquet -o part.parquet --rows 10000
generate phone --category browser -o phone.parquet
trace merge phone.parquet phone.parquet -o both.parquet
trace mix --task $/worker.parquet*2 --task $/memload.parquet --slice 10000 -o mix.parquet
trace convert t.parquet --to oracleGeneral -o t.bin
sim $/worker.parquet --policy clock,sieve,lru,opt --ram 10%,50%
!sim $/shop.parquet --plot
sim $/worker.parquet --ram 50% --journal w.journal
replay w.journal
sim $/cjpeg.parquet --system ddb --ram 16KiB --handler sequential,delayed-dual-buffering
sim $/render.parquet --system swl --ram 64KiB --policy clock,pa-clock:budget=13
sim mix.parquet --system sap --ram 50% --prefetch off,75
sim mix.parquet --system sap --ram 50%
sim mix.parquet --system drswap --ram 50% --swap-size 64MiB --swap-device emmc,nvm-dr
sim $/swap-desktop.csv.zst --layout log,linux-ftl --blocks 1024
sim $/worker.parquet --ram 50% --swap-device zram-lz4,nvm --swap-size 50%
advise $/worker.parquet --device NAND01GW3B2B --policy clock -o advised.toml
park --list
policies
devices
devices KFG1G16Q2M
device --from $/debian.device.json --device LOBI-NAND
doctor
teach
teach belady
!teach belady --all
papers ddb
papers --on $/worker.parquet --ram 50%
";
/// Commands that need a machine that can page.
const PAGED: &str = "\
!record -o sort.parquet -- sort -o sorted n.txt
!run --ram 1MiB -- sort -o sorted n.txt
doctor --calibrate --short
--trace sort.parquet
check --max-ram 512MiB -- sort -o sorted n.txt
";
/// Verbs that the commands do not try, and the reason.
const OTHERS: [(&str, &str); 8] = [
    (
        "compare",
        "it makes swap for the whole machine; tests/quiet_swap/by_kernel.rs runs it, one test at a time; its \
                 JSON is checked below",
    ),
    (
        "fit",
        "it runs a program many times in groups; tests/quiet_swap/by_kernel.rs runs it; its words are rows of show",
    ),
    ("squeeze", "it needs a group to squeeze; a test beside its words checks their width, one below its JSON"),
    ("resume", "it needs a parked program; tests/quiet_swap/park.rs runs it"),
    ("turns", "it needs programs that run, and swap; tests/quiet_swap/park.rs runs it and checks its JSON"),
    ("top", "a running program's: show/tests/columns.rs has its table; its program and JSON are checked below"),
    ("completions", "a script for a shell"),
    ("man", "a page for man, which breaks its lines"),
];

/// The schema of a command's output: that of its verb, except for what is asked of a trace or a program.
fn schema_of(line: &str) -> &str {
    match verb_of(line) {
        "--trace" => "answer",
        "doctor" if line.contains("--calibrate") => CALIBRATE,
        _ if line.contains(" --on ") => STUDY,
        verb => verb,
    }
}

/// Schemas of outputs that no verb prints with `--format json` alone: `coldframe -- PROGRAM` prints an answer, or that
/// there is nothing to save, `check` writes a need, `record` writes its statistics, `squeeze --hold` a line for each
/// change.
const FILES: [&str; 9] = [
    "answer",
    "device-seen",
    "device-trial",
    "limit",
    "need",
    "nothing",
    "record",
    "squeeze-change",
    "squeeze-suggested",
];
/// The schema of `papers --on`.
const STUDY: &str = "papers-on";
/// The schema of `doctor --calibrate`.
const CALIBRATE: &str = "calibrate";
/// The schema of `run --by kernel`; `tests/quiet_swap/by_kernel.rs` has the rest of it.
const KERNEL: &str = "run-kernel";

fn coldframe(words: &[String], folder: &Path, columns: usize) -> std::process::Output {
    let (program, own) = command_of(words);
    let mut command = Command::new(program);
    command.args(own).current_dir(folder).env("NO_COLOR", "1").env("COLUMNS", columns.to_string());
    command.env("XDG_CACHE_HOME", folder).output().expect("the command runs")
}

/// The verb of a command; of `trace VERB`, the second word.
fn verb_of(line: &str) -> &str {
    line.trim_start_matches('!')
        .trim_start_matches("trace ")
        .trim_start_matches("lab ")
        .split(' ')
        .next()
        .unwrap_or_default()
}

fn words(line: &str) -> Vec<String> {
    let traces = root().join("data/traces").display().to_string();
    line.split(' ').map(|word| word.replace('$', &traces)).collect()
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..").canonicalize().unwrap()
}

fn schema(verb: &str) -> Value {
    let path = root().join(format!("docs/schema/{verb}.json"));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}; write one", path.display()));
    serde_json::from_str(&text).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// The first place where a value does not match a schema (JSON Schema 2020-12), and why.
fn wrong(value: &Value, schema: &Value, whole: &Value, at: &str) -> Option<String> {
    schema.as_object().expect("a schema is an object").iter().find_map(|(keyword, says)| {
        let all = |found: bool, what: &str| (!found).then(|| format!("{at} is {value}, and no {what} {says}"));
        match keyword.as_str() {
            "$schema" | "$id" | "$defs" | "title" | "description" | "format" | "default" => None,
            "$ref" => {
                let pointer = says.as_str().unwrap().strip_prefix('#').expect("of the same file");
                wrong(value, whole.pointer(pointer).expect("what is referred to is there"), whole, at)
            }
            "const" => all(value == says, "constant"),
            "type" => {
                let any =
                    says.as_array().map_or_else(|| is(value, says), |types| types.iter().any(|one| is(value, one)));
                all(any, "value of type")
            }
            "minimum" => all(value.as_f64().is_none_or(|v| v >= says.as_f64().unwrap()), "number from"),
            "minItems" => {
                all(value.as_array().is_none_or(|v| v.len() as u64 >= says.as_u64().unwrap()), "array of at least")
            }
            "maxItems" => {
                all(value.as_array().is_none_or(|v| v.len() as u64 <= says.as_u64().unwrap()), "array of at most")
            }
            "required" => {
                let lacks = |key: &&Value| value.is_object() && value.get(key.as_str().unwrap()).is_none();
                says.as_array().unwrap().iter().find(lacks).map(|key| format!("{at} lacks {key}"))
            }
            "properties" => says
                .as_object()
                .unwrap()
                .iter()
                .find_map(|(key, schema)| wrong(value.get(key)?, schema, whole, &format!("{at}.{key}"))),
            "items" => value
                .as_array()
                .into_iter()
                .flatten()
                .enumerate()
                .find_map(|(i, one)| wrong(one, says, whole, &format!("{at}[{i}]"))),
            "prefixItems" => {
                let pairs = value.as_array().into_iter().flatten().zip(says.as_array().unwrap()).enumerate();
                pairs.into_iter().find_map(|(i, (one, schema))| wrong(one, schema, whole, &format!("{at}[{i}]")))
            }
            "maximum" => all(value.as_f64().is_none_or(|v| v <= says.as_f64().unwrap()), "number up to"),
            "enum" => all(says.as_array().unwrap().contains(value), "one of"),
            "additionalProperties" => {
                let named = |key: &String| schema.get("properties").is_some_and(|all| all.get(key).is_some());
                let mut others = value.as_object().into_iter().flatten().filter(|(key, _)| !named(key));
                match says.as_bool() {
                    Some(free) => others.next().filter(|_| !free).map(|(key, _)| format!("{at} has {key}")),
                    None => others.find_map(|(key, one)| wrong(one, says, whole, &format!("{at}.{key}"))),
                }
            }
            "anyOf" | "oneOf" => {
                let each: Vec<_> = says.as_array().unwrap().iter().map(|one| wrong(value, one, whole, at)).collect();
                let none = each.iter().all(Option::is_some);
                none.then(|| each.into_iter().flatten().collect::<Vec<_>>().join("; or "))
            }
            other => panic!("the test does not know the keyword {other}"),
        }
    })
}

fn is(value: &Value, name: &Value) -> bool {
    match name.as_str().unwrap() {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_u64() || value.is_i64(),
        "number" => value.is_number(),
        "string" => value.is_string(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        other => panic!("there is no type {other}"),
    }
}

/// Checks that the output matches its verb's schema, and that it would not match without any one of the required
/// properties.
fn fits(verb: &str, message: &str, value: &Value) {
    let schema = schema(verb);
    assert_eq!(schema["$id"], format!("urn:coldframe:schema:1:{verb}"));
    assert_eq!(wrong(value, &schema, &schema, verb), None, "{message}");
    assert!(wrong(&json!("words"), &schema, &schema, verb).is_some(), "{verb}: everything fits");
    let Some(object) = value.as_object() else { return };
    let refused = |key: &&String| {
        let mut less = object.clone();
        less.remove(*key);
        wrong(&Value::Object(less), &schema, &schema, verb).is_some()
    };
    assert!(object.keys().filter(refused).count() * 2 > object.len(), "{verb}: most keys may be missing");
}

/// The output of `top` for a program that runs meanwhile.
fn top(folder: &Path) -> Value {
    let mut command = Command::new(env!("CARGO_BIN_EXE_coldframe"));
    let mut running =
        command.args(["-q", "run", "--ram", "4MiB", "--", "sleep", "60"]).current_dir(folder).spawn().unwrap();
    let of = running.id();
    let programs = || std::fs::read_to_string(format!("/proc/{of}/task/{of}/children")).unwrap_or_default();
    let look = |pid: &str| {
        let output = coldframe(&words(&format!("top {pid} --once --format json")), folder, WIDE);
        output.status.success().then(|| serde_json::from_slice(&output.stdout).unwrap())
    };
    let found = (0..300).find_map(|_| {
        std::thread::sleep(std::time::Duration::from_millis(100));
        programs().split_whitespace().find_map(look)
    });
    for pid in programs().split_whitespace() {
        let _ = Command::new("kill").arg(pid).status();
    }
    let _ = running.wait();
    found.expect("a program that runs is found")
}

/// The outputs of `squeeze` for a group with 8 MB of a shell's words: once, the last line of a hold, what is suggested.
fn squeeze(folder: &Path) -> Option<[Value; 3]> {
    let place = Place::find(&Tree::machine()).ok().filter(|place| !place.enable)?;
    let group = place.parent.join(format!("coldframe-schema-{}", std::process::id()));
    std::fs::create_dir(&group).unwrap();
    let script = "echo $$ > \"$0\"/cgroup.procs; words=$(head -c 8000000 /dev/zero | tr '\\0' a); echo ready; read end";
    let mut shell = Command::new("sh");
    shell.args(["-c", script]).arg(&group).stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::piped());
    let mut shell = shell.spawn().unwrap();
    std::io::Read::read_exact(shell.stdout.as_mut().unwrap(), &mut [0; 6]).unwrap();
    let line = format!("squeeze --yes --swap zram --for 100ms --max-stall 90% --format json {}", shell.id());
    let done = coldframe(&words(&line), folder, WIDE);
    let line = format!("{} --hold --state {}", line, folder.join("state.json").display());
    let hold = words(&line);
    let (program, own) = command_of(&hold);
    let held = Command::new("timeout").args(["-s", "TERM", "4"]).arg(program).args(own).output().unwrap();
    let line = format!("squeeze --suggest --state state.json --format json {}", shell.id());
    let suggested = coldframe(&words(&line), folder, WIDE);
    drop(shell.stdin.take());
    shell.wait().unwrap();
    while std::fs::remove_dir(&group).is_err() {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    assert_eq!(done.status.code(), Some(0), "{}", stderr(&done));
    let last = held.stdout.split(|byte| *byte == b'\n').rfind(|line| !line.is_empty());
    let last = last.unwrap_or_else(|| panic!("{}", stderr(&held)));
    Some([&done.stdout, last, &suggested.stdout].map(|json| serde_json::from_slice(json).unwrap()))
}

/// Columns of a terminal in which no line is broken.
const WIDE: usize = 400;

/// A folder with the inputs of the commands, and those that can run here.
fn inputs() -> (tempfile::TempDir, Vec<&'static str>) {
    let folder = tempfile::tempdir().unwrap();
    let lines: String = (0..3000).map(|i| format!("{} {:x}\n", i % 3, i * 7919 % 100_000 * 64)).collect();
    std::fs::write(folder.path().join("t.din"), lines).unwrap();
    let numbers: String = (0..100_000u64).map(|i| format!("{}\n", i * 7919 % 100_003)).collect();
    std::fs::write(folder.path().join("n.txt"), numbers).unwrap();
    (folder, COMMANDS.lines().chain(if can_page() { PAGED } else { "" }.lines()).collect())
}

/// The lines that are too wide in a terminal with this many columns, the first of each command.
fn too_wide(columns: usize) -> Vec<String> {
    let (folder, commands) = inputs();
    let wide = |line: &&str| {
        let text = message(&coldframe(&words(line.trim_start_matches('!')), folder.path(), columns));
        assert!(!text.contains("error:"), "{line}: {text}");
        // A single word may be a path, which must not be broken.
        let wide = text.lines().find(|line| line.chars().count() > columns && line.trim().contains(' '));
        wide.map(|wide| format!("{line}, {columns} columns:\n{wide}"))
    };
    commands.iter().filter_map(wide).collect()
}

#[test]
fn every_verb_fits_80_columns() {
    assert_eq!(too_wide(80), [""; 0]);
}

#[test]
fn every_verb_fits_120_columns() {
    assert_eq!(too_wide(120), [""; 0]);
}

/// The cells of an output's tables that begin with a digit: whole numbers with their units, in the order of the rows.
fn numbers(text: &str) -> Vec<String> {
    let (mut all, mut inside) = (Vec::new(), false);
    for line in text.lines() {
        match line.chars().next() {
            Some('═') => inside = true,
            Some('─') => inside = false,
            _ if inside => {
                let cells =
                    line.split("  ").map(str::trim).filter(|cell| cell.starts_with(|c: char| c.is_ascii_digit()));
                all.extend(cells.map(String::from));
            }
            _ => {}
        }
    }
    all
}

/// The numbers of a wide table that a narrow one does not show whole, and lines that are too wide.
fn lost(wide: &str, narrow: &str, columns: usize) -> Vec<String> {
    let has = |number: &String| narrow.lines().any(|line| format!(" {line} ").contains(&format!(" {number} ")));
    let mut lost: Vec<String> = numbers(wide).into_iter().filter(|number| !has(number)).collect();
    let table = |line: &&str| line.starts_with(['─', '═']) && line.chars().count() > columns;
    lost.extend(narrow.lines().filter(table).map(String::from));
    lost
}

#[test]
fn no_table_loses_a_number_at_80_and_at_60_columns() {
    let (folder, commands) = inputs();
    let mut tables = 0;
    // What is measured is another number each time.
    for line in commands.iter().filter(|line| COMMANDS.contains(*line) && !line.contains("doctor")) {
        let text = |columns| stdout(&coldframe(&words(line.trim_start_matches('!')), folder.path(), columns));
        let wide = text(WIDE);
        if numbers(&wide).is_empty() {
            continue;
        }
        tables += 1;
        for columns in [80, 60] {
            let narrow = text(columns);
            let lost = lost(&wide, &narrow, columns);
            assert!(lost.is_empty(), "{line}, {columns} columns: {lost:?} are lost\n{wide}\n{narrow}");
        }
    }
    assert!(tables > 10, "only {tables} tables");
}

#[test]
fn a_number_that_is_cut_or_left_out_is_lost() {
    let wide = "──\n a   b\n══\n x   12 345 ms   0.25\n──\n";
    assert_eq!(numbers(wide), ["12 345 ms", "0.25"]);
    assert_eq!(lost(wide, " x…  12 345 ms\n 0.25", 80), [""; 0]);
    assert_eq!(lost(wide, " x   12 34…   0.25", 80), ["12 345 ms"]);
    assert_eq!(lost(wide, " x   12 345 ms", 80), ["0.25"]);
}

/// The JSON that a command wrote to a file.
fn written(line: &str, folder: &Path, file: &str) -> Value {
    let done = coldframe(&words(line), folder, WIDE);
    assert!(done.status.success(), "{line}: {}", stderr(&done));
    serde_json::from_slice(&std::fs::read(folder.join(file)).unwrap()).unwrap()
}

#[test]
fn every_verbs_json_is_of_its_schema() {
    let _alone = alone();
    let (folder, commands) = inputs();
    if can_page() {
        let line = "run --ram 4MiB --stats run.json -- sort -o sorted n.txt";
        fits("run", line, &written(line, folder.path(), "run.json"));
        let shown = top(folder.path());
        assert_eq!(shown["program"], "sleep 60", "{shown}");
        fits("top", "top --once", &shown);
        let line = "-q compare --ram 4MiB --runs 1 --format json -- sort -o sorted n.txt";
        let done = coldframe(&words(line), folder.path(), WIDE);
        assert_eq!(done.status.code(), Some(0), "{}", stderr(&done));
        fits("compare", line, &serde_json::from_slice(&done.stdout).unwrap());
    }
    let zram = rustix::process::geteuid().is_root() && Path::new("/sys/class/zram-control").is_dir();
    if zram && Place::find(&Tree::machine()).is_ok() {
        let line = "run --by kernel --swap zram --ram 16MiB --stats kernel.json -- sort -o sorted n.txt";
        fits(KERNEL, line, &written(line, folder.path(), "kernel.json"));
        let line = "-q check --write-baseline need.json -- sort -o sorted n.txt";
        fits("need", line, &written(line, folder.path(), "need.json"));
        let line = "-q -- sort -o sorted n.txt";
        let _ = coldframe(&words(line), folder.path(), WIDE);
        let answer = std::fs::read(folder.path().join("sort.coldframe/advice.json")).unwrap();
        fits("limit", line, &serde_json::from_slice(&answer).unwrap());
        if let Some(found) = squeeze(folder.path()) {
            for (schema, found) in ["squeeze", "squeeze-change", "squeeze-suggested"].iter().zip(&found) {
                fits(schema, "squeeze", found);
            }
        }
    }
    for line in commands {
        let command = match (line.strip_prefix('!'), line.split_once(" -- ")) {
            (Some(line), _) => line.into(),
            (None, Some((options, program))) => format!("{options} --format json -- {program}"),
            (None, None) => format!("{line} --format json"),
        };
        let output = coldframe(&words(&command), folder.path(), WIDE);
        // A check that answers no has succeeded.
        assert!(matches!(output.status.code(), Some(0 | 1)), "{line}: {}", stderr(&output));
        if !line.starts_with('!') {
            let value = serde_json::from_slice(&output.stdout);
            fits(schema_of(line), line, &value.unwrap_or_else(|e| panic!("{line}: {e}: {}", stderr(&output))));
        }
    }
}

#[test]
fn every_verb_is_tried_and_every_one_with_json_has_a_schema_and_every_schema_a_verb() {
    let folder = tempfile::tempdir().unwrap();
    let help = |of: &[&str]| {
        let words: Vec<String> = of.iter().chain(&["--help"]).map(ToString::to_string).collect();
        String::from_utf8(coldframe(&words, folder.path(), WIDE).stdout).unwrap()
    };
    let (mut all, mut schemas) = (Vec::new(), Vec::new());
    for of in [&[][..], &["lab"], &["trace"]] {
        for verb in verbs(&help(of)).into_iter().filter(|verb| verb != "trace") {
            let text = help(&[of, &[&verb]].concat());
            let form = text.lines().skip_while(|line| !line.contains("--format <")).take(2);
            if form.into_iter().any(|line| line.contains("json")) {
                schemas.push(verb.clone());
            }
            all.push(verb);
        }
    }
    assert!(all.len() > 25, "{all:?}");
    for verb in all {
        let tried = COMMANDS.lines().chain(PAGED.lines()).any(|line| verb_of(line) == verb);
        assert!(tried || OTHERS.iter().any(|(other, _)| *other == verb), "{verb}: add a line above");
    }
    schemas.sort();
    schemas.dedup();
    let files = std::fs::read_dir(root().join("docs/schema")).unwrap().map(|entry| entry.unwrap().path());
    let json = files.filter(|path| path.extension().is_some_and(|extension| extension == "json"));
    let mut stored: Vec<String> = json.map(|path| path.file_stem().unwrap().to_string_lossy().into_owned()).collect();
    stored.sort();
    let others = [&FILES[..], &[STUDY, KERNEL, CALIBRATE]].concat();
    assert!(others.iter().all(|name| stored.iter().any(|file| file == name)), "{stored:?}");
    stored.retain(|name| !others.contains(&name.as_str()));
    assert_eq!(schemas, stored);
}

/// The exit codes that a help names.
fn exit_codes(help: &str) -> Vec<String> {
    let codes = help.split_once("Exit codes:").map_or("", |(_, codes)| codes);
    let first = |part: &str| part.split_whitespace().next().unwrap_or_default().to_string();
    codes.split([';', ',']).map(first).filter(|code| code.parse::<u8>().is_ok()).collect()
}

#[test]
fn every_exit_code_of_a_verb_is_in_the_programs_help_and_in_the_book() {
    let folder = tempfile::tempdir().unwrap();
    let help = |of: &[&str]| {
        let words: Vec<String> = of.iter().chain(&["--help"]).map(ToString::to_string).collect();
        String::from_utf8(coldframe(&words, folder.path(), WIDE).stdout).unwrap()
    };
    let book = std::fs::read_to_string(root().join("docs/book/src/errors.md")).unwrap();
    let whole = exit_codes(&help(&[]));
    let mut verbs_with_codes = 0;
    for verb in verbs(&help(&[])) {
        let codes = exit_codes(&help(&[&verb]));
        verbs_with_codes += usize::from(codes.len() > 2);
        for code in codes {
            assert!(whole.contains(&code), "{verb} ends with {code}, which `coldframe --help` does not say");
            assert!(book.contains(&format!("\n| {code} ")), "{verb} ends with {code}, which errors.md does not say");
        }
    }
    assert!(verbs_with_codes > 8, "the verbs' help has no exit codes");
}
