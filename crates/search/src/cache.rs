//! Points by content: one file for each trace and version, one line for each configuration.
//!
//! The key of a line is a hash of every setting in force and of all inputs of the simulator. A file's name has the
//! trace's hash and the program's version. So no entry can be stale. A line that a killed process left half written
//! is ignored and computed again.

use std::collections::HashMap;
use std::fs::OpenOptions;
use std::io::Write;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::point::Point;
use coldframe_experiment::error::ExperimentError;
use coldframe_experiment::resolve::Plan;
use coldframe_experiment::settings::Tasks;

#[derive(Debug, Default)]
pub struct Cache {
    folder: Option<(PathBuf, String)>,
    file: Option<PathBuf>,
    known: HashMap<String, Point>,
    hits: usize,
}

#[derive(Serialize, Deserialize)]
struct Line {
    key: String,
    point: Point,
}

impl Cache {
    /// A cache for one question only.
    pub fn none() -> Cache {
        Cache::default()
    }

    pub fn in_folder(folder: PathBuf, version: impl Into<String>) -> Cache {
        Cache { folder: Some((folder, version.into())), ..Cache::default() }
    }

    /// The number of points that were found in the cache so far.
    pub fn hits(&self) -> usize {
        self.hits
    }

    /// Reads the known points of the trace with this hash.
    pub(super) fn open(&mut self, trace: &str) -> Result<(), ExperimentError> {
        let Some((folder, version)) = &self.folder else { return Ok(()) };
        std::fs::create_dir_all(folder).map_err(|e| io(folder, &e))?;
        let path = folder.join(format!("{trace}-{version}.jsonl"));
        let text = match std::fs::read(&path) {
            Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => String::new(),
            Err(e) => return Err(io(&path, &e)),
        };
        let lines = text.lines().filter_map(|line| serde_json::from_str::<Line>(line).ok());
        self.known = lines.map(|line| (line.key, line.point)).collect();
        self.file = Some(path);
        Ok(())
    }

    pub(super) fn get(&mut self, key: &str) -> Option<Point> {
        let point = self.known.get(key).cloned();
        self.hits += usize::from(point.is_some());
        point
    }

    pub(super) fn put(&mut self, points: Vec<(String, Point)>) -> Result<(), ExperimentError> {
        if let Some(path) = self.file.as_ref().filter(|_| !points.is_empty()) {
            // A newline first ends an incomplete line.
            let mut text = String::from("\n");
            for (key, point) in &points {
                let line = Line { key: key.clone(), point: point.clone() };
                text += &serde_json::to_string(&line).expect("a point is plain data");
                text.push('\n');
            }
            let file = OpenOptions::new().create(true).append(true).open(path);
            file.and_then(|mut file| file.write_all(text.as_bytes())).map_err(|e| io(path, &e))?;
        }
        self.known.extend(points);
        Ok(())
    }
}

fn io(path: &std::path::Path, error: &std::io::Error) -> ExperimentError {
    let reason = format!("{error}; give another folder with --cache, or --no-cache");
    ExperimentError::Io { path: path.display().to_string(), reason }
}

/// The key of a plan over the first `rows` rows of a trace (`u64::MAX`: all). `short`: the trace was shortened for
/// memories of at least this many pages.
pub(super) fn key(plan: &Plan, tasks: &Tasks, rows: u64, short: Option<usize>) -> String {
    let short = short.map(|pages| format!("|shortened {pages}")).unwrap_or_default();
    let text = format!("{:?}|{:?}|{:?}|{tasks:?}|{rows}{short}", plan.shown(), plan.area, plan.front);
    Sha256::digest(text.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect()
}
