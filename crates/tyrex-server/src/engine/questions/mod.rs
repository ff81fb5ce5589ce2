//! Questions about rows of a model: one file each.

mod advice;
mod certificate;
mod stability;
mod survival;

pub(crate) use advice::{Advising, Found};
pub(crate) use certificate::Certifying;
pub(crate) use stability::Measuring;
pub(crate) use survival::Surviving;
