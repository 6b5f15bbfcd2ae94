//! A soak of some seconds, with the same settings each time. `make soak` uses new settings. A failure prints its seed.

use std::process::Command;

fn soak(minutes: &str, variable: &str, seed: &str) -> String {
    let run = Command::new(env!("CARGO_BIN_EXE_coldframe-soak")).arg(minutes).env(variable, seed).output().unwrap();
    let output = String::from_utf8_lossy(&run.stdout).into_owned() + &String::from_utf8_lossy(&run.stderr);
    assert!(run.status.success(), "{output}");
    output
}

#[test]
fn no_byte_is_lost_and_nothing_hangs_in_a_short_soak() {
    let output = soak("0.13", "SOAK_FIRST", "1");
    assert!(output.contains("live faults in") && output.contains("\n0 settings failed"), "{output}");
}

/// In this setting, 32 threads copy at once and read ahead, in 64 frames. In another one of this kind they ran out of
/// buffers when each thread kept its buffers until it got the engine's lock.
#[test]
fn a_setting_whose_threads_ran_out_of_buffers() {
    const SEED: u64 = 37_923;
    let setting = coldframe_soak::setting::Setting::of(SEED);
    assert_eq!((setting.threads, setting.frames, setting.read_ahead), (32, 64, 10), "find another seed: {setting}");
    soak("0.15", "SOAK_SEED", &SEED.to_string());
}
