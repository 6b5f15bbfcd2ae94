//! The swap area of `coldframe-lab run --system`.

use coldframe_experiment::resolve::collector;
use coldframe_experiment::systems;
use coldframe_live::SwapArea;
use coldframe_sheet::quantity;

use crate::failure::Failure;

/// Who decides where pages lie in the swap file.
#[derive(clap::Args)]
pub struct LogAreaArgs {
    /// The system whose swap area is run: one with a log of erase blocks, of 32 pages each here, and a collector
    /// (lobi). The swap file stands in for the flash [default: none; the pager fills the holes of its file].
    #[arg(long, value_name = "NAME")]
    system: Option<String>,
    /// Who chooses the erase blocks that are collected: greedy, cost-benefit, cost-age-times or cost-benefit-age, and
    /// how many at a time [default: greedy:1].
    #[arg(long, value_name = "NAME[:N]", requires = "system")]
    collector: Option<String>,
}

impl LogAreaArgs {
    /// Whether an area is asked for.
    pub fn given(&self) -> bool {
        self.system.is_some()
    }

    pub fn area(&self, bytes: Option<&str>) -> Result<Option<SwapArea>, Failure> {
        let Some(system) = &self.system else { return Ok(None) };
        let names = systems::names(systems::System::has_log);
        let why = match systems::find(system) {
            None => Some(format!("there is no system `{system}`")),
            Some(known) if known.has_log() => None,
            Some(known) if known.name == systems::measured().name => {
                Some(format!("`{system}` is what runs without it: its handler, parallel, is the default"))
            }
            Some(known) => Some(match known.live {
                Some(command) => format!("`{system}` runs as `{command}`"),
                None => format!("`{system}` is simulated only, by `coldframe-lab sim --system {system}`"),
            }),
        };
        if let Some(why) = why {
            return Err(Failure::usage(format!("--system: {why}; give {names}, whose swap area is run")));
        }
        let (collector, victims) = collector(self.collector.as_deref().unwrap_or("greedy"))?;
        let collector = collector.name.to_string();
        Ok(Some(SwapArea { bytes: bytes.map(size).transpose()?, collector, victims }))
    }
}

fn size(text: &str) -> Result<u64, Failure> {
    let bytes = quantity::bytes(text).map_err(|e| Failure::usage(format!("--swap-size: {e}")))?.0;
    let least = (u64::from(SwapArea::START) + 1) * SwapArea::BLOCK;
    match bytes < least {
        true => Err(Failure::usage(format!("--swap-size: {text} is too little; give at least {}KiB", least >> 10))),
        false => Ok(bytes),
    }
}
