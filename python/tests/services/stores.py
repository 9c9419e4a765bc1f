"""Object stores on loopback: moto's S3, and OpenStack Swift with its S3 interface."""

from __future__ import annotations

import base64
import json
import os
import pwd
import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from services.processes import Processes, free_ports, program, run_in_venv

BUCKET = "sieva-tests"

# Puts the files below a directory into a bucket, small multipart parts included.
UPLOAD = """
import json, sys, boto3, botocore.config, pathlib
said, root = json.loads(sys.argv[1]), pathlib.Path(sys.argv[2])
config = botocore.config.Config(s3={"addressing_style": "path"}, request_checksum_calculation="when_required")
s3 = boto3.client("s3", endpoint_url=said["AWS_ENDPOINT_URL"], region_name="us-east-1", config=config,
    aws_access_key_id=said["AWS_ACCESS_KEY_ID"], aws_secret_access_key=said["AWS_SECRET_ACCESS_KEY"])
bucket = sys.argv[3]
if bucket not in [b["Name"] for b in s3.list_buckets()["Buckets"]]:
    s3.create_bucket(Bucket=bucket)
for path in sorted(root.rglob("*")):
    if path.is_file():
        s3.put_object(Bucket=bucket, Key=str(path.relative_to(root)), Body=path.read_bytes())
"""

RINGS = """
import sys
from swift.common.ring import RingBuilder
folder, first = sys.argv[1], int(sys.argv[2])
for n, kind in enumerate(("account", "container", "object")):
    builder = RingBuilder(4, 1, 1)
    port = int(sys.argv[2 + n])
    builder.add_dev(dict(region=1, zone=1, ip="127.0.0.1", port=port, replication_ip="127.0.0.1",
        replication_port=port, device="disk", weight=1.0, meta=""))
    builder.rebalance()
    builder.get_ring().save(f"{folder}/{kind}.ring.gz")
"""


# Filters whose entry point has another name.
ENTRIES = {"cache": "memcache"}


@dataclass(frozen=True)
class ObjectStore:
    """A running store, and the environment in which it is reached."""

    name: str
    environment: Mapping[str, str]
    scheme: str = "s3"

    def url(self, key: str = "") -> str:
        """Return the address of an object."""
        return f"{self.scheme}://{BUCKET}/{key}"

    def upload(self, directory: Path) -> None:
        """Put the files below a directory into the bucket, by their relative paths."""
        run_in_venv(UPLOAD, json.dumps(dict(self.environment)), str(directory), BUCKET)


@contextmanager
def moto(logs: Path) -> Iterator[ObjectStore]:
    """Run moto's S3."""
    processes, [port] = Processes(logs), free_ports(1)
    try:
        processes.start("moto", [program("moto_server"), "-H", "127.0.0.1", "-p", str(port)])
        url = f"http://127.0.0.1:{port}"
        processes.await_answer(url)
        yield ObjectStore("moto", keys_of(url, "someone", "anything"))
    finally:
        processes.stop()


@contextmanager
def swift(
    folder: Path, *, is_logged: bool = False, memcached: str | None = None, address: str = "127.0.0.1"
) -> Iterator[tuple[ObjectStore, ObjectStore]]:
    """Run Swift; yields it as an S3 store and by its own interface. Its disk is below `folder`.

    With `is_logged` the proxy writes down in ``proxy.log`` what each request moved. With the address of a
    `memcached` it keeps there what it knows of accounts and containers, as Swift does in production. Its
    proxy is at an `address` of this machine.
    """
    _need_attributes(folder)
    proxy, *ports = free_ports(4)
    processes = Processes(folder)
    (folder / "disks" / "disk").mkdir(parents=True)
    kinds = ("account", "container", "object")
    program("swift-proxy-server")
    run_in_venv(RINGS, str(folder), *map(str, ports))
    policy = {
        "swift-hash": {"swift_hash_path_suffix": "tests"},
        "storage-policy:0": {"name": "one", "default": "yes"},
    }
    _write(folder / "swift.conf", policy)
    for kind, port in zip(kinds, ports, strict=True):
        _write(folder / f"{kind}.conf", _storage(folder, kind, port))
    served = _proxy(folder, proxy, is_logged=is_logged, memcached=memcached)
    served["DEFAULT"]["bind_ip"] = address
    _write(folder / "proxy.conf", served)
    try:
        for kind in (*kinds, "proxy"):
            processes.start(kind, [program(f"swift-{kind}-server"), folder / f"{kind}.conf", "-v"])
        url = f"http://{address}:{proxy}"
        for server in (*(f"http://127.0.0.1:{port}" for port in ports), url):
            processes.await_answer(f"{server}/healthcheck")
        native = {"ST_AUTH": f"{url}/auth/v1.0", "ST_USER": "test:tester", "ST_KEY": "testing"}
        keys = keys_of(url, "test:tester", "testing")
        yield ObjectStore("swift-s3", keys), ObjectStore("swift", {**keys, **native}, "swift")
    finally:
        processes.stop()


def keys_of(url: str, key: str, secret: str) -> dict[str, str]:
    """Return the environment in which an S3 store is reached."""
    return {"AWS_ENDPOINT_URL": url, "AWS_ACCESS_KEY_ID": key, "AWS_SECRET_ACCESS_KEY": secret}


def _need_attributes(folder: Path) -> None:
    probe = folder / "probe"
    probe.write_bytes(b"")
    try:
        os.setxattr(probe, "user.swift.metadata", b"x" * 1000)
    except OSError as e:
        pytest.skip(f"Swift keeps extended attributes, which {folder} cannot: {e}")


def _common(folder: Path, port: int) -> dict[str, str]:
    return {
        "bind_ip": "127.0.0.1",
        "bind_port": str(port),
        "workers": "0",
        "user": _user(),
        "swift_dir": str(folder),
        "devices": str(folder / "disks"),
        "mount_check": "false",
        "disable_fallocate": "true",
        "fallocate_reserve": "0",
        "conn_timeout": "5",
        "log_address": "/nonexistent",
    }


def _user() -> str:
    return pwd.getpwuid(os.getuid()).pw_name


def _storage(folder: Path, kind: str, port: int) -> dict[str, dict[str, str]]:
    return {
        "DEFAULT": _common(folder, port),
        "pipeline:main": {"pipeline": f"healthcheck {kind}-server"},
        f"app:{kind}-server": {"use": f"egg:swift#{kind}"},
        "filter:healthcheck": {"use": "egg:swift#healthcheck"},
    }


def _proxy(folder: Path, port: int, *, is_logged: bool, memcached: str | None) -> dict[str, dict[str, str]]:
    # Tokens that hold all that they say spare a cache server.
    key = base64.urlsafe_b64encode(secrets.token_bytes(32)).decode()
    extra = {
        "tempauth": {
            "user_test_tester": "testing .admin",
            "fernet_key_one": key,
            "active_fernet_key_id": "one",
        },
        "s3api": {"location": "us-east-1", "min_segment_size": "1"},
    }
    filters = ["catch_errors", "gatekeeper", "healthcheck", *(["proxy_logging"] if is_logged else [])]
    if memcached:
        filters.append("cache")
        extra["cache"] = {"memcache_servers": memcached}
    filters += ["listing_formats", "bulk", "tempurl", "s3api", "tempauth", "copy", "slo", "dlo"]
    return {
        "DEFAULT": _common(folder, port),
        "pipeline:main": {"pipeline": " ".join([*filters, "proxy-server"])},
        "app:proxy-server": {"use": "egg:swift#proxy", "account_autocreate": "true"},
        **{
            f"filter:{name}": {"use": f"egg:swift#{ENTRIES.get(name, name)}", **extra.get(name, {})}
            for name in filters
        },
    }


def _write(path: Path, sections: Mapping[str, Mapping[str, str]]) -> None:
    lines = []
    for name, values in sections.items():
        lines += [f"[{name}]", *(f"{key} = {value}" for key, value in values.items()), ""]
    path.write_text("\n".join(lines))
