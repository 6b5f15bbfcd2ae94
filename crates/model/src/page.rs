//! The pager's states and tables of pages, unchanged.

#[path = "../../live/src/page/pages.rs"]
pub mod pages;
#[path = "../../live/src/page/parking.rs"]
pub mod parking;
#[path = "../../live/src/page/state.rs"]
pub mod state;
