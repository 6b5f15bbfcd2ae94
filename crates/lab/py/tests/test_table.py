"""Arrow's libraries read results, and all read the same."""

import json
from pathlib import Path

import coldframe
import duckdb
import pandas
import polars
import pyarrow
import pyarrow.parquet
import pytest
from conftest import Cli

TRACE = "data/traces/cjpeg.parquet"


@pytest.fixture(scope="module")
def results() -> coldframe.Results:
    path = Path(__file__).parents[4] / TRACE
    return coldframe.sweep(str(path), {"policy": ["clock", "fifo-sc:valid=70%", "opt"], "ram": ["20%", "60%"]})


def test_each_value_is_the_jsons(results: coldframe.Results) -> None:
    table = pyarrow.table(results)
    assert table.num_rows == len(results) == 6
    for row, result in zip(table.to_pylist(), results, strict=True):
        assert row["policy"] == result["config.policy"]
        assert row["ram_bytes"] == result.ram_bytes == result.frames * 4096
        assert row["true_faults"] == result["counts.true_faults"]
        assert row["time_paging_ps"] == result.get("time_ps.paging")
        assert row["stage_load_stopover_ps"] == result.get("time_ps.stages.load_stopover")
        assert row["true_fault_p99_ps"] == result.get("fault_latency_ps.true.p99")
        assert row["faults_per_reference"] == result.true_faults / result.references
        assert json.loads(row["config"]) == result["config"]
    assert table.column("time_paging_ps").null_count == 2, "an oracle has no times"


def test_all_libraries_read_the_same(results: coldframe.Results) -> None:
    expected = pyarrow.table(results).to_pylist()
    assert polars.DataFrame(results).to_dicts() == expected
    assert results.to_polars().to_dicts() == expected
    assert duckdb.sql("from results").to_arrow_table().to_pylist() == expected
    pandas.testing.assert_frame_equal(results.to_pandas(), pyarrow.table(results).to_pandas())
    assert pandas.DataFrame.from_arrow(results)["true_faults"].tolist() == [row["true_faults"] for row in expected]
    assert pyarrow.schema(results).names == results.table.columns


def test_arrow_reads_without_a_copy(results: coldframe.Results) -> None:
    read = [pyarrow.table(results).column("frames").chunk(0).buffers()[1].address for _ in range(2)]
    assert read[0] == read[1], "both are the table's own buffer"


def test_a_table_outlives_its_results() -> None:
    table = pyarrow.table(coldframe.sweep(TRACE, {"frames": 5}))
    assert table.column("frames").to_pylist() == [5]


def test_parquet_is_the_table(results: coldframe.Results, tmp_path: Path) -> None:
    path = tmp_path / "results.parquet"
    results.write_parquet(path)
    assert pyarrow.parquet.read_table(path).to_pylist() == pyarrow.table(results).to_pylist()
    assert polars.read_parquet(path).to_dicts() == polars.DataFrame(results).to_dicts()
    query = f"select policy, min(true_faults) as least from '{path}' group by policy order by least"
    assert duckdb.sql(query).fetchall()[0][0] == "opt", "no policy has fewer faults than OPT"
    assert [entry.name for entry in tmp_path.iterdir()] == ["results.parquet"], "no part is left"


def test_requests_have_no_prices_unless_a_device_is_named(cli: Cli, tmp_path: Path) -> None:
    disk, trace = tmp_path / "disk.csv", tmp_path / "disk.parquet"
    disk.write_text("".join(f"{128166372003061629 + i * 1000},a,0,Read,{i * i % 97 * 4096},4096,9\n" for i in range(900)))
    assert cli("trace", "import", f"msr:{disk}", "-o", str(trace)).returncode == 0
    asked = {"policy": ["clock", "opt"], "frames": [10, 20]}
    plain = coldframe.sweep(str(trace), asked)
    assert not [name for name in plain.table.columns if name == "device" or name.endswith("_ps")]
    assert "us</th>" not in plain._repr_html_() and "device" not in plain[0].text
    named = coldframe.sweep(str(trace), {**asked, "device": "NAND01GW3B2B"})
    assert {"device", "true_fault_p99_ps"} <= set(named.table.columns) and "us</th>" in named._repr_html_()
    assert [one.true_faults for one in named] == [one.true_faults for one in plain]


def test_no_results_are_a_table_without_rows() -> None:
    empty = coldframe.Results([])
    assert pyarrow.table(empty).num_rows == 0 and pyarrow.table(empty).column_names == empty.table.columns


def test_notebooks_get_a_table(results: coldframe.Results) -> None:
    html = results._repr_html_()
    assert html.count("<tr>") == 1 + len(results) and "opt" in html
    assert "<script" not in coldframe.Result(results[0].text.replace("clock", "<script>"))._repr_html_()
    assert "exact-references" in coldframe.Trace(TRACE)._repr_html_()
    advice = coldframe.advise(TRACE, policies=["clock"], handlers=["parallel"])
    assert advice.sentence[:20] in advice._repr_html_()
