//! How many at a time fit into so much RAM: jobs of a build, workers of a server, copies of a program.

pub mod counted;
pub mod fit;
pub mod plan;
#[cfg(test)]
mod tests;
