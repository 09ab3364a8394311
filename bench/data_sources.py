#!/usr/bin/python3
"""data_sources.py TROUPE [--small | --memory]: how fast files come from servers on loopback that others have written, beside cp
and curl, and how much memory one and four members of one machine take with each cache; --memory leaves the servers out. Copies
are compared with the files that were sent, and runs have the same state hash, before anything is printed. Servers that are
not installed are left out."""

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
    """MB that the members below a process have in memory: pages that several map are counted once for all of them."""
    total = 0
    for place in glob.glob("/proc/[0-9]*/stat"):
        try:
            if int(Path(place).read_text().rsplit(")", 1)[1].split()[1]) != process:
                continue
            for line in Path(place).with_name("smaps_rollup").read_text().splitlines():
                if line.startswith("Pss:"):
                    total += int(line.split()[1]) / 1000
        except (OSError, ValueError):  # it has ended
            pass
    return total


def members(file, cache, count):
    """Runs that many members, prints the most memory that they had together and the time, and returns the state hash."""
    (servers.FOLDER / "t.yaml").write_text(f"""name: {cache}
model: {{zoo: gan3d_12}}
data: {{train: {file}, schema: lcd-fixed, cache: {cache}, shard_memory: 16MiB, preprocessing: {{power: 0.35}}}}
train: {{iterations: {4 if SMALL else 12}, micro_batch: 8, micro_batches: 4, seed: 1}}
actors: {{replica: {{count: 1}}, validator: {{every: none}}, monitor: {{listen: none}}}}
""")
    run = f"members-{cache}-{count}-{time.monotonic_ns()}"
    start = time.perf_counter()
    head = subprocess.Popen([servers.TROUPE, "run", "t.yaml", "--workers", str(count), "--out", run], cwd=servers.FOLDER,
                            env=servers.ENVIRONMENT, stdout=subprocess.DEVNULL, stderr=open(servers.FOLDER / "said", "w"))
    most = 0
    while head.poll() is None:
        most = max(most, shares(head.pid))
        time.sleep(0.1)
    if head.returncode != 0:
        sys.exit(f"{run} ended with {head.returncode}: {(servers.FOLDER / 'said').read_text()[-2000:]}")
    print(f"  cache {cache:<8} {count} member{'s' if count > 1 else ' '} {most:7.0f} MB at most, "
          f"{time.perf_counter() - start:.1f} s", flush=True)
    return servers.state_hash(run)


def memory():
    events = 2_000 if SMALL else 40_000
    file = servers.SERVED / "showers.h5"
    servers.troupe("data", "make", file, "--detector", "lcd-fixed-12", "--events", events)
    print(f"members of one machine and {events} events of 12x12x12, {file.stat().st_size / 1e6:.0f} MB in the file; without a "
          "cache they are shuffled by windows:")
    hashes = {}
    # The first run with the disk cache keeps what all later ones find.
    runs = [("disk", 1)] + [(cache, count) for cache in ("memory", "disk", "shard", "none") for count in (1, 4)]
    for cache, count in runs:
        hashes.setdefault(cache == "none", set()).add(members(file, cache, count))
    if [len(each) for each in hashes.values()] != [1, 1]:
        sys.exit("the runs have several state hashes")


if __name__ == "__main__":
    try:
        servers.SERVED.mkdir()
        if "--memory" not in sys.argv:
            sources()
        memory()
    finally:
        servers.end_all()
