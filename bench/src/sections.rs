//! Keeps tables in a Markdown file, each between two comments, so that a scenario that runs again replaces its
//! own and a file with text around them stays as it was.

/// Puts `table` between the marks of `name`. A file without these marks gets them at its end.
pub(crate) fn replaced(file: &str, name: &str, table: &str) -> String {
    let [begin, end] =
        [format!("<!-- toll-bench {name} -->\n"), format!("<!-- /toll-bench {name} -->\n")];
    let section = format!("{begin}{table}{end}");
    match bounds(file, &begin, &end) {
        Some((from, to)) => format!("{}{section}{}", &file[..from], &file[to..]),
        None if file.is_empty() => section,
        None => format!("{}\n\n{section}", file.trim_end()),
    }
}

fn bounds(file: &str, begin: &str, end: &str) -> Option<(usize, usize)> {
    let from = file.find(begin)?;
    let to = from + file[from..].find(end)? + end.len();
    Some((from, to))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_replaces_only_its_own_section() {
        let file = replaced(&replaced("# Results\n", "one", "1\n"), "two", "2\n");
        let again = replaced(&file, "one", "one\n");
        assert_eq!(
            again,
            "# Results\n\n<!-- toll-bench one -->\none\n<!-- /toll-bench one -->\n\n\
             <!-- toll-bench two -->\n2\n<!-- /toll-bench two -->\n"
        );
    }

    #[test]
    fn text_behind_a_section_stays() {
        let file = "a\n<!-- toll-bench x -->\nold\n<!-- /toll-bench x -->\nb\n";
        assert!(replaced(file, "x", "new\n").ends_with("new\n<!-- /toll-bench x -->\nb\n"));
    }
}
