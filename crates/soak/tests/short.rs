//! A soak of some seconds, with other seeds each time; what fails names its own.

use std::process::Command;

#[test]
#[ignore = "make soak is longer and runs the same"]
fn no_byte_is_lost_and_nothing_hangs_in_a_short_soak() {
    let run = Command::new(env!("CARGO_BIN_EXE_coldframe-soak")).arg("0.15").output().unwrap();
    let said = String::from_utf8_lossy(&run.stdout);
    assert!(run.status.success(), "{said}\n{}", String::from_utf8_lossy(&run.stderr));
    assert!(said.contains("live faults in") && said.contains("\n0 settings failed"), "{said}");
}
