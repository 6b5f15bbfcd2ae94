//! The oracle (`oracle/*.c`): random but legal programs run once plain and once paged in little RAM. Their output and
//! their exit must be equal.
//!
//! `ORACLE_SEED=7 ORACLE_SETTING=sealed cargo test -p coldframe-preload --test it oracle::` repeats one program;
//! `ORACLE_STEPS` and `ORACLE_WITHOUT` (classes of operations, `fork,exec`) make it shorter. Without these, the same
//! few programs run each time. `ORACLE_MINUTES=n` runs new seeds for n minutes and prints all differences at the end.

pub mod judge;

use std::time::{Duration, Instant, SystemTime};

use coldframe_live::{Inject, Options, Wait};
use coldframe_toolbox::{have, GCC};
use judge::{Case, Oracle, Setting, LIMITS, USUAL};

/// Steps of a program, unless `ORACLE_STEPS` is set.
const STEPS: u32 = 150;
/// Steps of the programs of `make test`, one program for each setting.
const STEPS_SHORT: u32 = 80;

const SETTINGS: &[Setting] = &[
    USUAL,
    Setting { name: "tight", ram: 256, handlers: 1, change: |o| (o.read_ahead, o.evict_batch) = (0, Some(1)), ..USUAL },
    Setting { name: "sealed", ram: 1024, change: |o| o.encrypt = true, ..USUAL },
    Setting { name: "fifo", ram: 1024, handlers: 4, change: |o| policy(o, "fifo", Wait::Read), ..USUAL },
    Setting {
        name: "second-chance",
        ram: 1536,
        handlers: 3,
        change: |o| policy(o, "fifo-sc:valid=60%", Wait::Brief),
        ..USUAL
    },
    // The pager pauses between its system calls, so that other threads come in between.
    Setting {
        name: "pauses",
        ram: 1536,
        handlers: 3,
        change: |o| {
            policy(o, "fifo-sc:valid=60%", Wait::Brief);
            o.inject = Some(Inject { pause: 4, ..Inject::default() });
        },
        ..USUAL
    },
    Setting { name: "clock", ram: 4096, change: |o| policy(o, "clock", Wait::Brief), ..USUAL },
    Setting { name: "far-ahead", ram: 1024, change: |o| (o.read_ahead, o.evict_batch) = (31, Some(32)), ..USUAL },
    Setting { name: "sieve", ram: 512, change: |o| policy(o, "sieve", Wait::Read), ..USUAL },
    Setting { name: "many-handlers", ram: 1024, handlers: 16, ..USUAL },
    // The kernel cannot hold pages of slow memory: files and rings that need that are refused.
    Setting {
        name: "slow",
        ram: 512,
        change: |o| o.slow = Some("/dev/shm".into()),
        without: &["served", "ring"],
        ..USUAL
    },
    Setting { name: "queues", ram: 1024, change: |o| policy(o, "multi-queue", Wait::Auto), ..USUAL },
];

fn policy(options: &mut Options, name: &str, wait: Wait) {
    (options.policy, options.wait) = (Some(name.to_string()), wait);
}

fn setting(name: &str) -> &'static Setting {
    SETTINGS.iter().find(|s| s.name == name).unwrap_or_else(|| panic!("ORACLE_SETTING: no setting is called {name}"))
}

fn setting_from<T: std::str::FromStr>(name: &str) -> Option<T> {
    std::env::var(name).ok().map(|text| text.parse().unwrap_or_else(|_| panic!("{name}: {text} cannot be read")))
}

/// Classes of operations that are skipped.
fn left_out() -> Vec<String> {
    let Some(text) = setting_from::<String>("ORACLE_WITHOUT") else { return LIMITS.map(Into::into).to_vec() };
    text.split(',').filter(|class| !class.is_empty()).map(Into::into).collect()
}

#[test]
fn random_legal_programs_do_the_same_plain_and_paged() {
    if !have(&[GCC]) {
        return;
    }
    let oracle = Oracle::build();
    let without = left_out();
    let minutes: Option<f64> = setting_from("ORACLE_MINUTES");
    let chosen = setting_from::<String>("ORACLE_SETTING").map(|name| setting(&name));
    let only: Option<u64> = setting_from("ORACLE_SEED");
    let usual = if only.is_none() && minutes.is_none() { STEPS_SHORT } else { STEPS };
    let steps = setting_from("ORACLE_STEPS").unwrap_or(usual);
    let case = |seed, setting: &Setting| {
        let refused = setting.without.iter().map(ToString::to_string);
        Case { seed, steps, without: without.iter().cloned().chain(refused).collect() }
    };
    if let Some(seed) = only {
        let setting = chosen.unwrap_or(&USUAL);
        if let Some(text) = oracle.judge(&case(seed, setting), setting) {
            panic!("{text}");
        }
        return;
    }
    // A bounded run always uses the same seeds; a run with `ORACLE_MINUTES` uses new ones.
    let new = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_millis() as u64 & 0xffff_ffff;
    let first = if minutes.is_some() { new } else { 1 };
    let (start, mut failures, mut programs) = (Instant::now(), Vec::new(), 0);
    for seed in first.. {
        let setting = chosen.unwrap_or(&SETTINGS[(seed % SETTINGS.len() as u64) as usize]);
        programs += 1;
        failures.extend(oracle.judge(&case(seed, setting), setting).inspect(|text| eprintln!("{text}")));
        if minutes.map_or(programs == SETTINGS.len(), |m| start.elapsed() > Duration::from_secs_f64(m * 60.0)) {
            break;
        }
    }
    eprintln!("{programs} programs of {steps} steps, seeds from {first} on, {} differ", failures.len());
    assert!(failures.is_empty(), "{} of {programs} programs differ:\n{}", failures.len(), failures.join("\n"));
}
