//! A few pages of a file that cannot leave a group's RAM.
//!
//! Linux kills a process of a group that has nothing but anonymous memory while swap is free (seen with 6.18, both
//! lists of pages, without MGLRU). Reclaim looks at the active list only while some other list has pages to look at
//! (`shrink_lruvec`), and ages the active list only if the inactive one is low (`inactive_is_low`), which it reads from
//! statistics that are up to two seconds old. If all pages have become active since, it finds nothing, and gives up.
//! With some pages on the lists of files, it continues with the active list. Pages that a pipe refers to stay there:
//! they can be neither dropped nor moved. Reading memory.stat every 5 ms makes the statistics true as well, but then
//! reclaim works more and programs take up to twice the time.

use std::fs::File;
use std::io::Write;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};
use rustix::pipe::{fcntl_setpipe_size, pipe, splice, SpliceFlags};

use crate::files::write;
use crate::guard::cleanup::Cleanups;
use coldframe_proc::Tree;

/// Pages that are pinned: 64 KiB, as many as a pipe has room for.
const PAGES: usize = 16;
/// Folders that may be on a disk. Files of a tmpfs are not on the lists of files.
const FOLDERS: [&str; 3] = ["/var/tmp", "/tmp", "."];
/// `TMPFS_MAGIC` and `RAMFS_MAGIC` (statfs(2)).
const IN_RAM: [u64; 2] = [0x0102_1994, 0x8584_58f6];

/// Pins pages in the group of a folder. This process joins the group for that, and goes back.
pub(crate) fn pin(tree: &Tree, group: &Path, cleanups: &mut Cleanups) -> Result<String, String> {
    let on_disk = |folder: &PathBuf| rustix::fs::statfs(folder).is_ok_and(|fs| !IN_RAM.contains(&(fs.f_type as u64)));
    let Some(folder) = FOLDERS.iter().map(PathBuf::from).find(on_disk) else {
        return Err("no folder for a temporary file is on a disk".into());
    };
    let back = current_door(tree, group);
    let door = group.join("cgroup.procs");
    write(&door, "0").map_err(|e| format!("{}: {e}", door.display()))?;
    let pinned = pages(&folder);
    write(&back, "0").map_err(|e| format!("{}: {e}", back.display()))?;
    let (file, pipe) = pinned.map_err(|e| format!("{}: {e}", folder.display()))?;
    cleanups.pinned.push((file, pipe));
    Ok(String::new())
}

/// New pages of a file without a name, in a pipe. The file stays open: with a closed one, sort was killed in 1 of 30
/// runs, and then none of the pages was on the lists of files; the cause is not known.
fn pages(folder: &Path) -> std::io::Result<(File, [OwnedFd; 2])> {
    let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
    let mut file = File::from(rustix::fs::open(folder, flags, Mode::RUSR | Mode::WUSR)?);
    file.write_all(&vec![1; PAGES * 4096])?;
    let (out, into) = pipe()?;
    fcntl_setpipe_size(&into, PAGES * 4096)?;
    let mut offset = 0;
    while offset < (PAGES * 4096) as u64 {
        let left = PAGES * 4096 - offset as usize;
        if splice(file.as_fd(), Some(&mut offset), into.as_fd(), None, left, SpliceFlags::NONBLOCK)? == 0 {
            break;
        }
    }
    Ok((file, [out, into]))
}

/// The door of the group that this process is in, in the hierarchy of `group`.
fn current_door(tree: &Tree, group: &Path) -> PathBuf {
    let parent = group.parent().unwrap_or(group);
    let groups = tree.own_process().cgroups();
    let mut folders = groups.iter().flat_map(|group| {
        parent.ancestors().map(|above| above.join(group.path.trim_start_matches('/')).join("cgroup.procs"))
    });
    let is_here = |door: &PathBuf| {
        let me = std::process::id().to_string();
        std::fs::read_to_string(door).is_ok_and(|processes| processes.lines().any(|process| process == me))
    };
    folders.find(is_here).unwrap_or_else(|| parent.join("cgroup.procs"))
}
