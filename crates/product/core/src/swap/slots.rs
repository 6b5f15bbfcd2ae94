//! A swap area whose slots are rewritten in place (NVM, DRAM, a card with a controller), for pages that tasks own;
//! and the low memory killer's choice when the area is full. For bare flash, which must be erased, there is
//! [`crate::swap`].
//!
//! First give the engine its slots ([`crate::Below::slots`]). Then name the owner of each page before its first
//! fault (`Event::Owned`), and the task in the foreground (`Event::Foreground`).
//!
//! ```text
//!  an anonymous page    RAM ── evicted dirty ──► slot ── read, direct read ──► mapped in its slot, read-only
//!                        ▲                        │                              │
//!                        └── read or written ─────┘                              │
//!                        └──────────────── written: copied, slot given back ─────┘
//!  a file's page        RAM ── evicted dirty ──► its file (home slot);  clean: dropped
//! ```
//!
//! A page that comes to RAM gives its slot back and is dirty from then on. Linux 3.4 does so when the area is more
//! than half full (`vm_swap_full`); an area that needs the killer is that full. The slot that has been free longest
//! is handed out first, so that writes are spread over all slots.
//!
//! The killer's rule is Android's: the foreground task is never ended; of the others, the task longest in the
//! background is. The killer acts when no slot is free, a frame is needed, and at most `files_min` frames hold pages
//! of files, which could be dropped instead.

use alloc::boxed::Box;
use alloc::vec;

use crate::ids::{PageId, SlotId, TaskId};
use crate::lists::{Links, List};

/// The bounds of such an area, known at the start.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SlotsConfig {
    /// Number of slots. 0: there is no swap area, and only the killer makes room for anonymous pages.
    pub slots: usize,
    /// Frames with pages of files that are kept when the area is full. With this many or fewer, a task is ended.
    pub files_min: usize,
}

/// What a page is a copy of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Backed {
    /// Nothing: heap, stack. It goes to the swap area.
    Anonymous,
    /// A file, in its home slot: it is written back there, or dropped if it is clean.
    File,
}

/// The last time in the foreground of a task that has pages and never was in the foreground.
const BEGUN: u64 = 1;

const NOBODY: u32 = 0;
const FILE: u32 = 1 << 31;

/// The slots and who holds them.
pub(crate) struct Slots {
    config: SlotsConfig,
    /// By page: its slot plus 1, or 0 for none.
    of: Box<[u32]>,
    free: List,
    free_links: Links,
    /// By page: its task plus 1, with `FILE` if it belongs to a file; or `NOBODY`. That is 0, so pages never used
    /// cost no RAM.
    owner: Box<[u32]>,
    pages_of: Box<[List]>,
    page_links: Links,
    /// By task: when it was last in the foreground. 0: the task has no pages, since it was ended or never begun.
    last: Box<[u64]>,
    turn: u64,
    files: usize,
}

impl Slots {
    pub(crate) fn new(config: SlotsConfig, pages: usize, tasks: usize) -> Slots {
        let (mut free, mut free_links) = (List::new(), Links::new(config.slots));
        (0..config.slots).for_each(|i| free.push_tail(&mut free_links, i));
        Slots {
            config,
            of: vec![0; pages].into_boxed_slice(),
            free,
            free_links,
            owner: vec![NOBODY; pages].into_boxed_slice(),
            pages_of: vec![List::new(); tasks].into_boxed_slice(),
            page_links: Links::new(pages),
            last: vec![0; tasks].into_boxed_slice(),
            turn: BEGUN,
            files: 0,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.config.slots
    }

    /// Free slots.
    pub(crate) fn free(&self) -> usize {
        self.free.len()
    }

    pub(crate) fn slot_of(&self, page: PageId) -> Option<SlotId> {
        self.of[page.index()].checked_sub(1).map(SlotId)
    }

    /// The slot for an anonymous page's bytes. If a write is repeated, the page keeps its slot. `None`: the page
    /// belongs to a file, or all slots are taken.
    pub(crate) fn take(&mut self, page: PageId) -> Option<SlotId> {
        if self.is_file(page) || self.slot_of(page).is_some() {
            return self.slot_of(page);
        }
        let slot = self.free.pop_head(&mut self.free_links)?;
        self.of[page.index()] = slot as u32 + 1;
        Some(SlotId::from(slot))
    }

    /// The page does not need its slot any more. Returns true if it had one.
    pub(crate) fn give_back(&mut self, page: PageId) -> bool {
        let Some(slot) = self.slot_of(page) else { return false };
        self.of[page.index()] = 0;
        self.free.push_tail(&mut self.free_links, slot.index());
        true
    }

    /// Whether the page could leave RAM now, dirty or not.
    pub(crate) fn has_room_for(&self, page: PageId) -> bool {
        self.is_file(page) || !self.free.is_empty()
    }

    pub(crate) fn own(&mut self, task: TaskId, page: PageId, backed: Backed) {
        self.owner[page.index()] = (task.0 + 1) | if backed == Backed::File { FILE } else { 0 };
        self.pages_of[task.index()].push_tail(&mut self.page_links, page.index());
    }

    pub(crate) fn owner(&self, page: PageId) -> Option<TaskId> {
        let owner = self.owner[page.index()];
        (owner & !FILE).checked_sub(1).map(TaskId)
    }

    /// Whether it is a page of a file.
    pub(crate) fn is_file(&self, page: PageId) -> bool {
        let owner = self.owner[page.index()];
        owner & FILE != 0
    }

    pub(crate) fn foreground(&mut self, task: TaskId) {
        self.turn += 1;
        self.last[task.index()] = self.turn;
    }

    /// The page came to a frame, so its owner has pages.
    pub(crate) fn came(&mut self, page: PageId) {
        self.files += usize::from(self.is_file(page));
        if let Some(task) = self.owner(page) {
            let last = &mut self.last[task.index()];
            *last = (*last).max(BEGUN);
        }
    }

    /// The page left its frame.
    pub(crate) fn left(&mut self, page: PageId) {
        self.files -= usize::from(self.is_file(page));
    }

    /// Whether a task must be ended if a frame is needed now.
    pub(crate) fn is_tight(&self) -> bool {
        self.free.is_empty() && self.files <= self.config.files_min
    }

    /// The task to end: of those allowed, the one longest in the background. Of two that never were in the
    /// foreground, the one with the lower number.
    pub(crate) fn victim(&self, may: impl Fn(TaskId) -> bool) -> Option<TaskId> {
        let ended = |task: usize| self.last[task] == 0;
        let tasks = (0..self.last.len()).filter(|t| !ended(*t) && !self.is_foreground(*t) && may(TaskId::from(*t)));
        tasks.min_by_key(|t| (self.last[*t], *t)).map(TaskId::from)
    }

    fn is_foreground(&self, task: usize) -> bool {
        self.turn > BEGUN && self.last[task] == self.turn
    }

    /// The task has no pages any more.
    pub(crate) fn ended(&mut self, task: TaskId) {
        self.last[task.index()] = 0;
    }

    /// The page of the task after `before`. Pages are returned one at a time, so that the caller can change the lists
    /// between calls.
    pub(crate) fn next_page(&self, task: TaskId, before: Option<PageId>) -> Option<PageId> {
        let next = match before {
            None => self.pages_of[task.index()].head(),
            Some(page) => self.page_links.next(page.index()),
        };
        next.map(PageId::from)
    }

    /// Checks that each slot is free or one page's, and that no file's page holds one; `files` is the number of frames
    /// with pages of files.
    pub(crate) fn check(&self, files: usize) {
        let mut taken = vec![false; self.config.slots];
        for page in (0..self.of.len()).map(PageId::from) {
            if let Some(slot) = self.slot_of(page) {
                assert!(!core::mem::replace(&mut taken[slot.index()], true), "two pages hold slot {}", slot.0);
                assert!(!self.is_file(page), "page {} of a file holds a slot", page.0);
            }
        }
        let taken = taken.iter().filter(|taken| **taken).count();
        assert_eq!(self.free.len() + taken, self.config.slots, "a slot has leaked");
        assert_eq!(self.files, files, "frames with pages of files are miscounted");
    }
}
