//! Lessons on SWL's ideas.

use crate::table::fine_time;
use crate::teach::{Lesson, Setup};

pub(super) const ALL: &[Lesson] = &[
    Lesson {
        name: "parallel",
        title: "Search while load: the parallel fault handler",
        about: "The sequential handler finds a frame, then loads. The parallel one starts the load first: look at the order of the stages.",
        source: "SWL (LCTES 2007), section 3.1, equations 1 and 2",
        text: "1 2 3 4",
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
        about: "All 20 reference bits are set when page 21 comes. Clock goes all round; PA-Clock examines 13 frames, as many as fit behind the \
                load, and takes the page at the hand whatever its bit.",
        source: "SWL (LCTES 2007), section 3.2 and figure 8",
        text: "1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22",
        setups: &[Setup::measured("clock", "parallel", 20), Setup::measured("pa-clock:budget=13", "parallel", 20)],
        timeline: false,
        so: |all| {
            let shown = |i: usize| fine_time(all[i].longest());
            format!("The longest fault takes {} with Clock, {} with PA-Clock, however many frames there are.", shown(0), shown(1))
        },
    },
];
