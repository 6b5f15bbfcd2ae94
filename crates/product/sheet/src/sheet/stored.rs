//! The sheet of this machine, as `coldframe doctor --calibrate` wrote it. It is in the user's cache folder; or in a
//! folder of the user among the temporary files; or, if neither can be written, only in this process's memory.

use std::fs::{DirBuilder, Metadata};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use super::{parse, Sheet, SheetError};

/// The name of this machine among devices.
pub const NAME: &str = "here";

/// The file in the cache folder.
const FILE: &str = "here.toml";

/// The sheet of this process, if no folder could be written.
static ONLY_HERE: Mutex<Option<Sheet>> = Mutex::new(None);

/// The sheet of this machine that was kept last, even if it is no longer true.
///
/// # Errors
/// There is none, it cannot be read, or it is not a sheet.
pub fn read() -> Result<Sheet, SheetError> {
    match (only(), path()) {
        (Some(sheet), _) => Ok(sheet),
        (None, Some(path)) => from(&path),
        (None, None) => Err(SheetError::NoHere),
    }
}

fn only() -> Option<Sheet> {
    ONLY_HERE.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).clone()
}

/// The file that [`read`] reads; `None` if there is none.
pub fn path() -> Option<PathBuf> {
    if only().is_some() {
        return None;
    }
    folders().into_iter().map(|folder| folder.join(FILE)).find(|path| path.is_file())
}

fn from(path: &Path) -> Result<Sheet, SheetError> {
    let text = std::fs::read_to_string(path).map_err(|e| SheetError::Io {
        path: path.into(),
        reason: format!("{e}; run `coldframe doctor --calibrate`"),
    })?;
    parse(&path.display().to_string(), &text)
}

/// Keeps the sheet for other processes, and returns its file. `None`: no folder can be written, and the sheet is for
/// this process only.
pub fn store(sheet: &Sheet) -> Option<PathBuf> {
    let path_of_file = folders().into_iter().find_map(|folder| write(&folder, &sheet.to_toml()));
    let only = if path_of_file.is_none() { Some(sheet.clone()) } else { None };
    *ONLY_HERE.lock().unwrap_or_else(|poisoned| poisoned.into_inner()) = only;
    path_of_file
}

/// Writes the whole file or nothing: another process may be reading.
fn write(folder: &Path, text: &str) -> Option<PathBuf> {
    DirBuilder::new().recursive(true).mode(0o700).create(folder).ok()?;
    let (path, new) = (folder.join(FILE), folder.join(format!(".{FILE}.{}", std::process::id())));
    let written = std::fs::write(&new, text).and_then(|()| std::fs::rename(&new, &path));
    if written.is_err() {
        let _ = std::fs::remove_file(&new);
    }
    written.ok().map(|()| path)
}

/// The folder for what coldframe keeps from one start to the next; `None`: there is none.
pub fn folder() -> Option<PathBuf> {
    folders().into_iter().next()
}

/// Folders for the sheet, the best first.
fn folders() -> Vec<PathBuf> {
    let of = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let cache = of("XDG_CACHE_HOME").or_else(|| Some(of("HOME")?.join(".cache")));
    let mut all: Vec<PathBuf> = cache.into_iter().map(|folder| folder.join("coldframe")).collect();
    all.extend(temporary());
    all
}

/// A folder among the temporary files, unless another user has made one of this name.
fn temporary() -> Option<PathBuf> {
    let own = std::fs::metadata("/proc/self").ok()?.uid();
    let folder = std::env::temp_dir().join(format!("coldframe-{own}"));
    let usable = |meta: Metadata| meta.is_dir() && meta.uid() == own;
    std::fs::symlink_metadata(&folder).map_or(true, usable).then_some(folder)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sheet_is_written_whole_into_a_folder_that_is_made_and_nowhere_else() {
        let folder = std::env::temp_dir().join(format!("coldframe-kept-{}", std::process::id()));
        let deep = folder.join("a/b");
        assert_eq!(write(&deep, "first"), Some(deep.join(FILE)));
        assert_eq!(write(&deep, "second"), Some(deep.join(FILE)));
        assert_eq!(std::fs::read_to_string(deep.join(FILE)).unwrap(), "second");
        assert_eq!(std::fs::read_dir(&deep).unwrap().count(), 1, "nothing is left beside it");
        assert_eq!(write(&deep.join(FILE), "in a file"), None);
        std::fs::remove_dir_all(folder).unwrap();
    }
}
