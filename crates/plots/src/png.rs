//! Pictures as PNG: 8 bits of red, green and blue, one zlib stream (PNG specification, third edition).

use std::io::Write;

/// Writes a picture of `width` by `height` with `pixel(x, y)`, rows from the top.
pub fn png(width: u32, height: u32, pixel: impl Fn(u32, u32) -> [u8; 3]) -> Vec<u8> {
    let mut raw = Vec::with_capacity((width as usize * 3 + 1) * height as usize);
    for y in 0..height {
        // Filter 0: unchanged bytes.
        raw.push(0);
        (0..width).for_each(|x| raw.extend(pixel(x, y)));
    }
    let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::default());
    // Writing to memory does not fail.
    let data = encoder.write_all(&raw).and_then(|()| encoder.finish()).unwrap_or_default();
    let head = [&width.to_be_bytes()[..], &height.to_be_bytes(), &[8, 2, 0, 0, 0]].concat();
    [b"\x89PNG\r\n\x1a\n", &chunk(b"IHDR", &head)[..], &chunk(b"IDAT", &data), &chunk(b"IEND", &[])].concat()
}

fn chunk(name: &[u8; 4], data: &[u8]) -> Vec<u8> {
    let mut sum = flate2::Crc::new();
    sum.update(name);
    sum.update(data);
    [&(data.len() as u32).to_be_bytes()[..], name, data, &sum.sum().to_be_bytes()].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The end chunk's checksum is printed in the specification: ae 42 60 82.
    #[test]
    fn a_picture_has_the_chunks_of_the_specification() {
        let picture = png(2, 1, |x, _| [x as u8 * 255, 0, 0]);
        assert!(picture.starts_with(b"\x89PNG\r\n\x1a\n\x00\x00\x00\x0dIHDR\x00\x00\x00\x02\x00\x00\x00\x01\x08\x02"));
        assert!(picture.ends_with(b"\x00\x00\x00\x00IEND\xae\x42\x60\x82"));
    }
}
