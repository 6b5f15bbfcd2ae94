//! The kind of program in a file: enough of ELF's header and of `#!` to choose its emulator.
//!
//! Both the recorder (for the first program) and the plugin (for later programs of a process) include this file.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// `e_machine` of the ELF specification.
pub const MACHINE_386: u16 = 3;
pub const MACHINE_ARM: u16 = 40;
pub const MACHINE_X86_64: u16 = 62;
pub const MACHINE_AARCH64: u16 = 183;

/// Linux follows this many `#!` in a chain (`BINPRM_BUF_SIZE` and the loop of `exec_binprm`: five rewrites).
const SCRIPTS_MAX: usize = 5;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Image {
    Elf { machine: u16, bits: u8, little_endian: bool, set_id: bool },
    Script { interpreter: PathBuf, argument: Option<Vec<u8>> },
    Other,
}

/// Reads the first bytes of `path`.
pub fn read(path: &Path) -> io::Result<Image> {
    let mut file = File::open(path)?;
    let metadata = file.metadata()?;
    let mut head = Vec::with_capacity(256);
    file.by_ref().take(256).read_to_end(&mut head)?;
    if head.starts_with(b"#!") {
        return Ok(script(&head[2..]));
    }
    if head.len() < 20 || !head.starts_with(b"\x7fELF") {
        return Ok(Image::Other);
    }
    let little_endian = head[5] == 1;
    let machine = [head[18], head[19]];
    let machine = if little_endian { u16::from_le_bytes(machine) } else { u16::from_be_bytes(machine) };
    let mode = metadata.permissions().mode();
    // Set-id bits of our own files change nothing, and root loses nothing either.
    let set_id = mode & 0o4000 != 0 && metadata.uid() != user() || mode & 0o2000 != 0 && user() != 0;
    Ok(Image::Elf { machine, bits: if head[4] == 2 { 64 } else { 32 }, little_endian, set_id })
}

fn script(rest: &[u8]) -> Image {
    let line = rest.split(|b| *b == b'\n').next().unwrap_or(rest).trim_ascii();
    let end = line.iter().position(|b| *b == b' ' || *b == b'\t').unwrap_or(line.len());
    let argument = line[end..].trim_ascii();
    if end == 0 {
        return Image::Other;
    }
    Image::Script {
        interpreter: PathBuf::from(std::ffi::OsStr::from_bytes(&line[..end])),
        argument: (!argument.is_empty()).then(|| argument.to_vec()),
    }
}

/// The effective user, by the owner of our own entry in /proc: no call that needs `unsafe`.
fn user() -> u32 {
    std::fs::metadata("/proc/self").map_or(0, |m| m.uid())
}

/// Follows `#!` to a binary: the binary, its image, and the arguments to put before `arguments[1..]`.
///
/// If there is an interpreter, its path replaces `arguments[0]`, as in the kernel.
pub fn resolve(path: &Path, arguments: &mut Vec<Vec<u8>>) -> io::Result<(PathBuf, Image)> {
    let mut path = path.to_path_buf();
    for _ in 0..=SCRIPTS_MAX {
        match read(&path)? {
            Image::Script { interpreter, argument } => {
                let mut front = vec![interpreter.as_os_str().as_bytes().to_vec()];
                front.extend(argument);
                front.push(path.as_os_str().as_bytes().to_vec());
                arguments.splice(0..1.min(arguments.len()), front);
                path = interpreter;
            }
            image => return Ok((path, image)),
        }
    }
    Err(io::Error::new(io::ErrorKind::InvalidInput, "more than five interpreters in a row"))
}

/// Machine and word size, for people.
pub fn describe(image: &Image) -> String {
    match image {
        Image::Elf { machine: MACHINE_X86_64, bits: 64, .. } => "x86-64".into(),
        Image::Elf { machine: MACHINE_X86_64, .. } => "x32".into(),
        Image::Elf { machine: MACHINE_386, .. } => "32-bit x86".into(),
        Image::Elf { machine: MACHINE_ARM, little_endian: true, .. } => "ARM".into(),
        Image::Elf { machine: MACHINE_AARCH64, little_endian: true, .. } => "AArch64".into(),
        Image::Elf { machine, little_endian, .. } => {
            format!("ELF machine {machine}{}", if *little_endian { "" } else { ", big-endian" })
        }
        Image::Script { .. } => "script".into(),
        Image::Other => "neither ELF nor #! script".into(),
    }
}

/// QEMU's user-mode emulator for this image, if coldframe records such programs. Its name is also the guest's name.
pub fn emulator(image: &Image) -> Option<&'static str> {
    match image {
        Image::Elf { machine: MACHINE_X86_64, bits: 64, little_endian: true, .. } => Some("qemu-x86_64"),
        Image::Elf { machine: MACHINE_ARM, bits: 32, little_endian: true, .. } => Some("qemu-arm"),
        Image::Elf { machine: MACHINE_AARCH64, bits: 64, little_endian: true, .. } => Some("qemu-aarch64"),
        _ => None,
    }
}
