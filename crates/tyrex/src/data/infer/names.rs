//! Well-known names: of columns that identify rows, of features that nobody can change, and of bad
//! outcomes.

/// Words in the name of a column that identifies rows.
pub(super) const IDENTIFIERS: [&str; 15] = [
    "id",
    "ids",
    "uuid",
    "guid",
    "identifier",
    "ssn",
    "phone",
    "telephone",
    "tel",
    "mobile",
    "fax",
    "email",
    "iban",
    "passport",
    "imei",
];
/// Last words in the name of a column that may number rows, or count something.
pub(super) const NUMBERS: [&str; 7] = ["no", "nr", "num", "number", "nbr", "key", "code"];
/// Words in the name of a feature that nobody can change.
pub(super) const UNCHANGEABLE: [&str; 13] = [
    "sex",
    "gender",
    "race",
    "ethnicity",
    "ethnic",
    "nationality",
    "citizenship",
    "native",
    "birth",
    "born",
    "birthday",
    "birthdate",
    "religion",
];
/// Words in the name of a label, or of its value, that say that the outcome is bad.
pub(super) const BAD_OUTCOMES: [&str; 96] = [
    "abandoned",
    "accident",
    "arrears",
    "arrest",
    "arrested",
    "attack",
    "attrition",
    "bad",
    "bankrupt",
    "bankruptcy",
    "breach",
    "canceled",
    "cancelled",
    "cancer",
    "chargeback",
    "chargeoff",
    "chargedoff",
    "churn",
    "churned",
    "churner",
    "complication",
    "convicted",
    "covid",
    "crash",
    "dead",
    "death",
    "deceased",
    "declined",
    "default",
    "defaulted",
    "defaulter",
    "defaults",
    "dementia",
    "denied",
    "depressed",
    "depression",
    "diabetes",
    "diabetic",
    "died",
    "disease",
    "dropout",
    "exited",
    "fail",
    "failed",
    "failure",
    "fatal",
    "foreclosed",
    "foreclosure",
    "fraud",
    "fraudulent",
    "guilty",
    "ill",
    "illness",
    "infected",
    "infection",
    "injured",
    "injury",
    "insolvency",
    "insolvent",
    "lapsed",
    "late",
    "left",
    "malignant",
    "malware",
    "mortality",
    "nonpayment",
    "npl",
    "overdue",
    "phishing",
    "poor",
    "quit",
    "readmission",
    "readmitted",
    "recid",
    "recidivism",
    "recidivist",
    "recurrence",
    "refused",
    "rejected",
    "relapse",
    "relapsed",
    "reoffend",
    "reoffended",
    "repossessed",
    "resigned",
    "scam",
    "sepsis",
    "sick",
    "spam",
    "stroke",
    "suicide",
    "terminated",
    "tumor",
    "tumour",
    "unpaid",
    "writeoff",
];
/// Beginnings of such words.
pub(super) const BAD_BEGINNINGS: [&str; 3] = ["delinq", "dlq", "hypertens"];
/// Such names of several words.
pub(super) const BAD_PHRASES: [&str; 8] = [
    "charged off",
    "charge off",
    "written off",
    "write off",
    "dropped out",
    "past due",
    "high risk",
    "at risk",
];

/// Whether the name of a label says that its truth is a bad outcome, or that of a value that it is
/// one.
pub(super) fn is_bad_outcome(name: &str) -> bool {
    let words = words(name);
    if words.iter().any(|word| ["no", "not", "non", "never"].contains(&word.as_str())) {
        return false;
    }
    let joined = words.join(" ");
    let is_bad = |word: &String| {
        BAD_OUTCOMES.contains(&word.as_str())
            || BAD_BEGINNINGS.iter().any(|beginning| word.starts_with(beginning))
    };
    words.iter().any(is_bad) || BAD_PHRASES.iter().any(|phrase| joined.contains(phrase))
}

/// The words of a name in small letters: `customerID` and `customer_id` have the same.
pub(super) fn words(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut after_small = false;
    for letter in name.chars() {
        let begins = letter.is_uppercase() && after_small;
        if (begins || !letter.is_alphanumeric()) && words.last().is_some_and(|w| !w.is_empty()) {
            words.push(String::new());
        }
        if let Some(word) = words.last_mut().filter(|_| letter.is_alphanumeric()) {
            word.extend(letter.to_lowercase());
        }
        after_small = letter.is_lowercase() || letter.is_ascii_digit();
    }
    words.retain(|word| !word.is_empty());
    words
}

pub(super) fn has_word(name: &str, known: &[&str]) -> bool {
    words(name).iter().any(|word| known.contains(&word.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_names() {
        for (name, expected) in [
            ("customerID", &["customer", "id"][..]),
            ("CUSTOMER_ID", &["customer", "id"]),
            ("Age", &["age"]),
            ("mortgage", &["mortgage"]),
            ("SeriousDlqin2yrs", &["serious", "dlqin2yrs"]),
            ("place-of birth", &["place", "of", "birth"]),
            ("", &[]),
        ] {
            assert_eq!(words(name), expected, "{name}");
        }
    }

    #[test]
    fn bad_outcomes_are_known_by_their_words() {
        for name in [
            "default",
            "loan_default",
            "Churned",
            "is_ill",
            "charged_off",
            "ChargedOff",
            "bankrupt",
            "SeriousDlqin2yrs",
            "readmitted",
            "died",
            "Past Due",
            "90_days_late",
            "DELINQUENCY",
        ] {
            assert!(is_bad_outcome(name), "{name}");
        }
        for name in [
            "",
            "approved",
            "plate",
            "skill",
            "will_pay",
            "no default",
            "not_churned",
            "related",
            "survived",
            "Current",
            "benign",
            "leftover",
        ] {
            assert!(!is_bad_outcome(name), "{name}");
        }
    }
}
