//! Where each page is, and the thread that is changing it. Any room above may ask and change this; it knows neither
//! addresses nor the engine. `crates/tools/model` compiles this room unchanged, but for the leaves.

pub mod leaves;
pub mod pages;
pub mod parking;
pub mod state;
