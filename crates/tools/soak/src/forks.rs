//! Forked children. A child sees the memory as it was at the fork, whatever its parent writes afterwards. The parent
//! does not see what the child writes.

use std::time::{Duration, Instant};

use coldframe_live::calls::{block_signals, restore_signals};
use coldframe_live::Pager;
use fastrand::Rng;

use crate::area::Area;
use crate::setting::Setting;
use crate::wrong;

/// The most pages that a child checks; a random sample of the area.
const SAMPLE: usize = 400;

/// Forks at random times, and keeps track of the children.
pub struct Forks<'a> {
    pager: &'a Pager,
    setting: &'a Setting,
    area: Area,
    children: Vec<libc::pid_t>,
    next: Instant,
}

impl<'a> Forks<'a> {
    pub fn new(pager: &'a Pager, setting: &'a Setting, area: Area) -> Forks<'a> {
        Forks { pager, setting, area, children: Vec::new(), next: Instant::now() }
    }

    /// Forks if it is time, and removes children that have ended. `last`: the forking thread's versions.
    pub fn step(&mut self, thread: usize, last: &[u32], random: &mut Rng) {
        if self.setting.fork_ms == 0 || Instant::now() < self.next {
            return;
        }
        self.next = Instant::now() + Duration::from_millis(random.u64(1..2 * self.setting.fork_ms));
        self.children.retain(|pid| !gone(*pid, libc::WNOHANG));
        if self.children.len() < self.setting.children {
            let pid =
                fork(self.pager, self.setting, || child(self.pager, self.setting, &self.area, thread, last, random, 0));
            self.children.push(pid);
        }
    }

    pub fn finish(self) {
        self.children.iter().for_each(|pid| _ = gone(*pid, 0));
    }
}

/// Forks as a program does. The child runs `f` and ends.
fn fork(pager: &Pager, setting: &Setting, f: impl FnOnce()) -> libc::pid_t {
    let tells = setting.program;
    let mask = block_signals();
    if tells {
        pager.fork_prepare(coldframe_live::ForkedChild::Pages);
    }
    // SAFETY: the child runs `f`, which allocates only from an allocator that works after a fork, and then ends.
    let pid = unsafe { libc::fork() };
    if pid == 0 {
        if tells {
            pager.fork_child();
        }
        restore_signals(mask);
        f();
        // SAFETY: ends the child.
        unsafe { libc::_exit(0) };
    }
    let error = std::io::Error::last_os_error();
    if tells {
        pager.fork_parent().expect("memory can be inherited");
    }
    restore_signals(mask);
    if pid < 0 {
        wrong(format_args!("no fork: {error}"));
    }
    pid
}

/// Whether the child has ended. Ends this process if the child failed.
fn gone(pid: libc::pid_t, flags: i32) -> bool {
    let mut status = 0;
    // SAFETY: `status` lives through the call.
    match unsafe { libc::waitpid(pid, &mut status, flags) } {
        0 => false,
        _ if status == 0 => true,
        _ => wrong(format_args!("child {pid} ended with status {status:#x}")),
    }
}

fn child(pager: &Pager, setting: &Setting, area: &Area, thread: usize, last: &[u32], random: &mut Rng, depth: u32) {
    // SAFETY: a child whose parent was killed ends, too.
    unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) };
    let mut last = last.to_vec();
    let pages: Vec<usize> = (0..SAMPLE.min(area.pages)).map(|_| random.usize(..area.pages)).collect();
    let words = look(area, setting, &pages);
    for page in &pages {
        area.check_all(*page, thread, last[*page]);
    }
    for page in pages.iter().take(random.usize(..SAMPLE)) {
        area.write(*page, thread, &mut last[*page]);
    }
    if depth < 3 && random.u8(..4) == 0 {
        let pid = fork(pager, setting, || child(pager, setting, area, thread, &last, random, depth + 1));
        _ = gone(pid, 0);
    }
    // Other threads' words cannot change in the child: those threads do not exist here.
    let again = look(area, setting, &pages);
    let same = |(a, b): (&Vec<u64>, &Vec<u64>)| a.iter().zip(b).enumerate().all(|(t, (a, b))| t == thread || a == b);
    if let Some(i) = words.iter().zip(&again).position(|pair| !same(pair)) {
        wrong(format_args!("a child saw page {} as {:x?}, then as {:x?}", pages[i], words[i], again[i]));
    }
    for page in &pages {
        area.check_all(*page, thread, last[*page]);
    }
}

fn look(area: &Area, setting: &Setting, pages: &[usize]) -> Vec<Vec<u64>> {
    let words = |page: &usize| (0..setting.threads).map(|t| area.look(*page, t, page % Area::words())).collect();
    pages.iter().map(words).collect()
}
