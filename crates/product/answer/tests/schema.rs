//! The schemas of all outputs of this crate are in `docs/schema`; `make schema` writes them.

use coldframe_answer::bench::compared::Compared;
use coldframe_answer::bench::jobs::counted::HowManyFit;
use coldframe_answer::device::{DeviceAnswer, Seen, ZramTrial};
use coldframe_answer::machine::calibrate::Calibrated;
use coldframe_answer::machine::doctor::Doctor;
use coldframe_answer::nothing::Nothing;
use coldframe_answer::predict::record::Recording;
use coldframe_answer::run::by_kernel::KernelRun;
use coldframe_answer::run::paged::PagerRun;
use coldframe_answer::service::history::Suggested;
use coldframe_answer::service::holding::Change;
use coldframe_answer::service::park::Parked;
use coldframe_answer::service::squeeze::Squeezed;
use coldframe_answer::service::top::Top;
use coldframe_answer::service::turns::Turns;
use coldframe_answer::{Answer, LimitAnswer, Need, Verdict};
use coldframe_toolbox::schemas::{of, schemas};

#[test]
fn the_schema_of_each_output_is_what_its_type_makes() {
    schemas(&[
        ("answer", of::<Answer>()),
        ("calibrate", of::<Calibrated>()),
        ("check", of::<Verdict>()),
        ("compare", of::<Compared>()),
        ("device", of::<DeviceAnswer>()),
        ("device-seen", of::<Seen>()),
        ("device-trial", of::<ZramTrial>()),
        ("doctor", of::<Doctor>()),
        ("fit", of::<HowManyFit>()),
        ("limit", of::<LimitAnswer>()),
        ("need", of::<Need>()),
        ("nothing", of::<Nothing>()),
        ("park", of::<Parked>()),
        ("record", of::<Recording>()),
        ("run", of::<PagerRun>()),
        ("run-kernel", of::<KernelRun>()),
        ("squeeze", of::<Squeezed>()),
        ("squeeze-change", of::<Change>()),
        ("squeeze-suggested", of::<Suggested>()),
        ("top", of::<Top>()),
        ("turns", of::<Turns>()),
    ]);
}
