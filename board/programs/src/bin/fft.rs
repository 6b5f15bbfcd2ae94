//! A real FFT of five lengths over a chirp with noise; its output is the spectra as bytes. The tables are read-only
//! data; the arithmetic is in soft floats.
#![cfg_attr(target_os = "none", no_std, no_main)]

use programs::write;

programs::program!(run);

fn run() {
    let mut samples = [0f32; 4096];
    fill(&mut samples);
    spectra(&samples);
}

/// A chirp: a square wave with shrinking half periods, with noise from a linear congruential generator (Numerical
/// Recipes' constants).
fn fill(samples: &mut [f32; 4096]) {
    let mut random = 1u32;
    for (i, sample) in samples.iter_mut().enumerate() {
        random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let half = 64 - i as u32 / 80;
        let wave = if (i as u32 / half).is_multiple_of(2) { 1.0 } else { -1.0 };
        *sample = wave + (random >> 16) as f32 / 65536.0;
    }
}

fn spectra(samples: &[f32; 4096]) {
    macro_rules! spectrum {
        ($transform:ident, $length:literal) => {{
            let mut window: [f32; $length] = core::array::from_fn(|i| samples[i]);
            for bin in microfft::real::$transform(&mut window).iter() {
                write(&bin.re.to_le_bytes());
                write(&bin.im.to_le_bytes());
            }
        }};
    }
    spectrum!(rfft_64, 64);
    spectrum!(rfft_256, 256);
    spectrum!(rfft_512, 512);
    spectrum!(rfft_1024, 1024);
    spectrum!(rfft_4096, 4096);
}
