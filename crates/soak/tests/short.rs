//! A soak of some seconds, with the same settings each time; what fails names its seed. `make soak` has new ones.

use std::process::Command;

#[test]
fn no_byte_is_lost_and_nothing_hangs_in_a_short_soak() {
    let run = Command::new(env!("CARGO_BIN_EXE_coldframe-soak")).arg("0.13").env("SOAK_FIRST", "1").output().unwrap();
    let said = String::from_utf8_lossy(&run.stdout);
    assert!(run.status.success(), "{said}\n{}", String::from_utf8_lossy(&run.stderr));
    assert!(said.contains("live faults in") && said.contains("\n0 settings failed"), "{said}");
}
