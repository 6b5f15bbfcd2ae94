"""Every setting, with its unit and default; written by the tests of ``crates/lab/experiment/src/settings.rs``."""

from __future__ import annotations

from typing import TypedDict


class FrontEnd(TypedDict, total=False):
    """``front_end.*``: The hardware between the program's references and the page table."""

    name: str
    """The front end: ``none``, ``swl``, or ``l1`` (also called ``ddb``, after the paper whose caches it has). (name; default: the system's, or none)"""
    reading: str
    """The references behind the front end ``swl`` that the page table sees. (A, C or D; default: A)"""
    paged: str
    """The address ranges that are demand paged, as ``0x400000-0x4d2000,...``, or ``all``. (ranges; default: swl: the trace's code; l1: its read-only mappings; none: all)"""
    instruction: str
    """An instruction takes this time. (time; default: the front end's, or 0)"""
    reference: str
    """A page reference takes this time, without a front end. (time; default: 0; tasks 100ns; in the foreground 1ns)"""


class Machine(TypedDict, total=False):
    """``machine.*``: What the machine can do."""

    reference_bit: bool
    """The hardware has reference bits; otherwise they are emulated by unmapping. (true or false; default: true)"""
    dirty_bit: bool
    """The hardware has dirty bits; otherwise clean pages are mapped read-only. (true or false; default: true)"""
    buffers: int
    """Stopover buffers of the device. (buffers; default: the device's sheet)"""
    evict_batch: int
    """Victims that are evicted together. (pages; default: 1)"""
    read_ahead: int
    """The most pages of a sequential stream that are read ahead with a page, as in the live pager. (pages; default: 0)"""
    dma: bool
    """Tasks: the device moves pages to RAM by itself; otherwise the processor does, as for one string. (true or false; default: true)"""
    cache_line: str
    """Tasks: consecutive references to a page in a buffer or a slot read each of its cache lines once. (size; default: none: there is no cache)"""


class Time(TypedDict, total=False):
    """``time.*``: Times that override the sheets."""

    program: str
    """A page is written to the device. (time; default: the device's sheet)"""
    main_read: str
    """A cache block is read from main memory. (time; default: the sheet of main memory; tasks 0)"""
    xip_read: str
    """A cache block is read in place, from a buffer. (time; default: the device's sheet)"""


class Limit(TypedDict, total=False):
    """``limit.*``: Which part of the trace."""

    skip: int
    """Trace rows skipped at the start. (rows; default: 0)"""
    accesses: int
    """Stop after this many memory accesses below the front end. (accesses; default: none)"""
    sample: str
    """The share of the pages that is simulated, chosen by a hash of each (SHARDS, FAST 2015): misses are estimates, each with its error. (part or %; default: all)"""


class Swap(TypedDict, total=False):
    """``swap.*``: A swap area on flash, or one whose slots are rewritten in place."""

    layout: str
    """How slots are allocated: ``log``, ``linux`` on bare flash, or (swap traces) on a device with a translation layer: ``linux-ftl``, or ``linux-discard`` if it is told of free slots. (name; default: log)"""
    logs: int
    """Swap traces, ``log``: logs, to which processes are distributed by their numbers; each has an open block. (logs; default: 1)"""
    blocks: str
    """Erase blocks of each area, with its priority if there are several: ``1024``, or ``512@5,512@5,1024@0``. (erase blocks; default: 2048; with a backing: ``swap.size``)"""
    slots_per_block: int
    """Slots of an erase block. (slots; default: 32)"""
    read_ahead: str
    """What is read together with a page: ``none``, ``block:8``, ``aligned:8`` or (swap traces) ``pages:8``. (name:slots; default: log: block:8; linux: aligned:8; tasks: none)"""
    collector: str
    """The collector, such as ``cost-benefit`` or ``cost-age-times:4``, and the most victims it takes at a time. (name:blocks; default: greedy:1)"""
    keep: str
    """Swap traces: a copy becomes invalid as in the ``trace``, ``until-touched``, or ``until-read`` (also by read-ahead). (word; default: trace)"""
    backing: str
    """The place of the area, for tasks: ``dram``, ``emmc``, ``nvm``, ``nvm-dr`` (with direct read), ``zram-lz4``, ``zram-zstd`` or ``none``. (name; default: the system's, or none)"""
    size: str
    """The area's size; for an area with a backing also a percentage of the trace's footprint. With ``blocks`` as well, tasks have both: flash takes what the backing has no room for. (size or %; default: with a backing: 128MiB; else ``swap.blocks``)"""
    ratio: str
    """Backings that compress: how many times smaller a page becomes. (times; default: as measured: 3.5 (lz4), 6.9 (zstd))"""
    reads_max: int
    """A page that is read in its slot is copied after this many lines. (lines; default: never)"""
    phone: str
    """Tasks in the foreground: a file whose ``[machine]`` describes the phone. (path; default: data/workloads/phone.toml)"""


class Tasks(TypedDict, total=False):
    """``tasks.*``: Several tasks on one processor, under a scheduler."""

    scheduler: str
    """The scheduler: ``round-robin``, ``cfs`` or ``eevdf``. (name; default: cfs)"""
    prefetch: str
    """When the next task's pages are loaded: ``off``, after 75 or 50 percent of the slice, ``xi=0.6`` or ``timer=0.6``. (% or word; default: 75)"""
    follow: bool
    """The scheduler keeps its prediction, even if another task wakes up. (true or false; default: false)"""


class Sap(TypedDict, total=False):
    """``sap.*``: SAP, where its paper leaves a choice open, and the guard that the paper does not have."""

    list: str
    """A full list of 1,024 pages: the ``oldest-leaves``, or it is ``full`` and takes no more; ``majors-of-8``: each of 1,024 faults stands for the 8 pages that Linux reads with one, and the oldest leaves. (word; default: oldest-leaves)"""
    guard: bool
    """Prefetching stops where it costs more major faults than it spares; the paper has no such guard. (true or false; default: true)"""
    past_switch: bool
    """A list is worked through also after the switch to its task. (true or false; default: false)"""


class Fail(TypedDict, total=False):
    """``fail.*``: A device that sometimes fails."""

    rate: str
    """The part of all transfers that fails, such as ``0.001`` or ``0.1%``. (part or %; default: 0)"""
    seed: int
    """The same seed gives the same failures. (number; default: 1)"""


class Settings(TypedDict, total=False):
    """Settings of one configuration. A missing setting comes from the system, or from the general defaults."""

    system: str
    """A paper's system, whose defaults apply: ``swl``, ``ddb``, ``sap``, ``drswap``, ``lobi`` or ``zram``. (name; default: none; tasks: sap)"""
    policy: str
    """The page replacement policy or oracle; ``coldframe-lab policies`` lists names and parameters. (name:key=value,...; default: the system's, or clock)"""
    handler: str
    """The page fault handler: the order of search, load and move. (name; default: the system's, or parallel; in the foreground sequential)"""
    ram: str | int
    """RAM for pages; a percentage is of the trace's footprint. (size or %; default: ``sim``: six sizes from 5% to 100%)"""
    frames: int
    """RAM as a number of frames, instead of ``ram``. (frames; default: none)"""
    page: str | int
    """The size of a page. (size; default: the system's, or 4KiB)"""
    stream: str
    """The references that are used: instructions, data or both. (I, D or ID; default: the system's, or what the front end sees)"""
    device: str
    """The device with the pages: a shipped data sheet (``coldframe-lab devices``), or the path of one. (name or path; default: the system's, or KFG1G16Q2M; swap traces LOBI-NAND)"""
    main_memory: str
    """The sheet of main memory, if accesses to it have a price; needs the front end ``l1``. (name or path; default: the system's, or none)"""
    front_end: FrontEnd
    machine: Machine
    time: Time
    limit: Limit
    swap: Swap
    tasks: Tasks
    sap: Sap
    fail: Fail
