//! The front end of a configuration, and which configurations can share one pass through it.

use coldframe_core::{Bytes, Ps};
use coldframe_drivers::front_end::instruction::Reading;
use coldframe_drivers::front_end::{Sample, Stream};
use coldframe_drivers::run::IdlePrices;
use coldframe_sheet::quantity::{show_bytes, show_time};
use coldframe_store::Provenance;

use super::{bad, names, refuse};
use crate::error::ExperimentError;
use crate::settings::{self, Settings};
use crate::systems::front_end::{self as front_ends, FrontEnd, FrontKey, Paged};
use crate::systems::Defaults;

/// The front end of these settings on pages of this size.
pub(super) fn front_key(
    settings: &Settings,
    defaults: Option<Defaults>,
    trace: &Provenance,
    page: Bytes,
) -> Result<FrontKey, ExperimentError> {
    let page_shift = page_shift(page, trace)?;
    let given = &settings.front_end;
    let front_end = names::front_end(given.name.as_deref().or(defaults.map(|d| d.front_end)).unwrap_or("none"))?;
    let all_it_sees = front_end.map_or(Stream::Both, |front_end| front_end.sees);
    let stream = match settings.stream.as_deref().or(defaults.map(|d| d.stream)) {
        Some(text) => names::stream(text)?,
        None => all_it_sees,
    };
    let reading = reading(given.reading.as_deref(), front_end)?;
    if let Some(front_end) = front_end {
        if front_end.sees == Stream::Instructions && stream != Stream::Instructions {
            let name = front_end.name;
            return bad("stream", format!("the front end {name} sees instruction fetches only; give I"));
        }
        if page < front_end.line {
            let (name, line) = (front_end.name, front_end.line.0);
            return bad("page", format!("is smaller than a cache line of the front end {name} ({line} bytes)"));
        }
    }
    if settings.limit.accesses == Some(0) {
        return bad("limit.accesses", "is 0; give at least 1 or leave it out");
    }
    Ok(FrontKey {
        page_shift,
        stream,
        front_end,
        reading,
        paged: paged(given.paged.as_deref(), front_end, trace)?,
        skip: settings.limit.skip.unwrap_or(0),
        accesses: settings.limit.accesses,
        sample: sample(settings, front_end, trace)?,
        idle: idle(settings, front_end)?,
    })
}

/// The sample of the pages. What needs the others is refused.
fn sample(
    settings: &Settings,
    front_end: Option<&FrontEnd>,
    trace: &Provenance,
) -> Result<Option<Sample>, ExperimentError> {
    const FIELD: &str = "limit.sample";
    let Some(text) = &settings.limit.sample else { return Ok(None) };
    let share = match text.strip_suffix('%') {
        Some(percent) => percent.parse::<f64>().map(|percent| percent / 100.0),
        None => text.parse(),
    };
    let share = share.ok().filter(|share| *share > 0.0 && *share <= 1.0);
    let Some(share) = share else { return bad(FIELD, format!("`{text}` is no share of the pages; give 1% or 0.01")) };
    let neighbours = settings.machine.read_ahead.is_some_and(|pages| pages > 0);
    refuse(&[
        (FIELD, front_end.is_some(), "leaves out pages, and a front end needs every reference; leave one of them out"),
        (FIELD, neighbours, "leaves out neighbours, which machine.read_ahead reads; leave one of them out"),
        (FIELD, settings.swap != settings::Swap::default(), "estimates misses, not a swap area; leave one of them out"),
        (FIELD, trace.window.is_some(), "is for a trace with every reference, not for one through a window"),
    ])?;
    Ok(Some(Sample::new(share)))
}

fn idle(settings: &Settings, front_end: Option<&FrontEnd>) -> Result<IdlePrices, ExperimentError> {
    let given = &settings.front_end;
    let or = |field, text: &Option<String>, own: Option<Ps>| {
        settings::time(field, text).map(|t| t.or(own).unwrap_or_default())
    };
    Ok(IdlePrices {
        instruction: or("front_end.instruction", &given.instruction, front_end.map(|f| f.instruction))?,
        icache_miss: front_end.map(|f| f.icache_miss).unwrap_or_default(),
        reference: or("front_end.reference", &given.reference, None)?,
        ..IdlePrices::default()
    })
}

fn page_shift(page: Bytes, trace: &Provenance) -> Result<u32, ExperimentError> {
    match page.0 {
        0 => bad("page", "is 0; give a power of two from 1 byte to 1 GiB"),
        n if !n.is_power_of_two() || !(1..=1 << 30).contains(&n) => {
            bad("page", format!("{n} bytes cannot be; give a power of two from 1 byte to 1 GiB"))
        }
        n if trace.page_size.is_some_and(|reduced| n < reduced) => {
            let reduced = show_bytes(Bytes(trace.page_size.unwrap_or_default()));
            let page = show_bytes(page);
            bad(
                "page",
                format!(
                    "{page} is smaller than the {reduced} pages that the trace was reduced to; give {reduced} or more"
                ),
            )
        }
        n => Ok(n.trailing_zeros()),
    }
}

fn reading(text: Option<&str>, front_end: Option<&FrontEnd>) -> Result<Option<Reading>, ExperimentError> {
    const FIELD: &str = "front_end.reading";
    let all = front_end.map_or(&[][..], |front_end| front_end.readings);
    let Some(text) = text else { return Ok(all.first().copied()) };
    if all.is_empty() {
        return bad(FIELD, format!("needs the front end {}", front_ends::names(|f| !f.readings.is_empty())));
    }
    match all.iter().find(|reading| reading.name() == text) {
        Some(reading) => Ok(Some(*reading)),
        None => bad(FIELD, format!("`{text}` is not known; give A, C or D")),
    }
}

type Ranges = Vec<(u64, u64)>;

fn paged(
    text: Option<&str>,
    front_end: Option<&FrontEnd>,
    trace: &Provenance,
) -> Result<Option<Ranges>, ExperimentError> {
    const FIELD: &str = "front_end.paged";
    match (text, front_end.map(|front_end| front_end.paged)) {
        (Some(_), None) => bad(FIELD, format!("needs the front end {}", front_ends::names(|_| true))),
        (Some("all"), _) | (None, None) => Ok(None),
        (Some(text), _) => ranges(text).map(Some),
        // The program's own code and that of its libraries, if the recorder has noted the mappings.
        (None, Some(Paged::Code)) => {
            Ok(Some(mapped(trace, |rights| rights.contains('x'))).filter(|all| !all.is_empty()))
        }
        // `.text` and `.rodata`.
        (None, Some(Paged::ReadOnly)) => match mapped(trace, |rights| !rights.contains('w')) {
            none if none.is_empty() => bad(
                FIELD,
                "is not given and the trace has no mappings that say what is read-only; give 0xSTART-0xEND, or all",
            ),
            ranges => Ok(Some(ranges)),
        },
    }
}

/// The ranges mapped from files with such rights.
fn mapped(trace: &Provenance, with: impl Fn(&str) -> bool) -> Ranges {
    let files = trace.mappings.iter().filter(|m| m.name.starts_with('/') && with(&m.protection));
    files.map(|m| (m.start, m.end)).collect()
}

fn ranges(text: &str) -> Result<Vec<(u64, u64)>, ExperimentError> {
    let number = |t: &str| t.trim().strip_prefix("0x").and_then(|h| u64::from_str_radix(h, 16).ok());
    let range = |part: &str| {
        let (start, end) = part.split_once('-').map(|(a, b)| (number(a), number(b)))?;
        start.zip(end).filter(|(start, end)| start < end)
    };
    text.split(',')
        .map(|part| {
            range(part).ok_or_else(|| {
                let reason =
                    format!("`{part}` is no address range; give 0xSTART-0xEND with START below END, commas between");
                ExperimentError::setting("front_end.paged", reason)
            })
        })
        .collect()
}

pub(super) fn shown(front: &FrontKey) -> settings::FrontEnd {
    let ranges = |all: &Ranges| all.iter().map(|(a, b)| format!("{a:#x}-{b:#x}")).collect::<Vec<_>>().join(",");
    let time = |time: Ps| (time != Ps::ZERO).then(|| show_time(time));
    settings::FrontEnd {
        name: Some(front.front_end.map_or("none", |front_end| front_end.name).into()),
        reading: front.reading.map(|reading| reading.name().into()),
        paged: front.paged.as_ref().map(ranges).or_else(|| front.has_data_cache().then(|| "all".into())),
        instruction: time(front.idle.instruction),
        reference: time(front.idle.reference),
    }
}
