// Two chosen rows of the table of runs, side by side; a third choice replaces the older.
"use strict";
const runs = JSON.parse(document.getElementById("data").textContent).runs;
const chosen = [];
function flat(value, path, into) {
  if (value !== null && typeof value === "object") {
    for (const key of Object.keys(value)) flat(value[key], path ? path + "." + key : key, into);
  } else into[path] = value;
  return into;
}
function cell(row, text) { row.appendChild(document.createElement("td")).textContent = text ?? "-"; }
function show() {
  const body = document.getElementById("compared");
  body.replaceChildren();
  if (chosen.length < 2) return;
  const [a, b] = chosen.map((row) => flat(runs[row.dataset.run], "", {}));
  for (const key of new Set([...Object.keys(a), ...Object.keys(b)])) {
    if (a[key] === b[key] || key.startsWith("host.")) continue;
    const row = body.appendChild(document.createElement("tr"));
    [key, a[key], b[key]].forEach((text) => cell(row, text));
  }
}
for (const row of document.querySelectorAll("tr.row")) {
  row.addEventListener("click", () => {
    const at = chosen.indexOf(row);
    if (at >= 0) chosen.splice(at, 1); else chosen.push(row);
    while (chosen.length > 2) chosen.shift();
    document.querySelectorAll("tr.row").forEach((r) => r.classList.toggle("chosen", chosen.includes(r)));
    show();
  });
}
document.documentElement.dataset.ready = "yes";
