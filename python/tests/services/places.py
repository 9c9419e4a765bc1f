"""Places of objects that tests write to: a directory, and stores that are started when a test asks for them.

Stores that are not installed are skipped: see ``make services``.
"""

import contextlib
import json
import subprocess
import uuid
from hashlib import sha256
from pathlib import Path

import pytest
from sieva._native import Objects

from services.processes import program
from services.stores import moto, swift

PLACES = ("directory", "moto", "swift-s3", "swift")

# What a bucket holds and what of it is unfinished, asked by boto3.
ASK_S3 = """
import json, sys, hashlib, boto3, botocore.config
said, bucket = json.loads(sys.argv[1]), sys.argv[2]
config = botocore.config.Config(s3={"addressing_style": "path"}, request_checksum_calculation="when_required")
s3 = boto3.client("s3", endpoint_url=said["AWS_ENDPOINT_URL"], region_name="us-east-1", config=config,
    aws_access_key_id=said["AWS_ACCESS_KEY_ID"], aws_secret_access_key=said["AWS_SECRET_ACCESS_KEY"])
found = {}
for page in s3.get_paginator("list_objects_v2").paginate(Bucket=bucket):
    for entry in page.get("Contents", []):
        body = s3.get_object(Bucket=bucket, Key=entry["Key"])["Body"].read()
        found[entry["Key"]] = [entry["Size"], hashlib.sha256(body).hexdigest()]
print(json.dumps([found, len(s3.list_multipart_uploads(Bucket=bucket).get("Uploads", []))]))
"""

# The same of a container, asked by swiftclient.
ASK_SWIFT = """
import json, sys, hashlib, swiftclient
said, container = json.loads(sys.argv[1]), sys.argv[2]
c = swiftclient.Connection(said["ST_AUTH"], said["ST_USER"], said["ST_KEY"])
found = {}
for entry in c.get_container(container, full_listing=True)[1]:
    body = c.get_object(container, entry["name"])[1]
    found[entry["name"]] = [entry["bytes"], hashlib.sha256(body).hexdigest()]
print(json.dumps([found, 0]))
"""

MAKE_BUCKET = """
import json, sys, boto3
said = json.loads(sys.argv[1])
boto3.client("s3", endpoint_url=said["AWS_ENDPOINT_URL"], region_name="us-east-1",
    aws_access_key_id=said["AWS_ACCESS_KEY_ID"],
    aws_secret_access_key=said["AWS_SECRET_ACCESS_KEY"]).create_bucket(Bucket=sys.argv[2])
"""


def run(script, *words):
    """Run a script with the clients of the services' environment; return what it prints as JSON."""
    command = [program("python"), "-c", script, *words]
    ran = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout) if ran.stdout else None


@pytest.fixture(scope="module")
def object_stores(tmp_path_factory):
    """Return a function that starts a store when it is first asked for."""
    with contextlib.ExitStack() as stack:
        known = {}

        def start(name):
            if name not in known:
                kind = moto if name == "moto" else swift
                names = ("moto",) if name == "moto" else ("swift-s3", "swift")
                try:
                    made = stack.enter_context(kind(tmp_path_factory.mktemp("store")))
                except pytest.skip.Exception as e:
                    known.update(dict.fromkeys(names, str(e)))
                else:
                    known.update(zip(names, (made,) if name == "moto" else made, strict=True))
            if isinstance(known[name], str):
                pytest.skip(known[name])
            return known[name]

        yield start


class Place:
    """A place of objects, and what its own listing says."""

    def __init__(self, root, store=None, container=None, prefix=""):
        self.root = str(root)
        self._store, self._container, self._prefix = store, container, prefix

    def open(self, **options):
        """Return the objects that are there."""
        return Objects(self.root, options)

    def held(self):
        """Return the sizes and sums of all objects by their keys, and the number of unfinished uploads."""
        if self._store is None:
            return files_of(self.root), 0
        script = ASK_SWIFT if self._store.scheme == "swift" else ASK_S3
        found, unfinished = run(script, json.dumps(dict(self._store.environment)), self._container)
        assert all(key.startswith(self._prefix) for key in found), found
        return {key.removeprefix(self._prefix): tuple(facts) for key, facts in found.items()}, unfinished


def files_of(root):
    files = [path for path in Path(root).rglob("*") if path.is_file()]
    return {str(p.relative_to(root)): (p.stat().st_size, sha256(p.read_bytes()).hexdigest()) for p in files}


def facts(data):
    return len(data), sha256(data).hexdigest()


@pytest.fixture(params=PLACES)
def place(request, object_stores, monkeypatch, tmp_path):
    """Return each place, empty; a bucket is made before, a container is not."""
    if request.param == "directory":
        return Place(tmp_path / "objects")
    store = object_stores(request.param)
    for name, value in store.environment.items():
        monkeypatch.setenv(name, value)
    container = f"{request.param}-{uuid.uuid4().hex[:12]}"
    if store.scheme == "s3":
        run(MAKE_BUCKET, json.dumps(dict(store.environment)), container)
    return Place(f"{store.scheme}://{container}/set 1", store, container, "set 1/")
