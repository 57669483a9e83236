//! firn-tests
