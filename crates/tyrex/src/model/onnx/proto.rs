//! The ONNX messages tyrex uses, with the public field numbers of `onnx.proto`.
//!
//! Fields that are not listed are skipped by the decoder, nested graphs among them, so no
//! message here contains itself and decoding never recurses deeper than this file.

use prost::Message;
use prost::bytes::Bytes;

/// A model file.
#[derive(Clone, PartialEq, Message)]
pub(super) struct ModelProto {
    #[prost(int64, optional, tag = "1")]
    pub(super) ir_version: Option<i64>,
    #[prost(string, optional, tag = "2")]
    pub(super) producer_name: Option<String>,
    #[prost(string, optional, tag = "3")]
    pub(super) producer_version: Option<String>,
    #[prost(message, optional, tag = "7")]
    pub(super) graph: Option<GraphProto>,
    #[prost(message, repeated, tag = "8")]
    pub(super) opset_import: Vec<OperatorSetProto>,
    #[prost(message, repeated, tag = "14")]
    pub(super) metadata_props: Vec<EntryProto>,
}

/// A set of operators, by domain and version.
#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct OperatorSetProto {
    #[prost(string, optional, tag = "1")]
    pub(super) domain: Option<String>,
    #[prost(int64, optional, tag = "2")]
    pub(super) version: Option<i64>,
}

/// A key and its value.
#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct EntryProto {
    #[prost(string, optional, tag = "1")]
    pub(super) key: Option<String>,
    #[prost(string, optional, tag = "2")]
    pub(super) value: Option<String>,
}

/// Nodes, constants, inputs and outputs.
#[derive(Clone, PartialEq, Message)]
pub(super) struct GraphProto {
    #[prost(message, repeated, tag = "1")]
    pub(super) node: Vec<NodeProto>,
    #[prost(string, optional, tag = "2")]
    pub(super) name: Option<String>,
    #[prost(message, repeated, tag = "5")]
    pub(super) initializer: Vec<TensorProto>,
    #[prost(message, repeated, tag = "11")]
    pub(super) input: Vec<ValueInfoProto>,
    #[prost(message, repeated, tag = "12")]
    pub(super) output: Vec<ValueInfoProto>,
    #[prost(message, repeated, tag = "15")]
    pub(super) sparse_initializer: Vec<EmptyProto>,
}

/// A message of which only the presence matters.
#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub(super) struct EmptyProto {}

/// One operation.
#[derive(Clone, PartialEq, Message)]
pub(super) struct NodeProto {
    #[prost(string, repeated, tag = "1")]
    pub(super) input: Vec<String>,
    #[prost(string, repeated, tag = "2")]
    pub(super) output: Vec<String>,
    #[prost(string, optional, tag = "3")]
    pub(super) name: Option<String>,
    #[prost(string, optional, tag = "4")]
    pub(super) op_type: Option<String>,
    #[prost(message, repeated, tag = "5")]
    pub(super) attribute: Vec<AttributeProto>,
    #[prost(string, optional, tag = "7")]
    pub(super) domain: Option<String>,
}

/// A named parameter of an operation.
#[derive(Clone, PartialEq, Message)]
pub(super) struct AttributeProto {
    #[prost(string, optional, tag = "1")]
    pub(super) name: Option<String>,
    #[prost(float, optional, tag = "2")]
    pub(super) f: Option<f32>,
    #[prost(int64, optional, tag = "3")]
    pub(super) i: Option<i64>,
    #[prost(bytes = "bytes", optional, tag = "4")]
    pub(super) s: Option<Bytes>,
    #[prost(message, optional, tag = "5")]
    pub(super) t: Option<TensorProto>,
    #[prost(float, repeated, packed = "false", tag = "7")]
    pub(super) floats: Vec<f32>,
    #[prost(int64, repeated, packed = "false", tag = "8")]
    pub(super) ints: Vec<i64>,
    #[prost(bytes = "bytes", repeated, tag = "9")]
    pub(super) strings: Vec<Bytes>,
    #[prost(int32, optional, tag = "20")]
    pub(super) kind: Option<i32>,
}

/// A constant array.
#[derive(Clone, PartialEq, Message)]
pub(super) struct TensorProto {
    #[prost(int64, repeated, packed = "false", tag = "1")]
    pub(super) dims: Vec<i64>,
    #[prost(int32, optional, tag = "2")]
    pub(super) data_type: Option<i32>,
    #[prost(float, repeated, tag = "4")]
    pub(super) float_data: Vec<f32>,
    #[prost(int32, repeated, tag = "5")]
    pub(super) int32_data: Vec<i32>,
    #[prost(bytes = "bytes", repeated, tag = "6")]
    pub(super) string_data: Vec<Bytes>,
    #[prost(int64, repeated, tag = "7")]
    pub(super) int64_data: Vec<i64>,
    #[prost(string, optional, tag = "8")]
    pub(super) name: Option<String>,
    #[prost(bytes = "bytes", optional, tag = "9")]
    pub(super) raw_data: Option<Bytes>,
    #[prost(double, repeated, tag = "10")]
    pub(super) double_data: Vec<f64>,
    #[prost(message, repeated, tag = "13")]
    pub(super) external_data: Vec<EntryProto>,
    #[prost(int32, optional, tag = "14")]
    pub(super) data_location: Option<i32>,
}

/// A named input or output and its type.
#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct ValueInfoProto {
    #[prost(string, optional, tag = "1")]
    pub(super) name: Option<String>,
    #[prost(message, optional, tag = "2")]
    pub(super) r#type: Option<TypeProto>,
}

/// The type of a value; `None` for sequences, maps and the like.
#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct TypeProto {
    #[prost(message, optional, tag = "1")]
    pub(super) tensor_type: Option<TensorTypeProto>,
}

/// Element type and shape.
#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct TensorTypeProto {
    #[prost(int32, optional, tag = "1")]
    pub(super) elem_type: Option<i32>,
    #[prost(message, optional, tag = "2")]
    pub(super) shape: Option<ShapeProto>,
}

/// The sizes of the axes.
#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct ShapeProto {
    #[prost(message, repeated, tag = "1")]
    pub(super) dim: Vec<DimensionProto>,
}

/// One size: a number, or a name for "any".
#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct DimensionProto {
    #[prost(int64, optional, tag = "1")]
    pub(super) dim_value: Option<i64>,
    #[prost(string, optional, tag = "2")]
    pub(super) dim_param: Option<String>,
}

/// Element types, `TensorProto.DataType`.
pub(super) mod element {
    pub(in crate::model::onnx) const FLOAT: i32 = 1;
    pub(in crate::model::onnx) const UINT8: i32 = 2;
    pub(in crate::model::onnx) const INT32: i32 = 6;
    pub(in crate::model::onnx) const INT64: i32 = 7;
    pub(in crate::model::onnx) const STRING: i32 = 8;
    pub(in crate::model::onnx) const BOOL: i32 = 9;
    pub(in crate::model::onnx) const DOUBLE: i32 = 11;

    /// The name of an element type, for error messages.
    pub(in crate::model::onnx) fn name(kind: i32) -> String {
        const NAMES: [&str; 24] = [
            "undefined",
            "float",
            "uint8",
            "int8",
            "uint16",
            "int16",
            "int32",
            "int64",
            "string",
            "bool",
            "float16",
            "double",
            "uint32",
            "uint64",
            "complex64",
            "complex128",
            "bfloat16",
            "float8e4m3fn",
            "float8e4m3fnuz",
            "float8e5m2",
            "float8e5m2fnuz",
            "uint4",
            "int4",
            "float4e2m1",
        ];
        usize::try_from(kind)
            .ok()
            .and_then(|kind| NAMES.get(kind))
            .map_or_else(|| format!("element type {kind}"), |name| (*name).to_string())
    }
}

/// Attribute types, `AttributeProto.AttributeType`.
pub(super) mod attribute {
    pub(in crate::model::onnx) const FLOAT: i32 = 1;
    pub(in crate::model::onnx) const INT: i32 = 2;
    pub(in crate::model::onnx) const STRING: i32 = 3;
}
