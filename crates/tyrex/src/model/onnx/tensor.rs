//! Constant arrays: decoding them within limits, and arithmetic on them.

use std::collections::BTreeMap;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Component, Path};
use std::rc::Rc;

use super::limits::ReadBudget;
use super::proto::{EntryProto, TensorProto, element};
use crate::model::files::FILE_BYTES;

/// The elements of a constant, widened to the type of their family.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Data {
    Reals(Vec<f64>),
    Integers(Vec<i64>),
    Texts(Vec<Rc<str>>),
}

/// A constant array.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Tensor {
    pub(super) shape: Vec<usize>,
    pub(super) data: Data,
}

/// The folder of external data, and the remaining bytes.
#[derive(Debug)]
pub(super) struct External<'a> {
    folder: Option<&'a Path>,
    bytes_left: u64,
}

impl<'a> External<'a> {
    /// External data beside a model file; an error if there is no file.
    pub(super) fn new(folder: Option<&'a Path>) -> Self {
        Self { folder, bytes_left: FILE_BYTES }
    }
}

impl Tensor {
    /// A vector of reals.
    pub(super) fn vector(values: Vec<f64>) -> Self {
        Self { shape: vec![values.len()], data: Data::Reals(values) }
    }

    /// The number of elements.
    pub(super) fn len(&self) -> usize {
        match &self.data {
            Data::Reals(values) => values.len(),
            Data::Integers(values) => values.len(),
            Data::Texts(values) => values.len(),
        }
    }

    /// The elements as reals; `None` for texts.
    pub(super) fn reals(&self) -> Option<Vec<f64>> {
        match &self.data {
            Data::Reals(values) => Some(values.clone()),
            Data::Integers(values) => Some(values.iter().map(|&v| v as f64).collect()),
            Data::Texts(_) => None,
        }
    }

    /// The elements as integers; `None` for anything else.
    pub(super) fn integers(&self) -> Option<&[i64]> {
        match &self.data {
            Data::Integers(values) => Some(values),
            Data::Reals(_) | Data::Texts(_) => None,
        }
    }

    /// The elements at the given positions, in that order, with a shape of the same size.
    pub(super) fn pick(&self, shape: Vec<usize>, positions: &[usize]) -> Self {
        fn select<T: Clone>(values: &[T], positions: &[usize]) -> Vec<T> {
            positions.iter().map(|&p| values[p].clone()).collect()
        }
        let data = match &self.data {
            Data::Reals(values) => Data::Reals(select(values, positions)),
            Data::Integers(values) => Data::Integers(select(values, positions)),
            Data::Texts(values) => Data::Texts(select(values, positions)),
        };
        Self { shape, data }
    }

    /// Decodes a tensor: its dimensions must agree with the elements that are really there.
    pub(super) fn decode(
        proto: &TensorProto,
        external: &mut External,
        budget: &mut ReadBudget,
    ) -> Result<Self, String> {
        let name = proto.name.as_deref().unwrap_or("");
        Self::decode_unnamed(proto, external, budget).map_err(|e| format!("tensor `{name}`: {e}"))
    }

    fn decode_unnamed(
        proto: &TensorProto,
        external: &mut External,
        budget: &mut ReadBudget,
    ) -> Result<Self, String> {
        const EXTERNAL: i32 = 1;
        let mut elements = 1_usize;
        let mut shape = Vec::with_capacity(proto.dims.len());
        for &dim in &proto.dims {
            let size = usize::try_from(dim).map_err(|_| format!("dimension {dim} is negative"))?;
            elements = elements
                .checked_mul(size)
                .ok_or_else(|| format!("dimensions {:?} are too large", proto.dims))?;
            shape.push(size);
        }
        let kind = proto.data_type.unwrap_or(0);
        let outside;
        let raw = if proto.data_location == Some(EXTERNAL) {
            outside = external_bytes(&proto.external_data, external, budget)?;
            Some(outside.as_slice())
        } else {
            proto.raw_data.as_deref()
        };
        let found = match (raw, kind) {
            (_, element::STRING) => proto.string_data.len(),
            (Some(raw), _) => {
                let width = width(kind)?;
                if !raw.len().is_multiple_of(width) {
                    return Err(format!("{} bytes do not divide by {width}", raw.len()));
                }
                raw.len() / width
            }
            (None, element::FLOAT) => proto.float_data.len(),
            (None, element::DOUBLE) => proto.double_data.len(),
            (None, element::INT64) => proto.int64_data.len(),
            (None, _) => {
                width(kind)?;
                proto.int32_data.len()
            }
        };
        if found != elements {
            return Err(format!(
                "dimensions {:?} ask for {elements} elements, found {found}",
                proto.dims
            ));
        }
        budget.take(elements, 16)?;
        let data = match (raw, kind) {
            (_, element::STRING) => {
                let texts = proto.string_data.iter();
                Data::Texts(texts.map(|bytes| String::from_utf8_lossy(bytes).into()).collect())
            }
            (Some(raw), element::FLOAT) => Data::Reals(
                raw.as_chunks().0.iter().map(|b| f64::from(f32::from_le_bytes(*b))).collect(),
            ),
            (Some(raw), element::DOUBLE) => {
                Data::Reals(raw.as_chunks().0.iter().map(|b| f64::from_le_bytes(*b)).collect())
            }
            (Some(raw), element::INT64) => {
                Data::Integers(raw.as_chunks().0.iter().map(|b| i64::from_le_bytes(*b)).collect())
            }
            (Some(raw), element::INT32) => Data::Integers(
                raw.as_chunks().0.iter().map(|b| i64::from(i32::from_le_bytes(*b))).collect(),
            ),
            (Some(raw), element::UINT8) => {
                Data::Integers(raw.iter().map(|&b| i64::from(b)).collect())
            }
            (Some(raw), _) => Data::Integers(raw.iter().map(|&b| i64::from(b != 0)).collect()),
            (None, element::FLOAT) => {
                Data::Reals(proto.float_data.iter().map(|&v| f64::from(v)).collect())
            }
            (None, element::DOUBLE) => Data::Reals(proto.double_data.clone()),
            (None, element::INT64) => Data::Integers(proto.int64_data.clone()),
            (None, _) => Data::Integers(proto.int32_data.iter().map(|&v| i64::from(v)).collect()),
        };
        Ok(Self { shape, data })
    }
}

/// The bytes of one element, for the types tyrex reads.
fn width(kind: i32) -> Result<usize, String> {
    match kind {
        element::FLOAT | element::INT32 => Ok(4),
        element::DOUBLE | element::INT64 => Ok(8),
        element::BOOL | element::UINT8 => Ok(1),
        _ => Err(format!(
            "type {} is not supported (supported: float, double, uint8, int32, int64, bool, string)",
            element::name(kind)
        )),
    }
}

/// Reads a tensor's bytes from a file beside the model, which must stay inside its folder.
fn external_bytes(
    entries: &[EntryProto],
    external: &mut External,
    budget: &mut ReadBudget,
) -> Result<Vec<u8>, String> {
    let entries: BTreeMap<&str, &str> = entries
        .iter()
        .map(|e| (e.key.as_deref().unwrap_or(""), e.value.as_deref().unwrap_or("")))
        .collect();
    let number = |key: &str| {
        let text = entries.get(key).copied();
        text.map(|text| text.parse::<u64>().map_err(|_| format!("external {key} `{text}`")))
            .transpose()
    };
    let location = *entries.get("location").ok_or("external data without a location")?;
    let Some(folder) = external.folder else {
        return Err(format!("external data `{location}`: this model was not read from a file"));
    };
    let stays = Path::new(location).components().all(|c| matches!(c, Component::Normal(_)));
    if location.is_empty() || !stays {
        return Err(format!("external data `{location}` leaves the model's folder"));
    }
    let failed = |e: std::io::Error| format!("external data `{location}`: {e}");
    let home = folder.canonicalize().map_err(failed)?;
    let path = folder.join(location).canonicalize().map_err(failed)?;
    if !path.starts_with(&home) {
        return Err(format!("external data `{location}` leaves the model's folder"));
    }
    // A pipe or a device could block or never end.
    let about = path.metadata().map_err(failed)?;
    if !about.is_file() {
        return Err(format!("external data `{location}` is not a file"));
    }
    let offset = number("offset")?.unwrap_or(0);
    let rest = about.len().checked_sub(offset);
    let rest = rest.ok_or_else(|| format!("external data `{location}` ends before {offset}"))?;
    let length = number("length")?.unwrap_or(rest);
    if length > rest {
        return Err(format!(
            "external data `{location}`: {length} bytes at {offset} requested, {rest} are there"
        ));
    }
    external.bytes_left = external.bytes_left.checked_sub(length).ok_or_else(|| {
        format!("the model is too large: more than {} MiB of external data", FILE_BYTES >> 20)
    })?;
    let length = length as usize;
    budget.take(length, 1)?;
    let mut file = std::fs::File::open(&path).map_err(failed)?;
    file.seek(SeekFrom::Start(offset)).map_err(failed)?;
    let mut bytes = vec![0; length];
    file.read_exact(&mut bytes).map_err(failed)?;
    Ok(bytes)
}
