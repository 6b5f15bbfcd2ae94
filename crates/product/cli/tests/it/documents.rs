//! Runs the commands in the README and the book, and compares their output with the output shown.
//!
//! Each page has a private folder with small inputs, under the names that the pages use. A `sh` block is a script that
//! must exit with 0. A comment on the line above a block changes this:
//!
//! ```text
//! <!-- not run: REASON -->          this `sh` block is not run
//! <!-- output -->                   this block is the exact output of the `sh` block above it
//! <!-- output: our machine -->      the same, but only words of the first lines are compared
//! ```
//!
//! A `text` block whose first line is `$ COMMAND` is run too, and compared as `output: our machine`.
//! `COLDFRAME_WRITE_DOCUMENTS=1` writes outputs into the pages instead of comparing them (`=all`: also those of one
//! machine). `DOCUMENT=advise` uses only the pages whose path contains that word.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::Mutex;

use coldframe_toolbox::programs::alone;
use coldframe_toolbox::{have, skip, BZIP2, GCC, QEMU, VALGRIND};

/// Takes 1 MiB, touches all of it twice, and exits.
const PROGRAM: &str = "
#include <stdio.h>
#include <stdlib.h>
int main(void) {
    unsigned sum = 0;
    char *all = malloc(1 << 20);
    for (int i = 0; i < 1 << 20; i += 4096) all[i] = i >> 12;
    for (int i = 0; i < 1 << 20; i += 4096) sum += (unsigned char)all[i];
    printf(\"%u\\n\", sum);
    return 0;
}";

/// `scripts/truth-programs/m.py`, which fills, sorts and hashes a dictionary, with fewer entries.
const M_PY: &str = "
import hashlib, random
random.seed(7); d = {}
for i in range(40000): d[random.getrandbits(60)] = str(i) * 3
h = hashlib.sha256()
for k in sorted(d): h.update(d[k].encode())
print(len(d), h.hexdigest())
";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..")
}

/// Pages with commands on whole traces, which take minutes in this build: they are only parsed (`src/promises.rs`).
const LONG: [&str; 1] = ["combined.md"];

/// The README and the book's own pages.
fn pages() -> Vec<PathBuf> {
    let mut pages = vec![root().join("README.md")];
    for folder in ["", "start", "systems"] {
        let entries = std::fs::read_dir(root().join("docs/book/src").join(folder)).unwrap();
        pages.extend(
            entries.map(|entry| entry.unwrap().path()).filter(|path| path.extension().is_some_and(|e| e == "md")),
        );
    }
    pages.retain(|path| !LONG.iter().any(|name| path.ends_with(name)));
    pages.sort();
    pages
}

/// A fenced block: its first and last line in the page, and the comment above it.
struct Fenced<'a> {
    language: &'a str,
    mark: Option<&'a str>,
    first: usize,
    end: usize,
}

impl Fenced<'_> {
    fn text(&self, lines: &[&str]) -> String {
        lines[self.first..self.end].iter().map(|line| format!("{line}\n")).collect()
    }
}

fn fenced<'a>(lines: &[&'a str]) -> Vec<Fenced<'a>> {
    let mut found = Vec::new();
    let mut open: Option<Fenced> = None;
    for (number, line) in lines.iter().enumerate() {
        let Some(language) = line.strip_prefix("```") else { continue };
        match open.take() {
            Some(block) => found.push(Fenced { end: number, ..block }),
            None => {
                let above = number.checked_sub(1).map(|above| lines[above]);
                let mark = above.and_then(|line| line.strip_prefix("<!-- ")?.strip_suffix(" -->"));
                open = Some(Fenced { language, mark, first: number + 1, end: 0 });
            }
        }
    }
    assert!(open.is_none(), "a block is not closed");
    found
}

fn sh(folder: &Path, script: &str) -> Output {
    let programs = [folder.join("bin"), Path::new(env!("CARGO_BIN_EXE_coldframe")).parent().unwrap().into()];
    let path = std::env::var_os("PATH").unwrap_or_default();
    let path = std::env::join_paths(programs.into_iter().chain(std::env::split_paths(&path))).unwrap();
    let mut command = Command::new("sh");
    command.arg("-ec").arg(format!("exec 2>&1\n{script}")).current_dir(folder).stdin(Stdio::null());
    command.env("PATH", path).env("NO_COLOR", "1").env("XDG_CACHE_HOME", env!("CARGO_TARGET_TMPDIR"));
    command.output().unwrap()
}

/// Makes the inputs that the pages name.
fn provide(folder: &Path) {
    let data = root().join("data").canonicalize().unwrap();
    for (name, contents) in [("p.c", PROGRAM), ("m.py", M_PY), ("train.py", M_PY)] {
        std::fs::write(folder.join(name), contents).unwrap();
    }
    let text: String = (0..20_000u32).map(|line| format!("line {}\n", line.wrapping_mul(2_654_435_761) >> 9)).collect();
    std::fs::write(folder.join("file"), text).unwrap();
    let requests: String = (0..4000u64)
        .map(|i| {
            format!(
                "{},src1,0,{},{},4096,10\n",
                128_166_372_003_061_629 + i * 9000,
                ["Read", "Write"][i as usize % 2],
                i * i % 997 * 4096
            )
        })
        .collect();
    std::fs::write(folder.join("src1_0.csv"), requests).unwrap();
    let rows: String =
        (0..900u64).map(|i| format!("{i},{},{},512\n", ["read", "write"][i as usize % 2], i % 97 * 4096)).collect();
    std::fs::write(folder.join("io.csv"), format!("ts,op,offset,length\n{rows}")).unwrap();
    let accesses: String = (0..900u64).map(|i| format!("{} {:x}\n", i % 3, i * i % 97 * 4096)).collect();
    std::fs::write(folder.join("trace.din"), accesses).unwrap();
    std::fs::copy(data.join("sheets/nand01gw3b2b.toml"), folder.join("my-sheet.toml")).unwrap();
    let made = sh(
        folder,
        &format!(
            "mkdir bin
            cc -O1 -o bin/your-program p.c
            for name in app program firmware-built-for-linux a.out; do cp bin/your-program $name; done
            gzip src1_0.csv trace.din
            coldframe-lab trace import msr:src1_0.csv.gz -o server.parquet
            cp server.parquet client.parquet
            # README's program, with less work for each order.
            sed 's/step < 400/step < 4/' {0}/traces/shop.c > shop.c
            cc -O1 -o shop shop.c
            coldframe-lab trace cut {0}/traces/fft.parquet -o mine.parquet --rows 100000
            for name in a b app other train firmware; do cp mine.parquet $name.parquet; done
            awk 'BEGIN {{ for (i = 0; i < 100000; i++) printf \" L %x,8\\n\", 65536 + i * 4104 % 1048576 }}' > trace.txt
            gzip trace.txt
            coldframe-lab trace convert mine.parquet --to oracleGeneral -o w1.bin
            for name in w1.bin.zst cluster52.oracleGeneral.zst; do cp w1.bin $name; done",
            data.display()
        ),
    );
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stdout));
}

/// A page that is being processed.
struct Page<'a> {
    name: String,
    folder: &'a Path,
    can_page: bool,
    wrong: Vec<String>,
}

impl Page<'_> {
    /// The output of a script; `None` if the script is not for this machine. Notes an exit code other than 0.
    fn run(&mut self, line: usize, script: &str) -> Option<String> {
        let pages = |line: &str| ["run --ram", "record ", "-- "].iter().any(|part| line.contains(part));
        if !self.can_page && script.lines().any(|line| line.starts_with("coldframe") && pages(line)) {
            return None;
        }
        let before = std::time::Instant::now();
        let output = sh(self.folder, script);
        let printed = String::from_utf8_lossy(&output.stdout).into_owned();
        eprintln!("{}:{line}: {:.1} s", self.name, before.elapsed().as_secs_f64());
        // On a busy machine, perhaps no size is fast enough for a short program, which is an answer.
        let answers =
            ["coldframe -- ", "coldframe --trace ", "coldframe-lab advise "].iter().any(|part| script.contains(part));
        let succeeded = output.status.success() || answers && output.status.code() == Some(1);
        if !succeeded {
            self.wrong.push(format!("{}:{line}: ended with {}:\n{script}{printed}", self.name, output.status));
            return None;
        }
        Some(printed)
    }

    fn compare(&mut self, line: usize, shown: &str, printed: &str, exactly: bool) {
        let same = if exactly { shown == printed } else { resembles(shown, printed) };
        if !same {
            let remedy = "if the new one is right: make docs";
            self.wrong
                .push(format!("{}:{line} shows\n{shown}\nbut this was printed ({remedy}):\n{printed}", self.name));
        }
    }
}

/// Whether the first lines of the first two paragraphs were printed, apart from numbers and units, which differ between
/// machines. Lines may break elsewhere, because numbers have other lengths.
fn resembles(shown: &str, printed: &str) -> bool {
    let firsts = shown.split("\n\n").take(2).map(|paragraph| paragraph.lines().next().unwrap_or_default());
    let mut firsts = firsts.filter(|line| !words(line).is_empty()).peekable();
    let all = words(printed);
    let is_printed = |first: &str| all.windows(words(first).len()).any(|some| some == words(first));
    firsts.peek().is_some() && firsts.all(is_printed)
}

fn words(line: &str) -> Vec<&str> {
    line.split(|c: char| !c.is_alphabetic()).filter(|word| word.len() > 3).collect()
}

/// Processes one page. Returns the new page if outputs are written.
fn go_through(page: &mut Page, text: &str, write: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    let mut new = Vec::new();
    let mut copied = 0;
    let mut printed: Option<String> = None;
    for block in fenced(&lines) {
        let shown = block.text(&lines);
        let mut message = shown.as_str();
        let (fresh, exactly) = match (block.language, block.mark) {
            ("sh", Some(mark)) if mark.starts_with("not run: ") => {
                printed = None;
                continue;
            }
            ("sh", _) => {
                printed = page.run(block.first + 1, &shown);
                continue;
            }
            ("text", Some("output")) => (printed.take(), true),
            ("text", Some("output: our machine")) => (printed.take(), false),
            ("text", _) if shown.starts_with("$ ") => {
                let command = shown.lines().next().unwrap_or_default();
                let fresh = page.run(block.first + 1, &command[2..]);
                message = &shown[command.len() + 1..];
                (fresh, false)
            }
            _ => continue,
        };
        let Some(fresh) = fresh else { continue };
        if write == "all" || (write == "1" && exactly) {
            let kept = block.first + usize::from(message.len() < shown.len());
            new.extend(lines[copied..kept].iter().map(|line| (*line).to_owned()));
            new.extend(fresh.lines().map(Into::into));
            copied = block.end;
        } else {
            page.compare(block.first + 1, message, &fresh, exactly);
        }
    }
    new.extend(lines[copied..].iter().map(|line| (*line).to_owned()));
    new.join("\n") + "\n"
}

#[test]
fn what_the_documents_tell_to_type_runs_and_prints_what_they_show() {
    if !have(&[GCC, BZIP2, QEMU, VALGRIND]) {
        return;
    }
    let _alone = alone();
    coldframe_toolbox::program("coldframe-lab");
    let inputs = tempfile::tempdir().unwrap();
    provide(inputs.path());
    let can_page = sh(inputs.path(), "coldframe doctor").status.success();
    if !can_page {
        skip("this machine does not allow paging, see `coldframe doctor`");
    }
    let write = std::env::var("COLDFRAME_WRITE_DOCUMENTS").unwrap_or_default();
    let only = std::env::var("DOCUMENT").unwrap_or_default();
    let wrong = Mutex::new(Vec::new());
    let next = AtomicUsize::new(0);
    let paths: Vec<_> = pages().into_iter().filter(|path| path.to_string_lossy().contains(&only)).collect();
    let go = || {
        while let Some(path) = paths.get(next.fetch_add(1, Relaxed)) {
            let folder = tempfile::tempdir().unwrap();
            assert!(sh(folder.path(), &format!("cp -r {}/. .", inputs.path().display())).status.success());
            let text = std::fs::read_to_string(path).unwrap();
            let name = path.strip_prefix(root()).unwrap().display().to_string();
            let mut page = Page { name, folder: folder.path(), can_page, wrong: Vec::new() };
            let fresh = go_through(&mut page, &text, &write);
            wrong.lock().unwrap().append(&mut page.wrong);
            if fresh != text {
                std::fs::write(path, fresh).unwrap();
            }
        }
    };
    // A page mostly waits, so two run at a time.
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(go);
        }
    });
    let wrong = wrong.into_inner().unwrap();
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

#[test]
fn an_output_that_differs_is_found_and_a_number_of_another_machine_is_not() {
    let folder = tempfile::tempdir().unwrap();
    let text = "```sh\necho it takes 3 ms\n```\n<!-- output -->\n```text\nit takes 3 ms\n```\n<!-- not run: slow \
                -->\n```sh\nfalse\n```\n";
    let tried = |text: &str, write: &str| {
        let mut page = Page { name: "a page".into(), folder: folder.path(), can_page: true, wrong: Vec::new() };
        let fresh = go_through(&mut page, text, write);
        (fresh, page.wrong.len())
    };
    assert_eq!(tried(text, ""), (text.to_owned(), 0));
    let other = text.replace("it takes 3 ms\n```\n<!-- not", "it takes 4 ms\n```\n<!-- not");
    assert_eq!(tried(&other, "").1, 1);
    assert_eq!(tried(&other, "1"), (text.to_owned(), 0));
    let loose = other.replace("<!-- output -->", "<!-- output: our machine -->");
    assert_eq!(tried(&loose, ""), (loose.clone(), 0));
    assert_eq!(tried(&loose.replace("it takes 4", "it gives 4"), "").1, 1);
    assert_eq!(tried(&text.replace("<!-- not run: slow -->\n", ""), "").1, 1);
}
