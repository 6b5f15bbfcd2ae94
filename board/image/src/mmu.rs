//! Page tables of ARMv5, and the registers of the two aborts.
//!
//! ```text
//! 0x0000_0000  vectors, the start of RAM            section, kernel
//! RAM_BASE     128 MiB as they are                  sections, kernel
//! devices      as they are                          sections, kernel
//! 0x2000_0000  2 MiB a task, paged                  tables of tiny pages (1 KiB, ARM926) or small ones (4 KiB)
//! 0x3000_0000  2 MiB a task, its data and stack     sections, user
//! ```
//!
//! Each task is a domain of its own, and the kernel is domain 0. The register of domains opens the kernel's and that of
//! the running task; a touch of another task's memory is a fault of its domain.
//!
//! The ARM926EJ-S has tiny pages. On the ARM1136 they are not used, although QEMU would accept them.

use core::arch::asm;
use core::cell::UnsafeCell;

use crate::io::{read32, write32};
use crate::{platform, quirks, start};

/// Where the paged space starts.
pub const PAGED: u32 = 0x2000_0000;
/// Tasks there can be.
pub const TASKS: u32 = 4;
/// Megabytes of a task's paged space: one for the program, one for a data region.
pub const TASK_MEGABYTES: u32 = 2;
const PAGED_MEGABYTES: u32 = TASKS * TASK_MEGABYTES;
/// Bytes of a megabyte.
pub const MEGABYTE: u32 = 1 << 20;
/// The programs' own RAM, which is not paged: data and stack.
const USER_RAM: u32 = 0x3000_0000;
/// The last 16 MiB of RAM stay out of the image's way.
const USER_RAM_OFFSET: u32 = 112 * MEGABYTE;
const USER_RAM_MEGABYTES: u32 = TASKS * TASK_MEGABYTES;
const RAM_MEGABYTES: u32 = 128;
/// Memory that stands for byte-addressable non-volatile memory: as large as the paged space, below the program's RAM.
const NVM_OFFSET: u32 = 104 * MEGABYTE;

/// Access permissions of an entry (ARM926EJ-S manual, table 3-10).
#[derive(Clone, Copy)]
enum Access {
    Kernel = 1,
    UserRead = 2,
    UserWrite = 3,
}

#[repr(C, align(16384))]
struct Level1(UnsafeCell<[u32; 4096]>);
#[repr(C, align(4096))]
struct Level2(UnsafeCell<[u32; 1024 * PAGED_MEGABYTES as usize]>);

// SAFETY: entries are read and written through `io` only; one processor.
unsafe impl Sync for Level1 {}
// SAFETY: as above.
unsafe impl Sync for Level2 {}

#[link_section = ".bss.level1"]
static LEVEL1: Level1 = Level1(UnsafeCell::new([0; 4096]));
static LEVEL2: Level2 = Level2(UnsafeCell::new([0; 1024 * PAGED_MEGABYTES as usize]));

extern "C" {
    static RAM_BASE: u8;
}

fn ram_base() -> u32 {
    &raw const RAM_BASE as u32
}

/// Where the memory lies that stands for non-volatile memory.
pub fn nvm() -> u32 {
    ram_base() + NVM_OFFSET
}

macro_rules! read_register {
    ($what:literal) => {{
        let value: u32;
        // SAFETY: reading this register of the system control processor changes nothing.
        unsafe { asm!($what, out(reg) value, options(nostack)) };
        value
    }};
}

/// Main ID register: which processor this is.
pub fn processor() -> u32 {
    read_register!("mrc p15, 0, {}, c0, c0, 0")
}

/// Why the last data abort came, and where.
pub fn data_fault() -> (u32, u32) {
    (read_register!("mrc p15, 0, {}, c5, c0, 0") & 0xf, read_register!("mrc p15, 0, {}, c6, c0, 0"))
}

/// Why the last prefetch abort came.
pub fn prefetch_fault() -> u32 {
    read_register!("mrc p15, 0, {}, c5, c0, 1") & 0xf
}

/// Fault status: no entry in the second-level table.
pub const TRANSLATION: u32 = 0x7;
/// Fault status: the entry does not permit the access.
pub const PERMISSION: u32 = 0xf;

/// The paged space's table.
pub struct PageTable {
    page: u32,
}

impl PageTable {
    /// Copies the vectors, fills the tables and turns the MMU on. The page size is what the processor can do best.
    pub fn enable() -> PageTable {
        let tiny = processor() & 0xfff0 == 0x9260;
        copy_vectors();
        fill_level1(tiny);
        turn_on(LEVEL1.0.get() as u32);
        PageTable { page: if tiny { 1 << 10 } else { 4 << 10 } }
    }

    /// Bytes of a page.
    pub fn page(&self) -> u32 {
        self.page
    }

    /// Maps the page at a virtual address.
    pub fn map(&self, address: u32, to: u32, writable: bool) {
        self.set(address, self.descriptor(to, if writable { Access::UserWrite } else { Access::UserRead }));
    }

    /// Lets no write succeed.
    pub fn protect(&self, address: u32) {
        let entry = read32(self.entry(address));
        if entry != 0 {
            self.set(address, self.descriptor(entry & !(self.page - 1), Access::UserRead));
        }
    }

    /// The next touch faults.
    pub fn unmap(&self, address: u32) {
        self.set(address, 0);
    }

    /// Tiny pages have one permission field, small pages one for each quarter; both are cacheable, write-through.
    fn descriptor(&self, to: u32, access: Access) -> u32 {
        let (access, write_through) = (access as u32, 2 << 2);
        match self.page {
            1024 => to | access << 4 | write_through | 3,
            _ => to | (access * 0b0101_0101) << 4 | write_through | 2,
        }
    }

    fn entry(&self, address: u32) -> u32 {
        let offset = address - PAGED;
        let index = offset / MEGABYTE * 1024 + offset % MEGABYTE / self.page;
        LEVEL2.0.get() as u32 + index * 4
    }

    fn set(&self, address: u32, descriptor: u32) {
        write32(self.entry(address), descriptor);
        quirks::tlb_steps(address & !(self.page - 1), self.page).for_each(invalidate_tlb);
    }
}

fn copy_vectors() {
    let (from, end) = (&raw const start::vectors as u32, &raw const start::vectors_end as u32);
    for at in (from..end).step_by(4) {
        write32(ram_base() + at - from, read32(at));
    }
}

fn fill_level1(tiny: bool) {
    let ram = ram_base();
    for megabyte in 0..RAM_MEGABYTES {
        section(ram + megabyte * MEGABYTE, ram + megabyte * MEGABYTE, Access::Kernel, true);
    }
    section(0, ram, Access::Kernel, true);
    platform::DEVICES.iter().for_each(|at| section(*at, *at, Access::Kernel, false));
    for megabyte in 0..USER_RAM_MEGABYTES {
        let (offset, domain) = (megabyte * MEGABYTE, domain(megabyte / TASK_MEGABYTES) << 5);
        section(USER_RAM + offset, ram + USER_RAM_OFFSET + offset | domain, Access::UserWrite, true);
    }
    // A fine table or a coarse one; bit 4 must be one in ARMv5.
    let kind = (if tiny { 3 } else { 1 }) | 1 << 4;
    for megabyte in 0..PAGED_MEGABYTES {
        let domain = domain(megabyte / TASK_MEGABYTES) << 5;
        level1(PAGED + megabyte * MEGABYTE, LEVEL2.0.get() as u32 + megabyte * 4096 | domain | kind);
    }
}

/// The domain of a task; the kernel's is 0.
const fn domain(task: u32) -> u32 {
    1 + task
}

/// The register of domains while a task runs: permissions are checked in the kernel's domain and in the task's, and
/// there is no access to the others.
const fn open_domains(task: u32) -> u32 {
    1 | 1 << (2 * domain(task))
}

/// A task's domain is open from now on, and no other task's.
pub fn enter_domain(task: u32) {
    // SAFETY: the kernel's domain stays open, and nothing of it is in another.
    unsafe { asm!("mcr p15, 0, {domains}, c3, c0, 0", domains = in(reg) open_domains(task), options(nostack)) };
}

fn section(address: u32, to: u32, access: Access, cached: bool) {
    level1(address, to | (access as u32) << 10 | 1 << 4 | if cached { 2 << 2 } else { 0 } | 2);
}

fn level1(address: u32, descriptor: u32) {
    write32(LEVEL1.0.get() as u32 + (address >> 20) * 4, descriptor);
}

fn turn_on(table: u32) {
    // SAFETY: the table maps this code and all its data at their own addresses, so the next instruction is where it
    // was.
    unsafe {
        asm!(
            "mcr p15, 0, {zero}, c7, c7, 0",    // invalidate the caches
            "mcr p15, 0, {zero}, c8, c7, 0",    // and the TLBs
            "mcr p15, 0, {table}, c2, c0, 0",
            "mcr p15, 0, {domains}, c3, c0, 0",
            "mrc p15, 0, {control}, c1, c0, 0",
            "bic {control}, {control}, #0x2000",     // vectors at 0
            "bic {control}, {control}, #0x00800000", // tables of ARMv5 on the ARM1136 too
            "orr {control}, {control}, #0x1000",     // instruction cache
            "orr {control}, {control}, #0x5",        // data cache, MMU
            "mcr p15, 0, {control}, c1, c0, 0",
            "nop",
            "nop",
            zero = in(reg) 0, table = in(reg) table, domains = in(reg) open_domains(0), control = out(reg) _,
            options(nostack));
    }
}

fn invalidate_tlb(address: u32) {
    // SAFETY: drains the write buffer and forgets a translation that the table may have changed.
    unsafe {
        asm!(
            "mcr p15, 0, {zero}, c7, c10, 4",
            "mcr p15, 0, {address}, c8, c5, 1",
            "mcr p15, 0, {address}, c8, c6, 1",
            zero = in(reg) 0, address = in(reg) address, options(nostack));
    }
}

/// The instruction cache forgets what lay in a frame or buffer before.
pub fn invalidate_instructions() {
    // SAFETY: drains the write buffer and invalidates the instruction cache; nothing is lost.
    unsafe {
        asm!("mcr p15, 0, {zero}, c7, c10, 4", "mcr p15, 0, {zero}, c7, c5, 0", zero = in(reg) 0, options(nostack));
    }
}
