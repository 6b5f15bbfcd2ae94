//! The place of each page, and the thread that is changing it: one word for each page, changed by compare-and-swap.
//!
//! ```text
//!            fault, load            first write
//!   Out ────► Busy ───► Clean ────► Busy ───► Dirty           Clean: mapped, writes fault
//!    ▲                  Unsure (mapped writable, known by its sum)    Dirty: mapped, writable
//!    │                      │ Command::Protect
//!    ├── Leaving ◄──────────┘   zap, and the bytes are safe
//!    │    │  ▲ │ Command::Unmap: moved to the aside mapping
//!         │  └─ Aside ────► Busy ──► Dirty or Unsure: a false fault moves it back
//!    ├── InSlot ◄─► Out: slow memory, read in place      InSlot ────► Busy ───► InPlace ───► Out: written in place
//!         └► Refused ──► Unevicted ──► Busy ──► Dirty: its frame is pinned, so it never left; the engine learns this
//! ```
//! `Busy`, `Leaving` and `Refused` pages have an owner. Only the owner may change the page, and it gives its number
//! when it releases the page. The other states are at rest: a thread that needs such a page takes it by `acquire`.
//! `Out`, `Aside` and `Nowhere` pages are taken only under the engine's lock, since the engine knows where they are.
//! Any thread may take a mapped page.
//!
//! A thread that finds a page taken sleeps until its owner has finished (`wait`), perhaps with the engine's lock
//! held. So the owner of a page that the engine takes as resident never waits for the engine's lock, nor for another
//! page. No thread waits for itself: if a thread holds the engine's lock and meets a page of its own, it first
//! carries out the noted commands for that page.

use crate::page::leaves::Leaves;
use crate::page::parking::Parking;
use crate::sys::sync::{AtomicU16, Ordering};
use crate::sys::table::Table;
use crate::LiveError;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u16)]
pub enum Where {
    /// In no region: a touch is a bug of the program.
    Nowhere = 0,
    Out = 1,
    /// In the page table, and writes to it fault.
    Clean = 2,
    /// In the page table, writable, and it was written to.
    Dirty = 3,
    /// In the page table, writable; its hash will show whether it was written to.
    Unsure = 4,
    Busy = 5,
    Leaving = 6,
    /// In RAM, in the aside mapping: on the engine's invalid list.
    Aside = 7,
    /// In the page table and writable, though its owner reports that it has left. It cannot leave.
    Refused = 8,
    /// The same, and reported. The owner that could not evict it sends the engine a fault, which ends this state.
    Unevicted = 9,
    /// In the page table, where it is in slow memory, and writes to it fault.
    InSlot = 10,
    /// In the page table and writable, in slow memory but not in its slot. The engine has it in its slot.
    InPlace = 11,
}

impl Where {
    fn from(word: u16) -> Where {
        use Where::*;
        const ALL: [Where; 12] =
            [Nowhere, Out, Clean, Dirty, Unsure, Busy, Leaving, Aside, Refused, Unevicted, InSlot, InPlace];
        ALL[usize::from(word >> OWNER_BITS)]
    }

    /// Whether it is in the page table, where the engine has it.
    pub fn is_mapped(self) -> bool {
        matches!(self, Where::Clean | Where::Dirty | Where::Unsure)
    }

    pub fn is_owned(self) -> bool {
        matches!(self, Where::Busy | Where::Leaving | Where::Refused)
    }
}

/// The owner of a page: the number of a task, or `BRIEF`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Owner(pub u16);

impl Owner {
    /// A thread without a task. It makes some system calls for this page and releases it. Meanwhile it takes no lock
    /// and waits for no thread.
    pub const BRIEF: Owner = Owner((1 << OWNER_BITS) - 1);

    pub fn task(number: usize) -> Owner {
        Owner(number as u16)
    }
}

const OWNER_BITS: u32 = 12;

fn word(state: Where, owner: Owner) -> u16 {
    let owner = if state.is_owned() { owner.0 } else { 0 };
    (state as u16) << OWNER_BITS | owner
}

#[derive(Debug)]
pub struct States {
    words: Table<AtomicU16>,
    pub(super) leaves: Leaves,
    parking: Parking,
}

impl States {
    pub fn new(len: usize) -> Result<States, LiveError> {
        let leaves = Leaves::new(len)?;
        Ok(States { words: Table::new(leaves.entries())?, leaves, parking: Parking::default() })
    }

    /// A page that was never touched has a word of zeros that it shares with others, and that nobody changes.
    fn word(&self, page: usize) -> &AtomicU16 {
        &self.words[self.leaves.entry(page)]
    }

    pub fn get(&self, page: usize) -> Where {
        Where::from(self.word(page).load(Ordering::Acquire))
    }

    /// The place of a page now, and whether `owner` is changing it.
    pub fn look(&self, page: usize, owner: Owner) -> (Where, bool) {
        let now = self.word(page).load(Ordering::Acquire);
        let state = Where::from(now);
        (state, state.is_owned() && now == word(state, owner))
    }

    /// Takes a page that is at rest as `from`. It is then `to` (`Busy` or `Leaving`), and only `owner` changes it
    /// until it releases the page. Returns false if the page is not `from` any more.
    pub fn acquire(&self, page: usize, from: Where, to: Where, owner: Owner) -> bool {
        debug_assert!(!from.is_owned() && to.is_owned() && from != Where::Nowhere);
        let (from, to) = (word(from, owner), word(to, owner));
        self.word(page).compare_exchange(from, to, Ordering::SeqCst, Ordering::Acquire).is_ok()
    }

    /// The owner cannot evict the page.
    pub fn refuse(&self, page: usize, owner: Owner) {
        self.word(page).store(word(Where::Refused, owner), Ordering::SeqCst);
    }

    /// Releases a page as `to`, and wakes the threads that wait for it. A refused page that is to be `Out` is
    /// `Unevicted`. A release by a thread that is not the owner ends the program.
    pub fn release(&self, page: usize, owner: Owner, to: Where) {
        let word_now = self.word(page).load(Ordering::Acquire);
        let mine = Where::from(word_now).is_owned() && word_now == word(Where::from(word_now), owner);
        if !mine || to.is_owned() {
            broken(page, word_now, owner, to);
        }
        let refused = to == Where::Out && Where::from(word_now) == Where::Refused;
        self.word(page).store(word(if refused { Where::Unevicted } else { to }, owner), Ordering::SeqCst);
        self.parking.wake(page);
    }

    /// Changes a page from one state without an owner to another. For the engine's states, under its lock, and for
    /// regions that come and go.
    pub fn set(&self, page: usize, to: Where) {
        let before = self.words[self.leaves.begin(page)].swap(word(to, Owner(0)), Ordering::AcqRel);
        if Where::from(before).is_owned() || to.is_owned() {
            broken(page, before, Owner::BRIEF, to);
        }
    }

    pub fn wait(&self, page: usize) {
        self.parking.wait(page, || Where::from(self.word(page).load(Ordering::SeqCst)).is_owned());
    }

    /// In a forked child, for each page in use: a page whose owner is a thread of the parent now belongs to the child.
    pub fn disown(&self, page: usize, to: Where) {
        if self.get(page).is_owned() {
            self.word(page).store(word(to, Owner(0)), Ordering::SeqCst);
        }
    }

    /// In a forked child, before anything else: no thread waits.
    pub fn forget_sleepers(&self) {
        self.parking.forget_sleepers();
    }
}

#[cold]
fn broken(page: usize, now: u16, owner: Owner, to: Where) -> ! {
    let (state, of, owner) = (Where::from(now), now & Owner::BRIEF.0, owner.0);
    let what = format_args!("is {state:?} of owner {of}, and owner {owner} would make it {to:?}");
    crate::sys::fatal::stop(format_args!("internal error: page {page} {what}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_has_one_owner_at_a_time() {
        let states = States::new(2).unwrap();
        let (a, b) = (Owner::task(3), Owner::BRIEF);
        assert_eq!(states.get(1), Where::Nowhere);
        states.set(1, Where::Out);
        assert!(!states.acquire(1, Where::Clean, Where::Busy, a), "it is not clean");
        assert!(states.acquire(1, Where::Out, Where::Busy, a));
        assert!(!states.acquire(1, Where::Out, Where::Busy, b));
        assert_eq!((states.look(1, a), states.look(1, b)), ((Where::Busy, true), (Where::Busy, false)));
        states.release(1, a, Where::Dirty);
        assert_eq!(states.look(1, a), (Where::Dirty, false));
    }

    #[test]
    fn who_finds_a_page_taken_sleeps_until_it_is_given_up() {
        let states = States::new(1).unwrap();
        states.set(0, Where::Out);
        let rounds = 2000;
        let owned = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|scope| {
            for task in 0..4 {
                let (states, owned) = (&states, &owned);
                scope.spawn(move || {
                    for round in 0..rounds {
                        while !states.acquire(0, Where::Out, Where::Busy, Owner::task(task)) {
                            states.wait(0);
                        }
                        assert!(!owned.swap(true, Ordering::AcqRel), "two owners");
                        if round % 64 == 0 {
                            crate::sys::sleep_us(50);
                        }
                        owned.store(false, Ordering::Release);
                        states.release(0, Owner::task(task), Where::Out);
                    }
                });
            }
        });
        assert_eq!(states.get(0), Where::Out);
    }
}
