//! A model of page contents beside the simulation: each access finds the last written value, for any pages that a lane
//! loads, moves, writes and evicts.
//!
//! The simulation has no bytes. So the test carries out the journal's commands on a small memory of values. Each
//! reference that the lane let through must find its value through the page table of that memory.

use std::collections::BTreeMap;

use coldframe_core::fault::handler::{self, Handler};
use coldframe_core::policy::PolicyChoice;
use coldframe_core::{Caps, Command, Place, Ps};
use coldframe_drivers::front_end::plain::Plain;
use coldframe_drivers::front_end::Spaces;
use coldframe_drivers::run::IdlePrices;
use coldframe_drivers::{Run, Stream};
use coldframe_journal::{open, Entries, Entry};
use coldframe_lane::DeviceTimes;
use coldframe_lane::{LaneBelow, LaneConfig, PageRef};
use coldframe_sheet::StagePrices;
use proptest::prelude::*;

const PAGES: u32 = 10;

/// Values by place, and the page table.
#[derive(Default)]
struct Contents {
    slots: BTreeMap<u32, u64>,
    buffers: BTreeMap<u32, u64>,
    frames: BTreeMap<u32, u64>,
    table: BTreeMap<u32, (Place, bool)>,
}

impl Contents {
    fn carry_out(&mut self, command: Command) {
        match command {
            Command::Load { from, into, .. } => {
                let value = self.slots.get(&from.0).copied().unwrap_or(0);
                self.buffers.insert(into.0, value);
            }
            Command::Move { from, to, .. } => drop(self.frames.insert(to.0, self.buffers[&from.0])),
            Command::Write { from: Some(from), to, .. } => drop(self.slots.insert(to.0, self.frames[&from.0])),
            Command::Map { page, place, writable, .. } => drop(self.table.insert(page.0, (place, writable))),
            Command::Unmap { page } | Command::Evict { page, .. } => drop(self.table.remove(&page.0)),
            Command::Protect { page } => {
                if let Some((_, writable)) = self.table.get_mut(&page.0) {
                    *writable = false;
                }
            }
            _ => {}
        }
    }

    /// Whether the access causes no fault.
    fn lets(&self, reference: PageRef) -> bool {
        self.table.get(&(reference.page() as u32)).is_some_and(|(_, writable)| *writable || !reference.writing())
    }

    fn value(&mut self, page: u32) -> &mut u64 {
        match self.table[&page].0 {
            Place::Frame(frame) => self.frames.get_mut(&frame.0).expect("a mapped frame has a value"),
            Place::Buffer(buffer) => self.buffers.get_mut(&buffer.0).expect("a mapped buffer has a value"),
            Place::Slot(slot) => self.slots.get_mut(&slot.0).expect("a mapped slot has a value"),
        }
    }

    /// One fault: its commands until the task resumes.
    fn fault(&mut self, entries: &mut Entries<'_>) {
        loop {
            match entries.next_entry().expect("our own journal").expect("the fault is in the journal") {
                Entry::Command(Command::Resume { .. }) => return,
                Entry::Command(command) => self.carry_out(command),
                _ => {}
            }
        }
    }
}

fn journal(string: &[PageRef], policy: &str, handler: &'static Handler, frames: usize, caps: Caps) -> Vec<u8> {
    let us = Ps::from_us(1);
    let config = LaneConfig {
        evict_batch: 1,
        policy: PolicyChoice::parse(policy).unwrap(),
        handler,
        frames,
        caps,
        prices: StagePrices::uniform(us),
        device: DeviceTimes { load: us * 7, program: Some(us * 40) },
        failures: None,
        below: LaneBelow::Homes,
    };
    let front_end = Plain::new(Stream::Both, 12, Spaces::default(), None);
    let mut run = Run::new(Box::new(front_end), IdlePrices::default(), PAGES as usize);
    run.add_lanes(&[config]).unwrap();
    run.lanes_mut().next().unwrap().keep_journal();
    run.references(string, Ps::ZERO);
    let lane = run.lanes_mut().next().unwrap();
    lane.drain_journal()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 120, ..ProptestConfig::default() })]

    #[test]
    fn every_access_finds_the_last_written_value(
        frames in 1usize..6,
        buffers in 1u32..5,
        bare in any::<bool>(),
        policy in prop::sample::select(vec!["fifo", "clock", "pa-clock:budget=2", "fifo-sc:valid=1", "pa-fifo-sc:valid=1", "s3-fifo"]),
        handler in prop::sample::select(handler::ALL.to_vec()),
        accesses in prop::collection::vec((0..PAGES, any::<bool>()), 1..300),
    ) {
        let caps = Caps { reference_bit: !bare, dirty_bit: !bare, buffers, direct_read: false, places: false };
        let string: Vec<_> = accesses.iter().map(|(page, writing)| PageRef::new(*page, *writing, false)).collect();
        let bytes = journal(&string, policy, handler, frames, caps);
        let (_, mut entries) = open(&bytes).unwrap();
        let (mut contents, mut last) = (Contents::default(), [0u64; PAGES as usize]);
        for (i, reference) in string.iter().enumerate() {
            if !contents.lets(*reference) {
                contents.fault(&mut entries);
            }
            prop_assert!(contents.lets(*reference), "access {} does not go through", i);
            let value = contents.value(reference.page() as u32);
            if reference.writing() {
                *value = i as u64 + 1;
                last[reference.page()] = *value;
            }
            prop_assert_eq!(*value, last[reference.page()], "access {}", i);
        }
        prop_assert!(entries.next_entry().unwrap().is_none(), "the journal has faults that no access caused");
    }
}
