//! Linear algebra of small matrices, row by row.

/// Replaces the lower triangle of a positive definite matrix by `L` with `L L^T` equal to it. A
/// pivot that rounding makes too small is raised.
pub(super) fn cholesky(matrix: &mut [f64], n: usize) {
    for i in 0..n {
        for j in 0..=i {
            let (of_i, of_j) = (&matrix[i * n..i * n + j], &matrix[j * n..j * n + j]);
            let known: f64 = of_i.iter().zip(of_j).map(|(a, b)| a * b).sum();
            let left = matrix[i * n + j] - known;
            matrix[i * n + j] =
                if i == j { left.max(LEAST_PIVOT).sqrt() } else { left / matrix[j * n + j] };
        }
    }
}

const LEAST_PIVOT: f64 = 1e-12;

/// Replaces `b` by `L^-1 b`.
pub(super) fn solve_lower(lower: &[f64], n: usize, b: &mut [f64]) {
    for i in 0..n {
        let known: f64 = lower[i * n..i * n + i].iter().zip(&*b).map(|(l, b)| l * b).sum();
        b[i] = (b[i] - known) / lower[i * n + i];
    }
}

/// Replaces `b` by `L^-T b`.
pub(super) fn solve_upper(lower: &[f64], n: usize, b: &mut [f64]) {
    for i in (0..n).rev() {
        let known: f64 = (i + 1..n).map(|j| lower[j * n + i] * b[j]).sum();
        b[i] = (b[i] - known) / lower[i * n + i];
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_system_is_solved() {
        let matrix = [4.0, 2.0, 0.6, 2.0, 5.0, 1.5, 0.6, 1.5, 3.0];
        let mut lower = matrix;
        cholesky(&mut lower, 3);
        let mut x = [1.0, -2.0, 3.0];
        solve_lower(&lower, 3, &mut x);
        solve_upper(&lower, 3, &mut x);
        for (row, expected) in matrix.chunks(3).zip([1.0, -2.0, 3.0]) {
            let got: f64 = row.iter().zip(&x).map(|(a, x)| a * x).sum();
            assert!((got - expected).abs() < 1e-12, "{got}, not {expected}");
        }
    }
}
