use proptest::prelude::*;

use super::*;

fn selected(text: &str, wanted: &[&str]) -> Result<Vec<(String, f64)>, NotASample> {
    let wanted: Vec<String> = wanted.iter().map(|name| (*name).to_owned()).collect();
    Ok(select(text, &wanted)?.into_iter().collect())
}

/// What a line with one sample of `a` gives.
fn one(line: &str) -> Option<(String, f64)> {
    selected(line, &["a"]).ok()?.pop()
}

#[test]
fn a_name_selects_all_its_label_sets_and_no_other_name() {
    let text = "\
# HELP jvm_gc_collection_seconds Time spent in a given collector \\n in seconds.
# TYPE jvm_gc_collection_seconds summary
jvm_gc_collection_seconds_count{gc=\"Copy\"} 7
jvm_gc_collection_seconds_sum{gc=\"Copy\"} 0.025
jvm_gc_collection_seconds_sum{gc=\"MarkSweepCompact\"} 0.107

# TYPE jvm_threads_current gauge
jvm_threads_current 18.0
";
    let sums = [
        ("jvm_gc_collection_seconds_sum{gc=\"Copy\"}".to_owned(), 0.025),
        ("jvm_gc_collection_seconds_sum{gc=\"MarkSweepCompact\"}".to_owned(), 0.107),
    ];
    assert_eq!(selected(text, &["jvm_gc_collection_seconds_sum"]).unwrap(), sums);
    let count = selected(text, &["jvm_threads_current", "jvm_gc_collection_seconds"]).unwrap();
    assert_eq!(count, [("jvm_threads_current".to_owned(), 18.0)]);
}

#[test]
fn buckets_of_a_histogram_are_series_of_their_own_name() {
    let text = "t_bucket{le=\"0.5\"} 3\nt_bucket{le=\"+Inf\"} 4 # {trace_id=\"KO t_sum 9\"} 0.67 1.5\n\
                t_sum 1.25\nt_count 4\n# EOF\n";
    let buckets = [("t_bucket{le=\"+Inf\"}".to_owned(), 4.0), ("t_bucket{le=\"0.5\"}".into(), 3.0)];
    assert_eq!(selected(text, &["t_bucket"]).unwrap(), buckets);
}

#[test]
fn escapes_in_label_values_stay_and_end_no_value() {
    let line = r#"a{path="C:\\DIR\\",say="\"}{ 7, \n"} 1"#;
    assert_eq!(one(line).unwrap().0, r#"a{path="C:\\DIR\\",say="\"}{ 7, \n"}"#);
}

#[test]
fn blanks_around_labels_and_a_last_comma_are_not_part_of_the_key() {
    for line in
        ["a{b=\"c\",d=\"e\"} 2", " \ta { b = \"c\" ,\td=\"e\" , }\t2 ", "a{b=\"c\",d=\"e\"}2"]
    {
        assert_eq!(one(line), Some(("a{b=\"c\",d=\"e\"}".into(), 2.0)), "{line}");
    }
    assert_eq!(one("a{} 2"), Some(("a".into(), 2.0)));
}

#[test]
fn times_and_exemplars_are_skipped() {
    for line in [
        "a 1027 1395066363000",
        "a 1027 -3982045.5",
        "a 1027 # {trace_id=\"x\"} 0.67",
        "a 1.027e3 1.5 # {} 1",
    ] {
        assert_eq!(one(line), Some(("a".into(), 1027.0)), "{line}");
    }
}

#[test]
fn values_that_are_no_finite_numbers_are_left_out() {
    let text = "a{b=\"1\"} NaN\na{b=\"2\"} +Inf\na{b=\"3\"} -Inf\na{b=\"4\"} -4\n";
    assert_eq!(selected(text, &["a"]).unwrap(), [("a{b=\"4\"}".to_owned(), -4.0)]);
}

#[test]
fn a_broken_line_of_a_wanted_series_is_named_and_others_are_not_looked_at() {
    for broken in [
        "a",
        "a ",
        "a one",
        "a{b=\"c\" 1",
        "a{b=c} 1",
        "a{b} 1",
        "a{,} 1",
        "a{b=\"c\"d=\"e\"} 1",
        "a 1 soon",
        "a 1 2 3",
        "a{b=\"\\\"} 1",
        "a=1",
    ] {
        let text = format!("other {{{{ \n{broken}\n");
        assert_eq!(selected(&text, &["a"]), Err(NotASample { line: 2 }), "{broken}");
    }
}

#[test]
fn a_page_for_people_has_no_series() {
    let page = "<html>\n<body>a</body>\n404 page not found\n</html>\n";
    assert_eq!(selected(page, &["a", "page"]), Ok(vec![]));
}

/// A label's value as an endpoint writes it.
fn escaped(value: &str) -> String {
    value.replace('\\', r"\\").replace('"', r#"\""#).replace('\n', r"\n")
}

proptest! {
    #[test]
    fn whatever_comes_is_read_or_refused(text in ".*", tail in "[ \t{}=\",\\\\#a-c0-9.]*") {
        let _ = selected(&text, &["a"]);
        let _ = selected(&format!("a{tail}"), &["a"]);
    }

    #[test]
    fn a_sample_is_found_whatever_its_labels_and_neighbours(
        labels in prop::collection::vec(("[a-zA-Z_][a-zA-Z0-9_]{0,8}", "[^\r]*"), 0..4),
        value in -1e300..1e300f64,
        time in prop::option::of(any::<i32>()),
        exemplar in any::<bool>(),
        blank in "[ \t]{1,3}",
    ) {
        let labels: Vec<_> = labels.iter().map(|(l, v)| format!("{l}=\"{}\"", escaped(v))).collect();
        let key = match labels.as_slice() {
            [] => "wanted:it".to_owned(),
            some => format!("wanted:it{{{}}}", some.join(",")),
        };
        let time = time.map(|time| format!("{blank}{time}")).unwrap_or_default();
        let exemplar = if exemplar { " # {id=\"wanted:it 5\"} 1" } else { "" };
        let text = format!("wanted 1\n# wanted:it 2\n{key}{blank}{value}{time}{exemplar}\nwanted:it_sum 3\n");
        prop_assert_eq!(selected(&text, &["wanted:it"]).unwrap(), [(key, value)]);
    }
}
