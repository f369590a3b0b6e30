//! A timeline with a mark for each write.

use std::fmt::Write as _;

use super::escape;

/// Marks between 0 and 1, each with a label.
pub(super) fn render(writes: &[(f64, String)], out: &mut String) {
    const WIDTH: f64 = 200.0;
    let _ = write!(
        out,
        "<svg class=\"strip\" viewBox=\"-2 0 {} 16\" role=\"img\" aria-label=\"{} writes\"><path d=\"M0 8h{WIDTH}\"/>",
        WIDTH + 4.0,
        writes.len()
    );
    for (at, label) in writes {
        // An invalid mark is placed at the start.
        let at = if at.is_nan() { 0.0 } else { at.clamp(0.0, 1.0) } * WIDTH;
        let _ = write!(out, "<path class=\"mark\" d=\"M{at:.1} 2v12\"><title>{}</title></path>", escape::line(label));
    }
    *out += "</svg>";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timeline_marks_stay_in_range() {
        let mut out = String::new();
        let writes = [0.25, -1.0, 7.0, f64::NAN].map(|at| (at, "<m>".to_owned()));
        render(&writes, &mut out);
        for at in ["M50.0 2", "M0.0 2", "M200.0 2"] {
            assert!(out.contains(at), "{at}: {out}");
        }
        assert!(!out.contains("NaN") && !out.contains("<m>"), "{out}");
    }
}
