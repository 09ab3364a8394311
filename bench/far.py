#!/usr/bin/python3
"""Two far sites: planned changes of the View, and what each way to exchange gains there.

usage: far.py TROUPE [--small] [changes] [strategies]

Two hosts with 100 Mbit/s and 50 ms one way between them (slow_cable.py; needs root), each with a
core for itself.

changes: gan3d_12, a member on each host. Another one joins at the far site, and is drained again.
Told is how long the steps around each change of the View took, and those of the same slot nearby.
This is measured twice: with the hosts as this system makes them, and with hosts on which a new
connection may fill the line at once.

strategies: gan3d_25, micro-batches of one event, 24 an iteration, a member on each host. The far
one shares its core with two busy programs, so it is a third as fast. Each way to exchange
(train.strategy) trains for as long without deaths, and then while the far member is killed (kill
-9) every 30 s and another one joins at once. Told are the events per second as a share of the two
members' rates alone, and the bytes for each event that the line carried in both directions. How
good the showers are after so many events does not hang on where they were trained, and is measured
without a line.

With --small the line is ten times as fast, and only the changes are made.
"""

import json
import os
import signal
import statistics
import subprocess
import tempfile
import time

import runs
import slow_cable

RATE, DELAY = 100e6, 0.05
SLOTS = 4
OF_WORKERS, OF_SITES = "workers: 12, steps: 10", "sites: 4, steps: 10"
STRATEGIES = {
    "synchronous": "{kind: synchronous}",
    "local": f"{{kind: local, {OF_WORKERS}, outer: {{rate: 1, momentum: 0}}}}",
    "local, int8": f"{{kind: local, {OF_WORKERS}, outer: {{rate: 1, momentum: 0}}, precision: int8}}",
    "tree": f"{{kind: tree, {OF_SITES}, outer: {{rate: 1, momentum: 0}}}}",
    "downpour": f"{{kind: downpour, {OF_WORKERS}, rate: 0.08}}",
    "easgd": f"{{kind: easgd, {OF_WORKERS}, rho: 0.08}}",
    "gem": f"{{kind: gem, {OF_WORKERS}}}",
    "quorum": f"{{kind: quorum, {OF_WORKERS}, of: 9, rate: 1}}",
    "gem, sites": f"{{kind: gem, {OF_SITES}}}",
    "quorum, sites": f"{{kind: quorum, {OF_SITES}, of: 3, rate: 1}}",
}
TOPOLOGY = """name: far
model: {zoo: ZOO}
data: {train: synthetic, schema: lcd-fixed, synthetic: {events: 2000, seed: 1},
       preprocessing: {power: POWER}}
train: {epochs: 10000, micro_batch: SIZE, micro_batches: 24, seed: 1}
actors: {replica: {threads: 1}, checkpointer: {every: none}, validator: {every: none}}
cluster: {rebalance: false}
"""


class Sites:
    """Two hosts, and the programs on them."""

    def __init__(self, troupe, folder, small, **topology):
        self.troupe, self.folder, self.programs, self.made = troupe, folder, [], 0
        self.keys, self.data = f"{folder}/keys", f"{folder}/data"
        self.topology = runs.write_topology(folder, TOPOLOGY, **topology)
        self.hosts = slow_cable.TwoHosts(10 * RATE if small else RATE, DELAY)
        self.cores = sorted(os.sched_getaffinity(0))
        self.start([troupe, "keygen", self.keys]).finish()
        with open(f"{self.keys}/public.key") as file:
            self.key = next(line.split()[1] for line in file if line.startswith("public "))

    def close(self):
        for program in self.programs:
            program.kill()
        self.hosts.close()

    def start(self, words, host=None):
        if host is not None:
            core = self.cores[host % len(self.cores)]
            words = self.hosts.on(host, ["taskset", "--cpu-list", str(core), *words])
        # Of a session of its own, since the kernel may share out a core among sessions.
        words = ["setsid", *words]
        self.programs.append(runs.Program(words, self.folder))
        return self.programs[-1]

    def run(self, hosts, changes=()):
        """A run's head, with a member on each of these hosts; its folder and address."""
        self.made += 1
        out = f"{self.folder}/run{self.made}"
        members = ", ".join(f"{{address: {self.hosts.address(i)}, workers: 1}}" for i in hosts)
        address = f"{self.hosts.address(hosts[0])}:{runs.free_port()}"
        words = [self.troupe, "run", self.topology, "--out", out]
        for change in (f"cluster.keys={self.keys}", f"cluster.hosts=[{members}]",
                       f'cluster.listen="{address}"', *changes):
            words += ["--set", change]
        return self.start(words, hosts[0]), out, f"{address}#{self.key}"

    def join(self, host, address):
        return self.start([self.troupe, "join", address, "--key", self.keys, "--data", self.data,
                           "--workers", "1"], host)

    def end(self, head):
        """Tells the program itself, which is below those that have put it on its host."""
        found = subprocess.run(["pgrep", "--full", "--newest", f"run .*run{self.made} "],
                               capture_output=True, text=True, check=True)
        os.kill(int(found.stdout.split()[0]), signal.SIGTERM)
        code = head.process.wait(120)
        if code != 143:
            head.fail(f"ended with {code} when it was told to end")


def changes(sites, small):
    print("hosts as this system makes them:", flush=True)
    change(sites, small)
    if small:
        return
    sites.hosts.open_windows()
    print("hosts whose new connections may fill the line at once:", flush=True)
    change(sites, small)


def change(sites, small):
    head, out, address = sites.run([0, 1])
    sites.join(1, address)
    tail, told, views, joined, drained = runs.Tail(f"{out}/metrics.jsonl"), {}, [], False, False
    beside = 2 if small else 4  # iterations between the changes
    while head.runs():
        for line in map(json.loads, tail.lines()):
            if line["kind"] == "step":
                told[line["step"]] = time.monotonic()
            elif line["kind"] == "view":
                views.append(line["fields"])
        step = max(told, default=0)
        if not joined and step >= beside * SLOTS:
            sites.join(1, address)
            joined = True
        if views and not drained and step >= views[0]["first_step"] + beside * SLOTS:
            sites.start([sites.troupe, "drain", address, views[0]["joined"][0], "--key",
                         sites.keys], 0)
            drained = True
        if len(views) == 3 and step >= views[2]["first_step"] + beside * SLOTS:
            break
        time.sleep(0.005)
    if not head.runs():
        head.fail("it ended before all changes were made")
    sites.end(head)
    took = {step: told[step] - told[step - 1] for step in told if step - 1 in told}
    for name, view in zip(("a join", "work handed over", "a leave"), views):
        first = view["first_step"]
        print(f"{name}: View from step {first} on, told after {view['halted_seconds']:.2f} s")
        for step in range(first - 1, first + SLOTS):
            others = [took[other] for other in took
                      if other % SLOTS == step % SLOTS and 2 < abs(other - step) <= 4 * SLOTS]
            print(f"  step {step}: {took[step]:.2f} s; others of its slot nearby "
                  f"{min(others):.2f} to {max(others):.2f}, median {statistics.median(others):.2f}",
                  flush=True)


def train(sites, hosts, strategy, seconds, life):
    """Events, seconds and bytes on the line from the end of the first iteration to that of the last
    one in time, and deaths; the far member lives so long, or to the end where that is None."""
    head, out, address = sites.run(hosts, [f"train.strategy={STRATEGIES[strategy]}"] +
                                   (["cluster.assign=[3, 1]"] if len(hosts) > 1 else []))
    far = sites.join(1, address) if len(hosts) > 1 else None
    told, deaths, events, tail = [], 0, 0, runs.Tail(f"{out}/metrics.jsonl")
    while head.runs():
        now = time.monotonic()
        for line in map(json.loads, tail.lines()):
            if line["kind"] == "step" and line["slot"] in ("d_real", "workers"):
                events += line["events"] if told else 0
                told.append((now, sites.hosts.carried()))
                if len(told) == 1:
                    dies = now + (life or 2 * seconds)
        if told and now > told[0][0] + seconds:
            break
        if told and far is not None and now > dies:
            far.kill()
            far, deaths, dies = sites.join(1, address), deaths + 1, now + life
        time.sleep(0.02)
    if not head.runs():
        head.fail("it ended while it should train")
    if events == 0:
        head.fail(f"no second iteration ended within {seconds} s")
    sites.end(head)
    if far is not None:
        far.kill()
    return events, told[-1][0] - told[0][0], told[-1][1] - told[0][1], deaths


def strategies(sites, _):
    for _ in range(2):
        sites.start(["sh", "-c", "while :; do :; done"], 1)
    seconds, life = 90, 30
    rates = []
    for host in (0, 1):
        events, took, _, _ = train(sites, [host], "synchronous", seconds / 2, None)
        rates.append(events / took)
    print(f"one member alone: {rates[0]:.1f} and {rates[1]:.1f} events/s; {seconds} s each")
    print(f"{'':<14}{'':<10}{'events/s':>10}{'of both':>9}{'KB an event':>13}{'deaths':>8}")
    for name in STRATEGIES:
        for what, lives in (("no deaths", None), ("deaths", life)):
            events, took, carried, deaths = train(sites, [0, 1], name, seconds, lives)
            print(f"{name:<14}{what:<10}{events / took:>10.1f}{100 * events / took / sum(rates):>8.0f}%"
                  f"{carried / 1e3 / max(events, 1):>13.0f}{deaths:>8}", flush=True)


PARTS = {"changes": (changes, {"zoo": "gan3d_12", "size": 4, "power": 0.35}),
         "strategies": (strategies, {"zoo": "gan3d_25", "size": 1, "power": 1})}


def main():
    troupe, small, wanted = runs.arguments(__doc__, PARTS)
    for name in wanted or (["changes"] if small else PARTS):
        part, topology = PARTS[name]
        with tempfile.TemporaryDirectory(prefix="troupe-bench-far-") as folder:
            try:
                sites = Sites(troupe, folder, small, **topology)
            except (OSError, subprocess.CalledProcessError) as error:
                print(f"No slow cable on this system: {error}")
                return
            try:
                part(sites, small)
            finally:
                sites.close()


if __name__ == "__main__":
    main()
