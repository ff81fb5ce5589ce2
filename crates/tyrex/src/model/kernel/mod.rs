//! The inner loops, which take nearly all the time.
//!
//! Everything here is compiled three times, for AVX-512, for AVX2 and for any machine, and selected
//! at run time. Each sum is taken in the same order with fused multiply-adds for every vector
//! width, so all three give the same bits.
//!
//! Matrices are kept in whole cache lines of sixteen numbers ([`Line`]):
//!
//! - *rows*: row by row, each padded to whole lines. Activations are kept this way.
//! - *panels*: sixteen columns at a time, and within such a panel row by row, so that a product
//!   reads its right-hand side straight through. Weights are kept this way, also during training.
//!
//! This is the only module with `unsafe` code: vector instructions and unchecked reads,
//! behind functions that check every bound first.
#![allow(unsafe_code)]

/// Defines a function that is compiled for each instruction set and dispatched at run time.
/// Its body is plain Rust; the compiler turns its loops into the vectors of each set.
macro_rules! dispatched {
    ($(#[$attribute:meta])* $visibility:vis fn $name:ident($($arg:ident: $type:ty),* $(,)?) $(-> $result:ty)? $body:block) => {
        $(#[$attribute])*
        #[allow(clippy::inline_always)] // inlined into each of the three, or the features would be lost
        $visibility fn $name($($arg: $type),*) $(-> $result)? {
            #[inline(always)]
            fn portable($($arg: $type),*) $(-> $result)? $body
            #[cfg(target_arch = "x86_64")]
            {
                #[target_feature(enable = "avx2,fma")]
                fn avx2($($arg: $type),*) $(-> $result)? { portable($($arg),*) }
                #[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx2,fma")]
                fn avx512($($arg: $type),*) $(-> $result)? { portable($($arg),*) }
                match $crate::model::kernel::Isa::detected() {
                    // SAFETY: detection has just found the features on this machine.
                    $crate::model::kernel::Isa::Avx512 => return unsafe { avx512($($arg),*) },
                    // SAFETY: as above.
                    $crate::model::kernel::Isa::Avx2 => return unsafe { avx2($($arg),*) },
                    $crate::model::kernel::Isa::Portable => {}
                }
            }
            portable($($arg),*)
        }
    };
}

mod distance;
mod elementwise;
mod head;
mod lines;
mod math;
mod product;
mod transpose;
pub(crate) mod trees;

pub(crate) use distance::{TOGETHER, least_squares, squared_distances};
pub(crate) use elementwise::{
    AdamStep, activate, activate_with_slope, adam, add, add_to_rows, multiply, relu_slope,
    sigmoid_cross_entropy,
};
pub(crate) use head::{collect, logits, spread, sum_rows};
pub(crate) use lines::{LANES, Line, flat, flat_mut, lines_for, zeros};
pub(crate) use math::{exp, sigmoid};
pub(crate) use product::{Left, Out, Right, product};
pub(crate) use transpose::transpose;

/// The vector instructions this machine has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Isa {
    #[cfg(target_arch = "x86_64")]
    Avx512,
    #[cfg(target_arch = "x86_64")]
    Avx2,
    Portable,
}

impl Isa {
    /// The best of this machine; `std` remembers the answer.
    #[inline]
    pub(crate) fn detected() -> Self {
        #[cfg(test)]
        if let Some(forced) = forced::isa() {
            return forced;
        }
        #[cfg(target_arch = "x86_64")]
        {
            if is_x86_feature_detected!("avx512f")
                && is_x86_feature_detected!("avx512vl")
                && is_x86_feature_detected!("avx512dq")
                && is_x86_feature_detected!("avx512bw")
                && is_x86_feature_detected!("fma")
            {
                return Self::Avx512;
            }
            if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
                return Self::Avx2;
            }
        }
        Self::Portable
    }

    /// Its common name.
    pub(crate) fn name(self) -> &'static str {
        match self {
            #[cfg(target_arch = "x86_64")]
            Self::Avx512 => "AVX-512",
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => "AVX2",
            Self::Portable => "portable",
        }
    }
}

/// Lets tests run every path on one machine.
#[cfg(test)]
pub(crate) mod forced {
    use super::Isa;
    use std::cell::Cell;

    thread_local!(static FORCED: Cell<Option<Isa>> = const { Cell::new(None) });

    pub(super) fn isa() -> Option<Isa> {
        FORCED.get()
    }

    /// Runs `work` once for each instruction set this machine has.
    pub(crate) fn on_each_isa<T>(mut work: impl FnMut() -> T) -> Vec<(Isa, T)> {
        let mut candidates = vec![Isa::Portable];
        #[cfg(target_arch = "x86_64")]
        {
            let best = Isa::detected();
            if best != Isa::Portable {
                candidates.push(Isa::Avx2);
            }
            if best == Isa::Avx512 {
                candidates.push(Isa::Avx512);
            }
        }
        let results = candidates
            .into_iter()
            .map(|isa| {
                FORCED.set(Some(isa));
                (isa, work())
            })
            .collect();
        FORCED.set(None);
        results
    }
}
