//! The journal of a pager: with a full disk it ends, the program continues, and the written part replays; and frames
//! that go to another process of the run and come back are in it.

use std::ffi::CString;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use crate::common::{forked, in_child, pager, rewrite, round_of, stamp, succeeds, wait_for};
use coldframe_core::Event;
use coldframe_journal::Entry;
use coldframe_live::{Options, Pager, StatsFile, PAGE};

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

#[test]
fn who_gives_frames_to_another_process_has_that_in_its_journal_and_all_its_bytes() {
    const PAGES: usize = 900;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal");
    succeeds(|| {
        let stats = StatsFile::create().unwrap();
        let pager = |journal: Option<PathBuf>| {
            let (max_memory, stats_fd) = (1 << 28, Some(stats.fd()));
            let options = Options { max_memory, one_budget: true, stats_fd, journal, ..Options::new(4 << 20) };
            Pager::start_for_program(options).unwrap()
        };
        let ((mut filled, mut fills), (mut done, mut ends)) = (std::io::pipe().unwrap(), std::io::pipe().unwrap());
        let gives = forked(|| {
            let pager = pager(Some(path.clone()));
            let region = pager.anonymous(PAGES * PAGE).unwrap();
            rewrite(&region, PAGES, 1..=1);
            fills.write_all(b"x").unwrap();
            done.read_exact(&mut [0]).unwrap();
            rewrite(&region, PAGES, 2..=2);
            pager.check();
            pager.flush_journal();
        });
        let takes = forked(|| {
            filled.read_exact(&mut [0]).unwrap();
            let pager = pager(None);
            rewrite(&pager.anonymous(PAGES * PAGE).unwrap(), PAGES, 1..=20);
            ends.write_all(b"x").unwrap();
        });
        assert_eq!((wait_for(takes), wait_for(gives)), (0, 0));
    });
    let bytes = std::fs::read(&path).unwrap();
    coldframe_journal::replay(&bytes).unwrap();
    let (_, mut entries) = coldframe_journal::open(&bytes).unwrap();
    let (mut lent, mut borrowed) = (0, 0);
    while let Some(entry) = entries.next_entry().unwrap() {
        match entry {
            Entry::Event { event: Event::Lend { frames }, .. } => lent += frames,
            Entry::Event { event: Event::Borrow { frames }, .. } => borrowed += frames,
            _ => {}
        }
    }
    // It begins with its floor, has room for its pages, gives some away, and gets some back.
    assert!(borrowed as usize > PAGES - 128 && lent > 896 + 64, "{lent} lent, {borrowed} borrowed");
}
