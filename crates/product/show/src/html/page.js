// What was measured beside what was predicted. The map of touched memory: the line below it says what is under the pointer, or in
// the part that a drag has marked. And a button at each command that copies it.
"use strict";
const answer = JSON.parse(document.getElementById("data").textContent).here, runs = (answer?.runs ?? []).filter((run) => run.ram_bytes && !run.failed).sort((a, b) => b.ram_bytes - a.ram_bytes);
if (runs.length) {
  const table = document.getElementById("measured").appendChild(document.createElement("table"));
  const row = (tag, cells) => {
    const row = table.appendChild(document.createElement("tr"));
    cells.forEach((cell, i) => { const one = row.appendChild(document.createElement(tag)); one.textContent = cell; if (tag === "td") one.dataset.of = heads[i]; });
  };
  const heads = ["--ram", "paged by", "measured", "runs", "predicted for our pager"];
  row("th", heads);
  for (const { ram_bytes, by, seconds: time, more, runs: all } of runs) {
    const near = answer.curve.filter((size) => Math.abs(size.ram_bytes - ram_bytes) < ram_bytes / 32);
    near.sort((a, b) => Math.abs(a.ram_bytes - ram_bytes) - Math.abs(b.ram_bytes - ram_bytes));
    const range = all.length < 2 ? "one" : `${all.length}: ${seconds(Math.min(...all))} to ${seconds(Math.max(...all))}`;
    const high = near[0]?.seconds_high, span = high ? `${seconds(near[0].seconds)} (${seconds(near[0].seconds_low)} to ${seconds(high)})` : "not known";
    row("td", [bytes(ram_bytes), by === "kernel" ? "the kernel" : "our pager", (more ? "over " : "") + seconds(time), range, span]);
  }
}
for (const box of document.querySelectorAll(".heat")) {
  const cells = JSON.parse(box.querySelector("script.cells").textContent), map = box.querySelector("svg.map");
  const mark = map.querySelector(".marked"), line = box.nextElementSibling, first = line.textContent;
  const place = (event) => {
    const at = map.getBoundingClientRect(), within = (part, all) => Math.min(Math.max(Math.floor(part * all), 0), all - 1);
    return [within((event.clientX - at.left) / at.width, cells.columns), within(1 - (event.clientY - at.top) / at.height, cells.rows)];
  };
  const time = (column) => cells.seconds === null ? three(100 * column / cells.columns) + " %" : seconds(cells.seconds * column / cells.columns);
  const hex = (row) => row < cells.rows ? "0x" + cells.addresses[row].toString(16) : "the end";
  const text = ([left, low], [right, high]) => {
    let [reads, writes] = [0, 0];
    for (let row = low; row <= high; row++) for (let column = left; column <= right; column++) {
      reads += cells.reads[row * cells.columns + column];
      writes += cells.writes[row * cells.columns + column];
    }
    return `${time(left)} to ${time(right + 1)}, from ${hex(low)} to ${hex(high + 1)}: ${reads} reads, ${writes} writes`;
  };
  let start = null, marked = false;
  const part = (a, b) => [[Math.min(a[0], b[0]), Math.min(a[1], b[1])], [Math.max(a[0], b[0]), Math.max(a[1], b[1])]];
  map.addEventListener("pointerdown", (event) => { start = place(event); marked = false; if (event.isTrusted) map.setPointerCapture(event.pointerId); });
  map.addEventListener("pointermove", (event) => {
    const here = place(event), [low, high] = part(start ?? here, here);
    if (marked) return;
    line.textContent = text(low, high);
    for (const [name, value] of [["x", low[0]], ["y", cells.rows - 1 - high[1]], ["width", high[0] - low[0] + 1], ["height", high[1] - low[1] + 1]]) mark.setAttribute(name, value);
  });
  map.addEventListener("pointerup", (event) => { marked = start !== null && String(place(event)) !== String(start); start = null; });
  map.addEventListener("pointerleave", () => { if (!marked && start === null) { line.textContent = first; mark.setAttribute("width", 0); } });
}
for (const code of document.querySelectorAll("code.copy, pre.copy")) {
  const button = Object.assign(document.createElement("button"), { type: "button", className: "copy", textContent: "copy" });
  button.addEventListener("click", () => {
    const selection = getSelection(), range = document.createRange();
    range.selectNodeContents(code);
    selection.removeAllRanges();
    selection.addRange(range);
    // A page from a file may not use the clipboard everywhere; the old way copies what is selected.
    const done = () => { button.textContent = "copied"; };
    if (navigator.clipboard) navigator.clipboard.writeText(code.textContent).then(done, () => document.execCommand("copy") && done());
    else if (document.execCommand("copy")) done();
  });
  code.after(" ", button);
}
