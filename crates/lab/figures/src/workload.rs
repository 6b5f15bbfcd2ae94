//! Applications on a phone as a multi-task trace, from a seed and a file of parameters (`data/workloads/phone.toml`
//! describes each parameter and its source).
//!
//! ```text
//!  services, all along:  each is begun at 0 and builds its heap up; then, once a period, it touches the working part
//!  a visit, one minute:  the working part of heap and files, at once      what the user waits for
//!                        then each second: touches, nine of ten there; new pages, from a pool that goes round
//!  the first visit:      the whole heap is made, that is written
//! ```
//!
//! A heap page is either read-mostly, and is then written only when it is made, or is written by every third touch.
//! The trace does not know about tasks that a killer ends: they come back with the touches of any visit, not with
//! those of a first one.

use std::collections::BTreeMap;

use coldframe_experiment::phone::{self, MachineParameters, SERVICE, SHIPPED};
use coldframe_experiment::ExperimentError;
use coldframe_store::provenance::{Mapping, Task};
use coldframe_store::{Block, Fidelity, Kind, Provenance, Reference};
use serde::Deserialize;

/// What an application does.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AppParameters {
    pub heap_mb: f64,
    pub heap_per_mb: f64,
    pub working: f64,
    pub read_mostly: f64,
    pub stray: f64,
    pub lines: u32,
    pub file_working: f64,
    pub touches_per_s: u64,
    pub file_touches_per_s: u64,
    pub new_pages_per_s: u64,
    pub pool_mb: f64,
}

/// What works in the background.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ServiceParameters {
    pub count: u64,
    pub heap_mb: f64,
    pub working: f64,
    pub period_s: u64,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Parameters {
    pub seed: u64,
    pub rounds: u32,
    pub foreground_s: u64,
    pub machine: MachineParameters,
    pub app: AppParameters,
    pub services: ServiceParameters,
    pub categories: BTreeMap<String, Vec<f64>>,
}

/// Reads parameters.
pub fn parse(file: &str, text: &str) -> Result<Parameters, ExperimentError> {
    let p: Parameters =
        toml::from_str(text).map_err(|e| ExperimentError::Config { origin: file.into(), reason: e.to_string() })?;
    let parts = [
        ("app.working", p.app.working),
        ("app.read_mostly", p.app.read_mostly),
        ("app.file_working", p.app.file_working),
        ("app.stray", p.app.stray),
        ("services.working", p.services.working),
    ];
    if let Some((field, value)) = parts.into_iter().find(|(_, value)| !(0.0..=1.0).contains(value)) {
        return Err(phone::wrong_field(file, text, field, value, "give a part from 0 to 1"));
    }
    let numbers = [
        ("app.heap_mb", p.app.heap_mb),
        ("app.pool_mb", p.app.pool_mb),
        ("app.lines", p.app.lines.into()),
        ("services.heap_mb", p.services.heap_mb),
        ("services.period_s", p.services.period_s as f64),
        ("rounds", p.rounds.into()),
        ("foreground_s", p.foreground_s as f64),
    ];
    phone::check(file, text, &numbers, false)?;
    for (name, size) in p.categories.iter().flat_map(|(name, sizes)| sizes.iter().map(move |size| (name, *size))) {
        phone::check(file, text, &[(&format!("categories.{name}"), size)], false)?;
    }
    let may_be_zero = [("app.heap_per_mb", p.app.heap_per_mb), ("services.count", p.services.count as f64)];
    phone::check(file, text, &may_be_zero, true)?;
    phone::parse(file, text)?;
    Ok(p)
}

/// The parameters in a file.
pub fn read(path: &str) -> Result<Parameters, ExperimentError> {
    let text = std::fs::read_to_string(path);
    parse(path, &text.map_err(|e| ExperimentError::Io { path: path.into(), reason: e.to_string() })?)
}

/// The shipped parameters.
///
/// # Panics
/// Never: they are part of the program and tested.
pub fn shipped() -> Parameters {
    parse(SHIPPED.0, SHIPPED.1).expect("the shipped parameters are tested")
}

/// Bytes of a page, and of a line.
const PAGE: u64 = 4096;
const LINE: u32 = 64;

const SECOND: u64 = 1_000_000_000;

/// The addresses of an application's parts. They are the same in each; address spaces keep them apart.
const HEAP: u64 = 0x1000_0000;
const POOL: u64 = 0x5000_0000;
const FILES: u64 = 0x8000_0000;
const END: u64 = 0xc000_0000;

fn pages(mb: f64) -> u64 {
    ((mb * 1e6 / PAGE as f64) as u64).max(1)
}

/// SplitMix64 (Steele, Lea and Flood, OOPSLA 2014).
pub(crate) struct Chance(pub(crate) u64);

impl Chance {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.0)
    }

    pub(crate) fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }

    /// From 0 to below 1.
    pub(crate) fn unit(&mut self) -> f64 {
        unit(self.next())
    }

    fn is(&mut self, part: f64) -> bool {
        self.unit() < part
    }

    /// One of the first `part` of `n`; with the chance `stray`, one of all.
    fn mostly_of(&mut self, part: u64, n: u64, stray: f64) -> u64 {
        let bound = if self.is(stray) { n } else { part.max(1) };
        self.below(bound)
    }
}

/// The upper bits as a number from 0 to 1.
fn unit(n: u64) -> f64 {
    (n >> 11) as f64 / (1u64 << 53) as f64
}

fn mix(z: u64) -> u64 {
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// One application, in pages.
struct App {
    task: u32,
    heap: u64,
    working: u64,
    files: u64,
    file_working: u64,
    pool: u64,
    next_new: u64,
}

impl App {
    fn new(task: usize, size_mb: f64, p: &AppParameters) -> App {
        let heap = pages(p.heap_mb + p.heap_per_mb * size_mb);
        let files = pages(size_mb);
        App {
            task: task as u32,
            heap,
            working: (heap as f64 * p.working) as u64,
            files,
            file_working: (files as f64 * p.file_working) as u64,
            pool: pages(p.pool_mb),
            next_new: 0,
        }
    }
}

/// What works in the background, in pages.
struct Service {
    task: u32,
    heap: u64,
    working: u64,
    /// The second of its period at which it wakes.
    phase: u64,
}

impl Service {
    /// The services' tasks come after the applications', and wake evenly over the period.
    fn all(apps: usize, p: &ServiceParameters) -> Vec<Service> {
        let heap = pages(p.heap_mb);
        let working = (heap as f64 * p.working) as u64;
        let service = |i: u64| Service { task: apps as u32 + i as u32, heap, working, phase: i * p.period_s / p.count };
        (0..p.count).map(service).collect()
    }
}

struct WorkloadGenerator<'a> {
    p: &'a Parameters,
    chance: Chance,
    rows: Vec<Reference>,
}

impl WorkloadGenerator<'_> {
    fn touch(&mut self, task: u32, address: u64, kind: Kind, time: u64) {
        let count = self.p.app.lines;
        self.rows.push(Reference { task, time, count, ..Reference::new(address, LINE, kind) });
    }

    /// Whether touches write a heap page: by a hash, so that it never changes.
    fn is_written(&self, task: u32, page: u64) -> bool {
        unit(mix(self.p.seed ^ u64::from(task) << 48 ^ page)) >= self.p.app.read_mostly
    }

    fn touch_heap(&mut self, task: u32, page: u64, time: u64) {
        let writes = self.is_written(task, page) && self.chance.below(3) == 0;
        self.touch(task, HEAP + page * PAGE, if writes { Kind::Write } else { Kind::Read }, time);
    }

    fn build_up(&mut self, task: u32, heap: u64, time: u64) {
        (0..heap).for_each(|page| self.touch(task, HEAP + page * PAGE, Kind::Write, time));
    }

    fn visit(&mut self, app: &mut App, services: &[Service], first: bool, start: u64) {
        let time = start * SECOND;
        if first {
            self.build_up(app.task, app.heap, time);
        }
        (0..app.file_working).for_each(|page| self.touch(app.task, FILES + page * PAGE, Kind::Fetch, time));
        (0..app.working).for_each(|page| self.touch_heap(app.task, page, time));
        for second in start + 1..start + self.p.foreground_s {
            self.second(app, second * SECOND);
            services.iter().for_each(|service| self.wake(service, second));
        }
    }

    fn second(&mut self, app: &mut App, time: u64) {
        let p = self.p.app;
        for _ in 0..p.touches_per_s {
            let page = self.chance.mostly_of(app.working, app.heap, p.stray);
            self.touch_heap(app.task, page, time);
        }
        for _ in 0..p.file_touches_per_s {
            let page = self.chance.mostly_of(app.file_working, app.files, p.stray);
            self.touch(app.task, FILES + page * PAGE, Kind::Fetch, time);
        }
        for _ in 0..p.new_pages_per_s {
            let address = POOL + app.next_new % app.pool * PAGE;
            app.next_new += 1;
            self.touch(app.task, address, Kind::Write, time);
            self.touch(app.task, address, Kind::Read, time);
        }
    }

    fn wake(&mut self, service: &Service, second: u64) {
        if second % self.p.services.period_s == service.phase {
            (0..service.working).for_each(|page| self.touch_heap(service.task, page, second * SECOND));
        }
    }
}

/// The trace of one category, and its provenance.
pub fn generate(p: &Parameters, category: &str) -> Result<(Block, Provenance), ExperimentError> {
    let Some(sizes) = p.categories.get(category) else {
        let names: Vec<_> = p.categories.keys().map(String::as_str).collect();
        let reason = format!("there is no category `{category}`; there are {}", names.join(", "));
        return Err(ExperimentError::setting("category", reason));
    };
    let seed = category.bytes().fold(p.seed, |seed, byte| mix(seed ^ u64::from(byte)));
    let mut apps: Vec<App> = sizes.iter().enumerate().map(|(i, mb)| App::new(i, *mb, &p.app)).collect();
    let mut making = WorkloadGenerator { p, chance: Chance(seed), rows: Vec::new() };
    let services = Service::all(apps.len(), &p.services);
    services.iter().for_each(|service| making.build_up(service.task, service.heap, 0));
    let mut start = 0;
    for round in 0..p.rounds {
        for app in &mut apps {
            making.visit(app, &services, round == 0, start);
            start += p.foreground_s;
        }
    }
    Ok((making.rows.into_iter().collect(), provenance(p, category, sizes)))
}

fn provenance(p: &Parameters, category: &str, sizes: &[f64]) -> Provenance {
    let mapping = |name: &str, start, end, protection: &str| Mapping {
        name: name.into(),
        start,
        end,
        protection: protection.into(),
    };
    let app = sizes.iter().map(|mb| format!("app of {mb} MB"));
    let services = (0..p.services.count).map(|i| format!("{SERVICE} {i}"));
    let task = |(i, name)| Task { id: i as u32, name, space: i as u32 };
    Provenance {
        page_size: Some(PAGE),
        clock: Some("nanoseconds of the script".into()),
        mappings: vec![
            mapping("[heap]", HEAP, POOL, "rw-p"),
            mapping("[pool]", POOL, FILES, "rw-p"),
            mapping("/app", FILES, END, "r-xp"),
        ],
        tasks: app.chain(services).enumerate().map(task).collect(),
        notes: vec![format!("generated: {category}, seed {}; touches of pages, not of bytes", p.seed)],
        ..Provenance::new("coldframe workload", Fidelity::PageReferences)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn a_category_takes_a_quarter_of_an_hour_in_fifteen_turns() {
        let p = shipped();
        let (rows, provenance) = generate(&p, "news").unwrap();
        let apps = rows.task().iter().filter(|task| **task < 5).copied().collect::<Vec<_>>();
        let turns = apps.chunk_by(|a, b| a == b).count();
        let last = rows.time().iter().max().unwrap() / 1_000_000_000;
        assert_eq!((turns, last, provenance.tasks.len() as u64), (15, 899, 5 + p.services.count));
        assert!(rows.time().is_sorted());
        assert_eq!(rows, generate(&p, "news").unwrap().0, "the seed decides");
    }

    #[test]
    fn an_application_has_the_pages_that_the_file_gives_it() {
        let p = shipped();
        let (rows, _) = generate(&p, "browser").unwrap();
        let heap: BTreeSet<u64> =
            rows.iter().filter(|r| r.task == 0 && r.address < POOL).map(|r| r.address / PAGE).collect();
        assert_eq!(heap.len() as u64, pages(p.app.heap_mb + p.app.heap_per_mb * 84.53));
    }

    #[test]
    fn the_part_of_pages_that_touches_write_is_the_parameters() {
        let p = shipped();
        let making = WorkloadGenerator { p: &p, chance: Chance(0), rows: Vec::new() };
        let app = App::new(3, 50.0, &p.app);
        let written = (0..100_000).filter(|page| making.is_written(app.task, *page)).count() as f64 / 1e5;
        assert!((written - (1.0 - p.app.read_mostly)).abs() < 0.005, "{written}");
    }

    #[test]
    fn bad_parameters_name_file_and_field() {
        let good = SHIPPED.1;
        for (from, to, reason) in [
            ("working = 0.05", "working = 1.10", "line 27: `app.working` is 1.1"),
            ("heap_mb = 52", "heap_mb = -52", "`app.heap_mb` is -52"),
            ("heap_mb = 52", "porosity = 52", "unknown field `porosity`"),
            ("rounds = 3", "rounds = 0", "line 11: `rounds` is 0"),
            ("13.28,", "0.0,", "`categories.mix2` is 0"),
            ("seed = 2016", "seed = ", "line"),
        ] {
            assert!(good.contains(from), "{from}");
            let error = parse("my.toml", &good.replace(from, to)).unwrap_err().to_string();
            assert!(error.contains("my.toml") && error.contains(reason), "{from} -> {to}: {error}");
        }
        assert!(generate(&shipped(), "chess").unwrap_err().to_string().contains("news"));
    }
}
