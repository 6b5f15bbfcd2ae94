"""The plot of the catalogue and its page with search. See catalogue.py."""

import html
import json
from collections.abc import Sequence

import measure
from catalogue_rows import Row, by_saving, flat, of_peak, part, totals


def plot(rows: Sequence[Row]) -> str:
    """Bars: the limit in parts of the peak; a line where it lives, a dot where runs from outside found it."""
    rows = [row for row in by_saving(rows) if of_peak(row) is not None]
    left, wide, high, top = 110, 520, 14, 44
    height = top + high * len(rows) + 26
    text = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {left + wide + 125} {height}" font-family="sans-serif" font-size="10">',
        '<style>text{fill:#333}.p{fill:#e4e7ea}.l{fill:#3b7dd8}.o{fill:#d9480f}.v{stroke:#102a43;stroke-width:2}.g{stroke:#bbb;stroke-dasharray:2 3}@media (prefers-color-scheme:dark){text{fill:#ddd}.p{fill:#333c44}.v{stroke:#dbe7f5}}</style>',
        f'<text x="{left}" y="14" font-size="12">Limit without swap in parts of the peak: blue. Where it lives: line. From outside: dot.</text>',
    ]
    for tick in range(0, 101, 25):
        x = left + wide * tick / 100
        text.append(f'<line class="g" x1="{x:.0f}" x2="{x:.0f}" y1="{top - 8}" y2="{height - 22}"/><text x="{x:.0f}" y="{top - 12}" text-anchor="middle">{tick} %</text>')
    for i, row in enumerate(rows):
        y, found, share = top + i * high, part(row, "answer"), of_peak(row) or 0
        x = lambda size: left + wide * min(size / found["peak_bytes"], 1.05)
        text.append(f'<text x="{left - 6}" y="{y + 10}" text-anchor="end">{html.escape(row["name"])}</text><rect class="p" x="{left}" y="{y + 2}" width="{wide}" height="{high - 4}"/>')
        text.append(f'<rect class="l" x="{left}" y="{y + 2}" width="{wide * min(share, 1.05):.1f}" height="{high - 4}"/>')
        if found["lives_bytes"]:
            text.append(f'<line class="v" x1="{x(found["lives_bytes"]):.1f}" x2="{x(found["lives_bytes"]):.1f}" y1="{y + 1}" y2="{y + high - 1}"/>')
        if outside := part(row, "truth").get("fast_bytes"):
            text.append(f'<circle class="o" cx="{x(outside):.1f}" cy="{y + high / 2}" r="3"/>')
        text.append(f'<text x="{left + wide + 36}" y="{y + 10}">{measure.mib(found["limit_bytes"])} of {measure.mib(found["peak_bytes"])} MiB</text>')
    return "\n".join([*text, "</svg>"]) + "\n"


SEARCH_PAGE = """<!doctype html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>What programs need</title>
<style>
body { font: 15px/1.45 system-ui, sans-serif; margin: 2em auto; max-width: 1250px; padding: 0 1em; color: #222; background: #fff }
input { font: inherit; padding: .4em .7em; width: 22em; max-width: 100%; border: 1px solid #999; border-radius: 4px }
table { border-collapse: collapse; width: 100%; margin-top: 1em; font-size: 14px } .wide { overflow-x: auto }
th { text-align: right; cursor: pointer; border-bottom: 2px solid #888; padding: .3em .5em; white-space: nowrap }
td { text-align: right; padding: .25em .5em; border-bottom: 1px solid #ddd; font-variant-numeric: tabular-nums; white-space: nowrap }
th:nth-child(-n+2), td:nth-child(-n+2) { text-align: left } tr:hover td { background: #eef4fc }
.bar { display: inline-block; height: .7em; background: #3b7dd8; margin-right: .4em } small { color: #666 }
td.more { white-space: normal; text-align: left; background: #f6f8fa; cursor: auto }
@media (prefers-color-scheme: dark) { body { color: #ddd; background: #181b1f } tr:hover td { background: #26303a } td.more { background: #20262c } td { border-color: #333 } }
</style>
<h1>What programs need</h1>
<p>SENTENCES</p>
<p><input id="search" type="search" placeholder="name, kind, package, version or command" aria-label="search" autofocus> <small id="count"></small></p>
<div class="wide"><table><thead><tr id="head"></tr></thead><tbody id="rows"></tbody></table></div>
<p><small>Sizes in MiB, times in seconds. Limit: the least without swap in which the program is at most 10 % slower. Click a column to sort by it, a row for its columns.</small></p>
<script type="application/json" id="data">DATA</script>
<script>
const rows = JSON.parse(document.getElementById("data").textContent);
const mib = v => v == null ? "-" : (v / 1048576).toFixed(v < 104857600 ? 1 : 0), two = v => v == null ? "-" : v.toFixed(2);
const columns = [["program", "name"], ["kind", "kind"], ["s", "plain_seconds", two], ["peak", "peak_bytes", mib], ["heap", "anonymous_bytes", mib], ["files", "files_bytes", mib],
    ["shared", "shared_bytes", mib], ["limit", "limit_bytes", mib], ["of peak", "of_peak", v => v == null ? "-" : `<span class=bar style="width:${Math.min(v, 1.15) * 50}px"></span>${Math.round(v * 100)} %`],
    ["lives", "lives_bytes", mib], ["zram", "zram_bytes", mib], ["x", "zram_times", two], ["disk", "disk_bytes", mib], ["x", "disk_times", two], ["pager", "pager_bytes", mib], ["x", "pager_times", two], ["outside", "outside_fast_bytes", mib], ["distance", "distance", two]];
const escape = text => String(text).replace(/[&<>"]/g, c => `&#${c.charCodeAt(0)};`);
let by = "of_peak", down = 1, open = null;
function draw() {
    const words = document.getElementById("search").value.toLowerCase().split(/\\s+/).filter(Boolean);
    const shown = rows.filter(row => words.every(word => [row.name, row.kind, row.packages, row.version, row.command, row.input].join(" ").toLowerCase().includes(word)));
    const value = row => row[by] == null ? (typeof rows[0][by] == "string" ? "" : Infinity) : row[by];
    shown.sort((a, b) => (value(a) < value(b) ? -1 : value(a) > value(b) ? 1 : 0) * down);
    document.getElementById("count").textContent = `${shown.length} of ${rows.length}`;
    document.getElementById("rows").innerHTML = shown.map(row => `<tr data-name="${escape(row.name)}">` + columns.map(([, key, show]) => `<td>${show ? show(row[key]) : escape(row[key] ?? "-")}</td>`).join("") + "</tr>"
        + (open == row.name ? `<tr><td class=more colspan=${columns.length}>` + Object.entries(row).filter(([, v]) => v != null).map(([k, v]) => `<b>${k}</b> ${escape(v)}`).join(" · ") + "</td></tr>" : "")).join("");
}
document.getElementById("head").innerHTML = columns.map(([name, key]) => `<th data-key="${key}">${name}</th>`).join("");
document.getElementById("head").onclick = event => { const key = event.target.dataset.key; if (key) { down = by == key ? -down : 1; by = key; draw(); } };
document.getElementById("rows").onclick = event => { const name = event.target.closest("tr")?.dataset.name; if (name) { open = open == name ? null : name; draw(); } };
document.getElementById("search").oninput = draw;
draw();
</script>
</html>
"""


def search(data: Row) -> str:
    """A page that needs nothing else."""
    rows = json.dumps([flat(row) for row in data["programs"]]).replace("<", "\\u003c")
    return SEARCH_PAGE.replace("SENTENCES", html.escape(". ".join(totals(data["programs"]).sentences()) + ".")).replace("DATA", rows)
