//! Recording by valgrind's lackey: slow, and only for programs of the host's machine, but it needs no plugin.
//!
//! Lackey writes a line for each reference to its log, which is a pipe here; `coldframe-store` reads the lines as
//! they come.

use std::os::fd::AsRawFd;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::sync_channel;
use std::sync::Arc;
use std::time::Duration;

use coldframe_formats::parse_spec;
use coldframe_store::{Block, Fidelity, Kind, Provenance, TraceError};

use crate::image;
use crate::maps::Maps;
use crate::process::Process;
use crate::program::{self, Target};
use crate::qemu::command_line;
use crate::reduce::Runs;
use crate::rows::Sink;
use crate::{Level, Outcome, Progress, RecordError, Recording, Via};

/// Whether this is a program of the host's machine.
pub fn can(target: &Target) -> bool {
    image::emulator(&target.image).and_then(|name| name.strip_prefix("qemu-")) == Some(std::env::consts::ARCH)
}

pub fn record(order: &Recording, target: &Target, progress: &mut dyn FnMut(Progress)) -> Result<Outcome, RecordError> {
    let missing = || RecordError::MissingTool { tool: "valgrind".into(), package: "valgrind" };
    if !can(target) {
        return Err(RecordError::WrongMachine {
            path: target.binary.clone(),
            machine: image::describe(&target.image),
            remedy: format!("valgrind runs {} programs only here; QEMU also ARM's", std::env::consts::ARCH),
        });
    }
    let valgrind = program::tool("valgrind", &order.search_path).ok_or_else(missing)?;
    let mut sink = Sink::create(&order.out, matches!(order.level, Level::Pages(_)), &order.limits)?;
    let (log, log_end) = std::io::pipe().map_err(RecordError::io("create a pipe"))?;

    // Valgrind's layout follows the host's, and setarch (essential on Debian) makes that the same every time.
    let mut command = match program::tool("setarch", &order.search_path) {
        Some(setarch) => {
            let mut command = Command::new(setarch);
            command.arg("-R").arg(valgrind);
            command
        }
        None => Command::new(valgrind),
    };
    command.args(["--tool=lackey", "--trace-mem=yes", "--trace-children=yes"]);
    // Since 3.17 valgrind translates `a && b` without the jump between them. Lackey then shows the instructions of
    // `b` even if the program jumped over them: 0.15 % too many for bzip2. This option keeps it from looking across
    // jumps.
    command.arg("--vex-guest-chase=no");
    command.arg(format!("--log-file=/proc/{}/fd/{}", std::process::id(), log_end.as_raw_fd()));
    command.args(&order.tool_args).arg("--").arg(&target.binary).args(target.arguments.iter().skip(1));
    let child = command.spawn().map_err(RecordError::io("start valgrind"))?;
    let mut process = Process::new(child, &order.limits, order.stop.clone());

    // Reading waits for the program, so it has its own thread. The thread ends with the last writer, or when told to.
    let (blocks, received) = sync_channel::<Result<Block, TraceError>>(4);
    let path = format!("lackey:/proc/self/fd/{}", log.as_raw_fd());
    let over = Arc::new(AtomicBool::new(false));
    let told = over.clone();
    let reader = std::thread::spawn(move || {
        let mut reader = match parse_spec(&path).and_then(|spec| coldframe_formats::open(&spec)) {
            Ok(reader) => reader,
            Err(error) => return drop(blocks.send(Err(error))),
        };
        drop(log);
        while !told.load(Ordering::Relaxed) {
            let mut block = Block::new();
            let read = reader.read(&mut block);
            let last = !matches!(read, Ok(1..));
            if matches!(read, Ok(0)) || blocks.send(read.map(|_| block)).is_err() || last {
                return;
            }
        }
    });

    let mut log_end = Some(log_end);
    let mut runs = match order.level {
        Level::Pages(bytes) => Some(Runs::new(bytes)),
        Level::Exact => None,
    };
    let (mut instructions, mut limit) = (0, None);
    let mut maps = Maps::default();
    loop {
        limit = limit.or(process.limit()).or(sink.limit());
        if process.ended().map_err(RecordError::io("wait for the program"))?.is_some() {
            // Children may still write. Without our end, the last of them ends the log.
            log_end = None;
            if limit.is_some() {
                break;
            }
        } else if limit.is_some() {
            process.end();
        }
        note_maps(&mut maps, process.id());
        // Often at first: the table of a short program must be read while it exists.
        let pause = if process.seconds() < 2.0 { 5 } else { 100 };
        match received.recv_timeout(Duration::from_millis(pause)) {
            Ok(Ok(block)) if limit.is_none() => instructions += take(&block, runs.as_mut(), &mut sink),
            Ok(Ok(_)) => {}
            // A program that was killed may leave half a line.
            Ok(Err(error))
                if limit.is_none() && process.ended().is_ok_and(|ended| ended.is_none_or(|s| s.code().is_some())) =>
            {
                return Err(error.into());
            }
            Ok(Err(_)) | Err(std::sync::mpsc::RecvTimeoutError::Disconnected) if log_end.is_none() => break,
            Ok(Err(_)) | Err(_) => {}
        }
        let (references, skipped) = (sink.kept, sink.skipped);
        progress(Progress { references, skipped, bytes: sink.bytes(), seconds: process.seconds() });
    }
    over.store(true, Ordering::Relaxed);
    drop(received);
    drop(log_end);
    if limit.is_none() {
        // The thread has ended or is about to: the log is at its end.
        let _ = reader.join();
    }
    if let Some(runs) = &mut runs {
        put_runs(runs, &mut sink);
    }
    sink.turn();
    limit = limit.or(sink.limit());
    let status = process.ended().map_err(RecordError::io("wait for the program"))?.unwrap_or_default();
    let summary = sink.finish(provenance(order, target, instructions, limit, maps))?;
    let seconds = process.seconds();
    Ok(Outcome {
        references: summary.references,
        rows: summary.rows,
        instructions,
        bytes: summary.bytes_written,
        seconds,
        references_per_second: summary.references as f64 / seconds,
        status,
        via: Via::Valgrind,
        limit,
        tasks: 1,
        not_recorded: Vec::new(),
        native_seconds: None,
    })
}

/// Adds the mappings of the program, once valgrind itself runs there.
fn note_maps(maps: &mut Maps, pid: u32) {
    let itself = std::fs::read_link(format!("/proc/{pid}/exe")).unwrap_or_default();
    if itself.to_string_lossy().contains("/valgrind/") {
        maps.add_files(&std::fs::read_to_string(format!("/proc/{pid}/maps")).unwrap_or_default());
    }
}

/// Adds a block's rows. Returns the number of instructions among them.
fn take(block: &Block, runs: Option<&mut Runs>, sink: &mut Sink) -> u64 {
    let rows = block.address().iter().zip(block.size()).zip(block.kind());
    let instructions = block.kind().iter().filter(|kind| **kind == Kind::Fetch as u32).count() as u64;
    match runs {
        None => {
            for ((address, size), kind) in rows {
                sink.rows.address.push(*address);
                sink.rows.size.push(*size);
                sink.rows.kind.push(*kind);
            }
            sink.turn_if_full();
        }
        Some(runs) => {
            for ((address, size), kind) in rows {
                runs.push(*address, *size, Kind::from_number(*kind).unwrap_or(Kind::Read));
            }
            // A loop in one page is one run, however long it goes on.
            if runs.len() >= crate::rows::ROWS || runs.references() >= sink.wanted() {
                put_runs(runs, sink);
            }
        }
    }
    instructions
}

fn put_runs(runs: &mut Runs, sink: &mut Sink) {
    for row in runs.drain() {
        sink.rows.push(row.address, row.size, row.kind);
        sink.rows.count.push(row.count);
    }
    sink.turn();
}

fn provenance(order: &Recording, target: &Target, instructions: u64, limit: Option<&str>, maps: Maps) -> Provenance {
    let (fidelity, page_size) = match order.level {
        Level::Exact => (Fidelity::ExactReferences, None),
        Level::Pages(bytes) => (Fidelity::PageReferences, Some(bytes)),
    };
    let mut provenance = Provenance::new("valgrind lackey", fidelity);
    provenance.command = Some(command_line(target));
    provenance.page_size = page_size;
    provenance.mappings = maps.finish();
    provenance.notes = vec![
        format!("{instructions} instructions executed while recording"),
        "not seen: accesses of the kernel for system calls; lackey names neither threads nor processes; the mapping \
         table lists files only"
            .into(),
    ];
    if order.limits.skip_refs > 0 {
        provenance.notes.push(format!("the first {} references were skipped", order.limits.skip_refs));
    }
    if let Some(limit) = limit {
        provenance.notes.push(format!("recording ended before the program: {limit}"));
    }
    provenance
}
