//! The schemas of the laboratory's outputs in `docs/schema`; `make schema` writes them.

use coldframe_experiment::info::Info;
use coldframe_experiment::sim_result::SimResult;
use coldframe_figures::figure::Row;
use coldframe_figures::parts::Study;
use coldframe_figures::teach::LessonRuns;
use coldframe_search::json::Answer;
use coldframe_sheet::Sheet;
use coldframe_toolbox::schemas::{of, schemas};
use schemars::JsonSchema;

use crate::trace::{convert, heatmap, import, info, merge};
use crate::{generate, policies, replay, teach};

/// An output that has one of two forms.
#[derive(JsonSchema)]
#[serde(untagged)]
#[allow(dead_code)] // Only its schema is used.
enum Either<A, B> {
    One(A),
    Other(B),
}

#[test]
fn the_schema_of_each_output_is_what_its_type_makes() {
    schemas(&[
        ("advise", of::<Answer>()),
        ("convert", of::<convert::Converted>()),
        ("devices", of::<Either<Vec<Sheet>, Sheet>>()),
        ("generate", of::<generate::Generated>()),
        ("heatmap", of::<heatmap::HeatMap>()),
        ("import", of::<import::Imported>()),
        ("info", of::<Either<Info, info::SwapTraceInfo>>()),
        ("merge", of::<merge::Merged>()),
        ("mix", of::<merge::Merged>()),
        ("papers", of::<Vec<Row>>()),
        ("papers-on", of::<Vec<Study>>()),
        ("policies", of::<policies::Names>()),
        ("replay", of::<replay::Agreement>()),
        ("sim", of::<Either<SimResult, Vec<SimResult>>>()),
        ("teach", of::<Either<Vec<teach::Listed>, LessonRuns>>()),
    ]);
}
