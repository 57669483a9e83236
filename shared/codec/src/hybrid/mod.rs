//! The hybrid of runs and bit packing (parquet-format, Encodings, "Run Length Encoding / Bit-Packing Hybrid (RLE = 3)"):
//! dictionary indices, definition levels and RLE booleans.
//!
//! Three things stand around it in a page, which the caller takes off or puts on: the byte with the width before dictionary indices; the
//! length of 4 bytes before the levels of data pages v1 and before RLE booleans ([`prefixed`]); nothing before the levels of data pages v2.

mod decode;
mod encode;
mod levels;
mod runs;
mod stream;

pub use decode::{decode, decode_bools, decode_indices, decode_mapped, prefixed};
pub use encode::{encode, encode_all_present, encode_levels};
pub(crate) use levels::unpack_bits;
pub use levels::{Presence, validity};
pub use stream::Stream;
