//! The managed addresses, and how much RAM lies behind them. Regions open and close them, and the work on pages changes
//! what is mapped there. This room knows no task and no engine.

pub mod budget;
pub mod extents;
pub mod space;
