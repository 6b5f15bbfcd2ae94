//! Curves by RAM: their numbers for the script that draws them on a screen, and SVG for paper and for readers without a
//! script.

use std::fmt::Write;

use coldframe_sheet::quantity::human_size;
use serde_json::{json, Value};

use crate::html::words::{note, Unit};
use crate::plot::{escape, Axis, COLOURS};

const WIDTH: f64 = 640.0;
const HEIGHT: f64 = 340.0;
const LEFT: f64 = 74.0;
const RIGHT: f64 = 22.0;
const TOP: f64 = 34.0;
const BOTTOM: f64 = 52.0;
/// The approximate width of a letter.
const LETTER: f64 = 7.0;

/// A point of a curve.
pub struct Point {
    /// Bytes of RAM.
    pub x: f64,
    /// Upwards.
    pub y: f64,
    /// What `y` may be, where that is known.
    pub span: Option<(f64, f64)>,
    /// The path by which the script finds its JSON; may be empty.
    pub at: String,
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

    fn ticks(&self, unit: Unit) -> String {
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
                unit.show(value),
            );
        }
        for (i, value) in powers_of_two(&self.x).into_iter().enumerate() {
            let Some((x, _)) = self.at(value, self.y.high) else { continue };
            let class = if i % 2 == 1 { " class=\"minor\"" } else { "" };
            let (y, text) = (HEIGHT - BOTTOM + 20.0, human_size(value as u64));
            let _ = write!(out, "<text{class} x=\"{x:.1}\" y=\"{y}\" text-anchor=\"middle\">{text}</text>");
        }
        out
    }

    /// The shaded part, and the advised point.
    fn marks(&self, chart: &Chart<'_>) -> String {
        let (mut out, bottom) = (String::new(), HEIGHT - BOTTOM);
        if let Some((x, _)) = chart.zone.and_then(|(ram, _)| self.at(ram, self.y.low)) {
            let wide = x - LEFT;
            let _ = write!(
                out,
                "<rect class=\"zone\" x=\"{LEFT}\" y=\"{TOP}\" width=\"{wide:.1}\" height=\"{:.1}\"/>",
                bottom - TOP
            );
        }
        if let Some(((x, y), text)) = chart.advised.as_ref().and_then(|(x, y, text)| Some((self.at(*x, *y)?, text))) {
            let (anchor, text_x) =
                if x + LETTER * text.len() as f64 > WIDTH { ("end", x - 6.0) } else { ("start", x + 6.0) };
            let _ = write!(
                out,
                "<path class=\"advised\" d=\"M{x:.1} {TOP}V{bottom}\"/><circle class=\"ring\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"8\"/>\
                 <text x=\"{text_x:.1}\" y=\"{}\" text-anchor=\"{anchor}\">{}</text>",
                TOP + 12.0,
                escape(text)
            );
        }
        out
    }
}

/// Most ticks of an axis.
const TICKS_MAX: usize = 8;

/// Round numbers within the axis: on a logarithmic axis 1, 2 and 5 times powers of ten, otherwise multiples of such a
/// number.
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

impl Chart<'_> {
    /// Whether the values are so far apart that only a logarithmic axis shows them all.
    pub fn wide(lines: &[Line]) -> bool {
        let values = lines.iter().flat_map(|line| &line.points).map(|point| point.y);
        span(values).is_some_and(|(low, high)| low > 0.0 && high > 8.0 * low)
    }

    fn points(&self) -> impl Iterator<Item = &Point> {
        self.lines.iter().flat_map(|line| &line.points)
    }

    fn frame(&self) -> Option<Frame> {
        let spans = || self.points().flat_map(|p| p.span).flat_map(|(low, high)| [low, high]);
        let y = Axis::over(self.points().map(|p| p.y).chain(spans()), self.log_y)?;
        Some(Frame { x: Axis::over(self.points().map(|p| p.x), true)?, y })
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
        let Some(frame) = self.frame().filter(|_| self.says_something()) else { return String::new() };
        let curves: String = self.lines.iter().enumerate().map(|(i, line)| self.curve(&frame, i, line)).collect();
        format!(
            "<figure tabindex=\"0\" aria-label=\"{title}, by {x}\"><h3>{title}</h3><svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" \
             aria-label=\"{title} by {x}\">{}{}{curves}<text x=\"{:.0}\" y=\"{:.0}\" text-anchor=\"middle\">{x}</text></svg>\
             <script type=\"application/json\" class=\"plot\">{}</script><p class=\"readout\" aria-live=\"polite\"></p></figure>",
            frame.marks(self),
            frame.ticks(self.unit),
            (LEFT + WIDTH - RIGHT) / 2.0,
            HEIGHT - 8.0,
            self.numbers().to_string().replace("</", "<\\/"),
            title = escape(self.title),
            x = escape(self.x),
        )
    }

    /// The numbers that the script draws.
    fn numbers(&self) -> Value {
        let point = |p: &Point| json!([p.x, p.y, p.span.map(|(low, high)| [low, high]), p.at, p.label]);
        let line = |(i, line): (usize, &Line)| {
            let mark = match line.mark {
                Mark::Line => "line",
                Mark::Bound => "bound",
                Mark::Dots => "dots",
            };
            let points: Vec<Value> = line.points.iter().map(point).collect();
            json!({ "name": line.name, "colour": COLOURS[i % COLOURS.len()], "mark": mark, "dash": dash(i, line), "points": points })
        };
        let lines: Vec<Value> = self.lines.iter().enumerate().map(line).collect();
        json!({ "x": self.x, "unit": self.unit.sign(), "log": self.log_y, "zone": self.zone, "advised": self.advised, "lines": lines })
    }

    fn curve(&self, frame: &Frame, i: usize, line: &Line) -> String {
        let placed: Vec<_> = line.points.iter().filter_map(|p| Some((frame.at(p.x, p.y)?, p))).collect();
        let way = |points: &mut dyn Iterator<Item = (f64, f64)>| -> String {
            points.map(|(x, y)| format!("{x:.1},{y:.1}")).collect::<Vec<_>>().join(" ")
        };
        let (colour, dash) = (COLOURS[i % COLOURS.len()], dash(i, line));
        let circle = |((x, y), p): &((f64, f64), &Point)| {
            let at = if p.at.is_empty() { String::new() } else { format!(" data-at=\"{}\"", p.at) };
            format!("<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"4\"{at}><title>{}</title></circle>", escape(&p.label))
        };
        let dots: String = placed.iter().map(circle).collect();
        let ends = |high: bool| {
            let end = move |p: &Point| Some((p.x, p.span.map(|(low, up)| if high { up } else { low })?));
            line.points.iter().filter_map(end).filter_map(|(x, y)| frame.at(x, y))
        };
        let area = way(&mut ends(true).chain(ends(false).collect::<Vec<_>>().into_iter().rev()));
        let band = if area.is_empty() { area } else { format!("<polygon class=\"band\" points=\"{area}\"/>") };
        let way = match line.mark {
            Mark::Dots => String::new(),
            _ => {
                let points = way(&mut placed.iter().map(|(place, _)| *place));
                format!("<polyline points=\"{points}\" stroke-dasharray=\"{dash}\"/>")
            }
        };
        format!("<g data-line=\"{i}\" style=\"--c:{colour}\">{band}{way}{dots}</g>")
    }
}

/// Charts of the same curves under one legend; those that say nothing as a sentence.
pub fn charts(all: &[Chart<'_>]) -> String {
    let (drawn, sentences): (Vec<_>, Vec<_>) = all.iter().partition(|chart| chart.says_something());
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
        let style = match line.mark {
            Mark::Dots => format!("width:.7rem;height:.7rem;border-radius:50%;background:{colour}"),
            _ => format!("border-top:3px {mark} {colour}"),
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
    use crate::html::words::short;

    fn line(name: &str, points: &[(f64, f64)]) -> Line {
        let point = |(x, y): &(f64, f64)| {
            let label = format!("{name}: {y}");
            Point { x: *x, y: *y, span: None, at: "/runs/0".into(), label }
        };
        Line { name: name.into(), points: points.iter().map(point).collect(), mark: Mark::Line }
    }

    fn chart(lines: Vec<Line>, log_y: bool) -> Chart<'static> {
        Chart { title: "Time", x: "RAM", unit: Unit::Seconds, lines, log_y, zone: None, advised: None }
    }

    #[test]
    fn corners_of_the_data_are_corners_of_the_frame() {
        let html = chart(vec![line("a<b", &[(1.0, 8.0), (4.0, 0.0)])], false).html();
        assert!(html.contains(&format!("points=\"{LEFT:.1},{TOP:.1} {:.1},{:.1}\"", WIDTH - RIGHT, HEIGHT - BOTTOM)));
        assert!(html.contains("<title>a&lt;b: 8</title>") && !html.contains("<title>a<b"));
        assert_eq!(html.matches("data-at=").count(), 2);
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
    fn the_zone_ends_and_the_advice_stands_where_the_axis_puts_them() {
        let mut one = chart(vec![line("a", &[(1.0, 8.0), (4.0, 1.0)])], false);
        one.zone = Some((2.0, "thrashes"));
        one.advised = Some((4.0, 1.0, "advised".into()));
        // 2 is the middle of 1 to 4 on a logarithmic axis.
        let (html, half) = (one.html(), (WIDTH - LEFT - RIGHT) / 2.0);
        assert!(html.contains(&format!("width=\"{half:.1}\"")), "{html}");
        assert!(html.contains(&format!("class=\"ring\" cx=\"{:.1}\"", WIDTH - RIGHT)), "{html}");
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
        assert_eq!([short(0.5), short(2048.0), short(1e-5)], ["0.5", "2048", "1e-5"]);
    }
}
