#!/usr/bin/python3
"""How long it takes from `troupe burst` until a node computes, by what starts it.

usage: arrival.py TROUPE [--small] [command | ssh | slurm | kubernetes]...

A training of the quick start with one worker gets a node of a pool and gives it back, again and
again. The tools are real, and play several machines on this one (tests/main/*_cluster, ssh_hosts);
for Kubernetes there have to be the programs of `./dev setup --kubernetes`. Without names all those
are measured that are installed. Printed are of each, in milliseconds from the call of `troupe burst`
on: when the tool had been asked and had answered, when the node's member had joined, when it was in
a View, and when a step was made with what it computed. With --small there is one round each.
"""

import contextlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

import runs

HERE = os.path.dirname(os.path.abspath(__file__))
TESTS = os.path.join(HERE, "..", "tests", "main")
PROGRAMS = os.path.abspath(os.path.join(HERE, "..", "build", "kubernetes"))
ROUNDS, SLOTS = 7, 4
TOPOLOGY = """name: arrival
model: {zoo: gan3d_12}
data: {train: synthetic, synthetic: {events: 200, seed: 1}, preprocessing: {power: 0.35}}
train: {epochs: 100000, micro_batch: 1, micro_batches: 4, seed: 1}
actors: {checkpointer: {every: none}, validator: {every: none}, monitor: {listen: none}}
"""


def call(*words, **environment):
    end = subprocess.run(words, capture_output=True, text=True, check=False,
                         env=dict(os.environ, **environment))
    if end.returncode != 0:
        sys.exit(f"{' '.join(words)} ended with {end.returncode}\n{end.stderr}{end.stdout}")


@contextlib.contextmanager
def cluster(script, folder, *more, **environment):
    """Of tests/main: machines of a tool on this one."""
    call(f"{TESTS}/{script}", "up", folder, *more, **environment)
    try:
        yield
    finally:
        call(f"{TESTS}/{script}", "down", folder, *more)


@contextlib.contextmanager
def command(folder, _):
    made = f"{TESTS}/made_cloud {folder}/cloud"
    yield {"launcher": "command", "start": f"{made} up {{name}} {{join}}",
           "stop": f"{made} down {{name}}", "list": f"{made} ls"}, []


@contextlib.contextmanager
def ssh(folder, _):
    with cluster("ssh_hosts", f"{folder}/hosts"):
        yield {"launcher": "ssh", "hosts": ["node-a"], "options": ["-F", f"{folder}/hosts/config"]}, []


@contextlib.contextmanager
def slurm(folder, _):
    with cluster("slurm_cluster", f"{folder}/slurm"):
        os.environ["SLURM_CONF"] = f"{folder}/slurm/slurm.conf"
        yield {"launcher": "slurm"}, []


@contextlib.contextmanager
def kubernetes(folder, troupe):
    made = f"{folder}/kubernetes"
    os.makedirs(f"{made}/programs")
    os.symlink(troupe, f"{made}/programs/troupe")
    os.environ["PATH"] = f"{PROGRAMS}:{os.environ['PATH']}"
    call(troupe, "keygen", f"{folder}/keys")
    with cluster("kubernetes_cluster", made, PROGRAMS):
        yield {"launcher": "kubernetes", "namespace": "troupe", "image": "troupe:here",
               "options": [f"--kubeconfig={made}/head.conf", f"--cache-dir={made}/head_cache"],
               "join": ["--data", "remote"]}, ["--set", f"cluster.keys={folder}/keys"]


PARTS = {"command": (command, "/bin/sh"), "ssh": (ssh, "/usr/sbin/sshd"),
         "slurm": (slurm, "/usr/sbin/slurmctld"),
         "kubernetes": (kubernetes, f"{PROGRAMS}/kube-apiserver")}


class Run:
    def __init__(self, troupe, folder, pool, more):
        self.troupe, self.folder, self.seen = troupe, folder, []
        address = f"127.0.0.1:{runs.free_port()}"
        pools = [{"name": "pool", "nodes": 0, "most": 1, **pool}]
        self.tail = runs.Tail(f"{folder}/run/metrics.jsonl")
        self.program = runs.Program(
            [troupe, "run", runs.write_topology(folder, TOPOLOGY), "--out", f"{folder}/run",
             "--workers", "1", "--set", f"cluster.listen={address}", "--set",
             f"cluster.pools={json.dumps(pools)}", *more], folder)
        self.head = [address]
        if more:
            with open(f"{folder}/keys/public.key") as file:
                self.head = [f"tcp://{address}#{file.read().split()[-1]}", "--key", f"{folder}/keys"]

    def burst(self, nodes):
        call(self.troupe, "burst", self.head[0], "pool", str(nodes), *self.head[1:])

    def wait_for(self, what, found):
        """When a line of its metrics was read of which `found` says something true; and that."""
        began, looked_at = time.monotonic(), 0
        while time.monotonic() - began < 120 and self.program.runs():
            for at, line in self.seen[looked_at:]:
                if found(line):
                    return at, line
            looked_at = len(self.seen)
            now = time.monotonic()
            self.seen += [(now, json.loads(line)) for line in self.tail.lines()]
            time.sleep(0.002)
        return self.program.fail(f"no {what}")

    def round(self):
        """Seconds from the call of `troupe burst` on, of one node."""
        self.seen.clear()
        began = time.monotonic()
        self.burst(1)

        def node(role, state, times=1):
            left = iter(range(times, 0, -1))
            return lambda line: (line["kind"] == "node" and line["role"] == role
                                 and line["state"] == state and next(left) == 1)
        # Told before the tool is asked, and again when it has answered.
        asked, _ = self.wait_for("node", node("pool", "asked", 2))
        joined, _ = self.wait_for("member", node("member", "joining"))
        viewed, view = self.wait_for("View", lambda line: line["kind"] == "view"
                                     and line["fields"]["joined"])
        step = (view["fields"]["first_step"] // SLOTS + 2) * SLOTS
        made, _ = self.wait_for("step", lambda line: line["kind"] == "step"
                                and line["step"] >= step)
        self.burst(0)
        self.wait_for("end of the node", node("pool", "ended"))
        return [each - began for each in (asked, joined, viewed, made)]

    def end(self):
        self.program.process.terminate()
        self.program.process.wait()
        self.program.kill()


def measure(troupe, name, rounds):
    with tempfile.TemporaryDirectory(prefix=f"troupe-bench-{name}-") as folder:
        with PARTS[name][0](folder, troupe) as (pool, more):
            run = Run(troupe, folder, pool, more)
            try:
                run.wait_for("step", lambda line: line["kind"] == "step" and line["step"] > 20)
                times = [run.round() for _ in range(rounds)]
            finally:
                run.end()
    for stage, seconds in zip(("asked for", "joined", "in a View", "contributed"), zip(*times)):
        print(f"{name:<12} {stage:<12} {1e3 * min(seconds):>8.0f} "
              f"{1e3 * statistics.median(seconds):>8.0f} {1e3 * max(seconds):>8.0f}", flush=True)


def main():
    troupe, small, wanted = runs.arguments(__doc__, PARTS)
    there = [name for name, (_, needs) in PARTS.items() if os.path.exists(needs)]
    missing = [name for name in wanted if name not in there]
    if missing:
        sys.exit(f"{PARTS[missing[0]][1]}, which {missing[0]} needs, is not there")
    print(f"{'':<25} {'least':>8} {'median':>8} {'most':>8}  ms")
    for name in wanted or there:
        measure(troupe, name, 1 if small else ROUNDS)


if __name__ == "__main__":
    main()
