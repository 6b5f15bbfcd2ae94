//! DAMON's samples as `perf script` text, a line a region.
//!
//! ```text
//! kdamond.0  4452 [000] 82877.315633: damon:damon_aggregated: target_id=0 nr_regions=17 START-END: NR_ACCESSES AGE
//! damon:damos_before_apply: ctx_idx=0 scheme_idx=0 target_idx=0 nr_regions=17 START-END: NR_ACCESSES AGE    after the same head
//! ```
//! START and END are decimal. A region without a sampled access is skipped. Any other region becomes a read that
//! counts as many references as samples found an access. DAMON does not distinguish reads from writes, nor pages
//! within a region.

use memchr::memmem;

use super::fields::{Fields, Separator};
use super::lines::Fault;
use super::tasks::Tasks;
use super::text::{self, Parse, Parsed};
use super::Format;
use coldframe_store::block::Columns;
use coldframe_store::fidelity::Fidelity;
use coldframe_store::reference::{Kind, Reference};

pub(super) const FORMAT: Format = Format {
    name: "damon",
    summary: "DAMON samples as perf script text (damo record; perf script)",
    example: "damon:damon.txt  (perf script -i damon.data > damon.txt)",
    fidelity: Fidelity::Sampled,
    skips: "regions without accesses, blank lines",
    takes: &[],
    guess: Some(|head| text::looks_like(Damon, head)),
    open: text::open::<Damon>,
};

/// A note for readers of results, for all forms of these samples.
pub(super) const NOTE: &str =
    "samples of regions: a row is a read of a whole region, counted as often as a sample met an access in it";

const LAYOUT: &str =
    "a line ends with damon:damon_aggregated: target_id=N nr_regions=N START-END: NR_ACCESSES [AGE]; print it \
                      with perf script";
const EVENTS: [&[u8]; 2] = [b"damon:damon_aggregated:", b"damon:damos_before_apply:"];
const SECOND_PS: u64 = 1_000_000_000_000;

#[derive(Default)]
struct Damon;

impl Parse for Damon {
    fn parse(&mut self, line: &[u8], tasks: &mut Tasks) -> Result<Parsed, Box<Fault>> {
        if line.trim_ascii().is_empty() || line.starts_with(b"#") {
            return Ok(Parsed::Skip);
        }
        let event = EVENTS.iter().find_map(|event| memmem::find(line, event));
        let event =
            event.ok_or_else(|| super::fields::fault("event", 0..line.len(), "no DAMON event".into(), LAYOUT))?;
        let mut fields = Fields::new(line, Separator::Blanks, LAYOUT);
        let mut time = fields.next("time")?;
        while fields.rest().trim_ascii_start().len() > line.len() - event {
            time = fields.next("time")?;
        }
        let seconds = time.text.strip_suffix(b":").unwrap_or(time.text);
        let at = super::fields::nanoseconds(seconds, SECOND_PS).ok_or_else(|| time.fault("is no time in seconds"))?;
        fields.next("event")?;
        let mut target = 0;
        let region = loop {
            let field = fields.next("region")?;
            match memchr::memchr(b'=', field.text) {
                None => break field,
                Some(equals) if matches!(&field.text[..equals], b"target_id" | b"target_idx") => {
                    let number = super::fields::decimal(&field.text[equals + 1..]);
                    // Old kernels print a pointer here; its lower half distinguishes targets as well.
                    target = number.ok_or_else(|| field.fault("is no target"))? as u32;
                }
                Some(_) => {}
            }
        };
        let bounds = region.text.strip_suffix(b":").and_then(bounds);
        let (start, end) = bounds.ok_or_else(|| region.fault("is not START-END: in decimal, with START before END"))?;
        let accesses = fields.next("nr_accesses")?.number(u64::from(u32::MAX))? as u32;
        if accesses == 0 {
            return Ok(Parsed::Skip);
        }
        tasks.meet(target, target, b"DAMON target");
        let row = Reference { task: target, time: at, count: accesses, ..Reference::new(start, 1, Kind::Read) };
        Ok(Parsed::Stretch(row, end - start))
    }

    fn columns(&self) -> Columns {
        Columns { time: true, count: true, task: true }
    }

    fn notes(&self) -> Vec<String> {
        vec![NOTE.to_owned()]
    }
}

fn bounds(text: &[u8]) -> Option<(u64, u64)> {
    let dash = memchr::memchr(b'-', text)?;
    let pair = super::fields::decimal(&text[..dash]).zip(super::fields::decimal(&text[dash + 1..]));
    pair.filter(|(start, end)| start < end)
}
