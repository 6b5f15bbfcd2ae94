//! The content of a file for a page: from JSON to results and answers.

use serde::de::IgnoredAny;
use serde::Deserialize;
use serde_json::Value;

use coldframe_answer::{Answer as Here, DEVICE};
use coldframe_experiment::sim_result::{SimResult, SCHEMA_VERSION};
use coldframe_search::json::Answer;

pub const GIVE: &str = "give what `coldframe-lab sim` or `coldframe-lab advise` wrote with --format json";

/// One of a file's objects.
pub enum Given {
    /// What `sim` wrote.
    Run(Box<SimResult>),
    /// What `advise` wrote.
    Advice(Box<Answer>),
    /// What `advise --device here` wrote.
    Here(Box<Here>),
}

/// The fields that show the kind of an object, and that it is complete.
#[derive(Default, Deserialize)]
struct Envelope {
    schema_version: Option<Value>,
    version: Option<Value>,
    kind: Option<Value>,
    config: Option<IgnoredAny>,
    counts: Option<IgnoredAny>,
    search: Option<IgnoredAny>,
}

/// The objects of a file, an array or one; an error says what the file is instead.
pub fn read(bytes: &[u8]) -> Result<Vec<Given>, String> {
    match serde_json::from_slice(bytes).map_err(|e| what_it_is(bytes, &e))? {
        Value::Array(all) if all.is_empty() => Err(format!("holds no result; {GIVE}")),
        Value::Array(all) => all.into_iter().map(Given::read).collect(),
        one => Ok(vec![Given::read(one)?]),
    }
}

impl Given {
    fn read(value: Value) -> Result<Given, String> {
        let envelope = Envelope::deserialize(&value).unwrap_or_default();
        let kind = envelope.kind()?;
        let bad = |e: serde_json::Error| format!("is no result that can be read: {e}; {GIVE}");
        if kind.as_deref() == Some("advice") && value["device"] == DEVICE {
            return serde_json::from_value(value).map(Box::new).map(Given::Here).map_err(bad);
        }
        match (kind.as_deref(), &envelope) {
            (Some("advice"), Envelope { search: Some(_), .. }) => {
                let answer: Answer = serde_json::from_value(value).map_err(bad)?;
                Ok(Given::Advice(Box::new(answer)))
            }
            (None, Envelope { config: Some(_), counts: Some(_), .. }) => {
                serde_json::from_value(value).map(Box::new).map(Given::Run).map_err(bad)
            }
            (Some(kind), _) if kind != "advice" => {
                Err(format!("is of the kind `{kind}`, which a report does not show; {GIVE}"))
            }
            _ => Err(format!("lacks most of a result; {GIVE}")),
        }
    }
}

impl Envelope {
    /// The kind, of an object of this version.
    fn kind(&self) -> Result<Option<String>, String> {
        let text = |value: &Option<Value>| value.as_ref().and_then(Value::as_str).map(String::from);
        match &self.schema_version {
            Some(version) if *version == SCHEMA_VERSION => Ok(text(&self.kind)),
            None => Err(format!("is no result; {GIVE}")),
            Some(version) => {
                let by = text(&self.version).map(|by| format!(" (of coldframe {by})")).unwrap_or_default();
                Err(format!(
                    "is of schema version {version}{by}, and this program reads {SCHEMA_VERSION}; run it again"
                ))
            }
        }
    }
}

/// The kind of a file that is not JSON, as far as its first bytes show it.
fn what_it_is(bytes: &[u8], error: &serde_json::Error) -> String {
    match bytes {
        [] => format!("is empty; {GIVE}"),
        bytes if bytes.starts_with(b"PAR1") => {
            format!("is a Parquet file, and so perhaps a trace; {GIVE}, and the trace with --trace")
        }
        bytes if std::str::from_utf8(bytes).is_err() => format!("is binary, no text; {GIVE}"),
        _ if error.is_eof() => format!("ends in the middle of its JSON ({error}); write it again, and {GIVE}"),
        _ => format!("is no JSON: {error}; {GIVE}"),
    }
}
