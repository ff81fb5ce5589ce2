//! Advice as a document: the JSON that every front end returns.

use std::fmt;
use std::ops::ControlFlow;
use std::sync::Arc;

use serde::{Serialize, Serializer};
#[cfg(feature = "openapi")]
use utoipa::{PartialSchema as _, ToSchema as _};

use super::advice::changes;
use super::usual;
use super::{
    Advice, AdvicePath, Adviser, Apart, Ask, Costs, Explainer, FeatureChange, Fresh, Meaning,
    PortfolioDocument, Request, SearchedModels, ShownPromise,
};
use crate::calibrate::Calibration;
use crate::certificate::{Certificate, CertificateDocument};
use crate::counterfactual::{Answer, Counterfactual, Reason, Relaxations, Stopped, Tick};
#[cfg(feature = "openapi")]
use crate::data::Value;
use crate::data::{Row, Schema};
use crate::error::Result;
use crate::model::{Model, THRESHOLD};
use crate::plausibility::Place;
use crate::points::Points;

/// The whole answer to a question, the same from every front end. A front end adds its own fields
/// around it: the name of a model, a file that was written, entries of a ledger.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct AnswerDocument<R> {
    /// The version of this document.
    pub format_version: u32,
    /// The fingerprint of the model, which depends on its weights.
    pub fingerprint: String,
    /// The outcome that the advice promises, which an audit compares with that of a new model. Jobs
    /// of earlier versions have none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub meaning: Option<Meaning>,
    /// The number of training rows in the model's reference.
    pub reference: usize,
    /// The question, with its promise, its method and its threshold. Jobs of earlier versions have
    /// none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ask: Option<Ask>,
    /// The search that was made.
    pub request: Request,
    /// Reasons to doubt the advice.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// Why there is no promise, though the model can be retrained.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub without_promise: Option<String>,
    /// The choice of the threshold, if `tau` is `auto`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<Object>))]
    pub calibration: Option<Calibration>,
    /// The retrained models that took part in the search, which must not certify its advice. Documents
    /// of earlier versions have none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub searched: Option<SearchedModels>,
    /// The number of applicants that advice was searched for.
    pub asked: usize,
    /// The number of those with advice.
    pub found: usize,
    /// The promises, all at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub portfolio: Option<PortfolioDocument>,
    /// One element for each applicant, or for the first ones.
    pub rows: Vec<R>,
}

/// A row, with its advice.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Explained<'a> {
    /// Its row in the table, counted from 0 without the header.
    pub row: usize,
    /// `m(x)`
    pub score: f32,
    /// Its label as written in the table.
    pub label: Option<&'a str>,
    /// Whether that label is favourable.
    pub favourable: Option<bool>,
    /// Its values.
    pub features: NamedValues<'a>,
    /// The fresh models that accept the row without any change, if there are fresh models.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unchanged: Option<Unchanged>,
    /// The advice as a sentence.
    pub sentence: String,
    /// The judgement of retrained models, as a sentence.
    pub retraining: String,
    /// How usual the advice is among accepted applicants, as a sentence; or what can be had of the
    /// conditions, if they cannot be had together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plausibility: Option<String>,
    /// The advice.
    pub advice: Advised<'a>,
}

/// How fresh models judge a row without any change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Unchanged {
    /// The number of models that accept it.
    pub accepting: usize,
    /// The number of models.
    pub models: usize,
}

/// The advice.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(tag = "status", rename_all = "snake_case")]
#[expect(clippy::large_enum_variant, reason = "nearly all are of the largest variant")]
pub enum Advised<'a> {
    /// Advice was found.
    Found {
        /// The changes, in the order of the schema.
        changes: &'a [FeatureChange],
        /// The whole row after the changes; encoded columns if answers are points.
        counterfactual: NamedValues<'a>,
        /// `m(x')`
        score: f32,
        /// `R^` there.
        stability: Option<f64>,
        /// The p-value of the row among accepted applicants: the share of them that is no more usual,
        /// the row itself counted among them. Without enough favourable rows to compare with there is
        /// none.
        usual: Option<f64>,
        /// The steps to the advised row through usual rows, if they were asked for.
        #[serde(skip_serializing_if = "Option::is_none")]
        path: Option<AdvicePath>,
        /// The distances.
        cost: Option<Costs>,
        /// Why the search stopped. After `budget-spent` cheaper advice may exist.
        stopped: Stopped,
        /// Whether cheaper advice can exist, if a proof was asked for.
        #[serde(skip_serializing_if = "Option::is_none")]
        proof: Option<Proof>,
        /// The promise: the judgement of fresh models, and the probability that was asked for.
        #[serde(skip_serializing_if = "Option::is_none")]
        promise: Option<ShownPromise>,
        /// Its certificate.
        certificate: Option<Box<CertificateDocument>>,
    },
    /// No advice was found.
    NotFound {
        /// The reason.
        reason: Reason,
        /// The reason in words.
        sentence: String,
        /// The change with the highest promise that the search found, if it is lower than the one
        /// asked for.
        #[serde(skip_serializing_if = "Option::is_none")]
        highest: Option<Box<HighestPromise>>,
        /// The cost of each condition alone, if usual answers were asked for.
        #[serde(skip_serializing_if = "Option::is_none")]
        apart: Option<Box<Apart>>,
        /// The single rules that prevent advice.
        relaxations: Option<Relaxations>,
        /// The most helpful of them as a sentence.
        #[serde(skip_serializing_if = "Option::is_none")]
        rules: Option<String>,
    },
}

/// The proof about cheaper advice.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Proof {
    /// Whether no advice is cheaper.
    pub optimal: bool,
    /// No advice costs less.
    pub least_cost: f64,
    /// The same as a sentence.
    pub sentence: String,
}

/// Costs that differ by less, relatively, are equal: a number inside its cell is rounded.
const SAME_COST: f64 = 1e-6;

impl Proof {
    /// The proof of an answer, if there is one.
    fn of(found: &Counterfactual) -> Option<Self> {
        let (cost, least_cost) = (found.cost, found.least_cost?);
        let optimal = cost - least_cost <= SAME_COST * cost;
        let sentence = if optimal {
            format!("Proved optimal: no allowed change that passes costs less than {cost:.4}.")
        } else {
            let gap = 100.0 * (1.0 - least_cost / cost);
            format!(
                "Not proved optimal: the advice costs {cost:.4}, and none costs less than \
                 {least_cost:.4}, a gap of {gap:.1} %."
            )
        };
        Some(Self { optimal, least_cost, sentence })
    }
}

/// The change with the highest promise that a search found.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct HighestPromise {
    /// The changes, in the order of the schema.
    pub changes: Vec<FeatureChange>,
    /// The distances.
    pub cost: Costs,
    /// The judgement of fresh models.
    pub promise: ShownPromise,
    /// The changes, their cost and the promise as a sentence.
    pub sentence: String,
}

/// A row under the names of its features, in their order; or a point under those of its columns.
#[derive(Debug)]
pub enum NamedValues<'a> {
    /// A row.
    Row(&'a Schema, &'a Row),
    /// A point.
    Point(Vec<String>, &'a [f32]),
}

impl Serialize for NamedValues<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Row(schema, row) => {
                let names = schema.features.iter().map(|feature| &feature.name);
                serializer.collect_map(names.zip(row.values()))
            }
            Self::Point(columns, point) => serializer.collect_map(columns.iter().zip(*point)),
        }
    }
}

#[cfg(feature = "openapi")]
impl utoipa::PartialSchema for NamedValues<'_> {
    fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::Schema> {
        use utoipa::openapi::schema::{ObjectBuilder, Ref};
        ObjectBuilder::new()
            .additional_properties(Some(Ref::from_schema_name(Value::name())))
            .description(Some("Values by the name of their feature."))
            .into()
    }
}

#[cfg(feature = "openapi")]
impl utoipa::ToSchema for NamedValues<'_> {
    fn name() -> std::borrow::Cow<'static, str> {
        "NamedValues".into()
    }

    fn schemas(schemas: &mut Vec<(String, utoipa::openapi::RefOr<utoipa::openapi::Schema>)>) {
        schemas.push((Value::name().into_owned(), Value::schema()));
    }
}

impl Adviser {
    /// The document of one answer. For an applicant without advice, at most `tries` rules are
    /// relaxed, one at a time, to find those that prevent it. `fresh` are the models of the
    /// certificate.
    ///
    /// `watch` is called during these searches; a `Break` is an error.
    pub fn explained<'a>(
        &'a self,
        advice: &'a Advice,
        certificate: Option<Certificate>,
        fresh: Option<&Fresh>,
        tries: usize,
        watch: impl Fn(Tick) -> ControlFlow<()> + Sync,
    ) -> Result<Explained<'a>> {
        let (applicant, schema) = (&advice.applicant, self.explainer().schema());
        let relaxations = match advice.outcome.reason() {
            Some(
                Reason::Stuck
                | Reason::NoActionableRow
                | Reason::NoCandidate
                | Reason::Implausible
                | Reason::PromiseOutOfReach,
            ) if tries > 0 => self.relaxations(&applicant.values, tries, &watch)?,
            _ => None,
        };
        let apart = match tries {
            0 => None,
            _ => self.apart(advice, relaxations.as_ref(), &watch)?.map(Box::new),
        };
        let unchanged = fresh.map(|fresh| Unchanged::of(&applicant.point, fresh));
        let accepting = unchanged.map_or(0, |unchanged| unchanged.accepting);
        let promise = certificate
            .as_ref()
            .and_then(|made| ShownPromise::of(self.request().promise, made, accepting));
        let highest = match fresh {
            Some(fresh) => self.highest(advice, fresh)?.map(Box::new),
            None => None,
        };
        let found = advice.found();
        let usual = found.and_then(|found| self.explainer().usual(self.request(), &found.point));
        let retraining = match (&promise, &highest, unchanged) {
            (Some(promise), _, _) => promise.sentence.clone(),
            (None, Some(highest), _) => highest.sentence.clone(),
            (None, None, Some(unchanged)) if advice.found().is_none() => unchanged.to_string(),
            _ => ShownPromise::NOT_MEASURED.to_owned(),
        };
        Ok(Explained {
            unchanged,
            retraining,
            plausibility: match (usual, &apart) {
                (Some(place), _) => Some(usual::in_words(place)),
                (None, apart) => apart.as_ref().map(|apart| apart.sentence.clone()),
            },
            row: applicant.row,
            score: applicant.score,
            label: applicant.label.as_deref(),
            favourable: applicant.favourable,
            features: NamedValues::Row(schema, &applicant.values),
            sentence: advice.sentence(),
            advice: self.explainer().advised(
                advice,
                usual.map(Place::p_value),
                self.advice_path(advice)?,
                promise,
                certificate,
                Unanswered { relaxations, highest, apart },
            ),
        })
    }

    /// The promise of the best row of a search that did not reach the one asked for.
    fn highest(&self, advice: &Advice, fresh: &Fresh) -> Result<Option<HighestPromise>> {
        let Answer::NotFound { best: Some(best), reason: Reason::PromiseOutOfReach } =
            &advice.outcome.answer
        else {
            return Ok(None);
        };
        let (Some(_), Some(row)) = (self.request().promise, &best.row) else {
            return Ok(None);
        };
        let explainer = self.explainer();
        let from = &advice.applicant.point;
        let shown = explainer.shown_promise(self.request(), fresh, from, &best.point)?;
        Ok(shown.map(|shown| {
            let applicant = &advice.applicant;
            let changes = changes(explainer.schema(), &applicant.values, row);
            let cost = explainer.costs(&best.point, &applicant.point);
            let sentence = format!(
                "The best change found costs {:.2} in {}: {} {}",
                best.cost,
                self.request().norm.name(),
                FeatureChange::in_words(&changes),
                shown.sentence
            );
            HighestPromise { changes, cost, promise: shown, sentence }
        }))
    }
}

impl fmt::Display for Unchanged {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { accepting, models } = self;
        write!(
            f,
            "{accepting} of {models} retrained models accept the applicant without any change."
        )
    }
}

impl Unchanged {
    pub(super) fn of(point: &[f32], fresh: &Fresh) -> Self {
        let alone = Points::one(point);
        let members = fresh.ensemble.members();
        let accepts =
            |member: &&Arc<dyn Model>| member.score(&alone).iter().all(|&score| score >= THRESHOLD);
        Self { accepting: members.iter().filter(accepts).count(), models: members.len() }
    }
}

/// The texts for an applicant without advice.
#[derive(Default)]
pub(super) struct Unanswered {
    pub(super) relaxations: Option<Relaxations>,
    pub(super) highest: Option<Box<HighestPromise>>,
    pub(super) apart: Option<Box<Apart>>,
}

impl Explainer {
    /// The advice of a document.
    pub(super) fn advised<'a>(
        &'a self,
        advice: &'a Advice,
        usual: Option<f64>,
        path: Option<AdvicePath>,
        promise: Option<ShownPromise>,
        certificate: Option<Certificate>,
        without: Unanswered,
    ) -> Advised<'a> {
        match &advice.outcome.answer {
            Answer::Found { counterfactual: found, stopped } => Advised::Found {
                changes: &advice.changes,
                counterfactual: match &advice.advised {
                    Some(row) => NamedValues::Row(self.schema(), row),
                    None => NamedValues::Point(self.encoder().columns(), &found.point),
                },
                score: found.score,
                stability: advice.stability,
                usual,
                path,
                cost: advice.cost,
                stopped: *stopped,
                proof: Proof::of(found),
                promise,
                certificate: certificate.map(|certificate| Box::new(certificate.into())),
            },
            Answer::NotFound { reason, .. } => Advised::NotFound {
                reason: *reason,
                sentence: reason.to_string(),
                highest: without.highest,
                apart: without.apart,
                rules: without.relaxations.as_ref().map(ToString::to_string),
                relaxations: without.relaxations,
            },
        }
    }
}
