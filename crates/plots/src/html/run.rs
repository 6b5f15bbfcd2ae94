//! One run of the page: its name and its place, for any simulator driver.

use coldframe_sheet::quantity::{self, human_size};

use coldframe_experiment::sim_result::{InForce, OneString, Sections, SimResult};
use coldframe_show::html::words::text;

/// A result of `sim`.
pub struct Run<'a> {
    /// Its number on the page.
    pub number: usize,
    /// Its result.
    pub result: &'a SimResult,
    /// The settings in force.
    pub settings: InForce,
    /// The settings in which the page's runs differ.
    differs: Differs,
}

/// The settings in which the page's runs differ; a run's name must contain them.
#[derive(Clone, Copy, Default)]
struct Differs {
    trace: bool,
    system: bool,
    device: bool,
}

impl<'a> Run<'a> {
    /// The runs of a page.
    pub fn all(results: &[&'a SimResult]) -> Vec<Run<'a>> {
        // The given runs were checked when they were read.
        let settings: Vec<InForce> = results.iter().map(|run| run.in_force().unwrap_or_default()).collect();
        let differs = Differs {
            trace: results.windows(2).any(|pair| pair[0].trace.sha256 != pair[1].trace.sha256),
            system: settings.windows(2).any(|pair| pair[0].system != pair[1].system),
            device: settings.windows(2).any(|pair| pair[0].device != pair[1].device),
        };
        let numbered = results.iter().zip(settings).enumerate();
        numbered.map(|(number, (result, settings))| Run { number, result, settings, differs }).collect()
    }

    /// The sections of one string of references, if the run has one.
    pub fn string(&self) -> Option<&'a OneString> {
        self.result.string()
    }

    /// The settings that distinguish the run, without RAM.
    pub fn name(&self) -> String {
        let also = [
            self.result.trace.path.rsplit('/').next().filter(|_| self.differs.trace),
            self.settings.system.as_deref().filter(|_| self.differs.system),
            self.settings.device.as_deref().filter(|_| self.differs.device),
        ];
        also.into_iter().flatten().fold(self.kind(), |name, more| format!("{name}, {more}"))
    }

    /// Policy and handler, or how slots are given out.
    fn kind(&self) -> String {
        let InForce { policy, handler, tasks, swap, .. } = &self.settings;
        let policy = text(policy);
        match &self.result.sections {
            Sections::SwapTrace(_) => {
                format!("{}, {}, {} blocks", text(&swap.layout), text(&swap.collector), text(&swap.blocks))
            }
            Sections::Tasks(tasks) if tasks.foreground.is_some() => {
                let size = swap.size.as_ref().map(|size| format!(" of {size}")).unwrap_or_default();
                format!("{}{size}, {policy}", text(&swap.backing))
            }
            Sections::Tasks(_) => {
                let (scheduler, when) = (text(&tasks.scheduler), text(&tasks.prefetch));
                format!("{policy}, {}, {scheduler}, prefetch {when}", text(handler))
            }
            Sections::String(_) => {
                let ahead = self.settings.read_ahead().map(|pages| format!(", read-ahead {pages}")).unwrap_or_default();
                format!("{policy}, {}{ahead}", handler.as_deref().unwrap_or("oracle"))
            }
        }
    }

    /// Bytes of RAM.
    pub fn ram(&self) -> Option<u64> {
        let page = quantity::bytes(self.settings.page.as_deref()?).ok()?;
        Some(self.settings.frames? * page.0)
    }

    /// RAM for people.
    pub fn ram_text(&self) -> String {
        self.ram().map_or_else(|| "-".into(), human_size)
    }

    /// Name and RAM.
    pub fn title(&self) -> String {
        match self.ram() {
            Some(_) => format!("{}, {}", self.name(), self.ram_text()),
            None => self.name(),
        }
    }

    /// As [`coldframe_experiment::RunResult::miss_ratio`]; none between two bounds.
    pub fn miss_ratio(&self) -> Option<f64> {
        let counts = &self.string()?.counts;
        let of = if counts.icache.is_some() { self.result.trace.instructions } else { counts.references };
        Some(counts.true_faults? as f64 / (of? as f64).max(1.0))
    }

    /// The attribute by which the script finds its JSON.
    pub fn at(&self) -> String {
        format!(" data-at=\"/runs/{}\"", self.number)
    }
}
