//! Table IV from the printed sizes of the applications: swap-ins for each MB of a category, at one of two densities.
//!
//! The paper's phone loses a share of each heap, whatever exceeds RAM: reclaim takes pages of programs and of files
//! in proportion. Fitted to 24 cells: two densities at 128 MB, and a factor each for 256 and 512 MB. This is
//! arithmetic on table III; the simulated runs are beside it (table IV).

use crate::systems::drswap::golden::Golden;
use crate::systems::drswap::{CATEGORIES, SWAP_MIB};
use crate::workload::Parameters;

use super::{noted, row, within};
use crate::papers::{Reached, Row};

/// Games and shops have fewer pages in memory of programs: textures and pictures.
const SPARSE: [&str; 2] = ["gaming", "shopping"];

/// Swap-ins for each MB of a category, dense and sparse ones.
struct Densities {
    dense: f64,
    sparse: f64,
}

fn sizes<'a>(p: &'a Parameters, category: &str) -> &'a [f64] {
    &p.categories[category]
}

/// The kind of an application of this size, for the mixes, which have applications of all categories.
fn is_sparse(p: &Parameters, category: &str, size: f64) -> bool {
    match category {
        "mix1" | "mix2" => SPARSE.iter().any(|sparse| sizes(p, sparse).contains(&size)),
        of => SPARSE.contains(&of),
    }
}

fn printed(golden: &Golden, category: &str, mib: u64) -> f64 {
    golden.table4_swap_ins[category][&mib.to_string()][0] as f64
}

/// The mean of swap-ins a MB over the single categories of a kind, at 128 MB.
fn densities(golden: &Golden, p: &Parameters) -> Densities {
    let mean = |sparse: bool| {
        let of = CATEGORIES.iter().filter(|c| !c.starts_with("mix") && SPARSE.contains(c) == sparse);
        let each: Vec<f64> = of.map(|c| printed(golden, c, SWAP_MIB[0]) / sizes(p, c).iter().sum::<f64>()).collect();
        each.iter().sum::<f64>() / each.len() as f64
    };
    Densities { dense: mean(false), sparse: mean(true) }
}

pub(super) fn rows(golden: &Golden, p: &Parameters, rows: &mut Vec<Row>) {
    let densities = densities(golden, p);
    let (mut reached, mut all) = (0, 0);
    for mib in SWAP_MIB {
        let factor = printed(golden, "average", mib) / printed(golden, "average", SWAP_MIB[0]);
        for category in CATEGORIES {
            let each =
                |size: &f64| size * if is_sparse(p, category, *size) { densities.sparse } else { densities.dense };
            let ours = sizes(p, category).iter().map(each).sum::<f64>() * factor;
            let paper = printed(golden, category, mib);
            let of = row(
                "table IV by size",
                format!("{mib} MB, {category}"),
                Some(paper),
                ours,
                "swap-ins",
                within(ours, paper, 0.25),
            );
            (reached, all) = (reached + u32::from(of.reached == Reached::Yes), all + 1);
            rows.push(noted(of, if mib == SWAP_MIB[0] { FITTED } else { PREDICTED }));
        }
    }
    let text = format!("cells within a quarter, of {all}");
    let of = row(
        "table IV by size",
        text,
        Some(f64::from(all)),
        reached.into(),
        "cells",
        if 2 * reached > all { Reached::Shape } else { Reached::No },
    );
    let note = format!(
        "densities {:.1} and {:.1} swap-ins a MB; four numbers fitted to {all} cells",
        densities.dense, densities.sparse
    );
    rows.push(noted(of, &note));
}

const FITTED: &str =
    "two densities are fitted at 128 MB, one for gaming and shopping, one for the rest; the mixes are predicted";

const PREDICTED: &str = "predicted by size and one factor for the area; the paper's column falls and rises again with the area in some categories";
