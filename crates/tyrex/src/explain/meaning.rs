//! The outcome that advice promises.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::data::{Schema, Value, listed};
use crate::model::THRESHOLD;

/// The outcome that advice promises: a favourable value of the label, at scores from a threshold
/// on.
///
/// A model whose schema has another favourable value would keep such a promise by rejecting the
/// person, so it must not be audited with it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Meaning {
    /// The column of the label.
    pub label: String,
    /// The values of the label that are favourable.
    #[cfg_attr(feature = "openapi", schema(value_type = Vec<crate::data::FeatureValue>))]
    pub favourable: Vec<Value>,
    /// The score from which a row is accepted.
    pub threshold: f32,
}

impl Meaning {
    /// The outcome of acceptance by models of a schema.
    pub fn of(schema: &Schema) -> Self {
        let label = &schema.label;
        Self {
            label: label.column.clone(),
            favourable: label.favourable.clone(),
            threshold: THRESHOLD,
        }
    }

    /// Whether both are the same outcome; the order of the favourable values does not matter.
    pub(crate) fn is(&self, other: &Self) -> bool {
        let words = |meaning: &Self| {
            let mut words: Vec<String> =
                meaning.favourable.iter().map(ToString::to_string).collect();
            words.sort_unstable();
            words.dedup();
            words
        };
        self.label == other.label
            && self.threshold.total_cmp(&other.threshold).is_eq()
            && words(self) == words(other)
    }
}

impl fmt::Display for Meaning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { label, favourable, threshold } = self;
        write!(f, "{} in column `{label}` from a score of {threshold} on", listed(favourable))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn meaning(label: &str, favourable: &[&str], threshold: f32) -> Meaning {
        let favourable = favourable.iter().map(|word| Value::from(*word)).collect();
        Meaning { label: label.to_owned(), favourable, threshold }
    }

    #[test]
    fn label_values_and_threshold_count_and_their_order_does_not() {
        let promised = meaning("paid", &["yes", "early"], 0.5);
        assert!(promised.is(&promised));
        assert!(promised.is(&meaning("paid", &["early", "yes"], 0.5)));
        assert!(!promised.is(&meaning("paid", &["yes"], 0.5)));
        assert!(!promised.is(&meaning("paid", &["no"], 0.5)));
        assert!(!promised.is(&meaning("late", &["yes", "early"], 0.5)));
        assert!(!promised.is(&meaning("paid", &["yes", "early"], 0.7)));
        let number = Meaning { favourable: vec![Value::Number(1.0)], ..promised.clone() };
        assert!(number.is(&meaning("paid", &["1"], 0.5)));
    }

    #[test]
    fn it_is_read_back_from_its_document() {
        let promised = meaning("paid", &["yes"], 0.5);
        let document = serde_json::to_string(&promised).unwrap();
        assert_eq!(document, r#"{"label":"paid","favourable":["yes"],"threshold":0.5}"#);
        assert_eq!(serde_json::from_str::<Meaning>(&document).unwrap(), promised);
    }
}
