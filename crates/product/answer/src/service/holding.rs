//! Holds a service's limit low for hours and days, as [`super::hold`] decides: looks, writes the limit, keeps the
//! state.

use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant, SystemTime};

use coldframe_kernel::{End, Guard, Hold, PageTimes, Reading, Squeeze, SwapKind};
use coldframe_sheet::sheet::machine::Spread;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::history::Suggested;
use super::hold::{Act, HoldReason, Holding, Rule, ServiceLook};
use super::squeeze::{start_swap, target, SqueezeOrder};
use crate::error::AnswerError;
use crate::listener::Listener;
use crate::machine::costs::page_read;
use crate::machine::prices::prices;
use crate::run::guards::{guard, warn};
use crate::run::program::default_backing;
use crate::run::signals::Signals;
use crate::SCHEMA_VERSION;

/// How often the group is looked at, and how often a check runs.
const LOOK: Duration = Duration::from_millis(250);
const CHECK: Duration = Duration::from_secs(1);

/// What to hold, beside the group, the stalls, the window and the swap of a squeeze.
pub struct HoldOrder<'a> {
    /// The group, and how it is squeezed.
    pub squeeze: SqueezeOrder<'a>,
    /// A command whose run time is the service's latency.
    pub check: Option<&'a str>,
    /// A file to which the service appends its latencies, in milliseconds.
    pub latency_file: Option<&'a Path>,
    /// How much the 99th percentile of the latencies may grow, in percent.
    pub within_percent: f64,
    /// The file that outlives a restart.
    pub state: Option<&'a Path>,
}

/// A change of the limit.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Change {
    /// Version of this object's form.
    pub schema_version: u32,
    /// Version of coldframe.
    pub version: &'static str,
    /// The group's name.
    pub name: String,
    /// Seconds since 1970.
    pub time_seconds: f64,
    /// HoldReason.
    pub why: HoldReason,
    /// The limit from now on; null: the old one.
    pub limit_bytes: Option<u64>,
    /// Somebody else's limit, which stays.
    pub foreign: Option<String>,
    /// Bytes charged to the group.
    pub in_use_bytes: u64,
    /// Bytes in swap.
    pub swapped_bytes: u64,
    /// The part of the time since the change before in which some process waited for memory, in percent.
    pub waited_percent: f64,
    /// Pages that came back in a second of that time.
    pub pages_back_per_second: f64,
}

/// How it stands, for `--export`.
#[derive(Clone, Debug)]
pub struct Standing {
    /// The last change, with what is now.
    pub now: Change,
    /// Seconds waited for memory since the start.
    pub waited_seconds: f64,
    /// Pages that came back since the start.
    pub pages_back: u64,
    /// Steps down and up since the start.
    pub steps: (u64, u64),
    /// From the history.
    pub suggested: Option<Suggested>,
    /// The latencies' 99th percentile without a limit, in milliseconds.
    pub bound_ms: Option<f64>,
}

/// The state file.
#[derive(Default, Serialize, Deserialize)]
struct HoldState {
    name: String,
    /// The most that the kernel has charged.
    charged: u64,
    holding: Holding,
}

/// Where a state is kept by default: of root in /var/lib, of others in their folder for states.
fn state_file(order: Option<&Path>, name: &str) -> Result<PathBuf, AnswerError> {
    if let Some(file) = order {
        return Ok(file.into());
    }
    let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let own = || variable("XDG_STATE_HOME").or_else(|| Some(variable("HOME")?.join(".local/state")));
    let folder = if rustix::process::geteuid().is_root() { Some("/var/lib".into()) } else { own() };
    let folder = folder.ok_or_else(|| AnswerError::new(4, "there is no folder for the state; give --state FILE"))?;
    let flat = name.trim_matches('/').replace('/', "_");
    Ok(folder.join("coldframe").join(format!("{flat}.hold.json")))
}

fn read(file: &Path) -> Result<Option<HoldState>, AnswerError> {
    match std::fs::read(file) {
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(None),
        read => {
            let state = read.map_err(|e| e.to_string()).and_then(|text| {
                serde_json::from_slice(&text).map_err(|e| format!("{e}: it is no state of `squeeze --hold`"))
            });
            let say =
                |why| AnswerError::new(3, format!("{}: {why}; remove it, or give another --state", file.display()));
            state.map(Some).map_err(say)
        }
    }
}

/// Writes a file whole: who reads it sees the old or the new one.
///
/// # Errors
/// It cannot be written.
pub fn write_whole(file: &Path, text: &str) -> Result<(), AnswerError> {
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let write = || {
        use std::io::Write;
        std::fs::create_dir_all(folder)?;
        let mut new = tempfile::NamedTempFile::new_in(folder)?;
        new.write_all(text.as_bytes())?;
        let all = std::os::unix::fs::PermissionsExt::from_mode(0o644);
        new.as_file().set_permissions(all)?;
        new.persist(file).map_err(|e| e.error).map(drop)
    };
    write().map_err(|e| AnswerError::new(5, format!("{}: cannot be written: {e}", file.display())))
}

/// Requests and limits from the state of a hold that runs or ran.
///
/// # Errors
/// There is no history.
pub fn suggest(name: &str, state: Option<&Path>) -> Result<Suggested, AnswerError> {
    let file = state_file(state, name)?;
    let suggested = read(&file)?.and_then(|state| state.holding.history.suggested(name, state.charged));
    let message = || format!("{}: there is no history of {name}; hold it first: --hold --yes", file.display());
    suggested.ok_or_else(|| AnswerError::new(3, message()))
}

/// Holds, until a signal comes, the group ends or somebody else sets the limit. `changed` hears of each change,
/// `standing` of the end of each window. Returns whether the old limit is back, or somebody else's stays.
///
/// # Errors
/// There is no such group, it cannot be squeezed, its check fails, or another coldframe holds it.
pub fn hold(
    order: &HoldOrder,
    listener: &dyn Listener,
    changed: &dyn Fn(&Change) -> Result<(), AnswerError>,
    standing: &dyn Fn(&Standing) -> Result<(), AnswerError>,
) -> Result<bool, AnswerError> {
    order.squeeze.checked()?;
    warn(listener);
    let file = state_file(order.state, order.squeeze.name)?;
    let state = read(&file)?.unwrap_or_default();
    let (squeeze, swap) = target(&order.squeeze)?;
    let times = if Hold::counts_waits(&squeeze) { PageTimes::default() } else { page_times()? };
    let measure = Measure::start(order.check, order.latency_file)?;
    let mut guard = guard()?;
    let begun = begin(&mut guard, swap.as_ref(), squeeze, times);
    let done = begun.and_then(|hold| {
        let rule = Rule {
            watch: order.squeeze.watch.as_secs_f64(),
            stall_max: order.squeeze.max_stall_percent / 100.0,
            within: measure.is_some().then_some(order.within_percent / 100.0),
        };
        let mut keeper =
            Keeper::new(order.squeeze.name, hold, rule, HoldState { name: order.squeeze.name.into(), ..state });
        keeper.run(&mut guard, &file, measure, listener, changed, standing).map(|foreign| (keeper.hold, foreign))
    });
    guard.end();
    done.map(|(hold, foreign)| foreign || hold.restored())
}

fn begin(guard: &mut Guard, swap: Option<&SwapKind>, squeeze: Squeeze, times: PageTimes) -> Result<Hold, AnswerError> {
    start_swap(guard, swap)?;
    Ok(Hold::begin(squeeze, guard, times)?)
}

/// Where the kernel does not count a group's waits: what its pages take on this machine.
fn page_times() -> Result<PageTimes, AnswerError> {
    let seconds = |spread: Spread| spread.mean.0 as f64 / 1e12;
    let (swap, disk) = (prices()?, seconds(page_read(&default_backing())?));
    let most =
        |of: fn(&crate::machine::prices::Price) -> Spread| swap.iter().map(|it| seconds(of(it))).fold(0.0, f64::max);
    Ok(PageTimes { fault: most(|it| it.fault).max(disk), ahead: most(|it| it.ahead) })
}

/// The loop, and what it remembers.
struct Keeper {
    hold: Hold,
    rule: Rule,
    state: HoldState,
    /// What is said next: the state since the last change.
    change: Change,
    /// Since the last change: seconds waited, and pages that came back.
    since: (f64, u64),
    all: (f64, u64),
    steps: (u64, u64),
}

impl Keeper {
    fn new(name: &str, hold: Hold, rule: Rule, state: HoldState) -> Keeper {
        let change = Change {
            schema_version: SCHEMA_VERSION,
            version: env!("CARGO_PKG_VERSION"),
            name: name.into(),
            time_seconds: now(),
            why: HoldReason::Calm,
            limit_bytes: None,
            foreign: None,
            in_use_bytes: 0,
            swapped_bytes: 0,
            waited_percent: 0.0,
            pages_back_per_second: 0.0,
        };
        Keeper { hold, rule, state, change, since: (0.0, 0), all: (0.0, 0), steps: (0, 0) }
    }

    /// Returns whether somebody else's limit stays.
    fn run(
        &mut self,
        guard: &mut Guard,
        file: &Path,
        mut measure: Option<Measure>,
        listener: &dyn Listener,
        changed: &dyn Fn(&Change) -> Result<(), AnswerError>,
        standing: &dyn Fn(&Standing) -> Result<(), AnswerError>,
    ) -> Result<bool, AnswerError> {
        let signals = Signals::catch()?;
        let mut kept = Instant::now();
        loop {
            std::thread::sleep(LOOK.min(Duration::from_secs_f64(self.rule.watch / 4.0)));
            let why = match (signals.came() || !guard.is_alive(), self.hold.look()) {
                (true, _) => Some(HoldReason::Stopped),
                (_, Err(End::Gone)) => Some(HoldReason::Gone),
                (_, Err(_)) => Some(HoldReason::Stopped),
                (false, Ok(reading)) => self.step(reading, measure.as_mut(), guard, changed)?,
            };
            if why.is_some() || kept.elapsed().as_secs_f64() >= self.rule.watch {
                kept = Instant::now();
                let state = serde_json::to_string(&self.state).expect("plain data has a JSON form");
                write_whole(file, &state)?;
                standing(&self.standing())?;
            }
            match why {
                None => {}
                Some(HoldReason::Foreign) => return Ok(true),
                Some(why) => {
                    if !guard.is_alive() {
                        listener.warn(
                            "coldframe: the guard was killed, so the hold ends; another one puts the limit back\n",
                        );
                    }
                    self.hold.raise();
                    self.said(why, None, changed)?;
                    return Ok(false);
                }
            }
        }
    }

    /// Takes a reading, and does what is decided. Returns why it ends.
    fn step(
        &mut self,
        reading: Reading,
        measure: Option<&mut Measure>,
        guard: &mut Guard,
        changed: &dyn Fn(&Change) -> Result<(), AnswerError>,
    ) -> Result<Option<HoldReason>, AnswerError> {
        let at = now();
        let (latencies, check_failed) = measure.map_or_else(Default::default, Measure::take);
        (self.change.in_use_bytes, self.change.swapped_bytes) = (reading.usage, reading.swapped);
        self.since = (self.since.0 + reading.waited, self.since.1 + reading.back);
        self.all = (self.all.0 + reading.waited, self.all.1 + reading.back);
        self.state.charged = self.state.charged.max(self.hold.peak().unwrap_or(0));
        self.change.foreign = reading.foreign.clone();
        let look = ServiceLook { at, group: reading, latencies, check_failed };
        let mut act = self.state.holding.look(&self.rule, &look);
        if let Act::Lower(asked) = act {
            let set = self.hold.lower(asked);
            act = self.state.holding.set(&self.rule, at, set);
            if let Some(limit) = set {
                self.steps.0 += 1;
                self.said(HoldReason::Calm, Some(limit), changed)?;
            }
        }
        match act {
            Act::Raise(why) => {
                self.hold.raise();
                self.steps.1 += 1;
                self.said(why, None, changed)?;
                Ok(None)
            }
            Act::Leave => {
                self.hold.leave(guard)?;
                self.said(HoldReason::Foreign, None, changed)?;
                Ok(Some(HoldReason::Foreign))
            }
            Act::Stay | Act::Lower(_) => Ok(None),
        }
    }

    fn said(
        &mut self,
        why: HoldReason,
        limit: Option<u64>,
        changed: &dyn Fn(&Change) -> Result<(), AnswerError>,
    ) -> Result<(), AnswerError> {
        let change = Change { why, limit_bytes: limit, ..self.standing().now };
        (self.since, self.change.limit_bytes, self.change.why) = ((0.0, 0), limit, why);
        self.change.time_seconds = change.time_seconds;
        changed(&change)
    }

    fn standing(&self) -> Standing {
        let seconds = (now() - self.change.time_seconds).max(1e-3);
        let now = Change {
            time_seconds: now(),
            waited_percent: 100.0 * (self.since.0 / seconds).min(1.0),
            pages_back_per_second: self.since.1 as f64 / seconds,
            ..self.change.clone()
        };
        let holding = &self.state.holding;
        Standing {
            now,
            waited_seconds: self.all.0,
            pages_back: self.all.1,
            steps: self.steps,
            suggested: holding.history.suggested(&self.state.name, self.state.charged),
            bound_ms: holding.bound_ms(),
        }
    }
}

fn now() -> f64 {
    SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default().as_secs_f64()
}

/// The service's own latencies.
enum Measure {
    /// Of a check, which a thread runs again and again: milliseconds, or a failure.
    Check(Arc<Mutex<Vec<Option<f64>>>>),
    /// Of a file, from this place on.
    File(PathBuf, u64),
}

impl Measure {
    fn start(check: Option<&str>, file: Option<&Path>) -> Result<Option<Measure>, AnswerError> {
        if let Some(command) = check {
            if let Err(why) = checked(command) {
                let message = format!("--check `{command}` fails at the start ({why}); give one that succeeds now");
                return Err(AnswerError::new(3, message));
            }
            let found = Arc::new(Mutex::new(Vec::new()));
            let (to, command) = (Arc::downgrade(&found), command.to_string());
            std::thread::spawn(move || again_and_again(&to, &command));
            return Ok(Some(Measure::Check(found)));
        }
        let Some(path) = file else { return Ok(None) };
        let size = path.metadata().map_err(|e| {
            AnswerError::new(3, format!("--latency-file {}: {e}; start what writes it first", path.display()))
        })?;
        Ok(Some(Measure::File(path.into(), size.len())))
    }

    /// What came since the last call, and whether a check failed.
    fn take(&mut self) -> (Vec<f64>, bool) {
        match self {
            Measure::Check(found) => {
                let found = std::mem::take(&mut *found.lock().unwrap_or_else(PoisonError::into_inner));
                (found.iter().flatten().copied().collect(), found.contains(&None))
            }
            Measure::File(path, from) => {
                let (found, to) = appended(path, *from).unwrap_or((Vec::new(), 0));
                *from = to;
                (found, false)
            }
        }
    }
}

fn checked(command: &str) -> Result<f64, String> {
    let (mut words, began) = (Command::new("sh"), Instant::now());
    words.args(["-c", command]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let status = words.status().map_err(|e| e.to_string())?;
    if status.success() {
        Ok(1e3 * began.elapsed().as_secs_f64())
    } else {
        Err(status.to_string())
    }
}

fn again_and_again(to: &Weak<Mutex<Vec<Option<f64>>>>, command: &str) {
    while let Some(found) = to.upgrade() {
        let took = checked(command).ok();
        found.lock().unwrap_or_else(PoisonError::into_inner).push(took);
        drop(found);
        std::thread::sleep(CHECK);
    }
}

/// Numbers in whole lines from a place in a file on, the last word of each line, and the place after them. A file that
/// is shorter now is read from its begin.
fn appended(path: &Path, from: u64) -> std::io::Result<(Vec<f64>, u64)> {
    let mut file = std::fs::File::open(path)?;
    let from = if file.metadata()?.len() < from { 0 } else { from };
    let mut text = Vec::new();
    file.seek(SeekFrom::Start(from))?;
    file.take(1 << 24).read_to_end(&mut text)?;
    let whole = text.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
    let lines = String::from_utf8_lossy(&text[..whole]);
    let number = |line: &str| line.split_whitespace().next_back()?.parse::<f64>().ok().filter(|ms| ms.is_finite());
    Ok((lines.lines().filter_map(number).collect(), from + whole as u64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn latencies_are_whole_lines_that_were_appended() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("latencies");
        std::fs::write(&file, "9\n").unwrap();
        let mut measure = Measure::start(None, Some(&file)).unwrap().unwrap();
        let append = |text: &str| {
            use std::io::Write;
            std::fs::OpenOptions::new().append(true).open(&file).unwrap().write_all(text.as_bytes()).unwrap();
        };
        append("1.5\n12:00 GET 2\nnonsense\n3.");
        assert_eq!(measure.take(), (vec![1.5, 2.0], false));
        append("5\n");
        assert_eq!(measure.take(), (vec![3.5], false));
        std::fs::write(&file, "7\n").unwrap();
        assert_eq!(measure.take(), (vec![7.0], false), "the file was begun anew");
        let refused = Measure::start(None, Some(Path::new("/no/such/file"))).err().unwrap();
        assert!(refused.code() == 3 && refused.to_string().contains("start what writes it first"), "{refused}");
    }

    #[test]
    fn a_check_that_fails_at_the_start_is_refused_and_a_later_one_is_told() {
        let refused = Measure::start(Some("exit 7"), None).err().unwrap();
        assert!(refused.code() == 3 && refused.to_string().contains("`exit 7` fails at the start"), "{refused}");
        let found = Arc::new(Mutex::new(vec![Some(1.0), None]));
        assert_eq!(Measure::Check(found).take(), (vec![1.0], true));
    }

    #[test]
    fn a_state_is_found_again_and_what_is_none_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a/state.json");
        assert!(read(&file).unwrap().is_none() && suggest("web", Some(&file)).unwrap_err().code() == 3);
        let mut state = HoldState { name: "web".into(), charged: 5 << 20, ..HoldState::default() };
        (0..9).for_each(|i| state.holding.history.add(f64::from(i), 2 << 20, 1.0));
        write_whole(&file, &serde_json::to_string(&state).unwrap()).unwrap();
        let found = suggest("web", Some(&file)).unwrap();
        assert_eq!((found.p99_bytes, found.peak_bytes, found.watched_seconds), (2 << 20, 5 << 20, 8.0));
        std::fs::write(&file, "{").unwrap();
        let refused = suggest("web", Some(&file)).unwrap_err().to_string();
        assert!(refused.contains("it is no state") && refused.contains("remove it"), "{refused}");
    }
}
