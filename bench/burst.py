#!/usr/bin/python3
"""A burst with a deadline and a budget, beside other ways to get the same training done.

usage: burst.py TROUPE [--small]

Two zones of a made cloud (cloud.py) have prices that change and take nodes away without a notice, by
a trace that is drawn once. A training of gan3d_12, with one worker of its own, is to end by a deadline:

  burst    cluster.burst with that deadline and a budget; nodes of both zones come and go
  fixed    as many nodes as that takes, at the price of a zone that takes none away
  restart  the same number in the zone that is cheaper at first; when one is taken away all are
           started anew, from the last checkpoint (every tenth iteration), as managed spot jobs are
  alone    its own worker

Prints time, cost as the cloud counts it, iterations that were made again, and nodes taken away. All
have to end in the same state. A node has a fifth of a processor; needs root.
"""

import json
import os
import random
import sys
import tempfile
import time

import cloud
import runs

TOPOLOGY = """name: burst
model: {zoo: gan3d_12}
data:
  {train: synthetic, synthetic: {events: 960, seed: 1}, test_one_in: 0, preprocessing: {power: 0.35}}
train: {epochs: 1000, iterations: ITERATIONS, micro_batch: 4, micro_batches: 24, seed: 1}
actors: {checkpointer: {every: CHECKPOINTS}, validator: {every: none}, monitor: {listen: none}}
"""
SHARE, STARTS_IN, FIXED_NODES, CHECKPOINT_EVERY = 0.2, 2.0, 3, 10
ON_DEMAND = 36.0  # of an hour, so that a second costs 0.01
SPOT = ("east", "west")


def trace(seconds, dice):
    """Zones with their prices, and when each takes a node away."""
    zones = {"steady": {"share": SHARE, "prices": [[0, ON_DEMAND]], "starts_in": STARTS_IN}}
    losses = []
    for zone in SPOT:
        prices = [[begin, ON_DEMAND * dice.uniform(0.25, 0.8)] for begin in range(0, seconds, 30)]
        zones[zone] = {"share": SHARE, "prices": prices, "starts_in": STARTS_IN}
        second = dice.expovariate(1 / 40)
        while second < seconds:
            losses.append((second, zone))
            second += dice.expovariate(1 / 40)
    return zones, sorted(losses)


def own_worker(name):
    """The head and its worker together; the head takes little."""
    return cloud.limited(name, SHARE * 1.1)


class Arm:
    """One way to do it, from now on."""

    def __init__(self, troupe, folder, name, zones, losses):
        self.troupe, self.folder, self.name = troupe, folder, name
        self.cloud = cloud.Cloud(f"{folder}/cloud-{name}", zones)
        self.losses, self.taken, self.again = list(losses), 0, 0
        self.out, self.group = f"{folder}/{name}", f"{name}-{os.getpid()}"

    def second(self):
        return time.time() - self.cloud.began

    def lost_now(self):
        """Zones that take a node away now."""
        zones = []
        while self.losses and self.losses[0][0] <= self.second():
            zones.append(self.losses.pop(0)[1])
        return zones

    def program(self, words, enter=None):
        return runs.Program([self.troupe, "run", *words], self.folder, enter)

    def first_words(self):
        return [f"{self.folder}/run.yaml", "--out", self.out]

    def result(self, cost):
        summary = runs.summary_of(self.out)
        return {"seconds": self.second(), "cost": cost, "again": self.again, "taken": self.taken,
                "state": summary["state_hash"]}

    def with_pools(self, pools, more):
        words = ["--workers", "1", "--set", f"cluster.pools={json.dumps(pools)}",
                 "--set", f"cluster.listen=127.0.0.1:{runs.free_port()}", *more]
        program = self.program(self.first_words() + words, own_worker(self.group))
        while program.runs():
            for zone in self.lost_now():
                self.taken += self.cloud.take_away(zone)
            time.sleep(0.05)
        program.finish()
        cloud.end_group(self.group)
        return self.result(self.cloud.total_cost())


def burst(arm, deadline, budget):
    pools = [arm.cloud.pool(zone, most=4, spot=True, starts_in="20 s", stops_in="10 s")
             for zone in SPOT]
    limits = json.dumps({"finish_within": f"{deadline} s", "budget": budget, "decide_every": "5 s"})
    return arm.with_pools(pools, ["--set", f"cluster.burst={limits}"])


def fixed(arm, nodes):
    return arm.with_pools([arm.cloud.pool("steady", nodes=nodes, most=nodes, starts_in="20 s")], [])


def alone(arm):
    return arm.with_pools([arm.cloud.pool("steady", nodes=0, most=1)], [])


def newest_iteration(out):
    """That is told in metrics.jsonl; -1: none."""
    newest = -1
    for line in runs.Tail(f"{out}/metrics.jsonl").lines():
        record = json.loads(line)
        if record["kind"] == "step":
            newest = max(newest, record["iteration"])
    return newest


def restart(arm, nodes):
    """A job of its own worker and the nodes, which is killed as a whole."""
    zone = min(SPOT, key=lambda each: arm.cloud.price(each, 0))
    cost, words, enter = 0.0, arm.first_words(), cloud.limited(arm.group, SHARE * (nodes + 1.1))
    while True:
        began = arm.second()
        time.sleep(STARTS_IN)
        program = arm.program(words + ["--workers", str(nodes + 1)], enter)
        lost = False
        while program.runs() and not lost:
            lost = zone in arm.lost_now()
            time.sleep(0.05)
        lost = lost and program.runs()
        if lost:
            cloud.kill_group(arm.group)
            program.process.wait()
        else:
            program.finish()
        cost += nodes * arm.cloud.cost(zone, began, arm.second())
        if not lost:
            cloud.end_group(arm.group)
            return arm.result(cost)
        arm.taken += 1
        newest = newest_iteration(arm.out)
        arm.again += max(0, newest - newest // CHECKPOINT_EVERY * CHECKPOINT_EVERY)
        # It may have been killed before its first step.
        if os.path.exists(f"{arm.out}/topology.yaml"):
            words = ["--resume", arm.out]


def show(name, result, deadline):
    in_time = "in time" if result["seconds"] <= deadline else "too late"
    print(f"{name:<10} {result['seconds']:>8.0f} s {in_time:<9} {result['cost']:>8.2f} "
          f"{result['again']:>6} {result['taken']:>6}", flush=True)


def main():
    troupe, small, _ = runs.arguments(__doc__)
    iterations = 12 if small else 80
    dice = random.Random(2)
    cloud.require()
    print(f"{'':<10} {'time':>10} {'':<9} {'cost':>8} {'again':>6} {'taken':>6}")
    with tempfile.TemporaryDirectory(prefix="troupe-bench-burst-") as folder:
        runs.write_topology(folder, TOPOLOGY, iterations=iterations,
                            checkpoints=f"{CHECKPOINT_EVERY} iterations")
        zones, losses = trace(3600, dice)
        arm = lambda name: Arm(troupe, folder, name, zones, losses)  # noqa: E731
        by_itself = alone(arm("alone"))
        deadline = by_itself["seconds"] * 0.5
        budget = by_itself["seconds"] * 0.01 * FIXED_NODES
        print(f"deadline {deadline:.0f} s, budget {budget:.2f}")
        show("alone", by_itself, deadline)
        results = [by_itself]
        for name, way in {
                "burst": lambda made: burst(made, round(deadline), round(budget, 2)),
                "fixed": lambda made: fixed(made, FIXED_NODES),
                "restart": lambda made: restart(made, FIXED_NODES)}.items():
            results.append(way(arm(name)))
            show(name, results[-1], deadline)
        states = {result["state"] for result in results}
        if results[1]["cost"] > budget:
            sys.exit("the burst has cost more than its budget")
    if len(states) != 1:
        sys.exit(f"the runs end in different states: {states}")


if __name__ == "__main__":
    main()
