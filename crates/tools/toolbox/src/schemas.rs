//! The schemas of JSON outputs in `docs/schema`, which the types make. `make schema` writes them.

use std::path::Path;

use schemars::generate::SchemaSettings;
use schemars::JsonSchema;
use serde_json::{json, Value};

/// The environment variable with which the files are written instead of compared.
const WRITE: &str = "COLDFRAME_WRITE_SCHEMA";

/// The schema of an output as it is written, not as it may be read.
pub fn of<T: JsonSchema>() -> Value {
    SchemaSettings::draft2020_12().for_serialize().into_generator().into_root_schema_for::<T>().to_value()
}

/// Compares the schemas of outputs, by name, with their files, or writes them. A crate with outputs calls it in a test:
///
/// ```ignore
/// schemas(&[("run", of::<PagerRun>())]);
/// ```
///
/// # Panics
/// A file is not what its type makes, or cannot be written.
pub fn schemas(all: &[(&str, Value)]) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../docs/schema");
    for (name, schema) in all {
        let path = folder.join(format!("{name}.json"));
        let mut whole = json!({
            "$schema": schema["$schema"],
            "$id": format!("urn:coldframe:schema:1:{name}"),
        });
        let rest = schema.as_object().into_iter().flatten().filter(|(key, _)| *key != "$schema");
        whole.as_object_mut().expect("it is an object").extend(rest.map(|(key, value)| (key.clone(), value.clone())));
        let text = serde_json::to_string_pretty(&whole).expect("a value is always printable") + "\n";
        if std::env::var_os(WRITE).is_some() {
            std::fs::write(&path, text).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        } else {
            let there = std::fs::read_to_string(&path).unwrap_or_default();
            assert!(there == text, "{} is not what its type makes; run `make schema`", path.display());
        }
    }
}
