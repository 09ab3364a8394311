#!/usr/bin/python3
"""How much of its members a study leaves idle, beside the same trials on blocks that are fixed.

usage: idle.py TROUPE [--small]

A study of 16 trials with halving over four members, in three ways: on four blocks of one member each, as a queue has them;
with members that move to the trials that go on; and so, while one member after the other is killed and another one comes.
A member is busy from the first step that it makes in a trial to the trial's last one, or until it is lost; that it validates
or waits between two steps counts as busy. All else of the study's time, from its start to its end, is idle: there is no
trial for it, it starts, learns or ends. All studies have to end in one table, by hash. Three rounds, the ways in turns;
--small: one of the toy. Members share the processors of this machine, so seconds tell little where these are fewer.
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

MEMBERS = 4
TOPOLOGY = """name: idle
model: {zoo: MODEL}
data: {train: synthetic, synthetic: {events: EVENTS, seed: 1}, preprocessing: {power: POWER}}
train: {epochs: 18, micro_batch: 8, micro_batches: 4, seed: 1}
actors: {replica: {count: 1, threads: 1}, checkpointer: {every: 1 epoch}, validator: {every: 1 epoch, events: 60}}
"""
STUDY = """topology: run.yaml
space:
  train.learning_rate.g: {log: [1e-4, 1e-2]}
  train.learning_rate.d: {log: [1e-4, 1e-2]}
objective: {minimise: merit}
method: {kind: random, trials: 16}
stop: {kind: halving, from: 2 epochs, keep_one_in: 3}
parallel: 4
"""


def lines_of(path):
    try:
        with open(path) as file:
            return [json.loads(line) for line in file if line.endswith("\n")]
    except OSError:
        return []


def busy_seconds(out):
    """The time of all members together, from the first step of each process of a run to its last one."""
    busy = 0.0
    for trial in os.listdir(f"{out}/trials"):
        last, members = None, 1
        for line in lines_of(f"{out}/trials/{trial}/metrics.jsonl"):
            if line["kind"] == "run":
                last, members = None, 1
            if line["kind"] not in ("step", "view"):
                continue
            if last is not None:
                busy += max(line["time"] - last, 0.0) * members
            last = line["time"]
            if line["kind"] == "view":
                members = len(line["fields"]["members"])
    return busy


def members_now(out):
    """Process ids of members that train."""
    found = []
    for trial in os.listdir(f"{out}/trials") if os.path.exists(f"{out}/trials") else []:
        try:
            with open(f"{out}/trials/{trial}/nodes.json") as file:
                nodes = json.load(file)
        except (OSError, ValueError):
            continue
        for node in nodes:
            if node["role"] == "member" and node["state"] == "running":
                found.append(node["pid"])
    return found


def is_ours(pid, folder):
    """Whether it is a process of this bench, which has the folder in its environment."""
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            return f"TROUPE_BENCH_FOLDER={folder}".encode() in file.read().split(b"\0")
    except OSError:
        return False


def table_of(program):
    """The trials without what depends on the machine."""
    report = json.loads(program.text().splitlines()[-1])
    return [[trial["state"], trial["rung"], trial["settings"], [run["state_hash"] for run in trial["runs"]]]
            for trial in report["trials"]], report


def study(troupe, folder, name, more, kill_every=None):
    """Its table, its seconds, its idle share and how many members were killed."""
    with open(f"{folder}/{name}.yaml", "w") as file:
        file.write(STUDY + more)
    out, begin, killed = f"{folder}/{name}", time.monotonic(), 0
    program = runs.Program([troupe, "study", f"{folder}/{name}.yaml", "--out", out, "--json", "--log-level", "warning"],
                           folder, TROUPE_BENCH_FOLDER=folder)
    draw, next_kill = random.Random(31), begin + (kill_every or 0) / 2
    while program.runs():
        time.sleep(0.05)
        if kill_every is None or time.monotonic() < next_kill:
            continue
        pids = [pid for pid in members_now(out) if is_ours(pid, folder)]
        if pids:
            os.kill(draw.choice(pids), signal.SIGKILL)
            killed += 1
            next_kill = time.monotonic() + kill_every
    seconds = time.monotonic() - begin
    program.finish()
    table, report = table_of(program)
    if any(trial["state"] not in ("done", "left") for trial in report["trials"]):
        program.fail("a trial has failed")
    return table, seconds, 1 - busy_seconds(out) / (MEMBERS * seconds), killed


def spread(values, unit, digits=0):
    return f"{statistics.median(values):.{digits}f} {unit} [{min(values):.{digits}f}, {max(values):.{digits}f}]"


def main():
    troupe, small, _ = runs.arguments(__doc__)
    with tempfile.TemporaryDirectory() as folder:
        runs.write_topology(folder, TOPOLOGY, model="toy" if small else "gan3d_12", events=128 if small else 500,
                            power=1 if small else 0.35)
        first, rounds = None, 1 if small else 3
        ways = {"blocks": ("", None), "moving": (f"workers: {MEMBERS}\n", None),
                "killed": (f"workers: {MEMBERS}\n", 5 if small else 20)}
        found = {name: [] for name in ways}
        print(f"16 trials with halving over {MEMBERS} members on {os.cpu_count()} processors; medians of {rounds} rounds "
              "in turns [lowest, highest]", flush=True)
        for i in range(rounds):
            for name, (more, kill_every) in ways.items():
                table, *figures = study(troupe, folder, f"{name}{i}", more, kill_every)
                first = first or table
                if table != first:
                    sys.exit(f"{name}: another table\n{table}\n{first}")
                found[name].append(figures)
        for name, all_figures in found.items():
            seconds, idle, killed = zip(*all_figures)
            print(f"{name}: {spread(seconds, 's', 1)}, idle {spread([100 * share for share in idle], '%')}, "
                  f"{spread(killed, 'members')} killed")


main()
