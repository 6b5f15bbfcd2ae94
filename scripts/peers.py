#!/usr/bin/env python3
"""Runs other projects' test suites plain, under `coldframe run` in little RAM, and by the kernel; compares each test case.

    python3 scripts/peers.py target/release/coldframe [--only NAME,NAME] [--quick] [--kernel] [--folder target/peers]

The suites are in peers.toml beside this file. A suite is skipped if something is missing; its Debian package is named.
Sources are downloaded into the folder; where they cannot be, their suite is skipped. The folder has the output of each
run, too. Each difference stands in the table with its reason from peers.toml. Without one it is "unknown", and the exit
code is 1.

--kernel, as root: a third run by `coldframe run --by kernel`, in a memory cgroup with swap.
"""

import argparse
import dataclasses
import fnmatch
import glob
import os
import re
import shutil
import signal
import subprocess
import sys
import tarfile
import time
import tomllib
import urllib.request
import xml.etree.ElementTree

HERE = os.path.dirname(os.path.abspath(__file__))
UNKNOWN = "unknown"
# What a case is called that has no result in one of the runs, and the case of a whole run.
ABSENT, WHOLE = "none", "the exit code"


class Missing(Exception):
    """Why a suite cannot run here."""


@dataclasses.dataclass
class Difference:
    arm: str
    case: str
    plain: str
    here: str
    reason: str


def differences(arm: str, plain: dict[str, str], here: dict[str, str], known: dict[str, str]) -> list[Difference]:
    """The cases whose results are not equal, each with the reason of the first pattern of `known` that fits it."""
    found = []
    for case in sorted(plain.keys() | here.keys()):
        a, b = plain.get(case, ABSENT), here.get(case, ABSENT)
        if a != b:
            reason = next((known[pattern] for pattern in known if fnmatch.fnmatchcase(case, pattern)), UNKNOWN)
            found.append(Difference(arm, case, a, b, reason))
    return found


def of_lines(pattern: str, output: str) -> dict[str, str]:
    """Results that a suite prints: the pattern has the groups `case` and `result`. Cases of one name are numbered."""
    results: dict[str, str] = {}
    for match in re.finditer(pattern, output, re.MULTILINE):
        case, number = match["case"], 2
        while case in results:
            case, number = f"{match['case']} ({number})", number + 1
        results[case] = match["result"]
    return results


def of_junit(path: str) -> dict[str, str]:
    """Results of a file in JUnit's format."""
    if not os.path.exists(path):
        return {}
    bad = ("failure", "error", "skipped")
    cases = xml.etree.ElementTree.parse(path).iter("testcase")
    return {case.get("name", ""): next((part.tag for part in case if part.tag in bad), "ok") for case in cases}


class Sources:
    """Sources of suites, unpacked and built in a folder."""

    def __init__(self, folder: str):
        self.folder = folder

    def of(self, suite: dict) -> str:
        """The folder with a suite's built source."""
        source = suite["source"]
        place = os.path.join(self.folder, source["name"])
        if not os.path.exists(f"{place}/.built"):
            shutil.rmtree(place, ignore_errors=True)
            os.makedirs(place)
            with tarfile.open(self.release(source["url"]) if "url" in source else self.debian(source["name"])) as archive:
                archive.extractall(place, filter="data") if hasattr(tarfile, "data_filter") else archive.extractall(place)
            (top,) = glob.glob(f"{place}/*")
            with open(f"{place}.build.log", "wb") as log:
                if subprocess.run(["sh", "-ec", source["build"]], cwd=top, stdout=log, stderr=log, stdin=subprocess.DEVNULL).returncode:
                    raise Missing(f"its source cannot be built; see {log.name}")
            open(f"{place}/.built", "w").close()
        return glob.glob(f"{place}/*")[0]

    def release(self, url: str) -> str:
        path = os.path.join(self.folder, os.path.basename(url))
        if not os.path.exists(path):
            try:
                with urllib.request.urlopen(url, timeout=30) as answer, open(f"{path}.part", "wb") as file:
                    shutil.copyfileobj(answer, file)
            except OSError as error:
                raise Missing(f"{url} cannot be downloaded: {error}") from error
            os.rename(f"{path}.part", path)
        return path

    def debian(self, name: str) -> str:
        """Downloads a source package from where Debian's packages come from here; the system's settings stay."""
        found = glob.glob(f"{self.folder}/{name}_*.orig.tar.*")
        if not found and shutil.which("apt-get"):
            parts = os.path.join(self.folder, "apt")
            os.makedirs(f"{parts}/lists", exist_ok=True)
            for path in glob.glob("/etc/apt/sources.list.d/*") + ["/etc/apt/sources.list"]:
                if path.endswith((".sources", ".list")) and os.path.exists(path):
                    with open(path) as file, open(f"{parts}/{os.path.basename(path)}", "w") as copy:
                        copy.write(re.sub(r"^(Types: *)?deb( .*)?$", lambda m: f"{m[1] or ''}deb-src{m[2] or ''}", file.read(), flags=re.M))
            settings = [f"Dir::Etc::SourceParts={parts}", "Dir::Etc::SourceList=-", f"Dir::State::Lists={parts}/lists"]
            apt = ["apt-get", "-q"] + [word for setting in settings for word in ("-o", setting)]
            with open(f"{self.folder}/apt.log", "wb") as log:
                for command in (["update"], ["source", "--download-only", name]):
                    subprocess.run(apt + command, cwd=self.folder, stdout=log, stderr=log)
            found = glob.glob(f"{self.folder}/{name}_*.orig.tar.*")
        if not found:
            raise Missing(f"Debian's source package {name} cannot be downloaded")
        return found[0]


class Suites:
    """Runs suites, one command after the other."""

    def __init__(self, coldframe: str, folder: str, kernel: bool):
        self.coldframe, self.folder = os.path.abspath(coldframe), os.path.abspath(folder)
        self.arms = {"plain": [], "paged": ["--by", "pager"]} | ({"kernel": ["--by", "kernel"]} if kernel else {})
        self.sources = Sources(self.folder)

    def run(self, suite: dict, arm: str, source: str) -> dict[str, str]:
        """The results of a suite's cases."""
        results: dict[str, str] = {}
        with open(f"{self.folder}/{suite['name']}.{arm}.log", "wb") as log:
            for case in suite.get("cases", [WHOLE]):
                code, output = self.case(suite, arm, source, case, log)
                results[case] = code
                if "pattern" in suite:
                    results |= of_lines(suite["pattern"], output)
                if suite.get("junit"):
                    results |= of_junit(f"{self.folder}/run/junit.xml")
        return results

    def case(self, suite: dict, arm: str, source: str, case: str, log) -> tuple[str, str]:
        folder = f"{self.folder}/run"
        shutil.rmtree(folder, ignore_errors=True)
        os.makedirs(folder)
        words = ["sh", "-c", suite["run"]]
        if arm != "plain":
            words = [self.coldframe, "run", "-q", "--ram", suite["ram"]] + self.arms[arm] + ["--"] + words
        environment = dict(os.environ, CASE=case, SOURCE=source, TMPDIR=folder, LC_ALL="C.UTF-8", TERM="dumb")
        log.write(f"=== {case}\n".encode())
        log.flush()
        start = log.tell()
        child = subprocess.Popen(words, cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)
        try:
            code = f"exit {child.wait(suite['seconds'])}"
        except subprocess.TimeoutExpired:
            code = f"more than {suite['seconds']} s"
        finally:
            # What is left in the session ends with it, also where the suite has made groups of processes.
            subprocess.run(["pkill", "-KILL", "-s", str(child.pid)], check=False) if shutil.which("pkill") else os.killpg(child.pid, signal.SIGKILL)
            child.wait()
        with open(log.name, "rb") as written:
            written.seek(start)
            return code, written.read().decode(errors="replace")

    def judge(self, suite: dict) -> tuple[str, list[Difference]]:
        """What happened to a suite, in words, and what differs."""
        for test, package in suite["needs"]:
            if subprocess.run(["sh", "-c", test], stdin=subprocess.DEVNULL, capture_output=True).returncode:
                raise Missing(f"it needs the Debian package {package}")
        source = self.sources.of(suite) if "source" in suite else ""
        ran, times = {}, []
        for arm in self.arms:
            if arm == "kernel" and "no_kernel" in suite:
                continue
            start = time.monotonic()
            ran[arm] = self.run(suite, arm, source)
            times.append(f"{arm} {time.monotonic() - start:.1f} s")
        plain = ran.pop("plain")
        known = suite.get("known", {})
        found = [difference for arm, results in ran.items() for difference in differences(arm, plain, results, known)]
        return f"{len(plain)} cases, {suite['ram']}: {', '.join(times)}", found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("coldframe")
    parser.add_argument("--only", help="names of suites, separated by commas")
    parser.add_argument("--quick", action="store_true", help="only suites that take seconds")
    parser.add_argument("--kernel", action="store_true", help="run each suite by the kernel, too (root)")
    parser.add_argument("--folder", default="target/peers", help="the folder of sources and outputs")
    arguments = parser.parse_args()
    with open(f"{HERE}/peers.toml", "rb") as file:
        suites = [suite for suite in tomllib.load(file)["suite"] if suite.get("quick") or not arguments.quick]
    if arguments.only:
        chosen = arguments.only.split(",")
        unknown = set(chosen) - {suite["name"] for suite in suites}
        if unknown:
            parser.error(f"--only: no suite is called {', '.join(sorted(unknown))}")
        suites = [suite for suite in suites if suite["name"] in chosen]
    os.makedirs(arguments.folder, exist_ok=True)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: sys.exit("ended"))
    kernel = arguments.kernel
    if kernel and subprocess.run([arguments.coldframe, "run", "-q", "--by", "kernel", "--ram", "64MiB", "--", "true"]).returncode:
        print("kernel: skipped, since `coldframe run --by kernel` does not work here")
        kernel = False
    return table(suites, Suites(arguments.coldframe, arguments.folder, kernel))


def table(suites: list[dict], runs: Suites) -> int:
    """Prints the table; returns the exit code."""
    unknown = 0
    for suite in suites:
        try:
            words, found = runs.judge(suite)
        except Missing as missing:
            print(f"{suite['name']:<20} skipped: {missing}", flush=True)
            continue
        print(f"{suite['name']:<20} {'differs' if found else 'equal':<8} {words}", flush=True)
        for difference in found:
            print(f"    {difference.arm}: {difference.case}: {difference.here}, plain {difference.plain}", flush=True)
            print(f"        {difference.reason}", flush=True)
            unknown += difference.reason == UNKNOWN
    if unknown:
        print(f"{unknown} differences without a known reason; outputs are in {runs.folder}")
    return 1 if unknown else 0


if __name__ == "__main__":
    sys.exit(main())
