//! One budget for all processes of a run: their memory together stays within it, no byte is lost, and the frames of
//! those that end, are killed or run another program are the others'.

use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use crate::common::{good, program, with, Program};
use coldframe_live::{Options, StatsFile};

const RAM: u64 = 16 << 20;
/// What each process may have beyond the budget.
const EACH: u64 = 2 << 20;

/// A child's memory: `fill` it with what nobody else has, `look` whether it is as it was, each page of it written
/// again.
const MEMORY: &str = r#"
typedef uint64_t word;
static word *fill(size_t bytes, word seed) {
    word *m = malloc(bytes); CHECK(m);
    for (size_t i = 0; i < bytes / 8; i++) m[i] = seed * 1000003 + i;
    return m;
}
static void look(word *m, size_t bytes, word seed, word by) {
    for (size_t i = 0; i < bytes / 8; i++) { CHECK(m[i] == seed * 1000003 + i + by); m[i]++; }
}
static pid_t child_with(size_t bytes, word seed, int rounds) {
    pid_t child = fork(); CHECK(child >= 0);
    if (child == 0) { word *m = fill(bytes, seed); for (int r = 0; r < rounds; r++) look(m, bytes, seed, r); _exit(0); }
    return child;
}
static void await(pid_t child) { int status; CHECK(waitpid(child, &status, 0) == child); CHECK(status == 0); }
"#;

/// Bytes of managed memory that all processes of this program have in RAM, and how many they are. A page that several
/// have counts once.
fn managed_bytes(program: &Path) -> (u64, u64) {
    let (mut bytes, mut processes) = (0, 0);
    for entry in std::fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.path()) {
        let text = |name| std::fs::read_to_string(entry.join(name)).unwrap_or_default();
        let is_its = std::fs::read_link(entry.join("exe")).is_ok_and(|exe| exe == program);
        if !is_its || text("comm").starts_with("coldframe") {
            continue;
        }
        let mut managed = false;
        for line in text("smaps").lines() {
            let start = line.split_once('-').and_then(|(start, _)| u64::from_str_radix(start, 16).ok());
            managed = start.map_or(managed, |start| (0x8000_0000..0x200_0000_0000).contains(&start));
            let pss = line.strip_prefix("Pss:").filter(|_| managed).and_then(|pss| pss.trim().strip_suffix(" kB"));
            bytes += pss.map_or(0, |pss| pss.trim().parse::<u64>().unwrap() << 10);
        }
        processes += 1;
    }
    (bytes, processes)
}

/// Runs a program in one budget, and looks at what all its processes have until it ends; then all is free again.
fn watched(program: &Program) {
    let Some(mut command) = program.paged(RAM) else { return };
    let (stats, ended) = (StatsFile::create().unwrap(), AtomicBool::new(false));
    with(&mut command, |o: &mut Options| (o.one_budget, o.stats_fd) = (true, Some(stats.fd())));
    let most = std::thread::scope(|scope| {
        let looks = scope.spawn(|| {
            let mut most = 0;
            while !ended.load(Relaxed) {
                let (bytes, processes) = managed_bytes(&program.path);
                most = most.max(bytes.saturating_sub(processes * EACH));
            }
            most
        });
        good(&mut command);
        ended.store(true, Relaxed);
        looks.join().unwrap()
    });
    assert!(most <= RAM, "{most} bytes are in RAM besides 2 MiB for each process");
    // Pagers end just behind their programs.
    while stats.snapshot().frames > 0 {
        std::thread::yield_now();
    }
    let left = stats.snapshot().resident;
    assert!(left < 1 << 40, "{} pages fewer are counted than none", left.wrapping_neg());
}

fn tree(name: &str, main: &str) -> Option<Program> {
    program(name, &format!("{MEMORY}\n{main}"))
}

#[test]
fn four_children_that_need_three_times_the_budget_have_it_together() {
    let main = "int main(void) {
        pid_t child[4];
        for (int i = 0; i < 4; i++) child[i] = child_with(12 << 20, i + 1, 4);
        for (int i = 0; i < 4; i++) await(child[i]);
        return 0;
    }";
    tree("four", main).iter().for_each(watched);
}

#[test]
fn an_idle_process_and_a_stopped_one_give_their_frames_and_lose_no_byte() {
    let main = r#"
static void idle(int ready, int go, word seed, int stop) {
    word *m = fill(11 << 20, seed);
    CHECK(write(ready, "x", 1) == 1);
    if (stop) raise(SIGSTOP);
    char x; CHECK(read(go, &x, 1) == 1);
    look(m, 11 << 20, seed, 0); look(m, 11 << 20, seed, 1);
    _exit(0);
}
int main(void) {
    int ready[2], go[2]; char x; pid_t child[2];
    CHECK(pipe(ready) == 0 && pipe(go) == 0);
    for (int i = 0; i < 2; i++) {
        child[i] = fork(); CHECK(child[i] >= 0);
        if (child[i] == 0) idle(ready[1], go[0], i + 1, i);
        CHECK(read(ready[0], &x, 1) == 1);
    }
    int status; CHECK(waitpid(child[1], &status, WUNTRACED) == child[1] && WIFSTOPPED(status));
    await(child_with(13 << 20, 7, 4));
    kill(child[1], SIGCONT);
    CHECK(write(go[1], "xx", 2) == 2);
    for (int i = 0; i < 2; i++) await(child[i]);
}"#;
    tree("idle", main).iter().for_each(watched);
}

/// They are killed while they take frames, give them or page.
#[test]
fn whoever_is_killed_leaves_its_frames_to_the_others() {
    let main = "int main(void) {
        pid_t lives[2] = { child_with(9 << 20, 1, 25), child_with(9 << 20, 2, 25) };
        srand(3);
        for (int round = 0; round < 60; round++) {
            pid_t child = child_with(10 << 20, 100 + round, 1000);
            usleep(rand() % 30000);
            CHECK(kill(child, SIGKILL) == 0);
            int status; CHECK(waitpid(child, &status, 0) == child && WIFSIGNALED(status));
        }
        for (int i = 0; i < 2; i++) await(lives[i]);
        return 0;
    }";
    tree("killed", main).iter().for_each(watched);
}

/// A fork in the middle, with memory that parent and child both change; and programs that run themselves again.
#[test]
fn forks_and_programs_that_run_others_keep_their_bytes() {
    let main = r#"
int main(int argc, char **argv) {
    int left = argc > 1 ? atoi(argv[1]) : 4; size_t size = 6 << 20;
    word *m = fill(size, left), *after = NULL;
    for (int round = 0; round < 6; round++) {
        pid_t child = fork(); CHECK(child >= 0);
        if (child == 0) {
            for (int r = round; r < round + 3; r++) look(m, size, left, r);
            after = fill(size, 50); look(after, size, 50, 0);
            _exit(0);
        }
        look(m, size, left, round);
        if (round % 2) await(child); else { usleep(2000); kill(child, SIGKILL); waitpid(child, NULL, 0); }
    }
    if (left == 0) return 0;
    char number[9]; sprintf(number, "%d", left - 1);
    execl("/proc/self/exe", argv[0], number, NULL);
    return 1;
}"#;
    tree("again", main).iter().for_each(watched);
}

/// A shell's pipeline, whose processes come and go: what is printed is the same.
#[test]
fn a_pipeline_prints_what_it_prints_alone() {
    let line = "seq 400000 | sed s/3/x/ | sort -r | uniq -c | sort -n -k2 | tee /dev/stderr 2>/dev/null | cksum";
    let of = |command: &mut Command| -> Output { good(command.args(["-c", line]).stdin(Stdio::null())) };
    let Some(mut paged) = crate::common::paged("/bin/sh", 2 << 20) else { return };
    with(&mut paged, |o| o.one_budget = true);
    assert_eq!(of(&mut paged).stdout, of(&mut Command::new("/bin/sh")).stdout);
}
