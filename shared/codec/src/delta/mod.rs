//! Differences instead of values (parquet-format, Encodings, "Delta Encoding (DELTA_BINARY_PACKED = 5)" and the two encodings of byte
//! strings that build on it).

mod decode;
mod encode;
mod texts;

pub use decode::decode;
pub use encode::encode;
pub use texts::{decode_shared, decode_shared_fixed, decode_texts};
