#!/usr/bin/python3
"""What members that may come and go cost while nothing happens, in instructions.

usage: elastic_instructions.py TROUPE [--small]

Two members of gan3d_12, on hosts of their own (slow_cable.py, with a fast cable; needs root), of
which valgrind counts the instructions of one. Pairs of runs in turns: as it is, and with no places
for others and nobody replaced. Runs of two lengths, so that what a member does at its start and
its end falls out. All kernels are portable, since valgrind knows no others; with faster ones the
same instructions are a larger part. All runs of one length have to end in one state.
"""

import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile

import runs
import slow_cable

TOPOLOGY = """name: instructions
model: {zoo: gan3d_12, kernels: portable}
data: {train: synthetic, schema: lcd-fixed, synthetic: {events: 400, seed: 1},
       preprocessing: {power: 0.35}}
train: {epochs: 1000, micro_batch: 4, micro_batches: 2, seed: 1}
actors: {replica: {threads: 1}, checkpointer: {every: none}, validator: {every: none}}
cluster: {rebalance: false, failure: {dead_after: 60s}}
"""
FIXED = ["cluster.joiners=0", "cluster.failure.restart=0"]
COUNT = ["valgrind", "--tool=exp-bbv", "--instr-count-only=yes"]


class Bench:
    def __init__(self, troupe, folder):
        self.troupe, self.folder, self.made, self.states = troupe, folder, 0, {}
        self.topology, self.keys = runs.write_topology(folder, TOPOLOGY), f"{folder}/keys"
        self.hosts = slow_cable.TwoHosts(1e9, 0.0001)
        runs.Program([troupe, "keygen", self.keys], folder).finish()
        with open(f"{self.keys}/public.key") as file:
            self.key = next(line.split()[1] for line in file if line.startswith("public "))

    def count(self, iterations, more):
        """Instructions of the second member of a run."""
        self.made += 1
        out, log = f"{self.folder}/run{self.made}", f"{self.folder}/count{self.made}"
        members = ", ".join(f"{{address: {self.hosts.address(i)}, workers: 1}}" for i in (0, 1))
        address = f"{self.hosts.address(0)}:{runs.free_port()}"
        changes = [f"cluster.hosts=[{members}]", f'cluster.listen="{address}"',
                   f"cluster.keys={self.keys}", f"train.iterations={iterations}", *more]
        head = runs.Program(self.hosts.on(0, [
            self.troupe, "run", self.topology, "--out", out,
            *(word for change in changes for word in ("--set", change))]), self.folder)
        member = runs.Program(self.hosts.on(1, [
            *COUNT, f"--log-file={log}", self.troupe, "join", f"{address}#{self.key}", "--key",
            self.keys, "--node", "member.1"]), self.folder)
        try:
            for program in (member, head):
                program.finish()
        finally:
            for program in (member, head):
                program.kill()
        state = runs.summary_of(out)["state_hash"]
        if self.states.setdefault(iterations, state) != state:
            sys.exit(f"{iterations} iterations end in {state} and {self.states[iterations]}")
        with open(log) as file:
            return sum(map(int, re.findall(r"Total instructions: (\d+)", file.read())))


def measure(bench, few, many, pairs):
    ratios = []
    for _ in range(pairs):
        each = {}
        for name, more in (("elastic", []), ("fixed", FIXED)):
            counts = [bench.count(iterations, more) for iterations in (few, many)]
            each[name] = (counts[1] - counts[0]) / (many - few)
            print(f"{name:<8} {each[name] / 1e6:10.2f} million instructions an iteration", flush=True)
        ratios.append(each["elastic"] / each["fixed"])
    print(f"elastic to fixed, {pairs} pairs: {statistics.median(ratios):.4f} "
          f"[{min(ratios):.4f}, {max(ratios):.4f}]")


def main():
    troupe, small, _ = runs.arguments(__doc__)
    if shutil.which(COUNT[0]) is None or os.geteuid() != 0:
        print("Needs valgrind and root")
        return
    with tempfile.TemporaryDirectory(prefix="troupe-bench-instructions-") as folder:
        try:
            bench = Bench(troupe, folder)
        except (OSError, subprocess.CalledProcessError) as error:
            print(f"No two hosts on this system: {error}")
            return
        try:
            measure(bench, *((1, 2, 1) if small else (2, 12, 6)))
        finally:
            bench.hosts.close()


if __name__ == "__main__":
    main()
