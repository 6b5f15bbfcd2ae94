//! Code and other pages of files that nobody writes leave when all memory of a run is short: the kernel reads what is
//! in use again. Without a memory group nothing else takes them, and paged memory would pay for all.

use std::ops::Range;
use std::time::{Duration, Instant};

use coldframe_proc::{advise, mappings, Advice, Process};
use rustix::process::{pidfd_open, Pid, PidfdFlags};

/// Files that take less are left alone: a part of the RAM.
const LEAST: u64 = 16;
/// The pause between two times, at first and at most. Guesses: what is in use comes back in some 10 ms.
const PAUSE: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(60));

/// What is in use has come back by then: its room stays free so long. A guess.
const SETTLED: Duration = Duration::from_millis(100);

/// When pages of files leave.
#[derive(Clone, Copy, Debug)]
pub(super) struct Resting {
    due: Instant,
    pause: Duration,
    /// When what is in use has come back.
    settled: Instant,
    /// The bytes of files in RAM when they left last; the largest number: nothing has left lately.
    before: u64,
    /// The kernel does not allow it.
    refused: bool,
}

impl Resting {
    pub(super) fn new(now: Instant) -> Resting {
        Resting { due: now, pause: PAUSE.0, settled: now, before: u64::MAX, refused: false }
    }

    pub(super) fn settled(&self) -> Instant {
        self.settled
    }

    /// What stays free for those that come back later, if so many bytes are in RAM: half of what has left lately.
    pub(super) fn room(&self, files: u64) -> u64 {
        match self.before {
            u64::MAX => 0,
            before => before.saturating_sub(files) / 2,
        }
    }

    /// Whether pages of files are to leave now: so many bytes of them are in this much RAM, which is short or not.
    fn leave(&mut self, files: u64, ram: u64, short: bool, now: Instant) -> bool {
        if self.refused || now < self.due {
            return false;
        }
        if !short || files < ram / LEAST {
            self.before = u64::MAX;
            return false;
        }
        // What has come back is in use.
        self.pause = if files > self.before / 2 { (2 * self.pause).min(PAUSE.1) } else { PAUSE.0 };
        (self.before, self.due, self.settled) = (files, now + self.pause, now + SETTLED);
        true
    }

    /// Lets them leave, if it is time. Returns whether they were asked to.
    pub(super) fn look(&mut self, processes: &[u32], files: u64, ram: u64, short: bool) -> bool {
        let leave = self.leave(files, ram, short, Instant::now());
        if leave {
            let allowed = processes.iter().filter(|process| push_out(**process)).count();
            if allowed == 0 {
                (self.refused, self.before) = (true, u64::MAX);
            }
        }
        leave
    }
}

/// Whether the kernel allows it. A page that other processes map stays.
fn push_out(process: u32) -> bool {
    let maps = Process::of(process).maps();
    let pages: Vec<Range<u64>> =
        mappings(&maps).iter().filter(|it| is_unwritten(it.inode, it.rights)).map(|it| it.start..it.end).collect();
    let handle = Pid::from_raw(process as i32).map(|pid| pidfd_open(pid, PidfdFlags::empty()));
    handle.is_some_and(|handle| handle.is_ok_and(|handle| advise(handle, &pages, Advice::PageOut, &|| false).is_ok()))
}

/// Whether a mapping is of a file and nobody writes it: its pages are those of the file.
pub(super) fn is_unwritten(inode: u64, rights: &str) -> bool {
    inode > 0 && !rights.contains('w')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_leave_when_memory_is_short_and_the_less_often_the_more_of_them_is_in_use() {
        let (ram, began) = (160, Instant::now());
        let mut resting = Resting::new(began);
        assert_eq!(resting.room(0), 0, "nothing has left");
        let mut at = |seconds, files, short| resting.leave(files, ram, short, began + Duration::from_secs(seconds));
        assert!(!at(0, 100, false), "there is room");
        assert!(!at(0, 9, true), "they are few");
        assert!(at(0, 100, true) && !at(0, 100, true), "and not again at once");
        assert!(at(1, 40, true), "less than half has come back");
        assert!(at(2, 40, true), "all has: twice as long a pause");
        assert!(!at(3, 40, true) && at(4, 40, true) && !at(7, 40, true));
        assert!(at(8, 10, true) && at(9, 10, true), "a new phase with other code");
        assert_eq!([resting.room(4), resting.room(12)], [3, 0]);
        assert!(!resting.leave(4, ram, true, began + Duration::from_secs(20)));
        assert_eq!(resting.room(0), 0, "what has not come back since then has its room no more");
    }

    #[test]
    fn what_may_not_leave_has_no_room() {
        let mut resting = Resting::new(Instant::now());
        assert!(resting.look(&[i32::MAX as u32], 100, 160, true), "there is no such process");
        assert_eq!((resting.refused, resting.room(0)), (true, 0));
    }

    #[test]
    fn pages_of_files_leave_and_come_back_as_they_were() {
        // A tmpfs has no disk for them.
        let folder = tempfile::tempdir_in("/var/tmp").unwrap();
        let path = folder.path().join("file");
        std::fs::write(&path, vec![7u8; 1 << 20]).unwrap();
        std::fs::File::open(&path).unwrap().sync_all().unwrap();
        let text = |process: u32| std::fs::read_to_string(format!("/proc/{process}/smaps")).unwrap_or_default();
        let in_ram = |process: u32| {
            let text = text(process);
            let all = mappings(&text);
            all.iter().filter(|it| it.name == path.to_string_lossy()).map(|it| it.counts.rss).sum::<u64>()
        };
        let program = "import mmap, sys
f = open(sys.argv[1], 'rb')
m = mmap.mmap(f.fileno(), 0, prot=mmap.PROT_READ)
for _ in sys.stdin:
    print(sum(m[::4096]), flush=True)
";
        let mut command = std::process::Command::new("python3");
        command
            .args(["-c", program])
            .arg(&path)
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::piped());
        let Ok(mut child) = command.spawn() else { return eprintln!("skipped: no python3") };
        let (mut to, from) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let mut lines = std::io::BufRead::lines(std::io::BufReader::new(from));
        let mut sum = || {
            std::io::Write::write_all(&mut to, b"\n").unwrap();
            lines.next().unwrap().unwrap()
        };
        assert_eq!((sum(), in_ram(child.id())), ("1792".into(), 1024));
        if push_out(child.id()) {
            assert!(in_ram(child.id()) < 512, "{}", in_ram(child.id()));
        } else {
            eprintln!("skipped: this user may not push pages of another process out");
        }
        assert_eq!(sum(), "1792");
        drop(to);
        child.wait().unwrap();
    }
}
