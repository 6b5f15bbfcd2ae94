//! Tasks that read the neighbouring slots of a page together with it. The number of spared faults is checked by
//! arithmetic. The prefetched pages are checked by a map of slots, which this file builds from the journal's commands
//! alone.

use std::collections::{BTreeMap, BTreeSet};

use coldframe_core::fault::handler;
use coldframe_core::policy::PolicyChoice;
use coldframe_core::prefetch::Window;
use coldframe_core::swap::{AreaConfig, SwapAreas};
use coldframe_core::{Caps, Command, Event, PageId, Ps};
use coldframe_drivers::scheduler;
use coldframe_drivers::tasks::{Cpu, Program, Step, TaskSpec, TasksConfig, TasksResult, CAPS};
use coldframe_journal::{open, replay, Entry};
use coldframe_lane::machine::{MachineConfig, Zeros};
use coldframe_lane::{DeviceTimes, PageRef};
use coldframe_sheet::StagePrices;

const SLOTS_PER_BLOCK: u32 = 32;

fn config(frames: usize, policy: &str, blocks: u32, window: Window) -> TasksConfig {
    let times = DeviceTimes { load: Ps::from_us(100), program: Some(Ps::from_us(50)) };
    let machine = MachineConfig::device(StagePrices::uniform(Ps::from_ns(100)), times, Zeros::Once);
    let (policy, handler) =
        (PolicyChoice::parse(policy).expect("a policy"), handler::find("sequential").expect("it is there"));
    let machine = MachineConfig { window, ..machine };
    let scheduler = scheduler::find("cfs").expect("a scheduler");
    TasksConfig {
        caps: Caps { buffers: window.slots(), ..CAPS },
        area: SwapAreas { slots_per_block: SLOTS_PER_BLOCK, areas: vec![AreaConfig::log(blocks)] }.into(),
        ..TasksConfig::new(policy, handler, frames, machine, scheduler)
    }
}

/// A task with these references: the page, and whether it is written. A page takes a millisecond, so no fault meets a
/// page-out.
fn task(first_page: u32, references: impl Iterator<Item = (u32, bool)>) -> TaskSpec {
    let step = |(page, writing)| Step { reference: PageRef::new(page, writing, false), times: 10_000 };
    TaskSpec::new(Program::new(references.map(step).collect()), first_page, 1)
}

/// 48 pages are written in order through 16 frames, then read in order. First in, first out: they are in slots 0 to 47.
fn sweep(window: Window) -> TasksResult {
    let references = (0..48).map(|page| (page, true)).chain((0..48).map(|page| (page, false)));
    Cpu::new(&config(16, "fifo", 8, window), &[task(0, references)]).expect("a machine").run()
}

#[test]
fn a_window_spares_all_faults_of_pages_that_left_together_but_one() {
    let (alone, block, aligned) = (sweep(Window::Alone), sweep(Window::Block(8)), sweep(Window::Aligned(8)));
    assert_eq!((alone.major(), alone.device_reads), (48, 48));
    // 48 slots are six parts of eight. No page is read twice.
    assert_eq!((block.major(), block.device_reads), (6, 48));
    // Slot numbers start at 1, so the groups are 0 to 6, 7 to 14, ..., 39 to 46, and 47.
    assert_eq!((aligned.major(), aligned.device_reads), (7, 48));
    assert!(block.time < aligned.time && aligned.time < alone.time);
}

/// The slot of each page's copy, and the pages in RAM; built from commands alone.
#[derive(Default)]
struct Map {
    slots: BTreeMap<PageId, u32>,
    resident: BTreeSet<PageId>,
}

impl Map {
    fn command(&mut self, command: Command, homes: u32) {
        match command {
            Command::Write { page, to, .. } | Command::CopySlot { page, to, .. } => {
                match to.0.checked_sub(homes) {
                    Some(slot) => self.slots.insert(page, slot),
                    None => self.slots.remove(&page),
                };
            }
            Command::Map { page, .. } => drop(self.resident.insert(page)),
            Command::Evict { page, .. } => drop(self.resident.remove(&page)),
            _ => {}
        }
    }

    /// The absent pages in the same part of eight slots, in the order of their slots.
    fn part(&self, page: PageId) -> Vec<PageId> {
        let Some(slot) = self.slots.get(&page).filter(|_| !self.resident.contains(&page)) else { return Vec::new() };
        let of = |slot: u32| (slot / SLOTS_PER_BLOCK, slot % SLOTS_PER_BLOCK / 8);
        let others = self.slots.iter().filter(|(other, other_slot)| **other != page && of(**other_slot) == of(*slot));
        let mut part: Vec<(u32, PageId)> =
            others.filter(|(other, _)| !self.resident.contains(other)).map(|(other, slot)| (*slot, *other)).collect();
        part.sort_unstable();
        part.into_iter().map(|(_, other)| other).collect()
    }
}

#[test]
fn what_is_wished_for_are_the_absent_pages_of_the_same_part_and_the_journal_replays() {
    const PAGES: u32 = 150;
    let mut state = 2008u64;
    let mut below = |n: u32| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as u32 % n
    };
    // Runs of neighbours from random places, half of them written; each of the two tasks has its own pages.
    let mut references = || {
        let runs: Vec<(u32, u32, bool)> = (0..300).map(|_| (below(PAGES), 1 + below(12), below(2) == 0)).collect();
        runs.into_iter().flat_map(|(page, n, writing)| (page..(page + n).min(PAGES)).map(move |page| (page, writing)))
    };
    let specs = [task(0, references()), task(PAGES, references())];
    // 13 blocks for the 300 pages of two tasks, so the area is collected.
    let mut cpu = Cpu::new(&config(60, "clock", 13, Window::Block(8)), &specs).expect("a machine");
    cpu.keep_journal();
    let mut bytes = Vec::new();
    let sink = &mut |piece: &[u8]| {
        bytes.extend_from_slice(piece);
        Ok::<_, std::convert::Infallible>(())
    };
    let result = cpu.run_with_journal(sink).unwrap_or_else(|never| match never {});
    cpu.check();
    assert!(result.swap.as_ref().is_some_and(|swap| swap.counts.copies > 0), "{:?}", result.swap);
    assert!(replay(&bytes).is_ok());

    let (head, mut entries) = open(&bytes).expect("a journal");
    let homes = head.config.pages as u32;
    let mut map = Map::default();
    let (mut due, mut wished): (Vec<PageId>, Vec<PageId>) = Default::default();
    let (mut fault, mut loads, mut wishes): (Option<(PageId, Vec<PageId>)>, u64, u64) = Default::default();
    while let Some(entry) = entries.next_entry().expect("a journal") {
        match entry {
            Entry::Event { event: Event::WillNeed { page }, .. } => wished.push(page),
            Entry::Event { event, .. } => {
                assert_eq!(wished, due);
                wishes += due.len() as u64;
                (due, wished) = Default::default();
                fault = match event {
                    Event::Fault { page, .. } => Some((page, map.part(page))),
                    _ => None,
                };
            }
            Entry::Command(command) => {
                if let Command::Load { page, .. } = command {
                    loads += 1;
                    // The part is due only when the fault's own load has begun.
                    if let Some((_, part)) = fault.take_if(|(of, _)| *of == page) {
                        due = part;
                    }
                }
                map.command(command, homes);
            }
            _ => {}
        }
    }
    assert!(wishes > 300, "{wishes} pages were hinted");
    assert!(result.counts.prefetches <= wishes && loads >= result.counts.prefetches);
}
