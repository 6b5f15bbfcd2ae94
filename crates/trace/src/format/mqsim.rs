//! Requests for SSD simulators: MQSim's trace text, which is DiskSim's ASCII form.
//!
//! ```text
//! 48513000 0 1048576 8 1          arrival device lba size type: sectors of 512 bytes, 0 write, 1 read
//! ```
//! The unit of the arrival is in the simulator's configuration and not in the trace, so it must be declared.

use super::fields::{Fields, Separator};
use super::lines::Fault;
use super::options::{Options, UNIT_TIME};
use super::text::{self, Parse, Parsed};
use super::volumes::Volumes;
use super::Format;
use crate::error::TraceError;
use crate::fidelity::Fidelity;
use crate::provenance::Task;
use crate::reference::{Kind, Reference};
use crate::store::Columns;

pub(super) const FORMAT: Format = Format {
    name: "mqsim",
    summary:
        "MQSim / DiskSim text: arrival, device, LBA, sectors of 512 bytes, 0 write or 1 read; needs --unit time=...",
    example: "mqsim:trace.txt  (with --unit time=ns, or what the simulator's configuration says)",
    fidelity: Fidelity::BlockOnly,
    skips: "blank lines",
    takes: &[UNIT_TIME],
    guess: None,
    open: text::open::<Mqsim>,
};

const LAYOUT: &str = "a line is ARRIVAL DEVICE LBA SIZE TYPE with sectors of 512 bytes and TYPE 0 (write) or 1 (read)";
const SECTOR: u64 = 512;

struct Mqsim {
    time_ps: u64,
    volumes: Volumes,
}

impl Parse for Mqsim {
    fn new(options: &Options) -> Result<Mqsim, TraceError> {
        Ok(Mqsim { time_ps: options.time_unit("mqsim")?, volumes: Volumes::default() })
    }

    fn parse(&mut self, line: &[u8]) -> Result<Parsed, Box<Fault>> {
        let mut fields = Fields::new(line, Separator::Blanks, LAYOUT);
        let Some(time) = fields.optional("arrival") else { return Ok(Parsed::Skip) };
        let time = time.nanoseconds(self.time_ps)?;
        let device = fields.next("device")?.number(u64::from(u32::MAX))? as u32;
        let address = fields.next("lba")?.scaled(SECTOR)?;
        let size = fields.next("size")?;
        let bytes = u32::try_from(size.scaled(SECTOR)?).map_err(|_| size.fault("is too large for one request"))?;
        let kind = fields.next("type")?;
        let kind = match kind.text {
            b"0" => Kind::Write,
            b"1" => Kind::Read,
            _ => return Err(kind.fault("is neither 0 nor 1")),
        };
        fields.end()?;
        self.volumes.meet(device);
        Ok(Parsed::Request(Reference { task: device, time, ..Reference::new(address, bytes, kind) }))
    }

    fn columns(&self) -> Columns {
        Columns { time: true, count: false, task: true }
    }

    fn tasks(&self) -> Vec<Task> {
        self.volumes.tasks("device")
    }
}
