//! A certificate as a document: its fields, and its claims in words.

use serde::{Deserialize, Serialize};

use super::{Certificate, Tier, Verdict};

/// A certificate, with its claims in words.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CertificateDocument {
    /// The claims in words.
    #[serde(flatten)]
    pub words: CertificateWords,
    /// The certificate itself, with everything needed to check it.
    #[serde(flatten)]
    pub certificate: Certificate,
}

/// The claims of a certificate in words.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct CertificateWords {
    /// The best verdict of the tiers.
    pub verdict: Verdict,
    /// The claims and their assumptions.
    pub sentence: String,
    /// The same, tier by tier.
    pub claims: Vec<Claim>,
}

/// The claim of one tier in words.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Claim {
    /// The tier: `theorem`, `interval`, `ensemble` or `forest`.
    pub tier: String,
    /// The verdict.
    pub verdict: Verdict,
    /// The claim.
    pub sentence: String,
    /// The assumptions, each with its standing.
    pub rests_on: Vec<String>,
}

impl Claim {
    fn of(tier: &Tier) -> Self {
        Self {
            tier: tier.name().to_owned(),
            verdict: tier.verdict(),
            sentence: tier.claim(),
            rests_on: tier.assumptions().iter().map(ToString::to_string).collect(),
        }
    }
}

impl CertificateWords {
    /// The words of a certificate.
    pub(crate) fn of(certificate: &Certificate) -> Self {
        Self {
            verdict: certificate.verdict(),
            sentence: certificate.sentence(),
            claims: certificate.tiers().iter().map(Claim::of).collect(),
        }
    }
}

impl From<Certificate> for CertificateDocument {
    fn from(certificate: Certificate) -> Self {
        Self { words: CertificateWords::of(&certificate), certificate }
    }
}

#[cfg(feature = "openapi")]
mod openapi {
    use utoipa::openapi::RefOr;
    use utoipa::openapi::schema::Schema;
    use utoipa::{PartialSchema, ToSchema};

    use super::{Certificate, CertificateDocument, CertificateWords};

    impl PartialSchema for CertificateDocument {
        fn schema() -> RefOr<Schema> {
            crate::openapi::merged(CertificateWords::schema(), Certificate::schema())
        }
    }

    impl ToSchema for CertificateDocument {
        fn schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
            CertificateWords::schemas(schemas);
            Certificate::schemas(schemas);
        }
    }
}
