//! Rows of papers, kept in the user's cache folder for the build and the traces that they came from. A cache that
//! cannot be read or written is no error: rows are computed then.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};

use coldframe_figures::figure::Row;
use serde::{Deserialize, Serialize};

/// The folder, and what rows depend on in addition to their paper.
pub struct RowCache {
    pub folder: PathBuf,
    build: String,
}

/// A file of the folder. A later build writes over it.
#[derive(Serialize, Deserialize)]
struct Page {
    build: String,
    rows: Vec<Row>,
}

impl RowCache {
    /// For this program and these traces; `None` if there is no place for a cache, or no telling what runs.
    pub fn of(traces: &Path) -> Option<RowCache> {
        let place = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let cache = place("XDG_CACHE_HOME").or_else(|| Some(place("HOME")?.join(".cache")))?;
        let mut hash = DefaultHasher::new();
        std::fs::read(std::env::current_exe().ok()?).ok()?.hash(&mut hash);
        let file = |entry: std::fs::DirEntry| {
            let metadata = entry.metadata().ok()?;
            Some((entry.file_name(), metadata.len(), metadata.modified().ok()?))
        };
        let mut files: Vec<_> = std::fs::read_dir(traces).ok()?.filter_map(|entry| file(entry.ok()?)).collect();
        files.sort();
        files.hash(&mut hash);
        Some(RowCache { folder: cache.join("coldframe/papers"), build: format!("{:016x}", hash.finish()) })
    }

    fn file(&self, paper: &str) -> PathBuf {
        self.folder.join(format!("{paper}.toml"))
    }

    /// The paper's rows, if this build has kept them.
    pub fn rows(&self, paper: &str) -> Option<Vec<Row>> {
        let page: Page = toml::from_str(&std::fs::read_to_string(self.file(paper)).ok()?).ok()?;
        (page.build == self.build).then_some(page.rows)
    }

    /// Stores the paper's rows. A concurrent reader gets the old rows or the new ones.
    pub fn keep(&self, paper: &str, rows: &[Row]) -> Option<()> {
        let text = toml::to_string(&Page { build: self.build.clone(), rows: rows.to_vec() }).ok()?;
        let new = self.folder.join(format!("{paper}.{}", std::process::id()));
        std::fs::create_dir_all(&self.folder).ok()?;
        std::fs::write(&new, text).ok()?;
        std::fs::rename(&new, self.file(paper)).ok()
    }
}
