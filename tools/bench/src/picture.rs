//! A picture of kept results: for each workload a bar for each method.
//!
//! ```text
//! customer        copy         ==================================  24.30 s  15.2x
//!                 freeze       =====================               14.50 s   9.1x
//!                 pgpagewrite  ==                                   1.60 s
//!                 floor        =                                    0.92 s   0.58x
//! ```
//!
//! Times of workloads are far apart, so each workload has its own scale: what the eye compares is
//! the ways of one workload. The colours are those of the reader's theme, on a ground of the
//! picture's own.

use crate::method::Method;
use crate::results::Workload;
use std::fmt::Write;

const WIDTH: f64 = 860.0;
const MARGIN: f64 = 24.0;
const BARS_LEFT: f64 = 130.0;
const BARS_WIDTH: f64 = 560.0;
const BAR_HEIGHT: f64 = 18.0;
const BAR_STEP: f64 = 24.0;
/// Above the bars of a workload: its name and what it is.
const HEAD_HEIGHT: f64 = 46.0;
const TITLE_HEIGHT: f64 = 70.0;

const STYLE: &str = "
    .ground { fill: #ffffff; stroke: #d0d7de }
    text { font-family: system-ui, 'Segoe UI', 'DejaVu Sans', sans-serif; font-size: 13px; fill: #1f2328 }
    .title { font-size: 18px; font-weight: 600 }
    .name { font-size: 15px; font-weight: 600 }
    .about, .factor { fill: #59636e }
    .about { font-size: 12px }
    .label { text-anchor: end }
    .copy { fill: #9a6700 }
    .freeze { fill: #bf8700 }
    .bulkload { fill: #8250df }
    .pgpagewrite { fill: #0969da }
    .floor { fill: #8c959f }
    @media (prefers-color-scheme: dark) {
        .ground { fill: #0d1117; stroke: #3d444d }
        text { fill: #f0f6fc }
        .about, .factor { fill: #9198a1 }
        .copy { fill: #bb8009 }
        .freeze { fill: #d29922 }
        .bulkload { fill: #ab7df8 }
        .pgpagewrite { fill: #4493f8 }
        .floor { fill: #656c76 }
    }
";

/// The picture as SVG.
pub(crate) fn svg(workloads: &[Workload]) -> String {
    let bars: usize = workloads.iter().map(|w| w.seconds.len()).sum();
    let height = TITLE_HEIGHT
        + workloads.len() as f64 * (HEAD_HEIGHT + MARGIN / 2.0)
        + bars as f64 * BAR_STEP
        + MARGIN / 2.0;
    let mut out = String::new();
    let _ = writeln!(
        out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" \
         width=\"{WIDTH}\" height=\"{height}\" role=\"img\" \
         aria-label=\"Time per method and workload\">\n<style>{STYLE}</style>\n\
         <rect class=\"ground\" x=\"0.5\" y=\"0.5\" width=\"{}\" height=\"{}\" rx=\"6\"/>",
        WIDTH - 1.0,
        height - 1.0
    );
    text(
        &mut out,
        "title",
        MARGIN,
        32.0,
        "Time to load the same rows, durable on disk",
    );
    text(
        &mut out,
        "about",
        MARGIN,
        52.0,
        "Medians; each workload has its own scale. Factors are of pgpagewrite's time.",
    );
    let mut top = TITLE_HEIGHT;
    for workload in workloads {
        top = draw(&mut out, workload, top) + MARGIN / 2.0;
    }
    out.push_str("</svg>\n");
    out
}

/// Draws a workload from `top` down and returns where it ends.
fn draw(out: &mut String, workload: &Workload, top: f64) -> f64 {
    text(out, "name", MARGIN, top + 16.0, &workload.name);
    text(out, "about", MARGIN, top + 34.0, &workload.about);
    let most = workload.seconds.iter().map(|(_, s)| *s).fold(0.0, f64::max);
    let ours = workload
        .seconds
        .iter()
        .find(|(method, _)| *method == Method::Pgpagewrite);
    let mut y = top + HEAD_HEIGHT;
    for (method, seconds) in &workload.seconds {
        let name = method.name();
        let base = y + BAR_HEIGHT - 5.0;
        let width = (BARS_WIDTH * seconds / most.max(1e-9)).max(1.0);
        text(out, "label", BARS_LEFT - 8.0, base, name);
        let _ = writeln!(
            out,
            "<rect class=\"{name}\" x=\"{BARS_LEFT}\" y=\"{y}\" width=\"{width:.1}\" \
             height=\"{BAR_HEIGHT}\" rx=\"2\"/>"
        );
        let mut told = format!("{} s", seconds_text(*seconds));
        if let Some((_, ours)) = ours
            && *method != Method::Pgpagewrite
        {
            let _ = write!(
                told,
                " <tspan class=\"factor\">\u{d7}\u{2009}{}</tspan>",
                factor_text(seconds / ours.max(1e-9))
            );
        }
        let _ = writeln!(
            out,
            "<text x=\"{:.1}\" y=\"{base}\">{told}</text>",
            BARS_LEFT + width + 8.0
        );
        y += BAR_STEP;
    }
    y
}

fn text(out: &mut String, class: &str, x: f64, y: f64, text: &str) {
    let text = text
        .replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;");
    let _ = writeln!(
        out,
        "<text class=\"{class}\" x=\"{x}\" y=\"{y}\">{text}</text>"
    );
}

fn seconds_text(seconds: f64) -> String {
    match seconds {
        ..10.0 => format!("{seconds:.2}"),
        _ => format!("{seconds:.1}"),
    }
}

fn factor_text(factor: f64) -> String {
    match factor {
        ..2.0 => format!("{factor:.2}"),
        _ => format!("{factor:.1}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_bar_is_full_and_the_others_are_to_scale() {
        let svg = svg(&[Workload {
            name: "customer".to_owned(),
            about: "1 < 2 & 3".to_owned(),
            seconds: vec![
                (Method::Copy, 24.0),
                (Method::Pgpagewrite, 1.5),
                (Method::Floor, 0.75),
            ],
        }]);
        assert!(svg.contains("width=\"560.0\""), "{svg}");
        assert!(svg.contains("width=\"35.0\""), "{svg}");
        assert!(svg.contains("width=\"17.5\""), "{svg}");
        assert!(
            svg.contains("24.0 s <tspan class=\"factor\">\u{d7}\u{2009}16.0<"),
            "{svg}"
        );
        assert!(svg.contains(">1.50 s</text>"), "{svg}");
        assert!(svg.contains("\u{d7}\u{2009}0.50<"), "{svg}");
        assert!(svg.contains("1 &lt; 2 &amp; 3"), "{svg}");
    }
}
