//! One run of the page: its name and its place, for any simulator driver.

use coldframe_sheet::quantity::{self, human_size};

use coldframe_experiment::settings::Settings;
use coldframe_experiment::sim_result::{OneString, Sections, SimResult};
use coldframe_show::html::words::text;

/// A result of `sim`.
pub struct Run<'a> {
    pub number: usize,
    pub result: &'a SimResult,
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
    pub fn all(results: &[&'a SimResult]) -> Vec<Run<'a>> {
        let differ = |of: fn(&SimResult) -> Option<&str>| results.windows(2).any(|pair| of(pair[0]) != of(pair[1]));
        let differs = Differs {
            trace: differ(|run| Some(&run.trace.sha256)),
            system: differ(|run| run.config.settings.system.as_deref()),
            device: differ(|run| run.config.settings.device.as_deref()),
        };
        results.iter().enumerate().map(|(number, result)| Run { number, result, differs }).collect()
    }

    /// Its settings, without machine and swap area.
    pub fn settings(&self) -> &'a Settings {
        &self.result.config.settings
    }

    /// The sections of one string of references, if the run has one.
    pub fn string(&self) -> Option<&'a OneString> {
        self.result.string()
    }

    /// The settings that distinguish the run, without RAM.
    pub fn name(&self) -> String {
        let also = [
            self.result.trace.path.rsplit('/').next().filter(|_| self.differs.trace),
            self.settings().system.as_deref().filter(|_| self.differs.system),
            self.settings().device.as_deref().filter(|_| self.differs.device),
        ];
        also.into_iter().flatten().fold(self.kind(), |name, more| format!("{name}, {more}"))
    }

    /// Policy and handler, or how slots are given out.
    fn kind(&self) -> String {
        let Settings { policy, handler, tasks, .. } = self.settings();
        let swap = &self.result.config.swap;
        let policy = text(policy);
        match &self.result.sections {
            Sections::SwapTrace(_) => {
                format!("{}, {}, {} blocks", text(&swap.log.layout), text(&swap.log.collector), text(&swap.log.blocks))
            }
            Sections::Tasks(tasks) if tasks.foreground.is_some() => {
                let area = swap.backed.as_ref().map(|area| format!("{} of {}", area.backing, area.size));
                format!("{}, {policy}", text(&area))
            }
            Sections::Tasks(_) => {
                let (scheduler, when) = (text(&tasks.scheduler), text(&tasks.prefetch));
                format!("{policy}, {}, {scheduler}, prefetch {when}", text(handler))
            }
            Sections::String(_) => {
                let ahead =
                    self.result.config.read_ahead().map(|pages| format!(", read-ahead {pages}")).unwrap_or_default();
                format!("{policy}, {}{ahead}", handler.as_deref().unwrap_or("oracle"))
            }
        }
    }

    /// Bytes of RAM.
    pub fn ram(&self) -> Option<u64> {
        let page = quantity::bytes(self.settings().page.as_deref()?).ok()?;
        Some(self.settings().frames? * page.0)
    }

    pub fn ram_text(&self) -> String {
        self.ram().map_or_else(|| "-".into(), human_size)
    }

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
