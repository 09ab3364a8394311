#!/usr/bin/python3
"""The model of docs/performance.md: how training scales with members, up to 1,024.

usage: scaling_model.py [--rate BYTES_PER_S] [--delay S] [--bytes PER_ELEMENT] [--sigma SHARE]
                        [--waiting]

Prints, for gan3d_25 with as many events per member whatever their number (weak scaling): seconds of
an iteration, how much of it waits for sums and for the slowest member, and the efficiency. The
defaults of the steps were measured as docs/performance.md says.
"""

import argparse
import statistics

LEAST_BUCKET, SEGMENT = 4096, 1 << 20  # bytes; pipeline/steps/buckets.h, actors.reducer.segment

# Of a step: elements of its sums; seconds a member computes, and of them those after its first
# buckets leave; the share of the elements that leaves only when all is computed; seconds of what
# can be computed while they are reduced.
STEPS = {
    "d_real": dict(elements=73_000, compute=0.285, backward=0.2, late=0.5, meanwhile=0.035),
    "d_fake": dict(elements=73_000, compute=0.333, backward=0.2, late=0.5, meanwhile=0.041),
    "g, first": dict(elements=873_000, compute=0.348, backward=0.08, late=0.78, meanwhile=0.0),
    "g, last": dict(elements=873_000, compute=0.332, backward=0.08, late=0.78, meanwhile=0.285),
}
APPLY = 0.012  # seconds of an iteration


LEAST_ROWS = 4  # pipeline/steps/ring_rows.h


def ring_seconds(members, size, bucket, delay, rate):
    """All-reduce of `size` bytes in buckets, in one ring or in rows of about one length: turns of
    rows and of columns, each as long as an edge is busy, or as a bucket takes alone, whichever is
    more."""
    def seconds(rows):
        longest = -(-members // rows)
        alone = delay + bucket / rate
        return (2 * (longest - 1) * max(size / longest / rate, alone) +
                2 * (rows - 1) * max(size / longest / rows / rate, alone))

    rows = round(members**0.5)
    has_rows = rows >= LEAST_ROWS and members >= rows * LEAST_ROWS
    return min(seconds(1), seconds(rows)) if has_rows else seconds(1)


def exposed_seconds(step, members, arguments):
    """Waiting for the sums of a step, whose early part may still be under way with the late one."""
    size = step["elements"] * arguments.bytes
    bucket = max(LEAST_BUCKET, min(SEGMENT, size / members))
    late, whole = (ring_seconds(members, part, bucket, arguments.delay, arguments.rate)
                   for part in (size * step["late"], size))
    if arguments.waiting:
        return whole
    return max(0.0, max(late, whole - step["backward"]) - step["meanwhile"])


def slowest(members, sigma):
    """By how much the slowest of N is expected to be slower than one, of normal times (Blom)."""
    if members == 1:
        return 0.0
    return sigma * statistics.NormalDist().inv_cdf((members - 0.375) / (members + 0.25))


def iteration(members, arguments):
    """Seconds: its own work, waiting for sums, waiting for the slowest member."""
    compute = sum(step["compute"] for step in STEPS.values())
    exposed = sum(exposed_seconds(step, members, arguments) for step in STEPS.values())
    return compute + APPLY, exposed, compute * slowest(members, arguments.sigma)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rate", type=float, default=1.25e9, help="bytes per second of an edge")
    parser.add_argument("--delay", type=float, default=100e-6, help="seconds of a message")
    parser.add_argument("--bytes", type=float, default=8, help="of an element: 8, 4, 2, 1")
    parser.add_argument("--sigma", type=float, default=0.01, help="of a step's time, relative")
    parser.add_argument("--waiting", action="store_true", help="actors.replica.overlap: false")
    arguments = parser.parse_args()
    print("| members | iteration, s | waiting for sums, ms | for the slowest, ms | efficiency |")
    print("|---|---|---|---|---|")
    for power in range(11):
        own, exposed, waiting = iteration(2**power, arguments)
        total = own + exposed + waiting
        print(f"| {2**power} | {total:.3f} | {1e3 * exposed:.0f} | {1e3 * waiting:.0f} | "
              f"{100 * own / total:.1f} % |")


if __name__ == "__main__":
    main()
