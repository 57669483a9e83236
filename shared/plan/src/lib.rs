//! firn-plan
