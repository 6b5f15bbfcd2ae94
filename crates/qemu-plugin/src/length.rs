//! The length of an x86-64 instruction, by the tables of the Intel SDM, volume 2: appendix A, 2.3 (VEX) and 2.7
//! (EVEX).
//!
//! Only `instruction.rs` needs it; elsewhere QEMU gives the length. The recorder's tests compare the tables with
//! QEMU, on every instruction of some recordings.

/// Longest x86 instruction.
pub const X86_MAX: usize = 15;

/// Length of the x86-64 instruction at the start of `code`; `None` if these tables do not have it.
pub fn x86_64(code: &[u8]) -> Option<usize> {
    let mut at = 0;
    let (mut word, mut address_32, mut wide) = (false, false, false);
    loop {
        match *code.get(at)? {
            0x66 => word = true,
            0x67 => address_32 = true,
            0x26 | 0x2e | 0x36 | 0x3e | 0x64 | 0x65 | 0xf0 | 0xf2 | 0xf3 => {}
            _ => break,
        }
        at += 1;
    }
    if let rex @ 0x40..=0x4f = *code.get(at)? {
        wide = rex & 8 != 0;
        at += 1;
    }
    let opcode = *code.get(at)?;
    at += 1;
    let immediate = if word && !wide { 2 } else { 4 };
    let (operands, immediates) = match opcode {
        0x0f => {
            let opcode = *code.get(at)?;
            at += 1;
            match opcode {
                0x38 => (true, 0).after(&mut at, 1),
                0x3a => (true, 1).after(&mut at, 1),
                _ => two_byte(opcode)?,
            }
        }
        0xc5 => vex(1, *code.get(at + 1)?)?.after(&mut at, 2),
        0xc4 => vex(*code.get(at)? & 31, *code.get(at + 2)?)?.after(&mut at, 3),
        0x62 => vex(*code.get(at)? & 7, *code.get(at + 3)?)?.after(&mut at, 4),
        0x00..=0x3f => match opcode & 7 {
            0..=3 => (true, 0),
            4 => (false, 1),
            5 => (false, immediate),
            _ => return None,
        },
        0x50..=0x5f | 0x6c..=0x6f | 0x90..=0x99 | 0x9b..=0x9f | 0xa4..=0xa7 | 0xaa..=0xaf => (false, 0),
        0x63 | 0x84..=0x8f | 0xd0..=0xd3 | 0xd8..=0xdf | 0xfe | 0xff => (true, 0),
        0x68 | 0xa9 => (false, immediate),
        0x69 | 0x81 | 0xc7 => (true, immediate),
        0x6a | 0x70..=0x7f | 0xa8 | 0xb0..=0xb7 | 0xcd | 0xe0..=0xe7 | 0xeb => (false, 1),
        0x6b | 0x80 | 0x83 | 0xc0 | 0xc1 | 0xc6 => (true, 1),
        0xa0..=0xa3 => (false, if address_32 { 4 } else { 8 }),
        0xb8..=0xbf => (false, if wide { 8 } else { immediate }),
        0xc2 | 0xca => (false, 2),
        0xc8 => (false, 3),
        0xc3 | 0xc9 | 0xcb | 0xcc | 0xcf | 0xd7 | 0xec..=0xef | 0xf1 | 0xf4 | 0xf5 | 0xf8..=0xfd => (false, 0),
        0xe8 | 0xe9 => (false, 4),
        // TEST has an immediate; its neighbours in the group have none.
        0xf6 => (true, if *code.get(at)? & 0x38 <= 8 { 1 } else { 0 }),
        0xf7 => (true, if *code.get(at)? & 0x38 <= 8 { immediate } else { 0 }),
        _ => return None,
    };
    if operands {
        at += mod_rm(code.get(at..)?)?;
    }
    Some(at + immediates).filter(|length| *length <= X86_MAX)
}

/// Whether a ModRM byte follows, and how many bytes of immediates.
type Form = (bool, usize);

trait After {
    /// Adds bytes that come before the operands.
    fn after(self, at: &mut usize, bytes: usize) -> Self;
}

impl After for Form {
    fn after(self, at: &mut usize, bytes: usize) -> Self {
        *at += bytes;
        self
    }
}

fn two_byte(opcode: u8) -> Option<Form> {
    Some(match opcode {
        0x04 | 0x0a | 0x0c | 0x24..=0x27 | 0x36 | 0x39 | 0x3b..=0x3f => return None,
        0x05..=0x09 | 0x0b | 0x0e | 0x30..=0x37 | 0x77 | 0xa0..=0xa2 | 0xa8..=0xaa | 0xc8..=0xcf => (false, 0),
        0x80..=0x8f => (false, 4),
        0x0f | 0x70..=0x73 | 0xa4 | 0xac | 0xba | 0xc2 | 0xc4..=0xc6 => (true, 1),
        _ => (true, 0),
    })
}

/// VEX and EVEX: opcode maps 1 to 3 are 0F, 0F38 and 0F3A.
fn vex(map: u8, opcode: u8) -> Option<Form> {
    match (map, opcode) {
        (1, 0x77) => Some((false, 0)),
        (1, 0x70..=0x73 | 0xc2 | 0xc4..=0xc6) | (3, _) => Some((true, 1)),
        (1 | 2 | 5 | 6, _) => Some((true, 0)),
        _ => None,
    }
}

/// Bytes of ModRM, SIB and displacement.
fn mod_rm(code: &[u8]) -> Option<usize> {
    let byte = *code.first()?;
    let (mode, register) = (byte >> 6, byte & 7);
    if mode == 3 {
        return Some(1);
    }
    let sib = register == 4;
    let base = if sib { *code.get(1)? & 7 } else { register };
    let displacement = match mode {
        0 if base == 5 => 4,
        0 => 0,
        1 => 1,
        _ => 4,
    };
    Some(1 + usize::from(sib) + displacement)
}
