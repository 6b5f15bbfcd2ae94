//! The libraries that coldframe loads into other programs. They are beside the program, in `../lib/coldframe`, or
//! within the program itself.
//!
//! `cargo install` only installs programs. So a program built by it contains the libraries, and writes the one that
//! is needed to the user's cache folder, in which no other user can replace it. An existing file must have the same
//! bytes; otherwise it is written again.

use std::path::{Path, PathBuf};

use coldframe_sheet::sheet::stored;

use crate::error::AnswerError;
use crate::run::lookup::find_library;

/// By name, packed by gzip.
#[cfg(bundled)]
const LIBRARIES: &[(&str, &[u8])] = &[
    ("libcoldframe_preload.so", include_bytes!(concat!(env!("OUT_DIR"), "/libcoldframe_preload.so.gz"))),
    ("libcoldframe_plugin.so", include_bytes!(concat!(env!("OUT_DIR"), "/libcoldframe_plugin.so.gz"))),
];
#[cfg(not(bundled))]
const LIBRARIES: &[(&str, &[u8])] = &[];

/// Where the libraries of this program are, for people.
pub fn place() -> String {
    let exe = std::env::current_exe().unwrap_or_default();
    match find_library(exe.parent().unwrap_or(Path::new(".")), "libcoldframe_preload.so") {
        Some(path) => path.display().to_string(),
        None if cfg!(bundled) => "within the program".to_string(),
        None => "none: `run` and `record` need libcoldframe_preload.so beside the program".to_string(),
    }
}

/// The library, if there is one.
///
/// # Errors
/// The program holds it, and cannot write it to the cache folder.
pub fn library(name: &str) -> Result<Option<PathBuf>, AnswerError> {
    let exe = std::env::current_exe().unwrap_or_default();
    let folder = exe.parent().unwrap_or(Path::new("."));
    if let Some(path) = find_library(folder, name) {
        return Ok(Some(path));
    }
    let Some((_, bytes)) = LIBRARIES.iter().find(|(held, _)| *held == name) else { return Ok(None) };
    let refuse = |message: String| AnswerError::new(5, message);
    let Some(cache) = stored::folder() else {
        return Err(refuse(format!("{name} has no place to be written to: set XDG_CACHE_HOME to a folder of yours")));
    };
    let place = cache.join(concat!("lib-", env!("CARGO_PKG_VERSION"))).join(name);
    let mut whole = Vec::new();
    std::io::Read::read_to_end(&mut flate2::read::GzDecoder::new(*bytes), &mut whole)
        .map_err(|error| refuse(format!("{name} within this program is damaged: {error}; install coldframe again")))?;
    let unwritten =
        |error| format!("{} cannot be written: {error}; set XDG_CACHE_HOME to a folder of yours", place.display());
    write(&place, &whole).map_err(|error| refuse(unwritten(error)))?;
    Ok(Some(place))
}

/// In one step: another program may be loading the file.
fn write(place: &Path, bytes: &[u8]) -> std::io::Result<()> {
    if std::fs::read(place).is_ok_and(|present| present == bytes) {
        return Ok(());
    }
    let folder = place.parent().unwrap_or(Path::new("."));
    std::fs::create_dir_all(folder)?;
    let mut file = tempfile::NamedTempFile::new_in(folder)?;
    std::io::Write::write_all(&mut file, bytes)?;
    file.persist(place)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_library_with_other_bytes_is_written_anew() {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().join("a/b.so");
        for bytes in [b"one".as_slice(), b"one", b"another"] {
            write(&place, bytes).unwrap();
            assert_eq!(std::fs::read(&place).unwrap(), bytes);
        }
    }

    #[test]
    fn a_missing_library_is_not_found() {
        assert!(library("libnobody.so").unwrap().is_none());
    }
}
