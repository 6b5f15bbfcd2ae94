//! Bars in groups, as terminal text and as SVG: one measure of several things under several conditions.

use std::fmt::Write;

use coldframe_sheet::quantity::human_count;
use coldframe_show::plot::{escape, short, COLOURS};

#[derive(Clone, Debug)]
pub struct Bars {
    /// Above it.
    pub title: String,
    /// The measure, with its unit if it has one.
    pub measure: String,
    /// The names of the bars in each group, in order.
    pub names: Vec<String>,
    /// Groups: a name, and a value for each of `names`; `None`: no bar.
    pub groups: Vec<(String, Vec<Option<f64>>)>,
}

/// Size of one chart in a picture.
const WIDTH: f64 = 800.0;
const HEIGHT: f64 = 300.0;

impl Bars {
    fn most(&self) -> f64 {
        self.groups.iter().flat_map(|(_, values)| values).copied().flatten().fold(0.0, f64::max)
    }

    /// As text: a line for each bar, the longest bar `width` characters.
    pub fn text(&self, width: usize) -> String {
        let longest = self.names.iter().map(String::len).max().unwrap_or(0);
        let most = self.most();
        let mut out = format!("{}, {}\n", self.title, self.measure);
        for (group, values) in &self.groups {
            let _ = writeln!(out, "  {group}");
            for (name, value) in self.names.iter().zip(values).filter_map(|(name, value)| Some((name, (*value)?))) {
                let length = if most > 0.0 { (value / most * width as f64).round() as usize } else { 0 };
                let shown = if value.fract() == 0.0 { human_count(value as u64) } else { format!("{value:.2}") };
                let _ = writeln!(out, "    {name:<longest$} {} {shown}", "█".repeat(length));
            }
        }
        out
    }

    pub fn svg(&self) -> String {
        let (left, top, right, bottom) = (80.0, 44.0, 150.0, 40.0);
        let (wide, high) = (WIDTH - left - right, HEIGHT - top - bottom);
        let mut out = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" font-family=\"sans-serif\" \
             font-size=\"11\">\n\
             <rect width=\"{WIDTH}\" height=\"{HEIGHT}\" fill=\"white\"/>\n<text x=\"{left}\" y=\"20\" \
             font-size=\"14\">{}</text>\
             <text x=\"{left}\" y=\"38\">{}</text>\n",
            escape(&self.title),
            escape(&self.measure)
        );
        let most = if self.most() > 0.0 { self.most() } else { 1.0 };
        for i in 0..=4 {
            let y = top + high * (1.0 - f64::from(i) / 4.0);
            let label = short(most * f64::from(i) / 4.0);
            let _ = writeln!(
                out,
                "<line x1=\"{left}\" x2=\"{}\" y1=\"{y:.1}\" y2=\"{y:.1}\" stroke=\"#ddd\"/>\
                 <text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{label}</text>",
                left + wide,
                left - 6.0,
                y + 4.0
            );
        }
        let group_width = wide / self.groups.len().max(1) as f64;
        let bar = group_width * 0.85 / self.names.len().max(1) as f64;
        for (g, (group, values)) in self.groups.iter().enumerate() {
            let start = left + group_width * (g as f64 + 0.075);
            for (i, (name, value)) in self.names.iter().zip(values).enumerate() {
                let Some(value) = value else { continue };
                let height = high * value / most;
                let _ = writeln!(
                    out,
                    "<rect x=\"{:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{height:.1}\" \
                     fill=\"{}\"><title>{}</title></rect>",
                    start + bar * i as f64,
                    top + high - height,
                    bar * 0.95,
                    COLOURS[i % COLOURS.len()],
                    escape(&format!("{group}, {name}: {}", short(*value)))
                );
            }
            let (x, y) = (left + group_width * (g as f64 + 0.5), HEIGHT - bottom + 16.0);
            let _ = writeln!(out, "<text x=\"{x:.1}\" y=\"{y}\" text-anchor=\"middle\">{}</text>", escape(group));
        }
        for (i, name) in self.names.iter().enumerate() {
            let (x, y) = (WIDTH - right + 12.0, top + 16.0 * i as f64);
            let colour = COLOURS[i % COLOURS.len()];
            let _ = writeln!(
                out,
                "<rect x=\"{x}\" y=\"{y}\" width=\"10\" height=\"10\" fill=\"{colour}\"/><text x=\"{}\" \
                 y=\"{}\">{}</text>",
                x + 16.0,
                y + 9.0,
                escape(name)
            );
        }
        out + "</svg>\n"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_value_is_the_longest_bar_and_the_svg_has_one_rectangle_a_value() {
        let groups = vec![("1024".into(), vec![Some(4.0), Some(2.0)]), ("2048".into(), vec![Some(1.0), None])];
        let bars = Bars { title: "t".into(), measure: "reads".into(), names: vec!["a".into(), "b".into()], groups };
        let lengths: Vec<usize> = bars.text(8).lines().map(|line| line.matches('█').count()).collect();
        assert_eq!(lengths, [0, 0, 8, 4, 0, 2]);
        // One rectangle for each value, one for each name, and the background.
        assert_eq!(bars.svg().matches("<rect").count(), 3 + 2 + 1);
        assert!(coldframe_show::plot::stack(&[bars.svg(), bars.svg()]).contains("viewBox=\"0 0 800 600\""));
    }
}
