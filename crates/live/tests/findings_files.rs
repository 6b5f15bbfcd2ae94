//! Regions that are files. Each test repeats a defect that was found by reading the code.

mod common;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Barrier;

use coldframe_live::{Inject, PAGE};
use common::*;

/// A file of this many pages, each filled with the number.
fn file_of(folder: &Path, number: u8, pages: usize) -> PathBuf {
    let path = folder.join(format!("file{number}"));
    std::fs::write(&path, vec![number; pages * PAGE]).unwrap();
    path
}

#[test]
fn two_threads_that_open_files_at_the_same_time_get_each_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let files: Vec<PathBuf> = (1..=4).map(|number| file_of(folder.path(), number, 1)).collect();
    succeeds(|| {
        let pager = pager(SMALL, |_| ());
        let start = Barrier::new(files.len());
        std::thread::scope(|scope| {
            for (number, path) in (1u8..).zip(&files) {
                let (pager, start) = (&pager, &start);
                scope.spawn(move || {
                    for round in 0..400 {
                        start.wait();
                        let region = pager.file(path).unwrap();
                        start.wait();
                        assert_eq!(region.as_slice()[round], number, "round {round}");
                    }
                });
            }
        });
    });
}

#[test]
fn a_flush_never_says_that_lost_pages_are_safe() {
    let folder = tempfile::tempdir().unwrap();
    let path = file_of(folder.path(), 0, 512);
    succeeds(|| {
        let inject = Inject { seed: 3, write_error: 2, ..Inject::default() };
        let pager = pager(SMALL, |o| o.inject = Some(inject));
        let mut region = pager.file(&path).unwrap();
        (0..512).for_each(|page| put(&mut region, page, page as u64 + 1));
        let said: Vec<String> =
            (0..40).map(|_| region.flush().map_or_else(|e| e.to_string(), |()| "safe".into())).collect();
        let on_file = std::fs::read(&path).unwrap();
        let wrong = (0..512).filter(|page| on_file[page * PAGE] != (page + 1) as u8).count();
        assert!(wrong > 0, "no page was lost, so this test shows nothing");
        assert!(said.iter().all(|text| text.contains("pages are lost")), "{wrong} pages are wrong, but: {said:?}");
        // Dropping the region would report the error again.
        std::mem::forget(region);
    });
}

#[test]
fn read_ahead_does_not_run_into_a_file_that_is_on_its_way_out() {
    let folder = tempfile::tempdir().unwrap();
    let [long, a, b] = [(1, 96), (2, 1024), (3, 1024)].map(|(number, pages)| file_of(folder.path(), number, pages));
    succeeds(|| {
        let pager = pager(SMALL, |o| o.read_ahead = 31);
        let streamed = pager.file(&long).unwrap();
        let done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                // It comes after the streamed page, at the first free place, and is long enough to be in flight for a
                // while.
                while !done.load(Ordering::Relaxed) {
                    for (number, path) in [(2, &a), (3, &b)] {
                        let region = pager.file(path).unwrap();
                        (0..32).for_each(|page| assert_eq!(region.as_slice()[page * PAGE], number, "page {page}"));
                    }
                }
            });
            for _ in 0..300 {
                (0..96).for_each(|page| assert_eq!(streamed.as_slice()[page * PAGE], 1));
            }
            done.store(true, Ordering::Relaxed);
        });
        pager.check();
    });
}

/// The kernel writes into a registered buffer without the page table, so no fault shows the write.
#[test]
fn what_the_kernel_writes_into_a_pinned_page_is_kept_after_a_flush() {
    use io_uring::{opcode, types, IoUring};
    use std::os::fd::AsRawFd;
    let folder = tempfile::tempdir().unwrap();
    let (path, source) = (file_of(folder.path(), 1, 8), file_of(folder.path(), 5, 1));
    succeeds(|| {
        let pager = pager(SMALL, |_| ());
        let mut region = pager.file(&path).unwrap();
        let at = region.as_ptr();
        let source = std::fs::File::open(source).unwrap();
        let mut ring = IoUring::new(2).unwrap();
        put(&mut region, 0, 3);
        let pin = region.pin(0..PAGE).unwrap();
        let buffers = [libc::iovec { iov_base: at.cast(), iov_len: PAGE }];
        let read = opcode::ReadFixed::new(types::Fd(source.as_raw_fd()), at, PAGE as u32, 0).build();
        // SAFETY: the page is pinned until the read is over, and no thread looks at it.
        unsafe {
            ring.submitter().register_buffers(&buffers).unwrap();
            region.flush().unwrap();
            ring.submission().push(&read).unwrap();
        }
        ring.submit_and_wait(1).unwrap();
        assert_eq!(ring.completion().next().unwrap().result(), PAGE as i32);
        ring.submitter().unregister_buffers().unwrap();
        drop(pin);
        let mut other = pager.anonymous(256 * PAGE).unwrap();
        (0..256).for_each(|page| put(&mut other, page, 1));
        assert_eq!(region.as_slice()[..PAGE], [5; PAGE]);
    });
}
