//! `coldframe run`: unmodified programs in less RAM than they use. Their output must equal the plain run's, byte for
//! byte.

use std::io::Read;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use coldframe_proc::{mappings, Process};
use coldframe_toolbox::programs::{alone, compiled, compiled_by, finish, stderr, stdout};
use coldframe_toolbox::{have, GCC};
use serde_json::Value;

fn coldframe(arguments: &[&str], folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_coldframe"));
    command.arg("run").args(["--backing", folder.to_str().unwrap()]).args(arguments).env("NO_COLOR", "1");
    command
}

const THREADS: &str = r#"
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
enum { THREADS = 8, BLOCKS = 900 };
static uint64_t sums[THREADS];
static pthread_barrier_t full; // on a busy machine the threads run one after the other
static void *work(void *p) {
    uint64_t id = (uint64_t)p, x = id * 977 + 1, sum = 0;
    unsigned char *block[BLOCKS] = {0}; size_t len[BLOCKS] = {0}; unsigned char fill[BLOCKS] = {0};
    for (int step = 0; step < 6000; step++) {
        x ^= x << 13; x ^= x >> 7; x ^= x << 17;
        int i = x % BLOCKS;
        for (size_t k = 0; k < len[i]; k += 61) if (block[i][k] != fill[i]) abort();
        size_t now = x / BLOCKS % 6000 + 1;
        block[i] = realloc(block[i], now);
        for (size_t k = 0; k < now && k < len[i]; k += 61) if (block[i][k] != fill[i]) abort();
        len[i] = now; fill[i] = x >> 32; memset(block[i], fill[i], now);
        sum = sum * 31 + fill[i] + now;
    }
    pthread_barrier_wait(&full);
    for (int i = 0; i < BLOCKS; i++) free(block[i]);
    sums[id] = sum; return 0;
}
int main(void) {
    pthread_t t[THREADS];
    pthread_barrier_init(&full, NULL, THREADS);
    for (uint64_t i = 0; i < THREADS; i++) pthread_create(&t[i], 0, work, (void *)i);
    for (int i = 0; i < THREADS; i++) pthread_join(t[i], 0);
    for (int i = 0; i < THREADS; i++) printf("%016lx\n", (unsigned long)sums[i]);
}
"#;

#[test]
fn eight_threads_of_malloc_and_free_see_their_own_bytes_within_the_ram() {
    if !have(&[GCC]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let (program, stats) = (compiled(folder.path(), "program", THREADS, &[]), folder.path().join("stats.json"));
    let plain = finish(Command::new(&program));
    assert!(plain.status.success(), "{}", stderr(&plain));
    let mut paged = coldframe(&["--ram", "12MiB", "--stats", stats.to_str().unwrap(), "--"], folder.path());
    paged.arg(&program);
    let paged = finish(paged);
    assert!(paged.status.success(), "{}", stderr(&paged));
    assert_eq!(stdout(&paged), stdout(&plain));
    let stats: Value = serde_json::from_str(&std::fs::read_to_string(stats).unwrap()).unwrap();
    let count = |name: &str| stats["counts"][name].as_u64().unwrap();
    assert!(count("device_bytes_written") > 0, "nothing left RAM: {stats}");
    let frames = stats["config"]["ram"].as_u64().unwrap() / 4096;
    assert!(count("resident_max") <= frames + 64, "{} pages in RAM, {frames} allowed", count("resident_max"));
}

/// 10 MiB of a private mapping of a file, which are not paged, and a heap of 40 MiB; what is not paged comes first.
const BESIDE: &str = r#"
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>
int main(int count, char **words) {
    size_t heap_len = 40 << 20, file_len = 10 << 20;
    FILE *made = fopen(words[1], "w+");
    ftruncate(fileno(made), file_len);
    char *heap = malloc(heap_len);
    volatile char *file = mmap(0, file_len, PROT_READ | PROT_WRITE, MAP_PRIVATE, fileno(made), 0);
    for (size_t i = 0; i < file_len; i += 4096) file[i] = i >> 12;
    for (size_t i = 0; i < heap_len; i += 64) heap[i] = i >> 6;
    usleep(300000); // what was too much leaves
    puts("ready"); fflush(stdout);
    unsigned sum = 0;
    for (int round = 0; round < 3; round++) for (size_t i = 0; i < heap_len; i += 4096) sum = sum * 31 + heap[i];
    for (size_t i = 0; i < file_len; i += 4096) sum = sum * 31 + file[i];
    printf("%08x\n", sum);
}
"#;

/// Bytes in RAM of what runs below a process, each shared page divided by the number of its users. A pager's process
/// has its program's memory.
fn in_ram(process: u32) -> u64 {
    let below = Process::of(process).with_descendants().into_iter().skip(1).map(Process::of);
    let programs = below.filter(|process| process.name() != "coldframe-pager");
    let bytes = |text: String| mappings(&text).iter().map(|mapping| mapping.counts.pss << 10).sum::<u64>();
    programs.map(|process| process.smaps().map_or(0, bytes) + process.page_table_bytes()).sum()
}

#[test]
fn the_ram_is_for_all_memory_of_a_program_and_the_heap_has_what_is_left() {
    if !have(&[GCC]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let (program, stats) = (compiled(folder.path(), "program", BESIDE, &[]), folder.path().join("stats.json"));
    let file = folder.path().join("file");
    let plain = finish({
        let mut command = Command::new(&program);
        command.arg(&file);
        command
    });
    let mut paged = coldframe(&["--ram", "24MiB", "--stats", stats.to_str().unwrap(), "--"], folder.path());
    let mut paged = paged.arg(&program).arg(&file).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut ready = [0; 6];
    paged.stdout.as_mut().unwrap().read_exact(&mut ready).unwrap();
    let (mut most, mut samples) = (0, 0);
    while paged.try_wait().unwrap().is_none() {
        (most, samples) = (most.max(in_ram(paged.id())), samples + 1);
        std::thread::sleep(Duration::from_millis(5));
    }
    let paged = paged.wait_with_output().unwrap();
    assert_eq!(format!("ready\n{}", stdout(&paged)), stdout(&plain), "{}", stderr(&paged));
    // 1 MiB: between two looks at what is not paged.
    let (mib, text) = (1 << 20, std::fs::read_to_string(stats).unwrap());
    assert!(samples > 10 && most <= 25 * mib, "{most} bytes, {samples} samples");
    let stats: Value = serde_json::from_str(&text).unwrap();
    let all = |name: &str| stats["all_memory"][name].as_u64().unwrap();
    assert!(all("beside_bytes") >= 10 * mib && all("most_bytes") >= 22 * mib, "{text}");
    assert!(stderr(&paged).contains(" of 24.0 MiB; code, stacks, files and tables took "), "{}", stderr(&paged));
}

#[test]
fn a_program_whose_code_takes_more_than_the_ram_runs_with_the_least_frames_and_the_least_ram_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let mut run = coldframe(&["--ram", "1MiB", "--", "sh", "-c", "sleep 0.3; echo done"], folder.path());
    let output = finish({
        run.env("COLUMNS", "80");
        run
    });
    assert_eq!((output.status.code(), stdout(&output).as_str()), (Some(0), "done\n"));
    let words = stderr(&output);
    assert!(words.contains("note: code, stacks and files take ") && words.contains("KiB or more"), "{words}");
}

struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = Command::new("pkill").args(["-KILL", "-P", &self.0.id().to_string()]).status();
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn redis_saves_in_the_background_what_it_had_at_the_fork() {
    if !have(&[("redis-server", "redis-server"), ("redis-cli", "redis-tools"), ("redis-benchmark", "redis-tools")]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("socket");
    let redis = ["redis-server", "--port", "0", "--save", "", "--enable-debug-command", "yes", "--loglevel", "warning"];
    let place = ["--dir", folder.path().to_str().unwrap(), "--unixsocket", socket.to_str().unwrap()];
    let ask = |words: &[&str]| {
        let out = Command::new("timeout").args(["30", "redis-cli", "-s"]).arg(&socket).args(words).output().unwrap();
        String::from_utf8_lossy(&out.stdout).trim().to_string()
    };
    let wait_for = |what: &[&str], word: &str| {
        let start = Instant::now();
        while !ask(what).contains(word) {
            assert!(start.elapsed() < Duration::from_secs(90), "{what:?} never says {word}");
            std::thread::sleep(Duration::from_millis(50));
        }
    };
    let mut paged = coldframe(&["--ram", "14MiB", "--"], folder.path());
    paged.args(redis).args(place).stdout(Stdio::null()).stderr(Stdio::null());
    let server = Server(paged.spawn().unwrap());
    wait_for(&["ping"], "PONG");
    ask(&["debug", "populate", "60000", "key", "100"]);
    top_shows(server.0.id());
    let before = ask(&["debug", "digest"]);
    ask(&["bgsave"]);
    // Clients write while the child reads.
    let load = ["20", "redis-benchmark", "-n", "20000", "-r", "60000", "-t", "set,get", "-q", "-s"];
    Command::new("timeout").args(load).arg(&socket).stdout(Stdio::null()).status().unwrap();
    wait_for(&["info", "persistence"], "rdb_bgsave_in_progress:0");
    assert!(ask(&["info", "persistence"]).contains("rdb_last_bgsave_status:ok"));
    assert_ne!(ask(&["debug", "digest"]), before, "nothing was written meanwhile");
    ask(&["shutdown", "nosave"]);
    drop(server);
    let mut plain = Command::new(redis[0]);
    plain.args(&redis[1..]).args(place).stdout(Stdio::null());
    let _server = Server(plain.spawn().unwrap());
    wait_for(&["ping"], "PONG");
    assert_eq!(ask(&["debug", "digest"]), before);
    ask(&["shutdown", "nosave"]);
}

#[test]
fn a_run_gives_the_programs_own_status() {
    let folder = tempfile::tempdir().unwrap();
    let status = |script: &str| {
        let mut run = coldframe(&["--ram", "1MiB", "--", "sh", "-c"], folder.path());
        finish({
            run.arg(script);
            run
        })
        .status
        .code()
    };
    assert_eq!(status("exit 0"), Some(0));
    assert_eq!(status("exit 7"), Some(7));
    assert_eq!(status("kill -TERM $$"), Some(128 + 15));
    assert_eq!(status("kill -KILL $$"), Some(128 + 9));
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "a swap file was left behind");
}

/// Directly, by a script's first line, and by a shell that still has the library for other programs.
#[test]
fn a_program_for_musl_that_a_paged_one_starts_runs_without_pager() {
    let folder = tempfile::tempdir().unwrap();
    if !have(&[("musl-gcc", "musl-tools")]) {
        return;
    }
    let main =
        "#include <string.h>\nint main(int n, char **words) { return strcmp(words[n - 1], \"two words\") ? 1 : 7; }";
    let child = compiled_by("musl-gcc", folder.path(), "child", main, &[]);
    let (child, script) = (child.display(), folder.path().join("script"));
    std::fs::write(&script, format!("#!{child}\nnot read\n")).unwrap();
    let script = script.display();
    let lines = format!(
        "chmod +x {script}; {child} 'two words'; test $? = 7 && {script} 'two words'; test $? = 7 && \
         grep -q libcoldframe_preload /proc/self/maps && exec {child} 'two words'"
    );
    let mut command = coldframe(&["--ram", "4MiB", "--"], folder.path());
    command.args(["sh", "-c", &lines]);
    let output = finish(command);
    assert_eq!(output.status.code(), Some(7), "{}", stderr(&output));
}

#[test]
fn what_cannot_be_run_is_explained() {
    // Where another test has swap on, the kernel pages what our pager cannot.
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    let text = folder.path().join("text");
    std::fs::write(&text, "x").unwrap();
    let fails = |arguments: &[&str], code: i32, word: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_coldframe"));
        command.arg("run").args(arguments);
        let output = finish(command);
        let message = stderr(&output);
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {message}");
        assert!(message.contains(word), "{arguments:?}: {message}");
        assert!(
            !message.contains("page from the device"),
            "{arguments:?}: a table of a run that has not been: {message}"
        );
    };
    let text = text.to_str().unwrap();
    fails(&["--ram", "1MiB", "--", "no-such-program"], 127, "no-such-program");
    fails(&["--ram", "1MiB", "--", text], 126, text);
    fails(&["--ram", "100B", "--", "true"], 2, "256KiB");
    fails(&["--ram", "1MB2", "--", "true"], 2, "--ram");
    fails(&["--ram", "1MiB", "--read-ahead", "99", "--", "true"], 2, "0..=31");
    fails(&["--ram", "1MiB", "--backing", "/no/such", "--", "true"], 5, "make the folder");
    fails(&["--ram", "1MiB", "--backing", text, "--", "true"], 5, "neither a folder nor a block device");
    fails(&["--ram", "1MiB"], 2, "required");
    if have(&[GCC]) {
        let program = compiled(folder.path(), "program", "int main(void) { return 0; }", &["-static"]);
        fails(&["--by", "pager", "--ram", "1MiB", "--", program.to_str().unwrap()], 4, "linked statically");
        let program = compiled(folder.path(), "program", "int main(void) { return 0; }", &[]);
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o4755);
        std::fs::set_permissions(&program, mode).unwrap();
        fails(&["--ram", "1MiB", "--", program.to_str().unwrap()], 4, "setuid");
    }
}

/// `coldframe top` finds the run by the process that was started, and prints Prometheus's format.
fn top_shows(run: u32) {
    let pid = String::from_utf8(Command::new("pgrep").args(["-P", &run.to_string(), "redis"]).output().unwrap().stdout)
        .unwrap();
    let mut top = Command::new(env!("CARGO_BIN_EXE_coldframe"));
    top.args(["top", pid.trim(), "--once", "--format", "prometheus"]);
    let output = finish(top);
    assert!(output.status.success(), "{}", stderr(&output));
    let text = stdout(&output);
    let value = |name: &str| -> f64 {
        let line =
            text.lines().find(|line| line.split(' ').next() == Some(name)).unwrap_or_else(|| panic!("{name}: {text}"));
        line.rsplit(' ').next().unwrap().parse().unwrap()
    };
    assert!(value("coldframe_true_faults_total") > 1000.0 && value("coldframe_resident") > 100.0, "{text}");
    // Its code and libraries take some 10 MiB of the 14.
    assert!((128.0..2048.0).contains(&value("coldframe_frames")), "{text}");
    assert!(value("coldframe_device_fault_seconds{quantile=\"0.5\"}") < 1.0);
}

#[test]
fn top_says_what_it_cannot_show() {
    let mut top = Command::new(env!("CARGO_BIN_EXE_coldframe"));
    top.args(["top", "1", "--once"]);
    let output = finish(top);
    assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
    assert!(stderr(&output).contains("process 1 is not paged by coldframe"));
}

/// Writes a block of 300 pages from its first page to its last, and then reads it: twice 300 entries into a window of
/// 64, in order. With an argument, the program does not exit: it is killed, or it becomes another program.
const SWEEP: &str = r#"
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
int main(int count, char **words) {
    volatile char *block = malloc(300 * 4096 + 4096);
    volatile char *page = (volatile char *)(((unsigned long)block + 4095) & ~4095ul);
    long sum = 0;
    for (int i = 0; i < 300; i++) page[i * 4096] = 1;
    for (int i = 0; i < 300; i++) sum += page[i * 4096];
    printf("%lx %ld\n", (unsigned long)page, sum);
    fflush(stdout);
    if (count > 1 && words[1][0] == 'k') raise(SIGKILL);
    if (count > 1) execl("/bin/true", "true", NULL);
}
"#;

#[test]
fn a_window_records_each_entry_of_a_page_however_the_program_ends() {
    if !have(&[GCC]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    compiled(folder.path(), "sweep", SWEEP, &["-O0"]);
    for ending in [&[][..], &["killed"], &["executes"]] {
        let mut record = Command::new(env!("CARGO_BIN_EXE_coldframe"));
        record.args(["record", "--window", "64", "-o"]).arg(at("t.parquet")).arg("--").arg(at("sweep")).args(ending);
        let output = finish(record);
        assert!(output.status.success(), "{}", stderr(&output));
        let text = stdout(&output);
        let (start, sum) = text.trim().split_once(' ').unwrap();
        assert_eq!(sum, "300");
        let start = u64::from_str_radix(start, 16).unwrap();
        let mut reader = coldframe_store::Reader::open(at("t.parquet")).unwrap();
        assert_eq!(reader.provenance().window, Some(64));
        let mut block = coldframe_store::Block::new();
        reader.read(&mut block, coldframe_store::Wanted::ALL).unwrap();
        let rows = block.iter().filter(|row| (start..start + 300 * 4096).contains(&row.address));
        // The pages that /bin/true touches follow.
        let seen: Vec<_> = rows.take(600).map(|row| ((row.address - start) / 4096, row.kind)).collect();
        let pass = |kind| (0..300u64).map(move |page| (page, kind));
        let expected: Vec<_> = pass(coldframe_store::Kind::Write).chain(pass(coldframe_store::Kind::Read)).collect();
        assert_eq!(seen, expected, "{ending:?}");
    }
}
