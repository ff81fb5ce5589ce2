//! The kind of a model file, by its content.

use serde::Deserialize;
use serde::de::IgnoredAny;

use super::lightgbm;

/// A kind of model file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FileKind {
    /// A graph of the ONNX format.
    Onnx,
    /// `save_model("m.json")` of XGBoost.
    XgboostJson,
    /// `save_model("m.ubj")` of XGBoost.
    XgboostUbj,
    /// `save_model("m.txt")` of LightGBM.
    LightgbmText,
    /// A scorecard, in JSON.
    Scorecard,
    /// `save_model("m.json", format="json")` of CatBoost.
    CatboostJson,
}

/// The kinds that are read, in words.
const KINDS: &str = "tyrex reads ONNX, scorecards in JSON, and the own model files of XGBoost (.json, \
    .ubj), LightGBM (.txt) and CatBoost (.json)";

impl FileKind {
    /// The kind of a file; an error for one that is known and not read. A file of no known kind
    /// counts as ONNX, which has no signature.
    pub(super) fn of(bytes: &[u8]) -> Result<Self, String> {
        let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
        let start = bytes.trim_ascii_start();
        match start {
            [] => Err("the file is empty".to_owned()),
            // The next byte of UBJSON is the type of the first name's length.
            [b'{', b'L' | b'l' | b'I' | b'U' | b'i', ..] => Ok(Self::XgboostUbj),
            [b'{', ..] => of_object(start),
            [b'[', ..] => Err(refused(
                "a list in JSON, such as XGBoost's `dump_model`, which leaves out the objective; \
                 save the model with `save_model`",
            )),
            [b'b', b'i', b'n', b'f', ..] => Err(refused(
                "XGBoost's old binary format; load it with XGBoost and save it as .ubj or .json",
            )),
            [b'C', b'B', b'M', b'1', ..] => {
                Err(refused("CatBoost's binary format; save the model with `format=\"json\"`"))
            }
            [0x80, 2..=5, ..] => Err(refused(
                "a pickle of Python, which can run any code when it is opened; save the model in \
                 its package's own format",
            )),
            _ if is_line(start, lightgbm::FIRST_LINE) => Ok(Self::LightgbmText),
            _ => Ok(Self::Onnx),
        }
    }
}

/// Whether a text is a model file.
pub(crate) fn is_model_text(content: &[u8]) -> bool {
    FileKind::of(content).is_ok_and(|kind| kind != FileKind::Onnx)
}

/// The kind of a JSON document, by its keys.
fn of_object(text: &[u8]) -> Result<FileKind, String> {
    #[derive(Deserialize)]
    struct Keys {
        learner: Option<IgnoredAny>,
        scorecard: Option<IgnoredAny>,
        features_info: Option<IgnoredAny>,
        tree_info: Option<IgnoredAny>,
    }
    let keys: Keys = serde_json::from_slice(text)
        .map_err(|error| format!("this is not a model in JSON, or it is damaged: {error}"))?;
    match keys {
        Keys { learner: Some(_), .. } => Ok(FileKind::XgboostJson),
        Keys { scorecard: Some(_), .. } => Ok(FileKind::Scorecard),
        Keys { features_info: Some(_), .. } => Ok(FileKind::CatboostJson),
        Keys { tree_info: Some(_), .. } => Err(refused(
            "LightGBM's `dump_model`, which rounds and leaves out the objective; save the model \
             with `save_model`",
        )),
        _ => Err(refused("JSON of an unknown kind")),
    }
}

/// Whether a text begins with this line.
fn is_line(text: &[u8], line: &[u8]) -> bool {
    text.strip_prefix(line).is_some_and(|rest| rest.starts_with(b"\n") || rest.starts_with(b"\r\n"))
}

fn refused(what: &str) -> String {
    format!("this is {what}; {KINDS}")
}

/// The kinds that are read, beside the problem of a file of no known kind.
pub(super) fn listed_beside(problem: String) -> String {
    if problem.starts_with("this is not") { format!("{problem}; {KINDS}") } else { problem }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_found_in_the_content() {
        for (start, kind) in [
            (&b" {\"learner\": {}}"[..], FileKind::XgboostJson),
            (b"{L\0\0\0\0\0\0\0\x07learner", FileKind::XgboostUbj),
            (b"{i\x07learner", FileKind::XgboostUbj),
            (b"{\"features_info\": {}}", FileKind::CatboostJson),
            (b"{\"scorecard\": 1}", FileKind::Scorecard),
            (b"tree\r\nversion=v4\n", FileKind::LightgbmText),
            (b"\x08\x07\x12\x04", FileKind::Onnx),
        ] {
            assert_eq!(FileKind::of(start), Ok(kind), "{start:?}");
        }
        for (start, words) in [
            (&b"  "[..], "empty"),
            (b"{\"a\": 1}", "JSON of an unknown kind; tyrex reads ONNX, scorecards"),
            (b"{\"a\": ", "damaged"),
            (b"[{\"nodeid\": 0}]", "dump_model"),
            (b"{\"name\": \"tree\", \"tree_info\": []}", "LightGBM's `dump_model`"),
            (b"binf\0\0", "old binary format"),
            (b"CBM1\0", "format=\"json\""),
            (b"\x80\x04\x95", "pickle"),
        ] {
            let problem = FileKind::of(start).unwrap_err();
            assert!(problem.contains(words), "{problem}");
        }
    }
}
