//! An answer as a file of another form, which its suffix says: data, a table, a page, numbers for a monitor, or a test
//! report.

use std::fmt::Write as _;
use std::path::PathBuf;

use coldframe_answer::{Answer, AnswerError, LimitAnswer, Point, Runs, Verdict};
use coldframe_sheet::quantity::{human_count, human_seconds, human_size};
use serde::Serialize;
use serde_json::{json, Value};

use crate::html::{framed, provenance, Html};
use crate::plot::escape;
use crate::{limit_answer, machine_answer, verdict_answer};

/// The form of a file. `Junit` is a test report, for answers that are yes or no.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FileForm {
    /// `.json`
    Json,
    /// `.csv`
    Csv,
    /// `.md`
    Markdown,
    /// `.html`
    Page,
    /// `.prom`
    Prometheus,
    /// `.xml`
    Junit,
}

/// The suffixes of the forms.
const SUFFIXES: [(&str, FileForm); 6] = [
    ("json", FileForm::Json),
    ("csv", FileForm::Csv),
    ("md", FileForm::Markdown),
    ("html", FileForm::Page),
    ("prom", FileForm::Prometheus),
    ("xml", FileForm::Junit),
];

/// A file to write, and its form.
#[derive(Clone, Debug)]
pub struct ExportFile {
    /// Where it is.
    pub path: PathBuf,
    /// Its form, which its suffix says.
    pub form: FileForm,
}

/// The files of `--export` with their forms. Asked once, before a program runs for minutes.
///
/// # Errors
/// A suffix is no form.
pub fn files(paths: &[PathBuf]) -> Result<Vec<ExportFile>, AnswerError> {
    let file = |path: &PathBuf| {
        let given = path.extension().and_then(|suffix| suffix.to_str()).unwrap_or_default();
        let form = SUFFIXES.iter().find(|(suffix, _)| given.eq_ignore_ascii_case(suffix)).map(|(_, form)| *form);
        let suffixes = SUFFIXES.map(|(suffix, _)| suffix).join(", .");
        let wrong = format!("--export {}: the suffix says the form, and can be .{suffixes}", path.display());
        Ok(ExportFile { path: path.clone(), form: form.ok_or_else(|| AnswerError::usage(wrong))? })
    };
    paths.iter().map(file).collect()
}

/// The same for tables: no page, and no test report.
///
/// # Errors
/// As [`files`], or for another form.
pub fn tables(paths: &[PathBuf]) -> Result<Vec<ExportFile>, AnswerError> {
    let files = files(paths)?;
    match files.iter().find(|file| matches!(file.form, FileForm::Page | FileForm::Junit)) {
        None => Ok(files),
        Some(file) => {
            Err(AnswerError::usage(format!("--export {}: give .json, .csv, .md or .prom", file.path.display())))
        }
    }
}

/// An answer, ready for each form.
#[derive(Clone, Debug)]
pub struct Exported {
    /// The program.
    pub program: String,
    /// Yes or no, if that was asked.
    pub within: Option<bool>,
    /// Its command line, if the answer is a test's.
    pub command: String,
    /// The answer in words.
    pub words: String,
    /// The names of the columns.
    pub columns: Vec<ColumnNames>,
    /// Rows of numbers.
    pub rows: Vec<Vec<Value>>,
    /// The seconds of a run, for the test report.
    pub seconds: f64,
    /// All of it.
    pub json: Value,
}

/// How a column is named: with its unit, as in JSON; as the terminal's tables name it; and what its number says.
#[derive(Clone, Copy, Debug)]
pub struct ColumnNames {
    /// As in JSON.
    pub json: &'static str,
    /// As on the terminal.
    pub heading: &'static str,
    /// What the number says, without its unit.
    pub help: &'static str,
}

/// A column: its names and its value.
pub type Column<T> = (ColumnNames, fn(&T) -> Value);

/// The names of a column.
pub const fn names(json: &'static str, heading: &'static str, help: &'static str) -> ColumnNames {
    ColumnNames { json, heading, help }
}

const LIMIT: ColumnNames = names("ram_bytes", "limit", "Limit of RAM");

/// The columns of a curve on this machine.
const CURVE: [Column<Point>; 7] = [
    (LIMIT, |p| p.ram_bytes.into()),
    (names("seconds", "run time", "Run time that is expected"), |p| p.seconds.into()),
    (names("seconds_low", "from", "Run time at the good end of the range"), |p| p.seconds_low.into()),
    (names("seconds_high", "to", "Run time at the bad end of the range"), |p| p.seconds_high.into()),
    (names("true_faults", "true faults", "Times that the program waits for the pager"), |p| p.true_faults.into()),
    (names("device_reads", "pages from disk", "Pages read from the device"), |p| p.device_reads.into()),
    (names("dirty_evictions", "pages written", "Pages written to the device"), |p| p.dirty_evictions.into()),
];
/// The columns of measured limits.
const MEASURED: [Column<Runs>; 6] = [
    (LIMIT, |runs| runs.ram_bytes.into()),
    (names("swap", "swap", "Where pages go"), |runs| runs.swap_words().into()),
    (names("seconds", "run time", "Median run time of the runs that did the work"), |runs| {
        runs.failed.is_none().then_some(runs.seconds).into()
    }),
    (names("runs", "runs", "Runs in this limit"), |runs| runs.runs.len().into()),
    (names("peak_bytes", "peak", "Largest peak of the memory group"), |runs| runs.peak_bytes().into()),
    (names("page_reads", "page reads", "Pages read from swap in a run"), |runs| runs.page_reads.into()),
];
/// The columns of a verdict.
const VERDICT: [Column<Verdict>; 7] = [
    (names("max_ram_bytes", "limit", "Limit that was asked about (--max-ram)"), |v| v.max_ram_bytes.into()),
    (names("slowdown_percent", "at most slower", "Slowdown that is allowed (--max-slowdown)"), |v| {
        v.slowdown_percent.into()
    }),
    (names("program_seconds", "without a limit", "Run time without a limit"), |v| v.program_seconds.into()),
    (names("limited_seconds", "in the limit", "Run time in the limit"), |v| {
        v.limited.as_ref().filter(|_| v.times.is_some()).map(|runs| runs.seconds).into()
    }),
    (names("peak_bytes", "peak", "Peak of the memory group without a limit"), |v| v.peak_bytes.into()),
    (names("heap_bytes", "heap", "Heap at its peak"), |v| v.need.as_ref().and_then(|need| need.heap_bytes).into()),
    (names("baseline_bytes", "peak in baseline", "Peak that the baseline has"), |v| {
        v.before.as_ref().and_then(|before| before.peak_bytes).into()
    }),
];

impl Exported {
    /// An answer of this program: its words, its rows, and all of it as data.
    pub fn new<T>(
        program: &str,
        words: String,
        columns: &[Column<T>],
        rows: &[T],
        result: &impl Serialize,
    ) -> Exported {
        Exported {
            program: program.into(),
            within: None,
            command: String::new(),
            words,
            columns: columns.iter().map(|(name, _)| *name).collect(),
            rows: rows.iter().map(|row| columns.iter().map(|(_, value)| value(row)).collect()).collect(),
            seconds: 0.0,
            json: serde_json::to_value(result).expect("plain data has a JSON form"),
        }
    }

    /// The answer for this machine.
    pub fn here(answer: &Answer) -> Exported {
        let words = machine_answer::words(answer, None, "");
        let seconds = answer.program_seconds;
        Exported { seconds, ..Exported::new(&answer.program, words, &CURVE, &answer.curve, answer) }
    }

    /// The answer that was measured in a memory group.
    pub fn limit(answer: &LimitAnswer) -> Exported {
        let (words, seconds) = (limit_answer::words(answer, None, ""), answer.program_seconds);
        Exported { seconds, ..Exported::new(&answer.program, words, &MEASURED, &answer.runs, answer) }
    }

    /// Yes or no about a program, and its command line.
    pub fn verdict(verdict: &Verdict, command: &str) -> Exported {
        let (words, row) = (verdict_answer::words(verdict), std::slice::from_ref(verdict));
        let (within, seconds) = (Some(verdict.within && verdict.certain), verdict.program_seconds);
        let command = command.into();
        Exported { within, seconds, command, ..Exported::new(&verdict.program, words, &VERDICT, row, verdict) }
    }

    /// Writes the files: each in the form of its suffix; `page`: what the suffix `html` gives.
    ///
    /// # Errors
    /// As [`Exported::text`]; a file cannot be written.
    pub fn write(&self, files: &[ExportFile], page: &dyn Html) -> Result<(), AnswerError> {
        for ExportFile { path, form } in files {
            let text = self.text(*form, page)?;
            let failed = |e| AnswerError::new(5, format!("{}: cannot be written: {e}", path.display()));
            std::fs::write(path, text).map_err(failed)?;
        }
        Ok(())
    }

    /// The file's text; `page`: what the suffix `html` gives.
    ///
    /// # Errors
    /// A test report of an answer that is not yes or no; as [`Page::html`].
    pub fn text(&self, form: FileForm, page: &dyn Html) -> Result<String, AnswerError> {
        match (form, self.within) {
            (FileForm::Json, _) => {
                Ok(serde_json::to_string_pretty(&self.json).expect("a value is always printable") + "\n")
            }
            (FileForm::Csv, _) => Ok(self.csv()),
            (FileForm::Markdown, _) => Ok(self.markdown()),
            (FileForm::Page, _) => page.html(),
            (FileForm::Prometheus, _) => Ok(self.prometheus()),
            (FileForm::Junit, Some(within)) => Ok(self.junit(within)),
            (FileForm::Junit, None) => {
                Err(AnswerError::new(3, ".xml: a test report says yes or no; ask `coldframe check`"))
            }
        }
    }

    fn csv(&self) -> String {
        let line = |cells: Vec<String>| cells.join(",") + "\n";
        let rows = self.rows.iter().map(|row| line(row.iter().map(cell).collect()));
        line(self.columns.iter().map(|column| column.json.into()).collect()) + &rows.collect::<String>()
    }

    fn markdown(&self) -> String {
        let mark = match self.within {
            Some(true) => "yes: ",
            Some(false) => "**no**: ",
            None => "",
        };
        let line = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
        let title = format!("### {mark}memory of `{}`\n\n", self.program.replace('`', "'"));
        let table = line(self.columns.iter().map(|column| column.heading.into()).collect())
            + &line(self.columns.iter().map(|_| "---:".into()).collect());
        let rounded = |row: &Vec<Value>| {
            line(self.columns.iter().zip(row).map(|(column, cell)| rounded(column.json, cell)).collect())
        };
        let rows: String = self.rows.iter().map(rounded).collect();
        format!("{title}```text\n{}```\n\n{table}{rows}", self.words.replace("```", "'''"))
    }

    /// The text format of Prometheus, which its node exporter reads from files: a gauge for each column, in base units.
    fn prometheus(&self) -> String {
        let mut out = String::new();
        let program = self.program.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
        // What tells the rows apart.
        let rows = self.columns.first().map(|column| column.json).filter(|name| ["ram_bytes", "jobs"].contains(name));
        for (i, column) in self.columns.iter().enumerate().skip(usize::from(rows.is_some())) {
            if !self.rows.iter().any(|row| row[i].is_number()) {
                continue;
            }
            let ColumnNames { json: column, help, .. } = column;
            let unit = unit(column);
            let _ = write!(out, "# HELP coldframe_{column} {help}{unit}.\n# TYPE coldframe_{column} gauge\n");
            for row in self.rows.iter().filter(|row| row[i].is_number()) {
                let label = rows.map_or(String::new(), |name| format!(",{name}=\"{}\"", row[0]));
                let _ = writeln!(out, "coldframe_{column}{{program=\"{program}\"{label}}} {}", row[i]);
            }
        }
        if let Some(within) = self.within {
            out += "# HELP coldframe_within 1: it is within the limit\n# TYPE coldframe_within gauge\n";
            let _ = writeln!(out, "coldframe_within{{program=\"{program}\"}} {}", u8::from(within));
        }
        out
    }

    /// A suite with one test.
    fn junit(&self, within: bool) -> String {
        let (name, words, seconds) = (escape(&self.command), escape(self.words.trim_end()), self.seconds);
        let printed = match within {
            true => format!("<system-out>{words}</system-out>"),
            false => {
                // The sentence, without the breaks of its lines.
                let first = words.split(".\n").next().unwrap_or_default().replace('\n', " ");
                format!("<failure message=\"{first}\" type=\"ram\">{words}</failure>")
            }
        };
        format!(
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuite name=\"coldframe check\" tests=\"1\" \
             failures=\"{}\" errors=\"0\" time=\"{seconds:.3}\">\n<testcase classname=\"coldframe\" name=\"{name}\" \
             time=\"{seconds:.3}\">{printed}</testcase>\n</testsuite>\n",
            u8::from(!within)
        )
    }
}

impl Html for Exported {
    /// The words and the data.
    fn html(&self) -> Result<String, AnswerError> {
        let (name, words) = (escape(&self.program), escape(&self.words));
        let body = format!("<h1 id=\"answer\">{name}</h1><pre>{words}</pre>") + &provenance(&[]);
        framed(&self.program, &body, &json!({ "check": self.json }))
    }
}

/// The unit of a column's numbers, in words after what they say.
fn unit(column: &str) -> &'static str {
    match column {
        _ if column.ends_with("_bytes") => ", in bytes",
        _ if column.ends_with("_percent") => ", in percent",
        _ if column.contains("seconds") => ", in seconds",
        _ if column.ends_with("_ps") => ", in picoseconds",
        _ => "",
    }
}

/// A value as tables for people have it: rounded, with the unit that its column's name says.
fn rounded(column: &str, value: &Value) -> String {
    let Some(number) = value.as_f64() else { return cell(value) };
    let sign = if number < 0.0 { "-" } else { "" };
    match column {
        _ if column.ends_with("_bytes") => format!("{sign}{}", human_size(number.abs() as u64)),
        _ if column.ends_with("_ps") => human_seconds(number / 1e12),
        _ if column.contains("seconds") => human_seconds(number),
        _ if column.ends_with("_percent") => format!("{number:.1} %"),
        _ => format!("{sign}{}", human_count(number.abs().round() as u64)),
    }
}

/// A value as plain text; empty if it is not known.
fn cell(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::html::Page;

    fn exported(within: Option<bool>) -> Exported {
        Exported {
            program: "a\"b<c".into(),
            within,
            command: "./a b".into(),
            words: "no: a\"b needs 3.5 MiB & more\nthan before.\nMeasured: once.\n".into(),
            columns: vec![LIMIT, names("seconds", "run time", "Run time"), names("runs", "runs", "Runs")],
            rows: vec![vec![json!(4096), json!(1.5), Value::Null], vec![json!(8192), Value::Null, Value::Null]],
            seconds: 1.5,
            json: json!({ "kind": "test" }),
        }
    }

    #[test]
    fn each_suffix_has_its_form_and_quotes_what_it_must() {
        let (yes, page) = (exported(Some(false)), Page::default());
        let text = |form| yes.text(form, &page).unwrap();
        assert_eq!(text(FileForm::Csv), "ram_bytes,seconds,runs\n4096,1.5,\n8192,,\n");
        let table = "| limit | run time | runs |\n| ---: | ---: | ---: |\n| 4 KiB | 1.50 s |  |\n| 8 KiB |  |  |\n";
        assert!(text(FileForm::Markdown).contains(table), "{}", text(FileForm::Markdown));
        let prom = text(FileForm::Prometheus);
        // A number that nobody has is not named.
        assert!(prom.contains("# HELP coldframe_seconds Run time, in seconds.\n") && !prom.contains("runs"), "{prom}");
        assert!(prom.contains("\ncoldframe_seconds{program=\"a\\\"b<c\",ram_bytes=\"4096\"} 1.5\n"), "{prom}");
        assert!(!prom.contains("8192") && prom.contains("coldframe_within{program=\"a\\\"b<c\"} 0\n"), "{prom}");
        let junit = text(FileForm::Junit);
        assert!(
            junit.contains("failures=\"1\"") && junit.contains("<testcase classname=\"coldframe\" name=\"./a b\""),
            "{junit}"
        );
        assert!(junit.contains("message=\"no: a&quot;b needs 3.5 MiB &amp; more than before\" "), "{junit}");
        assert_eq!(serde_json::from_str::<Value>(&text(FileForm::Json)).unwrap(), yes.json);
    }

    #[test]
    fn what_is_no_form_is_refused_with_those_that_are() {
        let printed = files(&["a.json".into(), "b.xls".into()]).unwrap_err().to_string();
        assert!(printed.contains("b.xls") && printed.contains(".csv") && printed.contains(".prom"), "{printed}");
        assert_eq!(files(&["a.HTML".into()]).unwrap()[0].form, FileForm::Page);
        assert!(tables(&["a.html".into()]).is_err() && tables(&["a.md".into()]).is_ok());
        assert!(exported(None)
            .text(FileForm::Junit, &Page::default())
            .unwrap_err()
            .to_string()
            .contains("coldframe check"));
    }
}
