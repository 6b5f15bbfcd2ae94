//! The help of every verb, as it was read last.

use std::process::Command;

/// The output of `coldframe-lab VERB --help`; no words: of the program itself.
fn help(verb: &[String]) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_coldframe-lab"));
    let output = command.args(verb).arg("--help").env("NO_COLOR", "1").env("COLUMNS", "100").output().expect("it runs");
    assert!(output.status.success(), "{verb:?}");
    let words: String = verb.iter().map(|word| format!("{word} ")).collect();
    format!("$ coldframe-lab {words}--help\n{}\n", String::from_utf8_lossy(&output.stdout))
}

/// The verbs that a help lists.
fn verbs(help: &str) -> Vec<String> {
    let listed = help.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    let first = |line: &str| line.strip_prefix("  ")?.split(' ').next().map(String::from);
    listed.filter_map(first).filter(|verb| !verb.is_empty() && verb != "help").collect()
}

#[test]
fn help_of_every_verb_is_as_it_was_read_last() {
    let mut text = help(&[]);
    let mut all: Vec<Vec<String>> = verbs(&text).into_iter().map(|verb| vec![verb]).collect();
    let traces = help(&["trace".into()]);
    all.extend(verbs(&traces).into_iter().map(|verb| vec!["trace".into(), verb]));
    for verb in all {
        let own = help(&verb);
        let named = format!("coldframe-lab {}", verb.join(" "));
        let examples = own.split("Examples:").nth(1).unwrap_or_default().matches(&named).count();
        let shared = ["trace", "completions", "man"].contains(&verb.last().unwrap().as_str());
        assert!(examples >= 1 || shared, "the help of {named} has {examples} examples");
        text += &own;
    }
    insta::assert_snapshot!("help", text);
}
