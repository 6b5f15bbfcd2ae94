//! A policy that is a Python object, for teaching.
//!
//! A borrowed machine cannot be passed to the interpreter, so a search has two steps. First the reference bits of all
//! resident pages are read. Then the object (a `Taught` of `python/coldframe/policy.py`) looks at them and says which
//! bits it clears and which pages it unmaps, and this is done in its order. Nothing runs between the two steps, so the
//! outcome is the same as with single queries.
//!
//! An exception, or a frame without a page, ends the simulation. Until it has ended, the first resident page is
//! evicted.

use std::sync::{Arc, Mutex};

use coldframe_core::frames::Residents as Machine;
use coldframe_core::policy::{Made, Policy, Victim};
use coldframe_core::units::Walk;
use coldframe_core::{After, FrameId};
use pyo3::prelude::*;

/// Makes the policy and keeps its first failure.
pub struct Teacher {
    make: Py<PyAny>,
    failure: Failure,
}

type Failure = Arc<Mutex<Option<PyErr>>>;

impl Teacher {
    /// `make(frames)` returns the object.
    pub fn new(make: Py<PyAny>) -> Teacher {
        Teacher { make, failure: Failure::default() }
    }

    /// A policy for a number of frames.
    pub fn policy(&self, frames: usize) -> Made {
        let made = Python::attach(|py| self.make.call1(py, (frames,)));
        let object = made.map_err(|error| keep(&self.failure, error)).ok();
        let taught = Taught { object, held: vec![false; frames], failure: self.failure.clone() };
        Made { policy: Box::new(taught), insert_bit: true }
    }

    /// Whether something has gone wrong.
    pub fn has_failed(&self) -> bool {
        self.failure.lock().is_ok_and(|failure| failure.is_some())
    }

    /// The first failure.
    pub fn failure(&self) -> Option<PyErr> {
        self.failure.lock().ok().and_then(|mut failure| failure.take())
    }
}

/// Keeps the first failure, which is the cause of the others.
fn keep(failure: &Failure, error: PyErr) {
    if let Ok(mut first) = failure.lock() {
        first.get_or_insert(error);
    }
}

struct Taught {
    /// `None` after a failure.
    object: Option<Py<PyAny>>,
    /// By frame: whether the policy may choose it.
    held: Vec<bool>,
    failure: Failure,
}

/// What the object answers: the victim, if one is sought, and whether it was forced; steps of the walk; frames whose
/// bit it clears, or whose page it downgrades (`true`).
type Said = (Option<(usize, bool)>, u32, Vec<(u32, bool)>);

impl Taught {
    /// Calls the object. A failure is kept, and the object is not called again.
    fn call<T>(&mut self, call: impl FnOnce(&Bound<'_, PyAny>) -> PyResult<T>) -> Option<T> {
        let object = self.object.as_ref()?;
        match Python::attach(|py| call(object.bind(py))) {
            Ok(value) => Some(value),
            Err(error) => {
                keep(&self.failure, error);
                self.object = None;
                None
            }
        }
    }

    /// Tells the object of an event, and does to the pages what it answers. The victim, if one is sought.
    fn tell(&mut self, event: &str, frame: Option<FrameId>, machine: &mut Machine<'_>) -> Option<Victim> {
        let mut page = |(frame, held): (usize, &bool)| {
            let frame = FrameId::from(frame);
            held.then(|| (machine.page(frame).0, machine.referenced(frame, After::Keep)))
        };
        let pages: Vec<Option<(u32, bool)>> = self.held.iter().enumerate().map(&mut page).collect();
        let (chosen, looks, acts): Said = self.call(|object| match frame {
            Some(frame) => object.call_method1("tell", (event, pages, frame.0))?.extract(),
            None => object.call_method1("tell", (event, pages))?.extract(),
        })?;
        for (frame, downgrade) in acts {
            let frame = FrameId(frame);
            if downgrade {
                machine.downgrade(frame);
            } else {
                machine.referenced(frame, After::Clear);
            }
        }
        let (frame, forced) = chosen?;
        Some(Victim { frame: frame.into(), walk: Walk(looks.max(1).into()), forced })
    }

    fn first(&self) -> Victim {
        let frame = self.held.iter().position(|held| *held).expect("a victim is sought among pages");
        Victim { frame: frame.into(), walk: Walk(1), forced: false }
    }
}

impl Policy for Taught {
    fn true_fault(&mut self, machine: &mut Machine<'_>) {
        if self.call(|object| object.getattr("hears_faults")?.extract()) == Some(true) {
            self.tell("true_fault", None, machine);
        }
    }

    fn victim(&mut self, machine: &mut Machine<'_>) -> Victim {
        let victim = self.tell("victim", None, machine).unwrap_or_else(|| self.first());
        self.held[victim.frame.index()] = false;
        victim
    }

    fn insert(&mut self, frame: FrameId, machine: &mut Machine<'_>) {
        self.held[frame.index()] = true;
        self.tell("insert", Some(frame), machine);
    }

    fn promote(&mut self, frame: FrameId, machine: &mut Machine<'_>) {
        self.tell("promote", Some(frame), machine);
    }

    fn remove(&mut self, frame: FrameId) {
        self.held[frame.index()] = false;
        self.call(|object| object.call_method1("remove", (frame.0,)).map(drop));
    }

    fn len(&self) -> usize {
        self.held.iter().filter(|held| **held).count()
    }
}
