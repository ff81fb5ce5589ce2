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
