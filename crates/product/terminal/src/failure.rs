//! Shows a failure on stderr. For bad input the message shows the source line and underlines the place.

use std::fmt::Display;
use std::process::ExitCode;

use coldframe_show::text::shown;
use coldframe_store::BadLine;
use miette::{GraphicalReportHandler, LabeledSpan, MietteDiagnostic, NamedSource, Report};

/// Shows why a verb has failed, with the line of input that is wrong, if it is one. Returns the exit code.
pub fn report(failure: &dyn Display, code: u8, bad_line: Option<&BadLine>) -> ExitCode {
    eprintln!("error: {}", shown(&failure.to_string()));
    if let Some(line) = bad_line {
        let label = LabeledSpan::at(line.offset..line.offset + line.len, line.problem.clone());
        let title = format!("{}, line {}", line.path.display(), line.line);
        let source = NamedSource::new(title, line.text.clone());
        let report =
            Report::new(MietteDiagnostic::new(line.field.to_string()).with_label(label)).with_source_code(source);
        let mut shown = String::new();
        if GraphicalReportHandler::new().render_report(&mut shown, report.as_ref()).is_ok() {
            eprintln!("{shown}");
        }
    }
    ExitCode::from(code)
}
