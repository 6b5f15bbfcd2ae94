//! Chooses the recorder if the user does not: this machine's pager, or an emulator if the pager cannot record.

use std::ffi::OsString;

use coldframe_answer::program::{binary, pageable};
use coldframe_record::RecordError;

use crate::failure::Failure;

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
    binary(command)?;
    match pageable(command) {
        Ok(()) => Ok(Choice::Pager),
        Err(failure) => Ok(Choice::Emulator(failure.to_string())),
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
        assert!(matches!(&failure, Failure::Answer(error) if error.code() == 127), "{failure}");
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
