//! The Debian package of this build: its contents, and that it works after installation.

use std::path::{Path, PathBuf};
use std::process::Command;

use coldframe_toolbox::{have, skip, verbs};
use serde_json::Value;

const DPKG: coldframe_toolbox::Tool = ("dpkg-deb", "dpkg");

fn text(command: &mut Command) -> String {
    let output = command.output().expect("the command runs");
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// The package of the programs next to this test; `None` if a tool is missing.
fn package(folder: &Path) -> Option<PathBuf> {
    if !have(&[DPKG]) {
        return None;
    }
    let built = Path::new(env!("CARGO_BIN_EXE_coldframe")).parent().unwrap();
    coldframe_toolbox::program("coldframe-lab");
    for library in ["libcoldframe_preload.so", "libcoldframe_plugin.so"] {
        if !built.join(library).exists() {
            skip(&format!("{library} is missing; cargo build -p coldframe-preload -p coldframe-qemu-plugin"));
            return None;
        }
    }
    made(built, folder)
}

/// The package of the programs in a folder.
fn made(built: &Path, folder: &Path) -> Option<PathBuf> {
    let mut command = Command::new("sh");
    command.arg("scripts/deb.sh").arg(built).arg(folder).env("DEB_PACK", "-Zgzip -z1");
    let message = text(command.current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..")));
    Some(PathBuf::from(message.trim()))
}

#[test]
fn the_package_installs_and_its_program_finds_its_libraries_and_has_its_pages() {
    let folder = tempfile::tempdir().unwrap();
    let Some(package) = package(folder.path()) else { return };
    let listed = text(Command::new("dpkg-deb").arg("--contents").arg(&package));
    assert!(listed.lines().all(|line| line.contains(" root/root ") && !line.contains("rws")), "{listed}");
    let control = text(Command::new("dpkg-deb").arg("--info").arg(&package).arg("control"));
    assert!(control.contains("Depends: libc6 (>= 2.") && control.contains("Version: 0."), "{control}");
    // As `dpkg --install` does, into a private root.
    let root = folder.path().join("installed");
    std::fs::create_dir_all(root.join("var/lib/dpkg/info")).unwrap();
    std::fs::create_dir_all(root.join("var/lib/dpkg/updates")).unwrap();
    std::fs::write(root.join("var/lib/dpkg/status"), "").unwrap();
    let mut install = Command::new("dpkg");
    let forced = ["--force-depends", "--force-not-root", "--force-script-chrootless", "--force-bad-path"];
    install
        .arg(format!("--root={}", root.display()))
        .arg("--log=/dev/null")
        .args(forced)
        .arg("--install")
        .arg(&package);
    text(&mut install);
    let program = root.join("usr/bin/coldframe");
    assert_eq!(text(Command::new(&program).arg("-V")), format!("coldframe {}\n", env!("CARGO_PKG_VERSION")));
    let version = text(Command::new(&program).arg("--version"));
    assert!(version.contains("/usr/lib/coldframe/libcoldframe_preload.so\n"), "{version}");
    // On any machine, the library is found where the package puts it.
    let doctor = Command::new(&program).args(["doctor", "--format", "json"]).output().unwrap();
    let doctor: Value = serde_json::from_slice(&doctor.stdout).unwrap();
    let findings = doctor["findings"].as_array().unwrap();
    let library = findings.iter().find(|finding| finding["name"] == "preload library").unwrap();
    assert_eq!(library["health"], "good", "{library}");
    assert!(library["state"].as_str().unwrap().ends_with("usr/lib/coldframe/libcoldframe_preload.so"), "{library}");
    assert!(root.join("usr/lib/coldframe/libcoldframe_plugin.so").exists());
    let verbs = verbs(&text(Command::new(&program).arg("--help")));
    assert!(verbs.len() > 10, "{verbs:?}");
    for verb in verbs {
        let page = root.join(format!("usr/share/man/man1/coldframe-{verb}.1.gz"));
        assert!(page.exists(), "{}", page.display());
    }
    for (place, word) in [
        ("usr/share/bash-completion/completions/coldframe", "complete -F _coldframe"),
        ("usr/share/zsh/vendor-completions/_coldframe", "#compdef coldframe"),
        ("usr/share/fish/vendor_completions.d/coldframe.fish", "complete -c coldframe"),
        ("usr/share/doc/coldframe/copyright", "License: Expat"),
    ] {
        let text = std::fs::read_to_string(root.join(place)).unwrap_or_else(|e| panic!("{place}: {e}"));
        assert!(text.contains(word), "{place} lacks {word}");
    }
}

#[test]
fn lintian_has_nothing_to_say() {
    let folder = tempfile::tempdir().unwrap();
    if !have(&[("lintian", "lintian"), ("strip", "binutils")]) || package(folder.path()).is_none() {
        return;
    }
    // A release's programs are stripped, and have notices.
    let from = Path::new(env!("CARGO_BIN_EXE_coldframe")).parent().unwrap();
    let built = folder.path().join("built");
    std::fs::create_dir(&built).unwrap();
    for name in ["coldframe", "coldframe-lab", "libcoldframe_preload.so", "libcoldframe_plugin.so"] {
        text(Command::new("strip").arg("-o").arg(built.join(name)).arg(from.join(name)));
    }
    std::fs::write(built.join("THIRD-PARTY.txt"), "notices").unwrap();
    let package = made(&built, folder.path()).unwrap();
    let mut lintian = Command::new("lintian");
    lintian.args(["--no-cfg", "--allow-root", "--tag-display-limit", "0"]).arg(&package);
    let output = lintian.output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && !said.contains("E: ") && !said.contains("W: "), "{said}");
}

/// The files that the links of a page name, without those in the network, beside the page.
fn linked(page: &Path) -> Vec<PathBuf> {
    let text = std::fs::read_to_string(page).unwrap_or_else(|e| panic!("{}: {e}", page.display()));
    let links = text.split("](").skip(1).filter_map(|rest| rest.split([')', '#', ' ']).next());
    let own = links.filter(|link| !link.is_empty() && !link.contains("://"));
    own.map(|link| page.parent().unwrap().join(link)).collect()
}

#[test]
fn package_and_tarball_have_what_their_readme_names() {
    let folder = tempfile::tempdir().unwrap();
    let Some(package) = package(folder.path()) else { return };
    if !have(&[("python3", "python3")]) {
        return;
    }
    let (pages, built) = (folder.path().join("pages"), package.parent().unwrap().join("built"));
    text(Command::new("dpkg-deb").arg("-x").arg(&package).arg(&pages));
    std::fs::create_dir(&built).unwrap();
    for name in ["coldframe", "coldframe-lab"] {
        std::os::unix::fs::symlink(coldframe_toolbox::program(name), built.join(name)).unwrap();
    }
    std::fs::write(built.join("THIRD-PARTY.txt"), "notices").unwrap();
    let script = "import sys; from pathlib import Path; sys.path.insert(0, 'scripts'); import dist
dist.OUT = Path(sys.argv[1]); dist.tarball('x86_64', Path(sys.argv[2]), '0', Path(sys.argv[3]))";
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..");
    let mut python = Command::new("python3");
    text(python.args(["-B", "-c", script]).args([folder.path(), &built, &pages]).current_dir(root));
    text(Command::new("tar").args(["-xzf", "coldframe-0-x86_64-linux.tar.gz"]).current_dir(folder.path()));
    let unpacked = folder.path().join("coldframe-0-x86_64-linux");
    for of in [&unpacked, &pages.join("usr/share/doc/coldframe")] {
        let links = linked(&of.join("README.md"));
        assert!(links.len() > 8, "{links:?}");
        let lost: Vec<_> = links.iter().filter(|file| !file.exists()).collect();
        assert!(lost.is_empty(), "{lost:?}");
        for page in links.iter().filter(|file| file.ends_with("live.md") || file.ends_with("SUMMARY.md")) {
            let lost: Vec<_> = linked(page).into_iter().filter(|file| !file.exists()).collect();
            assert!(lost.is_empty(), "{}: {lost:?}", page.display());
        }
    }
    assert!(unpacked.join("LICENSE").exists() && unpacked.join("share/man").exists());
    // In Debian's form, by which it shows what has changed.
    let changelog = pages.join("usr/share/doc/coldframe/changelog.gz");
    let changes = text(Command::new("gzip").arg("-cd").arg(changelog));
    assert!(changes.starts_with("coldframe (0.") && changes.contains("\n -- The coldframe developers <"), "{changes}");
    let control = text(Command::new("dpkg-deb").arg("--info").arg(&package).arg("control"));
    assert!(control.contains("\nHomepage: https://") && control.contains("\nSuggests: "), "{control}");
}

#[test]
fn what_a_release_needs_is_named_before_it_is_built() {
    if !have(&[("python3", "python3")]) {
        return;
    }
    let script = "import sys; from pathlib import Path; sys.path.insert(0, 'scripts'); import dist
dist.PYTHON = Path('/nonexistent'); dist.TOOLS = {'no-such-tool': 'binutils'}
print('\\n'.join(dist.lacking(['sparc'], True)))";
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..");
    let lacks = text(Command::new("python3").args(["-B", "-c", script]).current_dir(root));
    for what in ["no-such-tool; on Debian", "rustup target add sparc", "gcc-sparc", "make python"] {
        assert!(lacks.contains(what), "{what}: {lacks}");
    }
}

#[test]
fn the_bill_of_materials_has_hashes_an_author_and_the_commits_time() {
    if !have(&[("python3", "python3")]) {
        return;
    }
    let script = "import sys; sys.path.insert(0, 'scripts'); import json, notices
print(json.dumps(notices.sbom(notices.linked('x86_64'), '0', 'x86_64')))";
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..");
    let mut python = Command::new("python3");
    python.args(["-B", "-c", script]).current_dir(root).env("SOURCE_DATE_EPOCH", "86400");
    let bill: Value = serde_json::from_str(&text(&mut python)).unwrap();
    let about = &bill["metadata"];
    assert!(about["timestamp"] == "1970-01-02T00:00:00Z" && about["authors"][0]["name"].is_string(), "{about}");
    let crates = bill["components"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|one| one["purl"].as_str().unwrap().contains("pkg:cargo/"));
    let mut hashed = 0;
    for one in crates {
        assert_eq!(one["hashes"][0]["content"].as_str().map(str::len), Some(64), "{one}");
        hashed += 1;
    }
    assert!(hashed > 50, "{hashed} crates");
}

#[test]
fn what_is_not_built_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = Command::new("sh");
    command.arg("scripts/deb.sh").arg(folder.path()).arg(folder.path());
    let output = command.current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..")).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && errors.contains("coldframe is missing; build it with `make dist`"), "{errors}");
}

#[test]
fn the_linker_of_a_release_links_a_program_and_a_library_for_an_old_c_library() {
    if !have(&[("readelf", "binutils"), ("python3", "python3")]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let script = "import sys; from pathlib import Path; sys.path.insert(0, 'scripts'); import dist
folder = Path(sys.argv[1]); compiler = dist.compiler_of(dist.platform.machine())
print(dist.linker(compiler, dist.stub(compiler, folder / 'stub'), folder))";
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..");
    let link = text(Command::new("python3").args(["-B", "-c", script]).arg(folder.path()).current_dir(root));
    std::fs::write(
        folder.path().join("a.rs"),
        "#[no_mangle] pub extern \"C\" fn a() { println!(\"a\") } fn main() { a() }",
    )
    .unwrap();
    for (kind, name) in [("bin", "build_script_build"), ("cdylib", "cdylib")] {
        let mut rustc = Command::new(option_env!("RUSTC").unwrap_or("rustc"));
        rustc.args(["a.rs", "-o", name, "--crate-type", kind]).arg(format!("-Clinker={}", link.trim()));
        text(rustc.current_dir(folder.path()));
    }
    let asked = text(Command::new("readelf").args(["-W", "--version-info", "cdylib"]).current_dir(folder.path()));
    let versions =
        asked.split("Name: GLIBC_2.").skip(1).filter_map(|text| text.split_whitespace().next()?.parse::<u32>().ok());
    assert!(versions.clone().count() > 0 && versions.max() <= Some(28), "{asked}");
}
