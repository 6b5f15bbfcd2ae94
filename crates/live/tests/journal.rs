//! The journal of a pager with a full disk: the journal ends, the program continues, and the written part replays.

mod common;

use std::ffi::CString;
use std::path::Path;

use coldframe_live::PAGE;
use common::{in_child, pager, round_of, stamp};

/// Mounts a file system of this size on a folder, for this process alone. False: not allowed here.
fn small_disk(at: &Path, bytes: usize) -> bool {
    let (path, size) = (CString::new(at.to_str().unwrap()).unwrap(), CString::new(format!("size={bytes}")).unwrap());
    // SAFETY: strings that live through the calls.
    unsafe {
        (libc::unshare(libc::CLONE_NEWNS) == 0 || libc::unshare(libc::CLONE_NEWUSER | libc::CLONE_NEWNS) == 0)
            && libc::mount(
                c"none".as_ptr(),
                c"/".as_ptr(),
                std::ptr::null(),
                libc::MS_REC | libc::MS_PRIVATE,
                std::ptr::null(),
            ) == 0
            && libc::mount(c"none".as_ptr(), path.as_ptr(), c"tmpfs".as_ptr(), 0, size.as_ptr().cast()) == 0
    }
}

#[test]
fn a_full_disk_ends_the_journal_and_not_the_program() {
    const PAGES: usize = 512;
    for handlers in [1, 2] {
        let folder = tempfile::tempdir().unwrap();
        let (status, stderr) = in_child(|| {
            if !small_disk(folder.path(), 256 << 10) {
                eprintln!("skipped: no file system can be mounted here");
                return;
            }
            let path = folder.path().join("journal");
            let pager = pager(1 << 18, |o| (o.handlers, o.journal) = (handlers, Some(path.clone())));
            let region = pager.anonymous(PAGES * PAGE).unwrap();
            for round in 1..=60 {
                for page in 0..PAGES {
                    assert_eq!(round_of(&region, page), round - 1);
                    stamp(&region, page, round);
                }
            }
            drop(region);
            pager.check();
            let events = coldframe_journal::replay(&std::fs::read(&path).unwrap()).unwrap().events;
            assert!(events > 1000, "{events} events are in the journal");
            assert!(events < 60 * PAGES as u64, "the disk was large enough for all");
            drop(pager);
        });
        assert_eq!(status, 0, "{handlers} handlers: {stderr}");
        let words = stderr.matches("the journal ends after").count();
        assert!(words == 1 || stderr.contains("skipped"), "{handlers} handlers: {stderr}");
    }
}
