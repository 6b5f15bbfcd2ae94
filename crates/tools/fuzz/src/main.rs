//! `coldframe-fuzz SECONDS [TARGET [SEED]]`: fuzzes each target, or one, for this many seconds, or replays one seed.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use coldframe_fuzz::{one, targets};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let Some(Ok(seconds)) = arguments.first().map(|s| s.parse::<u64>()) else {
        eprintln!("usage: coldframe-fuzz SECONDS [TARGET [SEED]]");
        return ExitCode::from(2);
    };
    let only = arguments.get(1);
    let seed = arguments.get(2).and_then(|s| s.parse().ok());
    let began = Duration::from_secs(seconds);
    let mut failed = false;
    for target in targets().into_iter().filter(|t| only.is_none_or(|name| name == t.name)) {
        let start = Instant::now();
        let mut number = seed.unwrap_or_else(|| fastrand::u64(..) >> 16);
        let mut runs = 0u64;
        let mut message = None;
        while runs == 0 || (seed.is_none() && start.elapsed() < began) {
            message = one(&target, number).err();
            (runs, number) = (runs + 1, number + 1);
            if message.is_some() {
                break;
            }
        }
        failed |= message.is_some();
        println!("{:<10} {runs} inputs, {}", target.name, message.as_deref().unwrap_or("no panic"));
    }
    if failed {
        ExitCode::from(1)
    } else {
        ExitCode::SUCCESS
    }
}
