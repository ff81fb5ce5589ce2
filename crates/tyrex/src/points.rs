//! Points in model space, many at once.

use crate::error::{Error, Result};

/// One point in model space.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Point(Vec<f32>);

impl Point {
    /// The coordinates.
    pub fn as_slice(&self) -> &[f32] {
        &self.0
    }

    /// The coordinates, without the point.
    pub fn into_vec(self) -> Vec<f32> {
        self.0
    }
}

impl From<Vec<f32>> for Point {
    fn from(coordinates: Vec<f32>) -> Self {
        Self(coordinates)
    }
}

/// A batch of points: `len` rows of `dim` coordinates, row by row.
///
/// This is model space: scaled numbers and one-hot groups. Values in their own units are a
/// `data::Row`.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Points {
    dim: usize,
    values: Vec<f32>,
}

impl Points {
    /// No points yet, of the given dimension.
    pub fn new(dim: usize) -> Self {
        Self { dim, values: Vec::new() }
    }

    /// One point.
    pub fn one(point: &[f32]) -> Self {
        Self { dim: point.len(), values: point.to_vec() }
    }

    /// `len` points at the origin.
    pub fn zeros(len: usize, dim: usize) -> Self {
        Self { dim, values: vec![0.0; len * dim] }
    }

    /// Points from their coordinates, row by row.
    pub fn from_rows(dim: usize, values: Vec<f32>) -> Result<Self> {
        if dim == 0 || !values.len().is_multiple_of(dim) {
            return Err(Error::Dimension {
                what: format!("coordinates of points with {dim} columns"),
                expected: values.len() / dim.max(1) * dim,
                got: values.len(),
            });
        }
        Ok(Self { dim, values })
    }

    /// The number of points.
    pub fn len(&self) -> usize {
        self.values.len().checked_div(self.dim).unwrap_or(0)
    }

    /// Whether there are no points.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// The number of coordinates of each point.
    pub fn dim(&self) -> usize {
        self.dim
    }

    /// One point.
    pub fn row(&self, index: usize) -> &[f32] {
        &self.values[index * self.dim..(index + 1) * self.dim]
    }

    /// One point, mutable.
    pub fn row_mut(&mut self, index: usize) -> &mut [f32] {
        &mut self.values[index * self.dim..(index + 1) * self.dim]
    }

    /// All points in order.
    pub fn rows(&self) -> impl ExactSizeIterator<Item = &[f32]> {
        self.values.chunks_exact(self.dim.max(1))
    }

    /// All coordinates, row by row.
    pub fn as_slice(&self) -> &[f32] {
        &self.values
    }

    /// All coordinates, row by row, mutable.
    pub fn as_mut_slice(&mut self) -> &mut [f32] {
        &mut self.values
    }

    /// Adds a point.
    ///
    /// # Panics
    /// If its dimension differs.
    pub fn push(&mut self, point: &[f32]) {
        assert_eq!(point.len(), self.dim, "a point of another dimension");
        self.values.extend_from_slice(point);
    }

    /// The points at the given indices, in that order.
    #[must_use]
    pub fn select(&self, indices: &[usize]) -> Self {
        let mut chosen = Self::new(self.dim);
        chosen.values.reserve(indices.len() * self.dim);
        for &index in indices {
            chosen.values.extend_from_slice(self.row(index));
        }
        chosen
    }
}
