//! A soak of some seconds, with the same settings each time; what fails names its seed. `make soak` has new ones.

use std::process::Command;

fn soak(minutes: &str, variable: &str, seed: &str) -> String {
    let run = Command::new(env!("CARGO_BIN_EXE_coldframe-soak")).arg(minutes).env(variable, seed).output().unwrap();
    let said = String::from_utf8_lossy(&run.stdout).into_owned() + &String::from_utf8_lossy(&run.stderr);
    assert!(run.status.success(), "{said}");
    said
}

#[test]
fn no_byte_is_lost_and_nothing_hangs_in_a_short_soak() {
    let said = soak("0.13", "SOAK_FIRST", "1");
    assert!(said.contains("live faults in") && said.contains("\n0 settings failed"), "{said}");
}

/// Its 32 threads read ahead in 64 frames and copy at once: they ran out of buffers when each kept its own until it got the engine's lock.
#[test]
fn a_setting_whose_threads_ran_out_of_buffers() {
    const SEED: u64 = 160_303_349_236_456;
    let setting = coldframe_soak::setting::Setting::of(SEED);
    assert_eq!(
        (setting.threads, setting.frames, setting.read_ahead),
        (32, 64, 10),
        "another seed is to be found: {setting}"
    );
    soak("0.15", "SOAK_SEED", &SEED.to_string());
}
