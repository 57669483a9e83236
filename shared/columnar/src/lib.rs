//! Parquet in and out, in windows and under a memory budget.
//!
//! This crate knows no Iceberg: a target schema is an Arrow schema whose fields (nested ones too) carry their field id
//! under the metadata key `PARQUET:field_id`.
//!
//! - [`error`]: what can go wrong, told by what the caller does next.

pub mod error;

pub use error::ColumnarError;
