//! A small writer of charts: axes with round numbers, lines, dots, bars, and words that do not
//! stand on each other. Colours are names; the page's style sheet says what they are, by day and
//! by night.

use std::fmt::Write as _;

use super::document::escape;
use super::scale::Scale;

/// The width and height of a chart in its own units; text is 11 of them high.
const WIDTH: f64 = 380.0;
const HEIGHT: f64 = 270.0;
/// Room for the numbers and words beside the axes.
const LEFT: f64 = 52.0;
const RIGHT: f64 = 10.0;
const TOP: f64 = 24.0;
const BOTTOM: f64 = 40.0;
/// A letter is about this wide.
const LETTER: f64 = 5.8;
const LINE: f64 = 12.0;

/// Colours that can be distinguished, also by colour-blind readers.
const COLOURS: usize = 8;

/// How a series looks: a colour and a shape, by number, so that either tells it from others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Style {
    /// The number of the colour.
    pub colour: usize,
    /// The number of the shape.
    pub shape: usize,
}

impl Style {
    /// The colour and the shape of this number.
    pub fn of(number: usize) -> Self {
        Self { colour: number % COLOURS, shape: number % COLOURS }
    }

    fn class(self) -> usize {
        self.colour % COLOURS
    }
}

/// How a dot is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fill {
    /// One of our results.
    Full,
    /// A printed number.
    Hollow,
    /// One of several that a full dot is the mean of.
    Faint,
    /// A result that stands out from the others of its series.
    Ringed,
}

/// Something on a chart.
#[derive(Debug, Clone)]
pub enum Mark {
    /// A line through points.
    Line {
        /// Its corners.
        points: Vec<(f64, f64)>,
        /// The series it belongs to.
        style: Style,
        /// Whether it is dashed.
        dashed: bool,
    },
    /// A dot, with the range its height may have.
    Dot {
        /// Its position.
        at: (f64, f64),
        /// The ends of the range.
        range: Option<(f64, f64)>,
        /// The series it belongs to.
        style: Style,
        /// How it is drawn.
        fill: Fill,
        /// Its tooltip.
        tip: String,
    },
    /// A bar from zero, between two numbers of the lower axis.
    Bar {
        /// Its left end.
        from: f64,
        /// Its right end.
        to: f64,
        /// Its height.
        height: f64,
        /// The series it belongs to.
        style: Style,
        /// Its tooltip.
        tip: String,
    },
    /// Words beside a point, moved until they overlap nothing else.
    Word {
        /// The point.
        at: (f64, f64),
        /// The words.
        text: String,
    },
    /// The line on which both numbers are equal.
    Diagonal,
    /// A level that is aimed at.
    Level {
        /// Its height.
        y: f64,
    },
}

/// A chart.
#[derive(Debug, Clone)]
pub struct Chart {
    /// The title.
    pub title: String,
    /// A description in words, for accessibility.
    pub description: String,
    /// The lower axis.
    pub x: Scale,
    /// The left axis.
    pub y: Scale,
    /// The label of the lower axis.
    pub x_label: String,
    /// The label of the left axis.
    pub y_label: String,
    /// The elements.
    pub marks: Vec<Mark>,
}

impl Chart {
    /// The chart as an SVG element.
    pub fn svg(&self) -> String {
        let mut out = String::new();
        open(&mut out, WIDTH, HEIGHT, &self.title, &self.description);
        text(&mut out, LEFT, 13.0, "start", "t", &self.title);
        self.axes(&mut out);
        let mut taken = Vec::new();
        // Lines lie under dots, and dots under words.
        for layer in 0..3 {
            for mark in self.marks.iter().filter(|mark| mark.layer() == layer) {
                self.mark(&mut out, mark, &mut taken);
            }
        }
        out.push_str("</svg>");
        out
    }

    fn axes(&self, out: &mut String) {
        let (right, bottom) = (WIDTH - RIGHT, HEIGHT - BOTTOM);
        for tick in self.y.ticks(5) {
            let y = self.at_y(tick.value);
            let _ = write!(out, r#"<path class="g" d="M{LEFT} {y:.1}H{right}"/>"#);
            text(out, LEFT - 5.0, y + 3.8, "end", "n", &tick.text);
        }
        let mut free_from = f64::NEG_INFINITY;
        for tick in self.x.ticks(6) {
            let x = self.at_x(tick.value);
            let _ = write!(out, r#"<path class="g" d="M{x:.1} {TOP}V{bottom}"/>"#);
            let half = 0.5 * LETTER * tick.text.chars().count() as f64;
            if x - half > free_from {
                text(out, x.min(WIDTH - half), bottom + 14.0, "middle", "n", &tick.text);
                free_from = x + half + 4.0;
            }
        }
        let _ = write!(out, r#"<path class="a" d="M{LEFT} {TOP}V{bottom}H{right}"/>"#);
        text(out, 0.5 * (LEFT + right), HEIGHT - 8.0, "middle", "l", &self.x_label);
        let middle = 0.5 * (TOP + bottom);
        let _ = write!(
            out,
            r#"<text class="l" text-anchor="middle" transform="translate(10 {middle:.1}) rotate(-90)">{}</text>"#,
            escape(&self.y_label)
        );
    }

    fn mark(&self, out: &mut String, mark: &Mark, taken: &mut Vec<Taken>) {
        match mark {
            Mark::Line { points, style, dashed } => {
                let mut path = String::new();
                for (x, y) in points.iter().filter(|(x, y)| x.is_finite() && y.is_finite()) {
                    let step = if path.is_empty() { 'M' } else { 'L' };
                    let _ = write!(path, "{step}{:.1} {:.1}", self.at_x(*x), self.at_y(*y));
                }
                if !path.is_empty() {
                    let dash = if *dashed { " d" } else { "" };
                    let _ = write!(out, r#"<path class="c{} k{dash}" d="{path}"/>"#, style.class());
                }
            }
            Mark::Dot { at, range, style, fill, tip } => {
                if !(at.0.is_finite() && at.1.is_finite()) {
                    return;
                }
                let (x, y) = (self.at_x(at.0), self.at_y(at.1));
                if let Some((low, high)) = range.filter(|(low, high)| low <= high) {
                    let (low, high) = (self.at_y(low), self.at_y(high));
                    let _ = write!(
                        out,
                        r#"<path class="c{} e" d="M{x:.1} {low:.1}V{high:.1}"/>"#,
                        style.class()
                    );
                }
                dot(out, x, y, *style, *fill, tip);
                if *fill != Fill::Faint {
                    taken.push(Taken {
                        left: x - 4.0,
                        right: x + 4.0,
                        top: y - 4.0,
                        bottom: y + 4.0,
                    });
                }
            }
            Mark::Bar { from, to, height, style, tip } => {
                let (left, right) = (self.at_x(*from), self.at_x(*to));
                let (top, bottom) = (self.at_y(*height), self.at_y(0.0));
                let _ = write!(
                    out,
                    r#"<rect class="c{} b" x="{left:.1}" y="{top:.1}" width="{:.1}" height="{:.1}"><title>{}</title></rect>"#,
                    style.class(),
                    (right - left - 1.0).max(0.5),
                    (bottom - top).max(0.0),
                    escape(tip)
                );
            }
            Mark::Word { at, text: word } => {
                let (x, y) = (self.at_x(at.0), self.at_y(at.1));
                let room =
                    Taken { left: LEFT, right: WIDTH - RIGHT, top: TOP, bottom: HEIGHT - BOTTOM };
                if let Some(place) = free_place(x, y, word, &room, taken) {
                    text(out, place.left, place.bottom - 2.5, "start", "w", word);
                    taken.push(place);
                }
            }
            Mark::Diagonal => {
                let ends = self.y.ticks(2).into_iter().chain(self.x.ticks(2));
                let (low, high) = ends
                    .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), tick| {
                        (low.min(tick.value), high.max(tick.value))
                    });
                if low < high {
                    let (x, y) = (self.at_x(low), self.at_y(low));
                    let (to_x, to_y) = (self.at_x(high), self.at_y(high));
                    let _ =
                        write!(out, r#"<path class="h" d="M{x:.1} {y:.1}L{to_x:.1} {to_y:.1}"/>"#);
                }
            }
            Mark::Level { y } => {
                let (y, right) = (self.at_y(*y), WIDTH - RIGHT);
                let _ = write!(out, r#"<path class="h" d="M{LEFT} {y:.1}H{right}"/>"#);
            }
        }
    }

    fn at_x(&self, value: f64) -> f64 {
        LEFT + self.x.place(value) * (WIDTH - LEFT - RIGHT)
    }

    fn at_y(&self, value: f64) -> f64 {
        HEIGHT - BOTTOM - self.y.place(value) * (HEIGHT - TOP - BOTTOM)
    }
}

impl Mark {
    fn layer(&self) -> usize {
        match self {
            Self::Line { .. } | Self::Bar { .. } | Self::Diagonal | Self::Level { .. } => 0,
            Self::Dot { .. } => 1,
            Self::Word { .. } => 2,
        }
    }
}

/// An occupied area.
#[derive(Debug, Clone, PartialEq)]
pub struct Taken {
    /// Its left edge.
    pub left: f64,
    /// Its right edge.
    pub right: f64,
    /// Its upper edge.
    pub top: f64,
    /// Its lower edge.
    pub bottom: f64,
}

impl Taken {
    fn meets(&self, other: &Self) -> bool {
        self.left < other.right
            && other.left < self.right
            && self.top < other.bottom
            && other.top < self.bottom
    }

    fn is_within(&self, room: &Self) -> bool {
        self.left >= room.left
            && self.right <= room.right
            && self.top >= room.top
            && self.bottom <= room.bottom
    }
}

/// The nearest free place for a word beside a point; `None` if there is none.
pub fn free_place(x: f64, y: f64, word: &str, room: &Taken, taken: &[Taken]) -> Option<Taken> {
    let width = LETTER * word.chars().count() as f64;
    let beside = [0.0, LINE, -LINE, 2.0 * LINE, -2.0 * LINE, 3.0 * LINE, -3.0 * LINE];
    let places = beside.iter().flat_map(|down| {
        [x + 7.0, x - 7.0 - width, x - 0.5 * width].map(|left| Taken {
            left,
            right: left + width,
            top: y + down - 0.5 * LINE,
            bottom: y + down + 0.5 * LINE,
        })
    });
    places
        .filter(|place| place.is_within(room))
        .find(|place| taken.iter().all(|other| !place.meets(other)))
}

/// Opens an SVG element that scales with the page and has a description.
pub fn open(out: &mut String, width: f64, height: f64, title: &str, description: &str) {
    let _ = write!(
        out,
        r#"<svg viewBox="0 0 {width} {height}" role="img" aria-label="{}">"#,
        escape(&format!("{title}. {description}"))
    );
}

/// Writes words at a place.
pub fn text(out: &mut String, x: f64, y: f64, anchor: &str, class: &str, words: &str) {
    let _ = write!(
        out,
        r#"<text class="{class}" x="{x:.1}" y="{y:.1}" text-anchor="{anchor}">{}</text>"#,
        escape(words)
    );
}

/// Draws a dot in the shape of its series.
pub fn dot(out: &mut String, x: f64, y: f64, style: Style, fill: Fill, tip: &str) {
    let size = match fill {
        Fill::Full | Fill::Ringed => 4.4,
        Fill::Hollow => 4.6,
        Fill::Faint => 2.4,
    };
    let class = match fill {
        Fill::Full | Fill::Ringed => "f",
        Fill::Hollow => "o",
        Fill::Faint => "q",
    };
    if fill == Fill::Ringed {
        let _ = write!(out, r#"<circle class="r" cx="{x:.1}" cy="{y:.1}" r="8"/>"#);
    }
    let _ = write!(
        out,
        r#"<path class="c{} {class}" d="{}"><title>{}</title></path>"#,
        style.class(),
        shape(x, y, size, style),
        escape(tip)
    );
}

/// The outline of a series' shape.
fn shape(x: f64, y: f64, size: f64, style: Style) -> String {
    let polygon = |corners: &[(f64, f64)]| {
        let mut path = String::new();
        for (index, (right, down)) in corners.iter().enumerate() {
            let step = if index == 0 { 'M' } else { 'L' };
            let _ = write!(path, "{step}{:.1} {:.1}", x + right * size, y + down * size);
        }
        path + "Z"
    };
    match style.shape {
        0 => format!(
            "M{:.1} {y:.1}a{size} {size} 0 1 0 {:.1} 0a{size} {size} 0 1 0 {:.1} 0Z",
            x - size,
            2.0 * size,
            -2.0 * size
        ),
        1 => polygon(&[(-0.9, -0.9), (0.9, -0.9), (0.9, 0.9), (-0.9, 0.9)]),
        2 => polygon(&[(0.0, -1.3), (1.2, 0.0), (0.0, 1.3), (-1.2, 0.0)]),
        3 => polygon(&[(0.0, -1.2), (1.15, 0.9), (-1.15, 0.9)]),
        4 => polygon(&[(0.0, 1.2), (1.15, -0.9), (-1.15, -0.9)]),
        5 => {
            let (a, b) = (0.42, 1.2);
            polygon(&[
                (-a, -b),
                (a, -b),
                (a, -a),
                (b, -a),
                (b, a),
                (a, a),
                (a, b),
                (-a, b),
                (-a, a),
                (-b, a),
                (-b, -a),
                (-a, -a),
            ])
        }
        6 => polygon(&[(0.0, -1.25), (1.2, -0.35), (0.75, 1.05), (-0.75, 1.05), (-1.2, -0.35)]),
        7 => polygon(&[
            (-1.2, 0.0),
            (-0.6, -1.05),
            (0.6, -1.05),
            (1.2, 0.0),
            (0.6, 1.05),
            (-0.6, 1.05),
        ]),
        8 => polygon(&[(-1.1, -1.1), (1.1, 1.1), (1.1, -1.1), (-1.1, 1.1)]),
        _ => polygon(&[
            (0.0, -1.5),
            (0.38, -0.38),
            (1.5, 0.0),
            (0.38, 0.38),
            (0.0, 1.5),
            (-0.38, 0.38),
            (-1.5, 0.0),
            (-0.38, -0.38),
        ]),
    }
}

/// A series' mark alone, for a legend.
pub fn key(style: Style, fill: Fill) -> String {
    let mut out = String::from(r#"<svg class="key" viewBox="0 0 18 18" aria-hidden="true">"#);
    dot(&mut out, 9.0, 9.0, style, fill, "");
    out.push_str("</svg>");
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chart(marks: Vec<Mark>) -> Chart {
        Chart {
            title: "a < b".to_owned(),
            description: "one \"dot\"".to_owned(),
            x: Scale::linear(0.0, 1.0),
            y: Scale::linear(0.0, 1.0),
            x_label: "cost".to_owned(),
            y_label: "validity".to_owned(),
            marks,
        }
    }

    #[test]
    fn dots_say_what_they_are_and_nothing_is_left_unescaped() {
        let dot = Mark::Dot {
            at: (0.5, 0.5),
            range: Some((0.4, 0.6)),
            style: Style::of(3),
            fill: Fill::Full,
            tip: "<script>".to_owned(),
        };
        let svg = chart(vec![dot, Mark::Diagonal]).svg();
        assert!(svg.contains("<title>&lt;script&gt;</title>"), "{svg}");
        assert!(svg.contains("aria-label=\"a &lt; b. one &quot;dot&quot;\""), "{svg}");
        assert!(svg.contains("class=\"h\""), "{svg}");
    }

    #[test]
    fn what_is_no_number_is_not_drawn() {
        let dot = |at| Mark::Dot {
            at,
            range: None,
            style: Style::of(0),
            fill: Fill::Full,
            tip: String::new(),
        };
        let line = Mark::Line { points: vec![(f64::NAN, 1.0)], style: Style::of(0), dashed: false };
        let empty = chart(Vec::new()).svg();
        assert_eq!(chart(vec![dot((f64::NAN, 0.5)), dot((0.1, f64::INFINITY)), line]).svg(), empty);
    }

    #[test]
    fn words_do_not_stand_on_each_other() {
        let room = Taken { left: 0.0, right: 200.0, top: 0.0, bottom: 100.0 };
        let mut taken = Vec::new();
        for _ in 0..4 {
            let place = free_place(100.0, 50.0, "trex-i", &room, &taken).unwrap();
            assert!(taken.iter().all(|other| !place.meets(other)));
            taken.push(place);
        }
        let full = vec![room.clone()];
        assert!(free_place(100.0, 50.0, "trex-i", &room, &full).is_none());
    }
}
