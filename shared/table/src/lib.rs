//! firn-table
