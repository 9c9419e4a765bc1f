//! What a module exports: by their names and types its form is known.

use sieva_types::{Error, ErrorKind, Result};
use wasmtime::{ExternType, Module, ValType};

/// What the host calls of a module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    Map,
    Filter,
    Proc,
    Reduce { merges: bool },
}

/// A function of the interface: its name, how many i32 it takes, and whether it gives one.
const FUNCTIONS: [(&str, usize, bool); 9] = [
    ("sieva_alloc", 1, true),
    ("sieva_map", 2, true),
    ("sieva_filter", 2, true),
    ("sieva_proc", 3, true),
    ("sieva_init", 0, false),
    ("sieva_step", 2, false),
    ("sieva_finish", 0, true),
    ("sieva_save", 0, true),
    ("sieva_merge", 2, false),
];

fn wrong(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::TypeMismatch, message)
        .hint("docs/reference/user-code.md has the interface of modules")
}

/// The form of a module, of which all exports of the interface have their types.
pub(crate) fn form(module: &Module) -> Result<Form> {
    match module.get_export("memory") {
        Some(ExternType::Memory(memory)) if !memory.is_64() && !memory.is_shared() => {}
        Some(_) => return Err(wrong("'memory' is exported, and is no memory of 32 bits")),
        None => return Err(wrong("the module does not export its memory as 'memory'")),
    }
    for (name, params, result) in FUNCTIONS {
        let Some(export) = module.get_export(name) else { continue };
        let fits = |of: &wasmtime::FuncType| {
            let i32s = |mut of: Box<dyn Iterator<Item = ValType> + '_>| of.all(|t| matches!(t, ValType::I32));
            of.params().len() == params
                && of.results().len() == usize::from(result)
                && i32s(Box::new(of.params()))
                && i32s(Box::new(of.results()))
        };
        if !matches!(export, ExternType::Func(ref of) if fits(of)) {
            let result = if result { " -> i32" } else { "" };
            return Err(wrong(format!(
                "'{name}' is exported, and is no function ({}){result}",
                list(params)
            )));
        }
    }
    let has = |name: &str| module.get_export(name).is_some();
    let needed = |name: &str| match has(name) {
        true => Ok(()),
        false => Err(wrong(format!("the module does not export '{name}'"))),
    };
    needed("sieva_alloc")?;
    let entries = ["sieva_map", "sieva_filter", "sieva_proc", "sieva_step"];
    let found: Vec<&str> = entries.into_iter().filter(|name| has(name)).collect();
    match found[..] {
        ["sieva_map"] => Ok(Form::Map),
        ["sieva_filter"] => Ok(Form::Filter),
        ["sieva_proc"] => Ok(Form::Proc),
        ["sieva_step"] => {
            needed("sieva_init")?;
            needed("sieva_finish")?;
            if has("sieva_merge") {
                needed("sieva_save")?;
            }
            Ok(Form::Reduce { merges: has("sieva_merge") })
        }
        [] => Err(wrong(format!("the module exports none of {}", entries.join(", ")))),
        _ => Err(wrong(format!("the module exports {}: one of them is expected", found.join(", ")))),
    }
}

fn list(params: usize) -> String {
    vec!["i32"; params].join(", ")
}
