//! The lessons. To add one: a row of `GENERAL`, or of its system's lessons. The command line, its help and the tests
//! find it there.

use crate::systems;
use crate::teach::{parse, Played};

/// The configuration for a lesson's references.
#[derive(Debug)]
pub struct Setup {
    /// The system whose prices apply; `None`: the measured prices.
    pub system: Option<&'static str>,
    /// Policy.
    pub policy: &'static str,
    /// Handler.
    pub handler: &'static str,
    /// Frames.
    pub frames: u64,
}

/// A lesson.
#[derive(Debug)]
pub struct Lesson {
    /// On the command line.
    pub name: &'static str,
    /// Its subject.
    pub title: &'static str,
    /// What to watch for.
    pub about: &'static str,
    /// Its source.
    pub source: &'static str,
    /// Pages in order, with `w` after a page that is written.
    pub text: &'static str,
    /// The configurations, one after the other.
    pub setups: &'static [Setup],
    /// Whether a timeline of the buffers is shown.
    pub timeline: bool,
    /// The conclusion, from the numbers of the runs.
    pub so: fn(&[Played]) -> String,
}

impl Lesson {
    /// Pages, and whether they are written.
    pub fn references(&self) -> Vec<(u32, bool)> {
        parse(self.text)
    }
}

impl Setup {
    /// The name of the system whose prices apply.
    pub fn system(&self) -> &'static str {
        self.system.unwrap_or(systems::measured().name)
    }

    /// With the measured prices.
    pub const fn measured(policy: &'static str, handler: &'static str, frames: u64) -> Setup {
        Setup { system: None, policy, handler, frames }
    }
}

/// All lessons, in the order in which they are best read.
pub fn all() -> impl Iterator<Item = &'static Lesson> {
    GENERAL.iter().chain(systems::ALL.iter().flat_map(|system| system.lessons))
}

/// Lessons of no system.
const GENERAL: &[Lesson] = &[
    Lesson {
        name: "belady",
        title: "Belady's anomaly: one more frame, and more faults",
        about: "FIFO throws out the page that came first, used or not. Twice the same twelve references, with 3 frames and with 4.",
        source: "Belady, Nelson and Shedler, CACM 12(6), 1969",
        text: "1 2 3 4 1 2 5 1 2 3 4 5",
        setups: &[Setup::measured("fifo", "sequential", 3), Setup::measured("fifo", "sequential", 4)],
        timeline: false,
        so: |all| {
            let (a, b) = (&all[0], &all[1]);
            format!("{} faults with {} frames, {} with {}.", a.faults(), a.setup.frames, b.faults(), b.setup.frames)
        },
    },
    Lesson {
        name: "second-chance",
        title: "Second chance: a page that is used stays",
        about: "The hand of Clock passes a page whose reference bit is set and takes the bit; FIFO does not look. Page 2 is used all the time.",
        source: "Corbato 1968, A paging experiment with the Multics system",
        text: "1 2 3 4 2 5 2 6w 2 7 2 8 2",
        setups: &[Setup::measured("fifo", "sequential", 3), Setup::measured("clock", "sequential", 3)],
        timeline: false,
        so: |all| format!("{} faults with FIFO, {} with Clock.", all[0].faults(), all[1].faults()),
    },
];
