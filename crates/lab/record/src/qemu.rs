//! Recording by QEMU's user mode with our plugin.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use coldframe_store::{Fidelity, Provenance, Task};

use crate::expand::Exact;
use crate::maps::Maps;
use crate::process::Process;
use crate::ring::{Chunk, Ring};
use crate::rows::Sink;
use crate::{wire, Level, Outcome, Progress, RecordError, Recording};
use coldframe_answer::run::image::{self, Image};
use coldframe_answer::run::lookup::{tool, Target};

/// Pause if there is nothing to do. The plugin may fill 16 MiB in that time, far more than it can.
const PAUSE: Duration = Duration::from_micros(200);
const PROGRESS: Duration = Duration::from_millis(100);

/// The emulator for this program's machine.
pub fn emulator(target: &Target, search: &OsStr) -> Result<PathBuf, RecordError> {
    let Some(name) = image::emulator(&target.image) else {
        return Err(RecordError::WrongMachine {
            path: target.binary.clone(),
            machine: image::describe(&target.image),
            remedy: "programs for x86-64, 32-bit ARM and AArch64 can be recorded".into(),
        });
    };
    tool(name, search).ok_or(RecordError::MissingTool { tool: name.into(), package: "qemu-user" })
}

pub fn record(order: &Recording, target: &Target, progress: &mut dyn FnMut(Progress)) -> Result<Outcome, RecordError> {
    let emulator = emulator(target, &order.search_path)?;
    let plugin = plugin(order)?;
    let ring = Ring::create().map_err(RecordError::io("create shared memory"))?;
    let sink = Sink::create(&order.out, order.level, &order.limits)?;
    let mut command = Command::new(&emulator);
    command.args(["-seed", "1"]);
    if let Some(sysroot) = &order.sysroot {
        command.arg("-L").arg(sysroot);
    }
    // The plugin relies on this order: it becomes QEMU again with the arguments before `-0`.
    command.arg("-plugin").arg(plugin_option(&plugin, &ring));
    let (name, rest) = target.arguments.split_first().map_or((None, &[][..]), |(name, rest)| (Some(name), rest));
    command.arg("-0").arg(name.unwrap_or(&OsString::new()));
    command.arg(if target.binary.as_os_str().as_bytes().starts_with(b"-") {
        Path::new(".").join(&target.binary)
    } else {
        target.binary.clone()
    });
    command.args(rest);
    let child = command.spawn().map_err(RecordError::io(format!("start {}", emulator.display())))?;
    let mut session = Session {
        process: Process::new(child, &order.limits, order.stop.clone()),
        ring,
        sink,
        exact: Exact::new(matches!(target.image, Image::Elf { machine: image::MACHINE_X86_64, .. })),
        maps: Maps::default(),
        emulator: emulator.canonicalize().unwrap_or(emulator),
        bits: if matches!(target.image, Image::Elf { bits: 32, .. }) { 32 } else { 64 },
        tasks: BTreeMap::new(),
        programs: BTreeMap::new(),
        native: BTreeMap::new(),
        not_recorded: Vec::new(),
        limit: None,
    };
    session.run(progress)?;
    session.finish(order, target)
}

fn plugin(order: &Recording) -> Result<PathBuf, RecordError> {
    let missing = |places: String| RecordError::MissingPlugin { places };
    match &order.plugin {
        Some(path) if path.is_file() => {
            path.canonicalize().map_err(RecordError::io(format!("read {}", path.display())))
        }
        Some(path) => Err(missing(path.display().to_string())),
        None => Err(missing("the places of an installation".into())),
    }
}

/// QEMU separates options by commas; a comma in the path is doubled.
fn plugin_option(plugin: &Path, ring: &Ring) -> OsString {
    let path = plugin.to_string_lossy().replace(',', ",,");
    format!("{path},shm={},recorder={}", ring.path(), std::process::id()).into()
}

struct Session {
    process: Process,
    ring: Ring,
    sink: Sink,
    exact: Exact,
    maps: Maps,
    emulator: PathBuf,
    bits: u8,
    /// By number: the address space.
    tasks: BTreeMap<u32, u32>,
    /// The program that each address space holds.
    programs: BTreeMap<u32, String>,
    /// Processes that were about to run a program natively: program and reason.
    native: BTreeMap<u32, (String, String)>,
    not_recorded: Vec<String>,
    limit: Option<&'static str>,
}

impl Session {
    fn run(&mut self, progress: &mut dyn FnMut(Progress)) -> Result<(), RecordError> {
        let read = || RecordError::io("read the shared memory");
        let mut chunk = Chunk::default();
        let mut last_progress = Instant::now();
        loop {
            // Ask this before looking for chunks: all chunks of an ended program are then there.
            let ended = self.process.ended().map_err(RecordError::io("wait for the program"))?.is_some();
            let mut idle = true;
            while self.limit.is_none() && self.ring.take(&mut chunk).map_err(read())? {
                idle = false;
                self.chunk(&chunk).map_err(read())?;
                self.limit = self.sink.limit().or(self.process.limit());
                if last_progress.elapsed() > PROGRESS {
                    break;
                }
            }
            self.limit = self.limit.or(self.process.limit()).or(self.sink.limit());
            if self.limit.is_some() && !ended {
                // Before the program is asked to end: it might be waiting for room.
                self.ring.stop().map_err(read())?;
                self.snapshot_maps();
                self.process.end();
            }
            if last_progress.elapsed() > PROGRESS {
                last_progress = Instant::now();
                let (references, skipped) = (self.sink.written, self.sink.skipped);
                progress(Progress { references, skipped, seconds: self.process.seconds() });
            }
            if ended && (idle || self.limit.is_some()) {
                return Ok(());
            }
            if idle {
                std::thread::sleep(PAUSE);
            }
        }
    }

    fn chunk(&mut self, chunk: &Chunk) -> std::io::Result<()> {
        match chunk.content {
            wire::CONTENT_EVENT => self.event(chunk),
            wire::CONTENT_REFERENCES => {
                self.note_task(chunk);
                self.exact.chunk(&self.ring, chunk, &mut self.sink)?;
            }
            _ => {}
        }
        Ok(())
    }

    fn note_task(&mut self, chunk: &Chunk) {
        self.tasks.entry(chunk.task).or_insert(chunk.space);
        self.process.follow(chunk.pid);
        // The process continues here, so the execve announced before has failed.
        self.native.remove(&chunk.pid);
    }

    fn event(&mut self, chunk: &Chunk) {
        let text = chunk.text();
        let (word, rest) = text.split_once('\n').unwrap_or((&text, ""));
        match word {
            wire::EVENT_START => {
                self.process.follow(chunk.pid);
                self.programs.insert(chunk.space, rest.into());
            }
            wire::EVENT_NATIVE => {
                let (program, why) = rest.rsplit_once('\n').unwrap_or((rest, ""));
                self.native.insert(chunk.pid, (program.into(), why.into()));
            }
            wire::EVENT_FAILED => {
                self.native.remove(&chunk.pid);
            }
            wire::EVENT_MAPS => {
                let (base, maps) = rest.split_once('\n').unwrap_or(("0", rest));
                let base = u64::from_str_radix(base, 16).unwrap_or(0);
                let program = self.programs.get(&chunk.space).map_or("", String::as_str);
                self.maps.add(maps, base, self.bits, &self.emulator, program.as_ref());
            }
            _ => {}
        }
    }

    /// The table of a program that will not end by itself. A 64-bit guest's addresses begin at 0.
    fn snapshot_maps(&mut self) {
        if self.bits == 64 {
            let text = coldframe_proc::Process::of(self.process.id()).maps();
            let program = self.programs.get(&0).map_or("", String::as_str);
            self.maps.add(&text, 0, self.bits, &self.emulator, program.as_ref());
        }
    }

    fn finish(mut self, order: &Recording, target: &Target) -> Result<Outcome, RecordError> {
        let read = || RecordError::io("read the shared memory");
        if !self.ring.started().map_err(read())? && self.limit.is_none() {
            return Err(RecordError::NotStarted {
                tool: self.emulator.display().to_string(),
                version: version(&self.emulator),
                remedy: "the plugin needs a QEMU from 4.2 to 8.x with plugins, as Debian 12's qemu-user is",
            });
        }
        self.ring.stop().map_err(read())?;
        if self.limit.is_none() {
            self.salvage().map_err(read())?;
        }
        self.exact.finish(&mut self.sink);
        self.sink.turn();
        self.limit = self.limit.or(self.sink.limit());
        for (pid, (program, why)) in std::mem::take(&mut self.native) {
            self.not_recorded.push(format!("child {pid} ran {program} natively, not recorded: {why}"));
        }
        if self.ring.lost().map_err(read())? {
            self.not_recorded
                .push("more code or threads than the recorder has room for; some references are missing".into());
        }
        let status = self.process.ended().map_err(RecordError::io("wait for the program"))?.unwrap_or_default();
        let instructions = self.exact.instructions;
        let provenance = self.provenance(order, target, instructions);
        let summary = self.sink.finish(provenance)?;
        let seconds = self.process.seconds();
        Ok(Outcome {
            references: summary.references,
            rows: summary.rows,
            instructions,
            bytes: summary.bytes_written,
            seconds,
            references_per_second: summary.references as f64 / seconds,
            status,
            limit: self.limit,
            tasks: self.tasks.len(),
            not_recorded: self.not_recorded,
        })
    }

    /// Words that threads had not handed over when they were killed or executed another program.
    fn salvage(&mut self) -> std::io::Result<()> {
        for chunk in self.ring.salvage()? {
            // The native program did run: earlier words are no sign of later life.
            let native = self.native.get(&chunk.pid).cloned();
            if chunk.content != wire::CONTENT_EVENT {
                self.chunk(&chunk)?;
            }
            if let Some(native) = native {
                self.native.insert(chunk.pid, native);
            }
        }
        Ok(())
    }

    /// Names of tasks from their program, with threads of one address space counted: `povray`, `povray/2`. Process
    /// numbers would differ from run to run.
    fn task_names(&self) -> Vec<Task> {
        let mut threads: BTreeMap<u32, u32> = BTreeMap::new();
        let task = |(id, space): (&u32, &u32)| {
            let program = self.programs.get(space).map_or("", |p| p.rsplit('/').next().unwrap_or(p));
            let thread = threads.entry(*space).or_default();
            *thread += 1;
            let name = if *thread == 1 { program.to_owned() } else { format!("{program}/{thread}") };
            Task { id: *id, name, space: *space }
        };
        self.tasks.iter().map(task).collect()
    }

    fn provenance(&mut self, order: &Recording, target: &Target, instructions: u64) -> Provenance {
        let (fidelity, page_size) = match order.level {
            Level::Exact => (Fidelity::ExactReferences, None),
            Level::Pages(bytes) => (Fidelity::PageReferences, Some(bytes)),
        };
        let mut provenance = Provenance::new("qemu-user plugin", fidelity);
        provenance.command = Some(command_line(target));
        provenance.page_size = page_size;
        provenance.mappings = std::mem::take(&mut self.maps).finish();
        provenance.tasks = self.task_names();
        provenance.notes = notes(order, instructions, self.limit, &version(&self.emulator));
        provenance.notes.extend(self.not_recorded.iter().cloned());
        if matches!(target.image, Image::Elf { set_id: true, .. }) {
            provenance.notes.push("the program's set-user-id or set-group-id bit had no effect".into());
        }
        provenance
    }
}

/// The remarks that every recording carries.
fn notes(order: &Recording, instructions: u64, limit: Option<&str>, version: &str) -> Vec<String> {
    let mut notes = vec![
        format!("recorded by {version}; {instructions} instructions executed while recording"),
        "not seen: accesses of the kernel for system calls. The guest's processor is QEMU's, so libraries may choose \
         other \
         routines than natively (memcpy, for instance)"
            .into(),
        "an instruction that loads and stores one place is one write; x86 vector accesses that QEMU splits in 8 bytes \
         are joined"
            .into(),
        "threads and processes follow each other in stretches as they were handed over; within a task the order is \
         exact"
            .into(),
    ];
    if let Level::Pages(bytes) = order.level {
        notes.push(format!(
            "reduced to {bytes}-byte pages: fetches and data each collapsed while the page does not change, a write \
             after reads starts a new row, count tells the references. Either stream alone is exact for FIFO, LRU, \
             Clock, PA-Clock, FIFO-SC, ARC and OPT on pages of this size; together, rows stand where their runs begin \
             and later references of a run are not placed"
        ));
    }
    if order.limits.skip_refs > 0 {
        notes.push(format!("the first {} references were skipped", order.limits.skip_refs));
    }
    if let Some(limit) = limit {
        notes.push(format!("recording ended before the program: {limit}"));
    }
    notes
}

fn command_line(target: &Target) -> String {
    let words = target.arguments.iter().map(|a| a.to_string_lossy());
    let quoted = words.map(|word| {
        match word.is_empty() || word.contains(|c: char| !(c.is_alphanumeric() || "-_./=:,+@%".contains(c))) {
            true => format!("'{}'", word.replace('\'', "'\\''")),
            false => word.into_owned(),
        }
    });
    quoted.collect::<Vec<_>>().join(" ")
}

/// The tool's own version text, for messages and notes.
fn version(tool: &Path) -> String {
    let output = Command::new(tool).arg("--version").output();
    let text = output.map(|o| String::from_utf8_lossy(&o.stdout).into_owned()).unwrap_or_default();
    text.lines().next().unwrap_or("unknown version").to_owned()
}
