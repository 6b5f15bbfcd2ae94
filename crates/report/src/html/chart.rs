//! Curves as SVG for a page that is read on a phone, too: no legend inside, few words, every point can be chosen.

use std::fmt::Write;

use crate::plot::{escape, short, Axis, COLOURS};

const WIDTH: f64 = 640.0;
const HEIGHT: f64 = 340.0;
const LEFT: f64 = 74.0;
const RIGHT: f64 = 22.0;
const TOP: f64 = 34.0;
const BOTTOM: f64 = 52.0;

/// A point of a curve.
pub struct Point {
    /// Across.
    pub x: f64,
    /// Upwards.
    pub y: f64,
    /// Attributes by which the script finds its JSON; may be empty.
    pub at: String,
    /// Said of it beside the numbers; may be empty.
    pub said: String,
}

/// A curve.
pub struct Line {
    /// Name in the legend.
    pub name: String,
    /// By x.
    pub points: Vec<Point>,
    /// A bound rather than something to be had: broken.
    pub bound: bool,
}

/// A chart; the x axis is logarithmic.
pub struct Chart<'a> {
    /// Below the x axis, with unit.
    pub x: &'a str,
    /// Above the y axis, with unit.
    pub y: &'a str,
    /// Curves.
    pub lines: Vec<Line>,
    /// The y axis in powers of ten.
    pub log_y: bool,
}

/// Both axes, and where they put a point.
struct Frame {
    x: Axis,
    y: Axis,
}

impl Frame {
    fn at(&self, x: f64, y: f64) -> Option<(f64, f64)> {
        let across = LEFT + self.x.place(x)? * (WIDTH - LEFT - RIGHT);
        let down = HEIGHT - BOTTOM - self.y.place(y)? * (HEIGHT - TOP - BOTTOM);
        Some((across, down))
    }

    fn ticks(&self) -> String {
        let mut out = String::new();
        for value in ticks(&self.y) {
            let Some((_, y)) = self.at(self.x.low, value) else { continue };
            let _ = write!(
                out,
                "<line class=\"grid\" x1=\"{LEFT}\" x2=\"{}\" y1=\"{y:.1}\" y2=\"{y:.1}\"/>\
                 <text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
                WIDTH - RIGHT,
                LEFT - 6.0,
                y + 4.0,
                plain(value),
            );
        }
        for (i, value) in powers_of_two(&self.x).into_iter().enumerate() {
            let Some((x, _)) = self.at(value, self.y.high) else { continue };
            let class = if i % 2 == 1 { " class=\"minor\"" } else { "" };
            let y = HEIGHT - BOTTOM + 20.0;
            let _ = write!(out, "<text{class} x=\"{x:.1}\" y=\"{y}\" text-anchor=\"middle\">{}</text>", plain(value));
        }
        out
    }
}

/// Most ticks of an axis.
const TICKS_MAX: usize = 8;

/// Round numbers within the axis: of 1, 2 and 5 with their powers of ten on a logarithmic one, else multiples of such a number.
fn ticks(axis: &Axis) -> Vec<f64> {
    let within = |values: &mut dyn Iterator<Item = f64>| -> Vec<f64> {
        let slack = 1e-9 * (axis.high - axis.low);
        values.filter(|v| *v >= axis.low - slack && *v <= axis.high + slack).collect()
    };
    let decades = |of: &[f64]| -> Vec<f64> {
        let (from, to) = (axis.low.log10().floor() as i32, axis.high.log10().ceil() as i32);
        within(&mut (from..=to).flat_map(|decade| of.iter().map(move |v| v * 10f64.powi(decade))))
    };
    if axis.log {
        let fine = decades(&[1.0, 2.0, 5.0]);
        return if fine.len() <= TICKS_MAX { fine } else { thinned(decades(&[1.0])) };
    }
    let rough = (axis.high - axis.low) / 5.0;
    let unit = 10f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0].map(|m| m * unit).into_iter().find(|step| *step >= rough).unwrap_or(unit);
    let first = (axis.low / step).ceil();
    within(&mut (0..12).map(|i| (first + f64::from(i)) * step))
}

/// RAM comes in powers of two.
fn powers_of_two(axis: &Axis) -> Vec<f64> {
    let (from, to) = (axis.low.log2().ceil() as i32, axis.high.log2().floor() as i32);
    match thinned((from..=to).map(|power| 2f64.powi(power)).collect()) {
        few if few.len() < 2 => vec![axis.low, axis.high],
        powers => powers,
    }
}

/// Every second, third, ... so that they are few enough.
fn thinned(values: Vec<f64>) -> Vec<f64> {
    let each = values.len().div_ceil(TICKS_MAX).max(1);
    values.into_iter().step_by(each).collect()
}

/// A round number without needless digits.
fn plain(value: f64) -> String {
    match value.abs() {
        0.0 => "0".into(),
        v if (1e-3..1e7).contains(&v) => format!("{}", (value * 1e6).round() / 1e6),
        _ => format!("{value:.0e}"),
    }
}

impl Chart<'_> {
    /// The picture with its legend; empty without points.
    pub fn html(&self) -> String {
        let points = || self.lines.iter().flat_map(|line| &line.points);
        let axes = Axis::over(points().map(|p| p.x), true).zip(Axis::over(points().map(|p| p.y), self.log_y));
        let Some((x, y)) = axes else { return String::new() };
        let frame = Frame { x, y };
        let curves: String = self.lines.iter().enumerate().map(|(i, line)| self.curve(&frame, i, line)).collect();
        format!(
            "<figure><svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"{y} by {x}\">{}{curves}\
             <text x=\"{LEFT}\" y=\"18\">{y}</text><text x=\"{:.0}\" y=\"{:.0}\" text-anchor=\"middle\">{x}</text></svg>\
             <figcaption class=\"legend\">{}</figcaption></figure>",
            frame.ticks(),
            (LEFT + WIDTH - RIGHT) / 2.0,
            HEIGHT - 8.0,
            self.legend(),
            x = escape(self.x),
            y = escape(self.y),
        )
    }

    fn curve(&self, frame: &Frame, i: usize, line: &Line) -> String {
        let placed: Vec<_> = line.points.iter().filter_map(|p| Some((frame.at(p.x, p.y)?, p))).collect();
        let way: Vec<String> = placed.iter().map(|((x, y), _)| format!("{x:.1},{y:.1}")).collect();
        let (colour, dash) = (COLOURS[i % COLOURS.len()], dash(i, line));
        let dots: String = placed
            .iter()
            .map(|((x, y), p)| {
                let said = if p.said.is_empty() { String::new() } else { format!("; {}", p.said) };
                let title = format!("{}: {} {} at {} {}{said}", line.name, short(p.y), self.y, short(p.x), self.x);
                format!(
                    "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"4\"{}><title>{}</title></circle>",
                    p.at,
                    escape(&title)
                )
            })
            .collect();
        format!(
            "<g data-line=\"{i}\" style=\"--c:{colour}\"><polyline points=\"{}\" stroke-dasharray=\"{dash}\"/>{dots}</g>",
            way.join(" ")
        )
    }

    fn legend(&self) -> String {
        let entry = |(i, line): (usize, &Line)| {
            let colour = COLOURS[i % COLOURS.len()];
            let mark = if line.bound || i >= COLOURS.len() { "dashed" } else { "solid" };
            format!(
                "<button type=\"button\" data-line=\"{i}\"><i style=\"border-top:3px {mark} {colour}\"></i>{}</button>",
                escape(&line.name)
            )
        };
        self.lines.iter().enumerate().map(entry).collect()
    }
}

/// Bounds are dotted; where colours come a second time, lines are broken.
fn dash(i: usize, line: &Line) -> &'static str {
    match (line.bound, i / COLOURS.len()) {
        (true, _) => "2 4",
        (_, 0) => "none",
        (_, 1) => "8 4",
        (_, _) => "12 3 3 3",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(name: &str, points: &[(f64, f64)]) -> Line {
        let point =
            |(x, y): &(f64, f64)| Point { x: *x, y: *y, at: " data-at=\"/runs/0\"".into(), said: String::new() };
        Line { name: name.into(), points: points.iter().map(point).collect(), bound: false }
    }

    #[test]
    fn corners_of_the_data_are_corners_of_the_frame() {
        let chart = Chart { x: "KiB", y: "us", lines: vec![line("a<b", &[(1.0, 8.0), (4.0, 0.0)])], log_y: false };
        let html = chart.html();
        assert!(html.contains(&format!("points=\"{LEFT:.1},{TOP:.1} {:.1},{:.1}\"", WIDTH - RIGHT, HEIGHT - BOTTOM)));
        assert!(html.contains("a&lt;b") && !html.contains("a<b"));
        assert_eq!(html.matches("data-at=").count(), 2);
    }

    #[test]
    fn what_cannot_be_drawn_is_left_out() {
        let chart = Chart { x: "KiB", y: "us", lines: vec![line("a", &[(1.0, 0.0), (4.0, 2.0)])], log_y: true };
        assert_eq!(chart.html().matches("<circle").count(), 1);
        assert_eq!(Chart { x: "", y: "", lines: vec![line("a", &[(1.0, 0.0)])], log_y: true }.html(), "");
    }

    #[test]
    fn ticks_are_round_numbers_within_the_axis() {
        let axis = |low, high, log| Axis { low, high, log };
        assert_eq!(ticks(&axis(61.8, 116.4, false)), [80.0, 100.0]);
        assert_eq!(ticks(&axis(0.0, 10.0, false)), [0.0, 2.0, 4.0, 6.0, 8.0, 10.0]);
        assert_eq!(ticks(&axis(0.4, 30.0, true)), [0.5, 1.0, 2.0, 5.0, 10.0, 20.0]);
        assert_eq!(ticks(&axis(0.4, 2000.0, true)), [1.0, 10.0, 100.0, 1000.0]);
        assert_eq!(powers_of_two(&axis(36.0, 360.0, true)), [64.0, 128.0, 256.0]);
        assert_eq!(powers_of_two(&axis(36.0, 37.0, true)), [36.0, 37.0]);
        assert_eq!([plain(0.5), plain(2048.0), plain(1e-5)], ["0.5", "2048", "1e-5"]);
    }
}
