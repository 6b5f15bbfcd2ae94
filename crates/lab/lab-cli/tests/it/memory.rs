//! Memory does not grow with the length of a trace: each verb runs in an address space smaller than the trace it reads.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use coldframe_toolbox::program_of;

/// The address space of a verb, in KiB: code, the stacks of its threads, and the parts of the trace in memory.
const LIMIT_KIB: usize = 250_000;
/// A loop of 25,000 lines, repeated.
const LOOP: usize = 25_000;
const REPEATS: usize = 800;

/// A verb in this address space. `ulimit` is built into the shell (POSIX has no command for it).
fn limited(words: &[&str], folder: &Path) -> Command {
    let script = format!("ulimit -v {LIMIT_KIB} && exec \"$0\" \"$@\"");
    let mut command = Command::new("sh");
    command.arg("-c").arg(script).arg(program_of(words)).args(words).current_dir(folder);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn checked(output: Output, words: &[&str]) -> String {
    assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// Fetches of one page and loads and stores that walk 4 MiB.
fn text() -> Vec<u8> {
    let mut text = Vec::new();
    for line in 0..LOOP as u64 {
        let walked = 0x1000_0000 + line * 1021 * 8 % (4 << 20);
        match line % 5 {
            0 => writeln!(text, " L {walked:08x},8").unwrap(),
            1 => writeln!(text, " S {walked:08x},8").unwrap(),
            _ => writeln!(text, "I  {:08x},4", 0x0040_0000 + line % 1000 * 4).unwrap(),
        }
    }
    text
}

#[test]
fn traces_larger_than_the_address_space_are_imported_and_read() {
    let folder = tempfile::tempdir().unwrap();
    let (text, rows) = (text(), LOOP * REPEATS);
    // The text is larger than the limit. So are the rows in memory, at 16 bytes each for address, size and kind.
    assert!(text.len() * REPEATS > LIMIT_KIB * 1024 && rows * 16 > LIMIT_KIB * 1024);
    let import = ["trace", "import", "lackey:-", "-o", "t.parquet", "--format", "json"];
    let mut child = limited(&import, folder.path()).spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    // The verb's own message says more than a broken pipe.
    let fed = (0..REPEATS).try_for_each(|_| input.write_all(&text));
    drop(input);
    let json = checked(child.wait_with_output().unwrap(), &import);
    fed.unwrap();
    let imported: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!((imported["references"].as_u64(), imported["lines"].as_u64()), (Some(rows as u64), Some(rows as u64)));
    for words in [
        &["trace", "info", "t.parquet"][..],
        &["trace", "heatmap", "t.parquet"],
        &["sim", "t.parquet", "--ram", "1MiB", "--policy", "clock,lru"],
        &["trace", "mix", "--task", "t.parquet*2", "--slice", "10000", "-o", "m.parquet"],
    ] {
        let child = limited(words, folder.path()).spawn().unwrap();
        checked(child.wait_with_output().unwrap(), words);
    }
}
