//! firn-config
