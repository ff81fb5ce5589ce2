//! Verification: certificates are recomputed and compared.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{Certificate, CertificateWords, Certifier, Retrained, unwritable};
use crate::data::encode::Scale;
use crate::error::{Error, Result};
use crate::model::Model;

/// A field in which a certificate differs from the recomputed one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Difference {
    /// The path of the field: `tiers.0.bound.at_least`.
    pub field: String,
    /// The value in the certificate.
    pub stated: String,
    /// The recomputed value.
    pub recomputed: String,
}

/// The result of verifying one certificate.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Verified {
    /// The path of the certificate in its document: `rejected.3.advice.certificate`.
    pub place: String,
    /// The row that it is about, if the document names it.
    pub row: Option<u64>,
    /// Whether the recomputed certificate has the same bits.
    pub confirmed: bool,
    /// The differences; empty if confirmed.
    pub differences: Vec<Difference>,
    /// The number of models in the ensemble, if the certificate rests on some of them only. Who
    /// chose those is not verified.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub of_models: Option<usize>,
}

/// A certificate in a document, with or without its claims in words.
#[derive(Debug, Clone, PartialEq)]
pub struct WrittenCertificate {
    /// Its path in the document; empty if it is the whole document.
    pub place: String,
    /// The row that it is about, if the document names it.
    pub row: Option<u64>,
    /// The certificate.
    pub certificate: Certificate,
    /// Its claims in words, as the document has them.
    words: Map<String, Value>,
}

/// The fields of [`CertificateWords`].
const WORDS: [&str; 3] = ["verdict", "sentence", "claims"];

impl WrittenCertificate {
    /// All certificates in a document, in its order: one certificate, a list of them, or an answer
    /// of a front end that contains them at any depth. An object with the fields `digest` and
    /// `tiers` is a certificate.
    pub fn all(document: &Value) -> Result<Vec<Self>> {
        let mut found = Vec::new();
        collect(document, "", None, &mut found)?;
        if found.is_empty() {
            let expected = "a document with certificates, such as `tyrex certify --json` writes";
            return Err(Error::param("certificates", "a document without any", expected));
        }
        Ok(found)
    }

    /// The same from the text of a JSON document.
    pub fn all_in(text: &str) -> Result<Vec<Self>> {
        let document = serde_json::from_str(text)
            .map_err(|error| Error::param("certificates", error, "a JSON document"))?;
        Self::all(&document)
    }

    /// The scale of all certificates of a document; `None` if it is that of the model file.
    /// Certificates on different scales are an error.
    pub fn scale(all: &[Self]) -> Result<Option<&Scale>> {
        let mut scales = all.iter().map(|each| each.certificate.scale());
        let first = scales.next().flatten();
        if scales.any(|other| other != first) {
            let expected = "certificates on one scale; verify the documents one by one";
            return Err(Error::param("certificates", "several scales of numbers", expected));
        }
        Ok(first)
    }

    /// Recomputes the certificate and compares it, and its words if present. A certificate that
    /// cannot be recomputed is not confirmed.
    ///
    /// The model takes points on the scale of the certificate.
    pub(crate) fn verified(
        &self,
        model: &dyn Model,
        retrained: Option<Retrained>,
    ) -> Result<Verified> {
        let mut differences = Vec::new();
        match anew(&self.certificate, model, retrained) {
            Ok(anew) => {
                compare("", &value(&self.certificate)?, &value(&anew)?, &mut differences);
                let words = value(&CertificateWords::of(&anew))?;
                for (name, stated) in &self.words {
                    compare(name, stated, &words[name], &mut differences);
                }
            }
            Err(problem) => differences.push(Difference {
                field: "terms".to_owned(),
                stated: "a certificate".to_owned(),
                recomputed: format!("none can be made: {problem}"),
            }),
        }
        let confirmed = differences.is_empty();
        Ok(Verified {
            place: self.place.clone(),
            row: self.row,
            confirmed,
            differences,
            of_models: None,
        })
    }
}

/// Finds the certificates below a value.
fn collect(
    value: &Value,
    place: &str,
    row: Option<u64>,
    found: &mut Vec<WrittenCertificate>,
) -> Result<()> {
    match value {
        Value::Object(fields) if fields.contains_key("digest") && fields.contains_key("tiers") => {
            let (words, fields): (Map<_, _>, Map<_, _>) =
                fields.clone().into_iter().partition(|(name, _)| WORDS.contains(&&**name));
            let certificate = Certificate::deserialize(Value::Object(fields)).map_err(|error| {
                let place = if place.is_empty() { "the document" } else { place };
                Error::param("certificates", place, format!("a certificate: {error}"))
            })?;
            found.push(WrittenCertificate { place: place.to_owned(), row, certificate, words });
            Ok(())
        }
        Value::Object(fields) => {
            let row = fields.get("row").and_then(Value::as_u64).or(row);
            fields
                .iter()
                .try_for_each(|(name, value)| collect(value, &below(place, name), row, found))
        }
        Value::Array(values) => values.iter().enumerate().try_for_each(|(index, value)| {
            collect(value, &below(place, &index.to_string()), row, found)
        }),
        _ => Ok(()),
    }
}

/// The certificate, recomputed from its point, scale, seed and terms.
fn anew(
    certificate: &Certificate,
    model: &dyn Model,
    retrained: Option<Retrained>,
) -> Result<Certificate> {
    let Certificate { point, scale, terms, seed, .. } = certificate;
    let certifier = Certifier::new(model, retrained, terms.clone())?;
    certifier.on_scale(scale.as_ref()).certify(point, *seed)
}

/// Recomputes the certificate from its point, seed and terms and compares every field, bit by bit.
/// The certificate is correct if there is no difference. The model takes points on the scale of the
/// certificate.
pub fn verify(
    certificate: &Certificate,
    model: &dyn Model,
    retrained: Option<Retrained>,
) -> Result<Vec<Difference>> {
    let anew = anew(certificate, model, retrained)?;
    let mut differences = Vec::new();
    compare("", &value(certificate)?, &value(&anew)?, &mut differences);
    Ok(differences)
}

fn value(document: &impl Serialize) -> Result<Value> {
    serde_json::to_value(document).map_err(|problem| unwritable(&problem))
}

/// The name of a field inside another.
fn below(field: &str, name: &str) -> String {
    if field.is_empty() { name.to_owned() } else { format!("{field}.{name}") }
}

/// Collects the differences between two documents.
fn compare(field: &str, stated: &Value, anew: &Value, differences: &mut Vec<Difference>) {
    match (stated, anew) {
        (Value::Object(a), Value::Object(b)) if a.keys().eq(b.keys()) => {
            for ((name, a), b) in a.iter().zip(b.values()) {
                compare(&below(field, name), a, b, differences);
            }
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            for (index, (a, b)) in a.iter().zip(b).enumerate() {
                compare(&below(field, &index.to_string()), a, b, differences);
            }
        }
        (a, b) => {
            // Compared as text, since 0 and -0 are equal but have different bits.
            let (stated, recomputed) = (a.to_string(), b.to_string());
            if stated != recomputed {
                differences.push(Difference { field: field.to_owned(), stated, recomputed });
            }
        }
    }
}
