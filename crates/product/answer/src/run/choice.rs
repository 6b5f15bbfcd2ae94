//! Who pages a program: our pager, or the kernel.

use coldframe_kernel::SwapKind;

use crate::error::AnswerError;
use crate::run::by_kernel::{ready, Ready};
use crate::run::pager::Pager;

/// Who pages.
pub enum PagedBy {
    /// Our pager.
    Pager,
    /// The kernel; and the reason, if the user has not asked for it.
    Kernel(Ready, Option<AnswerError>),
}

/// Chooses. `pager_only`: an option that only our pager knows; `pager`: whether our pager can, tried only if it is
/// asked for.
///
/// # Errors
/// Nobody can page the program here, or the options contradict each other.
pub fn choose(
    by: Pager,
    swap: Option<&str>,
    pager_only: Option<&'static str>,
    pager: impl FnOnce() -> Result<(), AnswerError>,
) -> Result<PagedBy, AnswerError> {
    let swap = swap.map(SwapKind::parse);
    let kernel = by == Pager::Kernel || (by == Pager::Auto && swap.is_some());
    match pager_only {
        Some(option) if kernel => {
            let message = format!("{option} is for our own pager; leave it out, or give --by pager without --swap");
            return Err(AnswerError::usage(message));
        }
        _ if kernel => return Ok(PagedBy::Kernel(ready(swap)?, None)),
        _ if swap.is_some() => return Err(AnswerError::usage("--swap: our pager does not swap; give --by kernel")),
        _ => {}
    }
    match pager() {
        Ok(()) => Ok(PagedBy::Pager),
        Err(why) if by == Pager::Ours || pager_only.is_some() => Err(why),
        Err(why) => match ready(None) {
            Ok(ready) => Ok(PagedBy::Kernel(ready, Some(why))),
            Err(kernel) => Err(AnswerError::new(4, format!("{why}; nor can the kernel page it: {kernel}"))),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused() -> Result<(), AnswerError> {
        Err(AnswerError::new(4, "it is linked statically"))
    }

    #[test]
    fn the_pager_comes_first_and_is_not_replaced_if_an_option_needs_it() {
        assert!(matches!(choose(Pager::Auto, None, None, || Ok(())), Ok(PagedBy::Pager)));
        for (by, option) in [(Pager::Auto, Some("--policy")), (Pager::Ours, None)] {
            let failure = choose(by, None, option, refused).err().expect("refused");
            assert_eq!(failure.to_string(), "it is linked statically");
        }
    }

    #[test]
    fn options_that_contradict_each_other_are_named() {
        let of = |by, swap, option| choose(by, swap, option, refused).err().expect("refused").to_string();
        assert!(of(Pager::Kernel, None, Some("--journal")).starts_with("--journal"));
        assert!(of(Pager::Ours, Some("zram"), None).starts_with("--swap"));
    }
}
