//! `toll image`: the image of all pods in a cluster, made of the programs that are on this machine.

use std::collections::{BTreeMap, BTreeSet};

use toll_lab::artifacts::{Artifact, Fetch, Found, Need};
use toll_lab::image::{self, ImagePlan, Written};
use toll_lab::needs;

use super::arguments::ImageArguments;
use super::commands::{read, study_text};
use super::exit;
use super::talk::{CliError, print, say};
use crate::plan::{self, Choices};

/// Writes it, and says what to do with it.
pub fn image(arguments: &ImageArguments) -> Result<u8, CliError> {
    let found = found(arguments)?;
    let plan = ImagePlan {
        name: arguments.name.clone(),
        toll: std::env::current_exe().map_err(CliError::Signals)?,
        artifacts: found.iter().map(|(artifact, found)| (*artifact, found.path.clone())).collect(),
        labels: labels(&found),
    };
    let written = image::write(&plan, &arguments.out, |layer| say(&format!("packing {layer}")))?;
    print(&summary(arguments, &written))?;
    Ok(exit::DONE)
}

/// Envoy, which is fetched when it is not there, and nginx where it is; or what a study needs.
fn found(arguments: &ImageArguments) -> Result<Vec<(Artifact, Found)>, CliError> {
    let Some(name) = &arguments.study else {
        say("looking for Envoy, and fetching it if it is not there");
        let envoy = (Artifact::Envoy, Artifact::Envoy.find(Fetch::Allowed)?);
        let nginx = Artifact::Nginx.find(Fetch::Forbidden).ok();
        return Ok(std::iter::once(envoy)
            .chain(nginx.map(|found| (Artifact::Nginx, found)))
            .collect());
    };
    let (name, text) = study_text(name)?;
    let (study, warnings) = read(&name, &text)?;
    let choices = Choices { in_cluster: true, ..Choices::default() };
    let plan = plan::resolve(&study, &choices, warnings)?;
    let needs: BTreeSet<Need> =
        plan.ready().flat_map(|(_, deployment)| needs(deployment)).collect();
    let mut all = BTreeMap::new();
    for need in needs {
        all.extend(need.find(Fetch::Allowed)?);
    }
    Ok(all.into_iter().collect())
}

fn labels(found: &[(Artifact, Found)]) -> Vec<(String, String)> {
    let version = ("org.opencontainers.image.version".to_owned(), env!("CARGO_PKG_VERSION").into());
    let title = ("org.opencontainers.image.title".to_owned(), "toll".to_owned());
    let of_artifact = |(artifact, found): &(Artifact, Found)| {
        let name = artifact.label().to_lowercase().replace(' ', "-");
        (format!("toll.{name}"), format!("{} (sha256 {})", found.version, found.sha256))
    };
    [title, version].into_iter().chain(found.iter().map(of_artifact)).collect()
}

fn summary(arguments: &ImageArguments, written: &Written) -> String {
    let (file, name) = (arguments.out.display(), &arguments.name);
    let layers: String = written
        .layers
        .iter()
        .map(|layer| format!("  {:<10} {:>6.1} MB\n", layer.name, layer.bytes as f64 / 1e6))
        .collect();
    format!(
        "{name}  {}\n{layers}written to {file}\n\n\
         Into a cluster:\n  \
         kind load image-archive {file}\n  \
         ctr -n k8s.io images import {file}          (on each node)\n  \
         skopeo copy oci-archive:{file} docker://REGISTRY/{name}\n\
         Pods use {name} unless `toll run --image` says otherwise.",
        written.digest
    )
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;
    use toll_lab::image::WrittenLayer;

    #[test]
    fn the_summary_says_how_large_it_is_and_where_it_goes() {
        let arguments = ImageArguments {
            out: PathBuf::from("toll-image.tar"),
            study: None,
            name: "toll:0.1.0".into(),
        };
        let layer = |name: &str, bytes| WrittenLayer { name: name.into(), bytes };
        let written = Written {
            digest: "sha256:0123".into(),
            layers: vec![layer("toll", 9_400_000), layer("Envoy", 31_000_000)],
        };
        insta::assert_snapshot!(summary(&arguments, &written));
    }
}
