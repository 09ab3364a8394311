#!/usr/bin/python3
"""The cost of members that may come and go: while nothing happens, and when one comes.

usage: elastic.py TROUPE [--small]

Pairs of runs of gan3d_25 with two workers, in turns: as it is, and with its membership fixed
(no places for others, nobody replaced, work never shared out anew); the ratio of their events per
second. Then runs that a third process joins in the middle: how long it takes from its start until
a step is made with what it computes, how long all were halted, and the time between steps before
it came, while it learned, and around its View; what memory a member kept for others then, and what
its process had at most. Last come planned changes where nobody takes another's processor: one member
has a core for itself, one that has the other core joins it, and leaves again. The longest iteration
around such a change stands against the longest of its neighbours. Every run has to end in the same
state.
"""

import json
import os
import statistics
import tempfile
import time

import runs

TOPOLOGY = """name: elastic
model: {zoo: gan3d_25, kernels: fastest}
data: {train: synthetic, synthetic: {events: 200, seed: 1}}
train: {epochs: 1000, iterations: ITERATIONS, micro_batch: 1, micro_batches: 6, seed: 1}
actors: {checkpointer: {every: none}, validator: {every: none}}
"""
SLOTS = 4
FIXED = ["--set", "cluster.joiners=0", "--set", "cluster.failure.restart=0",
         "--set", "cluster.rebalance=false"]


def summary_of(program, folder, out):
    """The summary of an ended run. Fails where its state is another than the first run's."""
    summary = runs.summary_of(out)
    expected = f"{folder}/state_hash"
    if not os.path.exists(expected):
        with open(expected, "w") as file:
            file.write(summary["state_hash"])
    with open(expected) as file:
        if summary["state_hash"] != file.read():
            program.fail(f"{out} ends in another state: {summary}")
    return summary


def start(troupe, folder, out, more, workers=2, enter=None):
    command = [troupe, "run", f"{folder}/run.yaml", "--out", out, "--workers", str(workers), *more]
    return runs.Program(command, folder, enter)


def rate(troupe, folder, name, more):
    out = f"{folder}/{name}"
    program = start(troupe, folder, out, more)
    program.finish()
    return summary_of(program, folder, out)["events_per_second"]


def peak_of_members(out):
    """The memory of the largest member process so far, in bytes; 0: nothing is known."""
    try:
        with open(f"{out}/nodes.json") as file:
            pids = [node["pid"] for node in json.load(file) if node["role"] == "member"]
    except (OSError, ValueError):
        return 0
    peak = 0
    for pid in pids:
        try:
            with open(f"/proc/{pid}/status") as status:
                lines = [line.split() for line in status]
        except OSError:  # it has ended
            continue
        peak = max([peak, *(int(words[1]) * 1024 for words in lines if words[:1] == ["VmHWM:"])])
    return peak


def with_join(troupe, folder, number, iterations):
    """The figures of one join that the docstring names, in seconds and bytes."""
    out = f"{folder}/join-{number}"
    address = f"tcp://127.0.0.1:{runs.free_port()}"
    run = start(troupe, folder, out, ["--set", "cluster.listen=" + address[6:]])
    tail, seen = runs.Tail(f"{out}/metrics.jsonl"), []
    joiner, joined_at, peak, looks = None, None, 0, 0

    def look():
        now = time.monotonic()
        seen.extend((now, json.loads(line)) for line in tail.lines())

    while run.runs():
        look()
        looks += 1
        if looks % 200 == 0:
            peak = max(peak, peak_of_members(out))
        if joiner is None and len(seen) > iterations * SLOTS // 4:
            joined_at = time.monotonic()
            joiner = runs.Program([troupe, "join", address], folder)
        time.sleep(0.001)
    look()
    run.finish()
    if joiner is None:
        run.fail("it was over before one could join")
    joiner.finish()
    summary_of(run, folder, out)
    views = [(now, line) for now, line in seen if line["kind"] == "view"]
    if len(views) != 1:
        run.fail(f"{len(views)} changes of the View")
    viewed, line = views[0]
    view = line["fields"]
    told = [(now, line["step"]) for now, line in seen if line["kind"] == "step"]
    computes_from = (view["first_step"] // SLOTS + 2) * SLOTS
    gaps = [(b[0], b[0] - a[0]) for a, b in zip(told, told[1:])]
    around = [gap for now, gap in gaps if abs(now - viewed) < 1.0]
    return {
        "contributes": min(now for now, step in told if step >= computes_from) - joined_at,
        "halted": view["halted_seconds"],
        "kept": view["kept_bytes"],
        "peak": peak,
        "before": [gap for now, gap in gaps if now < joined_at],
        "learning": [gap for now, gap in gaps if joined_at <= now < viewed],
        "worst": max(around, default=0.0),
    }


def planned(troupe, folder, number):
    """Of a join and of a leave: the longest iteration around the change as a part of the longest of
    three before and three after. An iteration is taken from one first step to the next, whose
    gradients nobody waits for: they are computed while the last step before them is summed."""
    out = f"{folder}/planned-{number}"
    address = f"tcp://127.0.0.1:{runs.free_port()}"
    run = start(troupe, folder, out, ["--set", "cluster.listen=" + address[6:]], 1,
                lambda: os.sched_setaffinity(0, {0}))
    os.sched_setaffinity(0, {1})
    tail, seen, joiner, leaves = runs.Tail(f"{out}/metrics.jsonl"), [], None, False
    while run.runs():
        now = time.monotonic()
        seen.extend((now, json.loads(line)) for line in tail.lines())
        steps = sum(line["kind"] == "step" for _, line in seen)
        if joiner is None and steps > 6 * SLOTS:
            joiner = runs.Program([troupe, "join", address], folder)
        joins = [line for _, line in seen if line["kind"] == "view"]
        if joins and not leaves and steps > joins[0]["fields"]["first_step"] + 8 * SLOTS:
            joiner.process.terminate()
            leaves = True
        time.sleep(0.001)
    os.sched_setaffinity(0, {0, 1})
    run.finish()
    joiner.finish()
    summary_of(run, folder, out)
    told = {line["step"] // SLOTS: now for now, line in seen
            if line["kind"] == "step" and line["step"] % SLOTS == 0}
    took = {number: told[number] - told[number - 1] for number in told if number - 1 in told}
    views = [line["fields"]["first_step"] // SLOTS for _, line in seen if line["kind"] == "view"]
    if len(views) < 2:
        run.fail("it was over before one had joined and left")
    parts = []
    for first, last in ((views[0], views[0]), (views[1], views[-1])):
        around = range(first, last + 4)
        beside = [*range(first - 3, first), *range(last + 4, last + 7)]
        parts.append(max(took[i] for i in around) / max(took[i] for i in beside))
    return parts


def show(name, seconds):
    if not seconds:  # a busy machine may show all steps of a part at once
        return
    ordered = sorted(seconds)
    print(f"{name:<52} {len(ordered):>5} {ordered[0] * 1e3:>8.0f} "
          f"{statistics.median(ordered) * 1e3:>8.0f} {ordered[-1] * 1e3:>8.0f}", flush=True)


def main():
    troupe, small, _ = runs.arguments(__doc__)
    pairs, joins, iterations = (1, 1, 6) if small else (10, 8, 16)
    changes, changed = (1, 28) if small else (8, 32)
    with tempfile.TemporaryDirectory(prefix="troupe-bench-elastic-") as folder:
        runs.write_topology(folder, TOPOLOGY, iterations=iterations)
        ratios = []
        for number in range(pairs):
            both = [("elastic", []), ("fixed", FIXED)]
            rates = {}
            for name, more in both if number % 2 == 0 else reversed(both):
                rates[name] = rate(troupe, folder, f"{name}-{number}", more)
            ratios.append(rates["elastic"] / rates["fixed"])
        ordered = sorted(ratios)
        # The second of ten and the last but one enclose the median with 97.9 %.
        within = ordered[1:-1] if len(ordered) > 2 else ordered
        print(f"events/s, elastic of fixed: {pairs} pairs, median {statistics.median(ratios):.4f} "
              f"[{within[0]:.4f}, {within[-1]:.4f}]", flush=True)
        found = [with_join(troupe, folder, number, iterations) for number in range(joins)]
        print(f"{'':<52} {'':>5} {'least':>8} {'median':>8} {'most':>8}  ms")
        show("a step with what the newcomer computes, after", [one["contributes"] for one in found])
        show("all halted for its View", [one["halted"] for one in found])
        show("longest between two steps within 1 s of it", [one["worst"] for one in found])
        show("between steps before it came", sum((one["before"] for one in found), []))
        show("between steps while it learned", sum((one["learning"] for one in found), []))
        for key, name in (("kept", "kept for others then, by the member that kept most"),
                          ("peak", "peak memory of the largest member")):
            ordered = sorted(one[key] for one in found)
            print(f"{name:<52} {len(ordered):>5} {ordered[0] / 1e6:>8.2f} "
                  f"{statistics.median(ordered) / 1e6:>8.2f} {ordered[-1] / 1e6:>8.2f} MB")
    with tempfile.TemporaryDirectory(prefix="troupe-bench-elastic-") as folder:
        runs.write_topology(folder, TOPOLOGY, iterations=changed)
        found = [planned(troupe, folder, number) for number in range(changes)]
        for name, parts in zip(("join", "leave"), zip(*found)):
            ordered = sorted(parts)
            print(f"longest iteration around a planned {name:<5} of its neighbours' "
                  f"{len(ordered):>6} {ordered[0]:>8.2f} {statistics.median(ordered):>8.2f} "
                  f"{ordered[-1]:>8.2f}", flush=True)


if __name__ == "__main__":
    main()
