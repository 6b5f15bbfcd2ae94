//! Takes pages out before a fault needs their frames, on another processor, as Linux's kswapd does.
//!
//! With a compressed tier, a fault that finds its page in the pool waits for no device. So nothing hides the time to
//! take pages out and to compress them. A thread of the pager does this work while the program runs.
//!
//! ```text
//!   free frames   low ........ high
//!   fault         takes a free frame; fewer than `low` are left: call
//!   reclaimer     sleeps ─ call ─ lock ─ Event::Reclaim, a batch ─ unlock ─ zap, read back, compress ─ lock ─ Store ─ ... until `high` is near
//! ```
//! If the reclaimer falls behind, a fault finds no free frame and takes a batch out itself. On a single processor,
//! there is no reclaimer.

use std::ffi::c_void;

use coldframe_core::tier::BIN_FRAMES;
use coldframe_core::{Engine, Event};

use super::Faults;
use crate::sys;
use crate::sys::thread::Body;
use crate::sys::worker::Worker;
use crate::task::VICTIMS;

/// With fewer free frames than this, the reclaimer is called. It needs some 30 us to wake up.
const LOW: usize = 8;
/// With little RAM, that is this part of all frames, and at least [`LOW_MIN`].
const LOW_PART: usize = 64;
const LOW_MIN: usize = 2;
/// How long a fault spins for a page that is leaving, in nanoseconds: the time to compress some pages.
const PATIENCE_NS: u64 = 100_000;
/// A batch is at most this part of all frames.
const BATCH_PART: usize = 32;
/// A call of `Event::Reclaim` takes out at most one page, and two bins for the pool.
const EACH: usize = 1 + 2 * BIN_FRAMES;

/// The thread, and when it is wanted.
#[derive(Debug)]
pub struct Reclaimer {
    pub worker: Worker,
    /// Free frames; 0: there is no reclaimer.
    low: usize,
    high: usize,
}

impl Reclaimer {
    /// `tier`: there is a compressed tier. `batch`: pages that leave together.
    pub fn new(tier: bool, frames: usize, batch: usize) -> Reclaimer {
        let several = rustix::thread::sched_getaffinity(None).is_ok_and(|all| all.count() > 1);
        let low = LOW.min(frames / LOW_PART);
        let low = if tier && several && low >= LOW_MIN { low } else { 0 };
        Reclaimer { worker: Worker::new(), low, high: low + batch.min(frames / BATCH_PART) }
    }

    /// Whether few frames are free. Ask this under the engine's lock, and call the thread without it.
    pub fn is_short(&self, engine: &Engine) -> bool {
        engine.frames().free() < self.low
    }

    /// Waits a short time for a page that the thread may be taking out. Returns whether the page is at rest.
    pub fn is_done_with(&self, leaving: impl Fn() -> bool) -> bool {
        if self.low == 0 {
            return false;
        }
        let until = sys::now() + PATIENCE_NS;
        while leaving() {
            if sys::now() > until {
                return false;
            }
            std::hint::spin_loop();
        }
        true
    }

    /// Starts the thread, if there is to be one. It calls `reclaim_on`. Without it the pager works, too.
    ///
    /// # Safety
    /// As for `spawn`, until `worker.stop` has returned; handlers and writer are at work until then.
    pub unsafe fn start(&self, body: Body, argument: *mut c_void) {
        if self.low > 0 {
            // SAFETY: the caller answers for it.
            let _ = unsafe { self.worker.start(body, argument) };
        }
    }
}

impl Faults {
    /// The reclaimer's work, until it is stopped.
    pub fn reclaim_on(&self) {
        let worker = &self.reclaimer.worker;
        while !worker.stops() {
            let seen = worker.calls();
            let wanted = |engine: &Engine| self.reclaimer.is_short(engine) && engine.may_reclaim();
            if !self.reclaim() && !wanted(self.gate.lock().engine()) {
                worker.rest(seen, None);
            }
        }
    }

    /// Takes out one batch. Returns false if less than half a batch of frames is missing, or if no page can leave. A
    /// small batch costs as many interrupts of the other processors as a large one.
    fn reclaim(&self) -> bool {
        let Reclaimer { low, high, .. } = self.reclaimer;
        let (batch, mut begun) = (high - low, false);
        self.with_task_beside(true, |decider, todo| {
            if decider.engine().frames().free() + batch / 2 > high {
                return;
            }
            for _ in 0..batch {
                let engine = decider.engine();
                let enough = engine.frames().free() >= high || !engine.may_reclaim();
                if enough || todo.victims.len() + EACH > VICTIMS {
                    break;
                }
                decider.deliver(&self.work, todo, Event::Reclaim);
                begun = true;
            }
        });
        begun
    }
}
