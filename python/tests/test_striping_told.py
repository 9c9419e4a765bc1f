"""File systems and stores that tell where bytes lie, asked for real: CephFS, GlusterFS, uploads to S3."""

import json
import shutil
import subprocess
import sys

import h5py
import numpy as np
import pytest
import sieva
from services import stores, striped
from services.processes import run_in_venv
from striping_requests import layout, requests, stripes_of


@pytest.mark.skipif(sys.platform != "linux", reason="FUSE of Linux")
def test_cephfs_tells_its_stripes(tmp_path):
    values = np.random.default_rng(5).normal(size=(48, 64, 32)).astype("f4")
    path = tmp_path / "plain.h5"
    with h5py.File(path, "w") as file:
        file["a"] = values
        offset = file["a"].id.get_offset()
    with striped.ceph(tmp_path) as mounted:
        there = mounted / "striped"
        there.mkdir()
        words = "stripe_unit=65536 stripe_count=4 object_size=131072"
        subprocess.run([sys.executable, "-c", SET, there, "ceph.dir.layout", words], check=True)
        shutil.copy(path, there / "a.h5")
        plan = layout(there / "a.h5", "SELECT a WHERE a > 1")
        (file,) = plan["files"]
        assert file["striping"] == "stripe_size=64KiB,stripe_count=4,object_size=128KiB"
        assert file["layout"].endswith("(CephFS)")
        # As CephFS deals them: two rounds of four stripes to four objects each.
        wanted = [
            (n // 8 * 4 + n % 4, n, low, high)
            for _, n, low, high in stripes_of(offset, offset + values.nbytes, 65536, 4, 0)
        ]
        assert requests(file) == wanted
        found = sieva.open(there / "a.h5", learn=False).sql("SELECT a WHERE a > 1")
        assert found.count() == int((values > 1).sum())
        # A file that the layout of another directory is not of.
        (mounted / "whole").mkdir()
        shutil.copy(path, mounted / "whole" / "a.h5")
        (other,) = layout(mounted / "whole" / "a.h5", "SELECT a WHERE a > 1")["files"]
        assert other["striping"] == "stripe_size=4MiB,stripe_count=1,object_size=4MiB"


@pytest.mark.skipif(sys.platform != "linux", reason="FUSE of Linux")
def test_glusterfs_tells_its_shards(tmp_path):
    values = np.arange(3 << 20, dtype="f4")
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["a"] = values
        offset = file["a"].id.get_offset()
    with striped.gluster(tmp_path) as mounted:
        shutil.copy(tmp_path / "a.h5", mounted / "a.h5")
        (file,) = layout(mounted / "a.h5", f"SELECT a WHERE a < {2 << 20}")["files"]
        assert file["striping"] == "stripe_size=4MiB,stripe_count=1,object_size=4MiB"
        assert file["layout"].startswith("4 shards")
        wanted = stripes_of(offset, offset + values.nbytes, 4 << 20, 4, 0)
        assert requests(file) == wanted
        # What the bricks have: the first shard under the file's name, the others below .shard.
        shards = list(tmp_path.glob("brick*/.shard/*.[0-9]*")) + list(tmp_path.glob("brick*/a.h5"))
        assert len([s for s in shards if s.stat().st_size > 0]) == 4
        assert sieva.open(mounted / "a.h5", learn=False).sql("SELECT a WHERE a < 7").count() == 7


# Puts a file into a bucket in parts of 5 MiB.
IN_PARTS = """
import json, sys, boto3, botocore.config
from boto3.s3.transfer import TransferConfig
said = json.loads(sys.argv[1])
s3 = boto3.client("s3", endpoint_url=said["AWS_ENDPOINT_URL"], region_name="us-east-1",
    config=botocore.config.Config(s3={"addressing_style": "path"}),
    aws_access_key_id=said["AWS_ACCESS_KEY_ID"], aws_secret_access_key=said["AWS_SECRET_ACCESS_KEY"])
s3.create_bucket(Bucket=sys.argv[2])
s3.upload_file(sys.argv[3], sys.argv[2], "a.h5",
    Config=TransferConfig(multipart_threshold=5 << 20, multipart_chunksize=5 << 20))
"""


def test_the_parts_of_an_upload_are_told(tmp_path, monkeypatch):
    values = np.arange(21 << 18, dtype="f4")
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["a"] = values
        offset = file["a"].id.get_offset()
    with stores.moto(tmp_path) as store:
        words = (json.dumps(dict(store.environment)), stores.BUCKET, str(tmp_path / "a.h5"))
        run_in_venv(IN_PARTS, *words)
        for name, value in store.environment.items():
            monkeypatch.setenv(name, value)
        (file,) = layout(store.url("a.h5"), "SELECT a WHERE a > 5")["files"]
        assert file["layout"].startswith("5 parts")
        assert file["stripe_size"] == 5 << 20
        wanted = stripes_of(offset, offset + values.nbytes, 5 << 20, 5, 0)
        assert requests(file) == wanted


SET = "import os, sys; os.setxattr(sys.argv[1], sys.argv[2], sys.argv[3].encode())"
