//! The cost of a point in time, energy and life, each with its range: pure functions of its counts and the device's
//! sheet.
//!
//! ```text
//! extra     = time(RAM) - time(RAM for all pages), the same configuration otherwise
//! slowdown  = extra / (the program's own time + its first touches)  to  extra / (the program's own time)
//! energy    = loads of pages ever written before  to  all loads, and all writes and erases
//! life      = (1 - utilisation) of the even wear of the area  to  even wear without a copy
//! ```
//!
//! A trace does not say whether a page's first touch loads it from a file or gets a page of zeros; hence the first
//! two ranges. A collector that takes the block with the fewest valid pages never copies more than the utilisation of
//! its slots; hence the third. If a swap area is simulated, its copies and its most worn block are counted instead.

use coldframe_core::{Bytes, Ps};
use coldframe_sheet::flash::{self, Moved};
use coldframe_sheet::Sheet;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::point::{Point, Swapped};

/// The lower and the upper end of a cost.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Range {
    /// The smaller value.
    pub low: f64,
    /// The larger value.
    pub high: f64,
}

/// The price of a point; an error gives the reason why there is no price.
#[derive(Clone, Debug, PartialEq)]
pub struct Cost {
    /// Percent of the program's own time.
    pub slowdown: Result<Range, String>,
    /// 99th percentile of a true fault.
    pub p99: Result<Ps, String>,
    /// Joules of paging for the run.
    pub energy: Result<Range, String>,
    /// Years; `None`: no page is written.
    pub life: Result<Option<Range>, String>,
}

impl Cost {
    /// Prices `point` relative to `whole`, the same configuration with RAM for all pages.
    pub fn new(point: &Point, whole: &Point, sheet: &Sheet, area: Option<Bytes>) -> Cost {
        let priced = |what: &str| match point.writes_unpriced {
            true => Err(format!("{} gives no program time, so {what} leaves out writes; set time.program", sheet.name)),
            false => Ok(()),
        };
        Cost {
            slowdown: priced("the time").and_then(|()| slowdown(point, whole)),
            p99: priced("the latency").map(|()| point.p99),
            energy: energy(point, sheet),
            life: priced("the time").and_then(|()| life(point, sheet, area)),
        }
    }
}

fn slowdown(point: &Point, whole: &Point) -> Result<Range, String> {
    let own = point.own.ok_or("nothing prices the program's own time; give --program-time")?;
    let extra = point.paging.0 as f64 - whole.paging.0 as f64;
    let percent = |of: Ps| 100.0 * extra / of.0.max(1) as f64;
    let (a, b) = (percent(own + whole.paging), percent(own));
    Ok(Range { low: a.min(b), high: a.max(b) })
}

/// Bytes written to the device, including a collection's copies.
fn written(point: &Point) -> Bytes {
    let pages = point.swap.map_or(point.writes, |s| s.programs + s.copies);
    Bytes(pages * point.page)
}

fn energy(point: &Point, sheet: &Sheet) -> Result<Range, String> {
    let joules = |pj: u64| pj as f64 / 1e12;
    let of = |loads: u64| {
        let moved = Moved { read: Bytes(loads * point.page), written: written(point) };
        flash::energy(sheet, moved).map(|terms| flash::total(&terms).0).map_err(|e| e.to_string())
    };
    let never_written = of(point.loads)? - of(point.loads - point.zero_loads)?;
    let high = match point.energy {
        // DDB's equation has no price for a write; the sheet's price is added.
        Some(ledger) => ledger + of(0)?,
        None => of(point.loads)?,
    };
    Ok(Range { low: joules(high.saturating_sub(never_written)), high: joules(high) })
}

fn life(point: &Point, sheet: &Sheet, area: Option<Bytes>) -> Result<Option<Range>, String> {
    let own = point.own.ok_or("nothing prices the program's own time; give --program-time")?;
    let text = |e: coldframe_sheet::SheetError| e.to_string();
    let cycles = sheet.cycles().map_err(text)?;
    let time = own + point.paging;
    let life = |erases: f64| flash::life_years(cycles, erases, time.0 as f64 / 1e3);
    let even = |area: Bytes| life(flash::erases_even(written(point), area));
    if let Some(swap) = point.swap {
        let worst = life(swap.erases_max.into());
        return simulated_life(point, swap, sheet, worst, &even);
    }
    let area = area.map_or_else(|| sheet.capacity().map_err(|e| format!("{e}; or give --swap-size")), Ok)?;
    let live = point.pages as f64 * point.page as f64 / area.0 as f64;
    if live >= 1.0 {
        return Err("the swap area is smaller than what the trace touches; give a larger --swap-size".into());
    }
    Ok(even(area).map(|years| Range { low: years * (1.0 - live), high: years }))
}

/// At best, even wear of the simulated area. At worst, the wear of the most worn block if one was erased (`worst`
/// years); otherwise one slot in use in each block.
fn simulated_life(
    point: &Point,
    swap: Swapped,
    sheet: &Sheet,
    worst: Option<f64>,
    even: &dyn Fn(Bytes) -> Option<f64>,
) -> Result<Option<Range>, String> {
    if swap.areas_full > 0 {
        return Err("the swap area was full and pages went elsewhere; give a larger --swap-size".into());
    }
    let block = sheet.block().map_err(|e| e.to_string())?;
    let area = Bytes(block.0 * u64::from(swap.blocks));
    let live = (point.pages as f64 * point.page as f64 / area.0 as f64).min(1.0);
    Ok(even(area).map(|high| {
        let low = worst.unwrap_or(high * (1.0 - live));
        Range { low: low.min(high), high: high.max(low) }
    }))
}

#[cfg(test)]
mod tests {
    use coldframe_sheet::sheet;

    use super::*;

    fn point(frames: usize, paging: u64, writes: u64) -> Point {
        Point {
            config: Default::default(),
            frames,
            page: 4096,
            pages: 64,
            references: 1000,
            true_faults: 100,
            false_faults: 0,
            writes,
            loads: 100,
            zero_loads: 64,
            own: Some(Ps(1_000_000)),
            paging: Ps(paging),
            p99: Ps(7),
            longest: Ps(9),
            writes_unpriced: false,
            energy: None,
            swap: None,
            quiet: 0,
        }
    }

    #[test]
    fn slowdown_is_relative_to_the_run_with_all_ram_and_the_first_touches_make_its_range() {
        let sheet = sheet::find("LOBI-NAND").unwrap();
        let cost = Cost::new(&point(8, 350_000, 0), &point(64, 250_000, 0), &sheet, None);
        // 100,000 ps more than with all RAM: of 1,250,000 ps, and of 1,000,000 ps.
        assert_eq!(cost.slowdown, Ok(Range { low: 8.0, high: 10.0 }));
        assert_eq!(cost.p99, Ok(Ps(7)));
    }

    #[test]
    fn a_program_time_that_the_sheet_lacks_is_a_reason_and_no_price() {
        let sheet = sheet::find("KFG1G16Q2M").unwrap();
        let unpriced = Point { writes_unpriced: true, ..point(8, 350_000, 3) };
        let cost = Cost::new(&unpriced, &point(64, 250_000, 0), &sheet, None);
        for reason in [cost.slowdown.unwrap_err(), cost.p99.unwrap_err(), cost.life.unwrap_err()] {
            assert!(reason.contains("time.program"), "{reason}");
        }
        assert!(cost.energy.unwrap_err().contains("energy."));
    }

    #[test]
    fn first_touches_without_a_file_cost_no_energy_at_the_low_end() {
        let sheet = sheet::find("KFG5616").unwrap();
        let cost = Cost::new(&point(8, 350_000, 0), &point(64, 250_000, 0), &sheet, None).energy.unwrap();
        // A page is four of the flash: 400 or 144 times 1295.48 + 1056.21 nJ.
        let each = (1295.48 + 1056.21) * 1e-9;
        assert!((cost.high - 400.0 * each).abs() < 1e-12 && (cost.low - 144.0 * each).abs() < 1e-12, "{cost:?}");
    }

    #[test]
    fn life_by_hand_and_what_it_needs() {
        let sheet = sheet::find("LOBI-NAND").unwrap();
        let of = |area| Cost::new(&point(8, 0, 10), &point(64, 0, 0), &sheet, area).life;
        assert!(of(None).unwrap_err().contains("--swap-size"));
        assert!(of(Some(Bytes(64 * 4096))).unwrap_err().contains("larger"));
        // 10 of 256 pages in a microsecond, 100,000 times: 2.56 s. A quarter of the area is in use.
        let years = 2.56 / (365.25 * 24.0 * 3600.0);
        let life = of(Some(Bytes(256 * 4096))).unwrap().unwrap();
        assert!((life.high / years - 1.0).abs() < 1e-9 && (life.low / years - 0.75).abs() < 1e-9, "{life:?}");
        let unwritten = Cost::new(&point(8, 0, 0), &point(64, 0, 0), &sheet, Some(Bytes(256 * 4096)));
        assert_eq!(unwritten.life, Ok(None));
    }
}
