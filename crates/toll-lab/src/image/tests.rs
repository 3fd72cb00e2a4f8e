use std::collections::BTreeMap;
use std::io::Read;

use serde_json::Value;

use super::*;

fn plan() -> ImagePlan {
    ImagePlan {
        name: "toll:test".into(),
        toll: "/bin/cat".into(),
        artifacts: vec![
            (Artifact::Envoy, "/bin/ls".into()),
            (Artifact::OpenTelemetry, "/bin/ls".into()),
        ],
        labels: vec![("version".into(), "test".into())],
    }
}

fn files_of(path: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut archive = tar::Archive::new(File::open(path).unwrap());
    let entries = archive.entries().unwrap().map(|entry| {
        let mut entry = entry.unwrap();
        let mut bytes = Vec::new();
        entry.read_to_end(&mut bytes).unwrap();
        (entry.path().unwrap().display().to_string(), bytes)
    });
    entries.collect()
}

#[test]
fn every_blob_is_what_its_name_says_and_is_listed_for_both_forms() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("toll.tar");
    let written = write(&plan(), &path, |_| ()).unwrap();
    let files = files_of(&path);
    let blobs = files.iter().filter(|(name, _)| name.starts_with("blobs/"));
    for (name, bytes) in blobs {
        assert_eq!(name, &format!("blobs/sha256/{}", digest::sha256(bytes)));
    }
    let json = |name: &str| serde_json::from_slice::<Value>(&files[name]).unwrap();
    assert_eq!(json("index.json")["manifests"][0]["digest"], written.digest.as_str());
    let manifest = format!("blobs/{}", written.digest.replace(':', "/"));
    let listed = json("manifest.json")[0]["Layers"].as_array().unwrap().len();
    assert_eq!(json(&manifest)["layers"].as_array().unwrap().len(), listed);
    let names: Vec<&str> = written.layers.iter().map(|layer| layer.name.as_str()).collect();
    assert_eq!(names, ["accounts", "toll", "Envoy", "OpenTelemetry Java agent"]);
}

#[test]
fn the_same_programs_give_the_same_image() {
    let dir = tempfile::tempdir().unwrap();
    let [one, other] = ["one.tar", "other.tar"].map(|name| dir.path().join(name));
    let write_to = |path: &Path| write(&plan(), path, |_| ()).unwrap();
    assert_eq!(write_to(&one), write_to(&other));
    assert!(fs::read(one).unwrap() == fs::read(other).unwrap());
}

#[test]
fn a_program_that_is_not_there_leaves_no_file() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("toll.tar");
    let missing = ImagePlan { toll: "/nowhere/toll".into(), ..plan() };
    let error = write(&missing, &path, |_| ()).unwrap_err();
    assert_eq!(error.to_string(), "cannot read or write /nowhere/toll");
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
}

/// Runs a program of a layer in a folder that has nothing but the layer, as the image's user.
fn said_alone(layer: &Layer, command: &[&str]) -> std::process::Output {
    let dir = tempfile::tempdir().unwrap();
    tar::Archive::new(layer.archive().unwrap().as_slice()).unpack(dir.path()).unwrap();
    fs::create_dir(dir.path().join("proc")).unwrap();
    let root = dir.path().to_str().unwrap();
    let script =
        "mount -t proc proc \"$0/proc\" && exec chroot --userspec=65532:65532 \"$0\" \"$@\"";
    fs::set_permissions(dir.path(), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let mut unshare = std::process::Command::new("unshare");
    unshare.args(["--mount", "--pid", "--fork", "sh", "-c", script, root]).args(command);
    unshare.output().unwrap()
}

/// Each program of this machine finds all that it needs in its layer: the loader, libraries, its own tree.
#[test]
fn a_layer_has_all_that_its_program_needs() {
    let programs = [
        (Artifact::Envoy, "--version", "version:"),
        (Artifact::Nginx, "-v", "nginx version"),
        (Artifact::Postgres, "--version", "postgres (PostgreSQL)"),
        (Artifact::Java, "-version", "Runtime Environment"),
    ];
    let test = "image::tests::a_layer_has_all_that_its_program_needs";
    if !nix::unistd::geteuid().is_root() {
        eprintln!("SKIP {test}: only root may change the root directory");
        return;
    }
    for (artifact, question, answer) in programs {
        let Ok(found) = artifact.find(crate::artifacts::Fetch::Forbidden) else {
            eprintln!("SKIP {test}: {} is not here", artifact.label());
            continue;
        };
        let layer = match layer_of(artifact, &found.path) {
            Err(error @ ImageError::Scattered { .. }) => {
                eprintln!("SKIP {test}: {error}");
                continue;
            }
            layer => layer.unwrap(),
        };
        let said = said_alone(&layer, &[path_of(artifact), question]);
        let text = String::from_utf8_lossy(&[said.stdout, said.stderr].concat()).into_owned();
        assert!(said.status.success() && text.contains(answer), "{}: {text}", artifact.label());
    }
}

#[test]
fn a_tree_keeps_links_within_it_and_has_what_others_lead_to() {
    let dir = tempfile::tempdir().unwrap();
    let tree = dir.path().join("tree");
    fs::create_dir_all(tree.join("bin")).unwrap();
    fs::create_dir(tree.join("left")).unwrap();
    fs::copy("/bin/ls", tree.join("bin/ls")).unwrap();
    fs::write(tree.join("left/out"), "").unwrap();
    fs::write(dir.path().join("outside"), "of the system").unwrap();
    std::os::unix::fs::symlink("ls", tree.join("bin/dir")).unwrap();
    std::os::unix::fs::symlink(dir.path().join("outside"), tree.join("conf")).unwrap();
    std::os::unix::fs::symlink("/nowhere", tree.join("broken")).unwrap();
    let layer = Layer::of_tree("tree", (&tree, "/opt/tree"), &tree.join("bin/ls"), &["left"]);
    let archive = layer.unwrap().archive().unwrap();
    let out = dir.path().join("out");
    tar::Archive::new(archive.as_slice()).unpack(&out).unwrap();
    let there = out.join("opt/tree");
    assert_eq!(fs::read_link(there.join("bin/dir")).unwrap(), Path::new("ls"));
    assert_eq!(fs::read_to_string(there.join("conf")).unwrap(), "of the system");
    assert!(!there.join("left").exists() && !there.join("broken").is_symlink());
}
