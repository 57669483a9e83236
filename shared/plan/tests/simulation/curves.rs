//! The number of files over time as curves: an SVG for a scenario, a line for a policy.

use std::fmt::Write;

use crate::picture::Scenario;
use crate::policies::{POLICIES, Policy};
use crate::world::DAY;

/// Where the curves are drawn, in pixels.
const LEFT: i64 = 60;
const TOP: i64 = 16;
const WIDTH: i64 = 660;
const HEIGHT: i64 = 260;
/// Decades of the vertical axis: 1 to 10,000 files.
const DECADES: u32 = 4;

fn color(policy: Policy) -> &'static str {
    match policy {
        Policy::Firn => "#0969da",
        Policy::Threshold => "#bf8700",
        Policy::SparkBinPack => "#cf222e",
        Policy::NightlyFull => "#8250df",
    }
}

/// Files in the table every half hour, on a logarithmic scale.
pub fn curves(scenario: &Scenario) -> String {
    let minutes = scenario.days * DAY;
    let (width, height) = (LEFT + WIDTH + 20, TOP + HEIGHT + 70);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" font-family=\"sans-serif\" font-size=\"12\">\n\
         <title>Files in the table: {}</title>\n<rect width=\"{width}\" height=\"{height}\" fill=\"#ffffff\"/>\n",
        scenario.what
    );
    for decade in 0..=DECADES {
        let (y, files) = (level(10_usize.pow(decade)), 10_u64.pow(decade));
        writeln!(svg, "<path d=\"M{LEFT} {y}h{WIDTH}\" stroke=\"#d0d7de\"/>").unwrap();
        writeln!(svg, "<text x=\"{}\" y=\"{}\" text-anchor=\"end\">{files}</text>", LEFT - 6, y + 4).unwrap();
    }
    for day in 0..=scenario.days {
        let x = LEFT + day * WIDTH / scenario.days;
        writeln!(svg, "<path d=\"M{x} {TOP}v{HEIGHT}\" stroke=\"#eaeef2\"/>").unwrap();
        writeln!(svg, "<text x=\"{x}\" y=\"{}\" text-anchor=\"middle\">day {day}</text>", TOP + HEIGHT + 18).unwrap();
    }
    for (number, policy) in POLICIES.into_iter().enumerate() {
        let mut points = String::new();
        scenario.play(policy, |minute, world| {
            if minute % 30 == 29 {
                let x = LEFT + (minute + 1) * WIDTH / minutes;
                write!(points, "{x},{} ", level(world.files())).unwrap();
            }
        });
        let (color, points) = (color(policy), points.trim_end());
        writeln!(svg, "<polyline fill=\"none\" stroke=\"{color}\" stroke-width=\"1.6\" points=\"{points}\"/>").unwrap();
        let (x, y) = (LEFT + WIDTH / 4 * i64::try_from(number).unwrap(), TOP + HEIGHT + 46);
        writeln!(svg, "<text x=\"{x}\" y=\"{y}\" fill=\"{color}\">{}</text>", policy.name()).unwrap();
    }
    svg.push_str("</svg>\n");
    svg
}

/// The height at which so many files stand.
fn level(files: usize) -> i64 {
    let decades = (files.max(1) as f64).log10() / f64::from(DECADES);
    TOP + HEIGHT - (decades.min(1.0) * HEIGHT as f64).round() as i64
}
