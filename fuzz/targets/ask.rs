//! Reads arbitrary text as the JSON documents of users: a question, and a certificate to verify.

use serde_json::Value;
use tyrex::certificate::Certificate;
use tyrex::explain::Ask;

pub fn read(data: &[u8]) {
    let Ok(document) = serde_json::from_slice::<Value>(data) else { return };
    if let Value::Object(fields) = &document
        && let Ok(ask) = Ask::read(fields, &[])
    {
        let _ = ask.request();
        let _ = ask.promised();
        let _ = ask.calibration();
    }
    if let Ok(certificate) = serde_json::from_value::<Certificate>(document) {
        assert!(!certificate.sentence().is_empty());
    }
}
