//! Reads arbitrary text as a schema, writes it and reads it again, and reads rows with it.

use tyrex::data::{Dataset, Schema};

use crate::loans;

pub fn read(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let Ok(schema) = Schema::from_toml(text) else { return };
    let written = schema.to_toml().expect("a schema has a text");
    let again = Schema::from_toml(&written).expect("a written schema is read again");
    assert_eq!(again.to_toml().expect("a schema has a text"), written);
    let _ = Dataset::load(&schema, loans::table());
}
