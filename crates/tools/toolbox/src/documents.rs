//! The commands that documents and helps tell a reader to type.

use std::path::{Path, PathBuf};

/// The documents of a folder and of those in it, without what is generated.
pub fn markdown_under(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap().map(Result::unwrap) {
        let path = entry.path();
        let name = entry.file_name();
        if path.is_dir() && name != "target" && name != "generated" && !name.to_string_lossy().starts_with('.') {
            files.extend(markdown_under(&path));
        } else if path.extension().is_some_and(|suffix| suffix == "md") {
            files.push(path);
        }
    }
    files
}

/// The lines of a document's `sh` blocks, with continued lines joined, and the number of their first line.
fn shell_lines(text: &str) -> Vec<(usize, String)> {
    let mut lines: Vec<(usize, String)> = Vec::new();
    let (mut inside, mut continued) = (false, false);
    for (number, line) in text.lines().enumerate() {
        match line.trim() {
            "```sh" => inside = true,
            fence if fence.starts_with("```") => inside = false,
            _ if inside && continued => lines.last_mut().unwrap().1 += line.trim_end_matches('\\'),
            _ if inside => lines.push((number + 1, line.trim_end_matches('\\').into())),
            _ => {}
        }
        continued = inside && line.ends_with('\\');
    }
    lines
}

/// The commands of `program` in a line of shell, each as its words.
fn commands(program: &str, line: &str) -> Vec<Vec<String>> {
    let words = shlex::split(&line.replace(';', " ; ")).unwrap_or_else(|| panic!("not shell: {line}"));
    let ends = |word: &String| [";", "|", "||", "&&", ">", "<", "2>"].contains(&word.as_str());
    let parts = words.split(ends).map(|words| words.strip_prefix(&["sudo".to_owned()]).unwrap_or(words).to_vec());
    parts.filter(|words| words.first().is_some_and(|word| word == program)).collect()
}

/// Parses all commands of `program` in the `sh` blocks of the repository's documents. Returns their number.
///
/// # Panics
/// If one is refused.
pub fn parse_documents(program: &str, parse: &dyn Fn(&[String]) -> Result<(), String>) -> usize {
    let mut tried = 0;
    for document in markdown_under(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..")) {
        for (number, line) in shell_lines(&std::fs::read_to_string(&document).unwrap()) {
            tried += parse_line(program, &format!("{}:{number}", document.display()), &line, parse);
        }
    }
    tried
}

/// Parses the examples of a help: the lines under `Examples:`. Returns their number.
///
/// # Panics
/// If one is refused.
pub fn parse_examples(program: &str, help: &str, parse: &dyn Fn(&[String]) -> Result<(), String>) -> usize {
    let lines = help.lines().skip_while(|line| *line != "Examples:").skip(1);
    lines.take_while(|line| !line.is_empty()).map(|line| parse_line(program, "help", line, parse)).sum()
}

fn parse_line(program: &str, place: &str, line: &str, parse: &dyn Fn(&[String]) -> Result<(), String>) -> usize {
    let all = commands(program, line);
    for words in &all {
        if let Err(error) = parse(words) {
            panic!("{place}: {line}\n{error}");
        }
    }
    all.len()
}
