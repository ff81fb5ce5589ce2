//! Enums that people choose from by a word: on the command line, in files and in requests.

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
pub fn unknown<C: Choice>(what: &'static str, word: &str) -> crate::error::Error {
    let words: Vec<&str> = C::ALL.iter().map(|choice| choice.word()).collect();
    crate::error::Error::param(what, word, format!("one of {}", words.join(", ")))
}

#[cfg(test)]
mod tests {
    use serde::Serialize;

    use super::Choice;
    use crate::calibrate::{Missing, Test};
    use crate::certificate::Verdict;
    use crate::counterfactual::{Norm, Protocol};
    use crate::measure::Gamma;
    use crate::model::Activation;

    fn words<C: Choice>() -> Vec<&'static str> {
        C::ALL.iter().map(|choice| choice.word()).collect()
    }

    /// What people type is the word in files.
    fn check<C: Choice + Serialize + std::str::FromStr + ToString + PartialEq + std::fmt::Debug>() {
        for &choice in C::ALL {
            assert_eq!(serde_json::to_value(choice).unwrap(), choice.word());
            assert_eq!(choice.to_string(), choice.word());
            assert_eq!(choice.word().parse::<C>().ok(), Some(choice));
            assert!(!choice.help().ends_with('.'), "{}", choice.help());
        }
        assert!("other".parse::<C>().is_err());
    }

    #[test]
    fn words_are_pinned_and_stand_alike_in_files() {
        check::<Norm>();
        check::<Protocol>();
        check::<Missing>();
        check::<Test>();
        check::<Verdict>();
        assert_eq!(words::<Norm>(), ["l1", "l2"]);
        assert_eq!(words::<Protocol>(), ["product", "paper", "reference"]);
        assert_eq!(words::<Missing>(), ["invalid", "left-out"]);
        assert_eq!(words::<Test>(), ["betting", "hoeffding-bentkus"]);
        assert_eq!(words::<Verdict>(), ["vacuous", "empirical", "certified"]);
        assert_eq!(words::<Gamma>(), ["slopes", "gradients", "sound"]);
        assert_eq!(
            words::<Activation>(),
            [
                "relu",
                "leaky-relu",
                "elu",
                "gelu",
                "gelu-tanh",
                "tanh",
                "sigmoid",
                "softplus",
                "silu"
            ]
        );
        let error = "l7".parse::<Norm>().unwrap_err().to_string();
        assert_eq!(error, "parameter `norm` is l7, expected one of l1, l2");
    }
}
