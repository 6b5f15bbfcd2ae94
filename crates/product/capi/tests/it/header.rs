//! The header that C programs include is the one that the code makes.

use std::path::Path;

use cbindgen::{Builder, Config, EnumConfig, ExportConfig, Language, RenameRule, Style};

const TOP: &str =
    "/* coldframe: demand paging in the RAM you give. Made by `make header` from crates/product/capi; do not edit.

   Link with -lcoldframe. examples/c/sum.c shows the way. Threads may share handles. */";

fn config() -> Config {
    let names = ["Status", "ColdframeOptions", "ColdframePager", "ColdframeRegion", "ColdframeRange"];
    let lower = ["coldframe_status", "coldframe_options", "coldframe_pager", "coldframe_region", "coldframe_range"];
    let rename = names.into_iter().zip(lower).map(|(from, to)| (from.to_string(), to.to_string())).collect();
    Config {
        language: Language::C,
        cpp_compat: true,
        header: Some(TOP.into()),
        include_guard: Some("COLDFRAME_H".into()),
        no_includes: true,
        sys_includes: ["stdbool.h", "stddef.h", "stdint.h"].map(Into::into).to_vec(),
        style: Style::Both,
        usize_is_size_t: true,
        line_length: 120,
        export: ExportConfig { rename, ..ExportConfig::default() },
        enumeration: EnumConfig { rename_variants: RenameRule::QualifiedScreamingSnakeCase, ..EnumConfig::default() },
        ..Config::default()
    }
}

fn generated() -> String {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let files = ["status.rs", "options.rs", "pager.rs", "region.rs"];
    let builder = files.iter().fold(Builder::new().with_config(config()), |b, file| b.with_src(source.join(file)));
    let mut text = Vec::new();
    builder.generate().expect("the sources can be read").write(&mut text);
    // A safety section in Rust becomes a contract in C.
    String::from_utf8(text).unwrap().replace(" # Safety\n", " Contract:\n")
}

#[test]
fn the_checked_in_header_is_the_generated_one() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../include/coldframe.h");
    let generated = generated();
    for name in
        ["coldframe_start(", "coldframe_region_anonymous(", "coldframe_last_error(", "typedef struct coldframe_range"]
    {
        assert!(generated.contains(name), "{name} is missing:\n{generated}");
    }
    if std::env::var_os("COLDFRAME_WRITE_HEADER").is_some() {
        std::fs::write(&path, &generated).unwrap();
    }
    let there = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(there == generated, "include/coldframe.h is not what the code says; run `make header`");
}
