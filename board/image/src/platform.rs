//! Differences between QEMU's boards besides the chip: device addresses and the clock.
//!
//! Time is counted in instructions: with `-icount shift=10`, each instruction takes 1024 ns of the emulator's time,
//! which the board's timer shows. An instruction counts as one cycle of SWL's board, an ARM926EJ-S at 192 MHz (SWL,
//! LCTES 2007, section 4.1.1). The ratio below converts ticks of that timer to time of that board. Caches and the bus
//! are not modelled, so no time here is evidence of speed.

use coldframe_core::Ps;

/// Nanoseconds of the emulator's time that `-icount shift=10` gives an instruction.
const INSTRUCTION_NS: u64 = 1 << 10;
/// One cycle at the 192 MHz of SWL's board.
const INSTRUCTION_PS: u64 = 1_000_000_000_000 / 192_000_000;

#[cfg(not(feature = "versatilepb"))]
mod board {
    /// Its name in QEMU.
    pub const NAME: &str = "n810";
    /// The chip's window, the peripherals with the timer, and the memory controller: megabytes that are mapped at their
    /// own addresses.
    pub const DEVICES: &[u32] = &[0x0400_0000, 0x4800_0000, 0x6800_0000];
    /// QEMU models the system clock of the OMAP2420 as this (`omap_clk.c`) and never changes it.
    pub const TIMER_HZ: u64 = 32_768;
    /// GPTIMER1: control and counter (OMAP2420 manual, general-purpose timers; QEMU's `omap_gptimer.c`).
    const TIMER: u32 = 0x4802_8000;

    /// Starts the timer, with autoreload.
    pub fn start_timer() {
        crate::io::write32(TIMER + 0x28, 0);
        crate::io::write32(TIMER + 0x24, 3);
    }

    pub fn ticks() -> u32 {
        crate::io::read32(TIMER + 0x28)
    }

    /// GPTIMER2, whose interrupt is line 38 of the controller: bit 6 of its second bank.
    const ALARM: u32 = 0x4802_a000;
    const INTERRUPTS: u32 = 0x480f_e000;

    /// Lets the alarm's interrupt through.
    pub fn enable_alarm() {
        crate::io::write32(INTERRUPTS + 0xa8, 1 << 6);
    }

    /// Interrupts after so many ticks: the counter overflows once.
    pub fn set_alarm(ticks: u32) {
        clear_alarm();
        crate::io::write32(ALARM + 0x28, ticks.wrapping_neg());
        crate::io::write32(ALARM + 0x1c, 2);
        crate::io::write32(ALARM + 0x24, 1);
    }

    /// The alarm is off, and its interrupt is acknowledged.
    pub fn clear_alarm() {
        crate::io::write32(ALARM + 0x24, 0);
        crate::io::write32(ALARM + 0x18, 7);
        crate::io::write32(INTERRUPTS + 0x48, 1);
    }
}

#[cfg(feature = "versatilepb")]
mod board {
    /// Its name in QEMU.
    pub const NAME: &str = "versatilepb";
    /// The system registers with the timer; the interrupt controller and the timers of the alarm.
    pub const DEVICES: &[u32] = &[0x1000_0000, 0x1010_0000];
    /// The counter SYS_24MHZ (Versatile PB user guide, status and system control registers).
    pub const TIMER_HZ: u64 = 24_000_000;

    /// It runs from reset.
    pub fn start_timer() {}

    pub fn ticks() -> u32 {
        crate::io::read32(0x1000_005c)
    }

    /// The first SP804, which counts down at 1 MHz; its interrupt is line 4 of the PL190.
    const ALARM: u32 = 0x101e_2000;
    const INTERRUPTS: u32 = 0x1014_0000;

    /// Lets the alarm's interrupt through.
    pub fn enable_alarm() {
        crate::io::write32(INTERRUPTS + 0x10, 1 << 4);
    }

    /// Interrupts after so many ticks, rounded up to a microsecond: 32 bits, one shot.
    pub fn set_alarm(ticks: u32) {
        clear_alarm();
        crate::io::write32(ALARM, ticks.div_ceil(24));
        crate::io::write32(ALARM + 8, 0b1010_0011);
    }

    /// The alarm is off, and its interrupt is acknowledged.
    pub fn clear_alarm() {
        crate::io::write32(ALARM + 8, 0);
        crate::io::write32(ALARM + 0xc, 1);
    }
}

pub use board::{clear_alarm, enable_alarm, DEVICES, NAME};

/// A clock that never runs back, from the timer's 32 bits.
pub struct Clock {
    last: u32,
    ticks: u64,
}

impl Clock {
    /// From now.
    pub fn start() -> Clock {
        board::start_timer();
        Clock { last: board::ticks(), ticks: 0 }
    }

    /// Ticks since the start. To be asked at least once in 2^32 ticks.
    pub fn ticks(&mut self) -> u64 {
        let ticks = board::ticks();
        self.ticks += u64::from(ticks.wrapping_sub(self.last));
        self.last = ticks;
        self.ticks
    }
}

/// The processor is interrupted in user mode at this time, or as soon as it is there; an earlier alarm is forgotten.
pub fn alarm(at: u64, clock: &mut Clock) {
    board::set_alarm(at.saturating_sub(clock.ticks()).clamp(1, u32::MAX.into()) as u32);
}

/// Instructions that the emulator runs in this many ticks, rounded down; exact up to 2^34 ticks.
pub fn instructions(ticks: u64) -> u64 {
    ticks * 1_000_000_000 / board::TIMER_HZ / INSTRUCTION_NS
}

/// Time of SWL's board for this many ticks.
pub fn time(ticks: u64) -> Ps {
    Ps(instructions(ticks) * INSTRUCTION_PS)
}

/// Ticks for a time of SWL's board, rounded up.
pub const fn ticks(time: Ps) -> u64 {
    (time.0 / INSTRUCTION_PS * INSTRUCTION_NS * board::TIMER_HZ).div_ceil(1_000_000_000)
}
