//! firn-storage
