#!/usr/bin/python3
"""Memory and descriptors of the processes of a run, by the number of its members.

usage: members.py TROUPE [--small | MEMBERS...]

For each number: a run of toy with so many members, all on this machine. When it trains, a tenth of
them are killed (kill -9), and as many others join (troupe join). When all of these are in the View
and have made a step, the run is stopped. One process goes on from there to the end of the
iteration, and must end in the state of a run in one process. Descriptors and resident memory of the head and
of the members are read when the run trains, and again just before it is stopped; `all` is the
memory of all members together, in which what they share counts once. A member may not have more
descriptors than MOST, however many others there are: those that it opens for itself, and those of
its neighbours; the one that teaches newcomers some more for each. --small is 8 members.
"""

import json
import os
import random
import signal
import statistics
import sys
import tempfile
import time

import runs

# Processes take turns on few cores, so a late sign of life is no death.
TOPOLOGY = """name: members
model: {zoo: toy}
data: {train: synthetic, synthetic: {events: EVENTS, seed: 1}}
train: {iterations: ITERATIONS, epochs: 1000000, micro_batch: 2, micro_batches: MICRO, seed: 1}
actors: {checkpointer: {every: none}, validator: {every: none}}
cluster:
  joiners: JOINERS
  failure: {restart: 0, heartbeat: 2s, dead_after: 10s, stuck_after: 600s}
"""
MANY = 1_000_000  # iterations: the run is stopped before
MOST = 100
SLOTS = 4  # steps of an iteration of toy
AT_ONCE = 10  # newcomers that start at the same time


def state_of(pid):
    """Descriptors of a process, its resident bytes, and of these its share of what others have as well;
    none: it has ended."""
    try:
        descriptors = len(os.listdir(f"/proc/{pid}/fd"))
        with open(f"/proc/{pid}/smaps_rollup") as rollup:
            fields = {words[0]: words[1] for words in map(str.split, rollup)}
        return descriptors, int(fields["Rss:"]) * 1024, int(fields["Pss:"]) * 1024
    except (OSError, KeyError):
        return None


def alive(out):
    """Process ids of the head, and of the members by name, that run."""
    with open(f"{out}/nodes.json") as file:
        nodes = [node for node in json.load(file) if node["state"] == "running"]
    members = {node["name"]: node["pid"] for node in nodes if node["role"] == "member"}
    return [node["pid"] for node in nodes if node["role"] == "head"], members


def show(when, count, out):
    """Prints one line of the table; the descriptors of members, ascending."""
    heads, members = alive(out)
    head = state_of(heads[0])
    states = [state for state in map(state_of, members.values()) if state]
    descriptors, resident, shares = zip(*states)
    print(f"{count:>7} {when:<18} {head[0]:>9} {head[1] / 1e6:>8.1f} MB "
          f"{statistics.median(descriptors):>9.0f} {max(descriptors):>9} "
          f"{statistics.median(resident) / 1e6:>8.1f} MB {max(resident) / 1e6:>8.1f} MB "
          f"{sum(shares) / 1e9:>8.2f} GB", flush=True)
    return sorted(descriptors)


class Run:
    """A run under way, and what it tells of its steps and Views."""

    def __init__(self, troupe, folder, members, joiners):
        self.folder, self.out = folder, f"{folder}/out"
        self.address = f"tcp://127.0.0.1:{runs.free_port()}"
        self.program = runs.Program(
            [troupe, "run", f"{folder}/run.yaml", "--out", self.out, "--workers", str(members),
             "--set", f"cluster.listen={self.address[6:]}"], folder)
        self.tail = runs.Tail(f"{self.out}/metrics.jsonl")
        self.newcomers = []
        self.steps, self.joined, self.ring = 0, set(), members

    def wait(self, until):
        """Reads what the run tells until that is so."""
        while True:
            for line in map(json.loads, self.tail.lines()):
                if line["kind"] == "step":
                    self.steps += 1
                elif line["kind"] == "view":
                    self.joined |= set(line["fields"]["joined"])
                    self.ring = len(line["fields"]["members"])
            if until():
                return
            for program in [self.program, *self.newcomers]:
                if not program.runs():
                    program.fail("it has ended too early")
            time.sleep(0.05)

    def make_steps(self, more):
        target = self.steps + more
        self.wait(lambda: self.steps >= target)

    def stop(self):
        self.program.process.send_signal(signal.SIGINT)
        code = self.program.process.wait()
        if code not in (0, 128 + signal.SIGINT):
            self.program.fail(f"ended with {code}")
        return runs.summary_of(self.out)


def check(descriptors, newcomers):
    """However many members there are. One of them has taught all newcomers."""
    middle, most = statistics.median(descriptors), descriptors[-1]
    if middle > MOST or most > MOST + 6 * newcomers:
        sys.exit(f"members have {middle:.0f} descriptors, and one has {most}")


def lose(run, count, dice):
    victims = dice.sample(sorted(alive(run.out)[1].items()), count)
    for _, pid in victims:
        os.kill(pid, signal.SIGKILL)
    left = run.ring - count
    run.wait(lambda: run.ring == left)


def gain(troupe, run, count):
    """As many others join, some at a time."""
    while len(run.newcomers) < count:
        some = min(AT_ONCE, count - len(run.newcomers))
        run.newcomers += [runs.Program([troupe, "join", run.address], run.folder)
                          for _ in range(some)]
        run.wait(lambda: len(run.joined) == len(run.newcomers))


def state_of_one(troupe, folder, where, iterations):
    """The state hash of one process that goes on to so many iterations: from the beginning, or from
    where a run was stopped."""
    runs.Program([troupe, "run", *where, "--set", f"train.iterations={iterations}"], folder).finish()
    return runs.summary_of(where[-1])["state_hash"]


def measure(troupe, members):
    changed = max(members // 10, 1)
    begun = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="troupe-bench-members-") as folder:
        runs.write_topology(folder, TOPOLOGY, iterations=MANY, micro=members, joiners=changed,
                            events=4 * members)
        run = Run(troupe, folder, members, changed)
        try:
            run.make_steps(4)
            check(show("trains", members, run.out), 0)
            lose(run, changed, random.Random(1))
            run.make_steps(2)
            gain(troupe, run, changed)
            run.make_steps(8)
            check(show(f"{changed} lost, {changed} new", members, run.out), changed)
            summary = run.stop()
            for newcomer in run.newcomers:
                newcomer.process.wait()
        finally:
            for program in [run.program, *run.newcomers]:
                program.kill()
        # It may have been stopped within an iteration.
        iterations = summary["steps"] // SLOTS + 1
        gone_on = state_of_one(troupe, folder, ["--resume", run.out], iterations)
        alone = state_of_one(troupe, folder, ["run.yaml", "--out", f"{folder}/whole"], iterations)
        if gone_on != alone:
            sys.exit(f"{members} members end in another state than one process: {summary}")
        print(f"{members:>7} the same state as one process after {summary['steps']} steps; "
              f"{time.monotonic() - begun:.0f} s in all", flush=True)


def main():
    words = [word for word in sys.argv[1:] if word != "--small"]
    numbers = words[1:] or (["8"] if "--small" in sys.argv else ["8", "32", "128"])
    if not words or not all(number.isdigit() and int(number) > 2 for number in numbers):
        sys.exit(__doc__)
    print(f"{'members':>7} {'':<18} {'head: fds':>9} {'memory':>11} {'member: fds':>9} {'most':>7} "
          f"{'memory':>11} {'most':>11} {'all':>11}")
    for number in numbers:
        measure(os.path.abspath(words[0]), int(number))


if __name__ == "__main__":
    main()
