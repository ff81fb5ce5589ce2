//! The limits of a model file.
//!
//! A file is untrusted: two bytes can ask for a message of two hundred, eight bytes of
//! dimensions for more elements than there is memory, and sixty small nodes for 2^60 copies of
//! a column. Every limit is checked before the memory is taken.

/// The most nodes in a graph.
pub(super) const NODES: usize = 100_000;
/// The most messages (nodes, attributes, tensors, inputs, ...) in a file.
const MESSAGES: usize = 1_000_000;
/// The most strings in a file; a tree ensemble spends one on each of its nodes.
const STRINGS: usize = 16_000_000;
/// The memory that reading the graph may take on top of the file, in bytes.
const WORK_BYTES: usize = 2 << 30;

/// The remaining memory, and so also time, for reading a graph.
#[derive(Debug)]
pub(super) struct ReadBudget {
    bytes: usize,
    spent: bool,
}

impl ReadBudget {
    pub(super) fn new() -> Self {
        Self { bytes: WORK_BYTES, spent: false }
    }

    /// Takes `count` items of `size` bytes; an error if the model is too large.
    pub(super) fn take(&mut self, count: usize, size: usize) -> Result<(), String> {
        let left = count.checked_mul(size).and_then(|bytes| self.bytes.checked_sub(bytes));
        self.spent |= left.is_none();
        self.bytes = left.ok_or_else(|| {
            format!("the model is too large: its graph needs more than {} MiB", WORK_BYTES >> 20)
        })?;
        Ok(())
    }

    /// Whether the budget was exceeded.
    pub(super) fn is_spent(&self) -> bool {
        self.spent
    }
}

/// A message type, as far as counting needs to know it.
#[derive(Clone, Copy)]
enum Kind {
    Model,
    Graph,
    Node,
    Attribute,
    Tensor,
    Value,
    Type,
    TensorType,
    Shape,
    Small,
    Text,
    Data,
}

impl Kind {
    /// The type of a length-delimited field.
    fn field(self, number: u64) -> Self {
        match (self, number) {
            (Self::Model, 7) => Self::Graph,
            (Self::Model, 8 | 14) | (Self::Graph, 15) | (Self::Tensor, 13) | (Self::Shape, 1) => {
                Self::Small
            }
            (Self::Graph, 1) => Self::Node,
            (Self::Graph | Self::Attribute, 5) => Self::Tensor,
            (Self::Graph, 11 | 12) => Self::Value,
            (Self::Node, 5) => Self::Attribute,
            (Self::Node, 1 | 2) | (Self::Attribute, 9) | (Self::Tensor, 6) => Self::Text,
            (Self::Value, 2) => Self::Type,
            (Self::Type, 1) => Self::TensorType,
            (Self::TensorType, 2) => Self::Shape,
            _ => Self::Data,
        }
    }
}

/// Counts messages and strings without keeping any, and refuses a file with too many.
///
/// Malformed content is left to the decoder, which has better errors.
pub(super) fn check(file: &[u8]) -> Result<(), String> {
    let mut counts = Counts::default();
    counts.message(file, Kind::Model)
}

#[derive(Default)]
struct Counts {
    messages: usize,
    strings: usize,
    nodes: usize,
}

impl Counts {
    fn message(&mut self, mut rest: &[u8], kind: Kind) -> Result<(), String> {
        while !rest.is_empty() {
            let Some(tag) = varint(&mut rest) else { return Ok(()) };
            let skip = match tag & 7 {
                0 => {
                    if varint(&mut rest).is_none() {
                        return Ok(());
                    }
                    0
                }
                1 => 8,
                5 => 4,
                2 => {
                    let Some(length) = varint(&mut rest) else { return Ok(()) };
                    let length = usize::try_from(length).unwrap_or(usize::MAX);
                    let Some(body) = rest.get(..length) else { return Ok(()) };
                    self.count(body, kind.field(tag >> 3))?;
                    length
                }
                _ => return Ok(()),
            };
            let Some(next) = rest.get(skip..) else { return Ok(()) };
            rest = next;
        }
        Ok(())
    }

    fn count(&mut self, body: &[u8], kind: Kind) -> Result<(), String> {
        match kind {
            Kind::Data => return Ok(()),
            Kind::Text => {
                self.strings += 1;
                return refuse(self.strings > STRINGS, STRINGS, "strings");
            }
            Kind::Node => self.nodes += 1,
            _ => {}
        }
        self.messages += 1;
        refuse(self.nodes > NODES, NODES, "nodes")?;
        refuse(self.messages > MESSAGES, MESSAGES, "messages")?;
        if matches!(kind, Kind::Small) { Ok(()) } else { self.message(body, kind) }
    }
}

fn refuse(too_many: bool, limit: usize, what: &str) -> Result<(), String> {
    if too_many {
        return Err(format!("the model is too large: more than {limit} {what}"));
    }
    Ok(())
}

fn varint(rest: &mut &[u8]) -> Option<u64> {
    let mut value = 0_u64;
    for shift in (0..64).step_by(7) {
        let (&byte, tail) = rest.split_first()?;
        *rest = tail;
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A length-delimited field.
    fn field(number: u8, body: &[u8]) -> Vec<u8> {
        let mut bytes = vec![number << 3 | 2];
        let mut length = body.len();
        while length >= 0x80 {
            bytes.push(length as u8 | 0x80);
            length >>= 7;
        }
        bytes.push(length as u8);
        bytes.extend_from_slice(body);
        bytes
    }

    #[test]
    fn empty_messages_are_counted_before_they_are_decoded() {
        let nodes = field(1, &[]).repeat(NODES + 1);
        assert_eq!(
            check(&field(7, &nodes)).unwrap_err(),
            "the model is too large: more than 100000 nodes"
        );
        let attributes = field(5, &[]).repeat(MESSAGES + 1);
        assert!(check(&field(7, &field(1, &attributes))).unwrap_err().contains("messages"));
        let strings = field(1, &[]).repeat(STRINGS + 1);
        assert!(check(&field(7, &field(1, &strings))).unwrap_err().contains("strings"));
        assert_eq!(check(&field(7, &field(1, &[]).repeat(NODES))), Ok(()));
    }

    #[test]
    fn the_budget_is_spent_once() {
        let mut budget = ReadBudget::new();
        assert_eq!(budget.take(WORK_BYTES, 1), Ok(()));
        assert!(budget.take(1, 1).is_err());
        assert!(ReadBudget::new().take(usize::MAX, 8).is_err());
    }
}
