//! The answer from referenced bits: for users without rights, for static programs, musl, Go and Java, and for processes
//! that run already.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use coldframe_answer::run::rights::RIGHT;
use coldframe_toolbox::programs::{can_page, compiled, compiled_by, message};
use coldframe_toolbox::{have, skip, Tool, GCC};
use serde_json::Value;

const SETPRIV: Tool = ("setpriv", "util-linux");
const UNSHARE: Tool = ("unshare", "util-linux");
const MUSL: Tool = ("musl-gcc", "musl-tools");
const GO: Tool = ("go", "golang-go");
const JAVA: Tool = ("java", "default-jre-headless");
const NOBODY: &str = "65534";

/// References pages of a heap of 40 MiB: random ones (`r`), all in turn (`s`), or an eighth of them more often (`h`).
/// It works between them, so that a window of time has a number of pages that a look can follow.
const PROGRAM: &str = r#"
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#define PAGES 10240
int main(int count, char **words) {
    volatile char *heap = malloc(PAGES * 4096l);
    memset((char *)heap, 1, PAGES * 4096l);
    long references = atol(words[2]);
    unsigned long s = 88172645463325252ul;
    volatile unsigned long work = 0;
    for (long i = 0; i < references; i++) {
        s ^= s << 13; s ^= s >> 7; s ^= s << 17;
        long at = s % PAGES;
        if (words[1][0] == 's') at = i % PAGES;
        if (words[1][0] == 'h') at = (s >> 8) % (s % 16 ? PAGES / 8 : PAGES);
        heap[at * 4096]++;
        for (int k = 0; k < 1500; k++) work += k;
    }
    if (count > 3) sleep(60);
    return 3;
}
"#;
const PAGES: usize = 10240;
const REFERENCES: usize = 400_000;
/// Pages that may be in a TLB and not be noted.
const TLB: f64 = 2048.0;

/// The pages that the program references, in order.
fn string(pattern: char) -> impl Iterator<Item = usize> {
    let mut s = 88_172_645_463_325_252u64;
    (0..REFERENCES).map(move |i| {
        s ^= s << 13;
        s ^= s >> 7;
        s ^= s << 17;
        match pattern {
            's' => i % PAGES,
            'h' if s.is_multiple_of(16) => (s >> 8) as usize % PAGES,
            'h' => (s >> 8) as usize % (PAGES / 8),
            _ => s as usize % PAGES,
        }
    })
}

/// Misses of exact LRU with so many pages, after all were written in order.
fn lru(string: impl Iterator<Item = usize>, ram: usize) -> f64 {
    let mut used: Vec<usize> = (0..PAGES).collect();
    let mut inside: BTreeMap<usize, usize> = (PAGES - ram..PAGES).map(|page| (page, page)).collect();
    let mut misses = 0.0;
    for (time, page) in (PAGES..).zip(string) {
        if inside.remove(&used[page]).is_none() {
            misses += 1.0;
            inside.pop_first();
        }
        inside.insert(time, page);
        used[page] = time;
    }
    misses
}

/// A folder that every user may write to.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o777)).unwrap();
    folder
}

fn built(folder: &Path, compiler: Tool, options: &[&str]) -> Option<PathBuf> {
    have(&[compiler]).then(|| compiled_by(compiler.0, folder, "program", PROGRAM, options))
}

/// A command of coldframe, without rights if this user has any.
fn unprivileged(folder: &Path) -> Option<Command> {
    let exe = env!("CARGO_BIN_EXE_coldframe");
    let root = rustix::process::geteuid().is_root();
    if root && !have(&[SETPRIV]) {
        return None;
    }
    let mut command = Command::new(if root { SETPRIV.0 } else { exe });
    if root {
        command.args(["--reuid", NOBODY, "--regid", NOBODY, "--clear-groups", "--inh-caps=-all", "--", exe]);
    }
    command
        .current_dir(folder)
        .env("NO_COLOR", "1")
        .env("COLUMNS", "80")
        .env("XDG_CACHE_HOME", folder)
        .stdin(Stdio::null());
    Some(command)
}

fn advice(folder: &Path, program: &str) -> Value {
    let text = std::fs::read_to_string(folder.join(format!("{program}.coldframe/advice.json"))).unwrap();
    serde_json::from_str(&text).unwrap()
}

/// Pages brought back, at the size of the curve nearest to so many pages.
fn faults(answer: &Value, pages: usize) -> f64 {
    let sizes = answer["curve"].as_array().unwrap();
    // Its sizes are limits: of the heap, and of what is beside it.
    let limit = pages as u64 * 4096 + answer["not_paged_bytes"].as_u64().unwrap();
    let off = |size: &&Value| size["ram_bytes"].as_u64().unwrap().abs_diff(limit);
    let nearest = sizes.iter().min_by_key(off).unwrap();
    ["device_reads", "memory_loads"].map(|kind| nearest[kind].as_f64().unwrap()).iter().sum()
}

#[test]
fn a_static_program_of_anybody_gets_an_answer_for_this_machine_near_exact_lru() {
    let folder = folder();
    let Some(program) = built(folder.path(), GCC, &["-static"]) else { return };
    for pattern in ['r', 's', 'h'] {
        let Some(mut command) = unprivileged(folder.path()) else { return };
        let words = [pattern.to_string(), REFERENCES.to_string()];
        let output = command.arg("--").arg(&program).args(words).output().unwrap();
        let text = message(&output);
        assert_eq!(output.status.code(), Some(3), "{text}");
        assert!(text.lines().all(|line| line.chars().count() <= 80) && text.lines().count() <= 20, "{text}");
        let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(flat.contains("It ended with exit code 3.") && flat.contains("referenced bits"), "{text}");
        let answer = advice(folder.path(), "program");
        assert_eq!((&answer["device"], &answer["method"]), (&"here".into(), &"referenced-bits".into()));
        let heap = answer["managed_bytes"].as_u64().unwrap() / 4096;
        assert!((PAGES as u64..PAGES as u64 + 200).contains(&heap), "{heap} pages of heap");
        let rest = answer["not_paged_bytes"].as_u64().unwrap();
        let covered = (answer["covered_bytes"].as_u64().unwrap() - rest) as usize / 4096;
        for (ram, factor) in [(PAGES / 4, 2.0), (PAGES / 2, 2.0), (PAGES * 3 / 4, 3.0)] {
            let (predicted, exact) = (faults(&answer, ram), lru(string(pattern), ram));
            assert!(
                predicted <= factor * exact + TLB,
                "{pattern}, {ram} pages: {predicted} faults, exact LRU has {exact}"
            );
            assert!(
                ram < covered || factor * predicted + TLB >= exact,
                "{pattern}, {ram} pages: {predicted} faults, exact LRU has {exact}"
            );
        }
        // Of a loop and of random references, less RAM is useless; an eighth that is used more often is not.
        assert_eq!(answer["ram_bytes"], answer["needed_bytes"], "{text}");
    }
}

#[test]
fn exact_recordings_of_the_same_program_have_as_many_faults() {
    let folder = folder();
    let exe = env!("CARGO_BIN_EXE_coldframe");
    if !can_page() {
        return;
    }
    let Some(program) = built(folder.path(), GCC, &[]) else { return };
    for pattern in ["r", "h"] {
        let words = [pattern, "400000"];
        let mut record = Command::new(exe);
        record
            .current_dir(folder.path())
            .env("XDG_CACHE_HOME", folder.path())
            .args(["-q", "--once", "--"])
            .arg(&program)
            .args(words);
        let recorded = record.output().unwrap();
        // Perhaps no size is fast enough now, which is no matter here.
        assert!(matches!(recorded.status.code(), Some(3)), "{}", message(&recorded));
        let exact = advice(folder.path(), "program");
        assert_eq!(exact["method"], "recorder");
        let Some(mut watch) = unprivileged(folder.path()) else { return };
        std::fs::remove_dir_all(folder.path().join("program.coldframe")).unwrap();
        let watched = watch.arg("--").arg(&program).args(words).output().unwrap();
        let about = advice(folder.path(), "program");
        if about["method"] == "recorder" {
            return skip("every user may use userfaultfd here");
        }
        let bytes = |answer: &Value, name: &str| answer[name].as_u64().unwrap() as usize;
        let covered = |answer: &Value| bytes(answer, "covered_bytes") - bytes(answer, "not_paged_bytes");
        let covered = covered(&about).max(covered(&exact));
        let sizes = [(PAGES / 2, 2.0), (PAGES * 3 / 4, 3.0)];
        for (ram, factor) in sizes.into_iter().filter(|(ram, _)| ram * 4096 >= covered) {
            let (predicted, exact) = (faults(&about, ram), faults(&exact, ram));
            assert!(
                predicted <= factor * exact + TLB && exact <= factor * predicted + TLB,
                "{pattern}, {ram} pages: {predicted} faults, recorded {exact}: {}",
                message(&watched)
            );
        }
    }
}

/// A program that is ended when the test ends.
struct Running(Child);

impl Running {
    fn start(command: &mut Command) -> Running {
        Running(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap())
    }

    fn id(&self) -> String {
        self.0.id().to_string()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn answer_about(folder: &Path, words: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_coldframe"));
    command.arg("--pid").args(words).current_dir(folder).env("COLUMNS", "80").env("XDG_CACHE_HOME", folder);
    command.output().unwrap()
}

#[test]
fn a_process_that_runs_is_watched_until_the_time_is_up_it_ends_or_ctrl_c() {
    let folder = folder();
    let Some(program) = built(folder.path(), GCC, &["-static"]) else { return };
    let running = Running::start(Command::new(&program).args(["h", "100000000"]));
    std::thread::sleep(Duration::from_millis(500));
    let output = answer_about(folder.path(), &[&running.id(), "--for", "2s", "--format", "json"]);
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", message(&output)));
    assert_eq!(answer["process"].to_string(), running.id());
    assert!((1.9..10.0).contains(&answer["program_seconds"].as_f64().unwrap()), "{answer}");
    assert!(faults(&answer, PAGES / 16) > 0.0, "{answer}");
    let text = message(&answer_about(folder.path(), &[&running.id(), "--for", "500ms"]));
    assert!(text.contains("watched for") && text.contains("referenced bits"), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    // Ctrl-C.
    let mut command = Command::new(env!("CARGO_BIN_EXE_coldframe"));
    command.args(["--pid", &running.id(), "--for", "3600s"]).env("XDG_CACHE_HOME", folder.path());
    let watching = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let began = Instant::now();
    std::thread::sleep(Duration::from_secs(2));
    let pid = rustix::process::Pid::from_raw(watching.id() as i32).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    let output = watching.wait_with_output().unwrap();
    assert!(
        message(&output).contains("watched for") && began.elapsed() < Duration::from_secs(60),
        "{}",
        message(&output)
    );
    // A process that ends meanwhile.
    let short = Running::start(Command::new(&program).args(["h", "1000000"]));
    std::thread::sleep(Duration::from_millis(200));
    let mut parent = short;
    let id = parent.id();
    let reaper = std::thread::spawn(move || parent.0.wait().unwrap());
    let output = answer_about(folder.path(), &[&id, "--for", "3600s"]);
    reaper.join().unwrap();
    let text = message(&output);
    assert!(text.contains("watched for") || text.contains("is not there") || text.contains("has ended"), "{text}");
}

#[test]
fn what_cannot_be_watched_is_reported_in_one_sentence() {
    let folder = folder();
    let refused = |output: Output, code: i32, words: &str| {
        let text = message(&output);
        assert_eq!(output.status.code(), Some(code), "{text}");
        // An answer is in lines of 80 columns, an error in one.
        let lines = if code == 0 { 1..=2 } else { 1..=1 };
        assert!(text.replace('\n', " ").contains(words) && lines.contains(&text.trim_end().lines().count()), "{text}");
    };
    refused(answer_about(folder.path(), &["4194304"]), 2, "is not there");
    refused(answer_about(folder.path(), &["1", "--for", "1ms"]), 2, "too short");
    if std::fs::read_to_string("/proc/2/stat").is_ok_and(|stat| stat.contains("(kthreadd)")) {
        refused(answer_about(folder.path(), &["2"]), 2, "thread of the kernel");
    }
    let mut ended = Command::new("true").spawn().unwrap();
    while !std::fs::read_to_string(format!("/proc/{}/stat", ended.id())).unwrap().contains(") Z") {
        std::thread::yield_now();
    }
    refused(answer_about(folder.path(), &[&ended.id().to_string()]), 2, "has ended");
    ended.wait().unwrap();
    let sleeping = Running::start(Command::new("sleep").arg("60"));
    refused(answer_about(folder.path(), &[&sleeping.id(), "--for", "200ms"]), 0, "nothing to save");
    // By its name, which the kernel cuts.
    let nap = folder.path().join("coldframe-naps-here");
    std::fs::copy("/bin/sleep", &nap).unwrap();
    let napping = || {
        let running = Running::start(Command::new(&nap).arg("60"));
        // A name changes at the end of exec.
        while !std::fs::read_to_string(format!("/proc/{}/comm", running.id())).unwrap().starts_with("coldframe-naps") {
            std::thread::yield_now();
        }
        running
    };
    let _one = napping();
    let name = nap.file_name().unwrap().to_str().unwrap();
    refused(answer_about(folder.path(), &[name, "--for", "200ms"]), 0, "nothing to save");
    let _other = napping();
    refused(answer_about(folder.path(), &[name]), 2, "several processes are named coldframe-naps-here");
    refused(answer_about(folder.path(), &["coldframe-none"]), 2, "no process is named coldframe-none");
    if rustix::process::geteuid().is_root() {
        let Some(mut command) = unprivileged(folder.path()) else { return };
        refused(command.args(["--pid", &sleeping.id()]).output().unwrap(), 4, "belongs to root");
    }
}

#[test]
fn a_process_in_huge_pages_is_refused_and_started_here_it_has_none() {
    let folder = folder();
    let setting = std::fs::read_to_string("/sys/kernel/mm/transparent_hugepage/enabled").unwrap_or_default();
    if !have(&[GCC]) || setting.is_empty() || setting.contains("[never]") {
        return skip("this kernel has no huge pages");
    }
    let text = PROGRAM
        .replace("memset", "madvise((char *)heap + 4096 - (unsigned long)heap % 4096, PAGES * 4095l, 14); memset");
    let text = text.replace("#include <stdlib.h>", "#include <stdlib.h>\n#include <sys/mman.h>");
    let program = compiled(folder.path(), "huge", &text, &["-static"]);
    let running = Running::start(Command::new(&program).args(["r", "100000000"]));
    let huge = || std::fs::read_to_string(format!("/proc/{}/smaps_rollup", running.id())).unwrap();
    let began = Instant::now();
    while !huge().lines().any(|line| line.starts_with("AnonHugePages") && !line.contains(" 0 kB")) {
        if began.elapsed() > Duration::from_secs(5) {
            return skip("the kernel gives no huge pages now");
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    std::thread::sleep(Duration::from_millis(500));
    let output = answer_about(folder.path(), &[&running.id(), "--for", "1s"]);
    assert_eq!(output.status.code(), Some(4), "{}", message(&output));
    assert!(
        message(&output).contains("huge pages") && message(&output).contains("coldframe -- PROGRAM"),
        "{}",
        message(&output)
    );
    drop(running);
    let Some(mut command) = unprivileged(folder.path()) else { return };
    let output = command.arg("--").arg(&program).args(["r", "50000"]).output().unwrap();
    assert_eq!(output.status.code(), Some(3), "{}", message(&output));
    assert!(!message(&output).contains("huge pages"), "{}", message(&output));
}

#[test]
fn children_share_the_ram() {
    let folder = folder();
    let Some(program) = built(folder.path(), GCC, &["-static"]) else { return };
    let Some(mut command) = unprivileged(folder.path()) else { return };
    // Long enough that both have all of their heap at one time.
    let line = format!("{0} h 600000 & {0} h 600000; wait", program.display());
    let output = command.args(["--", "sh", "-c", &line]).output().unwrap();
    let answer = advice(folder.path(), "sh");
    if answer["method"] == "recorder" {
        return skip("every user may use userfaultfd here");
    }
    assert!(answer["processes"].as_u64() >= Some(3), "{}", message(&output));
    let heap = answer["managed_bytes"].as_u64().unwrap() / 4096;
    assert!((2 * PAGES as u64..2 * PAGES as u64 + 1000).contains(&heap), "{heap} pages: {}", message(&output));
}

#[test]
fn musl_go_and_java_get_an_answer_in_a_user_namespace_too() {
    let folder = folder();
    let mut programs: Vec<Vec<String>> = Vec::new();
    if let Some(program) = built(folder.path(), MUSL, &[]) {
        programs.push(vec![program.display().to_string(), "h".into(), "100000".into()]);
    }
    if have(&[GO]) {
        let source = "package main\n\nfunc main() {\n\tkept := make([][]byte, 0)\n\tfor i := 0; i < 200; i++ \
                      {\n\t\tkept = append(kept, make([]byte, 200000))\n\t\tfor _, one := range kept {\n\t\t\tfor at \
                      := 0; at < len(one); at += 4096 {\n\t\t\t\tone[at]++\n\t\t\t}\n\t\t}\n\t}\n}\n";
        std::fs::write(folder.path().join("grow.go"), source).unwrap();
        let mut go = Command::new("go");
        go.args(["build", "-o", "grow", "grow.go"])
            .current_dir(folder.path())
            .env("GOCACHE", folder.path().join("gocache"));
        assert!(go.env("CGO_ENABLED", "0").env("GO111MODULE", "off").status().unwrap().success());
        programs.push(vec![folder.path().join("grow").display().to_string()]);
    }
    if have(&[JAVA]) {
        programs.push(["java", "-Xmx64m", "-XX:+UseSerialGC", "-version"].map(String::from).to_vec());
    }
    for words in programs {
        let Some(mut command) = unprivileged(folder.path()) else { return };
        let output = command.arg("--").args(&words).output().unwrap();
        let name = Path::new(&words[0]).file_name().unwrap().to_str().unwrap().to_string();
        assert!(output.status.code().is_some_and(|code| code <= 1 || code == 3), "{words:?}: {}", message(&output));
        assert_eq!(advice(folder.path(), &name)["device"], "here", "{words:?}: {}", message(&output));
    }
    let Some(program) = built(folder.path(), GCC, &["-static"]) else { return };
    if !have(&[UNSHARE]) {
        return;
    }
    let mut command = Command::new("unshare");
    command
        .args(["--user", "--map-root-user", env!("CARGO_BIN_EXE_coldframe"), "--"])
        .arg(&program)
        .args(["h", "100000"]);
    let output = command.current_dir(folder.path()).env("XDG_CACHE_HOME", folder.path()).output().unwrap();
    if message(&output).contains("unshare failed") {
        return skip("this machine allows no user namespaces");
    }
    let answer = advice(folder.path(), "program");
    // Where it may make memory groups, it measures a limit: of PAGES and of its code.
    let peak = answer["limit"]["peak_bytes"].as_u64().map(|peak| peak / 4096);
    let measured = peak.is_some_and(|peak| (PAGES as u64..PAGES as u64 + 1000).contains(&peak));
    assert!(measured || answer["method"] == "referenced-bits", "{}", message(&output));
}

/// Runs in a mount namespace of its own, with copies of /etc and of the device.
const SETUP: &str = r#"
set -e
mkdir etc
cp -a /etc/passwd /etc/group /etc/login.defs etc/
for file in shadow gshadow; do if [ -e /etc/$file ]; then cp -a /etc/$file etc/; fi; done
mount --bind etc /etc
for device in userfaultfd cpu_dma_latency; do
    mknod $device c $(stat -c '0x%t 0x%T' /dev/$device)
    chmod 600 $device
    mount --bind $device /dev/$device
done
as() { setpriv --reuid 65534 --regid 65534 --inh-caps=-all "$@"; }
as --clear-groups "$COLDFRAME" doctor > before 2>&1 || true
if "$COLDFRAME" doctor --setup --user nobodyx; then echo left; fi
if grep -q ^coldframe: /etc/group || [ -e /etc/udev/rules.d/60-coldframe.rules ]; then echo left; fi
[ "$(stat -c %G /dev/userfaultfd)" = root ] || echo left
"$COLDFRAME" doctor --setup --user nobody
"$COLDFRAME" doctor --setup --user nobody
cat /etc/udev/rules.d/60-coldframe.rules
stat -c '%A %U %G' /dev/userfaultfd
gid=$(grep ^coldframe: /etc/group | cut -d: -f3)
as --groups "$gid" "$COLDFRAME" doctor --format json > after || true
as --groups "$gid" sh -c ': > /dev/cpu_dma_latency' && echo may keep processors awake
"$COLDFRAME" doctor --setup --undo
stat -c '%A %U %G' /dev/userfaultfd
if grep -q ^coldframe: /etc/group || [ -e /etc/udev/rules.d/60-coldframe.rules ]; then echo left; fi
"$COLDFRAME" doctor --setup --undo
"#;

#[test]
fn setup_lets_a_group_page_and_takes_it_back() {
    let folder = folder();
    let Some(mut command) = unprivileged(folder.path()) else { return };
    let output = command.args(["doctor", "--setup"]).output().unwrap();
    assert_eq!(output.status.code(), Some(4), "{}", message(&output));
    assert!(
        message(&output).contains("sudo coldframe doctor --setup") && message(&output).lines().count() == 1,
        "{}",
        message(&output)
    );
    if !rustix::process::geteuid().is_root() || !Path::new("/dev/userfaultfd").exists() {
        return skip("setup is tried out as root, on a kernel with /dev/userfaultfd");
    }
    if !have(&[UNSHARE, SETPRIV, ("groupadd", "passwd")]) {
        return;
    }
    let mut command = Command::new("unshare");
    command
        .args(["--mount", "sh", "-c", SETUP])
        .current_dir(folder.path())
        .env("COLDFRAME", env!("CARGO_BIN_EXE_coldframe"));
    let output = command.env("COLUMNS", "80").env("XDG_CACHE_HOME", folder.path()).output().unwrap();
    let text = message(&output);
    assert!(output.status.success(), "{text}");
    assert!(text.contains("--user nobodyx: there is no such user; nothing was changed"), "{text}");
    for words in [
        "KERNEL==\"userfaultfd\", GROUP=\"coldframe\"",
        "may keep processors awake",
        "crw-rw---- root coldframe",
        "crw------- root root",
    ] {
        assert!(text.contains(words), "{words}: {text}");
    }
    assert!(!text.contains("\nleft\n"), "{text}");
    let after: Value = serde_json::from_str(&std::fs::read_to_string(folder.path().join("after")).unwrap()).unwrap();
    let right = after["findings"].as_array().unwrap().iter().find(|finding| finding["name"] == RIGHT).unwrap();
    assert_eq!(right["health"], "good", "{right}");
    let before = std::fs::read_to_string(folder.path().join("before")).unwrap();
    let allowed = std::fs::read_to_string("/proc/sys/vm/unprivileged_userfaultfd").is_ok_and(|text| text.trim() == "1");
    assert!(allowed || before.contains("sudo coldframe doctor --setup"), "{before}");
    assert!(before.lines().count() <= 8 && before.lines().all(|line| line.chars().count() <= 80), "{before}");
}
