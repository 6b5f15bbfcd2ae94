// Draws each figure with uPlot from the numbers in it, at the width that it has. The pointer or the arrow keys choose a size of RAM, and the
// line below says what is there; Enter or a press chooses that run. The SVG in the figure stays for paper.
"use strict";
const plots = new Map();
const css = (name) => getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();
const three = (v) => String(+v.toPrecision(3));
const units = (v, of) => { const [by, unit] = of.find(([by]) => v >= by) ?? of[of.length - 1]; return three(v / by) + " " + unit; };
const bytes = (v) => units(v, [[2 ** 30, "GiB"], [2 ** 20, "MiB"], [2 ** 10, "KiB"], [1, "B"]]);
const seconds = (v) => v === 0 ? "0" : units(v, [[3600, "h"], [60, "min"], [1, "s"], [1e-3, "ms"], [1e-6, "us"], [1e-9, "ns"]]);
// On dark paper a colour is lighter, as in the legend.
const strong = () => parseInt(css("strong")) / 100;
const tone = (colour) => "#" + [1, 3, 5].map((i) => Math.round(parseInt(colour.slice(i, i + 2), 16) * strong() + 255 * (1 - strong())).toString(16).padStart(2, "0")).join("");
const shown = { s: seconds, "": three };

// Every second, third, ... so that they are few enough.
const thinned = (all, most) => all.filter((_, i) => i % Math.ceil(all.length / Math.max(most, 1)) === 0);
// Powers of two, and the quarters between them where there are few.
function sizes(low, high, most) {
  const of = (parts) => {
    const all = [];
    for (let p = Math.floor(Math.log2(low)); p <= Math.log2(high); p++) for (const m of parts) all.push(m * 2 ** p);
    return all.filter((v) => v >= low && v <= high);
  };
  const all = [[1], [1, 1.5], [1, 1.25, 1.5, 1.75], [1, 1.125, 1.25, 1.375, 1.5, 1.625, 1.75, 1.875]].map(of);
  return thinned(all.find((values) => values.length >= 4) ?? all[3], most);
}
// 1, 2 and 5 in each power of ten of the unit: of seconds up to 50 s, of minutes up to 20 min, of hours from there on.
function tens(unit, low, high) {
  const all = [];
  for (let p = -9; p <= 12; p++) for (const m of [1, 2, 5]) all.push(m * 10 ** p);
  if (unit !== "s") return all.filter((v) => v >= low && v <= high);
  const [minutes, hours] = [60, 3600].map((by) => all.filter((v) => v >= 1).map((v) => v * by));
  return [...all.filter((v) => v < 60), ...minutes.filter((v) => v < 1800), ...hours].filter((v) => v >= low && v <= high);
}
// The ticks whose texts do not touch: each has the room that its text needs, around its place in pixels.
function apart(values, place, room) {
  let end = -Infinity;
  return values.filter((v) => {
    const half = room(v) / 2, at = place(v);
    if (at - half < end) return false;
    end = at + half;
    return true;
  });
}
// A character of the ticks is at most so wide, and their lines so high, with the space between two of them.
const CHARACTER = 7, GAP = 8, LINE = 16;
const along = (log, min, max, length) => (v) => length * (log ? Math.log(v / min) / Math.log(max / min) : (v - min) / (max - min));
// Few ticks of a logarithmic axis, and the steps of a linear one.
const logarithmic = (unit, low, high, most) => thinned(tens(unit, low, high), most);
const steps = (unit) => tens(unit, 1e-9, 1e9);

// Columns of all lines over all sizes, and below and above each line that has a span.
function columns(spec) {
  const xs = [...new Set(spec.lines.flatMap((line) => line.points.map((p) => p[0])))].sort((a, b) => a - b);
  const at = (points, of) => { const map = new Map(points.map((p) => [p[0], of(p)])); return xs.map((x) => map.get(x)); };
  const series = [{}], data = [xs], bands = [];
  spec.lines.forEach((line, i) => {
    line.colour = tone(line.colour);
    const dots = line.mark === "dots", dash = line.dash === "none" ? [] : line.dash.split(" ").map(Number);
    series.push({ label: line.name, stroke: line.colour, width: 2, dash, spanGaps: true, line: i,
      points: { show: true, size: dots ? 11 : 6, fill: line.colour }, ...(dots ? { paths: () => null } : {}) });
    data.push(at(line.points, (p) => p[1]));
  });
  spec.lines.forEach((line, i) => {
    const points = line.points.filter((p) => p[2]);
    if (points.length < 2) return;
    const edge = { stroke: "transparent", points: { show: false }, spanGaps: true, line: i };
    series.push({ ...edge }, { ...edge });
    data.push(at(points, (p) => p[2][1]), at(points, (p) => p[2][0]));
    bands.push({ series: [series.length - 2, series.length - 1], fill: line.colour + "33" });
  });
  return { xs, series, data, bands };
}

// The shaded sizes below the axes' lines, the advised point above the curves.
function zone(u, spec) {
  if (!spec.zone) return;
  const { left, top, height, width } = u.bbox, end = u.valToPos(spec.zone[0], "x", true);
  u.ctx.fillStyle = css("zone");
  u.ctx.fillRect(left, top, Math.min(Math.max(end - left, 0), width), height);
}
function label(u, text, x, y, right) {
  u.ctx.font = `${12 * devicePixelRatio}px system-ui, sans-serif`;
  u.ctx.fillStyle = css("ink");
  u.ctx.textAlign = right ? "right" : "left";
  u.ctx.fillText(text, x, y);
  return u.ctx.measureText(text).width;
}
function marks(u, spec) {
  const { left, top, width, height } = u.bbox, px = devicePixelRatio;
  u.ctx.save();
  if (spec.zone) {
    const end = u.valToPos(spec.zone[0], "x", true);
    u.ctx.font = `${12 * px}px system-ui, sans-serif`;
    if (u.ctx.measureText(spec.zone[1]).width + 12 * px < end - left) label(u, spec.zone[1], left + 6 * px, top + height - 8 * px, false);
  }
  if (spec.advised) {
    const [value, y, text] = spec.advised, x = u.valToPos(value, "x", true);
    u.ctx.font = `${12 * px}px system-ui, sans-serif`;
    const right = x + u.ctx.measureText(text).width + 12 * px > left + width;
    u.ctx.strokeStyle = u.ctx.fillStyle = css("good");
    u.ctx.lineWidth = 1.5 * px;
    u.ctx.setLineDash([4 * px, 4 * px]);
    u.ctx.beginPath(); u.ctx.moveTo(x, top); u.ctx.lineTo(x, top + height); u.ctx.stroke();
    u.ctx.setLineDash([]);
    u.ctx.lineWidth = 3 * px;
    u.ctx.beginPath(); u.ctx.arc(x, u.valToPos(y, "y", true), 7 * px, 0, 2 * Math.PI); u.ctx.stroke();
    label(u, text, x + (right ? -8 : 8) * px, top + 14 * px, right);
  }
  u.ctx.restore();
}

function options(figure, spec, made, width) {
  const axis = { stroke: css("ink"), grid: { stroke: css("line"), width: 1 }, ticks: { stroke: css("line"), width: 1 }, font: "12px system-ui, sans-serif" };
  const show = shown[spec.unit], y = made.data.slice(1).flat().filter((v) => v > 0 || (!spec.log && v === 0));
  const low = Math.min(...y), high = Math.max(...y);
  const range = spec.log ? [low / 1.25, high * (high / low) ** 0.15] : [0, high * 1.2];
  const room = (u) => Math.max(2, Math.floor(u.bbox.width / devicePixelRatio / 72));
  const axes = [{ ...axis, label: spec.x, labelSize: 24, labelFont: axis.font, size: 30, filter: (u, all) => all,
    splits: (u, i, min, max) => apart(sizes(min, max, room(u)), along(true, min, max, u.bbox.width / devicePixelRatio), (v) => bytes(v).length * CHARACTER + GAP), values: (u, all) => all.map(bytes) },
  { ...axis, label: spec.y, labelSize: 20, labelFont: axis.font, size: 62, filter: (u, all) => all, values: (u, all) => all.map(show),
    ...(spec.log ? { splits: (u, i, min, max) => apart(logarithmic(spec.unit, min, max, 9), along(true, min, max, u.bbox.height / devicePixelRatio), () => LINE) } : { incrs: steps(spec.unit) }) }];
  const ends = [made.xs[0], made.xs[made.xs.length - 1]], wide = Math.max(1.02, (ends[1] / ends[0]) ** 0.04);
  return { width, height: Math.round(Math.min(420, Math.max(260, width * 0.5))), axes, bands: made.bands, series: made.series,
    legend: { show: false }, cursor: { drag: { x: false, y: false }, y: false },
    scales: { x: { time: false, distr: 3, log: 2, range: [ends[0] / wide, ends[1] * wide] }, y: { distr: spec.log ? 3 : 1, range } },
    hooks: { drawClear: [(u) => zone(u, spec)], draw: [(u) => marks(u, spec)], setCursor: [(u) => say(figure, u, spec)] } };
}

// The points at the chosen size, of lines that are shown.
function points(u, spec) {
  const x = u.data[0][u.cursor.idx ?? -1];
  return spec.lines.flatMap((line, i) => u.series[i + 1].show ? line.points.filter((p) => p[0] === x) : []);
}
function say(figure, u, spec) {
  const here = u.cursor.left < 0 ? [] : points(u, spec);
  figure.querySelector(".readout").textContent = here.map((p) => p[4]).filter(Boolean).join("\n");
}
function pick(u, spec) {
  const near = points(u, spec).filter((p) => p[3]).sort((a, b) => Math.abs(u.valToPos(a[1], "y") - u.cursor.top) - Math.abs(u.valToPos(b[1], "y") - u.cursor.top));
  if (near.length) choose(near[0][3]);
}
function move(figure, event) {
  const plot = plots.get(figure);
  if (!plot) return;
  const { u, spec, made } = plot, at = u.cursor.left < 0 ? undefined : u.cursor.idx, last = made.xs.length - 1;
  const to = { ArrowLeft: at == null ? last : Math.max(at - 1, 0), ArrowRight: at == null ? 0 : Math.min(at + 1, last), Home: 0, End: last }[event.key];
  if (event.key === "Enter") pick(u, spec);
  if (event.key === "Escape") u.setCursor({ left: -10, top: -10 });
  if (to === undefined) return;
  event.preventDefault();
  u.setCursor({ left: u.valToPos(made.xs[to], "x"), top: 10 });
}

function draw(figure) {
  const width = Math.floor(figure.clientWidth), old = plots.get(figure);
  if (!width || (old && old.width === width)) return;
  old?.u.destroy();
  const spec = JSON.parse(figure.querySelector("script.plot").textContent), made = columns(spec), on = document.createElement("div");
  on.className = "drawn";
  figure.querySelector(".drawn")?.remove();
  figure.insertBefore(on, figure.querySelector("svg"));
  const u = new uPlot(options(figure, spec, made, width), made.data, on);
  u.over.addEventListener("click", () => pick(u, spec));
  plots.set(figure, { u, spec, made, width });
  figure.classList.add("ready");
  hide(figure);
}
// What the legend has turned off stays off.
function hide(figure) {
  const { u } = plots.get(figure) ?? {};
  const off = [...figure.closest(".charts")?.querySelectorAll(".legend button.off") ?? []].map((one) => Number(one.dataset.line));
  u?.series.forEach((series, i) => i && u.setSeries(i, { show: !off.includes(series.line) }));
}

const figures = [...document.querySelectorAll("figure")];
const again = () => { for (const figure of figures) { const plot = plots.get(figure); if (plot) plot.width = 0; draw(figure); } };
// In the next frame: a chart that is drawn while it is watched changes its own height.
const watch = new ResizeObserver((all) => requestAnimationFrame(() => { for (const one of all) draw(one.target); }));
for (const figure of figures) {
  draw(figure);
  watch.observe(figure);
  figure.addEventListener("keydown", (event) => move(figure, event));
}
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", again);
document.addEventListener("click", (event) => {
  const line = event.target.closest("button[data-line]");
  if (!line) return;
  line.setAttribute("aria-pressed", String(!line.classList.toggle("off")));
  for (const figure of line.closest(".charts").querySelectorAll("figure")) hide(figure);
});
