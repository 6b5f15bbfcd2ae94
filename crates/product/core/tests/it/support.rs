//! Drives an engine on a machine that completes everything at once.

use coldframe_core::engine::Builder;
use coldframe_core::naive::{Immediate, Touch};
use coldframe_core::policy::PolicyChoice;
use coldframe_core::{fault::handler, Access, Caps, Config, Engine, Event, PageId, TaskId};

pub const HARDWARE: Caps = Caps { reference_bit: true, dirty_bit: true, buffers: 1, direct_read: false, places: false };

pub struct Rig {
    pub engine: Engine,
    pub machine: Immediate,
}

impl Rig {
    pub fn new(policy: &str, handler: &str, frames: usize, pages: usize, caps: Caps) -> Rig {
        Rig::made((policy, handler), frames, pages, caps, 1, |builder| builder)
    }

    /// The same, with this many victims at once.
    pub fn with_batch(policy: &str, frames: usize, pages: usize, caps: Caps, evict_batch: usize) -> Rig {
        Rig::made((policy, "parallel"), frames, pages, caps, evict_batch, |builder| builder)
    }

    /// The same, with what else the builder is told.
    pub fn made(
        (policy, handler): (&str, &str),
        frames: usize,
        pages: usize,
        caps: Caps,
        evict_batch: usize,
        more: impl FnOnce(Builder) -> Builder,
    ) -> Rig {
        let policy = PolicyChoice::parse(policy).unwrap().build(frames, pages).unwrap();
        let config = Config { frames, pages, tasks: 4, evict_batch, caps };
        let engine = more(Engine::builder(config, policy, handler::find(handler).unwrap())).build().unwrap();
        Rig { engine, machine: Immediate::new(caps, pages) }
    }

    /// Delivers the ends of all transfers.
    pub fn settle(&mut self) {
        while let Some(event) = self.machine.next_event() {
            self.tell(event);
        }
    }

    pub fn tell(&mut self, event: Event) {
        self.engine.handle(event, &mut self.machine);
        self.engine.check();
    }

    pub fn fault(&mut self, task: u32, page: u32, access: Access) {
        self.tell(Event::Fault { task: TaskId(task), page: PageId(page), access });
    }

    /// Reads, with faults until the access succeeds.
    pub fn read(&mut self, task: u32, page: PageId) -> u64 {
        self.until(task, page, Access::Read, |machine| machine.read(page)).expect("no task is halted")
    }

    /// Writes, with faults until the access succeeds or a task is halted.
    pub fn write(&mut self, task: u32, page: PageId, value: u64) {
        self.until(task, page, Access::Write, |machine| machine.write(page, value).then_some(value));
    }

    fn until(
        &mut self,
        task: u32,
        page: PageId,
        access: Access,
        mut done: impl FnMut(&mut Immediate) -> Option<u64>,
    ) -> Option<u64> {
        for _ in 0..5 {
            let value = done(&mut self.machine);
            if value.is_some() || !self.machine.halted.is_empty() {
                return value;
            }
            self.fault(task, page.0, access);
            self.settle();
        }
        panic!("the access never goes through");
    }

    /// One reference; returns its outcome.
    pub fn reference(&mut self, page: u32) -> Touch {
        if self.machine.read(PageId(page)).is_some() {
            return Touch::Hit;
        }
        let before = *self.engine.counts();
        let resident: Vec<PageId> = self
            .engine
            .frames()
            .iter()
            .filter_map(|(_, f)| match f.used {
                coldframe_core::frames::Use::Resident(page) => Some(page),
                _ => None,
            })
            .collect();
        self.fault(0, page, Access::Read);
        self.settle();
        let after = *self.engine.counts();
        if after.false_faults > before.false_faults {
            return Touch::FalseFault;
        }
        Touch::TrueFault {
            victim: resident.iter().find(|p| self.engine.frame_of(**p).is_none()).map(|p| u64::from(p.0)),
            walk: after.walk_sum.0 - before.walk_sum.0,
            forced: after.forced_evictions > before.forced_evictions,
        }
    }
}
