//! Reasons to doubt the answers of an explainer: sentences for people, in every document of advice.

use super::{Explainer, PerformanceTally, Reference, Request};
use crate::action::Overrides;
use crate::auc::upper_end;
use crate::counterfactual::Protocol;
use crate::data::encode::Coding;
use crate::data::schema::{Action, Feature, ModelInput};
use crate::data::{Encoder, Value, is_drafted, is_drafted_rule};
use crate::error::{Error, Result};
use crate::model::files::{InputBlock as Step, ModelFile};

/// Fewer rows show nothing.
const LEAST_ROWS: usize = 20;
/// The share of scores of 0 or 1 that a loss above that of a constant score is blamed on.
const SATURATED: f64 = 0.5;
/// The same where there are no labels.
const ALL_SATURATED: f64 = 0.95;
/// A model with a lower AUC hardly tells the classes apart.
const WEAK: f64 = 0.6;
/// The usual standard deviations of a column after the scaler of a model file.
const USUAL: [f64; 2] = [0.05, 20.0];
/// Those that no scaler gives for rows like the ones that it was fitted on.
const POSSIBLE: [f64; 2] = [1e-3, 1e3];
/// Features that a sentence names.
const NAMED: usize = 5;

/// Reasons to doubt the answers of an explainer.
#[derive(Debug, Default)]
pub(super) struct Warnings {
    /// About the model and the reference.
    model: Vec<String>,
    /// About the lack of rules.
    rules: Option<String>,
    /// The usual remedy for a model that does not fit the rows; `None` for a network of this crate,
    /// whose file has its encoding.
    remedy: Option<&'static str>,
    /// The class that the score was taken as the probability of, if the model was imported.
    class: Option<String>,
}

/// A model that was not trained here.
#[derive(Debug, Default)]
pub(super) struct Imported {
    /// The class that its score is the probability of.
    class: Option<String>,
    remedy: Option<&'static str>,
    /// The doubt about the scale of its inputs.
    scale: Option<String>,
}

impl Imported {
    /// A model file whose inputs the encoder makes of the rows.
    pub(super) fn of(reference: &Reference, encoder: &Encoder, model: &ModelFile) -> Self {
        let name = model.labels.as_ref().and_then(|labels| labels.get(model.favourable));
        let class = match name {
            Some(name) => format!("class `{name}`"),
            None => format!("class number {}", model.favourable),
        };
        let is_own = model.metadata.contains_key("encoder");
        let scales = model.preprocessing.iter().any(is_scaled);
        let remedy = match reference.schema().model.input {
            _ if is_own => None,
            ModelInput::Encoded if scales => Some(
                "The model file scales its inputs itself, so it probably takes raw columns: set \
                 `input = \"raw\"` under `[model]` in the schema.",
            ),
            ModelInput::Encoded => Some(
                "If the model takes the columns of the file as they are, set `input = \"raw\"` under \
                 `[model]` in the schema; otherwise check that `[scaling]` and `encoding` are those \
                 of its training, and whether its output holds logits.",
            ),
            ModelInput::Raw => Some(
                "Check that the columns have the units and the order of the model's training, that \
                 they are not scaled already, and whether the output holds logits.",
            ),
        };
        let scale = if is_own { None } else { scale_doubt(reference, encoder, model) };
        Self { class: Some(class), remedy, scale }
    }

    /// A model of any kind, which takes rows.
    pub(super) fn black_box() -> Self {
        let remedy = "Check that the function gets the columns that the model was trained on.";
        Self { remedy: Some(remedy), ..Self::default() }
    }
}

impl Warnings {
    /// Compares the scores with the labels. A model that ranks the rows the wrong way round is an
    /// error, unless the schema accepts it.
    pub(super) fn of(
        reference: &Reference,
        scores: &[f32],
        imported: Option<&Imported>,
    ) -> Result<Self> {
        let rules = no_rules(reference);
        let Some(imported) = imported else { return Ok(Self { rules, ..Self::default() }) };
        let mut tally = PerformanceTally::default();
        for (row, &score) in scores.iter().enumerate() {
            tally.add(score, reference.is_favourable(row));
        }
        let reversed = reversed(&tally);
        if let Some(reversed) =
            reversed.as_ref().filter(|_| !reference.schema().model.accept_reversed)
        {
            return Err(refused(reversed, imported.class.as_deref()));
        }
        let accepted = reversed.map(|own| format!("The model is used although {own}."));
        let mut model: Vec<String> = accepted.into_iter().chain(imported.scale.clone()).collect();
        model.extend(doubts(&tally, imported.remedy));
        Ok(Self { model, rules, remedy: imported.remedy, class: imported.class.clone() })
    }
}

/// The error about a model that ranks rows the wrong way round.
fn refused(reversed: &str, class: Option<&str>) -> Error {
    let class = class.map_or_else(|| " that it gives".to_owned(), |class| format!(" of {class}"));
    Error::InvalidModel(format!(
        "{reversed}; its score was taken as the probability{class}. Name the favourable class with \
         `favourable_class` under `[model]` in the schema, or correct `favourable` under `[label]`; \
         `accept_reversed = true` under `[model]` uses the model as it is"
    ))
}

impl Explainer {
    /// Rejects a model that ranks the labelled rows to explain the wrong way round, where the
    /// reference has no labels to tell. These must be all rows of a table: among the rejected ones
    /// alone a sound model may look reversed.
    pub fn check_applicants(&self, applicants: &PerformanceTally) -> Result<()> {
        let Warnings { remedy, class, .. } = &*self.warnings;
        if remedy.is_none() || self.reference().has_labels() || self.schema().model.accept_reversed
        {
            return Ok(());
        }
        match reversed(applicants) {
            Some(reversed) => Err(refused(&reversed, class.as_deref())),
            None => Ok(()),
        }
    }

    /// Sentences about answers that may be useless: scores that do not fit the labels, inputs that
    /// do not fit the model, and advice that no rule limits. `applicants` are the rows to explain,
    /// if they are not rows of the reference.
    pub fn warnings(
        &self,
        request: &Request,
        applicants: Option<&PerformanceTally>,
    ) -> Vec<String> {
        let Warnings { model, rules, remedy, .. } = &*self.warnings;
        let mut all = model.clone();
        all.extend(self.scale_doubt());
        all.extend(self.rows_doubt());
        if let Some(applicants) = applicants.filter(|_| !self.reference().has_labels()) {
            if let (Some(reversed), Some(_)) = (reversed(applicants), remedy) {
                all.push(format!(
                    "The model seems to be wrong: {reversed}. Name the favourable class with \
                     `favourable_class` under `[model]` in the schema, or correct `favourable` under \
                     `[label]`."
                ));
            }
            all.extend(doubts(applicants, *remedy).filter(|doubt| !model.contains(doubt)));
        }
        if request.protocol == Protocol::Product && request.overrides == Overrides::default() {
            all.extend(rules.clone());
        }
        all
    }
}

/// The statement that a model ranks rows the wrong way round, if it does.
fn reversed(tally: &PerformanceTally) -> Option<String> {
    let (favourable, unfavourable) = tally.labelled();
    let (auc, upper) = upper_end(favourable, unfavourable)?;
    (upper < 0.5).then(|| {
        format!(
            "it ranks the {} labelled rows the wrong way round (AUC {auc:.3}, at most {upper:.3} with \
             a confidence of 99.9 %)",
            favourable.len() + unfavourable.len()
        )
    })
}

/// Doubts about the scores of rows.
fn doubts(
    tally: &PerformanceTally,
    remedy: Option<&'static str>,
) -> impl Iterator<Item = String> + use<> {
    let sentence = || {
        let remedy = remedy?;
        let rows = tally.rows();
        if rows < LEAST_ROWS {
            return None;
        }
        if let Some(score) = tally.constant() {
            return Some(format!("The model gives all {rows} rows the score {score:.3}. {remedy}"));
        }
        let share = tally.saturated() as f64 / rows as f64;
        let saturated = format!("{:.0} % of its scores are 0 or 1", 100.0 * share);
        let (favourable, unfavourable) = tally.labelled();
        let labelled = favourable.len() + unfavourable.len();
        let performance = tally.performance(super::Part::All);
        if let (Some(loss), Some(auc)) = (performance.loss, performance.auc) {
            let part = favourable.len() as f64 / labelled as f64;
            let constant = -part * libm::log(part) - (1.0 - part) * libm::log(1.0 - part);
            let fails = loss > constant && (share >= SATURATED || auc < WEAK);
            return (labelled >= LEAST_ROWS && fails).then(|| {
                format!(
                    "The model's loss on {labelled} labelled rows is {loss:.2}, more than \
                     {constant:.2}, that of the same score for every row; its AUC is {auc:.3}, and \
                     {saturated}. {remedy}"
                )
            });
        }
        (share >= ALL_SATURATED).then(|| format!("For {rows} rows, {saturated}. {remedy}"))
    };
    sentence().into_iter()
}

fn is_scaled(step: &Step) -> bool {
    matches!(step, Step::Number { scale, shift, .. } if (*scale, *shift) != (1.0, 0.0))
}

/// The doubt about columns that a model file scales, if their spread after that is unusual.
fn scale_doubt(reference: &Reference, encoder: &Encoder, model: &ModelFile) -> Option<String> {
    let widths = model.preprocessing.iter().map(Step::width);
    let ends = widths.scan(0, |end, width| {
        *end += width;
        Some(*end - width)
    });
    let scaled: Vec<usize> = ends
        .zip(&model.preprocessing)
        .filter(|(_, step)| is_scaled(step))
        .map(|(column, _)| column)
        .collect();
    let mut column = 0;
    let mut spreads = Vec::new();
    for (block, _, position) in encoder.placed() {
        if let (true, Coding::Number { affine, .. }) = (scaled.contains(&column), &block.coding) {
            let numbers = reference.rows().iter().filter_map(|row| row.values()[position].number());
            spreads
                .extend(deviation(numbers).map(|own| (&block.feature, own * affine.scale.abs())));
        }
        column += block.model_width();
    }
    let outside = |[low, high]: [f64; 2]| {
        spreads.iter().filter(move |(_, spread)| !(low..=high).contains(spread)).collect::<Vec<_>>()
    };
    let (unusual, impossible) = (outside(USUAL), outside(POSSIBLE));
    let shown = if impossible.is_empty() { &unusual } else { &impossible };
    if impossible.is_empty() && unusual.len() * 2 <= spreads.len() {
        return None;
    }
    let (feature, spread) = shown.first()?;
    let remedy = match reference.schema().model.input {
        ModelInput::Encoded => {
            "It probably takes raw columns: set `input = \"raw\"` under `[model]` \
                                in the schema."
        }
        ModelInput::Raw => "The columns are probably scaled already, or have other units.",
    };
    Some(format!(
        "The model file scales its inputs, but {} of {} columns are not on the scale that it was \
         fitted on: the standard deviation of `{feature}` is {spread:.2e} after its scaler, expected \
         about 1. {remedy}",
        shown.len(),
        spreads.len()
    ))
}

/// The standard deviation; `None` for too few numbers and for equal ones.
fn deviation(numbers: impl Iterator<Item = f64> + Clone) -> Option<f64> {
    let count = numbers.clone().count();
    let mean = numbers.clone().sum::<f64>() / count as f64;
    let square = numbers.map(|number| (number - mean).powi(2)).sum::<f64>() / count as f64;
    (count >= LEAST_ROWS && square > 0.0).then(|| square.sqrt())
}

/// The warning that the schema has no rules. Rules that a draft wrote by the names of
/// features do not count: no person has confirmed them. An interval that holds all rows of the reference limits
/// no more than the data do, and a feature with one value in them has nothing to forbid.
fn no_rules(reference: &Reference) -> Option<String> {
    let schema = reference.schema();
    let values = |position: usize| reference.rows().iter().map(move |row| &row.values()[position]);
    let is_free = |(position, feature): (usize, &Feature)| match &feature.action {
        Action::Free => true,
        Action::Within(interval) => {
            values(position).filter_map(Value::number).all(|number| interval.contains(number))
        }
        Action::Fixed => {
            values(position).collect::<Vec<_>>().windows(2).all(|two| two[0] == two[1])
        }
        Action::OnlyUp | Action::OnlyDown | Action::Levels(_) => false,
    };
    let is_open = |(position, feature)| is_drafted(feature) || is_free((position, feature));
    if !schema.rules.iter().all(is_drafted_rule) || !schema.features.iter().enumerate().all(is_open)
    {
        return None;
    }
    let beside = if schema.features.iter().any(is_drafted) {
        " but those that a draft writes for names such as `age`, which nobody confirmed"
    } else {
        ""
    };
    let free: Vec<&str> = schema
        .features
        .iter()
        .filter(|feature| feature.action != Action::Fixed && !is_drafted(feature))
        .map(|feature| feature.name.as_str())
        .collect();
    let named: Vec<String> = free.iter().take(NAMED).map(|name| format!("`{name}`")).collect();
    let others = match free.len().saturating_sub(NAMED) {
        0 => String::new(),
        others => format!(" and {others} more"),
    };
    (!free.is_empty()).then(|| {
        format!(
            "Advice is not limited to changes that people can make: the schema has neither an \
             `action` nor a `[[rule]]`{beside}, so advice may change {}{others} in any way.",
            named.join(", ")
        )
    })
}
