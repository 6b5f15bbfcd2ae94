//! Decompression of bzip2, from the format's description by Joe Tsai ("BZIP2: Format Specification", 2016).
//!
//! ```text
//! "BZh" level | block ... | end mark, checksum | the same again ...          bit stream, highest bit first
//! block: mark, checksum, place of the original row, symbols used, Huffman tables, selectors, codes
//! codes -Huffman-> ranks -move to front, runs of zeros-> bytes -inverse Burrows-Wheeler-> bytes -runs of 4 + n-> text
//! ```
//! A block holds at most 900,000 bytes, so memory is bounded whatever the data claim.

use std::io::{self, BufRead, Read};

const BLOCK_MARK: u64 = 0x3141_5926_5359;
const END_MARK: u64 = 0x1772_4538_5090;
/// Codes that share a Huffman table.
const GROUP: usize = 50;
/// Longest code, in bits.
const CODE_MAX: u32 = 20;

/// A decompressed stream.
pub(super) struct Bzip2<R> {
    bits: Bits<R>,
    /// Bytes of a block at most; 0 before a stream's header.
    block_max: usize,
    /// The block after the inverse transform, and how far it is handed out.
    tt: Vec<u32>,
    left: usize,
    at: u32,
    /// The byte of a run, how often it came (up to 4), and how often it comes once more.
    last: Option<u8>,
    run: u32,
    repeat: u32,
    checksum: u32,
    expected: u32,
    in_block: bool,
    combined: u32,
}

/// Bits of a reader, highest first.
struct Bits<R> {
    inner: R,
    held: u64,
    count: u32,
}

fn corrupt(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

impl<R: BufRead> Bits<R> {
    fn byte(&mut self) -> io::Result<Option<u8>> {
        let byte = self.inner.fill_buf()?.first().copied();
        if byte.is_some() {
            self.inner.consume(1);
        }
        Ok(byte)
    }

    #[inline]
    fn take(&mut self, count: u32) -> io::Result<u32> {
        while self.count < count {
            let byte = self.byte()?.ok_or(io::ErrorKind::UnexpectedEof)?;
            self.held = self.held << 8 | u64::from(byte);
            self.count += 8;
        }
        self.count -= count;
        Ok((self.held >> self.count) as u32 & (((1u64 << count) - 1) as u32))
    }

    fn mark(&mut self) -> io::Result<u64> {
        Ok(u64::from(self.take(24)?) << 24 | u64::from(self.take(24)?))
    }
}

/// One Huffman table: for each length, the first code beyond it and what to add for the place in `symbols`.
struct Table {
    limit: [i64; CODE_MAX as usize + 2],
    offset: [i64; CODE_MAX as usize + 2],
    symbols: Vec<u16>,
}

impl Table {
    fn new(lengths: &[u8]) -> io::Result<Table> {
        let mut table = Table { limit: [0; 22], offset: [0; 22], symbols: Vec::with_capacity(lengths.len()) };
        let (mut code, mut place) = (0i64, 0i64);
        for length in 1..=CODE_MAX as usize {
            let of_length = lengths.iter().enumerate().filter(|(_, l)| usize::from(**l) == length);
            let before = table.symbols.len();
            table.symbols.extend(of_length.map(|(symbol, _)| symbol as u16));
            let count = (table.symbols.len() - before) as i64;
            table.offset[length] = place - code;
            code += count;
            place += count;
            table.limit[length] = code;
            if code > 1 << length {
                return Err(corrupt("a Huffman table has too many codes"));
            }
            code <<= 1;
        }
        Ok(table)
    }

    #[inline]
    fn symbol<R: BufRead>(&self, bits: &mut Bits<R>) -> io::Result<u16> {
        let mut code = 0i64;
        for length in 1..=CODE_MAX as usize {
            code = code << 1 | i64::from(bits.take(1)?);
            if code < self.limit[length] {
                let place = code + self.offset[length];
                return self.symbols.get(place as usize).copied().ok_or_else(|| corrupt("an unknown Huffman code"));
            }
        }
        Err(corrupt("a Huffman code is too long"))
    }
}

impl<R: BufRead> Bzip2<R> {
    pub(super) fn new(inner: R) -> Bzip2<R> {
        Bzip2 {
            bits: Bits { inner, held: 0, count: 0 },
            block_max: 0,
            tt: Vec::new(),
            left: 0,
            at: 0,
            last: None,
            run: 0,
            repeat: 0,
            checksum: u32::MAX,
            expected: 0,
            in_block: false,
            combined: 0,
        }
    }

    /// Reads up to the next block; `false` at the end of the last stream.
    fn next_block(&mut self) -> io::Result<bool> {
        if std::mem::take(&mut self.in_block) {
            if !self.checksum != self.expected {
                return Err(corrupt("a block's checksum is wrong"));
            }
            self.combined = self.combined.rotate_left(1) ^ self.expected;
        }
        loop {
            if self.block_max == 0 && !self.header()? {
                return Ok(false);
            }
            match self.bits.mark()? {
                BLOCK_MARK => return self.block().map(|()| true),
                END_MARK => self.end()?,
                _ => return Err(corrupt("neither a block nor the end of the stream")),
            }
        }
    }

    fn header(&mut self) -> io::Result<bool> {
        let Some(first) = self.bits.byte()? else { return Ok(false) };
        let mut rest = [0; 3];
        self.bits.inner.read_exact(&mut rest)?;
        let level = rest[2].wrapping_sub(b'0');
        if first != b'B' || rest[..2] != *b"Zh" || !(1..=9).contains(&level) {
            return Err(corrupt("what follows the first stream is not bzip2"));
        }
        self.block_max = usize::from(level) * 100_000;
        self.combined = 0;
        Ok(true)
    }

    fn end(&mut self) -> io::Result<()> {
        let expected = self.bits.take(16)? << 16 | self.bits.take(16)?;
        if expected != self.combined {
            return Err(corrupt("the stream's checksum is wrong"));
        }
        (self.bits.count, self.bits.held, self.block_max) = (0, 0, 0);
        Ok(())
    }

    fn block(&mut self) -> io::Result<()> {
        self.expected = self.bits.take(16)? << 16 | self.bits.take(16)?;
        if self.bits.take(1)? == 1 {
            return Err(corrupt("a randomised block, which only bzip2 0.9 wrote"));
        }
        let origin = self.bits.take(24)?;
        let used = self.used()?;
        let tables = self.bits.take(3)? as usize;
        if !(2..=6).contains(&tables) || used.is_empty() {
            return Err(corrupt("an impossible number of symbols or tables"));
        }
        let selectors = self.selectors(tables)?;
        let tables = (0..tables).map(|_| self.table(used.len() + 2)).collect::<io::Result<Vec<_>>>()?;
        self.codes(used, &selectors, &tables)?;
        self.invert(origin)
    }

    /// The bytes that occur in the block.
    fn used(&mut self) -> io::Result<Vec<u8>> {
        let rows = self.bits.take(16)?;
        let mut used = Vec::with_capacity(256);
        for row in (0..16u32).filter(|row| rows >> (15 - row) & 1 == 1) {
            let columns = self.bits.take(16)?;
            used.extend((0..16u32).filter(|column| columns >> (15 - column) & 1 == 1).map(|c| (row * 16 + c) as u8));
        }
        Ok(used)
    }

    /// Which table each group of codes uses, as ranks in a list that moves to the front.
    fn selectors(&mut self, tables: usize) -> io::Result<Vec<u8>> {
        let count = self.bits.take(15)?;
        let mut order: Vec<u8> = (0..tables as u8).collect();
        (0..count)
            .map(|_| {
                let mut rank = 0;
                while self.bits.take(1)? == 1 {
                    rank += 1;
                    if rank == tables {
                        return Err(corrupt("an unknown Huffman table"));
                    }
                }
                order[..=rank].rotate_right(1);
                Ok(order[0])
            })
            .collect()
    }

    fn table(&mut self, symbols: usize) -> io::Result<Table> {
        let mut length = self.bits.take(5)?;
        let mut lengths = Vec::with_capacity(symbols);
        for _ in 0..symbols {
            loop {
                if !(1..=CODE_MAX).contains(&length) {
                    return Err(corrupt("a Huffman code's length is impossible"));
                }
                if self.bits.take(1)? == 0 {
                    break;
                }
                length = if self.bits.take(1)? == 0 { length + 1 } else { length - 1 };
            }
            lengths.push(length as u8);
        }
        Table::new(&lengths)
    }

    /// Huffman codes to the bytes of the transformed block, kept in the low bytes of `tt`.
    fn codes(&mut self, mut order: Vec<u8>, selectors: &[u8], tables: &[Table]) -> io::Result<()> {
        let end = order.len() as u16 + 1;
        let (mut run, mut weight) = (0usize, 1usize);
        self.tt.clear();
        for selector in selectors {
            let table = &tables[usize::from(*selector)];
            for _ in 0..GROUP {
                let symbol = table.symbol(&mut self.bits)?;
                if symbol <= 1 {
                    run += weight << symbol;
                    weight <<= 1;
                    if run > self.block_max {
                        return Err(corrupt("a run is longer than its block"));
                    }
                    continue;
                }
                self.tt.resize(self.tt.len() + run, u32::from(order[0]));
                (run, weight) = (0, 1);
                if self.tt.len() >= self.block_max + usize::from(symbol == end) {
                    return Err(corrupt("a block is longer than its stream allows"));
                }
                if symbol == end {
                    return Ok(());
                }
                let rank = usize::from(symbol - 1);
                order[..=rank].rotate_right(1);
                self.tt.push(u32::from(order[0]));
            }
        }
        Err(corrupt("a block has no end"))
    }

    /// Links each byte to its successor, in the upper 24 bits of `tt`.
    fn invert(&mut self, origin: u32) -> io::Result<()> {
        let mut starts = [0u32; 257];
        self.tt.iter().for_each(|byte| starts[*byte as usize + 1] += 1);
        (1..257).for_each(|byte| starts[byte] += starts[byte - 1]);
        for place in 0..self.tt.len() {
            let byte = (self.tt[place] & 0xff) as usize;
            self.tt[starts[byte] as usize] |= (place as u32) << 8;
            starts[byte] += 1;
        }
        let first = self.tt.get(origin as usize).ok_or_else(|| corrupt("the original row is outside its block"))?;
        (self.at, self.left) = (*first >> 8, self.tt.len());
        (self.last, self.run, self.repeat) = (None, 0, 0);
        (self.checksum, self.in_block) = (u32::MAX, true);
        Ok(())
    }

    /// The next byte of the open block.
    #[inline]
    fn next(&mut self) -> Option<u8> {
        if self.repeat > 0 {
            self.repeat -= 1;
            return self.last;
        }
        loop {
            if self.left == 0 {
                return None;
            }
            self.left -= 1;
            let entry = self.tt[self.at as usize];
            self.at = entry >> 8;
            let byte = entry as u8;
            if self.run == 4 {
                self.run = 0;
                if byte == 0 {
                    continue;
                }
                self.repeat = u32::from(byte) - 1;
                return self.last;
            }
            self.run = if self.last == Some(byte) { self.run + 1 } else { 1 };
            self.last = Some(byte);
            return self.last;
        }
    }
}

impl<R: BufRead> Read for Bzip2<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut filled = 0;
        while filled < buffer.len() {
            match self.next() {
                Some(byte) => {
                    self.checksum = self.checksum << 8 ^ CRC[usize::from((self.checksum >> 24) as u8 ^ byte)];
                    buffer[filled] = byte;
                    filled += 1;
                }
                None if filled > 0 => break,
                None if !self.next_block()? => break,
                None => {}
            }
        }
        Ok(filled)
    }
}

/// CRC-32 with the polynomial 0x04c11db7, highest bit first.
const CRC: [u32; 256] = {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let mut value = (byte as u32) << 24;
        let mut bit = 0;
        while bit < 8 {
            value = if value >> 31 == 1 { value << 1 ^ 0x04c1_1db7 } else { value << 1 };
            bit += 1;
        }
        table[byte] = value;
        byte += 1;
    }
    table
};
