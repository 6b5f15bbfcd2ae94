//! What a seed stands for: one way to run the pager. All values are drawn in a fixed order, so a seed always gives the
//! same setting.

use std::fmt;
use std::path::{Path, PathBuf};

use coldframe_core::policy::{self, ParamKind, PolicyChoice};
use coldframe_core::swap::{collect, VICTIMS_MAX};
use coldframe_live::{Inject, Options, SwapArea, Wait, FRAMES_MIN, PAGE, READ_AHEAD_MAX};
use fastrand::Rng;

/// The most threads; each has its own words in each shared page.
pub const THREADS_MAX: usize = 32;
/// The most frames. More frames take longer to fill and test nothing new.
const FRAMES_MAX: usize = 4096;

/// Where the swap file is, and how the device behaves.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Device {
    /// A folder in memory: gives the most faults per second.
    Memory,
    Disk,
    /// In memory; each operation takes this many microseconds longer.
    Slow(u32),
    /// In memory; some reads and writes are short or refused, and succeed when repeated.
    Stumbling,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Pattern {
    Uniform,
    /// Half of all touches go to a sixteenth of the pages.
    Hot,
    Sweep,
    /// One of the other patterns, changed now and then.
    Mixed,
}

#[derive(Clone, Debug)]
pub struct Setting {
    pub seed: u64,
    pub policy: String,
    pub handler: &'static str,
    pub frames: usize,
    /// Pages in managed regions: shared by all threads, and of each thread's own region.
    pub shared: usize,
    pub own: usize,
    pub threads: usize,
    pub handlers: usize,
    pub wait: Wait,
    pub device: Device,
    pub encrypt: bool,
    pub read_ahead: u32,
    pub evict_batch: Option<u32>,
    /// Mean milliseconds between forks, and the most children that live at a time; 0: no forks.
    pub fork_ms: u64,
    pub children: usize,
    pub pattern: Pattern,
    /// This many of 100 touches write.
    pub writes: u8,
    /// This many of 1000 steps also call the pager.
    pub calls: u16,
    pub one_cpu: bool,
    /// Started as the preload library starts it, which reports forks to the pager itself.
    pub program: bool,
    /// Before one in this many calls of the kernel, the thread pauses; 0: never.
    pub pause: u32,
    pub swap: Option<SwapArea>,
}

impl Setting {
    pub fn of(seed: u64) -> Setting {
        let random = &mut Rng::with_seed(seed);
        let frames = FRAMES_MIN << random.u32(..=(FRAMES_MAX / FRAMES_MIN).ilog2());
        let frames = frames + if random.bool() { random.usize(..frames) } else { 0 };
        let threads = *random.choice(&[1, 2, 2, 3, 4, 4, 6, 8, 16, THREADS_MAX]).expect("not empty");
        let pages = frames * random.usize(2..=16);
        let own = (pages / random.usize(2..5) / threads).max(4);
        let shared = pages.saturating_sub(own * threads).max(frames);
        Setting {
            seed,
            policy: policy(random, frames),
            handler: if random.u8(..4) == 0 { "sequential" } else { "parallel" },
            frames,
            shared,
            own,
            threads,
            handlers: *random.choice(&[1, 2, 2, 3, 8, 26]).expect("not empty"),
            wait: *random.choice(&[Wait::Auto, Wait::Read, Wait::Brief]).expect("not empty"),
            device: device(random),
            encrypt: random.u8(..4) == 0,
            read_ahead: {
                // A draw for a setting that is gone: the seeds of the tests still mean the same.
                random.u8(..8);
                if random.bool() {
                    0
                } else {
                    random.u32(1..=READ_AHEAD_MAX)
                }
            },
            evict_batch: if random.bool() { None } else { Some(random.u32(1..=(frames as u32 / 4).min(32))) },
            fork_ms: if random.u8(..3) == 0 { random.u64(5..200) } else { 0 },
            children: random.usize(1..=6),
            pattern: *random
                .choice(&[Pattern::Uniform, Pattern::Hot, Pattern::Sweep, Pattern::Mixed])
                .expect("not empty"),
            writes: *random.choice(&[0, 5, 20, 50, 100]).expect("not empty"),
            calls: *random.choice(&[0, 1, 5, 30]).expect("not empty"),
            one_cpu: random.u8(..5) == 0,
            pause: if random.u8(..4) == 0 { random.u32(3..200) } else { 0 },
            program: random.bool(),
            swap: None,
        }
        .with_area(random)
    }

    /// Half of all settings have a swap area. Its size is between half of what is written and a size that is never
    /// collected.
    fn with_area(self, random: &mut Rng) -> Setting {
        if random.bool() {
            return self;
        }
        let pages = (self.shared + self.own * self.threads) as u64;
        let blocks = pages * random.u64(4..=16) / 8 / 32 + u64::from(SwapArea::START) + random.u64(1..=4);
        let area = SwapArea {
            bytes: Some(blocks * SwapArea::BLOCK),
            collector: random.choice(collect::ALL).expect("there are collectors").name.to_string(),
            victims: random.u32(1..=VICTIMS_MAX),
        };
        Setting { swap: Some(area), ..self }
    }

    /// The pager's options; swap files are below these folders.
    pub fn options(&self, memory: &Path, disk: &Path, stats_fd: Option<i32>) -> Options {
        let pages = 2 * (self.shared + self.threads * self.own) + 1024;
        Options {
            policy: Some(self.policy.clone()),
            handler: self.handler.to_string(),
            max_memory: (pages * PAGE) as u64,
            backing: self.folder(memory, disk),
            wait: self.wait,
            handlers: self.handlers,
            encrypt: self.encrypt,
            read_ahead: self.read_ahead,
            block: if self.read_ahead.is_multiple_of(2) { 8 } else { 0 },
            evict_batch: self.evict_batch,
            stats_fd,
            inject: self.inject(),
            swap: self.swap.clone(),
            ..Options::new((self.frames * PAGE) as u64)
        }
    }

    fn folder(&self, memory: &Path, disk: &Path) -> PathBuf {
        if self.device == Device::Disk { disk } else { memory }.to_path_buf()
    }

    fn inject(&self) -> Option<Inject> {
        let inject = Inject { seed: self.seed, pause: self.pause, ..Inject::default() };
        match self.device {
            Device::Memory | Device::Disk => Some(inject),
            Device::Slow(slow_us) => Some(Inject { slow_us, ..inject }),
            Device::Stumbling => Some(Inject {
                read_short: 50,
                again: 30,
                read_error: 3000,
                write_short: 30,
                write_error: 3000,
                ..inject
            }),
        }
    }
}

fn device(random: &mut Rng) -> Device {
    match random.u8(..8) {
        0 => Device::Disk,
        1 => Device::Slow(random.u32(10..300)),
        2 => Device::Stumbling,
        _ => Device::Memory,
    }
}

/// A random policy, with parameters that are valid for this many frames.
fn policy(random: &mut Rng, frames: usize) -> String {
    let spec = random.choice(policy::ALL).expect("there are policies");
    loop {
        let given: Vec<String> =
            spec.params.iter().filter_map(|p| value(random, &p.kind).map(|v| format!("{}={v}", p.name))).collect();
        let text = if given.is_empty() { spec.name.to_string() } else { format!("{}:{}", spec.name, given.join(",")) };
        let fits = PolicyChoice::parse(&text).and_then(|choice| choice.build(frames, 2 * frames).map(drop));
        if fits.is_ok() {
            return text;
        }
    }
}

/// A random value for a parameter, mostly a small one; `None`: the default.
fn value(random: &mut Rng, kind: &ParamKind) -> Option<String> {
    match kind {
        ParamKind::Frames { .. } if random.u8(..3) > 0 => Some(random.u32(1..=16).to_string()),
        ParamKind::Frames { .. } => Some(format!("{}%", random.u32(1..=100))),
        ParamKind::Count { default: Some(_), .. } | ParamKind::Limit if random.bool() => None,
        ParamKind::Count { min, .. } => Some(random.u32(*min..min + 16).to_string()),
        ParamKind::Limit => Some(random.u32(1..32).to_string()),
        ParamKind::Bit { .. } => Some(if random.bool() { "set" } else { "clear" }.to_string()),
    }
}

impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self:?}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_always_says_the_same_setting() {
        for seed in 0..100 {
            assert_eq!(Setting::of(seed).to_string(), Setting::of(seed).to_string());
        }
    }

    #[test]
    fn every_policy_and_every_small_valid_list_is_drawn() {
        let drawn: Vec<String> = (0..4000).map(|seed| Setting::of(seed).policy).collect();
        for spec in policy::ALL {
            assert!(drawn.iter().any(|text| text.split(':').next() == Some(spec.name)), "{}", spec.name);
        }
        for valid in 1..=16 {
            let word = format!("valid={valid}");
            assert!(drawn.iter().any(|text| text.split([':', ',']).any(|part| part == word)), "{word}");
        }
    }
}
