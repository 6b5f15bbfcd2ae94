//! With COLDFRAME_BUNDLE=1 (see `.cargo/config.toml` beside this file) builds the libraries that coldframe loads into
//! other programs and packs them, so that `src/run/bundle.rs` takes them into the program; with COLDFRAME_BUNDLE=FOLDER
//! packs those there (`scripts/dist.py`). Other builds have them beside the program and do nothing here.

use std::path::{Path, PathBuf};
use std::process::Command;

/// What is built, and what comes of it.
const LIBRARIES: [(&str, &str); 2] =
    [("coldframe-preload", "libcoldframe_preload.so"), ("coldframe-qemu-plugin", "libcoldframe_plugin.so")];

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-env-changed=COLDFRAME_BUNDLE");
    println!("cargo:rustc-check-cfg=cfg(bundled)");
    let Ok(asked) = std::env::var("COLDFRAME_BUNDLE") else { return };
    let folder = if asked == "1" { built() } else { PathBuf::from(asked) };
    let packed = PathBuf::from(of("OUT_DIR"));
    for (package, file) in LIBRARIES {
        let bytes =
            std::fs::read(folder.join(file)).unwrap_or_else(|error| panic!("{package} has built no {file}: {error}"));
        println!("cargo:rerun-if-changed={}", folder.join(file).display());
        let out = std::fs::File::create(packed.join(format!("{file}.gz"))).expect("cargo gives a folder to write to");
        let mut out = flate2::write::GzEncoder::new(out, flate2::Compression::best());
        std::io::copy(&mut bytes.as_slice(), &mut out)
            .and_then(|_| out.finish())
            .expect("the packed library is written");
    }
    println!("cargo:rustc-cfg=bundled");
}

fn of(name: &str) -> String {
    std::env::var(name).unwrap_or_else(|_| panic!("cargo says {name} to a build script"))
}

/// Builds the libraries; gives their folder.
fn built() -> PathBuf {
    let home = PathBuf::from(of("CARGO_MANIFEST_DIR"));
    let root = home.ancestors().nth(3).expect("crates/product/answer lies in the workspace");
    // A folder of its own: cargo has locked the other one while this runs.
    let target = Path::new(&of("OUT_DIR")).join("bundle");
    let packages = LIBRARIES.iter().flat_map(|(package, _)| ["-p", package]);
    let mut command = Command::new(of("CARGO"));
    command.args(["build", "--release", "--locked", "--target-dir"]).arg(&target).args(packages).current_dir(root);
    // What cargo says to this build script is not for that build.
    for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("CARGO_FEATURE") || name == "RUSTC_WRAPPER") {
        command.env_remove(name);
    }
    let status = command.env_remove("COLDFRAME_BUNDLE").env_remove("CARGO_ENCODED_RUSTFLAGS").status();
    assert!(status.is_ok_and(|status| status.success()), "the libraries that coldframe loads cannot be built");
    for folder in ["product/preload", "lab/qemu-plugin"] {
        println!("cargo:rerun-if-changed={}", root.join("crates").join(folder).display());
    }
    target.join("release")
}
