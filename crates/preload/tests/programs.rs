//! Real programs, at managed addresses.

mod common;

use std::path::Path;
use std::process::{Child, Command};
use std::time::Duration;

use coldframe_toolbox::{have, skip, Tool};
use common::{good, layout_only, library, CXX};

const PYTHON: Tool = ("python3", "python3");
/// The system's Python, which has the system's numpy.
const SYSTEM_PYTHON: &str = "/usr/bin/python3";

fn text(command: &mut Command) -> String {
    String::from_utf8(good(command).stdout).unwrap().trim().to_string()
}

#[test]
fn python() {
    if !have(&[PYTHON]) {
        return;
    }
    let program = "
import os, subprocess, sys, threading, multiprocessing
rows = [str(i) * 10 for i in range(200_000)]
index = {row: i for i, row in enumerate(rows)}
assert 0x80000000 <= id(rows[77777]) < 0x20000000000
assert subprocess.run(['true']).returncode == 0
child = os.fork()
if child == 0:
    more = [row + 'x' for row in rows]
    os._exit(3 if index['77777' * 10] == 77777 and len(more) == 200_000 else 1)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 3
threads = [threading.Thread(target=lambda: bytearray(10_000_000)) for _ in range(4)]
[t.start() for t in threads]; [t.join() for t in threads]
print(sum(map(len, rows)))
";
    assert_eq!(text(layout_only(SYSTEM_PYTHON).args(["-c", program])), "10888900");
}

#[test]
fn numpy() {
    if !have(&[PYTHON]) {
        return;
    }
    if !Command::new(SYSTEM_PYTHON).args(["-c", "import numpy"]).status().unwrap().success() {
        return skip("numpy is missing; on Debian: apt-get install python3-numpy");
    }
    let program = "
import numpy
a = numpy.arange(10_000_000, dtype=numpy.float64)
assert 0x80000000 <= a.__array_interface__['data'][0] < 0x20000000000
a.resize(20_000_000); a[::2] += 1; m = a[:1_000_000].reshape(1000, 1000)
print(a.sum(), numpy.sort(a)[-1], float((m @ m).trace()) > 0)
";
    assert_eq!(text(layout_only(SYSTEM_PYTHON).args(["-c", program])), "50000005000000.0 9999999.0 True");
}

#[test]
fn sqlite() {
    if !have(&[("sqlite3", "sqlite3")]) {
        return;
    }
    let sql = "create table t(a,b);
with recursive c(x) as (select 1 union all select x+1 from c where x<200000) insert into t select x, hex(x*7919) from c;
create index i on t(b); select count(*), max(b), sum(a) from t; pragma integrity_check;";
    let plain = text(Command::new("sqlite3").args([":memory:", sql]));
    assert!(plain.starts_with("200000|") && plain.ends_with("ok"), "{plain}");
    assert_eq!(text(layout_only("sqlite3").args([":memory:", sql])), plain);
}

#[test]
fn bzip2() {
    if !have(&[("bzip2", "bzip2")]) {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let data: Vec<u8> = (0..3_000_000u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8 & 31).collect();
    std::fs::write(dir.path().join("data"), &data).unwrap();
    good(layout_only("bzip2").args(["-k", "data"]).current_dir(dir.path()));
    assert_eq!(good(layout_only("bzip2").args(["-dc", "data.bz2"]).current_dir(dir.path())).stdout, data);
}

#[test]
fn bash_perl_git() {
    if !have(&[("bash", "bash"), ("perl", "perl"), ("git", "git")]) {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let script = "for i in 1 2 3; do (echo $i; echo $((i * i)) | cat) & done | sort -n | tr '\\n' ' '; x=$(seq 100000 | wc -l); echo $x";
    assert_eq!(text(layout_only("bash").args(["-c", script])), "1 1 2 3 4 9 100000");
    let script =
        "my %h; $h{$_} = $_ for 1..200000; if (fork() == 0) { exit(keys(%h) == 200000 ? 5 : 1) } wait; print $? >> 8;";
    assert_eq!(text(layout_only("perl").args(["-e", script])), "5");
    for words in [
        &["init", "-q"][..],
        &["add", "."],
        &["-c", "user.name=a", "-c", "user.email=b", "commit", "-qm", "x"],
        &["gc", "-q"],
        &["fsck"],
    ] {
        std::fs::write(dir.path().join(format!("f{}", words.len())), "text\n".repeat(100_000)).unwrap();
        good(layout_only("git").args(words).current_dir(dir.path()).env("HOME", dir.path()));
    }
    assert_eq!(text(layout_only("git").args(["log", "--format=%s"]).current_dir(dir.path())), "x");
}

#[test]
fn c_plus_plus() {
    if !have(&[CXX]) {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let source = r#"
#include <cstdint>
#include <iostream>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>
static std::vector<int> before_main(1000, 1);
struct alignas(256) Wide { char c[512]; };
int main() {
    auto managed = [](const void *p) { auto a = (std::uintptr_t)p; return a >= 0x80000000 && a < 0x20000000000; };
    std::map<std::string, std::vector<int>> m;
    for (int i = 0; i < 200000; i++) m["a key that is not small " + std::to_string(i % 5000)].push_back(i);
    std::vector<std::thread> threads; long sums[4] = {};
    for (int k = 0; k < 4; k++) threads.emplace_back([&, k] { std::vector<long> v; for (long i = 0; i < 1000000; i++) v.push_back(i * k); for (auto x : v) sums[k] += x; });
    for (auto &t : threads) t.join();
    auto wide = std::make_unique<Wide[]>(10);
    bool all = managed(before_main.data()) && managed(&*m.begin()) && managed(wide.get()) && (std::uintptr_t)wide.get() % 256 == 0;
    try { throw std::runtime_error("thrown"); } catch (std::exception &e) { std::cout << e.what() << " " << m.size() << " " << sums[3] << " " << all << "\n"; }
}"#;
    let (file, program) = (dir.path().join("a.cpp"), dir.path().join("a"));
    std::fs::write(&file, source).unwrap();
    let status =
        Command::new("g++").args(["-std=c++17", "-O1", "-pthread"]).arg(&file).arg("-o").arg(&program).status();
    assert!(status.unwrap().success());
    assert_eq!(text(&mut layout_only(&program)), "thrown 5000 1499998500000 1");
}

/// A server that ends with its test.
struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn redis_serves_and_saves_in_the_background() {
    if !have(&[
        ("redis-server", "redis-server"),
        ("redis-benchmark", "redis-tools"),
        ("redis-check-rdb", "redis-tools"),
    ]) {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let socket = dir.path().join("s");
    let mut server = Command::new("redis-server");
    server.args(["--port", "0", "--unixsocket"]).arg(&socket).args(["--save", "", "--dir"]).arg(dir.path());
    server.args(["--logfile", "log", "--io-threads", "2"]);
    server.env("LD_PRELOAD", library()).env("COLDFRAME_LAYOUT_ONLY", "1");
    let mut server = Server(server.current_dir(dir.path()).spawn().unwrap());
    let ask = |words: &[&str]| {
        let output = Command::new("redis-cli").arg("-s").arg(&socket).args(words).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    let until = |what: &str, words: &[&str], good: &dyn Fn(&str) -> bool| {
        let reached = (0..300).any(|_| {
            std::thread::sleep(Duration::from_millis(50));
            good(&ask(words))
        });
        assert!(reached, "{what}\n{}", std::fs::read_to_string(dir.path().join("log")).unwrap_or_default());
    };
    until("no start", &["ping"], &|answer| answer == "PONG\n");
    let load = |socket: &Path| {
        good(Command::new("redis-benchmark").arg("-s").arg(socket).args([
            "-n",
            "20000",
            "-r",
            "20000",
            "-d",
            "300",
            // The threads of redis busy-wait for each other, once for each batch of commands. On busy processors that
            // takes a time slice, so there must be few batches.
            "-P",
            "50",
            "-q",
            "-t",
            "set,get,lpush,sadd,hset",
        ]));
    };
    load(&socket);
    for _ in 0..5 {
        assert_eq!(ask(&["bgsave"]), "Background saving started\n");
        load(&socket);
        until("no end of the save", &["info", "persistence"], &|answer| answer.contains("rdb_bgsave_in_progress:0"));
        assert!(ask(&["info", "persistence"]).contains("rdb_last_bgsave_status:ok"));
    }
    ask(&["shutdown", "nosave"]);
    assert!(server.0.wait().unwrap().success());
    good(Command::new("redis-check-rdb").arg("dump.rdb").current_dir(dir.path()));
}
