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

/// The strings of a source file, without its tests and comments, continued lines joined.
fn strings(text: &str) -> String {
    let code = text.split("\n#[cfg(test)]").next().unwrap_or_default();
    let lines = code.lines().filter(|line| !line.trim_start().starts_with("//"));
    let mut all = String::new();
    for line in lines {
        match line.strip_suffix('\\') {
            Some(line) => all += line.trim_start(),
            None => all = all + line + "\n",
        }
    }
    all
}

/// The source files of both programs, and their strings.
///
/// # Panics
/// One cannot be read.
pub fn sources() -> Vec<(PathBuf, String)> {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut folders = vec![crates.join("product"), crates.join("lab")];
    let mut found = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default().to_owned();
            match path.is_dir() {
                true if !["tests", "benches", "target", "board", "promises.rs"].contains(&name.as_str()) => {
                    folders.push(path);
                }
                false if name.ends_with(".rs") && !["promises.rs", "tests.rs"].contains(&name.as_str()) => {
                    found.push((path.clone(), strings(&std::fs::read_to_string(path).unwrap())));
                }
                _ => {}
            }
        }
    }
    found
}

/// The commands of `program` that strings tell a reader to type: between backticks, behind a colon or `sudo`. What is
/// filled in is a 1.
fn told(program: &str, strings: &str) -> Vec<String> {
    let mut found = Vec::new();
    for (start, ends) in [("`", "`"), ("`sudo ", "`"), (": ", "\";,`("), (": sudo ", "\";,`("), ("\"sudo ", "\";,`(")] {
        for rest in strings.split(&format!("{start}{program} ")).skip(1) {
            let line = rest.split(|c: char| ends.contains(c) || c == '\n').next().unwrap_or_default();
            let line = line.split("\\n").next().unwrap_or_default();
            let mut words = format!("{program} ");
            let mut filled = false;
            for c in line.chars() {
                match c {
                    '{' => filled = true,
                    '}' => (filled, words) = (false, words + "1"),
                    _ if filled => {}
                    c => words.push(c),
                }
            }
            found.push(words.trim_end_matches(['.', ' ']).to_owned());
        }
    }
    found
}

/// Whether only an option is named, whose value is not.
fn verb_is_option(line: &str) -> bool {
    line.split(' ').nth(1).is_some_and(|word| word.starts_with('-'))
}

/// Parses the commands of `program` that the strings of the code tell a reader to type; a verb alone names its help.
/// Returns their number.
///
/// # Panics
/// If one is refused.
pub fn parse_code(program: &str, parse: &dyn Fn(&[String]) -> Result<(), String>) -> usize {
    let mut tried = 0;
    for (file, strings) in sources() {
        for line in told(program, &strings) {
            // A sentence about the program behind a colon is no command.
            let verb = line.split(' ').nth(1).unwrap_or_default().to_owned();
            let known = verb.starts_with('-') || parse(&[program.into(), verb, "--help".into()]).is_ok();
            if !known && !strings.contains(&format!("`{line}")) {
                continue;
            }
            // A help names options without the rest of their commands.
            let alone = line.split(' ').count() == 2;
            if alone && verb_is_option(&line) {
                continue;
            }
            let named = alone || file.display().to_string().contains("cli/src/");
            let line = if named && !line.contains(" -- ") { format!("{line} --help") } else { line };
            tried += parse_line(program, &file.display().to_string(), &line, parse);
        }
    }
    tried
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_in_strings_are_found_and_comments_and_tests_are_not() {
        let code =
            "// `p no`\nlet a = \"type `p park {name}`; or: p --pid N, then\";\nlet b = \"sudo p doctor --setup \
                    (once)\\nMore: p x --all\\n\";\nlet c = \"one \\\n     `p two`\";\n#[cfg(test)]\n\"`p test`\"";
        let found = told("p", &strings(code));
        assert_eq!(found, ["p park 1", "p two", "p --pid N", "p x --all", "p doctor --setup"]);
    }
}
