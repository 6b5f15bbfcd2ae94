//! Results as a table, with a row for each configuration, for Arrow and for Parquet.
//!
//! The columns are the same for every table, so files of several sweeps form one data set. A value that a result
//! lacks (an oracle's times) is null. Times are in picoseconds, energies in picojoules, as in the JSON.

use std::sync::Arc;

use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{ArrayRef, Float64Array, RecordBatch, RecordBatchIterator, StringArray, UInt64Array};
use arrow_schema::ffi::FFI_ArrowSchema;
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};
use coldframe_sheet::quantity;
use parquet::basic::{Compression, LogicalType, Repetition, Type as Physical, ZstdLevel};
use parquet::data_type::{ByteArray, ByteArrayType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::types::{Type, TypePtr};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyCapsule};
use serde_json::Value;

/// The type of a column.
#[derive(Clone, Copy)]
enum Kind {
    Text,
    Count,
    /// A size such as `4KiB` in the JSON, bytes in the table.
    Size,
    /// JSON text in the table.
    Json,
}

/// Name, place in a result's JSON, kind.
const COLUMNS: &[(&str, &str, Kind)] = &[
    ("version", "/version", Kind::Text),
    ("trace", "/trace/path", Kind::Text),
    ("trace_sha256", "/trace/sha256", Kind::Text),
    ("fidelity", "/trace/fidelity", Kind::Text),
    ("pages", "/trace/pages", Kind::Count),
    ("system", "/config/system", Kind::Text),
    ("policy", "/config/policy", Kind::Text),
    ("handler", "/config/handler", Kind::Text),
    ("device", "/config/device", Kind::Text),
    ("stream", "/config/stream", Kind::Text),
    ("page_bytes", "/config/page", Kind::Size),
    ("frames", "/config/frames", Kind::Count),
    ("references", "/counts/references", Kind::Count),
    ("true_faults", "/counts/true_faults", Kind::Count),
    ("false_faults", "/counts/false_faults", Kind::Count),
    ("cold_faults", "/counts/cold_faults", Kind::Count),
    ("write_faults", "/counts/write_faults", Kind::Count),
    ("evictions", "/counts/evictions", Kind::Count),
    ("dirty_evictions", "/counts/dirty_evictions", Kind::Count),
    ("forced_evictions", "/counts/forced_evictions", Kind::Count),
    ("walk_sum", "/counts/walk_sum", Kind::Count),
    ("walk_max", "/counts/walk_max", Kind::Count),
    ("page_loads", "/counts/page_loads", Kind::Count),
    ("page_moves", "/counts/page_moves", Kind::Count),
    ("time_total_ps", "/time_ps/total", Kind::Count),
    ("time_idle_ps", "/time_ps/idle", Kind::Count),
    ("time_paging_ps", "/time_ps/paging", Kind::Count),
    ("time_hidden_ps", "/time_ps/hidden", Kind::Count),
    ("stage_pre_process_ps", "/time_ps/stages/pre_process", Kind::Count),
    ("stage_get_freeframe_ps", "/time_ps/stages/get_freeframe", Kind::Count),
    ("stage_load_stopover_ps", "/time_ps/stages/load_stopover", Kind::Count),
    ("stage_trans_host_mem_ps", "/time_ps/stages/trans_host_mem", Kind::Count),
    ("stage_update_mmu_ps", "/time_ps/stages/update_mmu", Kind::Count),
    ("stage_post_process_ps", "/time_ps/stages/post_process", Kind::Count),
    ("true_fault_mean_ps", "/fault_latency_ps/true/mean", Kind::Count),
    ("true_fault_p50_ps", "/fault_latency_ps/true/p50", Kind::Count),
    ("true_fault_p99_ps", "/fault_latency_ps/true/p99", Kind::Count),
    ("true_fault_p999_ps", "/fault_latency_ps/true/p999", Kind::Count),
    ("true_fault_max_ps", "/fault_latency_ps/true/max", Kind::Count),
    ("false_fault_mean_ps", "/fault_latency_ps/false/mean", Kind::Count),
    ("false_fault_max_ps", "/fault_latency_ps/false/max", Kind::Count),
    ("ledger_total_ps", "/ledger/time_ps/total", Kind::Count),
    ("swap_programs", "/swap/programs", Kind::Count),
    ("swap_copies", "/swap/copies", Kind::Count),
    ("swap_erases", "/swap/erases", Kind::Count),
    ("config", "/config", Kind::Json),
];

/// A function that computes a column from others.
type Derived = fn(&Value) -> Option<f64>;

/// Computed columns: name and function.
const DERIVED: &[(&str, Derived)] = &[("faults_per_reference", faults_per_reference)];

fn faults_per_reference(result: &Value) -> Option<f64> {
    let count = |path| result.pointer(path)?.as_u64();
    Some(count("/counts/true_faults")? as f64 / count("/counts/references")?.max(1) as f64)
}

/// A column's values.
enum Cells {
    Text(Vec<Option<String>>),
    Count(Vec<Option<u64>>),
    Real(Vec<Option<f64>>),
}

struct Column {
    name: &'static str,
    cells: Cells,
}

/// A table of results; Arrow's libraries read it directly.
#[pyclass(frozen, module = "coldframe._native")]
pub struct Table {
    columns: Vec<Column>,
    rows: usize,
}

#[pymethods]
impl Table {
    /// Makes the table from results as JSON.
    #[new]
    fn new(results: Vec<String>) -> PyResult<Table> {
        let parsed: Result<Vec<Value>, _> = results.iter().map(|text| serde_json::from_str(text)).collect();
        let results = parsed.map_err(|e| PyRuntimeError::new_err(format!("a result is no JSON: {e}")))?;
        let column = |(name, at, kind): &(&'static str, &str, Kind)| Column { name, cells: cells(&results, at, *kind) };
        let derived =
            DERIVED.iter().map(|(name, of)| Column { name, cells: Cells::Real(results.iter().map(of).collect()) });
        let mut columns: Vec<Column> = COLUMNS.iter().map(column).collect();
        columns.insert(RAM_AT, Column { name: "ram_bytes", cells: Cells::Count(results.iter().map(ram).collect()) });
        columns.extend(derived);
        Ok(Table { columns, rows: results.len() })
    }

    /// Number of rows.
    fn __len__(&self) -> usize {
        self.rows
    }

    /// Names of the columns.
    #[getter]
    fn columns(&self) -> Vec<&'static str> {
        self.columns.iter().map(|column| column.name).collect()
    }

    /// Arrow's schema, by its PyCapsule interface.
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        let schema = FFI_ArrowSchema::try_from(self.schema().as_ref()).map_err(arrow)?;
        PyCapsule::new_with_value(py, schema, c"arrow_schema")
    }

    /// The rows, by Arrow's PyCapsule interface. The requested schema is ignored, which the interface allows.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        drop(requested_schema);
        let schema = self.schema();
        let arrays = self.columns.iter().map(|column| column.cells.arrow()).collect();
        let batch = RecordBatch::try_new(schema.clone(), arrays).map_err(arrow)?;
        let stream = FFI_ArrowArrayStream::new(Box::new(RecordBatchIterator::new([Ok(batch)], schema)));
        PyCapsule::new_with_value(py, stream, c"arrow_array_stream")
    }

    /// The rows as a Parquet file's bytes.
    fn parquet<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let bytes = self.parquet_bytes().map_err(|e| PyRuntimeError::new_err(format!("Parquet: {e}")))?;
        Ok(PyBytes::new(py, &bytes))
    }
}

/// The index of `ram_bytes`; it comes with the frames from which it is computed.
const RAM_AT: usize = 11;

fn arrow(error: ArrowError) -> PyErr {
    PyRuntimeError::new_err(format!("Arrow: {error}"))
}

fn size(text: &Value) -> Option<u64> {
    quantity::bytes(text.as_str()?).ok().map(|bytes| bytes.0)
}

fn ram(result: &Value) -> Option<u64> {
    Some(size(result.pointer("/config/page")?)? * result.pointer("/config/frames")?.as_u64()?)
}

fn cells(results: &[Value], at: &str, kind: Kind) -> Cells {
    let values = results.iter().map(|result| result.pointer(at));
    match kind {
        Kind::Text => Cells::Text(values.map(|v| v?.as_str().map(Into::into)).collect()),
        Kind::Json => Cells::Text(values.map(|v| v.map(Value::to_string)).collect()),
        Kind::Count => Cells::Count(values.map(|v| v?.as_u64()).collect()),
        Kind::Size => Cells::Count(values.map(|v| size(v?)).collect()),
    }
}

impl Cells {
    fn arrow(&self) -> ArrayRef {
        match self {
            Cells::Text(values) => Arc::new(StringArray::from_iter(values)),
            Cells::Count(values) => Arc::new(UInt64Array::from_iter(values)),
            Cells::Real(values) => Arc::new(Float64Array::from_iter(values)),
        }
    }

    fn arrow_type(&self) -> DataType {
        match self {
            Cells::Text(_) => DataType::Utf8,
            Cells::Count(_) => DataType::UInt64,
            Cells::Real(_) => DataType::Float64,
        }
    }

    fn parquet_type(&self, name: &str) -> Result<TypePtr, ParquetError> {
        let (physical, logical) = match self {
            Cells::Text(_) => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
            Cells::Count(_) => (Physical::INT64, Some(LogicalType::integer(64, false))),
            Cells::Real(_) => (Physical::DOUBLE, None),
        };
        let builder = Type::primitive_type_builder(name, physical).with_logical_type(logical);
        builder.with_repetition(Repetition::OPTIONAL).build().map(Arc::new)
    }

    /// Writes the values, and for each row whether it has one.
    fn write(&self, group: &mut SerializedRowGroupWriter<'_, Vec<u8>>) -> Result<(), ParquetError> {
        let mut column = group.next_column()?.expect("the schema has this column");
        match self {
            Cells::Text(values) => {
                let there: Vec<ByteArray> = values.iter().flatten().map(|text| text.as_str().into()).collect();
                column.typed::<ByteArrayType>().write_batch(&there, Some(&levels(values)), None)?;
            }
            Cells::Count(values) => {
                let there: Vec<i64> = values.iter().flatten().map(|n| *n as i64).collect();
                column.typed::<Int64Type>().write_batch(&there, Some(&levels(values)), None)?;
            }
            Cells::Real(values) => {
                let there: Vec<f64> = values.iter().flatten().copied().collect();
                column.typed::<DoubleType>().write_batch(&there, Some(&levels(values)), None)?;
            }
        }
        column.close()
    }
}

fn levels<T>(values: &[Option<T>]) -> Vec<i16> {
    values.iter().map(|value| i16::from(value.is_some())).collect()
}

impl Table {
    fn schema(&self) -> SchemaRef {
        let field = |column: &Column| Field::new(column.name, column.cells.arrow_type(), true);
        Arc::new(Schema::new(self.columns.iter().map(field).collect::<Vec<_>>()))
    }

    fn parquet_bytes(&self) -> Result<Vec<u8>, ParquetError> {
        let fields = self.columns.iter().map(|column| column.cells.parquet_type(column.name));
        let fields = fields.collect::<Result<Vec<_>, _>>()?;
        let schema = Arc::new(Type::group_type_builder("results").with_fields(fields).build()?);
        let zstd = Compression::ZSTD(ZstdLevel::default());
        let properties = Arc::new(WriterProperties::builder().set_compression(zstd).build());
        let mut writer = SerializedFileWriter::new(Vec::new(), schema, properties)?;
        let mut group = writer.next_row_group()?;
        self.columns.iter().try_for_each(|column| column.cells.write(&mut group))?;
        group.close()?;
        writer.into_inner()
    }
}
