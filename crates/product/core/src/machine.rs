//! The seam between the engine and the world.

use crate::command::Command;
use crate::ids::PageId;

/// What a machine can do. The engine gets this when it is made (`Config::caps`), adapts, and emulates what is missing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Caps {
    /// The hardware sets a reference bit on each access. Without it the engine emulates the bit by unmapping, as SWL
    /// did on the ARM926: the next touch faults, and that fault is the reference.
    pub reference_bit: bool,
    /// The hardware sets a dirty bit on each write. Without it the engine maps clean pages read-only, and the first
    /// write faults.
    pub dirty_bit: bool,
    /// Stopover buffers; as many loads can be in flight. At least 1.
    pub buffers: u32,
    /// The processor reads slots of the swap area as memory, so a page can be mapped in its slot, read-only
    /// (`Place::Slot`).
    pub direct_read: bool,
    /// The machine chooses the place of each page itself. `Load` and `Write` then name home slots, which mean
    /// nothing, and the engine can have no swap area of any kind.
    pub places: bool,
}

/// What happens to a reference bit when it has been read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum After {
    /// It stays as it is.
    Keep,
    /// It is cleared.
    Clear,
}

/// Carries out the engine's commands.
///
/// A machine may gather the `Protect`, `Write`, `Unmap` and `Evict` of one stage and carry them out together, at or
/// after the next `Command::Stage`, as long as it delivers no event that contradicts them.
///
/// A machine never calls the engine from within these functions. It reports the ends of transfers later, as events, one
/// event at a time.
pub trait Machine {
    /// Carries out the command at once. Long work (a load, a write) is only started here; an event reports its end.
    fn issue(&mut self, command: Command);

    /// Whether the page was touched since the bit was last cleared. The engine asks this only for mapped pages, and
    /// only with `Caps::reference_bit`.
    fn referenced(&mut self, page: PageId, after: After) -> bool;

    /// Whether the page was written since it was last mapped. The engine asks this only for mapped pages, after
    /// `Command::Protect`, and only with `Caps::dirty_bit`. A machine that is not sure returns true. It then compares
    /// the bytes when it carries out `Command::Write`, and may leave the slot as it is if the bytes are the same.
    fn dirty(&mut self, page: PageId) -> bool;

    /// Whether a page of `Command::Zero` was written to since. The engine asks once, when it needs a frame. If not, no
    /// write succeeds from now on without a fault, and `Command::Evict` follows. A machine that is not sure returns
    /// true. One that sends no `Event::FirstTouchNeighbour` is not asked.
    fn filled(&mut self, _page: PageId) -> bool {
        true
    }
}
