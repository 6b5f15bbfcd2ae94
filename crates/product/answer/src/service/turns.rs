//! Programs that take turns by themselves: who runs, when the next one's list is fetched, when a turn ends.
//!
//! ```text
//!   A runs ──── near its end: fetch B's list ── the slice is over: stop A ─ B runs ──── push A out ──── ...
//! ```
//! This process holds all stopped programs, each with a guard: if it ends, in whatever way, all of them run.

use std::collections::VecDeque;
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use coldframe_kernel::{Guard, KernelError, Parked, SwapKind, Tree};
use schemars::JsonSchema;
use serde::Serialize;

use crate::error::AnswerError;
use crate::listener::Listener;
use crate::run::by_kernel::swappable;
use crate::run::guards::{guard, warn};
use crate::run::signals::Signals;
use crate::service::park::{hold, lists};
use crate::SCHEMA_VERSION;

/// A shorter turn is spent on the switch.
const SLICE_MIN: Duration = Duration::from_millis(100);
/// How often signals and the program are looked at.
const LOOK: Duration = Duration::from_millis(20);
/// How long before its turn a program's list is fetched, in times of its last fetch (SAP's activation moment): pages
/// that come too early leave RAM again before the turn.
const LEAD: u32 = 2;
/// The least and the most of that, in parts of the slice; the most while no fetch has been measured.
const LEAD_PARTS: [f64; 2] = [0.1, 0.5];
/// The part of a turn after which the pages of the program before are pushed out: its first answers do not wait behind
/// them in the disk's queue.
const PAUSE: f64 = 0.2;
/// A program is idle if it waits for no device and has less than this part of a processor's time ...
const IDLE_SHARE: f64 = 0.01;
/// ... for this part of the slice ...
const IDLE_PART: f64 = 0.1;
/// ... and for no less than this time.
const IDLE_MIN: Duration = Duration::from_millis(100);

/// Who takes turns, and how.
pub struct TurnsOrder<'a> {
    /// Processes, units, containers, groups.
    pub names: &'a [String],
    /// The time of a turn.
    pub slice: Duration,
    /// Whether a turn ends when its program is idle.
    pub until_idle: bool,
    /// Swap that is made for them, in the words of `run --swap`.
    pub swap: Option<&'a str>,
}

/// What the turns were.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Turns {
    /// Version of this object's form.
    pub schema_version: u32,
    /// Version of coldframe.
    pub version: &'static str,
    /// The time of a turn.
    pub slice_seconds: f64,
    /// The time of all turns.
    pub seconds: f64,
    /// Why they ended.
    pub end: TurnsEnd,
    /// The programs, in the order in which they were given.
    pub programs: Vec<Turned>,
}

/// Why turns ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TurnsEnd {
    /// Ctrl-C, or another signal to end.
    Signal,
    /// Fewer than two programs are left.
    OneLeft,
}

/// The turns of one program.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Turned {
    /// Its name.
    pub name: String,
    /// Its first process.
    pub process: u32,
    /// The name of that process's program.
    pub program: String,
    /// Its turns, with the last one, which may have been cut short.
    pub turns: u64,
    /// Of those, turns that ended since it was idle.
    pub idle_turns: u64,
    /// Seconds that it ran.
    pub seconds: f64,
    /// Bytes of its lists, of all turns.
    pub fetched_bytes: u64,
    /// It has ended.
    pub ended: bool,
    /// Why its faults are not recorded, so that its list is loaded in the order of addresses.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unordered: Option<String>,
}

struct Member {
    number: usize,
    parked: Parked,
    /// When its turn began.
    began: Instant,
    /// It has been stopped, and its pages are not pushed out yet.
    eviction_pending: bool,
    /// What its last fetch took; `None`: none has ended.
    fetch: Arc<Mutex<Option<Duration>>>,
    turned: Turned,
}

/// Why a turn ends.
#[derive(PartialEq, Eq)]
enum Over {
    Slice,
    Idle,
    Ended,
    Signal,
}

/// Has the programs take turns until a signal comes or fewer than two are left. Then all of them run.
///
/// # Errors
/// A program is not there, is named twice, or cannot be stopped: all of them run.
pub fn turns(order: &TurnsOrder, listener: &dyn Listener) -> Result<Turns, AnswerError> {
    warn(listener);
    if order.slice < SLICE_MIN || order.names.len() < 2 {
        let message = "give --slice at least 100ms, and the names of two programs or more";
        return Err(AnswerError::usage(message));
    }
    let kind = order.swap.map(SwapKind::parse);
    kind.as_ref().map_or(Ok(()), |kind| swappable(&Tree::machine(), kind))?;
    let swap = hold(order.swap)?;
    let done = take_turns(order, listener);
    // All of them run; what they have in swap comes back.
    swap.map(Guard::end);
    done
}

fn take_turns(order: &TurnsOrder, listener: &dyn Listener) -> Result<Turns, AnswerError> {
    let (mut queue, signals) = (members(order.names)?, Signals::catch()?);
    let (begin, mut ended) = (Instant::now(), Vec::new());
    for member in queue.iter_mut().skip(1) {
        member.stop()?;
        member.parked.push_out();
    }
    queue[0].began = Instant::now();
    let (mut number, mut end) = (0, TurnsEnd::OneLeft);
    while queue.len() > 1 {
        let Some(mut current) = queue.pop_front() else { break };
        number += 1;
        listener.progress(number, None, &format!("{} runs", current.turned.name));
        let over = current.turn(&mut queue, order, &signals);
        if over == Over::Signal {
            queue.push_front(current);
            end = TurnsEnd::Signal;
            break;
        }
        while queue.front().is_some_and(|next| !next.parked.is_alive()) {
            ended.extend(queue.pop_front().map(Member::ended));
        }
        if queue.is_empty() && over != Over::Ended {
            queue.push_front(current);
            break;
        }
        queue.iter_mut().for_each(Member::push_out);
        let stopped = over != Over::Ended && current.try_stop()?;
        if let Some(next) = queue.front_mut() {
            next.try_resume()?;
        }
        if stopped {
            current.eviction_pending = true;
            queue.push_back(current);
        } else {
            ended.push(current.ended());
        }
    }
    listener.finish();
    for member in &mut queue {
        member.parked.continue_all();
        member.parked.end_idle_guard();
    }
    ended.extend(queue.into_iter().map(|member| (member.number, member.turned)));
    ended.sort_by_key(|(number, _)| *number);
    Ok(Turns {
        schema_version: SCHEMA_VERSION,
        version: env!("CARGO_PKG_VERSION"),
        slice_seconds: order.slice.as_secs_f64(),
        seconds: begin.elapsed().as_secs_f64(),
        end,
        programs: ended.into_iter().map(|(_, turned)| turned).collect(),
    })
}

/// The programs of these names.
fn members(names: &[String]) -> Result<VecDeque<Member>, AnswerError> {
    let (tree, lists, mut members) = (Tree::machine(), lists(), VecDeque::<Member>::new());
    for (number, name) in names.iter().enumerate() {
        let parked = Parked::find(&tree, name, &lists)?;
        let processes = parked.processes();
        for other in &members {
            if let Some(process) = other.parked.processes().into_iter().find(|process| processes.contains(process)) {
                let message =
                    format!("{} and {name} both have process {process}; name each program once", other.turned.name);
                return Err(AnswerError::usage(message));
            }
        }
        let now = parked.status();
        let (turns, idle_turns, seconds, fetched_bytes, ended) = (0, 0, 0.0, 0, false);
        let (name, process, program) = (now.name, now.process, now.program);
        let unordered = None;
        let turned = Turned { name, process, program, turns, idle_turns, seconds, fetched_bytes, ended, unordered };
        members.push_back(Member {
            number,
            parked,
            began: Instant::now(),
            eviction_pending: false,
            fetch: Arc::default(),
            turned,
        });
    }
    Ok(members)
}

impl Member {
    fn stop(&mut self) -> Result<(), KernelError> {
        self.parked.halt(&guard, std::process::id())
    }

    /// Stops it. False: it has ended.
    fn try_stop(&mut self) -> Result<bool, AnswerError> {
        self.or_gone(|member| member.stop())
    }

    /// Lets it run. False: it has ended.
    fn try_resume(&mut self) -> Result<bool, AnswerError> {
        self.began = Instant::now();
        self.or_gone(|member| {
            member.turned.unordered = member.parked.resume()?.unordered;
            Ok(())
        })
    }

    fn or_gone(&mut self, act: impl FnOnce(&mut Member) -> Result<(), KernelError>) -> Result<bool, AnswerError> {
        match act(self) {
            Ok(()) => Ok(true),
            Err(_) if !self.parked.is_alive() => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Pushes its pages out, if that is still to be done.
    fn push_out(&mut self) {
        if std::mem::take(&mut self.eviction_pending) {
            self.parked.push_out();
        }
    }

    fn ended(self) -> (usize, Turned) {
        (self.number, Turned { ended: true, ..self.turned })
    }

    /// Its turn, in which the list of the first of the others is fetched.
    fn turn(&mut self, others: &mut VecDeque<Member>, order: &TurnsOrder, signals: &Signals) -> Over {
        let moment = order.slice - others.front().map_or(order.slice, |next| next.lead(order.slice));
        let (pause, mut fetched) = (order.slice.mul_f64(PAUSE), false);
        let window = order.slice.mul_f64(IDLE_PART).max(IDLE_MIN);
        let mut idle_since = (Instant::now(), self.parked.run_ns());
        let over = loop {
            let time = self.began.elapsed();
            // Without its guard a stopped program would stay stopped: it runs.
            for other in others.iter_mut() {
                other.parked.check_guard();
            }
            if signals.came() {
                break Over::Signal;
            }
            if !self.parked.is_alive() {
                break Over::Ended;
            }
            if time >= order.slice {
                break Over::Slice;
            }
            let idle = order.until_idle && self.is_idle(&mut idle_since, window);
            if time >= pause || idle || time >= moment {
                others.iter_mut().for_each(Member::push_out);
            }
            if let (false, true, Some(next)) = (fetched, idle || time >= moment, others.front_mut()) {
                fetched = true;
                self.parked.end_idle_guard();
                next.fetch(idle.then(|| order.slice - time));
            }
            if idle {
                break Over::Idle;
            }
            let event = [pause, moment, order.slice].into_iter().find(|event| *event > time).unwrap_or(order.slice);
            std::thread::sleep(LOOK.min(event.saturating_sub(self.began.elapsed())));
        };
        self.turned.turns += 1;
        self.turned.idle_turns += u64::from(over == Over::Idle);
        self.turned.seconds += self.began.elapsed().as_secs_f64();
        over
    }

    /// Whether it has done next to nothing for so long. `since`: the begin of a window, and what it had run then.
    fn is_idle(&self, since: &mut (Instant, Option<u64>), window: Duration) -> bool {
        let (now, passed) = (self.parked.run_ns(), since.0.elapsed());
        let ran = now.zip(since.1).and_then(|(now, before)| now.checked_sub(before));
        let quiet = ran.is_some_and(|ran| (ran as f64) < IDLE_SHARE * window.as_nanos() as f64);
        if !quiet {
            *since = (Instant::now(), now);
        }
        quiet && passed >= window
    }

    /// How long before its turn its list is fetched.
    fn lead(&self, slice: Duration) -> Duration {
        let [shortest, longest] = LEAD_PARTS.map(|part| slice.mul_f64(part));
        let last = *self.fetch.lock().unwrap_or_else(PoisonError::into_inner);
        last.map_or(longest, |last| (last * LEAD).clamp(shortest, longest))
    }

    /// Fetches its list while another program runs; waits for the requests so long, if another is idle.
    fn fetch(&mut self, patience: Option<Duration>) {
        let (to, from) = channel();
        self.turned.fetched_bytes += self.parked.listed();
        let (begin, took) = (Instant::now(), self.fetch.clone());
        self.parked.prefetch(move |_| {
            *took.lock().unwrap_or_else(PoisonError::into_inner) = Some(begin.elapsed());
            // Nobody waits for it.
            let _ = to.send(());
        });
        if let Some(patience) = patience {
            let _ = from.recv_timeout(patience);
        }
    }
}
