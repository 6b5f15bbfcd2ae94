//! The lines that verbs print to be pasted, found in their output and pasted by the user who read them: root, and
//! another one without rights, whose `sudo` is a small program here; with swap and without.
//!
//! A line that is found and that nothing here checks fails, and so does a word for one (`MARKS`) in no line that was
//! found.

use std::os::unix::fs::{chown, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use crate::common::{alone, ready};
use crate::zram;
use coldframe_toolbox::programs::{compiled, copy_for_all, stderr, stdout};

/// Fills 24 MiB, and reads all of it some times.
const PROGRAM: &str = r#"
#include <stdio.h>
#include <stdlib.h>
int main(int words, char **word) {
    size_t size = (size_t)24 << 20;
    unsigned sum = words;
    volatile unsigned char *heap = malloc(size);
    for (size_t i = 0; i < size; i += 64) heap[i] = i >> 12;
    for (int round = 0; round < 12000; round++) for (size_t i = 0; i < size / 8; i += 64) sum += heap[i];
    printf("%u %s\n", sum, words > 1 ? word[1] : "");
}
"#;

/// What `sudo` does of what the lines use: a command as root, and `-u USER` one as another user.
const SUDO: &str = r#"
#define _GNU_SOURCE
#include <grp.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
int main(int words, char **word) {
    int user = 0;
    word++;
    setenv("SUDO_USER", getenv("USER"), 0);
    if (*word && !strcmp(*word, "-u")) { user = atoi(word[1]); word += 2; }
    if (setgroups(0, 0) || setresgid(user, user, user) || setresuid(user, user, user)) return 1;
    execvp(*word, word);
    return 127;
}
"#;

/// Nobody's number here.
const USER: u32 = 64_321;
/// Words of lines to paste.
const MARKS: [&str; 8] =
    ["sudo ", "docker ", "mem_limit", "limits: {", "MemoryMax=", "MemoryHigh=", "xdg-open ", "coldframe run "];

/// A user in a folder with the program.
struct Reader<'a> {
    folder: &'a Path,
    user: u32,
}

impl Reader<'_> {
    fn home(&self) -> PathBuf {
        self.folder.join(format!("home-{}", self.user))
    }

    fn sh(&self, line: &str) -> Output {
        let mut shell = Command::new("sh");
        let path = format!("{}:{}", self.folder.join("bin").display(), std::env::var("PATH").unwrap());
        shell.args(["-c", line]).current_dir(self.home()).env("PATH", path).env("USER", self.user.to_string());
        shell.env("HOME", self.home()).env("NO_COLOR", "1");
        shell.env_remove("XDG_CACHE_HOME").env_remove("XDG_RUNTIME_DIR").env_remove("SUDO_USER");
        shell.uid(self.user).gid(self.user).stdin(Stdio::null());
        shell.output().unwrap()
    }

    /// Pastes all lines of an output; their number.
    fn pastes(&self, case: &str, text: &str) -> usize {
        let lines = found(text);
        for line in &lines {
            self.paste(case, line, text);
        }
        let left = text
            .lines()
            .find(|line| MARKS.iter().any(|mark| line.contains(mark)) && !lines.iter().any(|found| found.covers(line)));
        assert_eq!(left, None, "{case}: this line to paste is not pasted; teach `found` of it:\n{text}");
        lines.len()
    }

    fn paste(&self, case: &str, line: &Line, text: &str) {
        let words = &line.text;
        match line.reader.as_str() {
            "shell" if words.starts_with("xdg-open ") => {
                let page = self.sh(&words.replacen("xdg-open", "cat", 1));
                assert!(page.status.success(), "{case}: {words}");
                let page = stdout(&page);
                let lines = of_page(&page);
                assert_eq!(
                    page.matches("class=\"copy\">").count(),
                    lines.len(),
                    "{case}: a line of the page is not found"
                );
                assert!(!lines.is_empty(), "{case}: {words} has no line to paste");
                lines.iter().for_each(|line| self.paste(&format!("{case}, page"), line, &line.text));
            }
            "shell" => {
                let line =
                    words.replace("coldframe squeeze --yes", "coldframe squeeze --yes --for 100ms --max-stall 90%");
                let done = self.sh(&line);
                let printed = format!("{}{}", stdout(&done), stderr(&done));
                assert!(done.status.success(), "{case}: {line}\nended with {}: {printed}\nof\n{text}", done.status);
                let squeezed = line.contains("squeeze") && printed.contains("The old limit is back.");
                assert!(squeezed || printed.contains("a b"), "{case}: {line}: {printed}");
            }
            "docker" => docker(words.strip_prefix("run ").expect("docker's verb")),
            "compose" | "Kubernetes" => assert!(words.lines().all(is_mapping), "{case}: {words}"),
            "systemd" => unit(self.folder, words),
            other => panic!("{case}: nobody pastes lines for {other}: {words}"),
        }
    }
}

/// A line to paste: who reads it, and its text.
#[derive(Debug)]
struct Line {
    reader: String,
    text: String,
    whole: String,
}

impl Line {
    fn covers(&self, line: &str) -> bool {
        self.whole.lines().any(|part| part.trim() == line.trim())
    }
}

/// The lines to paste of an output: commands, and settings behind the name of who reads them, a dot between two.
fn found(text: &str) -> Vec<Line> {
    let mut all = Vec::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        let mut whole = line.to_string();
        let command = ["sudo coldframe ", "coldframe run ", "coldframe squeeze --yes", "xdg-open "];
        if command.iter().any(|start| line.trim_start().starts_with(start)) {
            while whole.ends_with('\\') {
                whole += "\n";
                whole += lines.next().unwrap_or_default();
            }
            all.push(Line { reader: "shell".into(), text: whole.trim().into(), whole: whole.clone() });
        }
        let Some(settings) = line.strip_prefix("  ") else { continue };
        let mut reader = String::new();
        for part in settings.split(" · ") {
            let (first, rest) = part.trim().split_once(' ').unwrap_or((part.trim(), ""));
            let named = ["docker", "compose", "Kubernetes", "systemd"].contains(&first);
            let text = if named { rest } else { part }.trim().trim_end_matches(" (above it, to swap)");
            reader = if named { first.into() } else { reader };
            if !reader.is_empty() {
                all.push(Line { reader: reader.clone(), text: text.into(), whole: line.into() });
            }
        }
    }
    all
}

/// The lines that a page copies: a command, or settings below the name of who reads them.
fn of_page(page: &str) -> Vec<Line> {
    let text = |part: &str| {
        let plain = part.replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", "\"").replace("&#39;", "'");
        plain.replace("&amp;", "&")
    };
    let mut all = Vec::new();
    for part in page.split("<code class=\"copy\">").skip(1) {
        let command = text(part.split("</code>").next().unwrap());
        all.push(Line { reader: "shell".into(), whole: command.clone(), text: command });
    }
    let mut before = "";
    for part in page.split("<pre class=\"copy\">") {
        if !before.is_empty() {
            let (_, name) = before.trim_end_matches("</p>").rsplit_once("<p>").expect("a reader before its settings");
            let settings = text(part.split("</pre>").next().unwrap());
            let reader = name.split(' ').next().unwrap().to_string();
            // `docker run` is the name there, and a verb in a line of the terminal.
            let verb = if reader == "docker" { "run " } else { "" };
            all.push(Line { reader, whole: settings.clone(), text: format!("{verb}{settings}") });
        }
        before = part;
    }
    all
}

/// docker's own program reads its options before it asks for its service; that refuses less than 6 MiB.
fn docker(words: &str) {
    let sizes: Vec<u64> = words.split([' ', 'm']).filter_map(|word| word.parse().ok()).collect();
    assert!(sizes.iter().all(|mib| *mib >= 6) && sizes.is_sorted_by(|a, b| a >= b) && !sizes.is_empty(), "{words}");
    // Few test machines have it.
    if Command::new("docker").arg("--version").output().is_err() {
        return;
    }
    let mut create = Command::new("docker");
    create.args(["-H", "unix:///nowhere", "create"]).args(words.split(' ')).arg("nothing");
    let said = stderr(&create.output().unwrap());
    assert!(said.contains("connect") && !said.contains("invalid") && !said.contains("unknown"), "{words}: {said}");
}

/// `key: value` or `key: {key: value}`, as YAML has them.
fn is_mapping(words: &str) -> bool {
    let plain = |value: &str| !value.is_empty() && value.chars().all(|c| c.is_ascii_alphanumeric());
    let Some((key, value)) = words.split_once(": ") else { return false };
    let inner = value.strip_prefix('{').and_then(|inner| inner.strip_suffix('}'));
    key.chars().all(|c| c.is_ascii_lowercase() || c == '_') && inner.map_or(plain(value), is_mapping)
}

fn unit(folder: &Path, words: &str) {
    assert!(!words.contains(' '), "{words}: two settings in one line of a unit");
    if !Path::new("/usr/bin/systemd-analyze").exists() {
        return;
    }
    let unit = folder.join("pasted.service");
    std::fs::write(&unit, format!("[Service]\nExecStart=/bin/true\n{words}\n")).unwrap();
    let said = stderr(&Command::new("systemd-analyze").arg("verify").arg(&unit).output().unwrap());
    assert!(!said.contains("pasted.service:"), "{words}: {said}");
}

/// A folder for both users, with the program in a name of two words as well.
fn folder() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let bin = folder.path().join("bin");
    std::fs::create_dir(&bin).unwrap();
    copy_for_all(&bin);
    compiled(folder.path(), "job", PROGRAM, &["-O1"]);
    let sudo = compiled(&bin, "sudo", SUDO, &[]);
    std::fs::set_permissions(&sudo, PermissionsExt::from_mode(0o4755)).unwrap();
    for user in [0, USER] {
        let home = folder.path().join(format!("home-{user}"));
        std::fs::create_dir(&home).unwrap();
        chown(&home, Some(user), Some(user)).unwrap();
    }
    // Nobody else may reach that `sudo`.
    chown(folder.path(), Some(USER), Some(USER)).unwrap();
    std::fs::set_permissions(folder.path(), PermissionsExt::from_mode(0o700)).unwrap();
    let path = folder.path().to_owned();
    (folder, path)
}

#[test]
fn lines_to_paste_are_pasted_by_root_and_by_a_user_with_and_without_swap() {
    let Some(_alone) = alone() else { return };
    let (_kept, folder) = folder();
    for swap in [false, true] {
        let guard = swap.then(zram);
        for user in [0, USER] {
            let (reader, case) = (Reader { folder: &folder, user }, format!("user {user}, swap {swap}"));
            let answer = reader.sh("coldframe -- ../job 'a b'");
            let text = format!("{}{}", stdout(&answer), stderr(&answer));
            let lines = reader.pastes(&case, &text);
            assert!(lines >= 1 && answer.status.success(), "{case}:\n{text}");
            let mut sleeper = ready(Command::new("sh").args(["-c", "echo ready; while :; do :; done"]));
            let watched = reader.sh(&format!("sudo coldframe --for 1s --pid {}", sleeper.id()));
            sleeper.kill().unwrap();
            sleeper.wait().unwrap();
            let text = format!("{}{}", stdout(&watched), stderr(&watched));
            let settings = found(&text).into_iter().filter(|line| line.reader != "shell");
            assert!(watched.status.success(), "{case}:\n{text}");
            settings.for_each(|line| reader.paste(&case, &line, &text));
        }
        if let Some(guard) = guard {
            guard.end();
        }
    }
}

#[test]
fn two_settings_in_a_line_and_a_size_that_docker_refuses_are_found() {
    let text = "  docker run --memory 27m · compose mem_limit: 27m · mem_reservation: 18m\n  systemd MemoryMax=27M · \
                MemoryHigh=18M (above it, to swap)\nsudo coldframe run --ram 8MiB -- \\\n  ./p\n";
    let lines = found(text);
    let all: Vec<_> = lines.iter().map(|line| (line.reader.as_str(), line.text.as_str())).collect();
    assert_eq!(
        all,
        [
            ("docker", "run --memory 27m"),
            ("compose", "mem_limit: 27m"),
            ("compose", "mem_reservation: 18m"),
            ("systemd", "MemoryMax=27M"),
            ("systemd", "MemoryHigh=18M"),
            ("shell", "sudo coldframe run --ram 8MiB -- \\\n  ./p"),
        ]
    );
    assert!(text.lines().all(|line| lines.iter().any(|found| found.covers(line))));
    assert!(is_mapping("limits: {memory: 27Mi}") && !is_mapping("mem_limit: 27m, mem_reservation: 18m"));
    assert!(std::panic::catch_unwind(|| docker("--memory 5m")).is_err());
}
