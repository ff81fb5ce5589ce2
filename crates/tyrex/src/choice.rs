//! Enums whose values are chosen by name: on the command line, in files and in requests.

use crate::error::Error;

/// A value that is chosen by name.
pub trait Choice: Copy + 'static {
    /// The values to choose from.
    const ALL: &'static [Self];

    /// The name of the value.
    fn word(self) -> &'static str;

    /// A description for lists of the names: one line without a full stop.
    fn help(self) -> &'static str;

    /// The value of a name.
    fn of_word(word: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|choice| choice.word() == word)
    }
}

/// Defines the names and descriptions of an enum's variants.
#[macro_export]
macro_rules! choices {
    ($all:ident $what:literal { $($kind:ident = $word:literal: $help:literal,)+ }) => {
        impl $crate::choice::Choice for $all {
            const ALL: &'static [Self] = &[$(Self::$kind),+];

            fn word(self) -> &'static str {
                match self {
                    $(Self::$kind => $word,)+
                }
            }

            fn help(self) -> &'static str {
                match self {
                    $(Self::$kind => $help,)+
                }
            }
        }

        impl std::fmt::Display for $all {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str($crate::choice::Choice::word(*self))
            }
        }

        impl std::str::FromStr for $all {
            type Err = $crate::Error;

            fn from_str(word: &str) -> $crate::Result<Self> {
                $crate::choice::Choice::of_word(word)
                    .ok_or_else(|| $crate::choice::unknown::<Self>($what, word))
            }
        }
    };
}

/// The error for an unknown name.
#[doc(hidden)]
pub fn unknown<C: Choice>(what: &'static str, word: &str) -> Error {
    let words: Vec<&str> = C::ALL.iter().map(|choice| choice.word()).collect();
    Error::param(what, word, format!("one of {}", words.join(", ")))
}
