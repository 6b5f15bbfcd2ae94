// What is chosen (a point, a row) is shown whole, two of them by what differs; a third replaces the older.
"use strict";
const text = document.getElementById("data").textContent;
const data = JSON.parse(text);
const $ = (id) => document.getElementById(id);
const chosen = [];
const at = (path) => path.split("/").slice(1).reduce((value, key) => value[key], data);
function flat(value, path, into) {
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
function show() {
  const values = chosen.map(at);
  $("chosen").hidden = !values.length;
  for (const part of ["names", "compared"]) $(part).replaceChildren();
  row($("names"), "th", ["", ...values.map(name)]);
  const all = values.map((value) => flat(value, "", {}));
  for (const key of new Set(all.flatMap(Object.keys))) {
    if (all.length === 2 && all[0][key] === all[1][key]) continue;
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
