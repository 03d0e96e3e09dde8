"""An image for containers: an OCI layout and a docker archive in one tar, which name the same blobs."""

import gzip
import hashlib
import io
import json
import tarfile
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

CHUNK = 1 << 20
COMPRESSION = 6
LAYER_TYPE = "application/vnd.oci.image.layer.v1.tar+gzip"
MANIFEST_TYPE = "application/vnd.oci.image.manifest.v1+json"
CONFIG_TYPE = "application/vnd.oci.image.config.v1+json"


@dataclass(frozen=True)
class OciSummary:
    """`manifest` is the digest by which registries know the image, `size` the bytes of the archive."""

    manifest: str
    config: str
    size: int


def write_oci_archive(
    layers: Sequence[Path], target: Path, *, name: str, config: Mapping[str, object], architecture: str, epoch: int
) -> OciSummary:
    """Write the archive. The same layers and configuration of containers give the same bytes."""
    with tempfile.TemporaryDirectory(prefix="freehold-oci-", dir=target.parent) as folder:
        blobs = _Blobs(Path(folder))
        packed = [blobs.add_layer(layer) for layer in layers]
        created = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(epoch))
        image = blobs.add_json(
            {
                "architecture": architecture,
                "os": "linux",
                "created": created,
                "config": dict(config),
                "rootfs": {"type": "layers", "diff_ids": [f"sha256:{diff}" for diff, _ in packed]},
                "history": [{"created": created, "created_by": "freehold build"} for _ in packed],
            }
        )
        manifest = blobs.add_json(
            {
                "schemaVersion": 2,
                "mediaType": MANIFEST_TYPE,
                "config": blobs.describe(image, CONFIG_TYPE),
                "layers": [blobs.describe(digest, LAYER_TYPE) for _, digest in packed],
            }
        )
        entry = {**blobs.describe(manifest, MANIFEST_TYPE), "annotations": {"org.opencontainers.image.ref.name": name}}
        index = {"schemaVersion": 2, "manifests": [entry]}
        docker = [
            {
                "Config": f"blobs/sha256/{image}",
                "RepoTags": [name],
                "Layers": [f"blobs/sha256/{digest}" for _, digest in packed],
            }
        ]
        texts = {
            "index.json": _json(index),
            "manifest.json": _json(docker),
            "oci-layout": b'{"imageLayoutVersion":"1.0.0"}',
        }
        _write_archive(target, blobs, texts, epoch)
    return OciSummary(manifest, image, target.stat().st_size)


def _json(value: object) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()


class _Blobs:
    """Blobs in a folder, by their hash."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def add_json(self, value: object) -> str:
        content = _json(value)
        digest = hashlib.sha256(content).hexdigest()
        (self.folder / digest).write_bytes(content)
        return digest

    def add_layer(self, layer: Path) -> tuple[str, str]:
        """Compress a layer. Returns the hash of its content and that of the compressed blob."""
        content = hashlib.sha256()
        draft = self.folder / "draft"
        with (
            layer.open("rb") as source,
            draft.open("wb") as target,
            gzip.GzipFile(filename="", fileobj=target, mode="wb", compresslevel=COMPRESSION, mtime=0) as packed,
        ):
            while chunk := source.read(CHUNK):
                content.update(chunk)
                packed.write(chunk)
        with draft.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        draft.rename(self.folder / digest)
        return content.hexdigest(), digest

    def describe(self, digest: str, media_type: str) -> dict[str, str | int]:
        return {"mediaType": media_type, "digest": f"sha256:{digest}", "size": (self.folder / digest).stat().st_size}


def _write_archive(target: Path, blobs: _Blobs, texts: Mapping[str, bytes], epoch: int) -> None:
    with tarfile.open(target, "w", format=tarfile.GNU_FORMAT) as tar:
        for blob in sorted(blobs.folder.iterdir()):
            with blob.open("rb") as content:
                tar.addfile(_head(f"blobs/sha256/{blob.name}", blob.stat().st_size, epoch), content)
        for name in sorted(texts):
            tar.addfile(_head(name, len(texts[name]), epoch), io.BytesIO(texts[name]))


def _head(name: str, size: int, epoch: int) -> tarfile.TarInfo:
    head = tarfile.TarInfo(name)
    head.size, head.mtime, head.mode = size, epoch, 0o644
    return head
