//! Numbers that JavaScript and the core share are written once, in the layout.rs of each crate.
//!
//! [`numbers!`] defines them in Rust and lists them; [`typescript`] prints a list and [`write()`] keeps the
//! file, both for crates/node/build.rs. The printed files are in git: a checkout is checked and read without
//! cargo. They are formatted as oxfmt formats them, and their constants are literals, which V8 inlines.

use std::{fs, path::Path};

/// One constant, or a group of them.
pub struct Item {
    /// The lines of its comment.
    pub doc: &'static [&'static str],
    /// As in Rust.
    pub name: &'static str,
    /// Its numbers.
    pub value: Value,
}

/// The numbers of an item, as they are written in Rust.
pub enum Value {
    /// `pub const NAME`: `NAME`.
    One(&'static str),
    /// `pub mod name` of constants, or `pub enum Name`: `Name` with a property for each.
    Group(&'static [(&'static str, &'static str)]),
}

/// The longest line that oxfmt leaves whole.
const COLUMNS: usize = 110;

/// Define constants, modules of constants and enums with numbers, and `ITEMS`, the list of them.
#[macro_export]
macro_rules! numbers {
    (@ [$($done:tt)*]) => {
        /// All of this file, for crates/node/build.rs.
        pub const ITEMS: &[$crate::Item] = &[$($done)*];
    };
    (@ [$($done:tt)*]
        $(#[doc = $doc:literal])*
        pub const $name:ident: $type:ty = $value:expr;
        $($rest:tt)*
    ) => {
        $(#[doc = $doc])*
        pub const $name: $type = $value;
        $crate::numbers!(@ [$($done)* $crate::Item {
            doc: &[$($doc),*],
            name: stringify!($name),
            value: $crate::Value::One(stringify!($value)),
        },] $($rest)*);
    };
    (@ [$($done:tt)*]
        $(#[doc = $doc:literal])*
        pub mod $name:ident {
            $($(#[doc = $about:literal])* pub const $part:ident: $type:ty = $value:expr;)*
        }
        $($rest:tt)*
    ) => {
        $(#[doc = $doc])*
        pub mod $name {
            $($(#[doc = $about])* pub const $part: $type = $value;)*
        }
        $crate::numbers!(@ [$($done)* $crate::Item {
            doc: &[$($doc),*],
            name: stringify!($name),
            value: $crate::Value::Group(&[$((stringify!($part), stringify!($value))),*]),
        },] $($rest)*);
    };
    (@ [$($done:tt)*]
        $(#[doc = $doc:literal])*
        #[derive($($derive:ident),*)]
        #[repr($repr:ident)]
        pub enum $name:ident {
            $($(#[doc = $about:literal])* $part:ident = $value:literal,)*
        }
        $($rest:tt)*
    ) => {
        $(#[doc = $doc])*
        #[derive($($derive),*)]
        #[repr($repr)]
        pub enum $name {
            $($(#[doc = $about])* $part = $value,)*
        }
        $crate::numbers!(@ [$($done)* $crate::Item {
            doc: &[$($doc),*],
            name: stringify!($name),
            value: $crate::Value::Group(&[$((stringify!($part), stringify!($value))),*]),
        },] $($rest)*);
    };
    ($($items:tt)*) => {
        $crate::numbers!(@ [] $($items)*);
    };
}

/// Write `text`, printed from `source`, to `target`, if it differs. It receives the date of its source: cargo
/// compares dates, and would take a file that is newer than its build for one that was changed by hand.
///
/// # Panics
///
/// If a file cannot be read or written.
pub fn write(source: &str, target: &str, text: &str) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let path = root.join(target);
    if fs::read_to_string(&path).is_ok_and(|found| found == text) {
        return;
    }
    let date = fs::metadata(root.join(source)).and_then(|source| source.modified());
    fs::write(&path, text)
        .and_then(|()| fs::File::options().write(true).open(&path)?.set_modified(date?))
        .unwrap_or_else(|error| panic!("{target} differs from {source} and cannot be written: {error}"));
}

/// The constants as TypeScript.
pub fn typescript(source: &str, items: &[Item]) -> String {
    let mut text = format!(
        "/**\n * The numbers that both sides of the border have, printed from {source} when the core\n \
         * is compiled: change that file. It explains each of them.\n */\n"
    );
    for item in items {
        let (name, parts, brackets): (_, Vec<_>, _) = match item.value {
            Value::Group(parts) => {
                let named = |(name, value): &(&str, &str)| format!("{}: {value}", camel(name, false));
                (camel(item.name, true), parts.iter().map(named).collect(), ("{ ", " }"))
            }
            Value::One(value) => match value.strip_prefix('[').and_then(|value| value.strip_suffix(']')) {
                Some(texts) => {
                    let texts = texts.split(',').map(|text| text.trim().replace('"', "'"));
                    (item.name.to_owned(), texts.filter(|text| !text.is_empty()).collect(), ("[", "]"))
                }
                None => (item.name.to_owned(), vec![value.to_owned()], ("", "")),
            },
        };
        text += &comment(item.doc);
        text += &constant(&name, &parts, brackets);
    }
    text
}

/// On one line if it fits, as oxfmt prints it.
fn constant(name: &str, parts: &[String], (open, close): (&str, &str)) -> String {
    let suffix = if open.is_empty() { "" } else { " as const" };
    let line = format!("export const {name} = {open}{}{close}{suffix}\n", parts.join(", "));
    if line.len() <= COLUMNS + 1 {
        return line;
    }
    let lines: String = parts.iter().map(|part| format!("  {part},\n")).collect();
    format!("export const {name} = {}\n{lines}{}{suffix}\n", open.trim(), close.trim())
}

/// Links of rustdoc become code.
fn comment(lines: &[&str]) -> String {
    let plain = |line: &&str| line.replace("[`", "`").replace("`]", "`");
    match lines {
        [] => String::new(),
        [line] if line.len() <= COLUMNS - "/** */".len() => format!("\n/**{} */\n", plain(line)),
        lines => {
            let lines: String = lines.iter().map(|line| format!(" *{}\n", plain(line))).collect();
            format!("\n/**\n{lines} */\n")
        }
    }
}

/// `LENGTH_HIGH`, `length_high` and `LengthHigh` as `lengthHigh`, or `LengthHigh`.
pub fn camel(name: &str, mut is_upper: bool) -> String {
    let is_pascal = name.contains(|c: char| c.is_lowercase()) && name.starts_with(|c: char| c.is_uppercase());
    let mut text = String::new();
    for (index, letter) in name.chars().enumerate() {
        match letter {
            '_' => is_upper = true,
            _ if is_upper => text.extend(letter.to_uppercase()),
            _ if is_pascal && index > 0 => text.push(letter),
            _ => text.extend(letter.to_lowercase()),
        }
        is_upper &= letter == '_';
    }
    text
}

#[cfg(test)]
mod tests {
    #[allow(dead_code)]
    mod planted {
        crate::numbers! {
            /// Bytes of it.
            pub const HEADER_BYTES: usize = 4 * 1024;
            pub const NONE: u32 = 0xffff_ffff;
            pub const TYPES: [&str; 2] = [
                "",
                "text/plain",
            ];
            /// Words
            /// of a [`Step`].
            pub mod record_words {
                /// Its length.
                pub const LENGTH: usize = 0;
                pub const LENGTH_HIGH: i32 = -1;
            }
            /// A long one.
            #[derive(Clone, Copy, Debug)]
            #[repr(u32)]
            pub enum Step {
                Nothing = 0,
                /// A turn.
                HadTurn = 6,
                ThisNameIsLongAndTogetherWithTheOthersItNeedsMoreThanOneLine = 7,
            }
        }
    }

    #[test]
    fn constants_modules_and_enums_are_defined_and_printed_as_oxfmt_does() {
        let values =
            (planted::HEADER_BYTES, planted::record_words::LENGTH_HIGH, planted::Step::HadTurn as u32);
        assert_eq!(values, (4096, -1, 6));
        let text = super::typescript("planted.rs", planted::ITEMS);
        let (head, body) = text.split_once(" */\n").expect("a comment opens the file");
        assert!(head.contains("printed from planted.rs"));
        assert_eq!(
            body,
            "
/** Bytes of it. */
export const HEADER_BYTES = 4 * 1024
export const NONE = 0xffff_ffff
export const TYPES = ['', 'text/plain'] as const

/**
 * Words
 * of a `Step`.
 */
export const RecordWords = { length: 0, lengthHigh: -1 } as const

/** A long one. */
export const Step = {
  nothing: 0,
  hadTurn: 6,
  thisNameIsLongAndTogetherWithTheOthersItNeedsMoreThanOneLine: 7,
} as const
"
        );
    }
}
