//! # coldframe-core: the engine that decides, and nothing else
//!
//! An [`Event`] goes in and [`Command`]s come out at once. A [`Machine`] carries them out: a simulator in virtual
//! time, Linux, or a bare ARM board. All machines get the same decisions, since a decision depends only on the events
//! and on the bits that the machine returned.
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
//! Start at [`engine`], which takes events in. Then read [`fault::turn`], [`fault`] (one file for each stage) and
//! [`policy`] (one file for each policy). This crate is `no_std` with `alloc`, imports nothing, has no `unsafe` and no
//! atomics, and allocates nothing after construction: it must build for a bare ARM926 (`armv5te-none-eabi`).
//!
//! ## Glossary
//!
#![doc = include_str!("glossary.md")]
#![no_std]
#![forbid(unsafe_code)]
#![warn(missing_docs)]

extern crate alloc;

pub mod command;
mod config;
mod counts;
pub mod engine;
pub mod event;
pub mod fault;
pub mod frames;
pub mod ids;
mod leaves;
pub mod lists;
pub mod machine;
#[cfg(feature = "naive")]
pub mod naive;
mod page_state;
pub mod place;
pub mod policy;
pub mod prefetch;
mod ram;
pub mod swap;
pub mod units;

pub use command::{Command, Stage, Work};
pub use config::{Below, Config, ConfigError};
pub use counts::Counts;
pub use engine::Engine;
pub use event::{Access, Event, Transfer};
pub use ids::{BlockId, BufferId, FrameId, PageId, SlotId, TaskId, Ticket};
pub use machine::{After, Caps, Machine};
pub use place::Place;
pub use swap::slots::{Backed, SlotsConfig};
pub use units::{Bytes, MicroWatt, Pj, Ps, Walk};
