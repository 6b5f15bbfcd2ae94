//! `coldframe doctor`: what this machine allows.

use std::path::PathBuf;
use std::process::ExitCode;

use coldframe_live::doctor::{examine, Finding, Health};
use coldframe_report::table::styled;
use serde_json::json;

use crate::failure::Failure;
use crate::{output, run};

/// Check whether this machine allows `coldframe run`, and print what would mend it.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  coldframe doctor
  coldframe doctor --backing /mnt/flash --format json

Exit code 0 if `coldframe run` works here, 4 if not.")]
pub struct Args {
    /// Folder or block device for the swap file [default: the folder for temporary files, or /var/tmp if that is in RAM].
    #[arg(long)]
    backing: Option<PathBuf>,
    /// How to print it.
    #[arg(long, value_parser = ["table", "json"], default_value = "table")]
    format: String,
}

pub fn run(args: Args) -> Result<ExitCode, Failure> {
    let mut findings = examine(&args.backing.unwrap_or_else(run::default_backing));
    findings.push(preload());
    let good = findings.iter().all(|f| f.health != Health::Missing);
    let text = if args.format == "json" {
        output::json(&json!({ "schema_version": 1, "run_works": good, "findings": findings }))
    } else {
        table(&findings, good, output::width())
    };
    output::write(None, &text)?;
    Ok(ExitCode::from(if good { 0 } else { 4 }))
}

fn preload() -> Finding {
    let name = "preload library";
    match run::find_preload() {
        Ok(path) => {
            let found = path.display().to_string();
            Finding { name, health: Health::Good, found, remedy: String::new() }
        }
        Err(failure) => {
            let remedy = "cargo build --release -p coldframe-preload".to_string();
            Finding { name, health: Health::Missing, found: failure.to_string(), remedy }
        }
    }
}

fn table(findings: &[Finding], good: bool, width: usize) -> String {
    let word = |health| match health {
        Health::Good => "ok",
        Health::Warning => "warning",
        Health::Missing => "MISSING",
        Health::Note => "",
    };
    let row = |f: &Finding| vec![f.name.to_string(), word(f.health).to_string(), f.found.clone(), f.remedy.clone()];
    let verdict = if good { "`coldframe run` works here." } else { "`coldframe run` does not work here: see MISSING." };
    let table = styled(&["", "", "found", "remedy"], findings.iter().map(row).collect(), 4);
    format!("{}\n{verdict}\n", table.within(width).0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_found_and_mends_it_fits_the_terminal() {
        let long = |n| "a sentence that goes on and on, as those about userfaultfd without rights do; ".repeat(n);
        let path = format!("/nowhere/{}", "folder/".repeat(20));
        let finding =
            |found, remedy| Finding { name: "pages are held in a pipe", health: Health::Missing, found, remedy };
        let findings = [finding(long(3), long(4)), finding(path, String::new())];
        for width in [80, 200] {
            let text = table(&findings, false, width);
            let widest = text.lines().map(|line| line.chars().count()).max().unwrap();
            assert!(widest <= width, "{widest} of {width} columns:\n{text}");
        }
    }
}
