// The map of touched memory: the line below it says what is under the pointer, or in
// the part that a drag has marked. And a button at each command that copies it.
"use strict";
for (const box of document.querySelectorAll(".heat")) {
  const cells = JSON.parse(box.querySelector("script.cells").textContent), map = box.querySelector("svg.map");
  const mark = map.querySelector(".marked"), line = box.nextElementSibling, first = line.textContent;
  const place = (event) => {
    const at = map.getBoundingClientRect(), within = (part, all) => Math.min(Math.max(Math.floor(part * all), 0), all - 1);
    return [within((event.clientX - at.left) / at.width, cells.columns), within(1 - (event.clientY - at.top) / at.height, cells.rows)];
  };
  const time = (column) => cells.seconds === null ? three(100 * column / cells.columns) + " % of the touches" : seconds(cells.seconds * column / cells.columns);
  const owners = (low, high) => [...new Set(cells.names.slice(low, high + 1))].join(", ");
  const text = ([left, low], [right, high]) => {
    let [reads, writes] = [0, 0];
    for (let row = low; row <= high; row++) for (let column = left; column <= right; column++) {
      const cell = cells.reads[row * cells.columns + column];
      if (cells.bits && column > left) continue;
      reads += cells.bits ? Math.max(...cells.reads.slice(row * cells.columns + left, row * cells.columns + right + 1)) : cell;
      writes += cells.writes[row * cells.columns + column];
    }
    const what = cells.bits ? `${bytes(reads)} referenced` : `${reads} reads, ${writes} writes`;
    return `${time(left).replace(" of the touches", "")} to ${time(right + 1)}, ${owners(low, high)}: ${what}`;
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
