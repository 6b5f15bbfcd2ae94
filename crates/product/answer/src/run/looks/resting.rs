//! Code and other pages of files that nobody writes leave when all memory of a run is short and paged memory pays for
//! that: the kernel reads what is in use again. Without a memory group nothing else takes them.

use std::ops::Range;
use std::time::{Duration, Instant};

use coldframe_proc::{advise, mappings, Advice, Process};
use rustix::process::{pidfd_open, Pid, PidfdFlags};

/// Files that take less are left alone: a part of the RAM.
pub(super) const LEAST: u64 = 16;
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
    /// The bytes of files in RAM when they left last; the largest number: nothing has left.
    before: u64,
    /// The bytes that had come back from the swap file then.
    read: u64,
    /// Whether what has left lately has its room.
    has_room: bool,
    /// The kernel does not allow it.
    refused: bool,
}

/// How short memory is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shortage {
    /// All RAM, and the bytes of files in it.
    pub ram: u64,
    pub files: u64,
    /// Whether no room is left, and whether the run has more than its RAM.
    pub full: bool,
    pub over: bool,
    /// The bytes that have come back from the swap file.
    pub read: u64,
}

impl Resting {
    pub(super) fn new(now: Instant) -> Resting {
        Resting { due: now, pause: PAUSE.0, settled: now, before: u64::MAX, read: 0, has_room: false, refused: false }
    }

    pub(super) fn settled(&self) -> Instant {
        self.settled
    }

    /// What stays free for those that come back later, if so many bytes are in RAM: half of what has left lately.
    pub(super) fn room(&self, files: u64) -> u64 {
        if self.has_room {
            self.before.saturating_sub(files) / 2
        } else {
            0
        }
    }

    /// Whether as much has come back from the swap file as files take. All of them may be in use, and are read again
    /// then: so no more is read than twice what would have been read in any case.
    pub(super) fn is_paid(&self, files: u64, read: u64, now: Instant) -> bool {
        now >= self.due && !self.refused && read.saturating_sub(self.read) >= files
    }

    /// Whether pages of files are to leave now.
    fn leave(&mut self, short: Shortage, now: Instant) -> bool {
        if self.refused || now < self.due {
            return false;
        }
        self.has_room = false;
        let paid = self.is_paid(short.files, short.read, now);
        if short.files < short.ram / LEAST || !(short.over || short.full && paid) {
            return false;
        }
        // What has come back is in use.
        self.pause = if short.files > self.before / 2 { (2 * self.pause).min(PAUSE.1) } else { PAUSE.0 };
        (self.before, self.read, self.has_room) = (short.files, short.read, true);
        (self.due, self.settled) = (now + self.pause, now + SETTLED);
        true
    }

    /// Lets them leave, if it is time. Returns whether they were asked to.
    pub(super) fn look(&mut self, processes: &[u32], short: Shortage) -> bool {
        let leave = self.leave(short, Instant::now());
        if leave {
            let allowed = processes.iter().filter(|process| push_out(**process)).count();
            self.refused = allowed == 0;
            self.has_room &= !self.refused;
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

    fn need(files: u64, read: u64) -> Shortage {
        Shortage { ram: 160, files, full: true, over: false, read }
    }

    #[test]
    fn files_leave_when_as_much_has_come_back_and_the_less_often_the_more_of_them_is_in_use() {
        let began = Instant::now();
        let mut resting = Resting::new(began);
        assert_eq!(resting.room(0), 0, "nothing has left");
        let mut at = |seconds, need| resting.leave(need, began + Duration::from_secs(seconds));
        assert!(!at(0, Shortage { full: false, ..need(100, 900) }), "there is room");
        assert!(!at(0, need(9, 900)), "they are few");
        assert!(!at(0, need(100, 99)), "to read them again would take longer than what has come back");
        assert!(at(0, need(100, 100)) && !at(0, need(100, 900)), "and not again at once");
        assert!(!at(1, need(40, 139)) && at(1, need(40, 140)), "less than half has come back");
        assert!(at(2, need(40, 180)), "all has: twice as long a pause");
        assert!(!at(3, need(40, 900)) && at(4, need(40, 900)) && !at(7, need(40, 999)));
        assert!(at(8, need(10, 999)) && at(9, need(10, 1100)), "a new phase with other code");
        assert!(at(11, Shortage { over: true, ..need(10, 1100) }), "it has more than its RAM");
        assert_eq!([resting.room(4), resting.room(12)], [3, 0]);
        assert!(!resting.leave(need(4, 1100), began + Duration::from_secs(20)));
        assert_eq!(resting.room(0), 0, "what has not come back since then has its room no more");
    }

    #[test]
    fn what_may_not_leave_has_no_room() {
        let mut resting = Resting::new(Instant::now());
        assert!(resting.look(&[i32::MAX as u32], need(100, 100)), "there is no such process");
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
