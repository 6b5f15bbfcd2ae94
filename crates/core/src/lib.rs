//! # coldframe-core: the engine that decides, and nothing else
//!
//! An [`Event`] goes in, [`Command`]s come out at once, a [`Machine`] stands between. Three machines carry the commands out: a
//! simulator in virtual time, Linux, and a bare ARM board. What one decides, all decide, since a decision depends on nothing but the
//! events and the bits that the machine answered.
//!
//! ```text
//!   task touches a page that the page table does not map
//!        │ Event::Fault                                Event::Loaded │
//!        ▼                                                           ▼
//!   PreProcess · GetFreeframe · LoadStopover   (device works)   TransHostMem · UpdateMMU · PostProcess
//!        │  Protect, dirty?, Write, Unmap, Load                │  Move, Map, Resume
//!        ▼                                                     ▼
//!                        Machine::issue, one command at a time
//! ```
//!
//! Start at [`engine`], which owns the page states; go on to [`fault`], one file per stage, and [`policy`], one file per policy.
//! This crate is `no_std` with `alloc`, imports nothing, holds no `unsafe` and no atomics, and allocates nothing after construction:
//! it must build for a bare ARM926 (`armv5te-none-eabi`).
//!
//! ## Glossary
//!
//! | word | meaning |
//! |---|---|
//! | page | a unit of a task's memory; [`PageId`] numbers the pages a machine knows, densely from 0 |
//! | frame | a page-sized piece of RAM that the engine hands out |
//! | slot | a page-sized place on the backing device (NAND, swap area, NVM) |
//! | buffer | the device's stopover buffer: OneNAND's DataRAM, a bounce buffer on Linux |
//! | true fault | a fault on a page that is not in RAM: it must be loaded ("page miss") |
//! | false fault | a fault on a page that is in RAM but not mapped: it waits on the invalid list |
//! | valid list, invalid list | FIFO-SC's two lists of resident pages, mapped and unmapped |
//! | downgrade, promote | move a page from the valid to the invalid list, and back |
//! | page load | device to buffer (`LoadStopover`) |
//! | page move | buffer to frame (`TransHostMem`) |
//! | walk | frames examined by one search for a victim |
//! | forced eviction | an eviction of the page under the hand whatever its bit, because the walk's budget is used up |
//! | held page | a page that stays in its buffer and is read there (XIP), without a frame, until the next load |
//! | dual | of a page move: while the device loads another page into another buffer |
//! | direct read | a swapped page mapped read-only in its slot of a byte-addressable area, without a frame or a copy |
//! | anonymous page | a page that is no file's: it goes to the swap area, a file's page to its file |
//! | kill | a task ended by rule when the swap area is full and a frame is needed |
//! | ticket | the number of a load in flight |
//! | erase block | the slots that flash erases together |
//! | valid, invalid slot | it holds the newest copy of a page; it was programmed and holds none |
//! | victim block | an erase block whose valid slots are copied away so that it can be erased |
//! | survivor | a valid page of a victim block |
#![no_std]
#![forbid(unsafe_code)]
#![warn(missing_docs)]

extern crate alloc;

mod backing;
pub mod command;
pub mod engine;
pub mod event;
pub mod fault;
pub mod frames;
pub mod ids;
pub mod lists;
pub mod machine;
#[cfg(feature = "naive")]
pub mod naive;
mod page_state;
pub mod place;
pub mod policy;
pub mod prefetch;
pub mod read_counts;
pub mod slots;
pub mod swap;
pub mod units;

pub use command::{Command, Stage, Work};
pub use engine::{Config, ConfigError, Counts, Engine};
pub use event::{Access, Event, Transfer};
pub use ids::{BlockId, BufferId, FrameId, PageId, SlotId, TaskId, Ticket};
pub use machine::{After, Caps, Machine};
pub use place::Place;
pub use slots::{Backed, SlotsConfig};
pub use units::{Bytes, MicroWatt, Pj, Ps, Walk};
