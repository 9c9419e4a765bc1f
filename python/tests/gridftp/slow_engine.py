"""An engine in which one thing does not come to an end, put before the real one."""

import shutil
import subprocess

import pytest
from gridftp_server import LIBRARY, ROOT

# What the plug-in looks up is found here first, and else in the library that this one needs.
SOURCE = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <sieva.h>
#include <stdlib.h>
#include <unistd.h>

static int hangs(const char *what)
{
    return getenv("SLOW_ENGINE") != NULL && strstr(getenv("SLOW_ENGINE"), what) != NULL;
}
#define REAL(name) ((__typeof__(&sieva_##name))dlsym(RTLD_NEXT, "sieva_" #name))

int32_t sieva_stream_ready(const sieva_stream *stream, int32_t *ready)
{
    if (!hangs("ready"))
        return REAL(stream_ready)(stream, ready);
    *ready = 0;
    return SIEVA_OK;
}

void sieva_stream_free(sieva_stream *stream)
{
    if (hangs("free"))
        pause();
    REAL(stream_free)(stream);
}

int32_t sieva_result_open(const sieva_source *source, const char *sql, const sieva_options *options,
                          const sieva_result_options *result_options, sieva_result **result)
{
    if (hangs("open") && strstr(sql, "-12345") != NULL)
        for (;;)
            pause();
    return REAL(result_open)(source, sql, options, result_options, result);
}

int32_t sieva_result_read(const sieva_result *result, uint64_t offset, void *buffer, uint64_t capacity,
                          uint64_t *count)
{
    if (hangs("read"))
        for (;;)
            pause();
    return REAL(result_read)(result, offset, buffer, capacity, count);
}
"""


def slow_engine(directory, *what):
    """Return the settings of a server whose engine hangs: in ``ready``, ``free``, ``open`` or ``read``."""
    if not shutil.which("gcc"):
        pytest.skip("no gcc: `make gridftp-packages` installs it")
    source, library = directory / "slow.c", directory / "libslow_engine.so"
    if not library.exists():
        source.write_text("#include <string.h>\n" + SOURCE)
        include = ROOT / "crates" / "capi" / "include"
        words = ["gcc", "-shared", "-fPIC", f"-I{include}", "-o", library, source, "-Wl,--no-as-needed"]
        subprocess.run([*words, LIBRARY, f"-Wl,-rpath,{directory}", "-ldl"], check=True)
        # What is linked asks for the library by its SONAME, which only an installed one lies under.
        (directory / "libsieva_c.so.0").symlink_to(LIBRARY)
        library.chmod(0o755)
    return {"SIEVA_GRIDFTP_LIBRARY": str(library), "SLOW_ENGINE": " ".join(what)}
