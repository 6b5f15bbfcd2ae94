//! Results as one HTML page: of `sim`, of the search for a board, and answers about this machine, as their JSON gives them.
//!
//! The size of a run on the page is limited for any trace, so the page's size is limited by the number of runs.

use coldframe_answer::AnswerError;
use coldframe_experiment::error::ExperimentError;
use coldframe_experiment::sim_result::{SimResult, Trace};
use coldframe_search::json::Answer;
use coldframe_show::html::words::section;
use coldframe_show::html::{framed, group, heat, machine, provenance, Html};
use coldframe_store::heat::Heat;
use coldframe_store::ProcessFacts;
use serde_json::json;

mod answer;
mod curves;
mod energy;
mod given;
mod latency;
mod run;
mod runs;
mod stages;
mod swap;
mod tasks;

use given::Given;
use run::Run;

/// Most runs on a page, at about two thousand bytes each.
pub const RUNS_MAX: usize = 600;

/// The input of a page: results as `sim` and `advise` write them with `--format json`.
#[derive(Debug, Default)]
pub struct Page {
    advice: Vec<Answer>,
    here: Vec<coldframe_answer::Answer>,
    runs: Vec<SimResult>,
    heat: Option<Heat>,
    group: Vec<ProcessFacts>,
}

impl Page {
    pub fn of(answer: &Answer) -> Page {
        Page { advice: vec![answer.clone()], ..Page::default() }
    }

    /// Adds a file's bytes.
    ///
    /// # Errors
    /// Not JSON, of another version, or not a result.
    pub fn add(&mut self, origin: &str, bytes: &[u8]) -> Result<(), ExperimentError> {
        let bad = |reason: String| ExperimentError::Unfit { path: origin.into(), reason };
        for one in given::read(bytes).map_err(bad)? {
            match one {
                Given::Run(run) => self.runs.push(*run),
                Given::Advice(answer) => self.advice.push(*answer),
                Given::Here(answer) => self.here.push(*answer),
            }
        }
        match self.runs.len() {
            n if n > RUNS_MAX => Err(bad(format!("makes {n} runs, and a page holds {RUNS_MAX}; give fewer"))),
            _ => Ok(()),
        }
    }

    fn origins(&self) -> impl Iterator<Item = (&String, &Trace)> {
        let runs = self.runs.iter().map(|run| (&run.version, &run.trace));
        self.advice.iter().map(|advice| (&advice.version, &advice.trace)).chain(runs)
    }

    /// Adds the map of a trace, whose hash must be that of every result.
    ///
    /// # Errors
    /// A result is of another trace.
    pub fn add_heat(&mut self, path: &str, sha256: &str, heat: Heat) -> Result<(), ExperimentError> {
        if self.origins().any(|(_, trace)| trace.sha256 != sha256) {
            let reason =
                "is not the trace that all results are of; leave out --trace, or report on one trace at a time";
            return Err(ExperimentError::Unfit { path: path.into(), reason: reason.into() });
        }
        self.heat = Some(heat);
        Ok(())
    }

    /// Adds the processes of a recorded command.
    pub fn add_group(&mut self, group: &[ProcessFacts]) {
        self.group = group.to_vec();
    }

    /// All runs: what was given, then what was advised.
    fn all_runs(&self) -> Vec<&SimResult> {
        self.runs.iter().chain(self.advice.iter().filter_map(|advice| advice.run.as_ref())).collect()
    }

    /// The name in the browser's tab.
    fn name(&self) -> String {
        match (self.here.first(), self.origins().next()) {
            (Some(answer), _) => answer.program.clone(),
            (None, Some((_, trace))) => trace.path.rsplit('/').next().unwrap_or_default().to_string(),
            (None, None) => String::new(),
        }
    }

    fn answers(&self, runs: &[Run<'_>]) -> String {
        let mut out = String::new();
        self.advice.iter().enumerate().for_each(|(i, advice)| out += &answer::answer(i, advice));
        self.here.iter().for_each(|answer| out += &machine::answer(answer));
        if out.is_empty() {
            out += &runs::headline(runs);
        }
        match self.runs.is_empty() {
            true => out,
            false => out + &curves::misses(runs),
        }
    }

    fn why(&self) -> String {
        let regions: String = self.advice.iter().map(answer::regions).collect();
        let map = self.heat.as_ref().map(|heat| heat::map(heat, self.here.is_empty(), None)).unwrap_or_default();
        match regions + &group::processes(&self.group) + &map {
            nothing if nothing.is_empty() => nothing,
            why => section("Why: which memory, and when", &why),
        }
    }

    fn sure(&self) -> String {
        let sure: String = self.advice.iter().map(answer::sure).chain(self.here.iter().map(machine::sure)).collect();
        if sure.is_empty() {
            sure
        } else {
            section("How sure", &sure)
        }
    }

    fn details(&self, runs: &[Run<'_>]) -> String {
        let mut out: String = self.here.iter().map(machine::sizes).collect();
        self.advice.iter().for_each(|advice| out += &answer::tried(advice));
        out += &tasks::tasks(runs);
        out += &curves::latencies(runs);
        out += &latency::latencies(runs);
        out += &stages::stages(runs);
        out += &energy::energies(runs);
        out += &swap::swap_areas(runs);
        out += &runs::runs(runs);
        format!("<section class=\"details\"><h2>Details</h2>{out}{}</section>", self.origins_and_settings())
    }

    fn origins_and_settings(&self) -> String {
        let mut seen: Vec<String> = Vec::new();
        for (version, trace) in self.origins() {
            let text = format!("coldframe {version}\n{:#}", json!(trace));
            if !seen.contains(&text) {
                seen.push(text);
            }
        }
        let advised = self.advice.iter().filter_map(|advice| advice.best.as_ref());
        seen.extend(advised.map(|best| format!("advised: {:#}", json!(best.config))));
        provenance(&seen)
    }
}

impl Html for Page {
    /// The answer with its chart, why, how sure, and folded all the rest.
    fn html(&self) -> Result<String, AnswerError> {
        let all = self.all_runs();
        let runs = Run::all(&all);
        let body = self.answers(&runs) + &self.why() + &self.sure() + &self.details(&runs);
        let advice: Vec<_> = self.advice.iter().map(Answer::without_run).collect();
        framed(&self.name(), &body, &json!({ "advice": advice, "here": self.here, "runs": all }))
    }
}
