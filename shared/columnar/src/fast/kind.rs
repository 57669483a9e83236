//! Which columns the fast path moves.

use arrow_schema::{DataType, Field, TimeUnit};
use parquet::basic::Type as PhysicalType;

use crate::input::InputFile;
use crate::resolve::ColumnPlan;

/// What the values of a column are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// 32-bit integers and dates.
    I32,
    /// 64-bit integers, times and timestamps.
    I64,
    /// Floats.
    F32,
    /// Doubles.
    F64,
    /// Text.
    Text,
    /// Bytes of any length.
    Bytes,
}

impl Kind {
    /// None for a type that goes the generic way.
    pub(crate) fn of(data_type: &DataType) -> Option<Kind> {
        Some(match data_type {
            DataType::Int32 | DataType::Date32 => Kind::I32,
            DataType::Int64
            | DataType::Time64(TimeUnit::Microsecond)
            | DataType::Timestamp(TimeUnit::Microsecond | TimeUnit::Nanosecond, _) => Kind::I64,
            DataType::Float32 => Kind::F32,
            DataType::Float64 => Kind::F64,
            DataType::Utf8 | DataType::LargeUtf8 => Kind::Text,
            DataType::Binary | DataType::LargeBinary => Kind::Bytes,
            _ => return None,
        })
    }

    /// How Parquet stores them.
    pub(crate) fn physical(self) -> PhysicalType {
        match self {
            Kind::I32 => PhysicalType::INT32,
            Kind::I64 => PhysicalType::INT64,
            Kind::F32 => PhysicalType::FLOAT,
            Kind::F64 => PhysicalType::DOUBLE,
            Kind::Text | Kind::Bytes => PhysicalType::BYTE_ARRAY,
        }
    }

    /// Values of 4 or 8 bytes.
    pub(crate) fn is_word(self) -> bool {
        !matches!(self, Kind::Text | Kind::Bytes)
    }
}

/// The kind of a column of the target, when each of `inputs` either lacks it or stores it as the table has it.
pub(crate) fn common_kind<'a>(
    field: &Field,
    column: usize,
    mut inputs: impl Iterator<Item = &'a InputFile>,
) -> Option<Kind> {
    let kind = Kind::of(field.data_type())?;
    inputs.all(|input| is_as_stored(input, column, kind)).then_some(kind)
}

fn is_as_stored(input: &InputFile, column: usize, kind: Kind) -> bool {
    match input.plan(column) {
        Ok(ColumnPlan::Missing(_)) => true,
        Ok(ColumnPlan::Read(plan)) => {
            let [leaf] = plan.leaves.as_slice() else { return false };
            let descriptor = input.metadata().file_metadata().schema_descr().column(*leaf);
            plan.adapt.keeps_values()
                && descriptor.physical_type() == kind.physical()
                && descriptor.max_rep_level() == 0
                && descriptor.max_def_level() <= 1
        }
        Err(_) => false,
    }
}
