//! firn-compact
