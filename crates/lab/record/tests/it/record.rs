//! Recording small programs whose references are known beforehand.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::common::{compile, order, own_halves, read, ready, run, CC};
use coldframe_record::{Level, RecordError};
use coldframe_store::{Fidelity, Kind, Reference};
use coldframe_toolbox::{have, QEMU};

use Kind::{Fetch, Read, Write};

/// A whole program, without a C library: every instruction and every access below is all there is.
const WALK: &str = "
.globl _start
.bss
area: .skip 4096
.text
_start: lea area(%rip), %rdi
        mov $4, %ecx
again:  mov %ecx, (%rdi)
        addl $1, (%rdi)
        lock addl $1, (%rdi)
        movups (%rdi), %xmm0
        push %rcx
        pop %rdx
        add $4, %rdi
        dec %ecx
        jnz again
        mov $3, %ecx
        rep stosb
        mov $60, %eax
        xor %edi, %edi
        syscall
";
const WALK_FLAGS: &[&str] = &["-nostdlib", "-static", "-no-pie", "-Wl,-Ttext=0x401000,-Tbss=0x500000"];

/// The references of WALK, from the lengths of its instructions (Intel SDM volume 2). `stack` is the stack pointer at
/// its start.
fn walk(stack: u64) -> Vec<(u64, u32, Kind)> {
    let mut at = 0x40_1000;
    let mut rows = Vec::new();
    fn fetch(rows: &mut Vec<(u64, u32, Kind)>, at: &mut u64, size: u32) {
        rows.push((*at, size, Fetch));
        *at += u64::from(size);
    }
    fetch(&mut rows, &mut at, 7);
    fetch(&mut rows, &mut at, 5);
    let again = at;
    let mut area = 0x50_0000;
    for _ in 0..4 {
        at = again;
        fetch(&mut rows, &mut at, 2);
        rows.push((area, 4, Write));
        fetch(&mut rows, &mut at, 3); // load and store of one place: one write
        rows.push((area, 4, Write));
        fetch(&mut rows, &mut at, 4);
        rows.push((area, 4, Write));
        fetch(&mut rows, &mut at, 3);
        rows.push((area, 16, Read));
        fetch(&mut rows, &mut at, 1);
        rows.push((stack - 8, 8, Write));
        fetch(&mut rows, &mut at, 1);
        rows.push((stack - 8, 8, Read));
        [4, 2, 2].into_iter().for_each(|size| fetch(&mut rows, &mut at, size));
        area += 4;
    }
    fetch(&mut rows, &mut at, 5);
    for _ in 0..3 {
        rows.push((at, 2, Fetch)); // each turn of a string instruction is fetched,
        rows.push((area, 1, Write));
        area += 1;
    }
    fetch(&mut rows, &mut at, 2); // and the one that finds the count at zero
    [5, 2, 2].into_iter().for_each(|size| fetch(&mut rows, &mut at, size));
    rows
}

fn walk_program(dir: &Path) -> PathBuf {
    compile(dir, "walk", "s", WALK, WALK_FLAGS)
}

fn plain(rows: &[Reference]) -> Vec<(u64, u32, Kind)> {
    rows.iter().map(|r| (r.address, r.size, r.kind)).collect()
}

/// The stack pointer at the start, from the one access that is not in `area`.
fn stack(rows: &[Reference]) -> u64 {
    rows.iter().find(|r| r.kind == Write && r.size == 8).expect("the push").address + 8
}

#[test]
fn qemu_sees_exactly_what_the_program_does() {
    let Some((dir, out)) = ready(&[QEMU, CC]) else { return };
    let outcome = run(&order(&walk_program(dir.path()), &[], &out)).unwrap();
    let (rows, provenance) = read(&out);
    let stack = stack(&rows);
    assert_eq!(plain(&rows), walk(stack));
    assert!(outcome.status.success());
    assert_eq!((outcome.references, outcome.instructions), (rows.len() as u64, provenance.instructions));
    assert_eq!((outcome.tasks, provenance.fidelity, provenance.page_size), (1, Fidelity::ExactReferences, None));
    assert_eq!(provenance.tasks[0].name, "walk");
    let text = provenance.mappings.iter().find(|m| m.start <= 0x40_1000 && 0x40_1000 < m.end).unwrap();
    assert_eq!((text.protection.as_str(), text.name.ends_with("/walk")), ("r-xp", true));
    assert!(
        provenance.mappings.iter().any(|m| m.name == "[stack]" && (m.start..m.end).contains(&(stack - 8))),
        "{provenance:?}"
    );
}

#[test]
fn an_array_walked_in_c_is_there_in_order() {
    let Some((dir, out)) = ready(&[QEMU, CC]) else { return };
    let source = "static volatile short array[3000]; int main(void) { for (int i = 0; i < 3000; i++) array[i] = 7; \
     return array[9]; }";
    let program = compile(dir.path(), "array", "c", source, &["-O1"]);
    let outcome = run(&order(&program, &[], &out)).unwrap();
    assert_eq!(outcome.status.code(), Some(7));
    let (rows, _) = read(&out);
    // No other code stores halves one after the other over 6000 bytes.
    let stores: Vec<u64> = rows.iter().filter(|r| r.kind == Write && r.size == 2).map(|r| r.address).collect();
    let run = stores.windows(3000).any(|w| w.iter().enumerate().all(|(i, a)| *a == w[0] + 2 * i as u64));
    assert!(run, "{} stores of 2 bytes", stores.len());
}

/// Joins the rows that the recorder cut where one of its buffers ended: a row that its stream's last row could have
/// taken in.
fn joined(rows: &[Reference]) -> Vec<Reference> {
    let mut all: Vec<Reference> = Vec::new();
    let mut last: std::collections::HashMap<(u32, bool), usize> = std::collections::HashMap::new();
    for row in rows {
        let stream = (row.task, row.kind == Fetch);
        if let Some(open) = last.get(&stream).map(|at| &mut all[*at]) {
            if open.address == row.address && (open.kind == Write || row.kind != Write) {
                open.count += row.count;
                continue;
            }
        }
        last.insert(stream, all.len());
        all.push(*row);
    }
    all
}

#[test]
fn references_are_reduced_to_pages_as_by_a_naive_twin() {
    let Some((dir, _)) = ready(&[QEMU]) else { return };
    let (exact, pages) = (dir.path().join("exact"), dir.path().join("pages"));
    for page in [64, 1024, 4096] {
        let mut order =
            order(Path::new("sh"), &["-c", "set -e; for i in 1 2 3 4 5 6 7 8 9; do x=$x$i$x; done"], &exact);
        run(&order).unwrap();
        order.level = Level::Pages(page);
        order.out = pages.clone();
        let outcome = run(&order).unwrap();
        let (rows, provenance) = read(&exact);
        let twin = crate::common::runs::runs(page, &rows);
        let (rows, reduced) = read(&pages);
        let recorded = joined(&rows);
        if let Some(at) = (0..twin.len().min(recorded.len())).find(|at| twin[*at] != recorded[*at]) {
            let near = at.saturating_sub(3)..(at + 3).min(twin.len()).min(recorded.len());
            panic!("page {page}, row {at}: want {:#x?}\ngot {:#x?}", &twin[near.clone()], &recorded[near]);
        }
        assert_eq!(twin.len(), recorded.len());
        assert_eq!(outcome.instructions, provenance.instructions);
        assert_eq!((reduced.fidelity, reduced.page_size), (Fidelity::PageReferences, Some(page)));
    }
}

#[test]
fn the_same_command_gives_the_same_file() {
    let Some((dir, _)) = ready(&[QEMU]) else { return };
    // A folder that stays unchanged.
    let line = format!("x=1; (x=2); ls '{}/src' | sort >/dev/null", env!("CARGO_MANIFEST_DIR"));
    let runs: Vec<Vec<(usize, u64)>> = (0..2)
        .map(|i| {
            let out = dir.path().join(format!("{i}"));
            run(&order(Path::new("sh"), &["-c", &line], &out)).unwrap();
            let (rows, provenance) = read(&out);
            // Processes that run in parallel take turns at random, but each one by itself must not differ. The shell
            // may differ: by chance, a child has or has not ended when the shell waits for it.
            let mut rows = plain_by_task(&rows);
            assert!(rows.len() >= 4, "{:?}", provenance.tasks);
            let shell = rows.remove(0);
            assert!(shell.0 > 10_000, "{shell:?}");
            rows.sort();
            rows
        })
        .collect();
    assert_eq!(runs[0], runs[1], "rows of each process, and their hash");

    let whole: Vec<Vec<u8>> = (0..2)
        .map(|i| {
            let out = dir.path().join(format!("whole{i}"));
            run(&order(Path::new("sort"), &["/etc/passwd", "-o", "/dev/null"], &out)).unwrap();
            std::fs::read(out).unwrap()
        })
        .collect();
    assert!(whole[0] == whole[1], "a program of one task gives the same file to the byte");
}

fn plain_by_task(rows: &[Reference]) -> Vec<(usize, u64)> {
    use std::hash::{Hash, Hasher};
    let mut tasks = std::collections::BTreeMap::<u32, (usize, std::hash::DefaultHasher)>::new();
    for row in rows {
        let (count, hash) = tasks.entry(row.task).or_default();
        *count += 1;
        (row.address, row.size, row.kind).hash(hash);
    }
    tasks.into_values().map(|(count, hash)| (count, hash.finish())).collect()
}

#[test]
fn a_forked_child_is_a_task_of_its_own_and_nothing_is_sent_twice() {
    let Some((dir, _)) = ready(&[QEMU, CC]) else { return };
    let source = "
        #include <sys/wait.h>
        #include <unistd.h>
        static volatile short before[500], parent[700], child[900];
        static void fill(volatile short *a, int n) { for (int i = 0; i < n; i++) a[i] = 1; }
        int main(void) {
            fill(before, 500);
            if (fork() == 0) { fill(child, 900); _exit(0); }
            wait(0);
            fill(parent, 700);
            return 0;
        }";
    let program = compile(dir.path(), "fork", "c", source, &["-O1", "-fno-inline"]);
    for level in [Level::Exact, Level::Pages(64)] {
        let out = dir.path().join("t.parquet");
        let mut order = order(&program, &[], &out);
        order.level = level;
        let outcome = run(&order).unwrap();
        let (rows, provenance) = read(&out);
        assert_eq!(outcome.tasks, 2, "{:?}", provenance.tasks);
        assert!(provenance.tasks.iter().all(|t| t.name == "fork"), "{:?}", provenance.tasks);
        assert_ne!(provenance.tasks[0].space, provenance.tasks[1].space);
        if level == Level::Exact {
            let halves = |task| own_halves(&rows, &provenance, task).len();
            assert_eq!((halves(0), halves(1)), (1200, 900));
        }
    }
}

#[test]
fn a_child_that_becomes_another_program_is_followed() {
    let Some((dir, out)) = ready(&[QEMU, CC]) else { return };
    let program = walk_program(dir.path());
    let script = dir.path().join("script");
    std::fs::write(&script, format!("#!/bin/sh\nexec {} \"$@\"\n", program.display())).unwrap();
    std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).unwrap();
    let outcome =
        run(&order(Path::new("sh"), &["-c", &format!("{} 'a b' ''; exit 3", script.display())], &out)).unwrap();
    assert_eq!(outcome.status.code(), Some(3));
    assert_eq!(outcome.not_recorded, [""; 0]);
    let (rows, provenance) = read(&out);
    let walks = provenance.tasks.iter().filter(|t| t.name == "walk");
    let rows: Vec<Reference> = rows.into_iter().filter(|r| walks.clone().any(|t| t.id == r.task)).collect();
    assert_eq!(plain(&rows), walk(stack(&rows)), "{:?}", provenance.tasks);
}

#[test]
fn a_program_that_must_run_natively_is_named() {
    let Some((dir, out)) = ready(&[QEMU]) else { return };
    // Root needs another owner's program for the bit to mean anything; others have su.
    let mut program = PathBuf::from("/bin/su");
    let copy = dir.path().join("true");
    std::fs::copy("/bin/true", &copy).unwrap();
    if std::os::unix::fs::chown(&copy, Some(65534), None).is_ok() {
        std::fs::set_permissions(&copy, std::fs::Permissions::from_mode(0o4755)).unwrap();
        program = copy;
    }
    let outcome =
        run(&order(Path::new("sh"), &["-c", &format!("{} --version; true", program.display())], &out)).unwrap();
    let [sentence] = outcome.not_recorded.as_slice() else { panic!("{outcome:?}") };
    let (start, end) = (
        sentence.starts_with("child "),
        format!("ran {} natively, not recorded: set-user-id or set-group-id", program.display()),
    );
    assert!(start && sentence.ends_with(&end), "{sentence}");
    assert!(read(&out).1.notes.contains(sentence));

    // An exec that fails ran nothing.
    let broken = dir.path().join("broken");
    let mut bytes = std::fs::read("/bin/true").unwrap();
    bytes[18] = 2; // SPARC
    std::fs::write(&broken, bytes).unwrap();
    std::fs::set_permissions(&broken, std::fs::Permissions::from_mode(0o755)).unwrap();
    let outcome =
        run(&order(Path::new("sh"), &["-c", &format!("{} 2>/dev/null; true", broken.display())], &out)).unwrap();
    assert_eq!(outcome.not_recorded, [""; 0]);
}

#[test]
fn threads_are_tasks_of_one_address_space() {
    let Some((dir, out)) = ready(&[QEMU, CC]) else { return };
    let source = "
        #include <pthread.h>
        static volatile short areas[8][100];
        static void *work(void *area) { for (int i = 0; i < 100; i++) ((volatile short *)area)[i] = 1; return 0; }
        int main(void) {
            pthread_t threads[8];
            for (int i = 0; i < 8; i++) pthread_create(&threads[i], 0, work, (void *)areas[i]);
            for (int i = 0; i < 8; i++) pthread_join(threads[i], 0);
            return 0;
        }";
    let program = compile(dir.path(), "threads", "c", source, &["-O1", "-pthread"]);
    let outcome = run(&order(&program, &[], &out)).unwrap();
    let (rows, provenance) = read(&out);
    assert_eq!(outcome.tasks, 9);
    assert!(provenance.tasks.iter().all(|t| t.space == 0));
    for task in 1..9 {
        let stores: Vec<u64> =
            rows.iter().filter(|r| r.task == task && r.kind == Write && r.size == 2).map(|r| r.address).collect();
        assert!(
            stores.windows(100).any(|w| w.iter().enumerate().all(|(i, a)| *a == w[0] + 2 * i as u64)),
            "task {task}"
        );
    }
}

#[test]
fn every_refusal_says_what_to_do_and_leaves_no_file() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("t.parquet");
    let elf = |name: &str, class: u8, machine: u16| {
        let mut head = b"\x7fELF".to_vec();
        head.extend([class, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0]);
        head.extend(machine.to_le_bytes());
        head.resize(64, 0);
        let path = dir.path().join(name);
        std::fs::write(&path, head).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        path
    };
    let check = |name: &str, order: coldframe_record::Recording, code: u8, words: &str| {
        let error = run(&order).expect_err(name);
        assert_eq!((error.code(), error.to_string().contains(words)), (code, true), "{name}: {error}");
        assert!(!out.exists() && !dir.path().join("t.parquet.partial").exists(), "{name} left a file");
    };
    let plain = || {
        let mut order = coldframe_record::Recording::new("/bin/true", vec![], &out);
        order.plugin = Some("/nonexistent/libcoldframe_plugin.so".into());
        order
    };
    let on = |program: &Path| coldframe_record::Recording { program: program.into(), ..plain() };

    let empty = coldframe_record::Recording { search_path: "/nonexistent".into(), ..plain() };
    check("no qemu", empty, 4, "qemu-x86_64 is not installed; on Debian: apt-get install qemu-user");
    check("no program", on(Path::new("/nonexistent/program")), 127, "no such program");
    check("not on the path", on(Path::new("no-such-program-anywhere")), 127, "no such program");
    check("a directory", on(dir.path()), 126, "a directory");
    check("32-bit x86", on(&elf("i386", 1, 3)), 4, "32-bit x86");
    check("another machine", on(&elf("riscv", 2, 243)), 4, "ELF machine 243");
    let pages = |bytes| coldframe_record::Recording { level: Level::Pages(bytes), ..plain() };
    check("a page of 1000 bytes", pages(1000), 2, "power of two");
    check("a page of 0 bytes", pages(0), 2, "power of two");
    if have(&[QEMU]) {
        check("no plugin", plain(), 4, "libcoldframe_plugin.so not found");
        // A file that is not a plugin: QEMU reports the error itself and ends.
        let wrong = coldframe_record::Recording { plugin: Some("/bin/true".into()), ..plain() };
        check("not a plugin", wrong, 4, "did not start with the plugin");
        let unwritable = coldframe_record::Recording {
            out: "/nonexistent/t".into(),
            plugin: Some(crate::common::plugin()),
            ..plain()
        };
        assert_eq!(run(&unwritable).unwrap_err().code(), 5);
        assert!(matches!(run(&unwritable), Err(RecordError::Trace(_))));
    }
}

/// QEMU's translator gives up an instruction over the page's end and begins the next block with it. It is there once.
#[test]
fn an_instruction_over_the_end_of_a_page_is_fetched_once() {
    let Some((dir, out)) = ready(&[QEMU, CC]) else { return };
    let source = "
.globl _start
.text
_start: xor %ecx, %ecx
        jmp again
        .org 0xffc
again:  inc %ecx
        mov $60, %eax
        cmp $3, %ecx
        jne again
        xor %edi, %edi
        syscall
";
    let program =
        compile(dir.path(), "border", "s", source, &["-nostdlib", "-static", "-no-pie", "-Wl,-Ttext=0x401000"]);
    let outcome = run(&order(&program, &[], &out)).unwrap();
    let (rows, _) = read(&out);
    let again = [(0x40_1ffc, 2, Fetch), (0x40_1ffe, 5, Fetch), (0x40_2003, 3, Fetch), (0x40_2006, 2, Fetch)];
    let end = [(0x40_2008, 2, Fetch), (0x40_200a, 2, Fetch)];
    let want = [&[(0x40_1000, 2, Fetch), (0x40_1002, 5, Fetch)][..], &again.repeat(3), &end].concat();
    assert_eq!(plain(&rows), want);
    assert_eq!(outcome.instructions, want.len() as u64);
}

/// An ARM program, assembled by hand: no cross compiler is needed, only `qemu-arm`.
#[test]
fn an_arm_program_is_recorded_by_qemu_arm() {
    let Some((dir, out)) = ready(&[("qemu-arm", "qemu-user")]) else { return };
    let code: [u32; 9] = [
        0xe59f_1018, // 10074: ldr  r1, 10094
        0xe3a0_2003, // 10078: mov  r2, #3
        0xe481_2004, // 1007c: str  r2, [r1], #4
        0xe252_2001, // 10080: subs r2, r2, #1
        0x1aff_fffc, // 10084: bne  1007c
        0xe3a0_7001, // 10088: mov  r7, #1
        0xe3a0_0009, // 1008c: mov  r0, #9
        0xef00_0000, // 10090: svc  0        exit(9)
        0x0002_0000, // 10094: the data's address
    ];
    // ELF-32 header (52 bytes), two program headers (32 each): code readable and executable, one page of data.
    let mut file = b"\x7fELF\x01\x01\x01\0\0\0\0\0\0\0\0\0".to_vec();
    file.extend([2u16, 40].into_iter().flat_map(u16::to_le_bytes));
    file.extend([1u32, 0x1_0074, 52, 0, 0x0500_0000].into_iter().flat_map(u32::to_le_bytes));
    file.extend([52u16, 32, 2, 0, 0, 0].into_iter().flat_map(u16::to_le_bytes));
    let end = 116 + 4 * code.len() as u32;
    file.extend([1u32, 0, 0x1_0000, 0x1_0000, end, end, 5, 4096].into_iter().flat_map(u32::to_le_bytes));
    file.extend([1u32, 0, 0x2_0000, 0x2_0000, 0, 4096, 6, 4096].into_iter().flat_map(u32::to_le_bytes));
    file.extend(code.into_iter().flat_map(u32::to_le_bytes));
    let program = dir.path().join("arm");
    std::fs::write(&program, file).unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();

    let outcome = run(&order(&program, &[], &out)).unwrap();
    assert_eq!(outcome.status.code(), Some(9));
    let (rows, provenance) = read(&out);
    let fetch = |at: u64| (at, 4, Fetch);
    let mut want = vec![fetch(0x1_0074), (0x1_0094, 4, Read), fetch(0x1_0078)];
    for turn in 0..3 {
        want.extend([fetch(0x1_007c), (0x2_0000 + 4 * turn, 4, Write), fetch(0x1_0080), fetch(0x1_0084)]);
    }
    want.extend([fetch(0x1_0088), fetch(0x1_008c), fetch(0x1_0090)]);
    assert_eq!(plain(&rows), want);
    let text = provenance.mappings.iter().find(|m| m.protection == "r-xp").unwrap();
    assert_eq!((text.start, text.end), (0x1_0000, 0x1_1000), "{provenance:?}");
}
