//! Validation: a schema must be consistent.

use std::collections::BTreeSet;

use super::{
    Action, Encoding, FORMAT_VERSION, Feature, FeatureKind, Interval, MayBecome, MissingPolicy,
    Rule, Schema, SpecialAs, Split,
};
use crate::data::number::Step;
use crate::data::value::Value;
use crate::error::{Error, Result};

impl Schema {
    /// Checks that the schema is consistent.
    pub fn validate(&self) -> Result<()> {
        if self.format_version != FORMAT_VERSION {
            return Err(Error::schema(format!(
                "format_version is {}, expected {FORMAT_VERSION}",
                self.format_version
            )));
        }
        if self.features.is_empty() {
            return Err(Error::schema("no features, expected at least one [[feature]]"));
        }
        self.check_names()?;
        self.check_label()?;
        self.check_split()?;
        for feature in &self.features {
            self.check_feature(feature)
                .map_err(|problem| Error::feature(&feature.name, problem))?;
        }
        self.check_order()?;
        self.check_class()?;
        self.check_rules()
    }

    fn check_class(&self) -> Result<()> {
        match &self.model.favourable_class {
            None | Some(Value::Text(_)) => Ok(()),
            Some(Value::Number(number)) if number.fract() == 0.0 && *number >= 0.0 => Ok(()),
            Some(other) => Err(Error::schema(format!(
                "model: `favourable_class` is `{other}`, expected the number of a class, from 0, or \
                 its name"
            ))),
        }
    }

    fn check_names(&self) -> Result<()> {
        let mut seen = BTreeSet::new();
        for feature in &self.features {
            if feature.name.is_empty() {
                return Err(Error::schema("a feature has an empty name"));
            }
            if !seen.insert(feature.name.as_str()) {
                return Err(Error::feature(&feature.name, "is listed twice"));
            }
        }
        if seen.contains(self.label.column.as_str()) {
            return Err(Error::feature(&self.label.column, "is also the label column"));
        }
        for name in &self.ignore {
            if seen.contains(name.as_str()) {
                return Err(Error::feature(name, "is also listed in `ignore`"));
            }
            if *name == self.label.column {
                return Err(Error::schema(format!(
                    "the label column `{name}` is listed in `ignore`"
                )));
            }
        }
        match &self.split {
            Split::Column { column, .. } if seen.contains(column.as_str()) => {
                Err(Error::feature(column, "is also the split column"))
            }
            Split::Column { column, .. } if *column == self.label.column => {
                Err(Error::schema(format!("`{column}` is both the label and the split column")))
            }
            _ => Ok(()),
        }
    }

    fn check_label(&self) -> Result<()> {
        let label = &self.label;
        let wrong = |problem: String| Err(Error::schema(format!("label: {problem}")));
        if label.column.is_empty() {
            return wrong("the column has an empty name".to_owned());
        }
        if label.favourable.is_empty() {
            return wrong("`favourable` is empty, expected at least one value".to_owned());
        }
        let all: Vec<Value> = label.favourable.iter().chain(&label.unfavourable).cloned().collect();
        if let Some(problem) = repeated(&all) {
            return wrong(problem);
        }
        match label.missing {
            MissingPolicy::Reject | MissingPolicy::DropRow => Ok(()),
            MissingPolicy::Level | MissingPolicy::Pass | MissingPolicy::Fill(_) => {
                wrong("`missing` must be `reject` or `drop-row`".to_owned())
            }
        }
    }

    fn check_split(&self) -> Result<()> {
        match &self.split {
            Split::Column { train, test, .. } => {
                let all: Vec<Value> = train.iter().chain(test).cloned().collect();
                repeated(&all)
                    .map_or(Ok(()), |problem| Err(Error::schema(format!("split: {problem}"))))
            }
            Split::File { file } if file.as_os_str().is_empty() => {
                Err(Error::schema("split: `file` is empty, expected a file name"))
            }
            Split::Fraction { train, .. } if !(*train > 0.0 && *train < 1.0) => Err(Error::schema(
                format!("split: `fraction` is {train}, expected a number between 0 and 1"),
            )),
            Split::AllTrain | Split::File { .. } | Split::Fraction { .. } => Ok(()),
        }
    }

    fn check_feature(&self, feature: &Feature) -> Result<(), String> {
        check_keys(feature)?;
        check_levels(&feature.kind)?;
        if let Some(range) = feature.range {
            check_interval("range", range)?;
        }
        if let Some(clip) = feature.clip {
            check_interval("clip", clip)?;
        }
        check_step(feature)?;
        self.check_special(feature)?;
        self.check_encoding(feature)?;
        check_action(feature)?;
        self.check_may_become(feature)?;
        self.check_price(feature)?;
        if let MissingPolicy::Fill(value) = self.missing_policy(feature)
            && !self.accepts(feature, value)
        {
            return Err(format!(
                "missing cells are filled with `{value}`, expected {}",
                self.expected(feature)
            ));
        }
        Ok(())
    }

    fn check_special(&self, feature: &Feature) -> Result<(), String> {
        if feature.special.is_some() && !feature.kind.is_number() {
            return Err(format!(
                "special values do not go with kind `{}`; list them as levels",
                feature.kind.name()
            ));
        }
        let as_level = self.special_values(feature, SpecialAs::Level);
        let as_number = self.special_values(feature, SpecialAs::Number);
        let all: Vec<Value> =
            as_level.iter().chain(as_number).map(|&value| Value::Number(value)).collect();
        if let Some(problem) = repeated(&all) {
            return Err(format!("special values: {problem}"));
        }
        for &value in as_level.iter().chain(as_number) {
            if !is_representable(value) {
                return Err(format!("special value {value} is not a number a model can take"));
            }
            if feature.range.is_some_and(|range| range.contains(value)) {
                return Err(format!(
                    "special value {value} lies inside the range, so it is not special"
                ));
            }
        }
        if !as_level.is_empty() && feature.range.is_none() {
            return Err("special values as levels need a `range` that leaves them out".to_owned());
        }
        Ok(())
    }

    fn check_encoding(&self, feature: &Feature) -> Result<(), String> {
        let encoding = self.encoding(feature);
        let fits = match encoding {
            Encoding::Scaled => feature.kind.is_number(),
            Encoding::OneHot => !feature.kind.is_number(),
            Encoding::OrdinalNumber => {
                matches!(feature.kind, FeatureKind::Ordinal { .. } | FeatureKind::Flag { .. })
            }
            Encoding::AsIs => feature.kind.levels().iter().all(|level| level.number().is_some()),
        };
        if !fits && encoding == Encoding::AsIs {
            return Err("encoding `as-is` needs levels that are numbers".to_owned());
        }
        if !fits {
            let expected = match feature.kind {
                FeatureKind::Numeric | FeatureKind::Integer => "`scaled` or `as-is`",
                FeatureKind::Categorical { .. } => "`one-hot` or `as-is`",
                FeatureKind::Ordinal { .. } | FeatureKind::Flag { .. } => {
                    "`ordinal-number`, `one-hot` or `as-is`"
                }
            };
            return Err(format!(
                "this encoding does not go with kind `{}`, expected {expected}",
                feature.kind.name()
            ));
        }
        if encoding == Encoding::AsIs && (feature.scaling.is_some() || feature.clip.is_some()) {
            return Err("encoding `as-is` goes with neither `scaling` nor `clip`".to_owned());
        }
        Ok(())
    }

    fn check_price(&self, feature: &Feature) -> Result<(), String> {
        let Some(price) = feature.price else { return Ok(()) };
        if !feature.kind.is_number() && self.encoding(feature) != Encoding::OrdinalNumber {
            return Err("`price` goes with features that are one column with an order: numbers, \
                        flags and ordinal levels that are not one-hot"
                .to_owned());
        }
        for (key, factor) in [("up", price.up), ("down", price.down)] {
            if !(1e-3..=1e3).contains(&factor) {
                return Err(format!(
                    "`price.{key}` is {factor}, expected a number from 0.001 to 1000"
                ));
            }
        }
        Ok(())
    }

    fn check_may_become(&self, feature: &Feature) -> Result<(), String> {
        if feature.may_become == MayBecome::Neither {
            return Ok(());
        }
        if !self.missing_policy(feature).keeps_missing() {
            return Err("`may_become` needs missing cells that are values: set `missing` to \
                        \"pass\" or \"level\""
                .to_owned());
        }
        // A missing value is in no sum and has no direction.
        let is_about = |rule: &Rule| rule.features().contains(&feature.name.as_str());
        match self.rules.iter().position(is_about) {
            Some(rule) => Err(format!(
                "`may_become` does not go with features in rules, and rule {rule} is about it"
            )),
            None => Ok(()),
        }
    }

    fn check_order(&self) -> Result<()> {
        if self.order.is_empty() {
            return Ok(());
        }
        let mut seen = BTreeSet::new();
        for name in &self.order {
            if self.position(name).is_none() {
                return Err(Error::schema(format!(
                    "`order` lists `{name}`, which is not a feature"
                )));
            }
            if !seen.insert(name) {
                return Err(Error::schema(format!("`order` lists `{name}` twice")));
            }
        }
        match self.features.iter().find(|feature| !seen.contains(&feature.name)) {
            Some(left_out) => Err(Error::feature(&left_out.name, "is not listed in `order`")),
            None => Ok(()),
        }
    }

    fn check_rules(&self) -> Result<()> {
        for (index, rule) in self.rules.iter().enumerate() {
            self.check_rule(rule)
                .map_err(|problem| Error::schema(format!("rule {index}: {problem}")))?;
        }
        Ok(())
    }
}

/// Whether a 32-bit float can hold the number, at least roughly.
pub(crate) fn is_representable(number: f64) -> bool {
    number.abs() <= f64::from(f32::MAX)
}

/// Keys that only some kinds have.
fn check_keys(feature: &Feature) -> Result<(), String> {
    let kind = feature.kind.name();
    if !feature.kind.is_number() {
        let keys = [
            ("range", feature.range.is_some()),
            ("clip", feature.clip.is_some()),
            ("unit", feature.unit.is_some()),
        ];
        if let Some((key, _)) = keys.iter().find(|(_, given)| *given) {
            return Err(format!("`{key}` goes with numbers, not with kind `{kind}`"));
        }
    }
    if feature.step.is_some() && feature.kind != FeatureKind::Numeric {
        return Err(format!("`step` goes with kind `numeric`, not with kind `{kind}`"));
    }
    Ok(())
}

fn check_levels(kind: &FeatureKind) -> Result<(), String> {
    let levels = kind.levels();
    if kind.is_number() {
        return Ok(());
    }
    if levels.is_empty() {
        return Err("`levels` is empty, expected at least one".to_owned());
    }
    if let Some(problem) = repeated(levels) {
        return Err(format!("levels: {problem}"));
    }
    for level in levels {
        match level {
            Value::Missing => return Err("a level must be a number or a text".to_owned()),
            Value::Number(number) if !is_representable(*number) => {
                return Err(format!("level {number} is not a number a model can take"));
            }
            Value::Number(_) | Value::Text(_) => {}
        }
    }
    Ok(())
}

/// Two values that the same cell would match.
fn repeated(values: &[Value]) -> Option<String> {
    let mut seen = BTreeSet::new();
    values
        .iter()
        .find(|value| !seen.insert(value.to_string()))
        .map(|value| format!("`{value}` is listed twice"))
}

pub(super) fn check_interval(key: &str, interval: Interval) -> Result<(), String> {
    let Interval { lower, upper } = interval;
    if lower.is_nan() || upper.is_nan() {
        return Err(format!("`{key}` must hold numbers"));
    }
    if lower > upper {
        return Err(format!("`{key}` is [{lower}, {upper}], expected the smaller number first"));
    }
    if lower == f64::INFINITY || upper == f64::NEG_INFINITY {
        return Err(format!("`{key}` is [{lower}, {upper}], which holds no number"));
    }
    Ok(())
}

fn check_step(feature: &Feature) -> Result<(), String> {
    if let Some(step) = feature.step
        && !(step > 0.0 && step.is_finite())
    {
        return Err(format!("`step` is {step}, expected a number above 0"));
    }
    let all = Interval::ALL;
    let (range, clip) = (feature.range.unwrap_or(all), feature.clip.unwrap_or(all));
    let allowed = range.intersection(clip);
    if allowed.lower > allowed.upper {
        return Err("`range` and `clip` have no number in common".to_owned());
    }
    let step = if feature.kind == FeatureKind::Integer { Some(1.0) } else { feature.step };
    if let Some(step) = step
        && feature.kind.is_number()
        && Step::new(step, allowed).is_none()
    {
        return Err(format!("no multiple of {step} lies in the range"));
    }
    Ok(())
}

fn check_action(feature: &Feature) -> Result<(), String> {
    let kind = feature.kind.name();
    match &feature.action {
        Action::Free | Action::Fixed => Ok(()),
        Action::OnlyUp | Action::OnlyDown => match feature.kind {
            FeatureKind::Categorical { .. } => {
                Err("levels without an order cannot go only up or only down".to_owned())
            }
            _ => Ok(()),
        },
        Action::Within(interval) if feature.kind.is_number() => {
            check_interval("within", *interval)?;
            let common = interval.intersection(feature.range.unwrap_or(Interval::ALL));
            if common.lower > common.upper {
                return Err("`within` and `range` have no number in common".to_owned());
            }
            Ok(())
        }
        Action::Within(_) => Err(format!("`within` goes with numbers, not with kind `{kind}`")),
        Action::Levels(_) if feature.kind.is_number() => {
            Err(format!("action `levels` goes with levels, not with kind `{kind}`"))
        }
        Action::Levels(allowed) if allowed.is_empty() => {
            Err("action `levels` is empty; did you mean `fixed`?".to_owned())
        }
        Action::Levels(allowed) => {
            match allowed.iter().find(|level| !feature.kind.levels().contains(level)) {
                Some(unknown) => {
                    Err(format!("action lists `{unknown}`, which is not a level of it"))
                }
                None => Ok(()),
            }
        }
    }
}
