//! What `/proc/PID` says about a process, its threads and its children. Whatever cannot be read is empty: a process may
//! end at any time.

use std::fs::{read, read_to_string};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

use crate::text::{field, numbers_in, printable, text};

/// A process by its number, whether it is there or not.
#[derive(Debug, Clone)]
pub struct Process {
    pid: u32,
    folder: PathBuf,
}

/// Whose referenced bits are cleared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum References {
    /// Those of all pages.
    All = 1,
    /// Those of mappings of files.
    Files = 3,
}

/// What is used of `/proc/PID/stat` (`proc_pid_stat(5)`); zero for a field that is not there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Stat {
    /// `R` runs, `S` sleeps, `D` waits for a device, `T` and `t` are stopped, `Z` and `X` have ended.
    pub state: char,
    /// The process group.
    pub group: u32,
    /// `PF_` flags of include/linux/sched.h.
    pub flags: u32,
    /// Ticks of a hundredth of a second that it has waited for block devices, swap among them. The kernel counts them
    /// if `kernel.task_delayacct` is on.
    pub delay_ticks: u64,
    /// When it began, in ticks since the machine did: another process of its number began later.
    pub began: u64,
}

impl Stat {
    /// It has ended, and its parent has not asked for its status.
    pub fn ended(&self) -> bool {
        matches!(self.state, 'Z' | 'X')
    }

    /// Stopped, by a signal or a tracer.
    pub fn stopped(&self) -> bool {
        matches!(self.state, 'T' | 't')
    }
}

/// A line of `/proc/PID/cgroup`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cgroup {
    /// The number of its hierarchy; 0 is version 2.
    pub hierarchy: u32,
    /// The controllers of a hierarchy of version 1.
    pub controllers: Vec<String>,
    /// From the root of the hierarchy.
    pub path: String,
}

impl Process {
    pub(crate) fn new(pid: u32, folder: PathBuf) -> Process {
        Process { pid, folder }
    }

    /// A process of this machine.
    pub fn of(pid: u32) -> Process {
        Process::new(pid, format!("/proc/{pid}").into())
    }

    /// A file of its folder.
    pub fn file(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Whether its number stands for a process, even one that has ended.
    pub fn exists(&self) -> bool {
        self.folder.exists()
    }

    /// Its state and counters; `None`: it is not there.
    pub fn stat(&self) -> Option<Stat> {
        stat(&text(&self.file("stat")))
    }

    /// The same for each of its threads.
    pub fn thread_stats(&self) -> Vec<Stat> {
        self.threads()
            .into_iter()
            .filter_map(|thread| stat(&text(&self.file(&format!("task/{thread}/stat")))))
            .collect()
    }

    /// The numbers of its threads.
    pub fn threads(&self) -> Vec<u32> {
        numbers_in(&self.file("task"))
    }

    /// The processes that it has started and that still are its children. A kernel without `CONFIG_PROC_CHILDREN` names
    /// none.
    pub fn children(&self) -> Vec<u32> {
        let lists = self.threads().into_iter().map(|thread| self.file(&format!("task/{thread}/children")));
        let texts: Vec<String> = lists.filter_map(|list| read_to_string(list).ok()).collect();
        texts.iter().flat_map(|text| text.split_ascii_whitespace()).filter_map(|word| word.parse().ok()).collect()
    }

    /// Itself, its children, their children and so on.
    pub fn with_descendants(&self) -> Vec<u32> {
        let (mut processes, mut position) = (vec![self.pid], 0);
        while let Some(process) = processes.get(position) {
            let folder = self.folder.with_file_name(process.to_string());
            let new: Vec<_> = Process::new(*process, folder)
                .children()
                .into_iter()
                .filter(|child| !processes.contains(child))
                .collect();
            processes.extend(new);
            position += 1;
        }
        processes
    }

    /// Nanoseconds that its threads were ready and had no processor; 0 if the kernel does not count them.
    pub fn ready_ns(&self) -> u64 {
        self.schedule_ns(1)
    }

    /// Nanoseconds that its threads had a processor; 0 if the kernel does not count them.
    pub fn run_ns(&self) -> u64 {
        self.schedule_ns(0)
    }

    /// `proc_pid_schedstat(5)`.
    fn schedule_ns(&self, field: usize) -> u64 {
        let texts = self.threads().into_iter().map(|thread| text(&self.file(&format!("task/{thread}/schedstat"))));
        texts.filter_map(|text| text.split(' ').nth(field)?.parse::<u64>().ok()).sum()
    }

    /// Bytes of its page tables; 0: it has ended.
    pub fn page_table_bytes(&self) -> u64 {
        field(&text(&self.file("status")), "VmPTE").unwrap_or(0)
    }

    /// At least the most RAM of anonymous memory that its program has had at a time so far, if what it has of files has
    /// not become more since: `VmHWM` of `proc_pid_status(5)` without files and shared memory; 0: it has ended. Pages
    /// that were read and never written take none: the kernel maps one page of zeros for all of them.
    pub fn anonymous_peak_bytes(&self) -> u64 {
        let status = text(&self.file("status"));
        let [peak, files, shared] = ["VmHWM", "RssFile", "RssShmem"].map(|name| field(&status, name).unwrap_or(0));
        peak.saturating_sub(files + shared)
    }

    /// The name of its program, as it can be shown.
    pub fn name(&self) -> String {
        printable(&text(&self.file("comm")))
    }

    /// Its program and arguments, of any characters.
    pub fn command_line(&self) -> Vec<String> {
        let bytes = read(self.file("cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&bytes).trim_end_matches('\0').split('\0').map(String::from).collect()
    }

    /// Its user; a program that protects itself belongs to root.
    pub fn owner(&self) -> String {
        let uid = std::fs::metadata(self.file(".")).map_or(0, |folder| folder.uid());
        let users = read_to_string("/etc/passwd").unwrap_or_default();
        let entry = |line: &str| {
            let mut words = line.split(':');
            let name = words.next()?.to_string();
            (words.nth(1)?.parse() == Ok(uid)).then_some(name)
        };
        users.lines().find_map(entry).unwrap_or_else(|| format!("user {uid}"))
    }

    /// The groups that it is in, one for each hierarchy.
    pub fn cgroups(&self) -> Vec<Cgroup> {
        cgroups(&text(&self.file("cgroup")))
    }

    /// Text for [`mappings`](crate::mappings), without counts.
    pub fn maps(&self) -> String {
        self.lossy("maps").unwrap_or_default()
    }

    /// Text for [`mappings`](crate::mappings), with counts.
    ///
    /// # Errors
    /// The process is gone, or another user's.
    pub fn smaps(&self) -> io::Result<String> {
        self.lossy("smaps")
    }

    /// Clears the bits that say that its pages were referenced (`proc_pid_clear_refs(5)`).
    ///
    /// # Errors
    /// It has ended, is another user's, or the kernel has no such bits.
    pub fn clear_references(&self, which: References) -> io::Result<()> {
        std::fs::write(self.file("clear_refs"), (which as u8).to_string())
    }

    /// Paths may have any bytes.
    fn lossy(&self, name: &str) -> io::Result<String> {
        read(self.file(name)).map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
    }

    /// Whether it reads its standard input just now.
    pub fn reads_stdin(&self) -> bool {
        let read = if cfg!(target_arch = "x86_64") { "0" } else { "63" };
        let text = read_to_string(self.file("syscall")).unwrap_or_default();
        let mut words = text.split_ascii_whitespace();
        words.next() == Some(read) && words.next() == Some("0x0")
    }

    /// Its size in pages, in RAM, and the part of that in RAM that files and shared memory have: `statm`, which costs
    /// hardly anything. `None`: it is not there or has no memory any more.
    pub fn pages(&self) -> Option<[u64; 3]> {
        let numbers = statm(&read_to_string(self.file("statm")).ok()?)?;
        (numbers[0] > 0).then_some(numbers)
    }
}

/// The name, in brackets, may contain anything, so fields are counted from the last bracket.
fn stat(text: &str) -> Option<Stat> {
    let mut words = text.rsplit_once(')')?.1.split_ascii_whitespace();
    let state = words.next()?.chars().next()?;
    let words: Vec<&str> = words.collect();
    // The manual counts fields from 1; the state is the third.
    let field = |number: usize| words.get(number - 4).copied().unwrap_or("0");
    let (group, flags) = (field(5).parse().unwrap_or(0), field(9).parse().unwrap_or(0));
    let (delay_ticks, began) = (field(42).parse().unwrap_or(0), field(22).parse().unwrap_or(0));
    Some(Stat { state, group, flags, delay_ticks, began })
}

/// `NUMBER:CONTROLLER,CONTROLLER:PATH`.
fn cgroups(text: &str) -> Vec<Cgroup> {
    let group = |line: &str| {
        let mut parts = line.splitn(3, ':');
        let (number, controllers, path) = (parts.next()?, parts.next()?, parts.next()?);
        let controllers = controllers.split(',').map(String::from).collect();
        Some(Cgroup { hierarchy: number.parse().ok()?, controllers, path: path.into() })
    };
    text.lines().filter_map(group).collect()
}

fn statm(text: &str) -> Option<[u64; 3]> {
    let mut words = text.split_ascii_whitespace().map_while(|word| word.parse().ok());
    Some([words.next()?, words.next()?, words.next()?])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_of_stat_are_counted_behind_the_name() {
        let before =
            "1 (a) b (c) d) S 2 55 4 5 6 2097152 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30";
        let text = format!("{before} 31 32 33 34 35 36 37 38 39 77");
        assert_eq!(stat(&text), Some(Stat { state: 'S', group: 55, flags: 0x20_0000, delay_ticks: 77, began: 20 }));
        assert_eq!(stat("77 (a) T"), Some(Stat { state: 'T', ..Stat::default() }));
        assert_eq!(stat("no process"), None);
        assert!(stat("7 (x) Z 1").unwrap().ended() && stat("7 (x) t 1").unwrap().stopped());
    }

    #[test]
    fn groups_have_a_hierarchy_and_a_path_that_may_have_colons() {
        let all = cgroups("4:memory,hugetlb:/a:b\n0::/user.slice\nnonsense\n");
        assert_eq!((all[0].hierarchy, all[0].path.as_str(), all.len()), (4, "/a:b", 2));
        assert_eq!(all[0].controllers, ["memory", "hugetlb"]);
        assert_eq!((all[1].hierarchy, all[1].path.as_str()), (0, "/user.slice"));
    }

    #[test]
    fn this_process_reads_itself_and_one_that_is_not_there_is_empty() {
        let (own, none) = (Process::of(std::process::id()), Process::of(1 << 23));
        assert!(own.exists() && !own.stat().unwrap().ended() && !own.thread_stats().is_empty());
        assert!(!own.command_line()[0].is_empty() && !own.name().is_empty());
        assert!(own.smaps().is_ok_and(|text| crate::mappings(&text).iter().any(|one| one.counts.rss > 0)));
        assert!(crate::mappings(&own.maps()).iter().any(|one| one.rights == "r-xp") && own.pages().is_some());
        assert!(!none.exists() && none.stat().is_none() && none.threads().is_empty() && none.pages().is_none());
        assert!(none.smaps().is_err() && none.cgroups().is_empty() && none.children().is_empty());
    }

    #[test]
    fn descendants_are_children_and_their_children() {
        let folder = std::env::temp_dir().join(format!("coldframe-proc-{}", std::process::id()));
        for (pid, children) in [(5, "6 7 "), (6, ""), (7, "8"), (8, "")] {
            let task = folder.join(format!("proc/{pid}/task/{pid}"));
            std::fs::create_dir_all(&task).unwrap();
            std::fs::write(task.join("children"), children).unwrap();
        }
        assert_eq!(Process::new(5, folder.join("proc/5")).with_descendants(), [5, 6, 7, 8]);
        std::fs::remove_dir_all(folder).unwrap();
    }
}
