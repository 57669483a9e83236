//! Several parts in one blob, with a footer that says what they are (`docs/sidecars.md`, "Bundle").
//!
//! ```text
//! magic (8) | part | part | ... | footer (JSON) | CRC-64 of the footer (8) | length of the footer (4) | magic (8)
//! ```

mod blocks;
mod read;
mod write;

use serde::{Deserialize, Serialize};

use crate::identity::{DataFile, SidecarKind};
pub use blocks::Blocks;
pub use read::BundleReader;
pub(crate) use read::ranged;
pub use write::{Bundle, Content, Part};

/// First and last bytes of a bundle; the digits are the version of the layout.
pub const MAGIC: &[u8; 8] = b"FIRNSC01";
/// What follows the footer: its CRC-64, its length, the magic.
const TRAILER_BYTES: u64 = 20;

/// What a bundle says of itself.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Footer {
    /// What it is.
    pub kind: SidecarKind,
    /// Who wrote it.
    pub created_by: String,
    /// The data file that it was built for.
    pub data: DataFile,
    /// What the kind of sidecar has to say: columns, tokenizer and so on.
    pub about: serde_json::Value,
    /// The parts, in their order in the blob.
    pub parts: Vec<PartEntry>,
    /// Checksums for who reads ranges.
    pub blocks: Blocks,
}

impl Footer {
    /// Where the last part ends.
    fn parts_end(&self) -> u64 {
        self.parts.last().map_or(MAGIC.len() as u64, |part| part.offset.saturating_add(part.length))
    }
}

/// A part in the footer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PartEntry {
    /// Name, unique in the bundle.
    pub name: String,
    /// First byte.
    pub offset: u64,
    /// Bytes.
    pub length: u64,
    /// CRC-64/NVME of the bytes, 16 hexadecimal digits.
    pub crc64: String,
}

/// Who writes sidecars, as it stands in them.
pub(crate) fn created_by() -> String {
    format!("Firn version {}", env!("CARGO_PKG_VERSION"))
}
