#!/usr/bin/python3
"""How far off `troupe plan` is, with nodes that have shares of a processor (cloud.py).

usage: forecast.py TROUPE [--small]

`troupe plan` measures gan3d_12 on one node with 0.3 of a processor. Then runs get 1 and 2 nodes like
it, and as many of a zone whose nodes have half of that. Printed are, of each run, events per second once all have
come and micro-batches are shared out by speed, time and cost of the whole run as the cloud counts
it, each beside the forecast: the mean of one made before the run and one made behind it, as the
machine may become faster or slower meanwhile. Every run has to end in the same state. Needs root.
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile

import cloud
import runs

TOPOLOGY = """name: forecast
model: {zoo: gan3d_12}
data:
  {train: synthetic, synthetic: {events: 800, seed: 1}, test_one_in: 0, preprocessing: {power: 0.35}}
train: {epochs: 1000, iterations: ITERATIONS, micro_batch: 4, micro_batches: 48, seed: 1}
actors: {checkpointer: {every: none}, validator: {every: none}, monitor: {listen: none}}
"""
SHARE = 0.3
ZONES = {"quick": {"share": SHARE, "prices": [[0, 1.0]], "starts_in": 1.0},
         "slow": {"share": SHARE / 2, "prices": [[0, 0.4]], "starts_in": 1.0}}


def pools(made, nodes):
    return [made.pool("quick", nodes=nodes, most=nodes, starts_in="20 s"),
            made.pool("slow", nodes=nodes, most=nodes, speed=0.5, starts_in="20 s")]


def words(made, nodes, port):
    return ["--set", f"cluster.pools={json.dumps(pools(made, nodes))}",
            "--set", f"cluster.listen=127.0.0.1:{port}"]


def plan(troupe, folder, made, nodes, measured):
    """Events per second, seconds and cost that are forecast for so many nodes of each zone."""
    command = [troupe, "plan", f"{folder}/run.yaml", "--json", "--iterations", str(measured),
               "--log-level", "warning", *words(made, nodes, runs.free_port())]
    group = f"plan-{os.getpid()}"
    end = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False,
                         preexec_fn=cloud.limited(group, SHARE))
    cloud.end_group(group)
    if end.returncode != 0:
        sys.exit(f"{end.stderr}\ntroupe plan ended with {end.returncode}")
    lines = json.loads(end.stdout.splitlines()[-1])["lines"]
    line = next(line for line in lines if set(line["nodes"].values()) == {nodes})
    return line["events_per_second"], line["expected"]["seconds"], line["expected"]["cost"]


def steady_rate(out, members):
    """Events per second of the run's last half, which has to be that of all members."""
    steps, viewed = [], 1
    with open(f"{out}/metrics.jsonl") as file:
        for record in map(json.loads, file):
            if record["kind"] == "view":
                viewed, steps = len(record["fields"]["members"]), []
            elif record["kind"] == "step":
                steps.append((record["time"], record["events"]))
    if viewed != members:
        sys.exit(f"{out}: {viewed} members at the end, and {members} were asked for")
    half = steps[len(steps) // 2:]
    return sum(events for _, events in half[1:]) / 4 / (half[-1][0] - half[0][0])


def truth(troupe, folder, name, made, nodes):
    """Events per second, seconds, cost and state of a run with so many nodes of each zone."""
    out, before = f"{folder}/{name}", made.total_cost()
    program = runs.Program([troupe, "run", f"{folder}/run.yaml", "--out", out,
                            *words(made, nodes, runs.free_port())], folder)
    program.finish()
    summary = runs.summary_of(out)
    cost = made.total_cost() - before
    return steady_rate(out, 2 * nodes), summary["bill"]["seconds"], cost, summary["state_hash"]


def main():
    troupe, small, _ = runs.arguments(__doc__)
    iterations, rounds, measured = (40, 1, 3) if small else (160, 1, 8)
    cloud.require()
    states, errors = set(), {"events/s": [], "time": [], "cost": []}
    print(f"{'nodes':<20} {'':>9} {'forecast':>9} {'truth':>9} {'error':>7}")
    with tempfile.TemporaryDirectory(prefix="troupe-bench-forecast-") as folder:
        runs.write_topology(folder, TOPOLOGY, iterations=iterations)
        made = cloud.Cloud(f"{folder}/cloud", ZONES)
        for number in range(rounds):
            for nodes in (1, 2):
                before = plan(troupe, folder, made, nodes, measured)
                *all_found, state = truth(troupe, folder, f"{number}-{nodes}", made, nodes)
                behind = plan(troupe, folder, made, nodes, measured)
                states.add(state)
                for what, *forecasts, found in zip(errors, before, behind, all_found):
                    forecast = statistics.mean(forecasts)
                    error = forecast / found - 1
                    errors[what].append(abs(error))
                    print(f"{nodes} quick, {nodes} slow    {what:>9} {forecast:>9.4g} {found:>9.4g} "
                          f"{100 * error:>6.1f} %", flush=True)
    if len(states) != 1:
        sys.exit(f"the runs end in different states: {states}")
    for what, found in errors.items():
        print(f"{what}: off by {100 * statistics.median(found):.1f} % in the median, "
              f"{100 * max(found):.1f} % at most")


if __name__ == "__main__":
    main()
