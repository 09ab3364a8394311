#!/usr/bin/python3
"""data_sources.py TROUPE [--small]: how fast files come from servers on loopback that others have written, beside cp and curl, and
how much memory four members of one machine take with each cache. Copies are compared with the files that were sent, and runs have
the same state hash, before anything is printed. Servers that are not installed are left out."""

import glob
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests/oracle"))
import data_servers as servers  # noqa: E402

SMALL = "--small" in sys.argv
MEGABYTES = 8 if SMALL else 400
REPEATS = 1 if SMALL else 5


def rate(name, words, out, wanted, **environment):
    """Prints MB/s of a command that writes the file `out`."""
    rates = []
    for _ in range(REPEATS):
        Path(out).unlink(missing_ok=True)
        start = time.perf_counter()
        subprocess.run(list(map(str, words)), check=True, cwd=servers.FOLDER, capture_output=True,
                       env={**servers.ENVIRONMENT, **environment})
        rates.append(MEGABYTES / (time.perf_counter() - start))
        if Path(out).read_bytes() != wanted:
            sys.exit(f"{name}: another content")
    rates.sort()
    print(f"  {name:<28} {rates[len(rates) // 2]:7.0f} MB/s (min {rates[0]:.0f}, max {rates[-1]:.0f})", flush=True)


def sources():
    large = servers.SERVED / "large.h5"
    wanted = os.urandom(MEGABYTES * 1_000_000)
    large.write_bytes(wanted)
    out = servers.FOLDER / "copies"
    out.mkdir()

    def fetch(address):
        return [servers.TROUPE, "data", "fetch", address, "--out", out]

    print(f"{MEGABYTES} MB from servers on loopback, into a folder beside:")
    rate("cp", ["cp", large, out / "large.h5"], out / "large.h5", wanted)
    if shutil.which("nginx", path="/usr/sbin:" + os.environ["PATH"]):
        server = servers.Nginx()
        trusts = {"CURL_CA_BUNDLE": str(servers.FOLDER / "certificate")}
        rate("https, nginx", fetch(f"{server.address}/plain/large.h5"), out / "large.h5", wanted, **trusts)
        if shutil.which("curl"):
            words = ["curl", "--cacert", servers.FOLDER / "certificate", "-o", out / "large.h5"]
            rate("the same by curl", words + [f"{server.address}/plain/large.h5"], out / "large.h5", wanted)
    if "S3RVER" in os.environ or shutil.which("s3rver"):
        _, port, asks = servers.start_s3()
        servers.ask_object(port, "large.h5", wanted)
        rate("s3, s3rver", fetch("s3://bucket/large.h5"), out / "large.h5", wanted, **asks)
    if shutil.which("xrootd") and shutil.which("xrdcp"):
        _, address = servers.start_xrootd()
        rate("root, xrootd", fetch(f"{address}/large.h5"), out / "large.h5", wanted)
        words = ["xrdcp", "-f", "-s", f"{address}/large.h5", out / "large.h5"]
        rate("the same by xrdcp", words, out / "large.h5", wanted)


def shares(process):
    """Proportional and private memory, in MB, of the members below a process."""
    pages = {"Pss": 0, "Private_Clean": 0, "Private_Dirty": 0}
    for place in glob.glob("/proc/[0-9]*/stat"):
        try:
            if int(Path(place).read_text().rsplit(")", 1)[1].split()[1]) != process:
                continue
            for line in Path(place).with_name("smaps_rollup").read_text().splitlines():
                name = line.split(":")[0]
                if name in pages:
                    pages[name] += int(line.split()[1]) / 1000
        except (OSError, ValueError):
            pass
    return pages["Pss"]


def memory():
    events = 2_000 if SMALL else 40_000
    file = servers.SERVED / "showers.h5"
    servers.troupe("data", "make", file, "--detector", "lcd-fixed-12", "--events", events)
    print(f"four members and {events} events of 12x12x12, {file.stat().st_size / 1e6:.0f} MB in the file:")
    hashes = set()
    for cache in ("memory", "disk", "disk", "shard"):
        (servers.FOLDER / "t.yaml").write_text(f"""name: {cache}
model: {{zoo: gan3d_12}}
data: {{train: {file}, schema: lcd-fixed, cache: {cache}, preprocessing: {{power: 0.35}}}}
train: {{iterations: {4 if SMALL else 12}, micro_batch: 8, micro_batches: 4, seed: 1}}
actors: {{replica: {{count: 1}}, validator: {{every: none}}, monitor: {{listen: none}}}}
""")
        run = f"members-{cache}-{len(hashes)}-{time.monotonic_ns()}"
        start = time.perf_counter()
        head = subprocess.Popen([servers.TROUPE, "run", "t.yaml", "--workers", "4", "--out", run], cwd=servers.FOLDER,
                                env=servers.ENVIRONMENT, stdout=subprocess.DEVNULL, stderr=open(servers.FOLDER / "said", "w"))
        most = 0
        while head.poll() is None:
            most = max(most, shares(head.pid))
            time.sleep(0.1)
        if head.returncode != 0:
            sys.exit(f"{run} ended with {head.returncode}: {(servers.FOLDER / 'said').read_text()[-2000:]}")
        hashes.add(servers.state_hash(run))
        print(f"  cache {cache:<8} {most:7.0f} MB of members at most, pages shared out, {time.perf_counter() - start:.1f} s",
              flush=True)
    if len(hashes) != 1:
        sys.exit("the runs have several state hashes")


if __name__ == "__main__":
    try:
        servers.SERVED.mkdir()
        sources()
        memory()
    finally:
        servers.end_all()
