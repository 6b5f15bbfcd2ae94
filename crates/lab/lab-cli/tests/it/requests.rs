//! Requests for blocks and keys are no program's: no verb gives a time, an energy or a device, unless somebody named a
//! device.

use std::process::Command;

use coldframe_toolbox::command::{done, json, refused, run, Folder};
use serde_json::Value;

/// A disk's requests and a cache's, as traces.
fn traces(folder: &Folder) -> [String; 2] {
    let at = |i: u64| i * i % 97 + i % 7;
    let kind = |i: u64| if i.is_multiple_of(3) { "Write" } else { "Read" };
    let line = |i: u64| format!("{},a,0,{},{},4096,9\n", 128_166_372_003_061_629 + i * 1000, kind(i), at(i) * 4096);
    let disk = folder.write("disk.csv", (0..900).map(line).collect::<String>());
    let keys = folder.write("keys.csv", (0..900).map(|i| format!("{i},key-{},get\n", at(i))).collect::<String>());
    let [disk_trace, keys_trace] = ["disk.parquet", "keys.parquet"].map(|name| folder.at(name));
    done(&format!("trace import msr:{disk} -o {disk_trace}"));
    let columns = "--columns time=1,address=2,kind=3 --unit time=s,address=4KiB,size=4KiB --number-objects";
    done(&format!("trace import csv:{keys} -o {keys_trace} {columns}"));
    [disk_trace, keys_trace]
}

/// What a verb gives, in each of its forms; `T` is the trace, `D` a folder.
const LINES: &[(&str, &[&str])] = &[
    (
        "sim",
        &[
            "sim T --policy clock,pa-clock:budget=13,arc,opt --ram 25%,50% --plot",
            "sim T --policy clock,opt --ram 25%,50% --format json",
            "sim T --policy clock,opt --ram 25%,50% --format csv",
            "sim T --policy clock,opt --ram 25%,50% -o D/curve.svg",
            "sim T --policy clock --frames 20 --blocks 20 --set swap.slots_per_block=8",
            "sim T --policy clock --frames 20 --fail 1% --format json",
        ],
    ),
    ("info", &["trace info T", "trace info T --format json"]),
    ("heatmap", &["trace heatmap T", "trace heatmap T --format json", "trace heatmap T -o D/map.svg"]),
    ("cut", &["trace cut T --rows 100 -o D/part.parquet"]),
    ("merge", &["trace merge T T -o D/two.parquet"]),
    ("mix", &["trace mix --task T --slice 9 -o D/mix.parquet"]),
    ("convert", &["trace convert T --to oracleGeneral -o D/t.bin --format json"]),
];

/// Verbs that need a program's references, and refuse these.
const REFUSED: &[&str] =
    &["advise T", "sim T --scheduler cfs", "sim T --policy clock --frames 9 --set time.program=1ms"];

/// Words that only a price has.
const PRICES: &[&str] = &["fault mean", "p99", "atency", "_ps", "_pj", "nergy", "sheet", "program time", "KFG1G16Q2M"];

fn priced(text: &str) -> Option<&'static str> {
    let words: Vec<&str> = text.split(|c: char| !(c.is_alphanumeric() || c == '.')).collect();
    let unit = |pair: &[&str]| pair[0].parse::<f64>().is_ok() && ["ns", "us", "ms"].contains(&pair[1]);
    let time = words.windows(2).any(unit) || words.contains(&"us");
    PRICES.iter().find(|price| text.contains(**price)).copied().or(time.then_some("a time"))
}

#[test]
fn without_a_device_there_is_no_price_in_any_form_of_any_verb() {
    let folder = Folder::new();
    for trace in traces(&folder) {
        let filled = |line: &str| -> String {
            let word = |word| if word == "T" { trace.clone() } else { str::replace(word, "D/", &folder.at("")) };
            line.split(' ').map(word).collect::<Vec<_>>().join(" ")
        };
        for line in LINES.iter().flat_map(|(_, lines)| *lines) {
            let line = filled(line);
            let text = done(&line);
            let file = line.split(' ').find(|word| word.ends_with(".svg"));
            let file = file.map(|path| std::fs::read_to_string(path).unwrap()).unwrap_or_default();
            assert_eq!(priced(&text), None, "{line}:\n{text}");
            assert_eq!(priced(&file), None, "{line}:\n{file}");
            assert!(!file.is_empty() || !line.ends_with("svg"), "{line}");
        }
        for line in REFUSED {
            let line = filled(line);
            let code = if line.contains("time.program") { 2 } else { 3 };
            refused(&line, code, &[]);
        }
        let one = json(&format!("sim {trace} --policy clock --frames 20"));
        let device = |one: &Value| one["config"].get("device").cloned();
        assert!(
            device(&one).is_none() && one.get("time_ps").is_none() && one.get("fault_latency_ps").is_none(),
            "{one}"
        );
        // Who names a device gets all of it; the counts are the same.
        let named = json(&format!("sim {trace} --policy clock --frames 20 --device NAND01GW3B2B"));
        assert_eq!(named["counts"], one["counts"]);
        assert!(device(&named).is_some() && named["fault_latency_ps"]["true"]["mean"].as_u64() > Some(0), "{named}");
        let table = done(&format!("sim {trace} --policy clock --frames 20 --device NAND01GW3B2B"));
        assert!(priced(&table).is_some(), "{table}");
        // What the settings say of it runs again.
        let settings = folder.write("again.toml", "policy = \"clock\"\nframes = 20\n");
        assert!(run(&format!("sim {trace} -c {settings}")).status.success());
    }
}

#[test]
fn each_verb_that_takes_a_trace_is_tried_with_requests() {
    let help = |words: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_coldframe-lab")).args(words).arg("--help").output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    let verbs = |text: String| {
        let listed = text.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
        let first = |line: &str| line.strip_prefix("  ")?.split(' ').next().map(String::from);
        listed.filter_map(first).filter(|verb| !verb.is_empty() && verb != "help").collect::<Vec<_>>()
    };
    let mut untried = Vec::new();
    for (group, verb) in verbs(help(&[]))
        .into_iter()
        .map(|verb| (None, verb))
        .chain(verbs(help(&["trace"])).into_iter().map(|verb| (Some("trace"), verb)))
    {
        let words: Vec<&str> = group.into_iter().chain([verb.as_str()]).collect();
        let usage = help(&words).lines().filter(|line| line.starts_with("Usage:")).collect::<String>();
        let takes = usage.contains("<TRACE") || usage.contains("[TRACE");
        let tried = LINES.iter().any(|(name, _)| *name == verb) || REFUSED.iter().any(|line| line.starts_with(&verb));
        if takes && !tried {
            untried.push(verb);
        }
    }
    assert!(untried.is_empty(), "no line for {untried:?}");
}
