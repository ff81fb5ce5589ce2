//! The path of a search: the points it visited, in order.

/// The points of a search; empty, at no cost, unless requested.
///
/// Rejected probes are not recorded, and branches that do not lead to the answer are removed.
#[derive(Debug, Default)]
pub(crate) struct Path {
    is_kept: bool,
    points: Vec<Vec<f32>>,
}

/// A position on a [`Path`].
#[derive(Debug, Clone, Copy)]
pub(crate) struct Mark(usize);

impl Path {
    /// A path that records its points.
    pub(crate) fn kept() -> Self {
        Self { is_kept: true, points: Vec::new() }
    }

    /// Adds a point, unless it is the last one.
    pub(crate) fn step(&mut self, point: &[f32]) {
        if self.is_kept && self.points.last().is_none_or(|last| last != point) {
            self.points.push(point.to_vec());
        }
    }

    /// The current position.
    pub(crate) fn mark(&self) -> Mark {
        Mark(self.points.len())
    }

    /// Returns to a position, and returns the points after it.
    pub(crate) fn cut(&mut self, mark: Mark) -> Vec<Vec<f32>> {
        self.points.split_off(mark.0.min(self.points.len()))
    }

    /// Appends points, for example those removed before.
    pub(crate) fn follow(&mut self, points: &[Vec<f32>]) {
        for point in points {
            self.step(point);
        }
    }

    /// The points.
    pub(crate) fn into_points(self) -> Vec<Vec<f32>> {
        self.points
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_branch_is_cut_off_and_may_be_followed_again() {
        let mut path = Path::kept();
        path.step(&[0.0]);
        path.step(&[0.0]);
        let mark = path.mark();
        path.step(&[1.0]);
        path.step(&[2.0]);
        let branch = path.cut(mark);
        assert_eq!(branch, [[1.0], [2.0]]);
        path.step(&[3.0]);
        path.cut(mark);
        path.follow(&branch);
        assert_eq!(path.into_points(), [[0.0], [1.0], [2.0]]);
    }

    #[test]
    fn nothing_is_kept_unless_asked_for() {
        let mut path = Path::default();
        path.step(&[1.0]);
        path.follow(&[vec![2.0]]);
        assert!(path.cut(Mark(0)).is_empty());
        assert!(path.into_points().is_empty());
    }
}
