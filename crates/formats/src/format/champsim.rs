//! ChampSim's instruction traces: records without a header, native little-endian.
//!
//! ```text
//!  0 u64 ip   8 u8 is_branch, taken   10 u8 registers   16 u64 destination memory[2]   32 u64 source memory[4]     64 bytes
//!  0 u64 ip   8 u8 is_branch, taken   10 u8 registers   24 u64 destination memory[4]   56 u64 source memory[4]     96 bytes (Cloudsuite)
//! ```
//! An instruction is a fetch, then its reads, then its writes. Address 0 is an unused slot. The format has no sizes,
//! so every access is one byte.

use super::options::Options;
use super::records::{Binary, Decode, Records};
use super::tasks::Tasks;
use super::{le, Format, Input, RowReader};
use coldframe_store::block::Columns;
use coldframe_store::error::TraceError;
use coldframe_store::fidelity::Fidelity;
use coldframe_store::reference::{Kind, Reference};

pub(super) const FORMAT: Format = Format {
    name: "champsim",
    summary: "ChampSim instruction trace, 64-byte records",
    example: "champsim:600.perlbench_s-210B.champsimtrace.xz",
    fidelity: Fidelity::ExactReferences,
    skips: "nothing",
    takes: &[],
    guess: None,
    open: |input, _| open(input, &PLAIN),
};
pub(super) const CLOUDSUITE: Format = Format {
    name: "champsim-cloudsuite",
    summary: "ChampSim trace of the Cloudsuite form, 96-byte records",
    example: "champsim-cloudsuite:cassandra_phase0.trace.xz",
    open: |input: Input, _: &Options| open(input, &CLOUD),
    ..FORMAT
};

/// Where a record keeps its addresses.
struct Layout {
    length: usize,
    destination: usize,
    destinations: usize,
    source: usize,
}

const PLAIN: Layout = Layout { length: 64, destination: 16, destinations: 2, source: 32 };
const CLOUD: Layout = Layout { length: 96, destination: 24, destinations: 4, source: 56 };
const SOURCES: usize = 4;

struct Champsim(&'static Layout);

fn open(input: Input, layout: &'static Layout) -> Result<Box<dyn RowReader>, TraceError> {
    Ok(Binary::boxed(Records::new(input.stream()?), Champsim(layout)))
}

impl Decode for Champsim {
    fn next(&mut self, records: &mut Records, out: &mut Vec<Reference>, _: &mut Tasks) -> Result<bool, TraceError> {
        let Layout { length, destination, destinations, source } = *self.0;
        let record = records.take(length)?;
        if record.is_empty() {
            return Ok(false);
        }
        let slots = |from: usize, count: usize| (0..count).map(move |slot| le::<8>(record, from + 8 * slot));
        out.push(Reference::new(le::<8>(record, 0), 1, Kind::Fetch));
        let touched = |address: &u64| *address != 0;
        out.extend(slots(source, SOURCES).filter(touched).map(|address| Reference::new(address, 1, Kind::Read)));
        let written = slots(destination, destinations).filter(touched);
        out.extend(written.map(|address| Reference::new(address, 1, Kind::Write)));
        Ok(true)
    }

    fn columns(&self) -> Columns {
        Columns::default()
    }

    fn notes(&self) -> Vec<String> {
        vec!["ChampSim records have no sizes: every access is stored as one byte".into()]
    }
}
