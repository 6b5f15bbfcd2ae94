//! Where a group of processes can be made: cgroup v1, v2 as root, or v2 in a subtree that the user may write to.

use std::path::{Path, PathBuf};

use rustix::fs::{access, Access};

use crate::files::write;
use crate::group::version::Version;
use crate::KernelError;
use coldframe_proc::{text, Cgroup, Mount, Process, Tree};

/// A folder in which a memory group can be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The version of the memory controller.
    pub version: Version,
    /// The folder.
    pub parent: PathBuf,
    /// The folder for a second group that only counts pressure: with v1, where v2 is mounted as well.
    pub pressure: Option<PathBuf>,
    /// Whether memory groups must still be enabled in `parent` (v2).
    pub enable: bool,
}

/// What to do where groups cannot be made.
pub(crate) const WRITABLE: &str = "run it as root; in a container: with --privileged";

/// A mounted hierarchy and the folder of this process in it.
pub(crate) struct Mounted {
    pub(crate) mount: PathBuf,
    current: PathBuf,
}

impl Place {
    /// The place for this process.
    ///
    /// # Errors
    /// There is no memory controller, or no folder that this user may write to.
    pub fn find(tree: &Tree) -> Result<Place, KernelError> {
        let (v1, v2) = (mounted(tree, Version::One), mounted(tree, Version::Two));
        if let Some(v1) = v1 {
            let parent = if v1.current.is_dir() { v1.current } else { v1.mount };
            let pressure = v2.map(|v2| if v2.current.is_dir() { v2.current } else { v2.mount });
            let pressure = pressure.filter(|folder| folder.join("cgroup.pressure").exists() && writable(folder));
            return match writable(&parent) {
                true => Ok(Place { version: Version::One, parent, pressure, enable: false }),
                false => Err(KernelError::lacks(
                    format!("{} (cgroup v1) cannot be written by you", parent.display()),
                    WRITABLE,
                )),
            };
        }
        let Some(v2) = v2 else {
            return Err(KernelError::no_cgroups());
        };
        second(&v2)
    }
}

/// Puts this process where it is. The first process that changes its group waits for all processors, some 10 ms, and
/// those that follow soon do not (`cgroup_threadgroup_rwsem`); so a thread can wait while other things are done.
pub fn stay(tree: &Tree, version: Version) {
    let door = mounted(tree, version).map(|mounted| mounted.current.join("cgroup.procs"));
    let _ = door.map(|door| write(&door, "0"));
}

/// A place in v2: the nearest folder above this process's that hands memory to its groups; a group must have no
/// processes of its own for that, so this process's own folder cannot be it, except the root of all groups.
fn second(two: &Mounted) -> Result<Place, KernelError> {
    let has = |folder: &Path, file: &str| text(&folder.join(file)).split_whitespace().any(|name| name == "memory");
    if !has(&two.mount, "cgroup.controllers") {
        return Err(KernelError::lacks(
            format!("the cgroups in {} have no memory controller", two.mount.display()),
            "boot with cgroup_enable=memory",
        ));
    }
    let place = |parent: &Path, enable| Place { version: Version::Two, parent: parent.into(), pressure: None, enable };
    let above = two.current.ancestors().skip(1).take_while(|folder| folder.starts_with(&two.mount));
    if let Some(parent) = above.into_iter().find(|folder| writable(folder) && has(folder, "cgroup.subtree_control")) {
        return Ok(place(parent, false));
    }
    // Only the root of all groups may have both processes and groups with memory; it has no file of its own type.
    if writable(&two.mount) && !two.mount.join("cgroup.type").exists() {
        return Ok(place(&two.mount, !has(&two.mount, "cgroup.subtree_control")));
    }
    Err(KernelError::lacks(
        format!("no group above {} can be written to (cgroup v2)", two.current.display()),
        "run it as root, or in a session of systemd (systemd-run --user --scope); in a container: with --privileged",
    ))
}

/// Whether this user may make groups in a folder and move processes there.
fn writable(folder: &Path) -> bool {
    access(folder, Access::WRITE_OK).is_ok() && access(folder.join("cgroup.procs"), Access::WRITE_OK).is_ok()
}

pub(crate) fn mounted(tree: &Tree, version: Version) -> Option<Mounted> {
    let fits = |mount: &Mount| match version {
        Version::One => mount.kind == "cgroup" && mount.options.iter().any(|option| option == "memory"),
        Version::Two => mount.kind == "cgroup2",
    };
    let mount = tree.path(tree.mounts().into_iter().find(fits)?.folder);
    let path = path_of(&tree.own_process(), version)?;
    Some(Mounted { current: mount.join(path.trim_start_matches('/')), mount })
}

pub(crate) fn path_of(process: &Process, version: Version) -> Option<String> {
    let fits = |group: &Cgroup| match version {
        Version::One => group.controllers.iter().any(|name| name == "memory"),
        Version::Two => group.hierarchy == 0,
    };
    process.cgroups().into_iter().find(fits).map(|group| group.path)
}
