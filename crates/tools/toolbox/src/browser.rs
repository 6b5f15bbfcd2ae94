//! A page in a browser without a window.

use std::path::Path;
use std::process::Command;

use crate::tools::{have, CHROMIUM};

/// The document of a folder's page in a headless browser, after its scripts have run, and the messages of the
/// console; `None` without a browser.
///
/// # Panics
/// As [`crate::skip`], and if the browser does not start.
pub fn browse(folder: &Path, page: &str) -> Option<(String, Vec<String>)> {
    if !have(&[CHROMIUM]) {
        return None;
    }
    let url = format!("file://{}", folder.join(page).display());
    let profile = format!("--user-data-dir={}", folder.join("profile").display());
    let args = ["--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr", &profile, "--dump-dom", &url];
    let output = Command::new(CHROMIUM.0).args(args).output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    let console = stderr.lines().filter(|line| line.contains("CONSOLE")).map(Into::into).collect();
    Some((String::from_utf8_lossy(&output.stdout).into_owned(), console))
}
