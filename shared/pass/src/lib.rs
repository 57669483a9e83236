//! firn-pass
