//! firn-columnar
