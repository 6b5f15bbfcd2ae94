//! Chooses the recorder if the user does not: this machine's pager, or an emulator if the pager cannot record.

use std::ffi::OsString;
use std::path::Path;

use coldframe_costs::doctor::{examine, Finding, Health};
use coldframe_record::RecordError;

use crate::failure::Failure;
use crate::run::{find_preload, manageable, program};

/// A recorder.
#[derive(Debug, PartialEq, Eq)]
pub enum Choice {
    /// This machine's pager.
    Pager,
    /// An emulator, and the reason.
    Emulator(String),
}

/// The recorder of a program. `option`: an option that only an emulator supports.
///
/// # Errors
/// The program cannot be started at all.
pub fn choose(command: &[OsString], option: Option<&str>) -> Result<Choice, Failure> {
    if let Some(option) = option {
        return Ok(Choice::Emulator(format!("{option} asks for it")));
    }
    program(command)?;
    match pageable(command) {
        Ok(()) => Ok(Choice::Pager),
        Err(failure) => Ok(Choice::Emulator(failure.to_string())),
    }
}

/// Whether this machine's pager can record the program; if not, why.
///
/// # Errors
/// It cannot.
pub fn pageable(command: &[OsString]) -> Result<(), Failure> {
    manageable(&program(command)?)?;
    find_preload()?;
    rights()
}

/// Whether the kernel allows managed memory. No folder is checked: all recorded pages stay in RAM.
fn rights() -> Result<(), Failure> {
    let missing = |finding: &Finding| finding.name != "swap file" && finding.health == Health::Missing;
    match examine(Path::new("")).into_iter().find(missing) {
        None => Ok(()),
        Some(missing) => {
            let message = format!("{}: {}; {}", missing.name, missing.found, missing.remedy);
            Err(Failure::Other { message, code: 4 })
        }
    }
}

/// The failure if there is no emulator, and the pager could not be used for this reason.
pub fn neither(why: &str, error: RecordError) -> Failure {
    match error {
        RecordError::MissingTool { .. } | RecordError::WrongMachine { .. } => Failure::Other {
            message: format!("the pager cannot record it ({why}), and no emulator can: {error}"),
            code: 4,
        },
        error => error.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_only_an_emulator_gives_is_recorded_by_one() {
        let choice = choose(&["no-such-program-here".into()], Some("--level")).unwrap();
        assert_eq!(choice, Choice::Emulator("--level asks for it".into()));
    }

    #[test]
    fn a_program_that_is_not_there_gets_no_recorder() {
        let failure = choose(&["no-such-program-here".into()], None).unwrap_err();
        assert!(matches!(failure, Failure::Other { code: 127, .. }), "{failure}");
    }

    #[test]
    fn without_pager_and_emulator_one_sentence_names_both() {
        let error = RecordError::MissingTool { tool: "qemu-x86_64".into(), package: "qemu-user" };
        let failure = neither("it is linked statically", error);
        let text = failure.to_string();
        assert!(text.contains("linked statically") && text.contains("apt-get install qemu-user"), "{text}");
        assert!(matches!(failure, Failure::Other { code: 4, .. }));
    }
}
