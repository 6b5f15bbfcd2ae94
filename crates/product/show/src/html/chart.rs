//! Curves by RAM: their numbers for the script that draws them on a screen, and SVG for paper and for readers without a
//! script.

use coldframe_sheet::quantity::human_size;
use serde_json::{json, Value};

use crate::html::words::{note, Unit};
use crate::plot::{escape, Plot, Series, COLOURS};

/// A point of a curve.
pub struct Point {
    /// Bytes of RAM.
    pub x: f64,
    /// Upwards.
    pub y: f64,
    /// What `y` may be, where that is known.
    pub span: Option<(f64, f64)>,
    /// The path by which the script finds its JSON; may be empty.
    pub path: String,
    /// The whole text about the point.
    pub label: String,
}

/// How a curve is drawn.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Mark {
    /// A line with its points.
    Line,
    /// A bound, not a reachable value: a broken line.
    Bound,
    /// Points alone: what was measured.
    Dots,
}

/// A curve.
pub struct Line {
    /// Name in the legend.
    pub name: String,
    /// By x.
    pub points: Vec<Point>,
    /// How it is drawn.
    pub mark: Mark,
}

/// A chart of something by RAM; the x axis is logarithmic.
pub struct Chart<'a> {
    /// Above it.
    pub title: &'a str,
    /// Below the x axis.
    pub x: &'a str,
    /// The name of the y axis.
    pub y: &'a str,
    /// Of the y axis.
    pub unit: Unit,
    /// Curves.
    pub lines: Vec<Line>,
    /// The y axis in powers of ten.
    pub log_y: bool,
    /// Less RAM than this is shaded, and why.
    pub zone: Option<(f64, &'a str)>,
    /// The recommended point, and the text next to it.
    pub advised: Option<(f64, f64, String)>,
}

impl Chart<'_> {
    /// Whether the values are so far apart that only a logarithmic axis shows them all.
    pub fn wide(lines: &[Line]) -> bool {
        let values = lines.iter().flat_map(|line| &line.points).map(|point| point.y);
        span(values).is_some_and(|(low, high)| low > 0.0 && high > 8.0 * low)
    }

    fn points(&self) -> impl Iterator<Item = &Point> {
        self.lines.iter().flat_map(|line| &line.points)
    }

    /// Whether a reader learns more from the chart than from a sentence: it has two sizes, and its values differ by at
    /// least a fiftieth.
    pub fn says_something(&self) -> bool {
        let (x, y) = (span(self.points().map(|p| p.x)), span(self.points().map(|p| p.y)));
        x.zip(y).is_some_and(|((left, right), (low, high))| left < right && high - low > 0.02 * high.abs())
    }

    /// The content of the chart as a sentence; empty without points.
    pub fn sentence(&self) -> String {
        let Some((low, high)) = span(self.points().map(|p| p.y)) else { return String::new() };
        let (low, high) = (self.unit.show(low), self.unit.show(high));
        let value = if low == high { low } else { format!("{low} to {high}") };
        format!("{}: {value}.", self.title)
    }

    /// The picture; empty if it says nothing. The script redraws it from the numbers in it; this one is for paper, and
    /// for pages where no script runs.
    pub fn html(&self) -> String {
        if !self.says_something() {
            return String::new();
        }
        format!(
            "<figure tabindex=\"0\" aria-label=\"{title}: {y} by {x}\"><h3>{title}</h3>{}\
             <script type=\"application/json\" class=\"plot\">{}</script><p class=\"readout\" \
             aria-live=\"polite\"></p></figure>",
            self.plot().svg(),
            self.numbers().to_string().replace("</", "<\\/"),
            title = escape(self.title),
            x = escape(self.x),
            y = escape(self.y),
        )
    }

    /// All of it as curves: the ends of spans and the recommended point, too.
    fn plot(&self) -> Plot {
        let mib = |bytes: f64| bytes / f64::from(1 << 20);
        let curve = |line: &Line, name: &str, y: fn(&Point) -> Option<f64>| {
            let points = line.points.iter().filter_map(|point| Some((mib(point.x), y(point)?)));
            Series { name: name.into(), points: points.collect() }
        };
        let mut series = Vec::new();
        for line in &self.lines {
            series.push(curve(line, &line.name, |point| Some(point.y)));
            if line.points.iter().any(|point| point.span.is_some()) {
                series.push(curve(line, "from", |point| Some(point.span?.0)));
                series.push(curve(line, "to", |point| Some(point.span?.1)));
            }
        }
        let advised =
            self.advised.iter().map(|(x, y, text)| Series { name: text.clone(), points: vec![(mib(*x), *y)] });
        series.extend(advised);
        let zone = self.zone.map_or(String::new(), |(ram, why)| format!("; below {}: {why}", human_size(ram as u64)));
        let (title, x, y) = (
            String::new(),
            format!("{}, MiB{zone}", self.x),
            [self.y, self.unit.sign()].join(", ").trim_end_matches(", ").into(),
        );
        Plot { title, x, y, series, log_x: true, log_y: self.log_y }
    }

    /// The numbers that the script draws.
    fn numbers(&self) -> Value {
        let point = |p: &Point| json!([p.x, p.y, p.span.map(|(low, high)| [low, high]), p.path, p.label]);
        let line = |(i, line): (usize, &Line)| {
            let mark = match line.mark {
                Mark::Line => "line",
                Mark::Bound => "bound",
                Mark::Dots => "dots",
            };
            let points: Vec<Value> = line.points.iter().map(point).collect();
            let colour = COLOURS[i % COLOURS.len()];
            json!({ "name": line.name, "colour": colour, "mark": mark, "dash": dash(i, line), "points": points })
        };
        let lines: Vec<Value> = self.lines.iter().enumerate().map(line).collect();
        json!({ "x": self.x, "y": self.y, "unit": self.unit.sign(), "log": self.log_y, "zone": self.zone,
            "advised": self.advised, "lines": lines })
    }
}

/// Charts of the same curves under one legend; those that say nothing as a sentence.
pub fn charts(charts: &[Chart<'_>]) -> String {
    let (drawn, sentences): (Vec<_>, Vec<_>) = charts.iter().partition(|chart| chart.says_something());
    let sentences: String = sentences
        .iter()
        .map(|chart| chart.sentence())
        .filter(|text| !text.is_empty())
        .map(|text| note(&text))
        .collect();
    let Some(first) = drawn.first() else { return sentences };
    let figures: String = drawn.iter().map(|chart| chart.html()).collect();
    format!(
        "<div class=\"charts\">{}<div class=\"grid{}\">{figures}</div></div>{sentences}",
        legend(&first.lines),
        drawn.len().min(2)
    )
}

/// Names of curves; a press hides one. None for a single curve.
fn legend(lines: &[Line]) -> String {
    let entry = |(i, line): (usize, &Line)| {
        let colour = COLOURS[i % COLOURS.len()];
        let mark = if line.mark == Mark::Bound || i >= COLOURS.len() { "dashed" } else { "solid" };
        let tone = format!("color-mix(in srgb,{colour} var(--strong),#fff)");
        let style = match line.mark {
            Mark::Dots => format!("width:.7rem;height:.7rem;border-radius:50%;background:{tone}"),
            _ => format!("border-top:3px {mark} {tone}"),
        };
        format!(
            "<button type=\"button\" data-line=\"{i}\" aria-pressed=\"true\"><i style=\"{style}\"></i>{}</button>",
            escape(&line.name)
        )
    };
    match lines.len() {
        0 | 1 => String::new(),
        _ => format!("<p class=\"legend\">{}</p>", lines.iter().enumerate().map(entry).collect::<String>()),
    }
}

fn span(values: impl Iterator<Item = f64>) -> Option<(f64, f64)> {
    values.filter(|v| v.is_finite()).fold(None, |span, v| match span {
        None => Some((v, v)),
        Some((low, high)) => Some((v.min(low), v.max(high))),
    })
}

/// Bounds are dotted; where colours come a second time, lines are broken.
fn dash(i: usize, line: &Line) -> &'static str {
    match (line.mark == Mark::Bound, i / COLOURS.len()) {
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
        let point = |(x, y): &(f64, f64)| {
            let label = format!("{name}: {y}");
            Point { x: *x, y: *y, span: None, path: "/runs/0".into(), label }
        };
        Line { name: name.into(), points: points.iter().map(point).collect(), mark: Mark::Line }
    }

    fn chart(lines: Vec<Line>, log_y: bool) -> Chart<'static> {
        Chart { title: "Time", x: "RAM", y: "run time", unit: Unit::Seconds, lines, log_y, zone: None, advised: None }
    }

    #[test]
    fn what_cannot_be_drawn_is_left_out() {
        let html = chart(vec![line("a", &[(1.0, 0.0), (2.0, 1.0), (4.0, 2.0)])], true).html();
        assert_eq!(html.matches("<circle").count(), 2);
        assert_eq!(chart(Vec::new(), true).html(), "");
    }

    #[test]
    fn a_flat_chart_or_one_of_a_single_size_is_a_sentence() {
        let flat = || chart(vec![line("a", &[(1024.0, 61.80e-6), (4096.0, 61.86e-6)])], false);
        assert!(!flat().says_something());
        assert_eq!(flat().sentence(), "Time: 61.8 us to 61.9 us.");
        let all = charts(&[flat(), chart(vec![line("a", &[(1.0, 2.0)])], false)]);
        assert!(!all.contains("<figure") && all.contains("Time: 2.00 s."), "{all}");
        let two = || chart(vec![line("a", &[(1.0, 2.0), (2.0, 4.0)]), line("b", &[(1.0, 3.0)])], false);
        let both = charts(&[two(), two()]);
        assert_eq!((both.matches("class=\"legend\"").count(), both.matches("<figure").count()), (1, 2));
    }

    #[test]
    fn on_paper_the_curve_has_its_zone_and_advice_too() {
        let mut one = chart(vec![line("a<b", &[(1.0, 8.0), (4.0, 1.0)])], false);
        one.zone = Some((2.0 * f64::from(1 << 20), "thrashes"));
        one.advised = Some((4.0, 1.0, "advised".into()));
        let html = one.html();
        assert!(html.contains("RAM, MiB; below 2 MiB: thrashes") && html.contains(">advised</text>"), "{html}");
        assert!(html.contains("<title>a&lt;b: 8") && !html.contains("<title>a<b"), "{html}");
    }
}
