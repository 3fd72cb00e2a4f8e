//! Draws charts as inline SVG.

use maud::{Markup, html};

use super::palette::Palette;
use crate::report::drawing::{Chart, Ink, Mark, Shape, WIDTH, px};

/// The figure around a drawing, with what it shows in words.
pub(super) fn figure(chart: &Chart, palette: &Palette) -> Markup {
    let (title_id, desc_id) = (format!("{}-title", chart.id), format!("{}-desc", chart.id));
    html! {
        figure id=(chart.id) {
            figcaption { b { (chart.title) } span { (chart.note) } }
            svg viewBox=(format!("0 0 {WIDTH} {}", chart.height)) role="img"
                aria-labelledby=(format!("{title_id} {desc_id}")) {
                title id=(title_id) { (chart.title) }
                desc id=(desc_id) { (chart.describes.join(" ")) }
                @for mark in &chart.marks { (drawn(mark, palette)) }
            }
            @if !chart.legend.is_empty() {
                ul.legend {
                    @for (ink, name) in &chart.legend { li { i class=(class_of(ink, palette)) {} (name) } }
                }
            }
        }
    }
}

fn class_of(ink: &Ink, palette: &Palette) -> String {
    match ink {
        Ink::Variant(variant) => palette.variant(variant),
        Ink::Part(name, role) => palette.component(name, *role),
    }
}

fn drawn(mark: &Mark, palette: &Palette) -> Markup {
    let ink = mark.ink.as_ref().map(|ink| class_of(ink, palette));
    let classes = [mark.class, ink.as_deref().unwrap_or_default()].join(" ");
    let class = Some(classes.trim()).filter(|class| !class.is_empty());
    let title = html! { @if let Some(title) = &mark.title { title { (title) } } };
    match &mark.shape {
        Shape::Group(marks) => html! {
            g class=[class] { (title) @for mark in marks { (drawn(mark, palette)) } }
        },
        Shape::Line { x: [x1, x2], y: [y1, y2] } => html! {
            line class=[class] x1=(px(*x1)) x2=(px(*x2)) y1=(px(*y1)) y2=(px(*y2)) { (title) }
        },
        Shape::Path(d) => html! { path class=[class] d=(d) { (title) } },
        Shape::Circle { at: (x, y), radius } => html! {
            circle class=[class] cx=(px(*x)) cy=(px(*y)) r=(radius) { (title) }
        },
        Shape::Rect { at: (x, y), size: (width, height) } => html! {
            rect class=[class] x=(px(*x)) y=(px(*y)) width=(px(*width)) height=(px(*height)) { (title) }
        },
        Shape::Text { at: (x, y), anchor, text } => html! {
            text class=[class] x=(px(*x)) y=(px(*y)) text-anchor=[anchor] { (text) }
        },
    }
}
