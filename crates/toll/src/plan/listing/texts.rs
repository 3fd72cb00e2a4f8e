//! What of many like texts is shown: of the pods of one service the first one's, of a row of like items the first two.

use toll_lab::Rendered;

use crate::plan::Plan;

/// Like items in a row before they are folded.
const FEW: usize = 5;
/// Items that are still shown of them.
const SHOWN: usize = 2;
/// Most lines of an item.
const ITEM_LINES: usize = 20;

/// The services of a deployment that have several pods.
pub struct Pods {
    services: Vec<(String, usize)>,
}

impl Pods {
    /// Of a variant's largest deployment.
    pub fn of(plan: &Plan, variant: &str) -> Self {
        let services = plan.largest(variant).map_or_else(Vec::new, |largest| largest.services);
        let several = services.into_iter().filter(|service| service.replicas > 1);
        Self { services: several.map(|service| (service.name, service.replicas)).collect() }
    }

    /// Whether a file is of a pod that is not the first of its service.
    pub fn is_further(&self, file: &Rendered) -> bool {
        self.pod_of(file).is_some_and(|(_, number, _)| number > 1)
    }

    /// ` (nginx-2 to nginx-90 have the same with addresses of their own)` for a file of a first pod.
    pub fn others_like(&self, file: &Rendered, files: &[Rendered]) -> String {
        let Some((service, 1, rest)) = self.pod_of(file) else { return String::new() };
        let numbers = files.iter().filter_map(|other| match self.pod_of(other)? {
            (other, number, other_rest) if other == service && other_rest == rest => Some(number),
            _ => None,
        });
        match numbers.max() {
            Some(last) if last > 1 => format!(
                " ({service}-2 to {service}-{last} have the same, with addresses of their own)"
            ),
            _ => String::new(),
        }
    }

    /// Service, number and the rest of the name of `nginx-17.envoy.yaml`.
    fn pod_of<'f>(&'f self, file: &'f Rendered) -> Option<(&'f str, usize, &'f str)> {
        self.services.iter().find_map(|(service, replicas)| {
            let rest = file.name.strip_prefix(service.as_str())?.strip_prefix('-')?;
            let (number, rest) = rest.split_once('.')?;
            let number: usize = number.parse().ok()?;
            (1..=*replicas).contains(&number).then_some((service.as_str(), number, rest))
        })
    }
}

/// The text, with rows of items that differ in digits alone cut short.
pub fn folded(text: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    let shapes: Vec<String> = lines.iter().map(|line| shape(line)).collect();
    let mut shown = String::new();
    let mut at = 0;
    while at < lines.len() {
        let (length, items) = row(&shapes[at..]);
        let kept = if items > FEW { SHOWN } else { items };
        lines[at..at + length * kept].iter().for_each(|line| push(&mut shown, line));
        if kept < items {
            let indent: String = lines[at].chars().take_while(|c| c.is_whitespace()).collect();
            push(&mut shown, &format!("{indent}... {} more like these", items - kept));
        }
        at += length * items;
    }
    shown
}

fn push(text: &mut String, line: &str) {
    text.push_str(line);
    text.push('\n');
}

/// The line with every run of digits as one mark.
fn shape(line: &str) -> String {
    let mut shape = String::with_capacity(line.len());
    for c in line.chars() {
        match c {
            '0'..='9' if shape.ends_with('#') => {}
            '0'..='9' => shape.push('#'),
            other => shape.push(other),
        }
    }
    shape
}

/// The lines of the item that the text begins with, and how often items like it follow each other; a single line
/// once where nothing does.
fn row(shapes: &[String]) -> (usize, usize) {
    let lengths = 1..=ITEM_LINES.min(shapes.len());
    let rows = lengths.map(|length| {
        let item = &shapes[..length];
        (length, shapes.chunks(length).take_while(|other| *other == item).count())
    });
    rows.into_iter().find(|(_, items)| *items > FEW).unwrap_or((1, 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_of_like_items_is_cut_short() {
        let item = |n: usize| format!("  - address: 10.77.0.{n}\n    port: 80\n");
        let items: String = (1..=90).map(item).collect();
        let text = format!("endpoints:\n{items}tls: true\n");
        let expected =
            format!("endpoints:\n{}{}  ... 88 more like these\ntls: true\n", item(1), item(2));
        assert_eq!(folded(&text), expected);
    }

    #[test]
    fn a_few_like_items_and_a_text_without_any_stay_as_they_are() {
        let few: String = (1..=FEW).map(|n| format!("- {n}\n")).collect();
        assert_eq!(folded(&few), few);
        let text = "admin: {}\n\nnode:\n  id: a-1\n";
        assert_eq!(folded(text), text);
    }
}
