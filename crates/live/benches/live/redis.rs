//! An unmodified redis-server with half of the RAM that it uses, compared with the same server with all its RAM.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::workload::Workload;
use crate::{Bound, Targets};

const KEYS: usize = 200_000;
const VALUE: usize = 256;
const CONNECTIONS: usize = 50;

/// Requests per second, plain and paged.
pub fn run(folder: &Path, targets: &mut Targets) {
    println!("\nREDIS, {KEYS} keys of {VALUE} bytes, GET over {CONNECTIONS} connections");
    let Some(coldframe) = coldframe() else { return println!("not run: build the command first (`make build`)") };
    let plain = match serve(folder, &[]) {
        Ok(plain) => plain,
        Err(why) => return println!("not run: {why}"),
    };
    let half = (plain.bytes / 2).to_string();
    let backing = folder.to_str().expect("a folder of ours");
    let prefix = [coldframe.to_str().expect("a path"), "--quiet", "run", "--ram", &half, "--backing", backing, "--"];
    match serve(folder, &prefix) {
        Ok(paged) => {
            println!("plain, {} MiB: Zipf 0.99 {:.0}/s, uniform {:.0}/s", plain.bytes >> 20, plain.zipf, plain.uniform);
            println!("paged, {} MiB: Zipf 0.99 {:.0}/s, uniform {:.0}/s", plain.bytes >> 21, paged.zipf, paged.uniform);
            let least = Bound::AtLeast(0.7);
            targets.note("redis at half its working set, Zipf keys: requests/s, plain", paged.zipf / plain.zipf, least);
            let least = Bound::AtLeast(0.7);
            targets.note("same, uniformly random keys", paged.uniform / plain.uniform, least);
        }
        Err(why) => println!("not run: {why}"),
    }
}

/// The `coldframe` command in the same target folder.
fn coldframe() -> Option<PathBuf> {
    let path = std::env::current_exe().ok()?.parent()?.parent()?.join("coldframe");
    path.exists().then_some(path)
}

struct Server<'a>(Child, &'a str);

impl Drop for Server<'_> {
    fn drop(&mut self) {
        // A signal would end `coldframe run` but not the server.
        let _ = ask(self.1, &["shutdown", "nosave"]);
        let _ = self.0.wait();
    }
}

/// The results of a server: requests per second for keys by Zipf's law and for random keys, and the bytes of its data.
struct Served {
    zipf: f64,
    uniform: f64,
    bytes: usize,
}

/// Starts a server, fills it and sends requests.
fn serve(folder: &Path, prefix: &[&str]) -> Result<Served, String> {
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
    let bytes = used.ok_or("redis-server does not say what it uses")?;
    zipf(socket, KEYS / 4)?;
    Ok(Served { zipf: zipf(socket, KEYS)?, uniform: benchmark(socket, "get", KEYS)?, bytes })
}

fn ask(socket: &str, words: &[&str]) -> Result<String, String> {
    let output = Command::new("timeout").args(["--foreground", "60", "redis-cli", "-s", socket]).args(words).output();
    let output = output.map_err(|e| format!("redis-cli: {e} (package redis-tools)"))?;
    let stderr = String::from_utf8_lossy(&output.stdout).into_owned();
    if output.status.success() && !stderr.starts_with("ERR") {
        Ok(stderr)
    } else {
        Err(stderr)
    }
}

/// Requests per second for keys by Zipf's law: all connections send, then all answers are read.
fn zipf(socket: &str, requests: usize) -> Result<f64, String> {
    let keys = Workload::Zipf.string(KEYS, requests, 0);
    let connect = |_| UnixStream::connect(socket).map(BufReader::new);
    let connections: Result<Vec<_>, _> = (0..CONNECTIONS).map(connect).collect();
    let mut connections = connections.map_err(|e| e.to_string())?;
    let started = Instant::now();
    for round in keys.chunks(CONNECTIONS) {
        for (key, connection) in round.iter().zip(&mut connections) {
            let asked = write!(connection.get_mut(), "*2\r\n$3\r\nGET\r\n$16\r\nkey:{:012}\r\n", key >> 1);
            asked.map_err(|e| e.to_string())?;
        }
        for connection in connections.iter_mut().take(round.len()) {
            answer(connection).map_err(|e| e.to_string())?;
        }
    }
    Ok(requests as f64 / started.elapsed().as_secs_f64())
}

/// Reads `$LENGTH`, a line end, LENGTH bytes, a line end; nothing follows a length of -1.
fn answer(connection: &mut BufReader<UnixStream>) -> std::io::Result<()> {
    let mut line = String::new();
    connection.read_line(&mut line)?;
    let Some(len) = line.trim().strip_prefix('$').and_then(|len| len.parse::<i64>().ok()) else {
        return Err(std::io::Error::other(format!("redis-server answered {line:?}")));
    };
    let mut bytes = vec![0; (len + 2).max(0) as usize * usize::from(len >= 0)];
    connection.read_exact(&mut bytes)
}

/// Requests per second of one kind, for random keys.
fn benchmark(socket: &str, kind: &str, requests: usize) -> Result<f64, String> {
    let (keys, requests, bytes) = (KEYS.to_string(), requests.to_string(), VALUE.to_string());
    let words = ["-s", socket, "-n", &requests, "-r", &keys, "-d", &bytes, "--csv", "-t", kind];
    let output = Command::new("timeout").args(["--foreground", "120", "redis-benchmark"]).args(words).output();
    let stderr = output.map_err(|e| format!("redis-benchmark: {e} (package redis-tools)"))?.stdout;
    let stderr = String::from_utf8_lossy(&stderr).into_owned();
    let rate = stderr.lines().last().and_then(|line| line.split(',').nth(1)?.trim_matches('"').parse().ok());
    rate.ok_or_else(|| format!("redis-benchmark said {stderr:?}"))
}
