//! Universal Binary JSON, as XGBoost writes it, for types that read JSON.
//!
//! `value = marker payload`: `Z` null, `T` and `F`, `i U I l L` whole numbers of 1, 1, 2, 4 and 8
//! bytes, `d D` numbers of 4 and 8 bytes, `S length text`, `[ ... ]`, `[#length ...`,
//! `[$type#length payloads`, `{ length name value ... }`; all big-endian. Every length is compared
//! with the rest of the file before anything is read.

use std::fmt;

use serde::de::{self, DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde::forward_to_deserialize_any;

/// Values inside each other; a model of XGBoost has nine.
const DEEPEST: usize = 64;

/// The file is damaged: in words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Damage(String);

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Damage {}

impl de::Error for Damage {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self(message.to_string())
    }
}

fn damage<T>(message: impl fmt::Display) -> Result<T, Damage> {
    Err(de::Error::custom(message))
}

/// Reads one value.
#[derive(Debug)]
pub(super) struct Reader<'de> {
    rest: &'de [u8],
    depth: usize,
}

impl<'de> Reader<'de> {
    pub(super) fn new(bytes: &'de [u8]) -> Self {
        Self { rest: bytes, depth: 0 }
    }

    fn bytes(&mut self, count: usize) -> Result<&'de [u8], Damage> {
        match self.rest.split_at_checked(count) {
            Some((read, rest)) => {
                self.rest = rest;
                Ok(read)
            }
            None => {
                damage(format!("it ends {} bytes after {count} were announced", self.rest.len()))
            }
        }
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Damage> {
        self.bytes(N).map(|read| read.try_into().unwrap_or([0; N]))
    }

    fn byte(&mut self) -> Result<u8, Damage> {
        self.array::<1>().map(|[byte]| byte)
    }

    /// Whether the next byte is this one, which is then read.
    fn eats(&mut self, byte: u8) -> bool {
        let next = self.rest.first() == Some(&byte);
        if next {
            self.rest = &self.rest[1..];
        }
        next
    }

    fn length(&mut self) -> Result<usize, Damage> {
        let length = match self.byte()? {
            b'i' => i64::from(i8::from_be_bytes(self.array()?)),
            b'U' => i64::from(self.byte()?),
            b'I' => i64::from(i16::from_be_bytes(self.array()?)),
            b'l' => i64::from(i32::from_be_bytes(self.array()?)),
            b'L' => i64::from_be_bytes(self.array()?),
            other => return damage(format!("found {}, expected a length", shown(other))),
        };
        usize::try_from(length).or_else(|_| damage(format!("the length {length}")))
    }

    fn text(&mut self) -> Result<&'de str, Damage> {
        let length = self.length()?;
        std::str::from_utf8(self.bytes(length)?).or_else(|_| damage("a text that is not UTF-8"))
    }

    fn value<V: Visitor<'de>>(&mut self, marker: u8, visitor: V) -> Result<V::Value, Damage> {
        match marker {
            b'Z' => visitor.visit_unit(),
            b'T' => visitor.visit_bool(true),
            b'F' => visitor.visit_bool(false),
            b'i' => visitor.visit_i8(i8::from_be_bytes(self.array()?)),
            b'U' | b'C' => visitor.visit_u8(self.byte()?),
            b'I' => visitor.visit_i16(i16::from_be_bytes(self.array()?)),
            b'l' => visitor.visit_i32(i32::from_be_bytes(self.array()?)),
            b'L' => visitor.visit_i64(i64::from_be_bytes(self.array()?)),
            b'd' => visitor.visit_f32(f32::from_be_bytes(self.array()?)),
            b'D' => visitor.visit_f64(f64::from_be_bytes(self.array()?)),
            b'S' => visitor.visit_borrowed_str(self.text()?),
            b'[' | b'{' => {
                if self.depth == DEEPEST {
                    return damage(format!("more than {DEEPEST} values inside each other"));
                }
                self.depth += 1;
                let value = if marker == b'[' {
                    let (kind, count) = self.list()?;
                    visitor.visit_seq(List { reader: self, kind, count })
                } else {
                    visitor.visit_map(Object(self))
                };
                self.depth -= 1;
                value
            }
            other => damage(format!("found {}, expected the type of a value", shown(other))),
        }
    }

    /// The type of a list's elements and their number, where it says so.
    fn list(&mut self) -> Result<(Option<u8>, Option<usize>), Damage> {
        let kind = if self.eats(b'$') { Some(self.byte()?) } else { None };
        if kind.is_none() && !self.eats(b'#') {
            return Ok((None, None));
        }
        if kind.is_some() && !self.eats(b'#') {
            return damage("a list with a type and without a length");
        }
        let count = self.length()?;
        let size = match kind {
            None | Some(b'i' | b'U' | b'C') => 1,
            Some(b'I') => 2,
            Some(b'l' | b'd') => 4,
            Some(b'L' | b'D') => 8,
            Some(other) => return damage(format!("a list of the type {}", shown(other))),
        };
        match count.checked_mul(size) {
            Some(bytes) if bytes <= self.rest.len() => Ok((kind, Some(count))),
            _ => {
                let left = self.rest.len();
                damage(format!("a list of {count} elements, but only {left} bytes are left"))
            }
        }
    }
}

fn shown(byte: u8) -> String {
    format!("`{}`", byte.escape_ascii())
}

impl<'de> Deserializer<'de> for &mut Reader<'de> {
    type Error = Damage;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Damage> {
        let marker = self.byte()?;
        self.value(marker, visitor)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Damage> {
        if self.eats(b'Z') { visitor.visit_none() } else { visitor.visit_some(self) }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Damage> {
        visitor.visit_newtype_struct(self)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit
        unit_struct seq tuple tuple_struct map struct enum identifier ignored_any
    }
}

/// The elements of a list.
struct List<'a, 'de> {
    reader: &'a mut Reader<'de>,
    kind: Option<u8>,
    count: Option<usize>,
}

impl<'de> SeqAccess<'de> for List<'_, 'de> {
    type Error = Damage;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, Damage> {
        match &mut self.count {
            Some(0) => return Ok(None),
            Some(left) => *left -= 1,
            None if self.reader.eats(b']') => return Ok(None),
            None => {}
        }
        let read = match self.kind {
            Some(kind) => seed.deserialize(Element { reader: self.reader, kind }),
            None => seed.deserialize(&mut *self.reader),
        };
        read.map(Some)
    }

    fn size_hint(&self) -> Option<usize> {
        self.count
    }
}

/// An element of a list that says the type of its elements.
struct Element<'a, 'de> {
    reader: &'a mut Reader<'de>,
    kind: u8,
}

impl<'de> Deserializer<'de> for Element<'_, 'de> {
    type Error = Damage;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Damage> {
        self.reader.value(self.kind, visitor)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Damage> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Damage> {
        visitor.visit_newtype_struct(self)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit
        unit_struct seq tuple tuple_struct map struct enum identifier ignored_any
    }
}

/// The entries of an object.
struct Object<'a, 'de>(&'a mut Reader<'de>);

impl<'de> MapAccess<'de> for Object<'_, 'de> {
    type Error = Damage;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, Damage> {
        if self.0.eats(b'}') {
            return Ok(None);
        }
        let name = self.0.text()?;
        seed.deserialize(de::value::BorrowedStrDeserializer::new(name)).map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Damage> {
        seed.deserialize(&mut *self.0)
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize as _;
    use serde_json::{Value, json};

    use super::*;

    fn read(bytes: &[u8]) -> Result<Value, Damage> {
        Value::deserialize(&mut Reader::new(bytes))
    }

    #[test]
    fn every_kind_of_value() {
        for (bytes, value) in [
            (&b"Z"[..], json!(null)),
            (b"T", json!(true)),
            (b"i\xff", json!(-1)),
            (b"U\xff", json!(255)),
            (b"I\x01\x00", json!(256)),
            (b"l\0\0\0\x02", json!(2)),
            (b"L\xff\xff\xff\xff\xff\xff\xff\xfe", json!(-2)),
            (b"d\x3f\x80\0\0", json!(1.0)),
            (b"D\x3f\xf0\0\0\0\0\0\0", json!(1.0)),
            (b"Si\x02ab", json!("ab")),
            (b"[i\x01Z]", json!([1, null])),
            (b"[#i\x02i\x01T", json!([1, true])),
            (b"[$d#L\0\0\0\0\0\0\0\x01\x3f\x80\0\0", json!([1.0])),
            (b"[$l#U\x02\0\0\0\x01\0\0\0\x02", json!([1, 2])),
            (b"{i\x01a{}i\x01b[]}", json!({"a": {}, "b": []})),
        ] {
            assert_eq!(read(bytes).unwrap(), value);
        }
    }

    #[test]
    fn what_is_announced_must_be_there() {
        for (bytes, words) in [
            (&b""[..], "ends"),
            (b"x", "expected the type of a value"),
            (b"Si\xff", "the length -1"),
            (b"SL\x7f\xff\xff\xff\xff\xff\xff\xff", "were announced"),
            (b"Si\x01\xff", "not UTF-8"),
            (b"[$l#L\x7f\xff\xff\xff\xff\xff\xff\xff", "only 0 bytes are left"),
            (b"[$Z#L\x7f\xff\xff\xff\xff\xff\xff\xff", "a list of the type `Z`"),
            (b"[#L\0\0\0\0\0\0\xff\xffZ", "only 1 bytes are left"),
            (b"{i\x01a", "ends"),
        ] {
            let problem = read(bytes).unwrap_err().to_string();
            assert!(problem.contains(words), "{problem}");
        }
        let problem = read(&vec![b'['; 100_000]).unwrap_err().to_string();
        assert!(problem.contains("inside each other"), "{problem}");
    }
}
