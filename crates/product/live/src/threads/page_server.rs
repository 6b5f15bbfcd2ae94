//! Serves forked children the pages that left RAM before their fork (`swap/parent.rs`): one thread of the pager reads
//! them from the swap file. A child can see only the slots that were in use at its fork.

use std::ffi::c_void;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicUsize, Ordering::*};

use rustix::event::epoll;

use crate::region::ManagedMemory;
use crate::swap::parent::answer;
use crate::sys::sockets::{receive, shut_down};
use crate::sys::thread::{spawn, RawThread, THREAD};
use crate::sys::{self, High, Sys};
use crate::{LiveError, PAGE};

/// The children of a process that are served.
pub struct PageServer {
    children: High,
    /// Room for a page on its way.
    page: usize,
    managed: AtomicUsize,
}

/// The length of a request: the number of a slot.
const REQUEST: usize = 8;

impl PageServer {
    pub fn new() -> Result<PageServer, LiveError> {
        let failed = |error| LiveError::os("what serves pages to children", error);
        let children = sys::move_high(epoll::create(epoll::CreateFlags::CLOEXEC).map_err(failed)?);
        let page = sys::map_memory(PAGE).map_err(failed)?;
        Ok(PageServer { children, page, managed: AtomicUsize::new(0) })
    }

    /// From now on this child is served, which was forked at the end of `epoch`, until it closes its end.
    pub fn add(&self, child: &OwnedFd, epoch: u32) -> Sys<()> {
        let data = epoll::EventData::new_u64(u64::from(epoch) << 32 | child.as_raw_fd() as u64);
        epoll::add(&*self.children, child, data, epoll::EventFlags::IN)
    }

    /// # Safety
    /// Both live as long as the process.
    pub unsafe fn start(&self, managed: &ManagedMemory) -> Sys<RawThread> {
        self.managed.store(&raw const *managed as usize, Release);
        // SAFETY: the caller answers for it.
        unsafe { spawn(serve, (&raw const *self).cast_mut().cast(), THREAD) }
    }

    fn serve(&self) -> ! {
        // SAFETY: `start` gave it.
        let managed = unsafe { &*(self.managed.load(Acquire) as *const ManagedMemory) };
        loop {
            let mut events: [std::mem::MaybeUninit<epoll::Event>; 8] = [const { std::mem::MaybeUninit::uninit() }; 8];
            let Ok((events, _)) = epoll::wait(&*self.children, &mut events[..], None) else { continue };
            for data in events.iter().map(|event| event.data.u64()) {
                let (child, epoch) = (data as u32 as RawFd, (data >> 32) as u32);
                if self.serve_one(managed, child, epoch).is_err() {
                    // The log closes it, when it frees the slots that only this child could see.
                    // SAFETY: open until then.
                    let _ = epoll::delete(&*self.children, unsafe { BorrowedFd::borrow_raw(child) });
                    shut_down(child);
                }
            }
        }
    }

    /// Answers a request. An error: the child has ended, or needs no more.
    fn serve_one(&self, managed: &ManagedMemory, child: RawFd, epoch: u32) -> Sys<()> {
        // SAFETY: the log keeps it open until its end is seen.
        let child = unsafe { BorrowedFd::borrow_raw(child) };
        let mut slot = [0; REQUEST];
        match receive(child, &mut slot, false) {
            Ok((REQUEST, _)) => {}
            // The event was that of a child which has ended, and the number is another one's by now.
            Err(sys::Errno::AGAIN) => return Ok(()),
            other => return other.and(Err(sys::Errno::PIPE)),
        }
        // SAFETY: a page of this thread's.
        unsafe {
            let read = managed.work.log().read_for_child(u64::from_ne_bytes(slot), epoch, self.page);
            answer(child, read, std::slice::from_raw_parts(self.page as *const u8, PAGE))
        }
    }
}

impl Drop for PageServer {
    fn drop(&mut self) {
        // SAFETY: no thread uses it.
        unsafe { sys::unmap_memory(self.page, PAGE) };
    }
}

unsafe extern "C" fn serve(server: *mut c_void) {
    // SAFETY: `start` gave it.
    unsafe { &*server.cast::<PageServer>() }.serve();
}
