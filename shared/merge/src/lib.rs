//! firn-merge
