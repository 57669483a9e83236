//! Cuts a column of the file down to what the table wants of it.

use std::sync::Arc;

use arrow_schema::{DataType, Field, Fields};
use parquet::basic::{ConvertedType, LogicalType, Repetition, Type as PhysicalType};
use parquet::schema::types::{Type, TypePtr};

use super::{Ids, leaf_count, target_id, text_of, twice};
use crate::error::ColumnarError;

/// Longest fixed-length value that is read; the format allows 2 GiB, and a damaged footer may claim it.
const MAX_FIXED_LENGTH: i32 = 1024 * 1024;

/// Which parts of what the reader gives become which parts of the table's field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Shape {
    /// A value.
    Leaf {
        /// It was declared INT96 and is read as its 12 bytes.
        int96: bool,
    },
    /// For each child of the table's struct: its place in the struct that is read, or `None` when the file lacks it.
    Struct(Vec<Option<(usize, Shape)>>),
    /// A list of such elements.
    List(Box<Shape>),
    /// A map of such keys and values.
    Map(Box<Shape>, Box<Shape>),
}

/// Walks target and file together and collects the leaf columns to be read.
pub(crate) struct Pruner<'a> {
    file: &'a str,
    pub(crate) leaves: Vec<usize>,
}

type Pruned = (TypePtr, Shape);

impl<'a> Pruner<'a> {
    pub(crate) fn new(file: &'a str) -> Self {
        Self { file, leaves: Vec::new() }
    }

    /// Cuts `node`, whose first leaf column is `first_leaf`, down to `field`.
    pub(crate) fn prune(
        &mut self,
        field: &Field,
        node: &TypePtr,
        first_leaf: usize,
        ids: Ids<'_>,
        path: &str,
    ) -> Result<Pruned, ColumnarError> {
        if repetition(node) == Repetition::REPEATED {
            // A bare repeated field is a list without annotation; Iceberg never writes one.
            return Err(self.incompatible(path, format!("a repeated {}", text_of(node)), field));
        }
        match field.data_type() {
            DataType::Struct(children) if is_struct(node) => {
                self.prune_struct(children, node, first_leaf, ids, path, |fields| group(node, node.name(), fields))
            }
            DataType::List(element) | DataType::LargeList(element) if is_list(node) => {
                self.prune_list(element, node, first_leaf, ids, path)
            }
            DataType::Map(entries, _) if is_map(node) => self.prune_map(entries, node, first_leaf, ids, path),
            DataType::Struct(_) | DataType::List(_) | DataType::LargeList(_) | DataType::Map(..) => {
                Err(self.incompatible(path, text_of(node), field))
            }
            _ if node.is_group() => Err(self.incompatible(path, text_of(node), field)),
            wanted => {
                self.leaves.push(first_leaf);
                let read = self.leaf(node, Some(wanted), path)?;
                let int96 = node.get_physical_type() == PhysicalType::INT96;
                Ok((read, Shape::Leaf { int96 }))
            }
        }
    }

    fn prune_struct(
        &mut self,
        children: &Fields,
        node: &TypePtr,
        first_leaf: usize,
        ids: Ids<'_>,
        path: &str,
        rebuild: impl FnOnce(Vec<TypePtr>) -> parquet::errors::Result<TypePtr>,
    ) -> Result<Pruned, ColumnarError> {
        let mut wanted = Vec::with_capacity(children.len());
        for child in children {
            wanted.push(target_id(child).ok_or_else(|| ColumnarError::Usage {
                detail: format!("field `{path}.{}` of the target has no field id", child.name()),
            })?);
        }
        let mut shapes: Vec<Option<(usize, Shape)>> = vec![None; children.len()];
        let mut fields = Vec::new();
        let mut leaf = first_leaf;
        for candidate in node.get_fields() {
            let (id, inner) = ids.of(candidate, candidate.name());
            if let Some(index) = wanted.iter().position(|wanted| Some(*wanted) == id) {
                let child = &children[index];
                let path = format!("{path}.{}", child.name());
                if shapes[index].is_some() {
                    return Err(twice(self.file, &path, wanted[index]));
                }
                let (read, shape) = self.prune(child, candidate, leaf, inner, &path)?;
                shapes[index] = Some((fields.len(), shape));
                fields.push(read);
            }
            leaf += leaf_count(candidate);
        }
        for (child, shape) in children.iter().zip(&shapes) {
            if shape.is_none() && !child.is_nullable() {
                return Err(ColumnarError::MissingRequired {
                    file: self.file.to_owned(),
                    column: format!("{path}.{}", child.name()),
                });
            }
        }
        if fields.is_empty() {
            // Some leaf must be read to learn which structs are null.
            fields.push(self.witness_of_children(node, first_leaf, path)?);
        }
        let read = rebuild(fields).map_err(|error| self.unsupported(path, error.to_string()))?;
        Ok((read, Shape::Struct(shapes)))
    }

    fn prune_list(
        &mut self,
        element: &Field,
        node: &TypePtr,
        first_leaf: usize,
        ids: Ids<'_>,
        path: &str,
    ) -> Result<Pruned, ColumnarError> {
        let path = format!("{path}.{}", element.name());
        let (repeated, inner) = self.repeated_child(node, &path)?;
        let element_node = inner.unwrap_or(repeated);
        let (id, ids) = ids.of(element_node, "element");
        self.check_inner_id(id, element, &path)?;
        let (read, shape) = match inner {
            Some(item) => {
                let (read, shape) = self.prune(element, item, first_leaf, ids, &path)?;
                (group(repeated, repeated.name(), vec![read]), shape)
            }
            // Two levels: the repeated node itself is the element.
            None => match element.data_type() {
                // `array` tells the Parquet crate that the group is the element, also when one child is left.
                DataType::Struct(children) if repeated.is_group() => {
                    let rebuild = |fields| group(repeated, "array", fields);
                    let (read, shape) = self.prune_struct(children, repeated, first_leaf, ids, &path, rebuild)?;
                    (Ok(read), shape)
                }
                wanted if repeated.is_primitive() && !wanted.is_nested() => {
                    self.leaves.push(first_leaf);
                    let int96 = repeated.get_physical_type() == PhysicalType::INT96;
                    (Ok(self.leaf(repeated, Some(wanted), &path)?), Shape::Leaf { int96 })
                }
                _ => return Err(self.incompatible(&path, text_of(repeated), element)),
            },
        };
        let list = read.and_then(|read| group(node, node.name(), vec![read]));
        let list = list.map_err(|error| self.unsupported(&path, error.to_string()))?;
        Ok((list, Shape::List(Box::new(shape))))
    }

    /// The repeated child of a list, and the element below it unless it is the element itself. The rules of
    /// parquet-format ("Lists", backward compatibility), as the Parquet crate applies them.
    fn repeated_child<'n>(
        &self,
        node: &'n TypePtr,
        path: &str,
    ) -> Result<(&'n TypePtr, Option<&'n TypePtr>), ColumnarError> {
        let [repeated] = node.get_fields() else {
            return Err(self.unsupported(path, "its list has other than one child".into()));
        };
        if repetition(repeated) != Repetition::REPEATED {
            return Err(self.unsupported(path, "its list has no repeated child".into()));
        }
        if repeated.is_primitive() {
            return Ok((repeated, None));
        }
        if !is_struct(repeated) {
            return Err(self.unsupported(path, "it is a list of lists without their own level".into()));
        }
        match repeated.get_fields() {
            [item] if repetition(item) == Repetition::REPEATED => {
                Err(self.unsupported(path, "it is a list of lists without their own level".into()))
            }
            [_] if repeated.name() == "array" || repeated.name() == format!("{}_tuple", node.name()) => {
                Ok((repeated, None))
            }
            [item] => Ok((repeated, Some(item))),
            _ => Ok((repeated, None)),
        }
    }

    fn prune_map(
        &mut self,
        entries: &Field,
        node: &TypePtr,
        first_leaf: usize,
        ids: Ids<'_>,
        path: &str,
    ) -> Result<Pruned, ColumnarError> {
        let DataType::Struct(target) = entries.data_type() else {
            return Err(ColumnarError::Usage { detail: format!("map `{path}` of the target has no entries") });
        };
        let [key, value] = &target[..] else {
            return Err(ColumnarError::Usage { detail: format!("map `{path}` of the target has no key and value") });
        };
        let [repeated] = node.get_fields() else {
            return Err(self.unsupported(path, "its map has other than one child".into()));
        };
        if repeated.is_primitive() || repetition(repeated) != Repetition::REPEATED {
            return Err(self.unsupported(path, "its map has no repeated group".into()));
        }
        let [key_node, value_node] = repeated.get_fields() else {
            return Err(self.unsupported(path, "its map has other than a key and a value".into()));
        };
        let mut read = Vec::with_capacity(2);
        let mut shapes = Vec::with_capacity(2);
        let mut leaf = first_leaf;
        for (field, node, name) in [(key, key_node, "key"), (value, value_node, "value")] {
            let path = format!("{path}.{}", field.name());
            let (id, inner) = ids.of(node, name);
            self.check_inner_id(id, field, &path)?;
            let (pruned, shape) = self.prune(field, node, leaf, inner, &path)?;
            read.push(pruned);
            shapes.push(Box::new(shape));
            leaf += leaf_count(node);
        }
        let map = group(repeated, repeated.name(), read).and_then(|entries| group(node, node.name(), vec![entries]));
        let map = map.map_err(|error| self.unsupported(path, error.to_string()))?;
        match <[Box<Shape>; 2]>::try_from(shapes) {
            Ok([key, value]) => Ok((map, Shape::Map(key, value))),
            Err(_) => Err(ColumnarError::Usage { detail: format!("map `{path}` has other than a key and a value") }),
        }
    }

    /// Elements, keys and values are found by their place; an id that says otherwise means another field.
    fn check_inner_id(&self, found: Option<i32>, field: &Field, path: &str) -> Result<(), ColumnarError> {
        match (found, target_id(field)) {
            (Some(found), Some(wanted)) if found != wanted => Err(ColumnarError::Incompatible {
                file: self.file.to_owned(),
                column: path.to_owned(),
                from: format!("field id {found}"),
                to: format!("field id {wanted}"),
            }),
            _ => Ok(()),
        }
    }

    /// One leaf below `node` that tells where `node` is null.
    fn witness_of_children(&mut self, node: &TypePtr, first_leaf: usize, path: &str) -> Result<TypePtr, ColumnarError> {
        let fields = node.get_fields();
        let plain = |child: &TypePtr| repetition(child) != Repetition::REPEATED;
        let chosen = fields
            .iter()
            .position(|child| plain(child) && child.is_primitive())
            .or_else(|| fields.iter().position(|child| plain(child) && is_struct(child)));
        // Else the first one, a list or a map, is read whole.
        let Some(child) = fields.get(chosen.unwrap_or(0)) else {
            return Err(self.unsupported(path, "its struct has no fields".into()));
        };
        let chosen_leaf = chosen.unwrap_or(0);
        let leaf = first_leaf + fields[..chosen_leaf].iter().map(|child| leaf_count(child)).sum::<usize>();
        if child.is_primitive() {
            self.leaves.push(leaf);
            return self.leaf(child, None, path);
        }
        if chosen.is_none() {
            self.leaves.extend(leaf..leaf + leaf_count(child));
            return Ok(Arc::clone(child));
        }
        let inner = self.witness_of_children(child, leaf, path)?;
        group(child, child.name(), vec![inner]).map_err(|error| self.unsupported(path, error.to_string()))
    }

    /// A primitive column as it is read.
    fn leaf(&self, node: &TypePtr, wanted: Option<&DataType>, path: &str) -> Result<TypePtr, ColumnarError> {
        let info = node.get_basic_info();
        let read_as = |physical, length| {
            Type::primitive_type_builder(node.name(), physical)
                .with_repetition(repetition(node))
                .with_length(length)
                .build()
                .map(Arc::new)
                .map_err(|error| self.unsupported(path, error.to_string()))
        };
        if let Type::PrimitiveType { physical_type: PhysicalType::FIXED_LEN_BYTE_ARRAY, type_length, .. } = &**node
            && *type_length > MAX_FIXED_LENGTH
        {
            return Err(self.unsupported(path, format!("values of {type_length} bytes are not supported")));
        }
        match (node.get_physical_type(), info.converted_type()) {
            // The Parquet crate's own conversion wraps around far from 1970; the bytes are converted here.
            (PhysicalType::INT96, _) => read_as(PhysicalType::FIXED_LEN_BYTE_ARRAY, 12),
            // Narrow integers would be cut to the width of their annotation; the stored value is what counts.
            (
                physical,
                ConvertedType::INT_8
                | ConvertedType::INT_16
                | ConvertedType::INT_32
                | ConvertedType::INT_64
                | ConvertedType::UINT_8
                | ConvertedType::UINT_16,
            ) if matches!(wanted, Some(DataType::Int32 | DataType::Int64)) => read_as(physical, -1),
            _ => Ok(Arc::clone(node)),
        }
    }

    fn incompatible(&self, path: &str, from: String, field: &Field) -> ColumnarError {
        ColumnarError::Incompatible {
            file: self.file.to_owned(),
            column: path.to_owned(),
            from,
            to: field.data_type().to_string(),
        }
    }

    fn unsupported(&self, path: &str, detail: String) -> ColumnarError {
        ColumnarError::Unsupported { file: self.file.to_owned(), column: Some(path.to_owned()), detail }
    }
}

fn repetition(node: &Type) -> Repetition {
    let info = node.get_basic_info();
    if info.has_repetition() { info.repetition() } else { Repetition::REQUIRED }
}

fn is_list(node: &Type) -> bool {
    let info = node.get_basic_info();
    node.is_group()
        && (info.logical_type_ref() == Some(&LogicalType::List) || info.converted_type() == ConvertedType::LIST)
}

fn is_map(node: &Type) -> bool {
    let info = node.get_basic_info();
    node.is_group()
        && (info.logical_type_ref() == Some(&LogicalType::Map)
            || matches!(info.converted_type(), ConvertedType::MAP | ConvertedType::MAP_KEY_VALUE))
}

fn is_struct(node: &Type) -> bool {
    node.is_group() && !is_list(node) && !is_map(node)
}

/// `node` with other children.
fn group(node: &Type, name: &str, fields: Vec<TypePtr>) -> parquet::errors::Result<TypePtr> {
    let info = node.get_basic_info();
    let converted = match (is_list(node), is_map(node)) {
        (true, _) => ConvertedType::LIST,
        (_, true) => ConvertedType::MAP,
        _ => ConvertedType::NONE,
    };
    let logical = info.logical_type_ref().filter(|_| converted != ConvertedType::NONE).cloned();
    let built = Type::group_type_builder(name)
        .with_repetition(repetition(node))
        .with_converted_type(converted)
        .with_logical_type(logical)
        .with_fields(fields)
        .build()?;
    Ok(Arc::new(built))
}
