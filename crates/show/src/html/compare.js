// What is chosen (a point, a strip, a row) is shown whole, two of them by what differs; a third replaces the older.
"use strict";
const text = document.getElementById("data").textContent;
const data = JSON.parse(text);
const $ = (id) => document.getElementById(id);
const chosen = [];
const at = (path) => path.split("/").slice(1).reduce((value, key) => value[key], data);
const bins = (value) => value.fault_latency_ps?.true?.bins ?? [];
function flat(value, path, into) {
  if (path.endsWith("bins") || path.endsWith("slots") || path.endsWith("wear_map")) return into;
  if (value !== null && typeof value === "object") {
    for (const key of Object.keys(value)) flat(value[key], path ? path + "." + key : key, into);
  } else into[path] = value;
  return into;
}
function name(value) {
  const c = value.config ?? {}, s = c.swap ?? {};
  return [c.policy ?? s.layout, c.handler, c.frames ? c.frames + " frames" : s.blocks && s.blocks + " blocks"].filter(Boolean).join(", ");
}
function row(parent, tag, cells) {
  const row = parent.appendChild(document.createElement("tr"));
  for (const cell of cells) row.appendChild(document.createElement(tag)).textContent = cell ?? "-";
}
function distribution(values) {
  const all = values.flatMap(bins);
  if (!all.length) return "";
  const low = Math.min(...all.map((b) => b[0])), high = Math.max(...all.map((b) => b[1]));
  const most = Math.log1p(Math.max(...all.map((b) => b[2])));
  const x = (ps) => (1000 * Math.log(ps / low)) / Math.log(high / low);
  const half = 50 / values.length;
  const bars = values.map((value, i) => bins(value).map((b) => {
    const h = (half - 2) * Math.log1p(b[2]) / most;
    return `M${x(b[0])} ${(i + 1) * half}v${-h}h${x(b[1]) - x(b[0])}v${h}z`;
  }).join(""));
  const paths = bars.map((d, i) => `<path d="${d}" fill="${["#1b6ca8", "#d1495b"][i]}"/>`).join("");
  return `true faults by latency, ${low / 1e6} to ${high / 1e6} us<svg viewBox="0 0 1000 50" preserveAspectRatio="none">${paths}</svg>`;
}
function show() {
  const values = chosen.map(at);
  $("chosen").hidden = !values.length;
  for (const part of ["names", "compared"]) $(part).replaceChildren();
  $("pair").innerHTML = distribution(values);
  row($("names"), "th", ["", ...values.map(name)]);
  const all = values.map((value) => flat(value, "", {}));
  for (const key of new Set(all.flatMap(Object.keys))) {
    if (key.startsWith("host.") || (all.length === 2 && all[0][key] === all[1][key])) continue;
    row($("compared"), "td", [key, ...all.map((one) => one[key])]);
  }
  for (const one of document.querySelectorAll("[data-at]")) one.classList.toggle("on", chosen.includes(one.dataset.at));
}
function choose(path) {
  const place = chosen.indexOf(path);
  if (place >= 0) chosen.splice(place, 1); else chosen.push(path);
  while (chosen.length > 2) chosen.shift();
  show();
}
document.addEventListener("click", (event) => {
  const one = event.target.closest("[data-at]");
  if (one) choose(one.dataset.at);
});
document.addEventListener("pointerover", (event) => {
  const said = event.target.querySelector?.(":scope > title")?.textContent ?? event.target.title;
  $("tip").hidden = !said;
  $("tip").textContent = said ?? "";
});
$("close").addEventListener("click", () => { chosen.length = 0; show(); });
$("save").addEventListener("click", () => {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type: "application/json" }));
  link.download = "coldframe-report.json";
  link.click();
});
document.documentElement.dataset.ready = "yes";
