//! Random moments that can be had again.

use std::time::{SystemTime, UNIX_EPOCH};

/// SplitMix64: small, and good enough to choose moments.
#[derive(Debug)]
pub struct Random(u64);

impl Random {
    /// Seeded by the variable FIRN_SEED, else by the clock; the seed is printed, so that a failure shows it.
    pub fn seeded() -> Random {
        let clock = || SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos() as u64);
        let seed = number_from("FIRN_SEED").unwrap_or_else(clock);
        eprintln!("FIRN_SEED={seed}");
        Random(seed)
    }

    /// A number from 0 to `end`, the end left out; `end` is not 0.
    pub fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (mixed ^ (mixed >> 31)) % end
    }
}

/// A whole number in an environment variable.
///
/// # Panics
/// When it is something else.
pub fn number_from(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok()?;
    Some(text.parse().unwrap_or_else(|error| panic!("{variable}={text}: {error}")))
}
