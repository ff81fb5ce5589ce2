//! The transpose of a matrix in panels.

use super::{Isa, LANES, Line, lines_for};

/// Transposes a matrix in panels: from `rows` x `columns` to `columns` x `rows`.
///
/// # Panics
/// If the buffers are not of the sizes that follow.
pub(crate) fn transpose(rows: usize, columns: usize, from: &[Line], to: &mut [Line]) {
    assert_eq!(from.len(), lines_for(columns) * rows);
    assert_eq!(to.len(), lines_for(rows) * columns);
    let isa = Isa::detected();
    for panel in 0..lines_for(columns) {
        let width = LANES.min(columns - panel * LANES);
        for block in 0..lines_for(rows) {
            let height = LANES.min(rows - block * LANES);
            let source = &from[panel * rows + block * LANES..][..height];
            let target = &mut to[block * columns + panel * LANES..][..width];
            match (<&[Line; LANES]>::try_from(source), <&mut [Line; LANES]>::try_from(target)) {
                #[cfg(target_arch = "x86_64")]
                (Ok(source), Ok(target)) if isa != Isa::Portable => {
                    // SAFETY: both other instruction sets include AVX2.
                    unsafe { whole_block(source, target) };
                }
                _ => {
                    let target = &mut to[block * columns + panel * LANES..][..width];
                    any_block(source, target);
                }
            }
        }
    }
}

/// `target[i][j] = source[j][i]`, up to sixteen by sixteen.
fn any_block(source: &[Line], target: &mut [Line]) {
    for (j, line) in source.iter().enumerate() {
        for (i, column) in target.iter_mut().enumerate() {
            column.0[j] = line.0[i];
        }
    }
}

/// Sixteen by sixteen, as four blocks of eight by eight.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn whole_block(source: &[Line; LANES], target: &mut [Line; LANES]) {
    for row in [0, 8] {
        for column in [0, 8] {
            eight_by_eight(source, target, row, column);
        }
    }
}

/// `target[column + i][row + j] = source[row + j][column + i]` for `i, j < 8`: pairs, then
/// quadruples, then halves change places.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
#[inline]
fn eight_by_eight(source: &[Line; LANES], target: &mut [Line; LANES], row: usize, column: usize) {
    use std::arch::x86_64::{
        __m256, _mm256_load_ps, _mm256_permute2f128_ps, _mm256_setzero_ps, _mm256_shuffle_ps,
        _mm256_store_ps, _mm256_unpackhi_ps, _mm256_unpacklo_ps,
    };
    let mut lines: [__m256; 8] = [_mm256_setzero_ps(); 8];
    for (j, line) in lines.iter_mut().enumerate() {
        let half: &[f32] = &source[row + j].0[column..column + 8];
        // SAFETY: eight numbers, aligned to 32 bytes, since a line is to 64 and `column` is 0 or 8.
        *line = unsafe { _mm256_load_ps(half.as_ptr()) };
    }
    let mut pairs = lines;
    for k in 0..4 {
        pairs[2 * k] = _mm256_unpacklo_ps(lines[2 * k], lines[2 * k + 1]);
        pairs[2 * k + 1] = _mm256_unpackhi_ps(lines[2 * k], lines[2 * k + 1]);
    }
    let mut quads = lines;
    for k in [0, 4] {
        quads[k] = _mm256_shuffle_ps::<0x44>(pairs[k], pairs[k + 2]);
        quads[k + 1] = _mm256_shuffle_ps::<0xEE>(pairs[k], pairs[k + 2]);
        quads[k + 2] = _mm256_shuffle_ps::<0x44>(pairs[k + 1], pairs[k + 3]);
        quads[k + 3] = _mm256_shuffle_ps::<0xEE>(pairs[k + 1], pairs[k + 3]);
    }
    for k in 0..4 {
        lines[k] = _mm256_permute2f128_ps::<0x20>(quads[k], quads[k + 4]);
        lines[k + 4] = _mm256_permute2f128_ps::<0x31>(quads[k], quads[k + 4]);
    }
    for (i, line) in lines.iter().enumerate() {
        let half: &mut [f32] = &mut target[column + i].0[row..row + 8];
        // SAFETY: as above; `row` is 0 or 8.
        unsafe { _mm256_store_ps(half.as_mut_ptr(), *line) };
    }
}

#[cfg(test)]
mod tests {
    use super::super::{forced::on_each_isa, zeros};
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn every_number_changes_places(rows in 1..70_usize, columns in 1..70_usize) {
            let mut from = zeros(lines_for(columns) * rows);
            for i in 0..rows {
                for j in 0..columns {
                    from[j / LANES * rows + i].0[j % LANES] = (i * columns + j) as f32;
                }
            }
            for (_, to) in on_each_isa(|| {
                let mut to = zeros(lines_for(rows) * columns);
                transpose(rows, columns, &from, &mut to);
                to
            }) {
                for i in 0..rows {
                    for j in 0..columns {
                        let got = to[i / LANES * columns + j].0[i % LANES];
                        prop_assert_eq!(got, (i * columns + j) as f32);
                    }
                }
            }
        }
    }
}
