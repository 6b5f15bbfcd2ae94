//! The help of every verb, as it was read last.

use std::process::Command;

/// The output of `coldframe VERB --help`; the empty verb is the program itself.
fn help(verb: &str) -> String {
    let args: Vec<&str> = [verb, "--help"].into_iter().filter(|a| !a.is_empty()).collect();
    let mut command = Command::new(env!("CARGO_BIN_EXE_coldframe"));
    let output = command.args(&args).env("NO_COLOR", "1").env("COLUMNS", "100").output().expect("it runs");
    assert!(output.status.success(), "{args:?}");
    format!("$ coldframe {}\n{}\n", args.join(" "), String::from_utf8_lossy(&output.stdout))
}

/// All verbs, as the program's help lists them.
fn verbs() -> Vec<String> {
    let help = help("");
    let listed = help.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    let first = |line: &str| line.strip_prefix("  ")?.split(' ').next().map(String::from);
    listed.filter_map(first).filter(|verb| !verb.is_empty() && verb != "help").collect()
}

#[test]
fn help_of_every_verb_is_as_it_was_read_last() {
    let mut text = help("");
    for verb in verbs() {
        let own = help(&verb);
        let examples = own.split("Examples:").nth(1).unwrap_or_default().matches(&format!("coldframe {verb}")).count();
        assert!(examples >= 2, "the help of {verb} has {examples} examples");
        text += &own;
    }
    insta::assert_snapshot!("help", text);
}
