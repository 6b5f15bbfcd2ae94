//! A lesson on DDB's idea.

use crate::table::fine_time;
use crate::teach::{Lesson, Setup};

pub(super) const ALL: &[Lesson] = &[
    Lesson {
        name: "dual-buffering",
        title: "Delayed dual buffering: run from the buffer, move beside the next load",
        about: "OneNAND has two buffers. The page that was loaded last is read in place; it moves to a frame while the next one loads.",
        source: "DDB (2007), sections II and III",
        text: "1 2 1 3 2 4 1",
        setups: &[
            Setup { system: Some("ddb"), policy: "clock", handler: "sequential", frames: 3 },
            Setup { system: Some("ddb"), policy: "clock", handler: "delayed-dual-buffering", frames: 3 },
        ],
        timeline: true,
        so: |all| {
            let of = |i: usize| format!("{} faults, the longest {}", all[i].faults(), fine_time(all[i].longest()));
            format!("Sequential: {}. Delayed dual buffering: {}.", of(0), of(1))
        },
    },
];
