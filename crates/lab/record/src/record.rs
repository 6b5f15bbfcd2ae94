//! One recording.

use coldframe_answer::run::lookup::resolve;

use crate::error::RecordError;
use crate::qemu;
use crate::recording::{Level, Outcome, Progress, Recording};

/// Records the program to its end or to a limit, and finishes the trace.
///
/// # Errors
/// See [`RecordError`]. No file is left then, and the program is not running any more.
pub fn record(order: &Recording, progress: &mut dyn FnMut(Progress)) -> Result<Outcome, RecordError> {
    if let Level::Pages(bytes) = order.level {
        if !bytes.is_power_of_two() || !(64..1 << 31).contains(&bytes) {
            return Err(RecordError::Usage {
                what: format!("page size {bytes}"),
                problem: "not a power of two from 64 on".into(),
                remedy: "use 1KiB or 4KiB".into(),
            });
        }
    }
    let target = resolve(&order.program, &order.args, &order.search_path)?;
    qemu::record(order, &target, progress)
}
