//! firn-telemetry
