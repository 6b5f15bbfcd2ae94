//! From a name on the command line to the binary that runs, and to the tools that record it.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::image::{self, Image};
use crate::RecordError;

/// The file name of the plugin that `coldframe-plugin` builds.
pub const PLUGIN: &str = "libcoldframe_plugin.so";

/// A program ready to start: scripts are resolved to their interpreters.
#[derive(Debug, Clone)]
pub struct Target {
    pub binary: PathBuf,
    /// With `argv[0]` in front.
    pub arguments: Vec<OsString>,
    pub image: Image,
}

/// Finds the program as a shell would, and looks at what it is.
pub fn resolve(program: &OsStr, arguments: &[OsString], search: &OsStr) -> Result<Target, RecordError> {
    let path = find(program, search)?;
    let mut line: Vec<Vec<u8>> = vec![program.as_bytes().to_vec()];
    line.extend(arguments.iter().map(|a| a.as_bytes().to_vec()));
    let refused = |why: String| RecordError::NotExecutable { path: path.clone(), why };
    let (binary, image) = image::resolve(&path, &mut line).map_err(|e| match e.kind() {
        std::io::ErrorKind::NotFound => refused("its interpreter does not exist".into()),
        _ => refused(e.to_string()),
    })?;
    if !executable(&binary) {
        return Err(refused(format!("its interpreter {} is not executable", binary.display())));
    }
    if image == Image::Other {
        return Err(refused("neither an ELF binary nor a script with #!".into()));
    }
    Ok(Target { binary, arguments: line.into_iter().map(OsString::from_vec).collect(), image })
}

fn find(program: &OsStr, search: &OsStr) -> Result<PathBuf, RecordError> {
    if program.is_empty() {
        return Err(RecordError::NotFound(PathBuf::new()));
    }
    let mut refused = None;
    let places = match program.as_bytes().contains(&b'/') {
        true => vec![PathBuf::from(program)],
        false => places(search).map(|place| place.join(program)).collect(),
    };
    for path in places {
        match std::fs::metadata(&path) {
            Ok(_) if executable(&path) => return Ok(path),
            Ok(metadata) if metadata.is_dir() => {
                refused = refused.or(Some(RecordError::NotExecutable { path, why: "a directory".into() }));
            }
            Ok(_) => {
                refused =
                    refused.or(Some(RecordError::NotExecutable { path, why: "no permission to execute it".into() }));
            }
            Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => {
                refused = refused.or(Some(RecordError::NotExecutable { path, why: error.to_string() }));
            }
            Err(_) => {}
        }
    }
    Err(refused.unwrap_or_else(|| RecordError::NotFound(program.into())))
}

fn executable(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|m| m.is_file() && m.permissions().mode() & 0o111 != 0)
        && rustix::fs::access(path, rustix::fs::Access::EXEC_OK).is_ok()
}

/// The directories of a `PATH`; an empty one is the current directory, as in a shell.
fn places(search: &OsStr) -> impl Iterator<Item = PathBuf> + '_ {
    std::env::split_paths(search).map(|place| if place.as_os_str().is_empty() { ".".into() } else { place })
}

/// A tool of the system, by name.
pub fn tool(name: &str, search: &OsStr) -> Option<PathBuf> {
    find(OsStr::new(name), search).ok()
}

/// The plugin beside the running executable, where `cargo build` puts it, or where an installation does.
///
/// `exe_dir` is the directory of the executable.
pub fn find_plugin(exe_dir: &Path) -> Option<PathBuf> {
    plugin_places(exe_dir).into_iter().find(|path| path.is_file()).and_then(|path| path.canonicalize().ok())
}

/// Where [`find_plugin`] looks: beside it; one up, for a test's or example's binary; and in `../lib/coldframe`.
pub fn plugin_places(exe_dir: &Path) -> Vec<PathBuf> {
    let mut places = vec![exe_dir.join(PLUGIN)];
    if let Some(up) = exe_dir.parent() {
        places.push(up.join(PLUGIN));
        places.push(up.join("lib/coldframe").join(PLUGIN));
    }
    places
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn file(dir: &Path, name: &str, contents: &[u8], mode: u32) -> PathBuf {
        let path = dir.join(name);
        let mut file = std::fs::File::create(&path).unwrap();
        file.write_all(contents).unwrap();
        file.set_permissions(std::fs::Permissions::from_mode(mode)).unwrap();
        path
    }

    fn code(path: &Path) -> u8 {
        resolve(path.as_os_str(), &[], OsStr::new("")).unwrap_err().code()
    }

    #[test]
    fn a_missing_program_is_127_and_one_that_cannot_run_is_126() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(code(&dir.path().join("none")), 127);
        assert_eq!(code(dir.path()), 126);
        assert_eq!(code(&file(dir.path(), "plain", b"\x7fELF", 0o644)), 126);
        assert_eq!(code(&file(dir.path(), "text", b"hello", 0o755)), 126);
        assert_eq!(code(&file(dir.path(), "lost", b"#!/no/such/thing\n", 0o755)), 126);
        assert!(matches!(
            resolve(OsStr::new("no-such-program-here"), &[], OsStr::new("/usr/bin:/bin")),
            Err(RecordError::NotFound(_))
        ));
    }

    #[test]
    fn a_script_becomes_its_interpreter_with_the_script_as_argument() {
        let dir = tempfile::tempdir().unwrap();
        let script = file(dir.path(), "s", b"#! /bin/sh -e\necho\n", 0o755);
        let target = resolve(script.as_os_str(), &["x".into()], OsStr::new("")).unwrap();
        assert_eq!(target.binary, Path::new("/bin/sh"));
        assert_eq!(target.arguments, ["/bin/sh".as_ref(), "-e".as_ref(), script.as_os_str(), "x".as_ref()]);
    }

    #[test]
    fn machines_are_told_from_the_header() {
        let dir = tempfile::tempdir().unwrap();
        let elf = |class: u8, machine: u16| {
            let mut head = b"\x7fELF".to_vec();
            head.extend([class, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0]);
            head.extend(machine.to_le_bytes());
            let path = file(dir.path(), &format!("{class}-{machine}"), &head, 0o755);
            let image = image::read(&path).unwrap();
            (image::emulator(&image), image::describe(&image))
        };
        assert_eq!(elf(2, 62), (Some("qemu-x86_64"), "x86-64".into()));
        assert_eq!(elf(1, 40), (Some("qemu-arm"), "ARM".into()));
        assert_eq!(elf(2, 183), (Some("qemu-aarch64"), "AArch64".into()));
        assert_eq!(elf(1, 3), (None, "32-bit x86".into()));
        assert_eq!(elf(1, 62), (None, "x32".into()));
        assert_eq!(elf(2, 243), (None, "ELF machine 243".into()));
    }
}
