//! Writes settings as a Java properties file, in the escapes that `java.util.Properties.load` reads:
//! <https://docs.oracle.com/en/java/javase/17/docs/api/java.base/java/util/Properties.html>.

use std::collections::BTreeMap;

/// What ends a name, or makes a comment of its line.
const IN_NAMES: &[char] = &['\\', '=', ':', ' ', '#', '!'];

/// The file's text. ASCII only: readers do not agree on its encoding.
pub(super) fn text(settings: &BTreeMap<String, String>) -> String {
    let line = |(name, value): (&String, &String)| {
        // Blanks before a value are skipped.
        let blank = if value.starts_with(' ') { "\\" } else { "" };
        format!("{}={blank}{}\n", escaped(name, IN_NAMES), escaped(value, &['\\']))
    };
    settings.iter().map(line).collect()
}

fn escaped(text: &str, special: &[char]) -> String {
    let escape = |c: char| match c {
        _ if special.contains(&c) => format!("\\{c}"),
        ' '..='~' => c.to_string(),
        _ => c.encode_utf16(&mut [0; 2]).iter().map(|unit| format!("\\u{unit:04x}")).collect(),
    };
    text.chars().map(escape).collect()
}
