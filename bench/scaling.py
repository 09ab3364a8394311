#!/usr/bin/python3
"""The time that training over several processes loses to their talking to each other.

usage: scaling.py TROUPE [--small] [weak | cable]

weak: gan3d_25 with as many events per process whether there are one or two of one thread, beside
PyTorch's DistributedDataParallel over Gloo doing the same, and beside two runs of one process at
once, which shows what the machine itself takes when two cores are busy. First, two processes must
end in the same state as one with the same global batch.

cable: the same over two hosts with 100 Mbit/s and 5 ms between them (slow_cable.py; needs root),
per format of the reduction, waiting for each step and computing meanwhile: which must end in the
same state. Exposed is what the first replica spends waiting for sums. Then two members on each
host, which are rows of a ring of rings. With --small the model is gan3d_12, but for PyTorch, and
the cable is ten times as fast.
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile

import runs
import slow_cable

HERE = os.path.dirname(os.path.abspath(__file__))
MODEL = "gan3d_25"
FORMATS = ("exact", "fp32", "bf16", "int8")
RATE, DELAY = 100e6, 0.005

TOPOLOGY = """name: scaling
model: {zoo: MODEL, kernels: fastest}
data: {train: synthetic, synthetic: {events: 256, seed: 1}, preprocessing: {power: POWER}}
train: {epochs: 1000, micro_batch: EVENTS, micro_batches: 1, scaling: weak, seed: 1}
actors: {checkpointer: {every: none}, validator: {every: none}}
cluster: {failure: {check_every: 0}}
"""


class Run:
    """A run's folder, read: the first iteration, which has retries and first touches, left out."""

    def __init__(self, folder):
        self.summary = runs.summary_of(folder)
        self.seconds = {"load": 0.0, "compute": 0.0, "reduce": 0.0, "apply": 0.0}
        iterations = set()
        with open(f"{folder}/metrics.jsonl") as file:
            for line in map(json.loads, file):
                if line["kind"] == "step" and line["iteration"] > 0:
                    iterations.add(line["iteration"])
                    for what in self.seconds:
                        self.seconds[what] += line["seconds"][what]
        self.iterations = len(iterations)

    @property
    def hash(self):
        return self.summary["state_hash"]

    @property
    def rate(self):
        return self.summary["events_per_second"]

    @property
    def iteration_ms(self):
        return 1e3 * sum(self.seconds.values()) / self.iterations

    @property
    def exposed_ms(self):
        return 1e3 * self.seconds["reduce"] / self.iterations


class Bench:
    def __init__(self, troupe, folder, small):
        self.troupe, self.folder, self.made = troupe, folder, 0
        self.small, self.events = small, 1 if small else 4  # per process and optimiser step
        self.model, power = ("gan3d_12", "0.35") if small else (MODEL, "1")
        self.timeout = 120 if small else 600
        self.programs = []
        self.topology = runs.write_topology(folder, TOPOLOGY, model=self.model, events=self.events,
                                            power=power)

    def close(self):
        for program in self.programs:
            program.kill()

    def out(self):
        self.made += 1
        return f"{self.folder}/run{self.made}"

    def words(self, out, iterations, more):
        words = [self.troupe, "run", self.topology, "--out", out,
                 "--set", f"train.iterations={iterations}"]
        return words + [word for change in more for word in ("--set", change)]

    def start(self, words):
        self.programs.append(runs.Program(words, self.folder))
        return self.programs[-1]

    def run(self, iterations, workers, more=()):
        out = self.out()
        words = [*self.words(out, iterations, more), "--workers", str(workers)]
        self.start(words).finish(self.timeout)
        return Run(out)

    def two_at_once(self, iterations):
        outs = [self.out(), self.out()]
        programs = [self.start([*self.words(out, iterations, ()), "--workers", "1"])
                    for out in outs]
        for program in programs:
            program.finish(self.timeout)
        return [Run(out) for out in outs]

    def over_cable(self, hosts, iterations, keys, settings, workers=1):
        out = self.out()
        members = ", ".join(f"{{address: {hosts.address(i)}, workers: {workers}}}" for i in (0, 1))
        head = self.start(hosts.on(0, self.words(out, iterations, [
            f"cluster.hosts=[{members}]", f'cluster.listen="{hosts.address(0)}:8500"',
            f"cluster.keys={keys}", *settings])))
        with open(f"{keys}/public.key") as file:
            key = next(line.split()[1] for line in file if line.startswith("public "))
        member = self.start(hosts.on(1, [self.troupe, "join", f"{hosts.address(0)}:8500#{key}",
                                         "--key", keys, "--data", f"{self.folder}/data",
                                         "--workers", str(workers)]))
        head.finish(self.timeout)
        member.finish(self.timeout)
        return Run(out)

    def ddp(self, processes, iterations):
        """PyTorch's events per second, None without PyTorch."""
        words = [sys.executable, "-W", "ignore", f"{HERE}/ddp_peer.py", MODEL, str(processes),
                 str(self.events), str(iterations)]
        peer = self.start(words)
        peer.finish(self.timeout)
        answer = peer.text().splitlines()
        if answer and answer[0].startswith("missing"):
            return None
        if not answer or not answer[-1].startswith("seconds"):
            sys.exit("PyTorch: " + "\n".join(answer))
        return processes * self.events * iterations / float(answer[-1].split()[1])


def spread(values):
    return f"{statistics.median(values):.2f} [{min(values):.2f}, {max(values):.2f}]"


def weak(bench):
    rounds, iterations = (1, 2) if bench.small else (5, 6)
    one = bench.run(2, 0, ["train.scaling=strong", "train.micro_batches=2"])
    two = bench.run(2, 2)
    if one.hash != two.hash:
        sys.exit(f"two processes end in {two.hash}, one with their batch in {one.hash}")
    print(f"{bench.model}, {bench.events} events per process and step, 1 thread each; "
          f"medians of {rounds} rounds in turns [lowest, highest]")
    alone, both, beside, exposed, share, peer, peer_both = ([] for _ in range(7))
    for _ in range(rounds):
        alone.append(bench.run(iterations, 1).rate)
        pair = bench.run(iterations, 2)
        both.append(pair.rate / (2 * alone[-1]))
        exposed.append(pair.exposed_ms)
        share.append(100 * pair.exposed_ms / pair.iteration_ms)
        beside.append(sum(run.rate for run in bench.two_at_once(iterations)) / (2 * alone[-1]))
        rate = bench.ddp(1, iterations - 1)
        if rate is not None:
            peer.append(rate)
            peer_both.append(bench.ddp(2, iterations - 1) / (2 * rate))
    print(f"  one process: {spread(alone)} events/s")
    print(f"  efficiency of two: {spread(both)}; exposed reduction {spread(exposed)} ms an iteration, "
          f"{spread(share)} %")
    print(f"  two runs of one process at once, the machine's own: {spread(beside)}")
    if peer:
        print(f"  PyTorch with DistributedDataParallel over Gloo, {MODEL}, one process: "
              f"{spread(peer)} events/s")
        print(f"  efficiency of two: {spread(peer_both)}")
    else:
        print("  PyTorch is not installed")


def compare_over_cable(bench, hosts, keys, what, ways, workers=1):
    """Runs with each of these settings in turns, which must end in one state."""
    rounds, iterations = (1, 2) if bench.small else (3, 4)
    several = {name: [] for name in ways}
    for _ in range(rounds):
        for name, settings in ways.items():
            several[name].append(bench.over_cable(hosts, iterations, keys, settings, workers))
    for name, those in several.items():
        print(f"  {name}: exposed {spread([run.exposed_ms for run in those])} ms of "
              f"{spread([run.iteration_ms for run in those])} ms an iteration", flush=True)
    hashes = {run.hash for those in several.values() for run in those}
    if len(hashes) != 1:
        sys.exit(f"{what}: different states at the end: {hashes}")


def cable(bench):
    rounds = 1 if bench.small else 3
    rate = 10 * RATE if bench.small else RATE
    keys = f"{bench.folder}/keys"
    subprocess.run([bench.troupe, "keygen", keys], check=True, stdout=subprocess.DEVNULL,
                   stderr=subprocess.DEVNULL)
    bench.run(1, 0)  # makes the data
    try:
        hosts = slow_cable.TwoHosts(rate, DELAY)
    except (OSError, subprocess.CalledProcessError) as error:
        print(f"No slow cable on this system: {error}")
        return
    try:
        print(f"Two hosts, {rate / 1e6:.0f} Mbit/s, {DELAY * 1e3:.0f} ms one way, {bench.model}, "
              f"{bench.events} events per process and step; medians of {rounds} [lowest, highest]")
        for reduction in FORMATS[:1] if bench.small else FORMATS:
            compare_over_cable(bench, hosts, keys, reduction, {
                f"{reduction:5} {name}": [f"actors.reducer.reduction={reduction}",
                                          f"actors.replica.overlap={overlap}"]
                for name, overlap in (("waiting  ", "false"), ("meanwhile", "true"))})
        line = f"{{between: [{hosts.address(0)}, {hosts.address(1)}], rate: {rate / 1e6:.0f}Mbit}}"
        compare_over_cable(bench, hosts, keys, "rows", {
            "exact waiting  , two members on each host":
                ["actors.replica.overlap=false", f"cluster.bandwidth=[{line}]"]}, 2)
    finally:
        bench.close()
        hosts.close()


def main():
    parts = {"weak": weak, "cable": cable}
    troupe, small, wanted = runs.arguments(__doc__, parts)
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(troupe, folder, small)
        try:
            for part in wanted or parts:
                parts[part](bench)
        finally:
            bench.close()


if __name__ == "__main__":
    main()
