//! The CRC-64 that Azure Storage computes over a request's body (`x-ms-content-crc64`): CRC-64/NVME, sent as the Base64 of
//! eight little-endian bytes.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use crc_fast::{CrcAlgorithm, Digest};

/// CRC-64 of `data`.
pub fn crc64(data: &[u8]) -> u64 {
    crc_fast::checksum(CrcAlgorithm::Crc64Nvme, data)
}

/// `crc` as Azure's headers have it.
pub fn to_header(crc: u64) -> String {
    STANDARD.encode(crc.to_le_bytes())
}

/// CRC-64 of a stream of pieces.
#[derive(Debug, Clone)]
pub struct Crc64(Digest);

impl Default for Crc64 {
    fn default() -> Self {
        Crc64(Digest::new(CrcAlgorithm::Crc64Nvme))
    }
}

impl Crc64 {
    /// Adds the next piece.
    pub fn update(&mut self, piece: &[u8]) {
        self.0.update(piece);
    }

    /// The CRC of all pieces so far.
    pub fn value(&self) -> u64 {
        self.0.finalize()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_answers_of_azures_own_libraries() {
        assert_eq!(to_header(crc64(b"")), "AAAAAAAAAAA=");
        assert_eq!(to_header(crc64(b"Hello Azure!")), "DtjZpL9/o8c=");
    }

    #[test]
    fn pieces_give_the_same_as_the_whole() {
        let mut pieces = Crc64::default();
        for piece in ["Hel", "", "lo Azure", "!"] {
            pieces.update(piece.as_bytes());
        }
        assert_eq!(pieces.value(), crc64(b"Hello Azure!"));
    }
}
