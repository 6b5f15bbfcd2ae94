//! Pictures, in the form that the name of their file asks for.

use std::path::Path;

use coldframe_plots::png::png;
use coldframe_terminal::output::OutputError;
use coldframe_terminal::suffix;

use crate::failure::Failure;

/// Writes a picture.
pub fn write(path: &Path, svg: &str) -> Result<(), Failure> {
    let bytes = match suffix::of(path) {
        Some("png") => png(svg).map_err(|why| Failure::Other {
            message: format!("{}: {why}; give a name that ends in .svg", path.display()),
            code: 4,
        })?,
        _ => svg.as_bytes().to_vec(),
    };
    Ok(std::fs::write(path, bytes).map_err(OutputError::for_path(path))?)
}
