#!/usr/bin/python3
"""Two far sites: planned changes of the View, and what each way to exchange gains there.

usage: far.py TROUPE [--small] [changes] [strategies] [sites]

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

sites: the same with two members on each host, which share its core, and sites of two members of one
host: they make a worker's iterations together, and the line carries what is between sites. First
both hosts are alike. Then the far one shares its core with two busy programs again, so that each
of its members is half as fast; with three sites the near members are a site each then, and all
sites are about as fast. Also told are the bytes for each event that members sent within the hosts,
which must be those of iterations that sites make together, and not of outer steps alone.

With --small the line is ten times as fast, the network is small, and only the changes are made, and
a few outer steps of sites.
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
OF_WORKERS, MEAN = "workers: 12, steps: 10", "outer: {rate: 1, momentum: 0}"
STRATEGIES = {
    "synchronous": "{kind: synchronous}",
    "local": f"{{kind: local, {OF_WORKERS}, {MEAN}}}",
    "local, int8": f"{{kind: local, {OF_WORKERS}, {MEAN}, precision: int8}}",
    "downpour": f"{{kind: downpour, {OF_WORKERS}, rate: 0.08}}",
    "easgd": f"{{kind: easgd, {OF_WORKERS}, rho: 0.08}}",
    "gem": f"{{kind: gem, {OF_WORKERS}}}",
    "quorum": f"{{kind: quorum, {OF_WORKERS}, of: 9, rate: 1}}",
}
TREE = f"{{kind: tree, sites: 2, steps: 10, {MEAN}}}"
OF_ALIKE_HOSTS = {
    "synchronous": STRATEGIES["synchronous"],
    "local, 2": f"{{kind: local, workers: 2, steps: 10, {MEAN}}}",
    "local, 4": f"{{kind: local, workers: 4, steps: 10, {MEAN}}}",
    "tree, 2": TREE,
    "gem, 2 sites": "{kind: gem, sites: 2, steps: 10}",
    "quorum, 2 sites": "{kind: quorum, sites: 2, steps: 10, of: 1, rate: 0.5}",
}
# Sums of all members have two to three times as many bytes within the hosts as on the line, and ten
# iterations of a site have ten times as many besides.
MOST_OF_ALL = 5
OF_UNLIKE_HOSTS = {
    "synchronous": STRATEGIES["synchronous"],
    "tree, 2": TREE,
    "tree, 3": f"{{kind: tree, sites: 3, steps: 10, {MEAN}}}",
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
    """Two hosts, and the programs on them: so many members on each that is part of a run."""

    def __init__(self, troupe, folder, small, members=1, **topology):
        self.troupe, self.folder, self.programs, self.made = troupe, folder, [], 0
        self.members = members
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
        """A run's head, with the members of the first of these hosts; its folder and address."""
        self.made += 1
        out = f"{self.folder}/run{self.made}"
        members = ", ".join(f"{{address: {self.hosts.address(i)}, workers: {self.members}}}"
                            for i in hosts)
        address = f"{self.hosts.address(hosts[0])}:{runs.free_port()}"
        words = [self.troupe, "run", self.topology, "--out", out]
        for change in (f"cluster.keys={self.keys}", f"cluster.hosts=[{members}]",
                       f'cluster.listen="{address}"', *changes):
            words += ["--set", change]
        return self.start(words, hosts[0]), out, f"{address}#{self.key}"

    def join(self, host, address):
        return self.start([self.troupe, "join", address, "--key", self.keys, "--data", self.data,
                           "--workers", str(self.members)], host)

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


class Measure:
    """What a run tells from the end of its first iteration on."""

    def __init__(self, hosts):
        self.hosts, self.told, self.events, self.rates = hosts, [], 0, {}

    def take(self, line, now):
        if line["kind"] == "step" and line["slot"] in ("d_real", "workers"):
            self.events += line["events"] if self.told else 0
            self.told.append((now, self.hosts.carried()))
        elif line["kind"] == "samples" and self.told:
            for series, (count, mean, *_) in line["values"].items():
                if series.endswith("/sent_bytes_per_second"):
                    self.rates.setdefault(series, []).extend([mean] * count)

    def seconds(self):
        return self.told[-1][0] - self.told[0][0]

    def carried(self):
        """Bytes on the line."""
        return self.told[-1][1] - self.told[0][1]

    def within(self):
        """Bytes that members sent to others of their host: nodes tell their rates every second."""
        sent = sum(statistics.mean(rates) for rates in self.rates.values()) * self.seconds()
        return max(sent - self.carried(), 0)


def train(sites, hosts, strategy, seconds, life=None, changes=()):
    """The measure of so long behind the first iteration, and deaths; the far members live so long,
    or to the end where that is None."""
    head, out, address = sites.run(hosts, [f"train.strategy={strategy}", *changes])
    far = sites.join(1, address) if len(hosts) > 1 else None
    measure, deaths, tail = Measure(sites.hosts), 0, runs.Tail(f"{out}/metrics.jsonl")
    while head.runs():
        now = time.monotonic()
        for line in map(json.loads, tail.lines()):
            measure.take(line, now)
            if len(measure.told) == 1:
                dies = now + (life or 2 * seconds)
        if measure.told and now > measure.told[0][0] + seconds:
            break
        if measure.told and far is not None and now > dies:
            far.kill()
            far, deaths, dies = sites.join(1, address), deaths + 1, now + life
        time.sleep(0.02)
    if not head.runs():
        head.fail("it ended while it should train")
    if measure.events == 0:
        head.fail(f"no second iteration ended within {seconds} s")
    sites.end(head)
    if far is not None:
        far.kill()
    return measure, deaths


def keep_busy(sites):
    for _ in range(2):
        sites.start(["sh", "-c", "while :; do :; done"], 1)


def rates_alone(sites, seconds):
    rates = []
    for host in (0, 1):
        measure, _ = train(sites, [host], STRATEGIES["synchronous"], seconds / 2)
        rates.append(measure.events / measure.seconds())
    print(f"alone on its host: {rates[0]:.1f} and {rates[1]:.1f} events/s; {seconds} s each way")
    print(f"{'':<26}{'events/s':>10}{'of both':>9}{'KB an event':>13}{'within':>9}{'deaths':>8}")
    return sum(rates)


def show(name, what, measure, deaths, alone=None):
    rate, kilobytes = measure.events / measure.seconds(), 1e3 * measure.events
    of_both = f"{100 * rate / alone:.0f}%" if alone else ""
    print(f"{name:<16}{what:<10}{rate:>10.1f}{of_both:>9}{measure.carried() / kilobytes:>13.0f}"
          f"{measure.within() / kilobytes:>9.0f}{deaths:>8}", flush=True)


def strategies(sites, _):
    keep_busy(sites)
    seconds, life = 90, 30
    alone = rates_alone(sites, seconds)
    for name, strategy in STRATEGIES.items():
        for what, lives in (("no deaths", None), ("deaths", life)):
            measure, deaths = train(sites, [0, 1], strategy, seconds, lives,
                                    ["cluster.assign=[3, 1]"])
            show(name, what, measure, deaths, alone)


def of_sites(sites, small):
    hosts = ", ".join(sites.hosts.address(host) for host in (0, 1))
    line = f"cluster.bandwidth=[{{between: [{hosts}], rate: 100Mbit}}]"
    if small:
        show_sites(sites, {"tree, 2": TREE}, 15, [line])
        return
    seconds = 90
    print("hosts alike:", flush=True)
    show_sites(sites, OF_ALIKE_HOSTS, seconds, [line], rates_alone(sites, seconds))
    keep_busy(sites)
    print("the far host is half as fast:", flush=True)
    show_sites(sites, OF_UNLIKE_HOSTS, seconds, [line, "cluster.assign=[2, 2, 1, 1]"],
               rates_alone(sites, seconds))


def show_sites(sites, ways, seconds, changes, alone=None):
    for name, strategy in ways.items():
        measure, deaths = train(sites, [0, 1], strategy, seconds, changes=changes)
        show(name, "", measure, deaths, alone)
        if "sites" in strategy and measure.within() < MOST_OF_ALL * measure.carried():
            raise SystemExit(f"{name}: members of a host send each other little more than sums of "
                             "all members, so no site makes its iterations together")


PARTS = {"changes": (changes, {"zoo": "gan3d_12", "size": 4, "power": 0.35}),
         "strategies": (strategies, {"zoo": "gan3d_25", "size": 1, "power": 1}),
         "sites": (of_sites, {"zoo": "gan3d_25", "size": 1, "power": 1, "members": 2})}
OF_SMALL = {"changes": PARTS["changes"],
            "sites": (of_sites, {"zoo": "gan3d_12", "size": 1, "power": 0.35, "members": 2})}


def main():
    troupe, small, wanted = runs.arguments(__doc__, PARTS)
    for name in wanted or (OF_SMALL if small else PARTS):
        part, topology = (PARTS | OF_SMALL if small else PARTS)[name]
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
