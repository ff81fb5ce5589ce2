//! Cache lines of sixteen numbers.

/// The numbers in a line.
pub(crate) const LANES: usize = 16;

/// Sixteen numbers on one cache line: one AVX-512 vector, or two of AVX2.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
#[repr(C, align(64))]
pub(crate) struct Line(pub(crate) [f32; LANES]);

/// The lines that `count` numbers fill.
#[inline]
pub(crate) const fn lines_for(count: usize) -> usize {
    count.div_ceil(LANES)
}

/// So many lines of zeros.
pub(crate) fn zeros(lines: usize) -> Vec<Line> {
    vec![Line::default(); lines]
}

/// The numbers of these lines, one after the other.
#[inline]
pub(crate) fn flat(lines: &[Line]) -> &[f32] {
    // SAFETY: a `Line` is sixteen `f32` and nothing else (repr(C); 64 bytes of data, 64 of
    // alignment, so no padding), hence `n` lines are `16 n` initialised numbers.
    unsafe { std::slice::from_raw_parts(lines.as_ptr().cast(), lines.len() * LANES) }
}

/// The numbers of these lines, one after the other, to change.
#[inline]
pub(crate) fn flat_mut(lines: &mut [Line]) -> &mut [f32] {
    // SAFETY: as in `flat`; the borrow is exclusive.
    unsafe { std::slice::from_raw_parts_mut(lines.as_mut_ptr().cast(), lines.len() * LANES) }
}

/// Transposes a matrix in panels: from `rows` x `columns` to `columns` x `rows`.
///
/// # Panics
/// If the buffers are not of the sizes that follow.
pub(crate) fn transpose(rows: usize, columns: usize, from: &[Line], to: &mut [Line]) {
    assert_eq!(from.len(), lines_for(columns) * rows);
    assert_eq!(to.len(), lines_for(rows) * columns);
    for panel in 0..lines_for(columns) {
        let width = LANES.min(columns - panel * LANES);
        for block in 0..lines_for(rows) {
            let height = LANES.min(rows - block * LANES);
            let source = &from[panel * rows + block * LANES..][..height];
            let target = &mut to[block * columns + panel * LANES..][..width];
            transpose_block(source, target);
        }
    }
}

/// `target[i][j] = source[j][i]`, up to sixteen by sixteen.
fn transpose_block(source: &[Line], target: &mut [Line]) {
    for (j, line) in source.iter().enumerate() {
        for (i, column) in target.iter_mut().enumerate() {
            column.0[j] = line.0[i];
        }
    }
}
