//! Page encodings of Parquet for the common physical types, without I/O: bytes in, values out, and back.
//!
//! Values are the bits they are stored as: `u32` for INT32 and FLOAT, `u64` for INT64 and DOUBLE, [`Texts`] for BYTE_ARRAY and
//! FIXED_LEN_BYTE_ARRAY, one byte a value for BOOLEAN and for validity. So a value that goes through Firn keeps every bit, NaN
//! payloads too, and one piece of code serves several types. Only [`order`] and [`stats`] ask what the bits mean.
//!
//! - [`hybrid`]: dictionary indices, definition levels and RLE booleans;
//! - [`plain`], [`delta`], [`split`]: values;
//! - [`distinct`], [`order`], [`stats`]: what a writer must know before it chooses an encoding;
//! - [`header`]: the header before each page.
//!
//! Decoders append to what they are given. They take bytes from anyone: whatever the bytes, the answer is `Ok` or [`Damage`],
//! never a panic, and never more memory than the stated count of values and the length of the input account for. After an error the
//! output may hold some values more than before. Encoders cannot fail, except where a size may outgrow what Parquet can say.

#![forbid(unsafe_code)]

mod bits;
mod damage;
pub mod delta;
pub mod distinct;
pub mod header;
pub mod hybrid;
pub mod order;
pub mod plain;
pub mod split;
pub mod stats;
mod texts;
mod varint;
mod word;

pub use bits::bits_for;
pub use damage::Damage;
pub use texts::Texts;
pub use word::Word;
