//! A list whose length is limited while it is read.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{Deserialize, Deserializer, Error as _, SeqAccess, Visitor};

/// At most `MOST` elements: an element may take far more memory than its text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Limited<T, const MOST: usize>(pub(super) Vec<T>);

impl<T, const MOST: usize> Default for Limited<T, MOST> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<'de, T: Deserialize<'de>, const MOST: usize> Deserialize<'de> for Limited<T, MOST> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_seq(Elements(PhantomData))
    }
}

struct Elements<T, const MOST: usize>(PhantomData<T>);

impl<'de, T: Deserialize<'de>, const MOST: usize> Visitor<'de> for Elements<T, MOST> {
    type Value = Limited<T, MOST>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a list")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<Self::Value, A::Error> {
        let mut read = Vec::new();
        while let Some(element) = elements.next_element()? {
            if read.len() == MOST {
                return Err(A::Error::custom(format!("more than {MOST} elements")));
            }
            read.push(element);
        }
        Ok(Limited(read))
    }
}
