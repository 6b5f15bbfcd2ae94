//! What is read from, and written to, the kernel's files, on a made tree. The files are copies of real ones, shortened:
//! v1 from Linux 6.18; v2 after Documentation/admin-guide/cgroup-v2.rst.

use std::fs;
use std::io::Cursor;
use std::path::Path;

use coldframe_kernel::{serve, Counters, Group, LimitWatch, Place, Pool, SwapKind, SwapSpace, Swaps, Tree, Version};

/// A made tree: files by their absolute paths.
fn made(files: &[(&str, &str)]) -> (tempfile::TempDir, Tree) {
    let folder = tempfile::tempdir().unwrap();
    let tree = Tree::new(folder.path());
    for (path, text) in files {
        let path = tree.path(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    (folder, tree)
}

const SESSION: &str = "/sys/fs/cgroup/user.slice/user-1000.slice/session-1.scope";

fn two(files: &[(&str, &str)]) -> (tempfile::TempDir, Tree) {
    let mut all = vec![
        ("/proc/self/mounts", "cgroup2 /sys/fs/cgroup cgroup2 rw,nsdelegate 0 0\n"),
        ("/proc/self/cgroup", "0::/user.slice/user-1000.slice/session-1.scope\n"),
        ("/sys/fs/cgroup/cgroup.procs", ""),
        ("/sys/fs/cgroup/cgroup.controllers", "cpu io memory pids"),
        ("/sys/fs/cgroup/user.slice/cgroup.procs", ""),
        ("/sys/fs/cgroup/user.slice/user-1000.slice/cgroup.procs", ""),
        ("/sys/fs/cgroup/user.slice/user-1000.slice/session-1.scope/cgroup.procs", ""),
    ];
    all.extend(files);
    made(&all)
}

#[test]
fn with_v2_the_group_is_made_in_the_nearest_folder_that_hands_memory_on() {
    let control = "/sys/fs/cgroup/user.slice/cgroup.subtree_control";
    let (_folder, tree) = two(&[(control, "cpu memory"), ("/sys/fs/cgroup/cgroup.subtree_control", "memory")]);
    let place = Place::find(&tree).unwrap();
    let parent = tree.path("/sys/fs/cgroup/user.slice");
    assert_eq!(place, Place { version: Version::Two, parent, pressure: None, enable: false });
}

#[test]
fn with_v2_the_root_of_all_groups_is_told_to_hand_memory_on() {
    let (_folder, tree) = two(&[("/sys/fs/cgroup/cgroup.subtree_control", "cpu")]);
    let place = Place::find(&tree).unwrap();
    assert_eq!((place.parent, place.enable), (tree.path("/sys/fs/cgroup"), true));
}

#[test]
fn in_a_container_whose_root_group_has_processes_there_is_no_place() {
    let files = [("/sys/fs/cgroup/cgroup.subtree_control", "cpu"), ("/sys/fs/cgroup/cgroup.type", "domain")];
    let (_folder, tree) = two(&files);
    let error = Place::find(&tree).unwrap_err().to_string();
    assert!(error.contains(&tree.path(SESSION).display().to_string()) && error.contains("--privileged"), "{error}");
}

#[test]
fn without_memory_groups_one_sentence_says_so() {
    let (_folder, tree) = two(&[("/sys/fs/cgroup/cgroup.controllers", "cpu io pids")]);
    let error = Place::find(&tree).unwrap_err().to_string();
    assert!(error.contains("cgroup_enable=memory"), "{error}");
    let (_folder, tree) = made(&[("/proc/self/mounts", "proc /proc proc rw 0 0\n")]);
    let error = Place::find(&tree).unwrap_err().to_string();
    assert!(error.contains("no memory cgroup"), "{error}");
}

#[test]
fn with_v1_pressure_is_counted_by_a_second_group_where_v2_is_mounted() {
    let (_folder, tree) = made(&[
        (
            "/proc/self/mounts",
            "cgroup /sys/fs/cgroup/memory cgroup rw,memory 0 0\ncgroup2 /sys/fs/cgroup/unified cgroup2 rw 0 0\n",
        ),
        ("/proc/self/cgroup", "4:memory:/here\n0::/\n"),
        ("/sys/fs/cgroup/memory/here/cgroup.procs", ""),
        ("/sys/fs/cgroup/unified/cgroup.procs", ""),
        ("/sys/fs/cgroup/unified/cgroup.pressure", "1"),
    ]);
    let place = Place::find(&tree).unwrap();
    let (parent, pressure) = (tree.path("/sys/fs/cgroup/memory/here"), tree.path("/sys/fs/cgroup/unified"));
    assert_eq!(place, Place { version: Version::One, parent, pressure: Some(pressure), enable: false });
}

fn group(version: Version, files: &[(&str, &str)]) -> (tempfile::TempDir, Group) {
    let files: Vec<_> = files.iter().map(|(name, text)| (format!("/g/{name}"), *text)).collect();
    let files: Vec<_> = files.iter().map(|(name, text)| (name.as_str(), *text)).collect();
    let (folder, tree) = made(&files);
    (folder, Group::new(version, tree.path("/g"), None))
}

/// What both versions count here, by other names.
const COUNTED: Counters = Counters {
    faults: 30,
    major_faults: 6,
    refaults: 5,
    file_refaults: 3,
    near: 3,
    out: None,
    back: None,
    data: 8192,
    swapped: 12288,
    files: 4096,
    shared: 1024,
    mapped: 7,
    kernel: 77,
    locked: 9,
    zswap: 0,
    killed: 2,
};

#[test]
fn the_counters_of_v1_are_those_with_the_groups_below() {
    let stat = "rss 1\ntotal_cache 4096\ntotal_rss 8192\ntotal_mapped_file 7\ntotal_shmem 1024\n\
                total_workingset_refault_anon 5\ntotal_workingset_refault_file 3\ntotal_workingset_activate_anon 2\n\
                total_workingset_activate_file 1\ntotal_swap 12288\n\
                total_pgfault 30\ntotal_pgmajfault \
                6\ntotal_unevictable 9\n";
    let (_folder, group) = group(
        Version::One,
        &[
            ("memory.stat", stat),
            ("memory.kmem.usage_in_bytes", "77\n"),
            ("memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 2\n"),
            ("memory.limit_in_bytes", "9223372036854771712\n"),
            ("memory.max_usage_in_bytes", "99\n"),
            ("below/cgroup.procs", "12\n"),
            ("cgroup.procs", "10\n11\n"),
        ],
    );
    assert_eq!(group.counters(), COUNTED);
    assert_eq!((group.processes(), group.peak()), (vec![10, 11, 12], Some(99)));
    group.limit(1 << 20).unwrap();
    assert_eq!(fs::read_to_string(group.file("memory.limit_in_bytes")).unwrap(), "1048576");
}

#[test]
fn the_counters_of_v2_have_other_names_and_files() {
    let stat = "anon 8192\nfile 4096\nkernel 77\nfile_mapped 7\nshmem 1024\nunevictable 9\nzswap 50\n\
                workingset_refault_anon 5\nworkingset_refault_file 3\npgfault 30\npgmajfault 6\n\
                workingset_activate_anon 3\n\
                pswpin 2\npswpout 3\nzswpin 1\n";
    let (_folder, group) = group(
        Version::Two,
        &[
            ("memory.stat", stat),
            ("memory.swap.current", "12288\n"),
            ("memory.events", "low 0\noom 3\noom_kill 2\n"),
            ("memory.max", "max\n"),
            ("memory.pressure", "some avg10=0.00 total=2000000\nfull avg10=0.00 total=1000000\n"),
        ],
    );
    assert_eq!(
        (group.counters(), group.peak()),
        (Counters { zswap: 50, out: Some(12288), back: Some(12288), ..COUNTED }, None)
    );
    assert_eq!(group.stall().unwrap().some.as_secs(), 2);
    group.limit(1 << 20).unwrap();
    assert_eq!(fs::read_to_string(group.file("memory.max")).unwrap(), "1048576");
}

#[test]
fn swap_is_free_full_or_not_there() {
    let head = "Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n";
    let full = format!("{head}/dev/vda2                               partition\t100\t\t100\t\t-2\n");
    let half = format!("{full}/dev/zram0                              partition\t200\t\t50\t\t100\n");
    let ours = format!("{full}/dev/zram1                              partition\t200\t\t50\t\t32766\n");
    for (text, free, says, lasts) in [
        (head, 0, Some("no swap"), false),
        (&full, 0, Some("in use"), false),
        (&half, 150 << 10, None, true),
        (&ours, 150 << 10, None, false),
    ] {
        let (_folder, tree) = made(&[("/proc/swaps", text)]);
        let swaps = Swaps::read(&tree);
        assert_eq!((swaps.free(), swaps.lasts()), (free, lasts));
        let refusal = swaps.ready().err().map(|error| error.to_string());
        assert_eq!(refusal.is_some(), says.is_some(), "{refusal:?}");
        assert!(refusal.unwrap_or_default().contains(says.unwrap_or_default()));
    }
}

#[test]
fn the_ram_of_compressed_pages_is_that_of_zram_and_zswap_since_the_start_or_the_groups_part() {
    let (_folder, tree) = made(&[
        ("/proc/swaps", "Filename Type Size Used Priority\n/dev/zram3 partition 200 50 100\n"),
        ("/sys/block/zram3/mm_stat", "  81920    4000   12288        0    12288        0        0        0\n"),
        ("/sys/module/zswap/parameters/enabled", "Y\n"),
        ("/proc/meminfo", "MemTotal:  1000 kB\nZswap:  8 kB\nZswapped:  16 kB\n"),
    ]);
    let space = SwapSpace::on(&tree, Version::One);
    assert_eq!(space.compressed(None), Pool::default());
    fs::write(tree.path("/sys/block/zram3/mm_stat"), "114688 0 20480 0 0 0 0 0\n").unwrap();
    fs::write(tree.path("/proc/meminfo"), "Zswap:  12 kB\nZswapped:  16 kB\n").unwrap();
    assert_eq!(space.compressed(None), Pool { held: 32768, taken: 12288 });
    assert_eq!(space.compressed(Some(65536)), Pool { held: 65536, taken: 16384 }, "half of all");
}

/// A zram that was made for a run.
const SWAPS: &str = "Filename Type Size Used Priority\n/dev/zram3 partition 99999 0 32766\n";

#[test]
fn while_the_program_runs_its_limit_falls_by_what_compressed_pages_take_and_rises_again() {
    let (stat, mib) = ("/sys/block/zram3/mm_stat", |mib: u64| format!("0 0 {} 0 0 0 0 0\n", mib << 20));
    let (_folder, tree) = made(&[
        (stat, &mib(1)),
        ("/proc/swaps", SWAPS),
        ("/g/memory.limit_in_bytes", ""),
        ("/g/memory.usage_in_bytes", "8388608"),
    ]);
    let (group, space) =
        (Group::new(Version::One, tree.path("/g"), None), SwapSpace::new(&tree, Version::One, "/dev/zram3".into()));
    let watch = LimitWatch::start(&tree, &group, &space, 8 << 20).unwrap();
    let limit = || fs::read_to_string(group.file("memory.limit_in_bytes")).unwrap();
    for (compressed, expected) in [(1, 8u64), (6, 3), (25, 2), (2, 7)] {
        fs::write(tree.path(stat), mib(compressed)).unwrap();
        let began = std::time::Instant::now();
        while limit() != (expected << 20).to_string() {
            assert!(began.elapsed().as_secs() < 60, "{} for {compressed} MiB", limit());
            std::thread::yield_now();
        }
    }
    let usage = watch.end();
    assert_eq!((usage.compressed, usage.together, usage.limit), (24 << 20, 32 << 20, 7 << 20));
}

#[test]
fn a_group_has_its_part_of_all_compressed_pages_and_counts_its_own_pages_only() {
    let half = [
        ("/sys/block/zram3/mm_stat", "8388608 0 6291456 0 0 0 0 0\n"),
        ("/proc/swaps", SWAPS),
        ("/g/memory.limit_in_bytes", ""),
        ("/g/memory.usage_in_bytes", "1048576"),
        ("/g/memory.memsw.usage_in_bytes", "5242880"),
        ("/g/memory.stat", "total_workingset_refault_anon 512\n"),
    ];
    let (_folder, tree) = made(&half);
    let (group, space) =
        (Group::new(Version::One, tree.path("/g"), None), SwapSpace::new(&tree, Version::One, "/dev/zram3".into()));
    let watch = LimitWatch::start(&tree, &group, &space, 8 << 20).unwrap();
    while fs::read_to_string(group.file("memory.limit_in_bytes")).unwrap() != "5242880" {
        std::thread::yield_now();
    }
    assert_eq!(watch.full(), None, "they take three quarters of what they held");
    fs::write(tree.path("/sys/block/zram3/mm_stat"), "8388608 0 8388608 0 0 0 0 0\n").unwrap();
    while watch.full().is_none() {
        std::thread::yield_now();
    }
    let (full, usage) = (watch.full().unwrap(), watch.end());
    assert_eq!((full.held, full.taken, usage.compressed), (4 << 20, 4 << 20, 4 << 20));
    assert_eq!((usage.swapped_in, usage.swapped_out), (2 << 20, 6 << 20));
}

/// The guard's answers, which come while it serves.
struct Answers<F>(F);

impl<F: FnMut(&str)> std::io::Write for Answers<F> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        (self.0)(std::str::from_utf8(bytes).unwrap().trim_end_matches('\n'));
        Ok(bytes.len())
    }
    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// What the guard answers to these lines, and what it complains about at its end.
fn guard(tree: &Tree, lines: &[String], mut each: impl FnMut(&str)) -> (Vec<String>, Vec<String>) {
    let mut replies = Vec::new();
    let answers = Answers(|answer: &str| {
        each(answer);
        replies.push(answer.to_string());
    });
    let (complaints, rest) = serve(tree, Cursor::new(lines.join("\n")), answers);
    rest.finish(std::io::sink());
    (replies, complaints)
}

fn line(verb: &str, path: &Path) -> String {
    format!("{verb}\t{}", path.display())
}

#[test]
fn at_its_end_the_guard_takes_groups_away_and_puts_values_back() {
    let (_folder, tree) = made(&[("/limit", "512\n"), ("/cgroup.subtree_control", "cpu")]);
    let (limit, group, root) = (tree.path("/limit"), tree.path("/group"), tree.path("/"));
    let (mut in_time, control) = (false, root.join("cgroup.subtree_control"));
    let lines = [line("keep", &limit), line("group", &group), line("enable", &root)];
    let (replies, complaints) = guard(&tree, &lines, |_| {
        in_time = group.is_dir() && fs::read_to_string(&control).unwrap() == "+memory";
        fs::write(&limit, "64").unwrap();
    });
    assert!(replies.len() == 3 && replies.iter().all(|answer| answer.starts_with("ok\t")), "{replies:?}");
    assert_eq!((complaints, in_time), (vec![], true));
    assert!(!group.exists());
    assert_eq!(fs::read_to_string(tree.path("/limit")).unwrap(), "512");
    assert_eq!(fs::read_to_string(control).unwrap(), "-memory");
}

#[test]
fn the_guard_says_what_it_cannot_make_and_what_it_cannot_take_away() {
    let (_folder, tree) = made(&[]);
    let (group, nowhere) = (tree.path("/group"), tree.path("/no/where"));
    let lines =
        [line("group", &nowhere), line("keep", &nowhere), "zram\t4096\t".into(), "dance".into(), line("group", &group)];
    let (replies, complaints) = guard(&tree, &lines, |answer| {
        if answer.starts_with("ok") {
            // Something else is in the folder, and no process: it cannot be removed.
            fs::write(group.join("other"), "").unwrap();
        }
    });
    assert_eq!(replies.len(), 5);
    assert!(replies[..4].iter().all(|answer| answer.starts_with("no\t")) && replies[4] == "ok\t", "{replies:?}");
    assert!(replies[2].contains("modprobe zram") && replies[3].contains("dance"), "{replies:?}");
    let stays = format!("the group {} stays", group.display());
    assert!(complaints.len() == 1 && complaints[0].starts_with(&stays), "{complaints:?}");
}

#[test]
fn a_swap_file_that_is_there_already_is_left_alone() {
    let (_folder, tree) = made(&[("/mine", "precious"), ("/proc/meminfo", "MemTotal: 70000 kB\n")]);
    let mine = tree.path("/mine");
    let (replies, complaints) = guard(&tree, &[line("file\t4096", &mine)], |_| ());
    assert!(replies[0].starts_with("no\t") && replies[0].contains("new file"), "{replies:?}");
    assert_eq!((complaints, fs::read_to_string(mine).unwrap()), (vec![], "precious".into()));
}

#[test]
fn a_swap_is_none_zram_a_file_or_a_file_behind_zswap_and_is_written_as_it_is_read() {
    let kinds = [("none", None), ("zram", None), ("/a/b", Some("/a/b")), ("zswap:/a/b", Some("/a/b"))];
    for (text, file) in kinds {
        let kind = SwapKind::parse(text);
        assert_eq!((kind.to_string().as_str(), kind.file()), (text, file.map(Path::new)));
    }
    let (_folder, tree) = made(&[("/sys/module/zswap/parameters/enabled", "N")]);
    assert!(SwapKind::parse("zswap:/a").check(&tree).is_ok());
    assert!(SwapKind::parse("zram").check(&tree).unwrap_err().to_string().contains("modprobe zram"));
}

#[test]
fn a_group_without_swap_has_a_limit_and_no_way_to_swap() {
    let v1 = [("memory.limit_in_bytes", "9"), ("memory.swappiness", "60"), ("memory.memsw.limit_in_bytes", "9")];
    let v2 = [("memory.max", "max"), ("memory.swap.max", "max")];
    for (version, files, written) in
        [(Version::One, &v1[..], &["4096", "0", "4096"][..]), (Version::Two, &v2[..], &["4096", "0"][..])]
    {
        let (_folder, group) = group(version, files);
        group.limit_without_swap(4096).unwrap();
        for ((file, _), value) in files.iter().zip(written) {
            assert_eq!(fs::read_to_string(group.file(file)).unwrap(), *value, "{file}");
        }
    }
    // A kernel that does not count RAM and swap together, and one without swap.
    for (version, file) in [(Version::One, &v1[..2]), (Version::Two, &v2[..1])] {
        group(version, file).1.limit_without_swap(4096).unwrap();
    }
}

#[test]
fn zswap_is_as_before_at_the_end() {
    let parameters = [("compressor", "lzo"), ("max_pool_percent", "20"), ("enabled", "N")];
    let paths = parameters.map(|(name, value)| (format!("/sys/module/zswap/parameters/{name}"), value));
    let (folder, tree) = made(&paths.each_ref().map(|(path, value)| (path.as_str(), *value)));
    // The file cannot be made, so that no real swap is turned on.
    let (replies, complaints) = guard(&tree, &[line("zswap\t4096", &folder.path().join("no/where"))], |_| ());
    assert!(replies[0].starts_with("no\t") && complaints.is_empty(), "{replies:?} {complaints:?}");
    for (path, value) in paths {
        assert_eq!(tree.text(path), value);
    }
}

#[test]
fn a_new_swap_is_as_large_as_asked_for_and_else_leaves_half_of_the_disk_free() {
    let (folder, tree) = made(&[("/proc/meminfo", "MemTotal: 999999999 kB\n")]);
    let file = SwapKind::File(folder.path().join("swap"));
    // The pages, and one for the header that swap begins with.
    assert_eq!(file.size(&tree, Some(3 << 20)), (3 << 20) + 4096);
    let disk = rustix::fs::statvfs(folder.path()).unwrap();
    let (free, most) = (disk.f_bavail * disk.f_frsize, 8 << 30);
    assert!(file.size(&tree, None) <= most.min(free / 2 + (64 << 20)), "{free}");
    assert_eq!(SwapKind::Zram.size(&tree, None), most);
}
