#!/usr/bin/env python3
"""Boots Debian's own kernels under QEMU, with systemd and cgroup v2, and runs the checks of scripts/vm.checks there.

    python3 scripts/vm.py target/release [--kernel WORD] [--only REGEX] [--show] [--patience SECONDS]
    python3 scripts/vm.py --prepare

The root file system is made once, of Debian packages of this machine's release, in target/vm; no rights are needed but
mmdebstrap's. Each kernel boots from it, and what it writes is dropped. The machine is emulated, without a network. All
kernels run at a time, since checks wait, too. A run under load can take five times as long: judge answers, not times.

    --kernel WORD   only kernels whose version has this word
    --only REGEX    only checks whose names match
    --show          print the output of every check, not only of those that fail
    --patience S    seconds without a line from the machine until it is ended [600]
    --prepare       make the root file system, if its recipe has changed, and boot nothing

Prints one line for each check, with its kernel. Exit code 0 if all checks hold, 1 if one does not, 3 if a tool is missing,
4 if a machine hung or did not start; then the last lines of its console are printed, too.
"""

import argparse
import concurrent.futures
import dataclasses
import hashlib
import os
import re
import select
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
PLACE = os.path.join(os.path.dirname(HERE), "target", "vm")
TOOLS = {"qemu-system-x86_64": "qemu-system-x86", "mmdebstrap": "mmdebstrap", "fakeroot": "fakeroot", "mke2fs": "e2fsprogs"}
# The first kernel of a release that is there: the oldest that is supported, small; and the newest, with zswap and DAMON.
KERNELS = [["linux-image-cloud-amd64"], ["linux-image-6.12-amd64", "linux-image-amd64"]]
PACKAGES = "initramfs-tools systemd-sysv dbus dbus-user-session libpam-systemd udev kmod e2fsprogs f2fs-tools zstd python3 procps systemd-oomd sudo"
# No driver but block devices', NVMe's and virtio's, no documents.
LEFT_OUT = [
    f"/lib/modules/*/kernel/{part}" for part in ("drivers/[!bv]*", "sound/*", "net/*", "arch/x86/kvm/*")
] + ["/usr/share/doc/*", "/usr/share/locale/*", "/usr/share/man/*"]
LEFT_IN = "/lib/modules/*/kernel/drivers/nvme*"
# The initial RAM disk mounts the root, and needs three drivers.
RAM_DISK = """mkdir -p "$1/etc/initramfs-tools/conf.d" "$1/usr/share/initramfs-tools/modules.d"; \
echo MODULES=list > "$1/etc/initramfs-tools/conf.d/vm"; \
printf "virtio_pci\\nvirtio_blk\\next4\\n" > "$1/usr/share/initramfs-tools/modules.d/vm"
""".strip()
# A second node without processors, slower by its table (HMAT), as CXL memory is: the kernel puts it on a lower tier.
NODES = ["-m", "2048", "-machine", "hmat=on"]
for _node, _mib, _ns, _rate in ((0, 1536, 100, "10G"), (1, 512, 300, "5G")):
    _of = f"initiator=0,target={_node},hierarchy=memory"
    NODES += ["-object", f"memory-backend-ram,id=m{_node},size={_mib}M"]
    NODES += ["-numa", f"node,nodeid={_node},memdev=m{_node},initiator=0" + (",cpus=0-1" if _node == 0 else "")]
    NODES += ["-numa", f"hmat-lb,{_of},data-type=access-latency,latency={_ns}"]
    NODES += ["-numa", f"hmat-lb,{_of},data-type=access-bandwidth,bandwidth={_rate}"]
USERS = 'chroot "$1" useradd -m user'
PATIENCE_CHECK_S = 240
END = "END"


@dataclasses.dataclass
class Check:
    user: str
    name: str
    when: str = ""
    command: str = ""
    code: int = 0
    prints: list[str] = dataclasses.field(default_factory=list)
    prints_not: list[str] = dataclasses.field(default_factory=list)


def checks(path: str) -> list[Check]:
    """The checks of a file, whose first lines say how they are written."""
    found: list[Check] = []
    first = ""
    for number, line in enumerate(open(path), 1):
        line = line.rstrip("\n")
        if not line or line.startswith("#"):
            continue
        kind, rest = line[:2], line[2:]
        if match := re.fullmatch(r"(root|user): (.+)", line):
            found.append(Check(*match.groups(), command=first))
        elif not found and kind == "$ ":
            first += rest + "\n"
        elif not found or kind not in ("? ", "$ ", "= ", "+ ", "- "):
            sys.exit(f"vm: {path}:{number}: `{line}` is no line of a check; the file's first lines say how it is written")
        elif kind == "? ":
            found[-1].when += rest + "\n"
        elif kind == "$ ":
            found[-1].command += rest + "\n"
        elif kind == "= ":
            found[-1].code = int(rest)
        else:
            (found[-1].prints if kind == "+ " else found[-1].prints_not).append(rest)
    return found


# Inside the machine.


def shell(user: str, command: str) -> tuple[int | None, str]:
    """Exit code (None: ended for taking too long) and output of a command of a user, in an empty folder on the disk."""
    folder = tempfile.mkdtemp(dir="/var/tmp")
    shutil.chown(folder, user)
    words = ["sh", "-euc", command]
    if user != "root":
        words = ["runuser", "-u", user, "--"] + words
    environment = {"PATH": "/opt/vm:/usr/sbin:/usr/bin:/sbin:/bin", "HOME": os.path.expanduser(f"~{user}"), "LANG": "C.UTF-8"}
    if user != "root":
        environment["XDG_RUNTIME_DIR"] = "/run/user/1000"
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(
            words, cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True
        )
        try:
            code: int | None = process.wait(PATIENCE_CHECK_S)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            code = None
        output.seek(0)
        said = output.read().decode(errors="replace")
    shutil.rmtree(folder, ignore_errors=True)
    return code, said


def judged(check: Check) -> tuple[str, str]:
    """The word for a check's outcome, and what is to be printed below its line if it does not hold or all is shown."""
    if check.when and shell(check.user, check.when)[0] != 0:
        return "skipped", ""
    code, said = shell(check.user, check.command)
    wrong = []
    if code is None:
        wrong.append(f"ended after {PATIENCE_CHECK_S} s")
    elif code != check.code:
        wrong.append(f"exit code {code}, not {check.code}")
    wrong += [f"not printed: {one}" for one in check.prints if not re.search(one, said, re.M)]
    wrong += [f"printed: {one}" for one in check.prints_not if re.search(one, said, re.M)]
    return ("FAILED" if wrong else "ok"), "\n".join(wrong + said.splitlines()[-60:])


def inside(only: str, show: bool) -> None:
    with open("/dev/ttyS1", "w") as line:

        def say(text: str) -> None:
            line.write(text + "\n")
            line.flush()

        say(f"Linux {os.uname().release}, booted in {time.clock_gettime(time.CLOCK_BOOTTIME):.0f} s")
        # The user's systemd, for `systemd-run --user`. It asks by D-Bus, which a machine started for one command lacks.
        for unit in ("dbus.socket", "user@1000"):
            subprocess.run(["systemctl", "start", unit], check=True)
        failed = 0
        for check in (one for one in checks("/opt/vm/vm.checks") if re.search(only, one.name)):
            started = time.monotonic()
            word, told = judged(check)
            say(f"{word:8}{time.monotonic() - started:4.0f} s  {check.user}: {check.name}")
            failed += word == "FAILED"
            for one in told.splitlines() if show or word == "FAILED" else []:
                say(f"    {one}")
        say(f"{END} {failed}")


# Outside.


def known(package: str) -> bool:
    return subprocess.run(["apt-cache", "show", package], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode == 0


def made_root() -> str:
    """The folder with the root file system and the kernels; made if its recipe has changed."""
    kernels = [next(one for one in names if known(one) or one == names[-1]) for names in KERNELS]
    release = subprocess.run(["sh", "-c", '. /etc/os-release; echo "$VERSION_CODENAME"'], capture_output=True, text=True)
    make = ["mmdebstrap", "--quiet", "--variant=minbase", '--aptopt=Apt::Install-Recommends "false"']
    make += [f"--dpkgopt=path-exclude={path}" for path in LEFT_OUT] + [f"--dpkgopt=path-include={LEFT_IN}"]
    make += [f"--essential-hook={RAM_DISK}", f"--include={','.join(kernels + PACKAGES.split())}"]
    make += [f"--customize-hook={USERS}", f"--customize-hook=copy-out /boot .", release.stdout.strip(), "root.tar"]
    # An ext4 file system with the owners of the archive, made without rights.
    pack = 'rm -rf root && mkdir root && tar xf root.tar -C root --exclude="./dev/*" --exclude="./boot/*" && '
    pack += "mke2fs -q -F -t ext4 -O ^has_journal -d root root.ext4 4G; rm -rf root root.tar"
    recipe = hashlib.sha256(repr((make, pack)).encode()).hexdigest()
    boot, stamp = os.path.join(PLACE, "boot"), os.path.join(PLACE, "recipe")
    if os.path.exists(stamp) and open(stamp).read() == recipe:
        return boot
    started = time.monotonic()
    shutil.rmtree(PLACE, ignore_errors=True)
    os.makedirs(PLACE)
    subprocess.run(make, cwd=PLACE, check=True)
    subprocess.run(["fakeroot", "sh", "-c", pack], cwd=PLACE, check=True)
    with open(stamp, "w") as file:
        file.write(recipe)
    print(f"Root file system made in {time.monotonic() - started:.0f} s", flush=True)
    return boot


def job(built: str, *more: str) -> str:
    """A second disk: an archive of what is tested, and more files."""
    path, slow = os.path.join(PLACE, "job.tar"), os.path.join(PLACE, "slow")
    subprocess.run([sys.executable, f"{HERE}/slow.py", "-", "--write", slow], check=True)
    tested = [f"{built}/{name}" for name in ("coldframe", "coldframe-lab", "libcoldframe_preload.so")]
    with tarfile.open(path, "w") as archive:
        for file in (*tested, slow, __file__, f"{HERE}/slow.py", f"{HERE}/measure.py", f"{HERE}/vm.checks", *more):
            archive.add(file, os.path.join("vm", os.path.basename(file)))
    return path


def boot(
    folder: str, version: str, disk: str, inside: str, patience: float, machine: list[str] = NODES, more: str = "", mark: str = ""
) -> int | None:
    """Boots a kernel, runs a command, and prints what it says behind a mark. The number of checks that failed; None if it hung."""
    # On a busy host, emulated timers are late: the kernel must not judge by them whether they work. A panic ends the machine.
    line = "console=ttyS0 root=/dev/vda rootfstype=ext4 rw quiet mitigations=off numa_balancing=disable no_timer_check panic=-1 systemd.show_status=no "
    line += "systemd.mask=systemd-udev-trigger.service systemd.run_success_action=poweroff systemd.run_failure_action=poweroff "
    line += f"systemd.run='tar xf /dev/vdb -C /opt' systemd.run='python3 /opt/vm/{inside}'{more}"
    console = os.path.join(PLACE, f"console-{version}")
    drives = [f"file={PLACE}/root.ext4,if=virtio,format=raw,snapshot=on", f"file={disk},if=virtio,format=raw,readonly=on"]
    command = ["qemu-system-x86_64", "-accel", "tcg,thread=multi", "-cpu", "max", "-smp", "2", *machine]
    command += ["-nodefaults", "-no-user-config", "-display", "none", "-no-reboot", "-append", line]
    command += ["-kernel", f"{folder}/vmlinuz-{version}", "-initrd", f"{folder}/initrd.img-{version}"]
    # An NVMe drive, for the count of its life.
    command += ["-drive", "driver=null-co,size=64M,id=nvme,if=none,node-name=n", "-device", "nvme,serial=1,drive=nvme"]
    command += [word for drive in drives for word in ("-drive", drive)] + ["-serial", f"file:{console}", "-serial", "stdio"]
    failed = None
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE) as emulator:
        try:
            rest = b""
            while select.select([emulator.stdout], [], [], patience)[0]:
                got = os.read(emulator.stdout.fileno(), 1 << 16)
                if not got:
                    break
                *lines, rest = (rest + got).split(b"\n")
                for said in (line.decode(errors="replace").rstrip() for line in lines):
                    if said.startswith(END):
                        failed = int(said.split()[1])
                    else:
                        print(mark + said, flush=True)
        finally:
            emulator.kill()
    if failed is None:
        print(f"vm: Linux {version} ended, or said nothing for {patience:.0f} s; its console:", file=sys.stderr)
        print("".join(open(console, errors="replace").readlines()[-30:]), file=sys.stderr)
    return failed


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("built", nargs="?", default="target/release")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--kernel", default="")
    parser.add_argument("--only", default="")
    parser.add_argument("--show", action="store_true")
    parser.add_argument("--patience", type=float, default=600)
    parser.add_argument("--prepare", action="store_true")
    arguments = parser.parse_args()
    if arguments.inside:
        inside(arguments.only, arguments.show)
        return 0
    missing = [package for tool, package in TOOLS.items() if not shutil.which(tool, path=os.environ["PATH"] + ":/sbin:/usr/sbin")]
    if missing:
        print(f"vm: tools are missing; on Debian: apt-get install {' '.join(missing)}", file=sys.stderr)
        return 3
    folder = made_root()
    if arguments.prepare:
        return 0
    disk = job(arguments.built)
    versions = sorted(name[len("vmlinuz-") :] for name in os.listdir(folder) if name.startswith("vmlinuz-"))
    words = f'vm.py --inside --only "{arguments.only}"' + (" --show" if arguments.show else "")
    more = " coldframe.only" if arguments.only else ""
    chosen = [one for one in versions if arguments.kernel in one]
    with concurrent.futures.ThreadPoolExecutor() as pool:
        found = list(pool.map(lambda one: boot(folder, one, disk, words, arguments.patience, more=more, mark=f"{one}  "), chosen))
    return 4 if None in found else int(any(found))


if __name__ == "__main__":
    sys.exit(main())
