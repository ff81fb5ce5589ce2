//! The matrix product, for the three shapes a network needs.
//!
//! `C[r][p] = start[p] + sum_k A[r][k] * B[k][p]`, where `p` counts panels of sixteen
//! columns. All three operands come with strides, so one kernel serves
//!
//! - the forward pass: `A` = activations, `B` = weights in panels, `start` = bias;
//! - the gradient of the inputs: `A` = gradients, `B` = transposed weights in panels;
//! - the gradient of the weights: `A` = activations read by columns, `B` = gradients in
//!   rows, `C` = a gradient in panels.
//!
//! A tile of rows times panels stays in registers while `k` runs. The rows are shared
//! evenly among tiles: 32 rows in tiles of at most 6 are 6 6 5 5 5 5, not 6 6 6 6 6 2,
//! since a small tile waits for its own additions.

use super::{Isa, Line};

/// `A`: the number at row `r`, step `k` is `values[r * row + k * step]`.
#[derive(Clone, Copy)]
pub(crate) struct Left<'a> {
    pub(crate) values: &'a [f32],
    pub(crate) row: usize,
    pub(crate) step: usize,
}

/// `B`: the line at step `k`, panel `p` is `lines[p * panel + k * step]`.
#[derive(Clone, Copy)]
pub(crate) struct Right<'a> {
    pub(crate) lines: &'a [Line],
    pub(crate) panel: usize,
    pub(crate) step: usize,
}

/// `C`: the line at row `r`, panel `p` is `lines[r * row + p * panel]`.
pub(crate) struct Out<'a> {
    pub(crate) lines: &'a mut [Line],
    pub(crate) row: usize,
    pub(crate) panel: usize,
}

/// Computes the product of `rows` x `depth` by `depth` x `panels`.
///
/// # Panics
/// If an operand is too short for its strides.
pub(crate) fn product(
    [rows, depth, panels]: [usize; 3],
    left: Left,
    right: Right,
    out: &mut Out,
    start: Option<&[Line]>,
) {
    if rows == 0 || panels == 0 {
        return;
    }
    assert!(depth > 0, "a product over nothing");
    assert!(holds(left.values, [(rows, left.row), (depth, left.step)]), "A is too short");
    assert!(holds(right.lines, [(panels, right.panel), (depth, right.step)]), "B is too short");
    assert!(holds(out.lines, [(rows, out.row), (panels, out.panel)]), "C is too short");
    assert!(start.is_none_or(|start| start.len() >= panels), "start is too short");
    let task = Task {
        rows,
        depth,
        panels,
        left: left.values.as_ptr(),
        left_row: left.row,
        left_step: left.step,
        right: right.lines.as_ptr(),
        right_panel: right.panel,
        right_step: right.step,
        out: out.lines.as_mut_ptr(),
        out_row: out.row,
        out_panel: out.panel,
        start: start.map_or(std::ptr::null(), <[Line]>::as_ptr),
    };
    // SAFETY: the assertions above bound every index the tiles form: each runs below
    // `rows`, `depth` and `panels`, and every address is linear in them. The instruction
    // set was detected on this machine. `out` is borrowed exclusively.
    unsafe {
        match Isa::detected() {
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512 => avx512::run(&task),
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2 => avx2::run(&task),
            Isa::Portable => portable::run(&task),
        }
    }
}

/// Whether an operand holds the largest index of `counts` steps of two strides. An index that is
/// no `usize` is in no operand.
fn holds<T>(operand: &[T], strides: [(usize, usize); 2]) -> bool {
    let last = strides.into_iter().try_fold(0_usize, |last, (count, stride)| {
        count.checked_sub(1)?.checked_mul(stride)?.checked_add(last)
    });
    last.is_some_and(|last| last < operand.len())
}

/// The operands as the tiles see them; made by [`product`] only, which checks them.
struct Task {
    rows: usize,
    depth: usize,
    panels: usize,
    left: *const f32,
    left_row: usize,
    left_step: usize,
    right: *const Line,
    right_panel: usize,
    right_step: usize,
    out: *mut Line,
    out_row: usize,
    out_panel: usize,
    start: *const Line,
}

/// Whether these are 1, 2, .., `most`.
const fn counts_to(counts: &[usize], most: usize) -> bool {
    let mut at = 0;
    while at < counts.len() && counts[at] == at + 1 {
        at += 1;
    }
    at == counts.len() && at == most
}

/// A share is at least 1 and at most the largest tile, so this is not reached.
#[cold]
fn no_tile() {
    unreachable!("a tile that is larger than the largest, or empty");
}

/// Writes one instruction set's kernel: the tile, and the walk over tiles.
macro_rules! kernel {
    (
        $module:ident, $(features $features:literal,)?
        tile $max_rows:literal x $max_panels:literal, vectors $vectors:literal of $vector:ty,
        $zero:expr, $load:expr, $store:expr, $splat:expr, $multiply_add:expr,
        rows [$($row_count:literal)*], panels [$($panel_count:literal)*]
    ) => {
        mod $module {
            #[cfg(target_arch = "x86_64")]
            #[allow(unused_imports)]
            use std::arch::x86_64::*;
            use super::Task;

            // There is a tile for every share up to this number of rows and panels.
            const _: () = assert!(
                super::counts_to(&[$($row_count),*], $max_rows)
                    && super::counts_to(&[$($panel_count),*], $max_panels)
            );

            /// All tiles: panels outside, so that a group of them stays in the first cache
            /// while the rows pass by.
            ///
            /// # Safety
            /// The task's bounds hold and the machine has the features.
            $(#[target_feature(enable = $features)])?
            pub(super) unsafe fn run(task: &Task) {
                let groups = task.panels.div_ceil($max_panels);
                let tiles = task.rows.div_ceil($max_rows);
                let mut panel = 0;
                for group in 0..groups {
                    let panels = share(task.panels, groups, group);
                    let mut row = 0;
                    for tile_index in 0..tiles {
                        let rows = share(task.rows, tiles, tile_index);
                        // SAFETY: rows and panels stay within the task.
                        unsafe { pick(task, row, rows, panel, panels) };
                        row += rows;
                    }
                    panel += panels;
                }
            }

            /// The `index`-th of `parts` even shares of `total`, larger ones first.
            #[inline]
            fn share(total: usize, parts: usize, index: usize) -> usize {
                total / parts + usize::from(index < total % parts)
            }

            #[inline]
            $(#[target_feature(enable = $features)])?
            unsafe fn pick(task: &Task, row: usize, rows: usize, panel: usize, panels: usize) {
                kernel!(@match panels, rows, [$($panel_count)*], [$($row_count)*], (task, row, panel));
            }

            /// One tile, in registers from its first to its last step.
            #[inline]
            $(#[target_feature(enable = $features)])?
            unsafe fn tile<const P: usize, const R: usize>(task: &Task, row: usize, panel: usize) {
                // SAFETY: the caller keeps `row + R` and `panel + P` within the task, whose
                // addresses `product` has checked.
                unsafe {
                    let mut sums: [[[$vector; $vectors]; P]; R] = [[[$zero; $vectors]; P]; R];
                    if !task.start.is_null() {
                        for p in 0..P {
                            let line: *const f32 = task.start.add(panel + p).cast();
                            for v in 0..$vectors {
                                let begin = $load(line.add(v * (16 / $vectors)));
                                for r in 0..R {
                                    sums[r][p][v] = begin;
                                }
                            }
                        }
                    }
                    let mut left = task.left.add(row * task.left_row);
                    let mut right = task.right.add(panel * task.right_panel);
                    for _ in 0..task.depth {
                        let mut columns: [[$vector; $vectors]; P] = [[$zero; $vectors]; P];
                        for p in 0..P {
                            let line: *const f32 = right.add(p * task.right_panel).cast();
                            for v in 0..$vectors {
                                columns[p][v] = $load(line.add(v * (16 / $vectors)));
                            }
                        }
                        for r in 0..R {
                            let factor = $splat(*left.add(r * task.left_row));
                            for p in 0..P {
                                for v in 0..$vectors {
                                    sums[r][p][v] = $multiply_add(factor, columns[p][v], sums[r][p][v]);
                                }
                            }
                        }
                        left = left.wrapping_add(task.left_step);
                        right = right.wrapping_add(task.right_step);
                    }
                    for r in 0..R {
                        for p in 0..P {
                            let line: *mut f32 = task
                                .out
                                .add((row + r) * task.out_row + (panel + p) * task.out_panel)
                                .cast();
                            for v in 0..$vectors {
                                $store(line.add(v * (16 / $vectors)), sums[r][p][v]);
                            }
                        }
                    }
                }
            }
        }
    };
    // Every size of tile is its own function, so that its sums are registers.
    (@match $panels:ident, $rows:ident, [$($p:literal)*], $row_counts:tt, $args:tt) => {
        match $panels { $($p => kernel!(@rows $p, $rows, $row_counts, $args),)* _ => super::no_tile() }
    };
    (@rows $p:literal, $rows:ident, [$($r:literal)*], ($task:ident, $row:ident, $panel:ident)) => {
        // SAFETY: as the caller's.
        match $rows { $($r => unsafe { tile::<$p, $r>($task, $row, $panel) },)* _ => super::no_tile() }
    };
}

#[cfg(target_arch = "x86_64")]
kernel! {
    avx512, features "avx512f,avx512vl,avx512dq,avx512bw,avx2,fma",
    tile 8 x 3, vectors 1 of __m512,
    _mm512_setzero_ps(), _mm512_load_ps, _mm512_store_ps, _mm512_set1_ps, _mm512_fmadd_ps,
    rows [1 2 3 4 5 6 7 8], panels [1 2 3]
}

#[cfg(target_arch = "x86_64")]
kernel! {
    avx2, features "avx2,fma",
    tile 6 x 1, vectors 2 of __m256,
    _mm256_setzero_ps(), _mm256_load_ps, _mm256_store_ps, _mm256_set1_ps, _mm256_fmadd_ps,
    rows [1 2 3 4 5 6], panels [1]
}

kernel! {
    portable,
    tile 4 x 1, vectors 1 of [f32; 16],
    [0.0; 16],
    super::load, super::store, super::splat, super::multiply_add,
    rows [1 2 3 4], panels [1]
}

/// # Safety
/// Sixteen numbers can be read there.
#[inline]
unsafe fn load(from: *const f32) -> [f32; 16] {
    // SAFETY: the caller's.
    unsafe { from.cast::<[f32; 16]>().read() }
}

/// # Safety
/// Sixteen numbers can be written there.
#[inline]
unsafe fn store(to: *mut f32, values: [f32; 16]) {
    // SAFETY: the caller's.
    unsafe { to.cast::<[f32; 16]>().write(values) };
}

#[inline]
fn splat(value: f32) -> [f32; 16] {
    [value; 16]
}

#[inline]
fn multiply_add(a: [f32; 16], b: [f32; 16], mut c: [f32; 16]) -> [f32; 16] {
    for lane in 0..16 {
        c[lane] = a[lane].mul_add(b[lane], c[lane]);
    }
    c
}

#[cfg(test)]
mod tests {
    use super::super::{LANES, flat, flat_mut, forced::on_each_isa, lines_for, zeros};
    use super::*;
    use proptest::prelude::*;

    /// `count` numbers in `[-1, 1)` from a seed.
    fn numbers(count: usize, seed: u64) -> Vec<f32> {
        use rand::RngExt;
        let mut rng = crate::Seed(seed).rng();
        (0..count).map(|_| rng.random_range(-1.0..1.0)).collect()
    }

    /// `a` (rows x depth) times `b` (depth x columns) by another library.
    fn oracle(rows: usize, depth: usize, columns: usize, a: &[f32], b: &[f32]) -> Vec<f32> {
        let mut c = vec![0.0; rows * columns];
        // SAFETY: all three are row by row and as long as their sizes say.
        unsafe {
            gemm::gemm(
                rows,
                columns,
                depth,
                c.as_mut_ptr(),
                1,
                columns as isize,
                false,
                a.as_ptr(),
                1,
                depth as isize,
                b.as_ptr(),
                1,
                columns as isize,
                0.0,
                1.0,
                false,
                false,
                false,
                gemm::Parallelism::None,
            );
        }
        c
    }

    /// Two strides whose last index wraps around to 0 in a `usize`.
    #[test]
    #[should_panic(expected = "A is too short")]
    fn strides_that_wrap_around_are_refused() {
        let values = [0.0; 4];
        let lines = [Line::default(); 4];
        let mut out = [Line::default(); 4];
        product(
            [3, 1, 1],
            Left { values: &values, row: 1 << (usize::BITS - 1), step: 1 },
            Right { lines: &lines, panel: 1, step: 1 },
            &mut Out { lines: &mut out, row: 1, panel: 1 },
            None,
        );
    }

    proptest! {
        #[test]
        fn all_instruction_sets_agree_with_the_oracle_and_with_each_other(
            rows in 1..40_usize,
            depth in 1..70_usize,
            columns in 1..100_usize,
            by_columns in any::<bool>(),
            with_start in any::<bool>(),
            seed in any::<u64>(),
        ) {
            let a = numbers(rows * depth, seed);
            let b = numbers(depth * columns, seed ^ 1);
            let panels = lines_for(columns);
            let mut packed = zeros(panels * depth);
            for k in 0..depth {
                for (p, part) in b[k * columns..(k + 1) * columns].chunks(LANES).enumerate() {
                    packed[p * depth + k].0[..part.len()].copy_from_slice(part);
                }
            }
            let mut start = zeros(panels);
            flat_mut(&mut start)[..columns].copy_from_slice(&numbers(columns, seed ^ 2));
            let transposed: Vec<f32> =
                (0..depth).flat_map(|k| (0..rows).map(move |r| (r, k))).map(|(r, k)| a[r * depth + k]).collect();
            let left = if by_columns {
                Left { values: &transposed, row: 1, step: rows }
            } else {
                Left { values: &a, row: depth, step: 1 }
            };
            let results = on_each_isa(|| {
                let mut c = zeros(rows * panels);
                product(
                    [rows, depth, panels],
                    left,
                    Right { lines: &packed, panel: depth, step: 1 },
                    &mut Out { lines: &mut c, row: panels, panel: 1 },
                    with_start.then_some(&start),
                );
                c
            });
            for pair in results.windows(2) {
                prop_assert_eq!(&pair[0].1, &pair[1].1, "{:?} and {:?}", pair[0].0, pair[1].0);
            }
            let expected = oracle(rows, depth, columns, &a, &b);
            let c = flat(&results[0].1);
            for r in 0..rows {
                for j in 0..columns {
                    let begin = if with_start { flat(&start)[j] } else { 0.0 };
                    let got = c[r * panels * LANES + j];
                    prop_assert!((got - begin - expected[r * columns + j]).abs() < 1e-4);
                }
            }
        }
    }

    #[test]
    #[should_panic(expected = "is too short")]
    fn a_short_operand_is_refused() {
        let (a, b) = (vec![0.0; 7], zeros(4));
        product(
            [2, 4, 1],
            Left { values: &a, row: 4, step: 1 },
            Right { lines: &b, panel: 4, step: 1 },
            &mut Out { lines: &mut zeros(2), row: 1, panel: 1 },
            None,
        );
    }
}
