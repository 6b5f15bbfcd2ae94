//! Services that run already: their limits, their turns, their pagers.

pub mod history;
pub mod hold;
pub mod holding;
pub mod park;
pub mod squeeze;
pub mod top;
pub mod turns;
