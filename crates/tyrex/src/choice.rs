//! Enums that people choose from by a word: on the command line, in files and in requests.

use crate::error::Error;

/// A value that is chosen by a word.
pub trait Choice: Copy + 'static {
    /// The values to choose from.
    const ALL: &'static [Self];

    /// The word for it.
    fn word(self) -> &'static str;

    /// What it means, for a list of the words. A line without a full stop.
    fn help(self) -> &'static str;

    /// The value that a word stands for.
    #[must_use]
    fn of_word(word: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|choice| choice.word() == word)
    }
}

/// Gives the variants of an enum their words, and what they mean.
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

/// That a word stands for no choice.
#[doc(hidden)]
#[must_use]
pub fn unknown<C: Choice>(what: &'static str, word: &str) -> Error {
    let words: Vec<&str> = C::ALL.iter().map(|choice| choice.word()).collect();
    Error::param(what, word, format!("one of {}", words.join(", ")))
}
