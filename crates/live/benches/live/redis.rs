//! An unmodified redis-server in half of what it would take, beside the same server with all its RAM.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::{Bound, Targets};

const KEYS: usize = 200_000;
const VALUE: usize = 256;

/// Requests a second, plain and paged.
pub fn run(folder: &Path, targets: &mut Targets) {
    println!("\nREDIS, {KEYS} keys of {VALUE} bytes, GET of uniformly random keys");
    let Some(coldframe) = coldframe() else { return println!("not run: build the command first (`make build`)") };
    let (plain, working_set) = match serve(folder, &[]) {
        Ok(figures) => figures,
        Err(why) => return println!("not run: {why}"),
    };
    let half = (working_set / 2).to_string();
    let backing = folder.to_str().expect("a folder of ours");
    let prefix = [coldframe.to_str().expect("a path"), "run", "--ram", &half, "--backing", backing, "--"];
    match serve(folder, &prefix) {
        Ok((paged, _)) => {
            println!(
                "plain {plain:.0}/s with {} MiB, paged {paged:.0}/s in {} MiB",
                working_set >> 20,
                working_set >> 21
            );
            targets.note("redis at half its working set: requests/s, plain run", paged / plain, Bound::AtLeast(0.7));
        }
        Err(why) => println!("not run: {why}"),
    }
}

/// The command that lies beside this benchmark.
fn coldframe() -> Option<PathBuf> {
    let path = std::env::current_exe().ok()?.parent()?.parent()?.join("coldframe");
    path.exists().then_some(path)
}

struct Server<'a>(Child, &'a str);

impl Drop for Server<'_> {
    fn drop(&mut self) {
        // A signal would end `coldframe run` and leave the server.
        let _ = ask(self.1, &["shutdown", "nosave"]);
        let _ = self.0.wait();
    }
}

/// Starts a server, fills it, and returns requests a second and the bytes of its data.
fn serve(folder: &Path, prefix: &[&str]) -> Result<(f64, usize), String> {
    let socket = folder.join("redis.sock");
    let socket = socket.to_str().expect("a folder of ours");
    let server = ["redis-server", "--port", "0", "--unixsocket", socket, "--save", "", "--dir", "/"];
    let words: Vec<&str> = prefix.iter().chain(&server).copied().collect();
    let child = Command::new(words[0]).args(&words[1..]).stdout(Stdio::null()).spawn();
    let _server = Server(child.map_err(|e| format!("{}: {e} (package redis-server)", words[0]))?, socket);
    let started = Instant::now();
    while ask(socket, &["ping"]).is_err() {
        if started.elapsed() > Duration::from_secs(20) {
            return Err("redis-server does not answer".to_string());
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    benchmark(socket, "set", 3 * KEYS)?;
    let memory = ask(socket, &["info", "memory"])?;
    let used = memory.lines().find_map(|line| line.trim().strip_prefix("used_memory:")?.parse().ok());
    let rate = benchmark(socket, "get", 2 * KEYS)?;
    Ok((rate, used.ok_or("redis-server does not say what it uses")?))
}

fn ask(socket: &str, words: &[&str]) -> Result<String, String> {
    let output = Command::new("timeout").args(["--foreground", "60", "redis-cli", "-s", socket]).args(words).output();
    let output = output.map_err(|e| format!("redis-cli: {e} (package redis-tools)"))?;
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    if output.status.success() && !said.starts_with("ERR") {
        Ok(said)
    } else {
        Err(said)
    }
}

/// Requests a second of one kind, over random keys.
fn benchmark(socket: &str, kind: &str, requests: usize) -> Result<f64, String> {
    let (keys, requests, bytes) = (KEYS.to_string(), requests.to_string(), VALUE.to_string());
    let words = ["-s", socket, "-n", &requests, "-r", &keys, "-d", &bytes, "-c", "8", "-P", "4", "--csv", "-t", kind];
    let output = Command::new("timeout").args(["--foreground", "120", "redis-benchmark"]).args(words).output();
    let said = output.map_err(|e| format!("redis-benchmark: {e} (package redis-tools)"))?.stdout;
    let said = String::from_utf8_lossy(&said).into_owned();
    let rate = said.lines().last().and_then(|line| line.split(',').nth(1)?.trim_matches('"').parse().ok());
    rate.ok_or_else(|| format!("redis-benchmark said {said:?}"))
}
