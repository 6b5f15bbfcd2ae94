//! How little RAM this device can live with: what all its processes referenced, what could leave, and what a zram of
//! which size, or swap on its flash, costs in less RAM.
//!
//! ```text
//!   referenced bits of all processes (predict::bits) ─┐
//!   pages at random places, compressed ───────────────┼ watch ─► Seen ─ answer ─► words, JSON, lines to paste
//!   vmstat, diskstats, pressure, mm_stat (counts) ────┘           └── --save, --from: on another machine
//! ```
//! Watching changes nothing but the referenced bits, which the kernel reads, too, when it looks for pages to push out.

use coldframe_proc::Tree;

mod advice;
mod answer;
pub mod counts;
mod defaults;
#[allow(unsafe_code, reason = "it asks a drive by ioctl")]
mod nvme;
mod seen;
mod sizes;
pub mod trial;
mod watch;

pub use crate::device::advice::Advice;
pub use crate::device::answer::DeviceAnswer;
pub use crate::device::defaults::DefaultSwap;
pub use crate::device::seen::{read, Owner, Seen};
pub use crate::device::sizes::{KindLife, Life, RamSize, RamVerdict, Swap, ZramPlan, DAY};
pub use crate::device::trial::{trial, ZramTrial};
use crate::device::watch::watch;
pub use crate::device::watch::WatchOptions;
use crate::error::AnswerError;
use crate::listener::Listener;

/// Watches this machine. Ctrl-C ends it with what is known by then.
///
/// # Errors
/// Not root, a container, a kernel without referenced bits, or a file that cannot be written or read, or is not to be
/// overwritten.
pub fn look(options: &WatchOptions, listener: &dyn Listener) -> Result<Seen, AnswerError> {
    let tree = Tree::machine();
    let before = match (&options.save, options.resume) {
        (Some(path), true) if path.exists() => read(path)?,
        (Some(path), false) if path.exists() => {
            let path = path.display();
            return Err(AnswerError::usage(format!(
                "{path} is there: go on with it by --resume, or give another name"
            )));
        }
        (None, true) => return Err(AnswerError::usage("--resume goes on with the file of --save; give --save FILE")),
        _ => Seen::default(),
    };
    possible(&tree)?;
    watch(&tree, options, before, listener)
}

/// The number of the first namespace of processes (`PROC_PID_INIT_INO` of include/linux/proc_ns.h).
const FIRST: &str = "pid:[4026531836]";

/// Whether all processes of a machine can be seen here.
fn possible(tree: &Tree) -> Result<(), AnswerError> {
    let lacks = |message: &str| Err(AnswerError::new(4, message));
    let process = tree.own_process();
    if std::fs::read_link(process.file("ns/pid")).is_ok_and(|space| space.as_os_str() != FIRST) {
        return lacks(
            "this is a container: only its own processes can be seen here, beside the whole machine's RAM; run it on \
             the machine, or ask about one program: coldframe --pid N",
        );
    }
    if !rustix::process::geteuid().is_root() {
        return lacks("only root may read the page tables of all processes: sudo coldframe device");
    }
    if std::fs::write(process.file("clear_refs"), "1").is_err()
        || !process.smaps().is_ok_and(|text| text.contains("Referenced:"))
    {
        return lacks("this kernel has no referenced bits for programs; it needs CONFIG_PROC_PAGE_MONITOR");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::listener::Silent;

    #[test]
    fn a_file_of_another_day_is_not_overwritten_and_the_remedy_is_said() {
        let folder = tempfile::tempdir().unwrap();
        let save = folder.path().join("day.json");
        std::fs::write(&save, "yesterday").unwrap();
        let options = WatchOptions { time: Duration::ZERO, every: None, save: Some(save.clone()), resume: false };
        let error = look(&options, &Silent).unwrap_err().to_string();
        assert!(error.contains("day.json is there") && error.contains("--resume"), "{error}");
        assert_eq!(std::fs::read_to_string(save).unwrap(), "yesterday");
    }
}
