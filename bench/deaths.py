#!/usr/bin/python3
"""How long training stands still when a worker is killed, and what is lost.

usage: deaths.py TROUPE [--small]

Runs of gan3d_25 with three workers, of which two are killed (kill -9) one after the other at random
moments; every run must end in the state of one that nothing happened to, with every step told once.
Timed from the kill to the first step that is committed in another View, beside the median time
between steps of the same runs. Beside it PyTorch's torchrun with DistributedDataParallel over Gloo
(elastic_peer.py), which starts all workers anew from a checkpoint of every tenth iteration: from the
kill to the next iteration, and how many are made again. With --small the model is gan3d_12.
"""

import json
import os
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import time

import runs

HERE = os.path.dirname(os.path.abspath(__file__))
WORKERS = 3

TOPOLOGY = """name: deaths
model: {zoo: MODEL, kernels: fastest}
data: {train: synthetic, synthetic: {events: 200, seed: 1}, preprocessing: {power: POWER}}
train: {epochs: 1000, iterations: ITERATIONS, micro_batch: 1, micro_batches: 3, seed: 1}
actors: {checkpointer: {every: none}, validator: {every: none}}
"""


def children_with(words, mark):
    """Process ids of this bench's processes whose command line has the words."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                line = file.read().replace(b"\0", b" ").decode()
            with open(f"/proc/{pid}/environ", "rb") as file:
                marked = f"TROUPE_BENCH={mark}".encode() in file.read().split(b"\0")
        except OSError:
            continue
        if marked and words in line:
            found.append(int(pid))
    return sorted(found)


def start(command, folder):
    return runs.Program(command, folder, TROUPE_BENCH=folder, OMP_NUM_THREADS="1")


def undisturbed(troupe, folder):
    start([troupe, "run", f"{folder}/run.yaml", "--out", f"{folder}/whole"], folder).finish()
    return runs.summary_of(f"{folder}/whole")


def with_deaths(troupe, folder, number, whole, dice):
    """Seconds from each kill to the next step, and between steps without any."""
    out = f"{folder}/{number}"
    command = [troupe, "run", f"{folder}/run.yaml", "--out", out, "--workers", str(WORKERS)]
    process = start(command, folder)
    tail, told, between, waits = runs.Tail(f"{out}/metrics.jsonl"), [], [], []
    last = killed = None  # when the newest step was seen, and when one was killed since
    viewed, next_step, next_kill = False, None, None  # from which step on, and then when
    while process.runs():
        now = time.monotonic()
        for line in map(json.loads, tail.lines()):
            viewed = viewed or line["kind"] == "view"
            if line["kind"] != "step":
                continue
            told.append(line["step"])
            if killed is None and last is not None:
                between.append(now - last)
            if next_step is None or (killed is not None and viewed):
                if killed is not None:
                    waits.append(now - killed)
                killed, next_step = None, line["step"] + dice.randint(1, 5)
            elif killed is None and next_kill is None and line["step"] >= next_step:
                next_kill = now + dice.random() * (now - last)
            last = now
        if next_kill is not None and now > next_kill and len(waits) < WORKERS - 1:
            victims = children_with("--supervised", folder)
            if victims:  # else the run is just over
                killed, viewed, next_kill = time.monotonic(), False, None
                os.kill(dice.choice(victims), signal.SIGKILL)
        time.sleep(0.001)
    told += [line["step"] for line in map(json.loads, tail.lines()) if line["kind"] == "step"]
    process.finish()
    summary = runs.summary_of(out)
    if summary["state_hash"] != whole["state_hash"]:
        process.fail(f"run {number}: {summary}")
    if told != list(range(whole["steps"])) or summary["ledger"] != whole["ledger"]:
        process.fail(f"run {number}: steps or events are missing, or told twice: {told}")
    return waits, between


def torchrun_with_deaths(folder, kills, dice):
    """Seconds from each kill to the next iteration, iterations made again, and between iterations."""
    os.makedirs(f"{folder}/torch")
    command = ["/usr/bin/python3", f"{HERE}/elastic_peer.py", "--launch", str(WORKERS), "gan3d_25",
               str(WORKERS), f"{folder}/torch"]
    process = start(command, folder)
    tail, between, waits, repeated = runs.Tail(f"{folder}/torch/iterations"), [], [], []
    last = killed = next_kill = newest = None
    while process.runs() and len(waits) < kills:
        now = time.monotonic()
        for line in tail.lines():
            number = int(line)
            if killed is not None and number <= newest + 1:
                waits.append(now - killed)
                repeated.append(newest + 1 - number)
                killed, next_kill = None, now + dice.uniform(1.0, 3.0)
            elif killed is None and last is not None:
                between.append(now - last)
            next_kill = next_kill or now + dice.uniform(1.0, 3.0)
            last, newest = now, number
        if killed is None and next_kill is not None and now > next_kill:
            victims = children_with("elastic_peer.py gan3d_25", folder)
            if victims:
                killed = time.monotonic()
                os.kill(dice.choice(victims), signal.SIGKILL)
        time.sleep(0.001)
    if not process.runs():
        process.fail("torchrun ended")
    process.process.terminate()
    process.process.wait()
    return waits, repeated, between


def show(name, seconds):
    ordered = sorted(seconds)
    if not ordered:  # a run that was killed before it had made two
        print(f"{name:<46}     0", flush=True)
        return
    at = lambda share: 1e3 * ordered[min(len(ordered) - 1, int(share * len(ordered)))]  # noqa: E731
    print(f"{name:<46} {len(ordered):>5} {at(0):>9.0f} {statistics.median(ordered) * 1e3:>9.0f} "
          f"{at(0.9):>9.0f} {1e3 * ordered[-1]:>9.0f}", flush=True)


def main():
    troupe, small, _ = runs.arguments(__doc__)
    rounds, iterations, kills = (1, 24, 1) if small else (25, 12, 20)
    model, power = ("gan3d_12", "0.35") if small else ("gan3d_25", "1")
    dice = random.Random(1)
    print(f"{'':<46} {'':>5} {'least':>9} {'median':>9} {'90 %':>9} {'most':>9}  ms")
    with tempfile.TemporaryDirectory(prefix="troupe-bench-deaths-") as folder:
        runs.write_topology(folder, TOPOLOGY, iterations=iterations, model=model, power=power)
        whole = undisturbed(troupe, folder)
        waits, between = [], []
        for number in range(rounds):
            more_waits, more_between = with_deaths(troupe, folder, number, whole, dice)
            waits += more_waits
            between += more_between
        if not waits:
            sys.exit(f"no worker was killed while it trained, in {rounds} runs: they are too short")
        show("Troupe: kill -9 to the next step", waits)
        show("Troupe: between steps", between)
        print(f"  {rounds} runs, all in the state of one without deaths; 0 steps made again")
        probe = subprocess.run(["/usr/bin/python3", "-c", "import torch.distributed.run"],
                               capture_output=True, check=False)
        if probe.returncode != 0:
            print("  PyTorch is missing: no peer")
            return
        peer, repeated, peer_between = torchrun_with_deaths(folder, kills, dice)
        show("torchrun: kill -9 to the next iteration", peer)
        show("torchrun: between iterations (4 steps)", peer_between)
        print(f"  iterations made again: {sum(repeated)} in {len(repeated)} deaths, "
              f"with a checkpoint every tenth")


if __name__ == "__main__":
    main()
