//! The pages of a forked child that left RAM before the fork: its parent's pager reads them for it, and no others. So
//! the child needs no descriptor of its parent's swap file, and cannot read what its parent writes there later.
//!
//! A request is a slot's number; the answer is the page, or an error number.

use std::os::fd::AsFd;

use crate::sys::lock::Lock;
use crate::sys::sockets::{receive, send};
use crate::sys::{Errno, High, Sys};
use crate::PAGE;

/// The connection of a child with its parent's pager.
#[derive(Debug)]
pub struct Parent {
    socket: High,
    /// One request at a time.
    turn: Lock<()>,
}

impl Parent {
    pub fn new(socket: High) -> Parent {
        Parent { socket, turn: Lock::new(()) }
    }

    /// Reads the page in a slot.
    ///
    /// # Safety
    /// `into` must be good for a page.
    pub unsafe fn read(&self, slot: u64, into: usize) -> Sys<()> {
        let _turn = self.turn.lock();
        send(self.socket.as_fd(), &slot.to_ne_bytes(), &[])?;
        // SAFETY: the caller answers for it.
        let page = unsafe { std::slice::from_raw_parts_mut(into as *mut u8, PAGE) };
        match receive(self.socket.as_fd(), page, true)?.0 {
            PAGE => Ok(()),
            _ => Err(Errno::from_raw_os_error(i32::from_ne_bytes([page[0], page[1], page[2], page[3]]))),
        }
    }
}

/// The answer to a request: the page in `page`, or the error.
pub fn answer(socket: impl AsFd, read: Sys<()>, page: &[u8]) -> Sys<()> {
    match read {
        Ok(()) => send(socket, page, &[]),
        Err(error) => send(socket, &error.raw_os_error().to_ne_bytes(), &[]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::{move_high, sockets};

    #[test]
    fn a_child_gets_the_page_that_it_asks_for_or_the_error() {
        let (listening, appointment) = sockets::listen().unwrap();
        let child = sockets::connect(&appointment).unwrap();
        let server = sockets::accept(&listening, &appointment).unwrap();
        let parents = std::thread::spawn(move || {
            let (mut slot, page) = ([0; 8], [7u8; PAGE]);
            while receive(&server, &mut slot, true).is_ok() {
                let read = if u64::from_ne_bytes(slot) == 5 { Ok(()) } else { Err(Errno::IO) };
                answer(&server, read, &page).unwrap();
            }
        });
        let (parent, mut page) = (Parent::new(move_high(child)), [0u8; PAGE]);
        // SAFETY: a page.
        let mut read = |slot| unsafe { parent.read(slot, page.as_mut_ptr() as usize) };
        assert_eq!((read(5), read(6)), (Ok(()), Err(Errno::IO)));
        assert_eq!(page[PAGE - 1], 7);
        drop(parent);
        parents.join().unwrap();
    }
}
