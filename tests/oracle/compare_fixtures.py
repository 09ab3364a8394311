#!/usr/bin/python3
"""compare_fixtures.py OLD.txt NEW.txt: fails where two fixtures of make_oracle.py differ."""

import sys

TOLERANCE = 1e-6  # relative to the tensor's norm, or to the loss


def read(path):
    with open(path) as file:
        return [line.split() for line in file]


def main():
    old, new = read(sys.argv[1]), read(sys.argv[2])
    if len(old) != len(new):
        sys.exit(f"{sys.argv[1]} has {len(old)} lines, the new one {len(new)}")
    slot = "?"
    for a, b in zip(old, new):
        if a[0] in ("oracle", "slot"):
            slot = " ".join(a[1:])
            if a != b:
                sys.exit(f"{' '.join(a)} was expected, found {' '.join(b)}")
            continue
        names = 2 if a[0] == "loss" else 4
        if a[:names] != b[:names]:
            sys.exit(f"slot {slot}: {a[:names]} was expected, found {b[:names]}")
        values = [(float(x), float(y)) for x, y in zip(a[names:], b[names:])]
        size = abs(values[0][0])
        for x, y in values:
            if not abs(x - y) <= TOLERANCE * size:  # also where one of them is no number
                sys.exit(f"slot {slot}, {' '.join(a[:names])}: {x} was expected, found {y}")
    print(f"{sys.argv[1]}: as PyTorch finds it now")


if __name__ == "__main__":
    main()
