//! An image as one file: the OCI image layout (<https://github.com/opencontainers/image-spec>) in a tar archive, and
//! beside it the list by which older versions of Docker find the same blobs.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};
use std::path::Path;

use serde_json::{Value, json};
use tar::Header;

use super::digest::sha256;
use super::layer::Layer;
use super::{ImageError, TOLL, USER};

const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
const CONFIG: &str = "application/vnd.oci.image.config.v1+json";
const LAYER: &str = "application/vnd.oci.image.layer.v1.tar+gzip";

/// What was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Written {
    /// Digest of the manifest, `sha256:...`: what a registry calls it.
    pub digest: String,
    /// In order.
    pub layers: Vec<WrittenLayer>,
}

/// One layer of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WrittenLayer {
    /// What is in it.
    pub name: String,
    /// Bytes, compressed.
    pub bytes: usize,
}

/// Writes all of it to `out`, the file at `path`.
pub(super) fn write(
    (name, labels): (&str, &[(String, String)]),
    layers: &[Layer],
    (out, path): (impl Write, &Path),
    mut progress: impl FnMut(&str),
) -> Result<Written, ImageError> {
    let failed = |source| ImageError::File { path: path.to_owned(), source };
    let mut archive = Archive { tar: tar::Builder::new(out), blobs: BTreeSet::new() };
    let mut packed = Vec::new();
    for layer in layers {
        progress(&layer.name);
        let (bytes, plain) = layer.packed()?;
        let blob = archive.blob(LAYER, &bytes).map_err(failed)?;
        packed.push((blob, plain, WrittenLayer { name: layer.name.clone(), bytes: bytes.len() }));
    }
    let digest = archive.end(name, labels, &packed).map_err(failed)?;
    Ok(Written { digest, layers: packed.into_iter().map(|(.., layer)| layer).collect() })
}

/// What refers to a layer's blob, the digest of what is in it, and what is said of it.
type Packed = (Value, String, WrittenLayer);

impl<W: Write> Archive<W> {
    /// Writes what says how the layers belong together, and gives the manifest's digest.
    fn end(
        &mut self,
        name: &str,
        labels: &[(String, String)],
        packed: &[Packed],
    ) -> io::Result<String> {
        let config = self.blob(CONFIG, &json_bytes(&config(labels, packed)))?;
        let blobs: Vec<&Value> = packed.iter().map(|(blob, ..)| blob).collect();
        let manifest = json!({
            "schemaVersion": 2, "mediaType": MANIFEST, "config": config, "layers": blobs,
        });
        let mut manifest = self.blob(MANIFEST, &json_bytes(&manifest))?;
        let digest = manifest["digest"].as_str().unwrap_or_default().to_owned();
        let tag = name.rsplit_once(':').map_or("latest", |(_, tag)| tag);
        manifest["annotations"] = json!({
            "org.opencontainers.image.ref.name": tag,
            "io.containerd.image.name": full_name(name),
        });
        let index = json!({"schemaVersion": 2, "manifests": [manifest]});
        let listed = json!([{
            "Config": file_of(&config), "RepoTags": [name],
            "Layers": blobs.iter().map(|blob| file_of(blob)).collect::<Vec<_>>(),
        }]);
        self.file("index.json", &json_bytes(&index))?;
        self.file("manifest.json", &json_bytes(&listed))?;
        self.file("oci-layout", &json_bytes(&json!({"imageLayoutVersion": "1.0.0"})))?;
        self.tar.finish()?;
        Ok(digest)
    }
}

fn config(labels: &[(String, String)], packed: &[Packed]) -> Value {
    let labels: BTreeMap<&str, &str> =
        labels.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    let plain: Vec<String> = packed.iter().map(|(_, plain, _)| format!("sha256:{plain}")).collect();
    json!({
        "architecture": if cfg!(target_arch = "aarch64") { "arm64" } else { "amd64" },
        "os": "linux",
        "config": {"Entrypoint": [TOLL], "User": USER.to_string(), "Labels": labels},
        "rootfs": {"type": "layers", "diff_ids": plain},
    })
}

/// As container runtimes write a name without a registry.
fn full_name(name: &str) -> String {
    match name.split_once('/') {
        Some((registry, _)) if registry.contains(['.', ':']) => name.to_owned(),
        Some(_) => format!("docker.io/{name}"),
        None => format!("docker.io/library/{name}"),
    }
}

fn file_of(blob: &Value) -> String {
    format!("blobs/{}", blob["digest"].as_str().unwrap_or_default().replace(':', "/"))
}

fn json_bytes(value: &Value) -> Vec<u8> {
    serde_json::to_vec(value).expect("a JSON value has a JSON form")
}

struct Archive<W: Write> {
    tar: tar::Builder<W>,
    blobs: BTreeSet<String>,
}

impl<W: Write> Archive<W> {
    /// Writes a blob once, and gives what refers to it.
    fn blob(&mut self, kind: &str, bytes: &[u8]) -> io::Result<Value> {
        let digest = sha256(bytes);
        if self.blobs.insert(digest.clone()) {
            self.file(&format!("blobs/sha256/{digest}"), bytes)?;
        }
        Ok(json!({"mediaType": kind, "digest": format!("sha256:{digest}"), "size": bytes.len()}))
    }

    fn file(&mut self, name: &str, bytes: &[u8]) -> io::Result<()> {
        let mut header = Header::new_gnu();
        header.set_mode(0o644);
        header.set_mtime(0);
        header.set_size(bytes.len() as u64);
        self.tar.append_data(&mut header, name, bytes)
    }
}
