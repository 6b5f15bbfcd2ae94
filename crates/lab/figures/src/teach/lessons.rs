//! The lessons. To add one: a row of [`ALL`]. The command line, its help and the tests find it there.

use coldframe_experiment::systems;
use coldframe_sheet::quantity::fine_time;

use crate::teach::{parse, Played};

/// The configuration for a lesson's references.
#[derive(Debug)]
pub struct Setup {
    /// The system whose prices apply; `None`: the measured prices.
    pub system: Option<&'static str>,
    pub policy: &'static str,
    pub handler: &'static str,
    pub frames: u64,
    /// Other settings, as `--set` takes them.
    pub sets: &'static [&'static str],
}

#[derive(Debug)]
pub struct Lesson {
    pub name: &'static str,
    pub title: &'static str,
    /// What to watch for.
    pub about: &'static str,
    pub source: &'static str,
    /// Pages in order, with `w` after a page that is written; of several tasks as in `A1,2*9x3`.
    pub text: &'static str,
    /// Whether its times are shown: what is about misses or the device's blocks has none.
    pub priced: bool,
    pub setups: &'static [Setup],
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

impl Lesson {
    /// Whether several tasks run.
    pub fn is_of_tasks(&self) -> bool {
        self.text.starts_with(|c: char| c.is_ascii_uppercase())
    }
}

impl Setup {
    /// The name of the system whose prices apply.
    pub fn system(&self) -> &'static str {
        self.system.unwrap_or(systems::measured().name)
    }

    pub const fn measured(policy: &'static str, handler: &'static str, frames: u64) -> Setup {
        Setup { system: None, policy, handler, frames, sets: &[] }
    }
}

/// All lessons, in the order in which they are best read.
pub const ALL: &[Lesson] = &[
    Lesson {
        name: "belady",
        title: "Belady's anomaly: one more frame, and more faults",
        about: "FIFO throws out the page that came first, used or not. Twice the same twelve references, with 3 \
                frames and with 4.",
        source: "Belady, Nelson and Shedler, CACM 12(6), 1969",
        text: "1 2 3 4 1 2 5 1 2 3 4 5",
        priced: false,
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
        about: "The hand of Clock passes a page whose reference bit is set and takes the bit; FIFO does not look. \
                Page 2 is used all the time.",
        source: "Corbato 1968, A paging experiment with the Multics system",
        text: "1 2 3 4 2 5 2 6w 2 7 2 8 2",
        priced: false,
        setups: &[Setup::measured("fifo", "sequential", 3), Setup::measured("clock", "sequential", 3)],
        timeline: false,
        so: |all| format!("{} faults with FIFO, {} with Clock.", all[0].faults(), all[1].faults()),
    },
    Lesson {
        name: "parallel",
        title: "Search while load: the parallel fault handler",
        about: "The sequential handler finds a frame, then loads. The parallel one starts the load first: look at \
                the order of the stages.",
        source: "SWL (LCTES 2007), section 3.1, equations 1 and 2",
        text: "1 2 3 4",
        priced: true,
        setups: &[Setup::measured("clock", "sequential", 3), Setup::measured("clock", "parallel", 3)],
        timeline: false,
        so: |all| {
            let shown = |i: usize| fine_time(all[i].longest());
            format!("The longest fault takes {} with the search before the load, {} beside it.", shown(0), shown(1))
        },
    },
    Lesson {
        name: "pa-clock",
        title: "PA-Clock: a search that never outlasts the load",
        about: "All 20 reference bits are set when page 21 comes. Clock goes all round; PA-Clock examines 13 frames, \
                as many as fit behind the \
                load, and takes the page at the hand whatever its bit.",
        source: "SWL (LCTES 2007), section 3.2 and figure 8",
        text: "1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22",
        priced: true,
        setups: &[Setup::measured("clock", "parallel", 20), Setup::measured("pa-clock:budget=13", "parallel", 20)],
        timeline: false,
        so: |all| {
            let shown = |i: usize| fine_time(all[i].longest());
            format!(
                "The longest fault takes {} with Clock, {} with PA-Clock, however many frames there \
                     are.",
                shown(0),
                shown(1)
            )
        },
    },
    Lesson {
        name: "dual-buffering",
        title: "Delayed dual buffering: run from the buffer, move beside the next load",
        about: "OneNAND has two buffers. The page that was loaded last is read in place; it moves to a frame while \
                the next one loads.",
        source: "DDB (2007), sections II and III",
        text: "1 2 1 3 2 4 1",
        priced: true,
        setups: &[
            Setup { system: Some("ddb"), policy: "clock", handler: "sequential", frames: 3, sets: &[] },
            Setup { system: Some("ddb"), policy: "clock", handler: "delayed-dual-buffering", frames: 3, sets: &[] },
        ],
        timeline: true,
        so: |all| {
            let of = |i: usize| format!("{} faults, the longest {}", all[i].faults(), fine_time(all[i].longest()));
            format!("Sequential: {}. Delayed dual buffering: {}.", of(0), of(1))
        },
    },
    Lesson {
        name: "log",
        title: "A swap log on flash: what is written again leaves a hole, and a collector makes room",
        about: "Flash is erased in blocks, here of 2 slots, and no slot is written twice before. The log writes on at \
                its end; x is a copy that is no longer the page's. The greedy collector takes the block with fewest \
                pages, copies what is still needed, and erases it. Twice the same pages, in 7 blocks and in 10.",
        source: "LOBI, sections 3 and 4",
        text: "1w 2w 3w 4w 5w 6w 1w 2w 1w 3w 1w 4w 1w 2w 1w 5w 1w 2w 1w 6w 1w 2w 1w 3w 1w 2w 1w 4w 1w 2w 1w 5w",
        priced: false,
        setups: &[
            log(&["swap.blocks=7", "swap.slots_per_block=2"]),
            log(&["swap.blocks=10", "swap.slots_per_block=2"]),
        ],
        timeline: false,
        so: |all| {
            let of = |i: usize| [all[i].mentions("collector copies"), all[i].mentions("is erased")];
            let ([a, b], [c, d]) = (of(0), of(1));
            format!("{a} copies and {b} erases in 7 blocks, {c} and {d} in 10.")
        },
    },
    Lesson {
        name: "list",
        title: "A prefetching list: the next task's pages come before its turn",
        about: "Two tasks with four pages each, in six frames. Each task's list has the pages that it faulted on. At \
                three quarters of a turn, those of the next task that are not in RAM are loaded, while the running \
                task works on.",
        source: "SAP (2008), sections 3 and 5.2",
        text: TURNS,
        priced: false,
        setups: &[
            sap(&["tasks.scheduler=round-robin", "tasks.prefetch=off"]),
            sap(&["tasks.scheduler=round-robin", "tasks.prefetch=75"]),
        ],
        timeline: false,
        so: |all| {
            let hints = all[1].mentions("on the list");
            format!("{} faults without lists, {} with them, after {hints} hints.", all[0].faults(), all[1].faults())
        },
    },
    Lesson {
        name: "direct-read",
        title: "Direct read: a page in byte-addressable memory is read where it is",
        about: "Two applications take turns in the foreground of a phone. What the other's turn pushed to the swap \
                area comes back by a copy, or is read in place; a page that is written needs a frame in any case.",
        source: "DR.Swap, sections III and IV",
        text: VISITS,
        priced: false,
        setups: &[phone(&["swap.backing=nvm", "swap.size=1MiB"]), phone(&["swap.backing=nvm-dr", "swap.size=1MiB"])],
        timeline: false,
        so: |all| {
            let of = |i: usize| [all[i].mentions("begins to load"), all[i].mentions("where it is")];
            let ([a, b], [c, d]) = (of(0), of(1));
            format!("{a} loads and {b} pages read in place by copies, {c} and {d} with direct read.")
        },
    },
];

const fn log(sets: &'static [&'static str]) -> Setup {
    Setup { system: None, policy: "clock", handler: "sequential", frames: 2, sets }
}

const fn sap(sets: &'static [&'static str]) -> Setup {
    Setup { system: Some("sap"), policy: "clock", handler: "parallel", frames: 6, sets }
}

const fn phone(sets: &'static [&'static str]) -> Setup {
    Setup { system: Some("drswap"), policy: "clock", handler: "sequential", frames: 4, sets }
}

/// Turns of 100 ms; a reference takes 0.1 us, and a step 5 ms.
const TURNS: &str = "A1w,2w,3w,4w*50000x60 B5w,6w,7w,8w*50000x60";
const VISITS: &str = "A1w,2w,3w B4w,5w,6w A1,2,3w B4,5,6w";
