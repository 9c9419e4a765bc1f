"""Parts of the plug-in under sanitizers, without a server and with an engine of their own."""

import os
import shutil
import subprocess

import pytest
from gridftp_server import ROOT

PLUGIN = ROOT / "plugins" / "gridftp"
PACKAGES = ["globus-gridftp-server", "globus-gssapi-gsi", "globus-common"]
SOURCES = ["answer", "session", "job", "watch", "account", "config", "failure", "request"]
PROGRAMS = {
    "answers": [],
    "transfers": [PLUGIN / "src" / "transfer.c"],
    "memory": ["-Wl,--wrap=strdup", "-Wl,--wrap=strndup"],
}
LIMITS = dict.fromkeys(("KEEP", "TIME_LIMIT", "PROGRESS_LIMIT", "STALL_LIMIT", "WAIT"), "1")


def package_words(kind):
    """Return what pkg-config says of the packages."""
    if not shutil.which("gcc") or not shutil.which("pkg-config"):
        pytest.skip("no gcc, pkg-config: `make gridftp-packages` installs them")
    done = subprocess.run(["pkg-config", kind, *PACKAGES], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        pytest.skip(f"{done.stderr}: `make gridftp-packages` installs them")
    return done.stdout.split()


@pytest.mark.parametrize("sanitizers", ["thread", "address,undefined"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_parts_under_sanitizers(tmp_path, name, sanitizers):
    program, asked, include = tmp_path / name, tmp_path / "asked.nc", ROOT / "crates/capi/include"
    asked.touch()
    words = ["gcc", "-std=gnu11", "-O1", "-g", f"-fsanitize={sanitizers}", "-fno-sanitize-recover=all"]
    words += [f"-I{include}", *package_words("--cflags"), "-o", program]
    words += [PLUGIN / "tests" / f"{name}.c", PLUGIN / "tests" / "fake.c", *PROGRAMS[name]]
    words += [PLUGIN / "src" / f"{source}.c" for source in SOURCES]
    subprocess.run([*words, *package_words("--libs"), "-lpthread", "-ldl"], check=True)
    leaks = tmp_path / "leaks"
    leaks.write_text("leak:libglobus_common\n")  # of its own start
    settings = {f"SIEVA_GRIDFTP_{name}": value for name, value in LIMITS.items()}
    done = subprocess.run(
        [program, asked],
        env={
            **os.environ,
            **settings,
            "SIEVA_GRIDFTP_SESSIONS": str(tmp_path / "sessions"),
            "LSAN_OPTIONS": f"suppressions={leaks}",
        },
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.startswith("ok\n")
