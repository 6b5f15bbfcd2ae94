//! The schemas of all outputs of this crate are in `docs/schema`; `make schema` writes them.

use coldframe_answer::calibrate::Calibrated;
use coldframe_answer::compared::Compared;
use coldframe_answer::doctor::Doctor;
use coldframe_answer::park::Parked;
use coldframe_answer::record::Recording;
use coldframe_answer::run::PagerRun;
use coldframe_answer::run_kernel::KernelRun;
use coldframe_answer::squeeze::Squeezed;
use coldframe_answer::top::Top;
use coldframe_answer::{Answer, Need, Verdict};
use coldframe_toolbox::schemas::schemas;
use schemars::generate::SchemaSettings;
use schemars::JsonSchema;
use serde_json::Value;

#[test]
fn the_schema_of_each_output_is_what_its_type_makes() {
    schemas(&[
        ("answer", of::<Answer>()),
        ("calibrate", of::<Calibrated>()),
        ("check", of::<Verdict>()),
        ("compare", of::<Compared>()),
        ("doctor", of::<Doctor>()),
        ("need", of::<Need>()),
        ("park", of::<Parked>()),
        ("record", of::<Recording>()),
        ("run", of::<PagerRun>()),
        ("run-kernel", of::<KernelRun>()),
        ("squeeze", of::<Squeezed>()),
        ("top", of::<Top>()),
    ]);
}

/// As it is written, not as it may be read.
fn of<T: JsonSchema>() -> Value {
    SchemaSettings::draft2020_12().for_serialize().into_generator().into_root_schema_for::<T>().to_value()
}
