//! The way of a search: the points it came to, in their order.

/// The points a search stepped to; empty and free of cost unless somebody asked for them.
///
/// A probe that is not accepted is no step, and a branch that does not lead to the answer is cut
/// off again.
#[derive(Debug, Default)]
pub(crate) struct Path {
    is_kept: bool,
    points: Vec<Vec<f32>>,
}

/// A place on a [`Path`].
#[derive(Debug, Clone, Copy)]
pub(crate) struct Mark(usize);

impl Path {
    /// A path that is kept.
    pub(crate) fn kept() -> Self {
        Self { is_kept: true, points: Vec::new() }
    }

    /// Steps to a point, unless it stands there already.
    pub(crate) fn step(&mut self, point: &[f32]) {
        if self.is_kept && self.points.last().is_none_or(|last| last != point) {
            self.points.push(point.to_vec());
        }
    }

    /// Where it is now.
    pub(crate) fn mark(&self) -> Mark {
        Mark(self.points.len())
    }

    /// Goes back to a place, and gives what came after it.
    pub(crate) fn cut(&mut self, mark: Mark) -> Vec<Vec<f32>> {
        self.points.split_off(mark.0.min(self.points.len()))
    }

    /// Goes on along points, such as were cut off before.
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
