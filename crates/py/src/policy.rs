//! A policy that is a Python object, for teaching.
//!
//! A borrowed machine cannot be passed to the interpreter, so a search has two steps. First the reference bits of all
//! resident pages are read. Then the object looks at them and says which bits it clears and which pages it unmaps,
//! and this is done in its order. Nothing runs between the two steps, so the outcome is the same as with single
//! queries.
//!
//! An exception, or a frame without a page, ends the simulation. Until it has ended, the first resident page is
//! evicted.

use std::sync::{Arc, Mutex};

use coldframe_core::frames::Residents as Machine;
use coldframe_core::policy::{Made, Policy, Victim};
use coldframe_core::units::Walk;
use coldframe_core::{After, FrameId};
use pyo3::exceptions::{PyTypeError, PyValueError};
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
        let hears = |object: &Py<PyAny>| Python::attach(|py| object.bind(py).hasattr("true_fault").unwrap_or(false));
        let hears_faults = object.as_ref().is_some_and(hears);
        let taught = Taught { object, hears_faults, held: vec![false; frames], failure: self.failure.clone() };
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
    /// Whether the object has a method for true faults.
    hears_faults: bool,
    /// By frame: whether the policy may choose it.
    held: Vec<bool>,
    failure: Failure,
}

/// The resident pages, as a policy sees them during one call.
#[pyclass(module = "coldframe._native")]
pub struct Residents {
    frames: Vec<Option<Resident>>,
    done: Vec<Act>,
    looks: u32,
}

#[derive(Clone, Copy)]
struct Resident {
    page: u32,
    referenced: bool,
}

#[derive(Clone, Copy)]
enum Act {
    Clear(FrameId),
    Downgrade(FrameId),
}

#[pymethods]
impl Residents {
    /// How many frames there are.
    #[getter]
    fn frames(&self) -> usize {
        self.frames.len()
    }

    /// Frames that hold a page of this policy, in order.
    #[getter]
    fn held(&self) -> Vec<usize> {
        self.frames.iter().enumerate().filter(|(_, resident)| resident.is_some()).map(|(frame, _)| frame).collect()
    }

    /// The number of the page in a frame, in order of first touch.
    fn page(&self, frame: usize) -> PyResult<u32> {
        self.resident(frame).map(|resident| resident.page)
    }

    /// Whether the page was touched since its bit was cleared. Each call is a step of the walk.
    #[pyo3(signature = (frame, clear=true))]
    fn referenced(&mut self, frame: usize, clear: bool) -> PyResult<bool> {
        let was = self.resident(frame)?.referenced;
        self.looks += 1;
        if clear {
            self.act(frame, Act::Clear(frame.into()));
        }
        Ok(was)
    }

    /// Removes the page from the page table but keeps it in RAM: its next touch is a false fault.
    fn downgrade(&mut self, frame: usize) -> PyResult<()> {
        self.resident(frame)?;
        self.act(frame, Act::Downgrade(frame.into()));
        Ok(())
    }
}

impl Residents {
    fn new(held: &[bool], machine: &mut Machine<'_>) -> Residents {
        let mut look = |(frame, held): (usize, &bool)| {
            let frame = FrameId::from(frame);
            held.then(|| Resident { page: machine.page(frame).0, referenced: machine.referenced(frame, After::Keep) })
        };
        Residents { frames: held.iter().enumerate().map(&mut look).collect(), done: Vec::new(), looks: 0 }
    }

    fn resident(&self, frame: usize) -> PyResult<Resident> {
        self.frames.get(frame).copied().flatten().ok_or_else(|| nothing_there(frame, self.frames.len()))
    }

    fn act(&mut self, frame: usize, act: Act) {
        self.done.push(act);
        if let Some(resident) = &mut self.frames[frame] {
            resident.referenced = false;
        }
    }

    fn carry_out(&self, machine: &mut Machine<'_>) {
        for act in &self.done {
            match *act {
                Act::Clear(frame) => drop(machine.referenced(frame, After::Clear)),
                Act::Downgrade(frame) => machine.downgrade(frame),
            }
        }
    }
}

fn nothing_there(frame: usize, frames: usize) -> PyErr {
    PyValueError::new_err(format!("frame {frame} holds no page of this policy; frames are 0 to {}", frames - 1))
}

impl Taught {
    /// Calls a method. A failure is kept, and the object is not called again.
    fn call<T>(&mut self, call: impl FnOnce(Python<'_>, &Py<PyAny>) -> PyResult<T>) -> Option<T> {
        let object = self.object.as_ref()?;
        match Python::attach(|py| call(py, object)) {
            Ok(value) => Some(value),
            Err(error) => {
                keep(&self.failure, error);
                self.object = None;
                None
            }
        }
    }

    fn looking<T>(
        &mut self,
        machine: &mut Machine<'_>,
        call: impl FnOnce(Python<'_>, &Py<PyAny>, &Py<Residents>) -> PyResult<T>,
    ) -> Option<(T, u32)> {
        let residents = Residents::new(&self.held, machine);
        let (value, residents) = self.call(|py, object| {
            let residents = Py::new(py, residents)?;
            let value = call(py, object, &residents)?;
            Ok((value, residents))
        })?;
        let looks = Python::attach(|py| {
            let residents = residents.borrow(py);
            residents.carry_out(machine);
            residents.looks
        });
        Some((value, looks))
    }

    /// The frame that the object chose, if it holds a page.
    fn choose(&mut self, machine: &mut Machine<'_>) -> Option<Victim> {
        let held = self.held.clone();
        let chosen = self.looking(machine, |py, object, residents| {
            let answer = object.call_method1(py, "victim", (residents,))?;
            let (frame, forced) = read_answer(answer.bind(py))?;
            match held.get(frame) {
                Some(true) => Ok((frame, forced)),
                _ => Err(nothing_there(frame, held.len())),
            }
        });
        let ((frame, forced), looks) = chosen?;
        Some(Victim { frame: frame.into(), walk: Walk(looks.max(1).into()), forced })
    }

    fn first(&self) -> Victim {
        let frame = self.held.iter().position(|held| *held).expect("a victim is sought among pages");
        Victim { frame: frame.into(), walk: Walk(1), forced: false }
    }
}

/// A frame, or a frame and whether it was taken with any reference bit.
fn read_answer(answer: &Bound<'_, PyAny>) -> PyResult<(usize, bool)> {
    let wrong = || {
        let returned = answer.repr().map_or_else(|_| "something".into(), |text| text.to_string());
        PyTypeError::new_err(format!("victim() returned {returned}; give a frame, or (frame, forced)"))
    };
    match answer.extract::<usize>() {
        Ok(frame) => Ok((frame, false)),
        Err(_) => answer.extract::<(usize, bool)>().map_err(|_| wrong()),
    }
}

impl Policy for Taught {
    fn true_fault(&mut self, machine: &mut Machine<'_>) {
        if self.hears_faults {
            self.looking(machine, |py, object, residents| {
                object.call_method1(py, "true_fault", (residents,)).map(drop)
            });
        }
    }

    fn victim(&mut self, machine: &mut Machine<'_>) -> Victim {
        let victim = self.choose(machine).unwrap_or_else(|| self.first());
        self.held[victim.frame.index()] = false;
        victim
    }

    fn insert(&mut self, frame: FrameId, machine: &mut Machine<'_>) {
        self.held[frame.index()] = true;
        self.looking(machine, |py, object, residents| {
            object.call_method1(py, "insert", (frame.0, residents)).map(drop)
        });
    }

    fn promote(&mut self, frame: FrameId, machine: &mut Machine<'_>) {
        self.looking(machine, |py, object, residents| {
            object.call_method1(py, "promote", (frame.0, residents)).map(drop)
        });
    }

    fn remove(&mut self, frame: FrameId) {
        self.held[frame.index()] = false;
        self.call(|py, object| object.call_method1(py, "remove", (frame.0,)).map(drop));
    }

    fn len(&self) -> usize {
        self.held.iter().filter(|held| **held).count()
    }
}
