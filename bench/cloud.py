#!/usr/bin/python3
"""A made cloud on this machine: nodes are processes with a share of a processor. As a command it is
what a pool of `launcher: command` calls:

usage: cloud.py FOLDER up ZONE NAME JOIN... | down NAME | ls | price ZONE

FOLDER/zones.json says of each zone: `share` of a processor that a node has, `prices` as [second,
price of an hour] from the beginning on, and `starts_in` seconds. The cost of nodes is computed from
when they were there, and not from what Troupe says. Shares are control groups, so this needs root.
"""

import contextlib
import json
import os
import shlex
import signal
import subprocess
import sys
import time

PERIOD_US = 10_000  # short, so that members do not wait for each other because of it
GROUPS = "/sys/fs/cgroup/cpu" if os.path.isdir("/sys/fs/cgroup/cpu") else "/sys/fs/cgroup"


def group_of(name, share):
    """A control group with that share of a processor; its path."""
    path = f"{GROUPS}/troupe-bench-{name}"
    os.makedirs(path, exist_ok=True)
    quota = int(share * PERIOD_US)
    # Before other work of the machine, so that it is no less than that.
    if os.path.exists(f"{path}/cpu.cfs_quota_us"):
        values = {"cpu.cfs_period_us": str(PERIOD_US), "cpu.cfs_quota_us": str(quota),
                  "cpu.shares": "262144"}
    else:
        values = {"cpu.max": f"{quota} {PERIOD_US}", "cpu.weight": "10000"}
    for file, value in values.items():
        with open(f"{path}/{file}", "w") as control:
            control.write(value)
    return path


def limited(name, share):
    """For subprocess' preexec_fn: the process and what it starts have that share."""
    path = group_of(name, share)

    def enter():
        with open(f"{path}/cgroup.procs", "w") as procs:
            procs.write(str(os.getpid()))
    return enter


def require():
    """Ends the program with the code of a test that is skipped where there are no such groups."""
    name = f"probe-{os.getpid()}"
    try:
        group_of(name, 1.0)
    except OSError as why:
        print(f"no share of a processor can be given: {why}", file=sys.stderr)
        sys.exit(77)
    end_group(name)


def kill_group(name):
    """All its processes, and what they start meanwhile."""
    while True:
        with open(f"{GROUPS}/troupe-bench-{name}/cgroup.procs") as file:
            pids = [int(line) for line in file]
        if not pids:
            return
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.02)


def end_group(name):
    for _ in range(100):
        with contextlib.suppress(FileNotFoundError):
            try:
                os.rmdir(f"{GROUPS}/troupe-bench-{name}")
            except OSError:  # its processes are about to end
                time.sleep(0.05)
                continue
        return


class Cloud:
    def __init__(self, folder, zones=None):
        """With zones it begins now."""
        self.folder = folder
        if zones is not None:
            os.makedirs(f"{folder}/nodes")
            self.write("zones.json", {"began": time.time(), "zones": zones})
        with open(f"{folder}/zones.json") as file:
            content = json.load(file)
        self.began, self.zones = content["began"], content["zones"]

    def write(self, name, content):
        with open(f"{self.folder}/{name}.new", "w") as file:
            json.dump(content, file)
        os.rename(f"{self.folder}/{name}.new", f"{self.folder}/{name}")

    def price(self, zone, second):
        return [price for begin, price in self.zones[zone]["prices"] if begin <= second][-1]

    def cost(self, zone, began, ended):
        """A node's, by seconds since the beginning."""
        changes = [begin for begin, _ in self.zones[zone]["prices"] if began < begin < ended]
        times = [began, *changes, ended]
        return sum(self.price(zone, begin) * (end - begin) / 3600
                   for begin, end in zip(times, times[1:]))

    def nodes(self):
        """By name: zone, pid, began and ended (None: it is there), in seconds."""
        found = {}
        for name in os.listdir(f"{self.folder}/nodes"):
            if not name.endswith(".new"):
                with open(f"{self.folder}/nodes/{name}") as file:
                    found[name] = json.load(file)
        return found

    def total_cost(self):
        now = time.time() - self.began
        return sum(self.cost(node["zone"], node["began"], node["ended"] or now)
                   for node in self.nodes().values())

    def up(self, zone, name, join):
        """A process of its own is the machine: it boots, joins, and notes when it has ended."""
        if os.fork() > 0:
            return
        os.setsid()
        null = os.open(os.devnull, os.O_RDWR)
        for descriptor in (0, 1, 2):
            os.dup2(null, descriptor)
        node = {"zone": zone, "pid": os.getpid(), "began": time.time() - self.began, "ended": None}
        self.write(f"nodes/{name}", node)
        kind = self.zones[zone]
        time.sleep(kind["starts_in"])
        with open(f"{self.folder}/{name}.log", "w") as log:
            child = subprocess.Popen(join, stdout=log, stderr=log,
                                     preexec_fn=limited(name, kind["share"]))
            signal.signal(signal.SIGTERM, lambda *_: child.terminate())
            child.wait()
        node["ended"] = time.time() - self.began
        self.write(f"nodes/{name}", node)
        end_group(name)
        os._exit(0)

    def down(self, name):
        node = self.nodes().get(name)
        if node is not None and node["ended"] is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(node["pid"], signal.SIGTERM)

    def take_away(self, zone):
        """Kills the oldest node of the zone, as a cloud that needs it itself; whether there was one."""
        there = sorted((node["began"], name) for name, node in self.nodes().items()
                       if node["zone"] == zone and node["ended"] is None)
        if not there:
            return False
        node = self.nodes()[there[0][1]]
        children = subprocess.run(["pgrep", "-P", str(node["pid"])], capture_output=True, text=True,
                                  check=False).stdout.split()
        for child in children:
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(child), signal.SIGKILL)
        return bool(children)

    def pool(self, name, **more):
        """A pool of the zone of this name, for cluster.pools."""
        words = shlex.join(["/usr/bin/python3", os.path.abspath(__file__), self.folder])
        return {"name": name, "launcher": "command", "start": f"{words} up {name} {{name}} {{join}}",
                "stop": f"{words} down {{name}}", "list": f"{words} ls",
                "price": f"{words} price {name}", **more}


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    cloud, verb, words = Cloud(sys.argv[1]), sys.argv[2], sys.argv[3:]
    if verb == "up":
        print(words[1], flush=True)
        cloud.up(words[0], words[1], shlex.split(" ".join(words[2:])))
    elif verb == "down":
        cloud.down(words[0])
    elif verb == "ls":
        for name, node in cloud.nodes().items():
            if node["ended"] is None:
                print(name)
    else:
        print(cloud.price(words[0], time.time() - cloud.began))


if __name__ == "__main__":
    main()
