//! The sheet of this machine, as `coldframe doctor --calibrate` wrote it. It is in the user's cache folder; or in a
//! folder of the user among the temporary files; or, if neither can be written, only in this process's memory.
//!
//! Root may have another user's HOME (`sudo -E`, `su -m`). That user could put a link or a file of their own in the
//! place of any file there, so a folder is used only if nobody but root and this user can move or fill it.

use std::fs::{DirBuilder, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
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
    // A file or link of that name, which a killed process has left, is not followed.
    let _ = std::fs::remove_file(&new);
    let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&new);
    let written = file.and_then(|mut file| file.write_all(text.as_bytes())).and_then(|()| std::fs::rename(&new, &path));
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
    let Some(user) = user() else { return Vec::new() };
    let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let cache = variable("XDG_CACHE_HOME").or_else(|| Some(variable("HOME")?.join(".cache")));
    let roots = (user == 0).then(|| PathBuf::from("/var/cache"));
    let mut folders: Vec<PathBuf> = cache.into_iter().chain(roots).map(|folder| folder.join("coldframe")).collect();
    folders.push(variable("TMPDIR").unwrap_or("/tmp".into()).join(format!("coldframe-{user}")));
    folders.retain(|folder| is_own(folder, user));
    folders
}

/// The user of this process.
fn user() -> Option<u32> {
    std::fs::metadata("/proc/self").ok().map(|process| process.uid())
}

/// Whether only root and this user can move a folder, or put something in it. Folders that are not there yet are made
/// in the last one that is.
fn is_own(folder: &Path, user: u32) -> bool {
    let Ok(whole) = std::path::absolute(folder) else { return false };
    let nearest = whole.ancestors().find(|folder| folder.symlink_metadata().is_ok());
    let Some(real) = nearest.and_then(|folder| folder.canonicalize().ok()) else { return false };
    // In a namespace of users, root of the machine has another number.
    let root = Path::new("/").metadata().map_or(0, |root| root.uid());
    let safe = |folder: &Path| {
        folder.metadata().is_ok_and(|it| {
            it.is_dir() && [0, root, user].contains(&it.uid()) && (it.mode() & 0o002 == 0 || it.mode() & 0o1000 != 0)
        })
    };
    let last = real.metadata().is_ok_and(|it| nearest != Some(&*whole) || it.uid() == user && it.mode() & 0o002 == 0);
    last && real.ancestors().all(safe)
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

    #[test]
    fn what_stands_in_the_place_of_the_new_file_is_not_followed() {
        let folder = std::env::temp_dir().join(format!("coldframe-link-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let (other, new) = (folder.join("other"), folder.join(format!(".{FILE}.{}", std::process::id())));
        std::fs::write(&other, "precious").unwrap();
        std::os::unix::fs::symlink(&other, &new).unwrap();
        assert_eq!(write(&folder, "first"), Some(folder.join(FILE)));
        assert_eq!(std::fs::read_to_string(&other).unwrap(), "precious");
        assert!(folder.join(FILE).symlink_metadata().unwrap().is_file());
        std::fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn a_folder_that_another_user_can_move_or_fill_is_not_used() {
        let folder = std::env::temp_dir().join(format!("coldframe-own-{}", std::process::id()));
        let (deep, own) = (folder.join("a/b"), user().unwrap());
        std::fs::create_dir_all(&deep).unwrap();
        let open = |mode| std::os::unix::fs::PermissionsExt::from_mode(mode);
        assert!(is_own(&deep, own) && is_own(&deep.join("new/er"), own));
        std::fs::set_permissions(folder.join("a"), open(0o777)).unwrap();
        assert!(!is_own(&deep, own) && !is_own(&deep.join("new"), own));
        std::fs::set_permissions(folder.join("a"), open(0o1777)).unwrap();
        assert!(is_own(&deep, own) && is_own(&folder.join("a/new"), own) && !is_own(&folder.join("a"), own));
        std::fs::set_permissions(folder.join("a"), open(0o755)).unwrap();
        // Of another user, and a link to that.
        if own == 0 {
            std::os::unix::fs::chown(folder.join("a"), Some(65534), None).unwrap();
            std::os::unix::fs::symlink(folder.join("a"), folder.join("link")).unwrap();
            assert!(!is_own(&deep, own) && !is_own(&folder.join("a/new"), own) && !is_own(&folder.join("link/b"), own));
        }
        std::fs::remove_dir_all(folder).unwrap();
    }
}
