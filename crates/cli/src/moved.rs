//! Verbs that have another name, or live in `coldframe-lab`: one sentence says the command to type.

use std::ffi::OsString;

use coldframe_answer::program::line;

use crate::failure::Failure;

/// Verbs, and the words that stand for them now.
pub const MOVED: [(&str, &str); 21] = [
    ("attach", "coldframe --pid"),
    ("setup", "coldframe doctor --setup"),
    ("calibrate", "coldframe doctor --calibrate"),
    ("sim", "coldframe-lab sim"),
    ("advise", "coldframe-lab advise"),
    ("replay", "coldframe-lab replay"),
    ("report", "coldframe-lab report"),
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
    ("reduce", "coldframe-lab trace reduce"),
    ("merge", "coldframe-lab trace merge"),
    ("mix", "coldframe-lab trace mix"),
    ("convert", "coldframe-lab trace convert"),
];

/// The failure of a command line with such a verb: the first word that is no option is the verb.
pub fn failure(words: &[OsString]) -> Option<Failure> {
    let verb = words.iter().skip(1).position(|word| !word.to_string_lossy().starts_with('-'))? + 1;
    let (old, new) = MOVED.into_iter().find(|(old, _)| words[verb] == *old)?;
    let mut command: Vec<OsString> = new.split(' ').map(OsString::from).collect();
    command.extend(words[1..verb].iter().chain(&words[verb + 1..]).cloned());
    Some(Failure::usage(format!("`coldframe {old}` is now `{new}`; type: {}", line(&command))))
}
