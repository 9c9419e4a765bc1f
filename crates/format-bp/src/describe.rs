//! What is in a BP file: variables as arrays, groups, attributes.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::path::Path;

use sieva_format::decoding::Decoding;
use sieva_format::foreign::{ForeignArray, ForeignSource, ForeignStore, Places, groups_of};
use sieva_format::schema::{ArrayInfo, GroupInfo, Schema, StorageInfo};
use sieva_store::guard::Gate;
use sieva_types::{DType, Error, ErrorKind, Result};

use crate::attributes::attributes;
use crate::blocks::block_shape;
use crate::file::File;
use crate::library::Api;
use crate::place::own_files;
use crate::reader::BpReader;
use crate::variable::Variable;

/// The name of the dimension that steps make.
const STEP: &str = "step";

/// Opens the BP file or directory at `path`, with the names for dimensions that a user gave.
///
/// The gate is asked for all files first; the library then opens them by their names.
///
/// # Errors
/// `unsupported` where the library of ADIOS2 is not found; `corrupt-file` where it cannot read the file; `link-refused`
/// and `unknown-format` of a directory with links out of it, or pipes.
pub fn open(path: &Path, dims: &[(String, Vec<String>)], gate: &Gate) -> Result<ForeignSource> {
    // Before the library opens it: files that change meanwhile are noticed.
    let store = store(path, gate)?;
    let file = File::open(path)?;
    let api = file.lock()?;
    let described = describe(&file, &api);
    drop(api);
    let Described { schema, arrays, variables } = described?;
    let reader = BpReader { file, variables };
    let mut source = ForeignSource::new(schema, &arrays, "read by libadios2", store, Box::new(reader))
        .map_err(|e| {
            let e = if e.kind() == ErrorKind::InvalidValue { Error::corrupt(e.message()) } else { e };
            e.at(format!("'{}'", path.display()))
        })?;
    source.name_dims(dims)?;
    Ok(source)
}

/// The bytes of the BP file or directory at `path`, which tell its states apart.
///
/// # Errors
/// Those of [`own_files`].
pub fn store(path: &Path, gate: &Gate) -> Result<ForeignStore> {
    ForeignStore::new(path.display().to_string(), &own_files(path, gate)?, "")
}

struct Described {
    schema: Schema,
    arrays: Vec<ForeignArray>,
    variables: HashMap<String, Variable>,
}

fn describe(file: &File, api: &Api) -> Result<Described> {
    let steps = file.steps(api)?;
    // The structures of blocks are those of versions that have this function.
    let tells_blocks = api.get_string.is_some() && file.reader(api)?.starts_with("BP5");
    let mut schema = Schema { format: "ADIOS2 BP".into(), ..Schema::default() };
    let found = variables(file, api, &mut schema)?;
    let groups: BTreeSet<&str> =
        std::iter::once("").chain(found.iter().flat_map(|(path, _)| groups_of(path))).collect();
    let owners: BTreeSet<&str> =
        groups.iter().copied().chain(found.iter().map(|(path, _)| path.as_str())).collect();
    let mut attrs = attributes(file, api, &owners, &mut schema.warnings);
    for group in groups {
        let attrs = attrs.remove(group).unwrap_or_default();
        schema.groups.push(GroupInfo { path: group.into(), attrs });
    }
    let (mut places, mut arrays) = (Places::default(), Vec::with_capacity(found.len()));
    for (path, variable) in &found {
        let block = (tells_blocks && variable.steps == steps).then(|| block_shape(file, api, variable));
        let dims = dims_of(path, variable, steps, &mut places);
        schema.arrays.push(ArrayInfo {
            path: path.clone(),
            dtype: variable.dtype,
            shape: dims.iter().map(|&d| places.len_of(d)).collect(),
            dims,
            attrs: attrs.remove(path).unwrap_or_default(),
            enum_names: Vec::new(),
            decoding: Decoding::none(variable.dtype),
            storage: StorageInfo { stored_type: variable.dtype.name().into(), ..StorageInfo::default() },
            coordinates: Vec::new(),
        });
        arrays.push(ForeignArray { block: block.flatten() });
    }
    schema.dims = places.into_dims();
    Ok(Described { schema, arrays, variables: found.into_iter().collect() })
}

/// The variables that are arrays, by path and in order; the others are left out of the schema, with the reason.
fn variables(file: &File, api: &Api, schema: &mut Schema) -> Result<Vec<(String, Variable)>> {
    let mut found: Vec<(String, Variable)> = Vec::new();
    let mut known = HashSet::new();
    for name in file.names(api.available_variables) {
        let Some(name) = name else {
            schema.warnings.push("a variable whose name is not UTF-8 is left out".into());
            continue;
        };
        let path = name.trim_matches('/').to_string();
        let why = if path.is_empty() || known.contains(&path) {
            format!("is the name of two variables, '{name}' is one")
        } else {
            match Variable::of(file, api, &name)? {
                Ok(variable) if variable.dtype == DType::Str && !variable.shape.is_empty() => {
                    "is an array of texts, which BP has for single values only".into()
                }
                Ok(variable) => {
                    known.insert(path.clone());
                    found.push((path, variable));
                    continue;
                }
                Err(why) => why,
            }
        };
        schema.warnings.push(format!("'{path}' {why}: it is left out"));
        let error = Error::new(ErrorKind::Unsupported, format!("'{path}' {why}"));
        schema.left_out.push((path, error));
    }
    Ok(found)
}

/// The dimensions of an array; those that are new are added. BP names none but steps; arrays that are not in every step have
/// steps of their own.
fn dims_of(path: &str, variable: &Variable, all_steps: usize, places: &mut Places) -> Vec<usize> {
    let mut own = Vec::with_capacity(variable.shape.len() + 1);
    if variable.has_steps() {
        let name = if variable.steps == all_steps { STEP.into() } else { format!("{path}.{STEP}") };
        own.push(places.steps(name, variable.steps as u64));
    }
    own.extend(places.by_length(path, &variable.shape));
    own
}
