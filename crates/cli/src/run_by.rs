//! Who pages a program: our pager, or the kernel.

use coldframe_kernel::SwapKind;

use crate::failure::Failure;
use crate::run_kernel::{ready, Ready};

/// Who pages.
pub enum Pages {
    /// Our pager.
    Pager,
    /// The kernel; and the reason, if the user has not asked for it.
    Kernel(Ready, Option<Failure>),
}

/// What the user has asked for.
pub struct Asked<'a> {
    /// `--by`: `auto`, `pager` or `kernel`.
    pub by: &'a str,
    /// `--swap`.
    pub swap: Option<&'a str>,
    /// An option that only our pager knows.
    pub pager_only: Option<&'static str>,
}

/// Chooses. `pager`: whether our pager can, tried only if it is asked for.
///
/// # Errors
/// Nobody can page the program here, or the options contradict each other.
pub fn choose(asked: &Asked, pager: impl FnOnce() -> Result<(), Failure>) -> Result<Pages, Failure> {
    let swap = asked.swap.map(SwapKind::parse);
    let kernel = asked.by == "kernel" || (asked.by == "auto" && swap.is_some());
    match asked.pager_only {
        Some(option) if kernel => {
            let message = format!("{option} is for our own pager; leave it out, or give --by pager without --swap");
            return Err(Failure::usage(message));
        }
        _ if kernel => return Ok(Pages::Kernel(ready(swap)?, None)),
        _ if swap.is_some() => return Err(Failure::usage("--swap: our pager does not swap; give --by kernel")),
        _ => {}
    }
    match pager() {
        Ok(()) => Ok(Pages::Pager),
        Err(why) if asked.by == "pager" || asked.pager_only.is_some() => Err(why),
        Err(why) => match ready(None) {
            Ok(ready) => Ok(Pages::Kernel(ready, Some(why))),
            Err(kernel) => {
                Err(Failure::Other { message: format!("{why}; nor can the kernel page it: {kernel}"), code: 4 })
            }
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused() -> Result<(), Failure> {
        Err(Failure::Other { message: "it is linked statically".into(), code: 4 })
    }

    #[test]
    fn the_pager_comes_first_and_is_not_replaced_if_an_option_needs_it() {
        let auto = Asked { by: "auto", swap: None, pager_only: None };
        assert!(matches!(choose(&auto, || Ok(())), Ok(Pages::Pager)));
        for asked in
            [Asked { pager_only: Some("--encrypt"), ..auto }, Asked { by: "pager", swap: None, pager_only: None }]
        {
            let failure = choose(&asked, refused).err().expect("refused");
            assert_eq!(failure.to_string(), "it is linked statically");
        }
    }

    #[test]
    fn options_that_contradict_each_other_are_named() {
        let kernel = Asked { by: "kernel", swap: None, pager_only: Some("--journal") };
        assert!(choose(&kernel, refused).err().unwrap().to_string().starts_with("--journal"));
        let pager = Asked { by: "pager", swap: Some("zram"), pager_only: None };
        assert!(choose(&pager, refused).err().unwrap().to_string().starts_with("--swap"));
    }
}
