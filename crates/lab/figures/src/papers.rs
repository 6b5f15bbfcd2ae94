//! All papers.

use std::path::Path;

use coldframe_experiment::ExperimentError;
use coldframe_show::plot::Plot;

use crate::figure::{near, number, Claim, Origin, Paper, Row, Wanted};

/// The papers, in the order of their systems.
pub const ALL: &[Paper] =
    &[crate::swl::PAPER, crate::ddb::PAPER, crate::lobi::PAPER, crate::drswap::PAPER, crate::sap::PAPER];

/// The curves of one paper, or of all.
pub fn plots(paper: &str, traces: &Path) -> Result<Vec<Plot>, ExperimentError> {
    let plots: Result<Vec<_>, _> = of(paper)?.map(|paper| (paper.plots)(traces)).collect();
    Ok(plots?.concat())
}

/// The rows of one paper, or of all: every row, or the `short` form, the headlines. `traces` is the folder with the
/// shipped traces.
pub fn rows(
    paper: &str,
    short: bool,
    traces: &Path,
    progress: &mut dyn FnMut(&str),
) -> Result<Vec<Row>, ExperimentError> {
    let mut rows = Vec::new();
    for paper in of(paper)? {
        let wanted = if short { Wanted::Headlines(paper.claims) } else { Wanted::All };
        let all = with_claims(paper, (paper.rows)(traces, wanted, progress)?);
        rows.extend(all.filter(|row| !short || row.claim.is_some()));
    }
    Ok(rows)
}

/// Rows with their paper and the headlines that they answer.
fn with_claims(paper: &'static Paper, rows: Vec<Row>) -> impl Iterator<Item = Row> {
    let claim = |row: &Row| paper.claims.iter().find(|claim| (claim.1, claim.2) == (&row.item, &row.row));
    rows.into_iter().map(move |row| Row { paper: paper.name, claim: claim(&row).map(|claim| claim.0), ..row })
}

/// The predictions that are not where they stood, each as a line.
pub fn changed_predictions(rows: &[Row]) -> Vec<String> {
    let unchanged = |row: &Row, line: &str| {
        ALL.iter().any(|paper| paper.name == row.paper && paper.snapshot.lines().any(|before| before == line))
    };
    let predicted = rows.iter().filter(|row| row.origin == Origin::Predicted);
    predicted
        .map(|row| (row, row.snapshot_line()))
        .filter(|(row, line)| !unchanged(row, line))
        .map(|(_, line)| line)
        .collect()
}

/// A paper's line in the book's table: its first headlines, each with origin and distance, and how near its
/// predictions are.
pub fn line(paper: &Paper, rows: &[Row]) -> String {
    let claim = |claim: &Claim| {
        let row = rows.iter().find(|row| row.claim == Some(claim.0))?;
        let (text, unit, origin) = (claim.0, row.unit, row.origin.word());
        let (ours, printed) = (number(row.our_value), number(row.paper_value?));
        let printed = printed.trim_end_matches(".00");
        Some(format!("{text}: {ours} {unit}, in the paper {printed} ({origin}, {})", row.distance()))
    };
    let claims: Vec<_> = paper.claims.iter().take(4).filter_map(claim).collect();
    let ([title, source, idea], name) = (paper.readme, paper.name);
    let link = format!("[{title}](../../../../crates/lab/figures/src/{name}/README.md) ({source})");
    format!("| {link} | {idea} | {}<br>{} |", claims.join("<br>"), near(rows))
}

fn of(name: &str) -> Result<impl Iterator<Item = &'static Paper> + '_, ExperimentError> {
    let names: Vec<_> = ALL.iter().map(|paper| paper.name).collect();
    if name != "all" && !names.contains(&name) {
        let reason = format!("there is no paper `{name}`; there are {}, all", names.join(", "));
        return Err(ExperimentError::setting("paper", reason));
    }
    Ok(ALL.iter().filter(move |paper| name == "all" || name == paper.name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headlines_fit_a_terminal_and_stand_once() {
        for paper in ALL {
            let texts: Vec<&str> = paper.claims.iter().map(|claim| claim.0).collect();
            assert!(!texts.is_empty() && texts.len() <= 8, "{texts:?}");
            assert!(texts.iter().all(|text| text.len() <= 54), "{texts:?}");
            assert!((1..texts.len()).all(|i| !texts[..i].contains(&texts[i])), "{texts:?}");
        }
    }
}
