//! The third plan of an answer: the program's time with less page cache for the files that it maps, measured by the
//! kernel in a memory group whose limit is for all memory.
//!
//! The kernel charges a page of a file to the group that reads it first. So the files leave the cache before each run,
//! which reads them from the disk again; the first run has room for all of them, and the others are compared with it.
//! Pages that another program maps cannot leave, and no limit on this one reaches them: then the first run takes much
//! less than it may.

use std::path::PathBuf;
use std::rc::Rc;

use super::plan::{Course, Plan};
use super::rules::{is_near, REPEATS, SHORT};
use super::trial::{Outcome, Trial};
use crate::predict::common::Common;
use crate::predict::curve::round;
use crate::run::runs::{Runs, Way};

/// Parts of what is referenced that runs have room for; the first one for all that is in RAM, too.
const PARTS: [f64; 3] = [1.0, 0.75, 0.5];
/// What the kernel takes for tables and for files that it reads ahead: a part of the files, and so many bytes.
const AHEAD: f64 = 1.0 / 16.0;
const FIRST: f64 = (4 << 20) as f64;
/// The time of 8 runs, at least 9 s, is kept for runs with less page cache. Runs with less heap get as much first,
/// unless the files are larger than the heap.
const RUNS: f64 = 8.0;
const SECONDS: f64 = 9.0;

/// Runs with less page cache.
pub struct LessCache {
    /// The kernel's way, or why there is none.
    way: Result<Way, Option<String>>,
    files: Rc<[PathBuf]>,
    /// Bytes that are no files, of files in RAM, and of files that are referenced.
    heap: f64,
    resident: f64,
    referenced: f64,
    /// The longest good run, and the end of all runs since the question was asked, in seconds.
    limit: f64,
    until: f64,
}

/// The seconds that runs with less page cache need, of those that are left. `limit`: the longest good run.
pub fn reserve(common: &Common, limit: f64, left: f64) -> f64 {
    let mapped = common.not_paged.as_ref().filter(|not_paged| not_paged.are_run(common.in_all(common.needed_bytes)));
    let files = mapped.map_or(0, |not_paged| not_paged.referenced_bytes);
    let runs = (RUNS * limit).max(SECONDS);
    let spare = if files > common.managed_bytes { left } else { (left - runs).max(0.0) };
    if files > 0 {
        spare.min(runs)
    } else {
        0.0
    }
}

impl LessCache {
    /// The plan for a program, `None` if its files do not matter. `way`: the kernel's; `limit`: the longest good run;
    /// `until`: the end of all runs since the question was asked.
    pub fn new(common: &Common, way: &Result<Way, Option<String>>, limit: f64, until: f64) -> Option<LessCache> {
        let rest = common.not_paged.as_ref()?;
        rest.are_run(common.in_all(common.needed_bytes)).then(|| LessCache {
            way: way.clone().map(|way| Way { in_all: true, ..way }),
            files: rest.files.iter().map(|file| PathBuf::from(&file.path)).collect(),
            heap: (common.managed_bytes + rest.shared_bytes + rest.stacks_bytes + rest.other_bytes) as f64,
            resident: (rest.code_bytes + rest.files_bytes) as f64,
            referenced: rest.referenced_bytes as f64,
            limit,
            until,
        })
    }

    /// The runs in that RAM; `None`: no time is left, or it cannot be run so.
    fn measure(&self, course: &mut Course, way: &Way, ram: u64) -> Result<Option<Runs>, Trial> {
        for _ in 0..REPEATS {
            let left = self.until - course.now();
            if left < self.limit || course.runs().signal() {
                break;
            }
            // It reads its files first.
            let trial = Trial { cold: Rc::clone(&self.files), ..Trial::paged(way, ram, left / 2.0) };
            let Outcome::Ran(_) = course.run(trial)? else { break };
            let runs = course.runs().paged(way, ram).unwrap_or_default();
            if runs.failed.is_some() || runs.more || !is_near(&runs, self.limit) || runs.seconds >= SHORT {
                break;
            }
        }
        Ok(course.runs().paged(way, ram))
    }
}

impl Plan for LessCache {
    /// The runs, and why there are no more of them.
    type Result = (Vec<Runs>, Option<String>);

    fn decide(&self, course: &mut Course) -> Result<Self::Result, Trial> {
        let way = match &self.way {
            Ok(way) => way,
            Err(Some(why)) => return Ok((Vec::new(), Some(why.clone()))),
            Err(None) => {
                let root = "only root may make the memory group and the swap that this takes; run it as root";
                return Ok((Vec::new(), Some(root.into())));
            }
        };
        let with_files = |part: f64| self.heap + part * self.referenced;
        let room = self.heap + self.resident * (1.0 + AHEAD) + FIRST;
        let mut done = Vec::new();
        for (count, part) in PARTS.into_iter().enumerate() {
            let ram = round(if count == 0 { room } else { with_files(part) });
            let Some(runs) = self.measure(course, way, ram)? else {
                return Ok((done, Some("no time was left".into())));
            };
            if count == 0 && runs.more {
                let why = "to read its files from the disk takes too long for this answer";
                return Ok((vec![runs], Some(why.into())));
            }
            if count == 0 && (runs.peak_bytes() as f64) < with_files(PARTS[1]) {
                let why = "other programs hold its files in RAM, where no limit on this one reaches them";
                return Ok((done, Some(why.into())));
            }
            done.push(runs);
        }
        Ok((done, None))
    }
}
