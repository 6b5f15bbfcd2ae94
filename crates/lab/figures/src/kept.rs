//! Rows that were computed before, in the user's cache folder. They are those of the same traces and the same program;
//! other rows are computed again.

use std::path::{Path, PathBuf};

use coldframe_experiment::string::sha256;
use coldframe_experiment::ExperimentError;
use coldframe_sheet::sheet::stored;

use crate::figure::Row;
use crate::papers;

/// Where rows are kept, and of what.
#[derive(Clone, Debug)]
pub struct Kept {
    /// The folder of the kept rows; `None`: nothing is kept.
    folder: Option<PathBuf>,
    /// The program that computes them.
    program: PathBuf,
}

impl Kept {
    /// Rows of this program, in the user's cache folder, if there is one.
    pub fn here() -> Kept {
        Kept { folder: stored::folder(), program: "/proc/self/exe".into() }
    }

    /// The rows of one paper, or of all, as [`papers::rows`] has them.
    pub fn rows(
        &self,
        paper: &str,
        short: bool,
        traces: &Path,
        progress: &mut dyn FnMut(&str),
    ) -> Result<Vec<Row>, ExperimentError> {
        let names: Vec<&str> = papers::ALL.iter().map(|known| known.name).filter(|name| *name == paper).collect();
        let names = if paper == "all" { papers::ALL.iter().map(|known| known.name).collect() } else { names };
        let (Some(folder), false) = (&self.folder, names.is_empty()) else {
            return papers::rows(paper, short, traces, progress);
        };
        let key = key(&self.program, traces)?;
        let mut rows = Vec::new();
        for name in names {
            let file = folder.join(format!("papers-{name}{}.json", if short { "-short" } else { "" }));
            match std::fs::read_to_string(&file).ok().and_then(|text| parsed(text, &key)) {
                Some(kept) => rows.extend(kept),
                None => {
                    let new = papers::rows(name, short, traces, progress)?;
                    // The text is read again, so that a second run has the same digits.
                    let text = serde_json::to_string(&(&key, &new)).unwrap_or_default();
                    let written = std::fs::create_dir_all(folder).and_then(|()| std::fs::write(&file, &text));
                    rows.extend(written.ok().and_then(|()| parsed(text, &key)).unwrap_or(new));
                }
            }
        }
        Ok(rows)
    }
}

/// The rows in a kept text, if they are of these files.
fn parsed(text: String, key: &str) -> Option<Vec<Row>> {
    // A few texts of a program that ends soon; rows borrow their fixed words.
    let (kept, rows): (String, Vec<Row>) = serde_json::from_str(String::leak(text)).ok()?;
    (kept == key).then_some(rows)
}

/// The hashes of the program and of all traces.
fn key(program: &Path, traces: &Path) -> Result<String, ExperimentError> {
    let io = |e: std::io::Error| ExperimentError::Io { path: traces.display().to_string(), reason: e.to_string() };
    let mut files = vec![program.to_path_buf()];
    for entry in std::fs::read_dir(traces).map_err(io)? {
        files.push(entry.map_err(io)?.path());
    }
    files.retain(|file| file.is_file());
    files[1..].sort();
    files.iter().map(|file| sha256(file)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_kept_until_a_trace_or_the_program_changes() {
        let folder = tempfile::tempdir().unwrap();
        let [traces, cache, program] = ["traces", "cache", "program"].map(|name| folder.path().join(name));
        std::fs::create_dir(&traces).unwrap();
        std::fs::write(&program, "one").unwrap();
        let before = key(&program, &traces).unwrap();
        let row =
            Row::new("table 1", "a \"row\"", 10.0, 0.1 + 0.2, "%", crate::figure::Origin::Fitted("one number", 2));
        let text = serde_json::to_string(&(&before, [row.compared_with("a rule", 1.0)])).unwrap();
        let rows = parsed(text.clone(), &before).unwrap();
        assert_eq!((rows[0].fitted.as_deref(), rows[0].origin.word()), (Some("one number, to 2 figures"), "fitted"));
        std::fs::create_dir(&cache).unwrap();
        for paper in papers::ALL {
            std::fs::write(cache.join(format!("papers-{}.json", paper.name)), &text).unwrap();
        }
        let kept = Kept { folder: Some(cache), program: program.clone() };
        let computes = |kept: &Kept| kept.rows("swl", false, &traces, &mut |_| {}).map(|rows| rows.len());
        assert_eq!(computes(&kept).unwrap(), 1, "nothing is computed: there are no traces");
        std::fs::write(traces.join("a.parquet"), "").unwrap();
        assert!(computes(&kept).is_err(), "another set of traces");
        std::fs::remove_file(traces.join("a.parquet")).unwrap();
        std::fs::write(&program, "two").unwrap();
        assert!(computes(&kept).is_err(), "another program");
        assert!(kept.rows("no paper", false, &traces, &mut |_| {}).is_err());
    }
}
