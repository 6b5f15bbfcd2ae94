//! From a name on the command line to the binary that the kernel runs, and the libraries that are loaded into it.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::error::ProgramError;
use crate::run::image::{self, Image};

/// A program ready to start: scripts are resolved to their interpreters.
#[derive(Debug, Clone)]
pub struct Target {
    /// The file that the kernel loads.
    pub binary: PathBuf,
    /// What it was started with, with `argv[0]` in front.
    pub arguments: Vec<OsString>,
    /// What kind of file it is.
    pub image: Image,
}

/// Finds the program as a shell would, and determines its kind.
///
/// # Errors
/// It is not there, or cannot be executed.
pub fn resolve(program: &OsStr, arguments: &[OsString], search: &OsStr) -> Result<Target, ProgramError> {
    let path = find(program, search)?;
    let mut line: Vec<Vec<u8>> = vec![program.as_bytes().to_vec()];
    line.extend(arguments.iter().map(|a| a.as_bytes().to_vec()));
    let refused = |why: String| ProgramError::NotExecutable { path: path.clone(), why };
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

fn find(program: &OsStr, search: &OsStr) -> Result<PathBuf, ProgramError> {
    if program.is_empty() {
        return Err(ProgramError::NotFound(PathBuf::new()));
    }
    let mut refused = None;
    let is_path = program.as_bytes().contains(&b'/');
    let places = match is_path {
        true => vec![PathBuf::from(program)],
        false => places(search).map(|place| place.join(program)).collect(),
    };
    for path in places {
        match std::fs::metadata(&path) {
            Ok(_) if executable(&path) => return Ok(path),
            // As in shells, folders of PATH are searched for files, as far as this user may enter them.
            Ok(metadata) if metadata.is_dir() && !is_path => {}
            Err(_) if !is_path => {}
            Ok(metadata) if metadata.is_dir() => {
                refused = refused.or(Some(ProgramError::NotExecutable { path, why: "a directory".into() }));
            }
            Ok(_) => {
                refused =
                    refused.or(Some(ProgramError::NotExecutable { path, why: "no permission to execute it".into() }));
            }
            Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => {
                refused = refused.or(Some(ProgramError::NotExecutable { path, why: error.to_string() }));
            }
            Err(_) => {}
        }
    }
    Err(refused.unwrap_or_else(|| ProgramError::NotFound(program.into())))
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

/// A library of coldframe that other programs load; `exe_dir` is the folder of the executable.
pub fn find_library(exe_dir: &Path, name: &str) -> Option<PathBuf> {
    library_places(exe_dir, name).into_iter().find(|path| path.is_file()).and_then(|path| path.canonicalize().ok())
}

/// The folders in which [`find_library`] looks: that of the executable; its parent, for the binary of a test or
/// example; and `../lib/coldframe`.
pub fn library_places(exe_dir: &Path, name: &str) -> Vec<PathBuf> {
    let mut places = vec![exe_dir.join(name)];
    if let Some(up) = exe_dir.parent() {
        places.push(up.join(name));
        places.push(up.join("lib/coldframe").join(name));
    }
    places
}

/// The sanitizer that a binary was built with.
pub fn sanitizer(binary: &Path) -> Option<&'static str> {
    use std::os::unix::fs::FileExt;
    let file = std::fs::File::open(binary).ok()?;
    coldframe_proc::sanitizer(|at, into| file.read_at(into, at).unwrap_or(0))
}

/// The dynamic linker of a 64-bit little-endian ELF binary; `None` if the binary is static. ELF-64 object file format,
/// version 1.5: e_phoff at 32, e_phentsize at 54, e_phnum at 56; in a program header p_type at 0, p_offset at 8,
/// p_filesz at 32.
///
/// # Errors
/// The file cannot be read, or is not such a binary.
pub fn interpreter(binary: &Path) -> std::io::Result<Option<PathBuf>> {
    use std::os::unix::fs::FileExt;
    const PT_INTERP: u64 = 3;
    let file = std::fs::File::open(binary)?;
    let number = |offset: u64, bytes: usize| -> std::io::Result<u64> {
        let mut word = [0; 8];
        file.read_exact_at(&mut word[..bytes], offset)?;
        Ok(u64::from_le_bytes(word))
    };
    if number(0, 6)? != u64::from_le_bytes(*b"\x7fELF\x02\x01\0\0") {
        return Err(std::io::Error::other("not a 64-bit little-endian ELF binary"));
    }
    let (table, size, count) = (number(32, 8)?, number(54, 2)?, number(56, 2)?);
    for header in (0..count).map(|i| table + i * size) {
        if number(header, 4)? == PT_INTERP {
            let mut name = vec![0; number(header + 32, 8)?.min(4096) as usize];
            file.read_exact_at(&mut name, number(header + 8, 8)?)?;
            name.retain(|b| *b != 0);
            return Ok(Some(OsString::from_vec(name).into()));
        }
    }
    Ok(None)
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
            Err(ProgramError::NotFound(_))
        ));
    }

    #[test]
    fn a_folder_of_path_that_hides_the_program_or_has_its_name_does_not_count() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(dir.path().join("bin/tool")).unwrap();
        // A file in the place of a folder cannot be entered, either.
        let closed = file(dir.path(), "closed", b"", 0o644);
        let search = [closed, dir.path().join("bin")].map(|path| path.display().to_string()).join(":");
        assert!(matches!(resolve(OsStr::new("tool"), &[], OsStr::new(&search)), Err(ProgramError::NotFound(_))));
        let path = dir.path().join("bin/tool");
        assert!(matches!(resolve(path.as_os_str(), &[], OsStr::new("")), Err(ProgramError::NotExecutable { .. })));
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
