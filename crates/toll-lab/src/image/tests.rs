use std::collections::BTreeMap;
use std::io::Read;

use serde_json::Value;

use super::*;

fn plan() -> ImagePlan {
    ImagePlan {
        name: "toll:test".into(),
        toll: "/bin/cat".into(),
        artifacts: vec![(Artifact::Envoy, "/bin/ls".into()), (Artifact::Java, "/bin/ls".into())],
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
    let written = write(&plan(), &path).unwrap();
    let files = files_of(&path);
    let blobs = files.iter().filter(|(name, _)| name.starts_with("blobs/"));
    for (name, bytes) in blobs {
        assert_eq!(name, &format!("blobs/sha256/{}", archive::sha256(bytes)));
    }
    let json = |name: &str| serde_json::from_slice::<Value>(&files[name]).unwrap();
    assert_eq!(json("index.json")["manifests"][0]["digest"], written.digest.as_str());
    let manifest = format!("blobs/{}", written.digest.replace(':', "/"));
    let listed = json("manifest.json")[0]["Layers"].as_array().unwrap().len();
    assert_eq!(json(&manifest)["layers"].as_array().unwrap().len(), listed);
    // Accounts, toll and Envoy; a Java runtime cannot be in it.
    let names: Vec<&str> = written.layers.iter().map(|layer| layer.name.as_str()).collect();
    assert_eq!(names, ["accounts", "toll", "Envoy"]);
}

#[test]
fn the_same_programs_give_the_same_image() {
    let dir = tempfile::tempdir().unwrap();
    let [one, other] = ["one.tar", "other.tar"].map(|name| dir.path().join(name));
    assert_eq!(write(&plan(), &one).unwrap(), write(&plan(), &other).unwrap());
    assert!(fs::read(one).unwrap() == fs::read(other).unwrap());
}

#[test]
fn a_program_that_is_not_there_leaves_no_file() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("toll.tar");
    let missing = ImagePlan { toll: "/nowhere/toll".into(), ..plan() };
    let error = write(&missing, &path).unwrap_err();
    assert_eq!(error.to_string(), "cannot read or write /nowhere/toll");
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
}
