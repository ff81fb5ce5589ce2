//! Numbers as text.

use crate::metric::Summary;

/// A cost or another amount: two digits after the point from 1 on, three below.
pub fn amount(value: f64) -> String {
    if !value.is_finite() {
        return "none".to_owned();
    }
    let digits = if value.abs() >= 100.0 {
        1
    } else if value.abs() >= 1.0 {
        2
    } else {
        3
    };
    unsigned_zero(format!("{value:.digits$}"))
}

/// A share in per cent.
pub fn percent(share: f64) -> String {
    if !share.is_finite() {
        return "none".to_owned();
    }
    format!("{} %", unsigned_zero(format!("{:.1}", 100.0 * share)))
}

/// A number between -1 and 1.
pub fn two_digits(value: f64) -> String {
    if value.is_finite() { unsigned_zero(format!("{value:.2}")) } else { "none".to_owned() }
}

/// The same with its sign, always.
pub fn signed(text: &str) -> String {
    if text.starts_with('-') { text.replacen('-', "\u{2212}", 1) } else { format!("+{text}") }
}

/// Seconds by the clock.
pub fn seconds(value: f64) -> String {
    match value {
        v if !v.is_finite() => "none".to_owned(),
        0.0 => "\u{2013}".to_owned(),
        v if v < 0.001 => format!("{:.0} \u{b5}s", 1e6 * v),
        v if v < 1.0 => format!("{:.1} ms", 1e3 * v),
        v if v < 120.0 => format!("{v:.1} s"),
        v => format!("{:.1} min", v / 60.0),
    }
}

/// "1 model", "2 models".
pub fn counted(count: usize, what: &str) -> String {
    if count == 1 { format!("1 {what}") } else { format!("{count} {what}s") }
}

/// The interval of a mean, where there is one.
pub fn interval(summary: &Summary, text: impl Fn(f64) -> String) -> String {
    match (summary.low, summary.high) {
        (Some(low), Some(high)) => format!("[{}, {}]", text(low), text(high)),
        _ => String::new(),
    }
}

/// "98.2 % [97.9 %, 98.5 %]"
pub fn percent_with_interval(summary: &Summary) -> String {
    let text = format!("{} {}", percent(summary.mean), interval(summary, percent));
    text.trim_end().to_owned()
}

fn unsigned_zero(text: String) -> String {
    if text.trim_matches(['-', '0', '.']).is_empty() { text.replace('-', "") } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_read_well() {
        assert_eq!(
            [0.1234, 1.234, 123.45, -0.0001].map(amount),
            ["0.123", "1.23", "123.5", "0.000"]
        );
        assert_eq!([1.0, 0.4567, -0.0].map(percent), ["100.0 %", "45.7 %", "0.0 %"]);
        assert_eq!(amount(f64::NAN), "none");
        assert_eq!(
            [4e-6, 0.0123, 12.0, 300.0].map(seconds),
            ["4 \u{b5}s", "12.3 ms", "12.0 s", "5.0 min"]
        );
        assert_eq!(["0.1", "-0.1"].map(signed), ["+0.1", "\u{2212}0.1"]);
        assert_eq!([counted(1, "model"), counted(2, "model")], ["1 model", "2 models"]);
    }
}
