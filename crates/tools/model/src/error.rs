//! The error of the pager's modules.

/// Replaces the error type of the pager's modules; no operation of the models fails.
#[derive(Debug)]
pub struct LiveError;

impl LiveError {
    pub(crate) fn os(_: &'static str, error: LiveError) -> LiveError {
        error
    }
}
