"""Kernel swap for measurements: memory cgroups, and swap on a file, on zram, or on a file behind zswap. Needs root.

    with swap.Zram("", 1 << 30), swap.Group(limit=8 << 20) as group:
        subprocess.Popen(command, preexec_fn=lambda: swap.join(group))

Leaving a `with` takes away what it has made, also if the script is interrupted: signals wait until that is done.
"""

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time

MIB = 1 << 20
CGROUPS = "/sys/fs/cgroup/memory"
ZSWAP = "/sys/module/zswap/parameters"


def read(path: str) -> str:
    try:
        with open(path) as file:
            return file.read().strip()
    except OSError:
        return ""


def write(path: str, text: object) -> None:
    with open(path, "w") as file:
        file.write(str(text))


def meminfo(field: str) -> int:
    lines = [line for line in read("/proc/meminfo").splitlines() if line.startswith(f"{field}:")]
    return int(lines[0].split()[1]) * 1024 if lines else 0


def private(group: str) -> int:
    """Bytes charged to a group now, without pages of files, which the kernel drops at no cost."""
    cache = [line for line in read(f"{group}/memory.stat").splitlines() if line.startswith("total_cache ")]
    return int(read(f"{group}/memory.usage_in_bytes") or 0) - (int(cache[0].split()[1]) if cache else 0)


def disk_written(folder: str) -> int:
    """Bytes written so far to the disk that holds a folder."""
    device = os.stat(folder).st_dev
    fields = read(f"/sys/dev/block/{os.major(device)}:{os.minor(device)}/stat").split()
    return int(fields[6]) * 512 if len(fields) > 6 else 0


class Group:
    """A memory cgroup of version 1, at most this many bytes large. `awake`: its statistics are read all the time, and
    `peak` is the most private memory seen. On Linux 6.18 a process in such a group with only anonymous memory can be
    killed with swap free, it seems because the kernel scans by stale statistics; reading them ended that."""

    def __init__(self, limit: int = -1, awake: bool = False):
        self.path = f"{CGROUPS}/coldframe-{os.getpid()}"
        self.limit, self.peak, self.ended = limit, 0, threading.Event()
        self.reader = threading.Thread(target=self.read_on, daemon=True) if awake else None

    def __enter__(self):
        os.mkdir(self.path)
        try:
            write(f"{self.path}/memory.limit_in_bytes", self.limit)
            write(f"{self.path}/memory.swappiness", 100)
        except BaseException:
            self.__exit__()
            raise
        if self.reader:
            self.reader.start()
        return self.path

    def read_on(self):
        while not self.ended.wait(0.005):
            self.peak = max(self.peak, private(self.path))

    def __exit__(self, *_):
        with undisturbed():
            self.ended.set()
            for _ in range(100):
                for process in read(f"{self.path}/cgroup.procs").split():
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(int(process), signal.SIGKILL)
                try:
                    return os.rmdir(self.path)
                except OSError:
                    time.sleep(0.05)
            print(f"{self.path} cannot be removed", file=sys.stderr)


def join(group: str) -> None:
    """Puts the calling process into a group."""
    write(f"{group}/cgroup.procs", os.getpid())


def kills(group: str) -> int:
    """Processes that the kernel has killed in a group for want of memory."""
    lines = [line.split() for line in read(f"{group}/memory.oom_control").splitlines()]
    return sum(int(number) for name, number in lines if name == "oom_kill")


@contextlib.contextmanager
def undisturbed():
    """Ctrl-C and SIGTERM are ignored meanwhile, here and in commands that are started."""
    before = {number: signal.signal(number, signal.SIG_IGN) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


class SwapFile:
    """Swap on a file, with or without zswap in front of it."""

    def __init__(self, folder: str, size: int, zswap: bool):
        self.path, self.folder, self.zswap = f"{folder}/swap", folder, zswap
        self.size = size
        self.before = {name: read(f"{ZSWAP}/{name}") for name in ("enabled", "compressor", "max_pool_percent")}

    def __enter__(self):
        try:
            return self.start()
        except BaseException:
            self.__exit__()
            raise

    def start(self):
        with open(self.path, "wb") as file:
            os.fchmod(file.fileno(), 0o600)
            for _ in range(self.size // MIB + 1):
                file.write(bytes(MIB))
            os.fsync(file.fileno())
        if self.zswap:
            try:
                write(f"{ZSWAP}/compressor", "lz4")
            except OSError:
                # A kernel without lz4 has lzo, which is nearly as fast.
                pass
            write(f"{ZSWAP}/max_pool_percent", 50)
            write(f"{ZSWAP}/enabled", "Y")
        on(self.path)
        self.written = disk_written(self.folder)
        return self

    def compressed(self, run) -> int:
        return run.zswap if self.zswap else 0

    def flash(self) -> int:
        return disk_written(self.folder) - self.written

    def __exit__(self, *_):
        with undisturbed():
            subprocess.run(["swapoff", self.path], capture_output=True)
            if self.zswap:
                for name in ("enabled", "max_pool_percent", "compressor"):
                    write(f"{ZSWAP}/{name}", self.before[name])
            with contextlib.suppress(FileNotFoundError):
                os.unlink(self.path)


class Zram:
    """Swap on a zram device with lz4."""

    def __init__(self, _: str, size: int):
        self.size = size

    def __enter__(self):
        with undisturbed():
            self.number = int(read("/sys/class/zram-control/hot_add"))
        self.block = f"/sys/block/zram{self.number}"
        try:
            write(f"{self.block}/comp_algorithm", "lz4")
            write(f"{self.block}/disksize", self.size)
            on(f"/dev/zram{self.number}")
        except BaseException:
            self.__exit__()
            raise
        return self

    def compressed(self, _) -> int:
        # The fifth number is the most memory used so far (Documentation/admin-guide/blockdev/zram.rst).
        return int(read(f"{self.block}/mm_stat").split()[4])

    def flash(self) -> int:
        return 0

    def __exit__(self, *_):
        with undisturbed():
            subprocess.run(["swapoff", f"/dev/zram{self.number}"], capture_output=True)
            write(f"{self.block}/reset", 1)
            write("/sys/class/zram-control/hot_remove", self.number)


def on(path: str) -> None:
    subprocess.run(["mkswap", path], check=True, capture_output=True)
    subprocess.run(["swapon", "-p", "32767", path], check=True, capture_output=True)


def kinds() -> tuple[dict, list]:
    """The kinds of swap that this kernel has, and a message for each that it lacks."""
    if os.geteuid() != 0 or not os.path.isdir(CGROUPS):
        return {}, ["no memory cgroup of version 1, or not root: runs with the kernel's swap are skipped"]
    found, lacking = {"file": lambda folder, size: SwapFile(folder, size, False)}, []
    if os.path.exists("/sys/class/zram-control/hot_add"):
        found["zram"] = Zram
    else:
        lacking.append("no zram (modprobe zram)")
    if os.path.isdir(ZSWAP):
        found["zswap"] = lambda folder, size: SwapFile(folder, size, True)
    else:
        lacking.append("no zswap in this kernel")
    return found, lacking
