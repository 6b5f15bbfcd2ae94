//! Crowds: more threads than the smallest RAM has pages for, and lists so short that the pages of one event evict each
//! other.

mod apart;

use std::sync::atomic::{AtomicU64, Ordering};

use coldframe_core::policy::{self, ParamKind};
use coldframe_live::{Options, Pager, Region, FRAMES_MIN, PAGE};

fn pager(frames: usize, policy: &str, change: impl FnOnce(&mut Options)) -> Pager {
    let ram = (frames * PAGE) as u64;
    let mut options = Options { policy: Some(policy.to_string()), max_memory: 1 << 26, ..Options::new(ram) };
    change(&mut options);
    Pager::start(options).unwrap()
}

/// The word of a page that one thread writes.
fn word(region: &Region, page: usize, thread: usize) -> &AtomicU64 {
    // SAFETY: inside the region and aligned; all access to these words is atomic.
    unsafe { AtomicU64::from_ptr(region.as_ptr().add(page * PAGE + thread * 64).cast()) }
}

/// Each thread counts up its own word in random pages, and checks that it reads what it wrote last.
fn count_up(region: &Region, threads: usize, steps: u64) {
    let pages = region.len() / PAGE;
    let one = |thread: usize| {
        let mut random = fastrand::Rng::with_seed(thread as u64);
        let mut last = vec![0; pages];
        for step in 1..=steps {
            let page = random.usize(..pages);
            let place = word(region, page, thread);
            assert_eq!(place.load(Ordering::Relaxed), last[page], "thread {thread} page {page}");
            if step % 2 == 0 {
                last[page] = step;
                place.store(step, Ordering::Relaxed);
            }
        }
    };
    std::thread::scope(|scope| (0..threads).for_each(|thread| _ = scope.spawn(move || one(thread))));
}

fn forty_threads(handlers: usize) {
    for policy in ["fifo", "fifo-sc:valid=2", "multi-queue", "clock-pro", "s3-fifo"] {
        let pager = pager(FRAMES_MIN, policy, |o| o.handlers = handlers);
        let region = pager.anonymous(4 * FRAMES_MIN * PAGE).unwrap();
        count_up(&region, 40, 100);
        pager.check();
    }
}

#[test]
fn forty_threads_in_sixty_four_frames_come_to_their_end() {
    let name = "forty_threads_in_sixty_four_frames_come_to_their_end";
    apart::well(name, || [3, 26].into_iter().for_each(forty_threads));
}

/// Two passes in order. Pages come in long lists, and each list evicts its own pages.
fn two_passes(policy: &str) {
    let pager = pager(FRAMES_MIN, policy, |o| o.read_ahead = 31);
    let region = pager.anonymous(3 * FRAMES_MIN * PAGE).unwrap();
    for round in 0..2 {
        for page in 0..region.len() / PAGE {
            let place = word(&region, page, 0);
            assert_eq!(place.load(Ordering::Relaxed), round * (page as u64 + 1), "{policy}: page {page}");
            place.store(page as u64 + 1, Ordering::Relaxed);
        }
    }
    pager.check();
}

/// Each policy with its parameters; required parameters and `valid` have all small values.
fn policies() -> Vec<String> {
    let mut all = Vec::new();
    for spec in policy::ALL {
        let open = spec.params.iter().find(|param| match param.kind {
            ParamKind::Count { default, .. } => default.is_none(),
            ParamKind::Frames { default_percent } => default_percent.is_none(),
            _ => false,
        });
        match open {
            Some(param) => all.extend((1..=16).map(|value| format!("{}:{}={value}", spec.name, param.name))),
            None => all.push(spec.name.to_string()),
        }
    }
    all
}

#[test]
fn a_list_of_any_length_is_passed_twice_with_the_longest_read_ahead() {
    apart::well("a_list_of_any_length_is_passed_twice_with_the_longest_read_ahead", || {
        policies().iter().for_each(|policy| two_passes(policy));
    });
}
