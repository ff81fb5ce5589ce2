//! Symmetric matrices: their eigenvalues and eigenvectors.

/// `A v_i = lambda_i v_i`, by falling eigenvalue.
pub(crate) struct Eigen {
    /// The eigenvalues.
    pub(crate) values: Vec<f64>,
    /// The eigenvectors, row by row: an orthonormal basis.
    pub(crate) vectors: Vec<f64>,
}

/// The eigenvalues and eigenvectors of a symmetric matrix: Jacobi's rotations, each of which
/// makes one element off the diagonal zero.
pub(crate) fn eigen(mut matrix: Vec<f64>, size: usize) -> Eigen {
    const SWEEPS: usize = 30;
    let mut vectors = vec![0.0; size * size];
    for i in 0..size {
        vectors[i * size + i] = 1.0;
    }
    let total: f64 = matrix.iter().map(|value| value * value).sum();
    for _ in 0..SWEEPS {
        let apart: f64 = (0..size)
            .flat_map(|p| (0..p).map(move |q| p * size + q))
            .map(|at| matrix[at] * matrix[at])
            .sum();
        // If squares overflow, the axes are left unchanged.
        if apart.is_nan() || apart <= 1e-24 * total {
            break;
        }
        for p in 0..size {
            for q in 0..p {
                rotate_away(&mut matrix, &mut vectors, size, p, q);
            }
        }
    }
    let mut order: Vec<usize> = (0..size).collect();
    order.sort_by(|&a, &b| matrix[b * size + b].total_cmp(&matrix[a * size + a]));
    Eigen {
        values: order.iter().map(|&i| matrix[i * size + i]).collect(),
        vectors: order
            .iter()
            .flat_map(|&i| vectors[i * size..(i + 1) * size].iter().copied())
            .collect(),
    }
}

/// The rotation of axes `p` and `q` after which `matrix[p][q]` is zero.
fn rotate_away(matrix: &mut [f64], vectors: &mut [f64], size: usize, p: usize, q: usize) {
    let off = matrix[p * size + q];
    if off == 0.0 {
        return;
    }
    // tan of the angle: the smaller root of t^2 + 2 theta t - 1 = 0
    let theta = (matrix[q * size + q] - matrix[p * size + p]) / (2.0 * off);
    let tangent = theta.signum() / (theta.abs() + theta.hypot(1.0));
    let cosine = 1.0 / tangent.hypot(1.0);
    let sine = tangent * cosine;
    let turn = |a: &mut f64, b: &mut f64| {
        (*a, *b) = (cosine * *a - sine * *b, sine * *a + cosine * *b);
    };
    for k in 0..size {
        let (mut a, mut b) = (matrix[k * size + p], matrix[k * size + q]);
        turn(&mut a, &mut b);
        (matrix[k * size + p], matrix[k * size + q]) = (a, b);
    }
    for values in [matrix, vectors] {
        for k in 0..size {
            let (mut a, mut b) = (values[p * size + k], values[q * size + k]);
            turn(&mut a, &mut b);
            (values[p * size + k], values[q * size + k]) = (a, b);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seed::Seed;
    use rand::RngExt;

    #[test]
    fn eigenvectors_are_orthonormal_and_turn_the_matrix_diagonal() {
        let mut rng = Seed(5).rng();
        for size in [1, 2, 5, 40] {
            let half: Vec<f64> = (0..size * size).map(|_| rng.random_range(-1.0..1.0)).collect();
            let symmetric: Vec<f64> =
                (0..size * size).map(|at| half[at] + half[at % size * size + at / size]).collect();
            let Eigen { values, vectors } = eigen(symmetric.clone(), size);
            let mut before = f64::INFINITY;
            for (i, v) in vectors.chunks_exact(size).enumerate() {
                let image: Vec<f64> = symmetric
                    .chunks_exact(size)
                    .map(|row| row.iter().zip(v).map(|(a, b)| a * b).sum())
                    .collect();
                let along = |w: &[f64]| w.iter().zip(&image).map(|(a, b)| a * b).sum::<f64>();
                let value = along(v);
                assert!((value - values[i]).abs() < 1e-9, "{size} {i} {value}");
                assert!(value <= before + 1e-9, "eigenvalues fall");
                before = value;
                for (j, w) in vectors.chunks_exact(size).enumerate() {
                    let inner: f64 = v.iter().zip(w).map(|(a, b)| a * b).sum();
                    let expected = if i == j { 1.0 } else { 0.0 };
                    assert!((inner - expected).abs() < 1e-12, "{size} {i} {j} {inner}");
                    if i != j {
                        assert!(along(w).abs() < 1e-9, "{size} {i} {j}");
                    }
                }
            }
        }
    }
}
