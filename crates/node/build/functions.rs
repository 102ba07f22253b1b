//! The exported functions as TypeScript: the lists of `exports!` and `hot_exports!`, with the types that the
//! functions have in Rust.
//!
//! The crate is read as text, since nothing but Node can link it. A type that no line here names is an error.

use std::{
    collections::{HashMap, HashSet},
    fs,
};

use quote::ToTokens;
use syn::{
    Expr, FieldValue, FnArg, GenericArgument, Item, Macro, Member, PathArguments, ReturnType, Signature,
    Token, Type, punctuated::Punctuated,
};

/// The longest line that oxfmt leaves whole.
const COLUMNS: usize = 110;

const HEAD: &str = "/**
 * The functions of the native core, printed from crates/node/src when it is compiled: `zoneMake` here is
 * `zone_make` there, where each is documented. Those of `calls.rs` without parameters run for every task:
 * their arguments and results are words of the two scratch buffers passed to `open` (layout.ts).
 */

/** Refusals are the negative numbers in layout.ts. */
export interface Binding {
";

/// What JavaScript passes for a parameter of that type; `None`: it passes nothing.
fn passed(kind: &str) -> Option<&'static str> {
    Some(match kind {
        "Env" | "Cell" | "&mutBridge" | "&mutThreadState" => return None,
        "u32" | "u64" | "f64" | "Pointer" => "number",
        "bool" => "boolean",
        "Text" | "Box<[u16]>" | "String" => "string",
        "&[u8]" | "&mut[u8]" | "Vec<u32>" | "Vec<f64>" | "Scratch" | "Kept" => "Uint8Array",
        "ArrayBuffer" => "ArrayBuffer",
        "SharedBuffer" => "SharedArrayBuffer",
        "Callee" => "() => void",
        "AnyFunction" => "Function",
        _ => panic!("a parameter of type {kind} has no type in TypeScript"),
    })
}

/// What JavaScript receives for a result of that type.
fn received(kind: &Type) -> String {
    if let Type::Path(path) = kind
        && let Some(last) = path.path.segments.last()
        && let PathArguments::AngleBracketed(arguments) = &last.arguments
        && let Some(GenericArgument::Type(inner)) = arguments.args.first()
    {
        match last.ident.to_string().as_str() {
            "Outcome" | "Result" => return received(inner),
            "Option" if text(inner) != "Value" => return format!("{} | undefined", received(inner)),
            _ => {}
        }
    }
    match text(kind).as_str() {
        "()" => "void",
        "u32" | "i32" | "f64" | "bool" => "number",
        "Text" | "String" | "&'staticstr" | "Arc<[u16]>" => "string",
        "Vec<Text>" => "string[]",
        "Vec<u8>" | "Vec<u32>" | "Vec<f64>" | "Box<[u8]>" | "Arc<[u8]>" | "Bytes" => "Uint8Array",
        "NewBuffer" => "ArrayBuffer",
        "AnyBuffer" => "ArrayBuffer | SharedArrayBuffer",
        "NumberOrBytes" => "number | Uint8Array",
        "Option<Value>" => "unknown",
        other => panic!("a result of type {other} has no type in TypeScript"),
    }
    .to_owned()
}

/// Without spaces.
fn text(tokens: &impl ToTokens) -> String {
    tokens.to_token_stream().to_string().replace(' ', "")
}

/// The interface of all functions that the files of `folder` export.
///
/// # Panics
///
/// If one cannot be read, or uses a type that is not known here.
pub fn typescript(folder: &str) -> String {
    let files = fs::read_dir(folder).expect("the folder of the crate");
    let mut files: Vec<_> = files.map(|file| file.expect("a file of the crate").path()).collect();
    files.retain(|path| path.is_file());
    files.sort();
    let (mut printed, mut names) = (HEAD.to_owned(), HashSet::new());
    for path in files {
        let file = syn::parse_file(&fs::read_to_string(&path).expect("a file of Rust")).expect("Rust");
        let lines: String = exported(&file.items)
            .into_iter()
            .filter(|(name, _)| names.insert(name.clone()))
            .map(|(name, function)| method(&name, function))
            .collect();
        if !lines.is_empty() {
            let name = path.file_name().expect("a file has a name").display();
            printed += &format!("  // {name}\n{lines}");
        }
    }
    printed + "}\n"
}

/// Names and signatures of what the items of a file export; `None` for a hot function.
fn exported(items: &[Item]) -> Vec<(String, Option<&Signature>)> {
    let functions = items.iter().filter_map(|item| match item {
        Item::Fn(function) => Some((function.sig.ident.to_string(), &function.sig)),
        _ => None,
    });
    let functions: HashMap<_, _> = functions.collect();
    let lists = items.iter().filter_map(|item| match item {
        Item::Const(list) => match &*list.expr {
            Expr::Macro(list) => Some(&list.mac),
            _ => None,
        },
        _ => None,
    });
    let entries = lists.flat_map(entries);
    entries.map(|(name, is_hot)| (name.clone(), (!is_hot).then(|| functions[&name]))).collect()
}

/// The names in a list, and whether each is a method that reads its arguments from the scratch buffers.
fn entries(list: &Macro) -> Vec<(String, bool)> {
    let is_hot = list.path.is_ident("hot_exports");
    if !is_hot && !list.path.is_ident("exports") {
        return Vec::new();
    }
    let entries = list.parse_body_with(|input: syn::parse::ParseStream<'_>| {
        if is_hot {
            input.parse::<Expr>()?;
            input.parse::<Token![;]>()?;
        }
        Punctuated::<FieldValue, Token![,]>::parse_terminated(input)
    });
    let name = |entry: FieldValue| match entry.member {
        Member::Named(name) => (name.to_string(), is_hot),
        Member::Unnamed(_) => panic!("a function without a name"),
    };
    entries.expect("a list of functions").into_iter().map(name).collect()
}

/// On one line if it fits, as oxfmt prints it.
fn method(name: &str, signature: Option<&Signature>) -> String {
    let (parameters, result) = signature.map_or_else(|| (Vec::new(), "void".to_owned()), converted);
    let name = corespun_layout::camel(name, false);
    let line = format!("  {name}({}): {result}\n", parameters.join(", "));
    if line.len() <= COLUMNS + 1 {
        return line;
    }
    let lines: String = parameters.iter().map(|parameter| format!("    {parameter},\n")).collect();
    format!("  {name}(\n{lines}  ): {result}\n")
}

fn converted(signature: &Signature) -> (Vec<String>, String) {
    let parameter = |input: &FnArg| match input {
        FnArg::Typed(input) => {
            let name = corespun_layout::camel(&text(&input.pat), false);
            passed(&text(&input.ty)).map(|kind| format!("{name}: {kind}"))
        }
        FnArg::Receiver(_) => None,
    };
    let result = match &signature.output {
        ReturnType::Default => "void".to_owned(),
        ReturnType::Type(_, kind) => received(kind),
    };
    (signature.inputs.iter().filter_map(parameter).collect(), result)
}
