//! Curves as a terminal plot and as SVG.

use std::fmt::Write;

/// A curve: its name and its points (x, y), x ascending.
#[derive(Clone, Debug)]
pub struct Series {
    /// Name in the legend.
    pub name: String,
    /// Points.
    pub points: Vec<(f64, f64)>,
}

/// A plot.
#[derive(Clone, Debug)]
pub struct Plot {
    /// The text above it.
    pub title: String,
    /// The text below the x axis, with unit.
    pub x: String,
    /// The text above the y axis, with unit.
    pub y: String,
    /// Curves.
    pub series: Vec<Series>,
    /// Whether the x axis is logarithmic, in powers of two.
    pub log_x: bool,
    /// Whether the y axis is logarithmic, in powers of ten.
    pub log_y: bool,
}

const MARKS: [char; 10] = ['o', 'x', '+', '*', '#', '@', '%', '&', '=', '~'];
/// The colours of curves and bars, in order.
pub const COLOURS: [&str; 8] = ["#1b6ca8", "#d1495b", "#2e933c", "#8f5db7", "#e08e45", "#4a4a4a", "#00a6a6", "#b5179e"];

/// An axis between its least and its largest value.
pub(crate) struct Axis {
    pub(crate) low: f64,
    pub(crate) high: f64,
    pub(crate) log: bool,
}

impl Axis {
    pub(crate) fn over(values: impl Iterator<Item = f64>, log: bool) -> Option<Axis> {
        let values: Vec<f64> = values.filter(|v| v.is_finite() && (!log || *v > 0.0)).collect();
        let low = values.iter().copied().reduce(f64::min)?;
        let high = values.iter().copied().reduce(f64::max)?;
        let (low, high) =
            if log || low == high { (low, high) } else { (low.min(0.0_f64.max(low - (high - low) * 0.1)), high) };
        Some(Axis { low, high: if high > low { high } else { low + low.abs().max(1.0) }, log })
    }

    /// 0 at the low end, 1 at the high end.
    pub(crate) fn place(&self, value: f64) -> Option<f64> {
        let f = |v: f64| if self.log { v.ln() } else { v };
        let place = (f(value) - f(self.low)) / (f(self.high) - f(self.low));
        (place.is_finite()).then_some(place.clamp(0.0, 1.0))
    }

    /// The value at a place.
    pub(crate) fn value(&self, place: f64) -> f64 {
        match self.log {
            true => (self.low.ln() + place * (self.high.ln() - self.low.ln())).exp(),
            false => self.low + place * (self.high - self.low),
        }
    }
}

/// What a title says of a logarithmic axis.
fn kind(log: bool) -> &'static str {
    if log {
        " (logarithmic)"
    } else {
        ""
    }
}

/// A number with three digits, short enough for an axis.
pub fn short(value: f64) -> String {
    let decimals = match value.abs() {
        0.0 => return "0".into(),
        v if v >= 100.0 => 0,
        v if v >= 10.0 => 1,
        v if v >= 1.0 => 2,
        v if v >= 0.1 => 3,
        v if v >= 0.01 => 4,
        _ => return format!("{value:.1e}"),
    };
    let text = format!("{value:.decimals$}");
    if decimals == 0 {
        text
    } else {
        text.trim_end_matches('0').trim_end_matches('.').into()
    }
}

impl Plot {
    fn axes(&self) -> Option<(Axis, Axis)> {
        let points = || self.series.iter().flat_map(|s| s.points.iter());
        Some((Axis::over(points().map(|p| p.0), self.log_x)?, Axis::over(points().map(|p| p.1), self.log_y)?))
    }

    /// As text, with `width` by `height` characters for the curves. If curves meet, the first one's mark is shown.
    pub fn text(&self, width: usize, height: usize) -> String {
        let mut out = format!("{}\n", self.title);
        let Some((x_axis, y_axis)) = self.axes() else {
            return out + "(no points)\n";
        };
        let mut grid = vec![vec![' '; width]; height];
        for (i, series) in self.series.iter().enumerate().rev() {
            for (x, y) in &series.points {
                if let (Some(x), Some(y)) = (x_axis.place(*x), y_axis.place(*y)) {
                    let column = (x * (width - 1) as f64).round() as usize;
                    let row = height - 1 - (y * (height - 1) as f64).round() as usize;
                    grid[row][column] = MARKS[i % MARKS.len()];
                }
            }
        }
        let _ = writeln!(out, "{:>10}{}", self.y, kind(self.log_y));
        let mut last = String::new();
        for (row, line) in grid.iter().enumerate() {
            let place = 1.0 - row as f64 / (height - 1) as f64;
            let label = if row % 4 == 0 || row == height - 1 { short(y_axis.value(place)) } else { String::new() };
            // Values that are the same to three digits have one tick.
            let label = if label == last { String::new() } else { label };
            last = if label.is_empty() { last } else { label.clone() };
            let _ = writeln!(out, "{label:>10} │{}", line.iter().collect::<String>().trim_end());
        }
        let _ = writeln!(out, "{:>10} └{}", "", "─".repeat(width));
        // A line of its own: one that is too long for the page would be wrapped, and its ticks would move.
        let (low, middle, high) = (short(x_axis.low), short(x_axis.value(0.5)), short(x_axis.high));
        let (left, right) = (width / 2 - middle.len() / 2, width - width / 2 + middle.len() / 2);
        let (left, right) = (left - low.len(), right - middle.len());
        let _ = writeln!(out, "{:>12}{low}{:left$}{middle}{high:>right$}", "", "");
        let _ = writeln!(out, "{:>12}{}{}", "", self.x, kind(self.log_x));
        for (i, series) in self.series.iter().enumerate() {
            let _ = writeln!(out, "{:>12}{} {}", "", MARKS[i % MARKS.len()], series.name);
        }
        out
    }

    /// As a self-contained SVG picture.
    pub fn svg(&self) -> String {
        let (w, h, left, top, right, bottom) = (800.0, 400.0, 70.0, 40.0, 270.0, 50.0);
        let mut out = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {w} {h}\" font-family=\"sans-serif\" \
             font-size=\"12\">\n\
             <rect width=\"{w}\" height=\"{h}\" fill=\"white\"/>\n<text x=\"{left}\" y=\"22\" \
             font-size=\"15\">{}</text>\n",
            escape(&self.title)
        );
        if let Some((x_axis, y_axis)) = self.axes() {
            let px = |x: f64| left + x * (w - left - right);
            let py = |y: f64| h - bottom - y * (h - top - bottom);
            for i in 0..=4 {
                let place = f64::from(i) / 4.0;
                let (x, y) = (px(place), py(place));
                let _ = writeln!(
                    out,
                    "<line x1=\"{left}\" x2=\"{:.1}\" y1=\"{y:.1}\" y2=\"{y:.1}\" stroke=\"#ddd\"/>\
                     <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>\
                     <text x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
                    w - right,
                    left - 6.0,
                    y + 4.0,
                    short(y_axis.value(place)),
                    h - bottom + 18.0,
                    short(x_axis.value(place)),
                );
            }
            for (i, series) in self.series.iter().enumerate() {
                let colour = COLOURS[i % COLOURS.len()];
                let placed =
                    series.points.iter().filter_map(|(x, y)| Some((px(x_axis.place(*x)?), py(y_axis.place(*y)?))));
                let placed: Vec<(f64, f64)> = placed.collect();
                let values =
                    series.points.iter().filter(|(x, y)| x_axis.place(*x).is_some() && y_axis.place(*y).is_some());
                let line: Vec<String> = placed.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
                let _ = writeln!(
                    out,
                    "<polyline fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\" points=\"{}\"/>",
                    line.join(" ")
                );
                for ((x, y), (of_x, of_y)) in placed.iter().zip(values) {
                    let title = format!("{}: {}, {} at {}", series.name, short(*of_y), self.y, short(*of_x));
                    let _ = write!(
                        out,
                        "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"2.5\" fill=\"{colour}\"><title>{}</title></circle>",
                        escape(&title)
                    );
                }
                let y = top + 18.0 * i as f64 + 6.0;
                let x = w - right + 14.0;
                let _ = writeln!(
                    out,
                    "<line x1=\"{x}\" x2=\"{}\" y1=\"{y}\" y2=\"{y}\" stroke=\"{colour}\" stroke-width=\"3\"/>\
                     <text x=\"{}\" y=\"{}\">{}</text>",
                    x + 16.0,
                    x + 22.0,
                    y + 4.0,
                    escape(&series.name)
                );
            }
        }
        let _ = writeln!(
            out,
            "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text><text x=\"{left}\" \
             y=\"{:.1}\">{}</text>\n</svg>",
            (left + w - right) / 2.0,
            h - 12.0,
            escape(&self.x),
            top - 6.0,
            escape(&self.y)
        );
        out
    }
}

/// Several pictures below each other as one. Each has a `viewBox`, which gives its height.
pub fn stack(pictures: &[String]) -> String {
    let height = |svg: &str| -> Option<f64> {
        let (_, rest) = svg.split_once("viewBox=\"0 0 800 ")?;
        rest.split('"').next()?.trim().parse().ok()
    };
    let mut y = 0.0;
    let mut body = String::new();
    for svg in pictures {
        let h = height(svg).unwrap_or(400.0);
        body += &svg.replacen("<svg ", &format!("<svg y=\"{y}\" width=\"800\" height=\"{h}\" "), 1);
        y += h;
    }
    format!("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 800 {y}\">\n{body}</svg>\n")
}

/// Escapes text for XML and HTML, including attributes.
pub fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_point_stands_at_the_left_and_the_largest_at_the_top() {
        let points = vec![(1.0, 8.0), (2.0, 4.0), (4.0, 0.0)];
        let series = vec![Series { name: "a".into(), points }];
        let plot = Plot { title: "t".into(), x: "x".into(), y: "y".into(), series, log_x: true, log_y: false };
        let text = plot.text(21, 5);
        let rows: Vec<&str> = text.lines().filter_map(|l| l.split_once('│').map(|p| p.1)).collect();
        assert_eq!(rows, ["o", "", "          o", "", "                    o"]);
        // The ticks stand at the left, in the middle and at the right of 21 columns, below the line.
        assert!(text.contains("\n            1         2         4\n            x (logarithmic)\n"), "{text}");
        assert!(plot.svg().contains("<polyline"));
    }

    #[test]
    fn a_plot_without_points_says_so() {
        let plot = Plot { title: "t".into(), x: "x".into(), y: "y".into(), series: vec![], log_x: true, log_y: true };
        assert!(plot.text(10, 4).contains("no points"));
    }
}
