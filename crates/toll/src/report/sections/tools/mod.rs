//! Turns the sums of other tools into tables, variants side by side: what each tool would print of the same slices.

mod hey;
mod k6;
mod vegeta;

use crate::analysis::findings::{Findings, LoadFindings, VariantLoad};

use super::Detail;
use crate::report::document::{Cell, Column, Group, Piece, Section, Table, heads, row};
use crate::report::values::in_first_order;
use crate::report::wording::load_title;

/// What another tool would print of a load; empty where it has nothing of it.
type Summary = fn(&LoadFindings) -> Vec<Piece>;

const TOOLS: [(&str, Summary); 3] =
    [("hey", hey::pieces), ("k6", k6::pieces), ("vegeta", vegeta::pieces)];

/// Each tool's summary of each load, behind its title.
pub(super) fn tools(findings: &Findings, detail: Detail) -> Option<Section> {
    let mut folds: Vec<Piece> = Vec::new();
    let mut names: Vec<&str> = Vec::new();
    // Of many cells the summaries would fill a comment.
    let is_shown = |load: &&LoadFindings| detail == Detail::All || load.cell.is_none();
    for load in findings.loads.iter().filter(is_shown) {
        for (tool, summary) in TOOLS {
            let pieces = summary(load);
            if !pieces.is_empty() {
                names.push(tool);
                let id = format!("{tool}-{}", folds.len() + 1);
                let title = format!("As {tool} sums it up: {}", load_title(load));
                folds.push(Piece::Fold(Section::new(id, title, pieces)));
            }
        }
    }
    let text = Piece::Text("All slices that count as one load.".into());
    let section = Section::new("tools", "As other tools sum it up", [vec![text], folds].concat());
    (!names.is_empty()).then(|| section.saying(in_first_order(names).join(", ")))
}

/// One tool's summary of each variant that has one.
struct SideBySide<'a, T> {
    all: Vec<(&'a str, &'a T)>,
}

impl<'a, T> SideBySide<'a, T> {
    /// None where no variant has one.
    fn of(load: &'a LoadFindings, pick: fn(&VariantLoad) -> Option<&T>) -> Option<Self> {
        let all = load.variants.iter().filter_map(|v| Some((v.variant.as_str(), pick(v)?)));
        let all: Vec<(&str, &T)> = all.collect();
        (!all.is_empty()).then_some(Self { all })
    }

    fn summaries(&self) -> impl Iterator<Item = &'a T> {
        self.all.iter().map(|(_, of)| *of)
    }

    /// A row with one cell a variant.
    fn row(&self, title: &str, cell: impl Fn(&T) -> String) -> Vec<Cell> {
        row(title, self.summaries().map(cell))
    }

    /// A column a variant.
    fn table(&self, mut groups: Vec<Group>) -> Table {
        groups.retain(|group| !group.rows.is_empty());
        Table { columns: heads("", self.all.iter().map(|(variant, _)| *variant)), groups }
    }

    /// A group a variant.
    fn groups(&self, columns: Vec<Column>, rows: impl Fn(&T) -> Vec<Vec<Cell>>) -> Table {
        let group = |(variant, of): &(&str, &T)| Group::new(*variant, rows(of));
        Table { columns, groups: self.all.iter().map(group).collect() }
    }

    /// The status codes that any variant got.
    fn codes(&self, of: fn(&T) -> &[(u16, u64)]) -> Vec<u16> {
        let mut codes: Vec<u16> = self.summaries().flat_map(of).map(|(code, _)| *code).collect();
        codes.sort_unstable();
        codes.dedup();
        codes
    }
}

/// How many have this key.
fn count<K: PartialEq<Q>, Q: ?Sized>(of: &[(K, u64)], key: &Q) -> Option<u64> {
    of.iter().find(|(known, _)| known == key).map(|(_, count)| *count)
}
