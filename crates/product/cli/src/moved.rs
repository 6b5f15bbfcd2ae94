//! Words that are no verb here: verbs that have another name or live in `coldframe-lab`, and programs without `--`
//! before them. One sentence says the command to type.

use std::ffi::OsString;

use clap::error::{ContextKind, ContextValue};
use coldframe_answer::run::program::line;

use crate::failure::Failure;

/// Verbs, and the words that stand for them now.
pub const MOVED: [(&str, &str); 19] = [
    ("attach", "coldframe --pid"),
    ("setup", "coldframe doctor --setup"),
    ("calibrate", "coldframe doctor --calibrate"),
    ("sim", "coldframe-lab sim"),
    ("advise", "coldframe-lab advise"),
    ("replay", "coldframe-lab replay"),
    ("papers", "coldframe-lab papers"),
    ("teach", "coldframe-lab teach"),
    ("generate", "coldframe-lab generate"),
    ("devices", "coldframe-lab devices"),
    ("policies", "coldframe-lab policies"),
    ("trace", "coldframe-lab trace"),
    ("import", "coldframe-lab trace import"),
    ("info", "coldframe-lab trace info"),
    ("heatmap", "coldframe-lab trace heatmap"),
    ("cut", "coldframe-lab trace cut"),
    ("merge", "coldframe-lab trace merge"),
    ("mix", "coldframe-lab trace mix"),
    ("convert", "coldframe-lab trace convert"),
];

/// The failure of a command line in which the parser did not know a word that is no option.
pub fn failure(words: &[OsString], error: &clap::Error) -> Option<Failure> {
    let Some(ContextValue::String(word)) = error.get(ContextKind::InvalidArg) else { return None };
    let at = words.iter().position(|own| own == word.as_str()).filter(|_| !word.starts_with('-'))?;
    let (before, after) = (&words[1..at], &words[at + 1..]);
    let verb = before.iter().find_map(|word| crate::command().find_subcommand(word).cloned());
    if verb.is_some_and(|verb| !verb.get_arguments().any(clap::Arg::is_last_set)) {
        return None;
    }
    let command = |new: &str, rest: &[&[OsString]]| {
        let new: Vec<OsString> = new.split(' ').map(OsString::from).collect();
        line(&[&[&new[..]], rest].concat().concat())
    };
    Some(Failure::usage(match MOVED.into_iter().find(|(old, _)| word == old) {
        Some((old, new)) => format!("`coldframe {old}` is now `{new}`; type: {}", command(new, &[before, after])),
        None => {
            let whole = command("coldframe", &[before, &["--".into()], &words[at..]]);
            format!("`{word}` is no verb (see coldframe --help); if it is a program, type: {whole}")
        }
    }))
}
