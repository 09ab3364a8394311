#!/usr/bin/python3
"""roc_case.py FILE: compares the area in FILE, under the receiver operating characteristic of the
scores that follow it, with scikit-learn's. With --write it makes the file anew: scores of two
samples with ties, and weights of 0 to 3 as samples that are drawn again have them."""

import sys

import numpy as np
from sklearn.metrics import roc_auc_score


def made():
    random = np.random.default_rng(1)
    labels = random.permutation(np.repeat([0, 1], [70, 60]))
    weights = random.integers(0, 4, len(labels))
    # Few digits, so that many are equal and floats hold them exactly.
    scores = np.round((labels * 0.4 + random.normal(size=len(labels))) * 8) / 8
    return labels, weights, scores


def main():
    path = sys.argv[1]
    if "--write" in sys.argv:
        labels, weights, scores = made()
        area = roc_auc_score(labels, scores, sample_weight=weights)
        with open(path, "w") as file:
            print(repr(float(area)), file=file)
            for line in zip(labels, weights, scores):
                print(*line, file=file)
    with open(path) as file:
        stored = float(file.readline())
        labels, weights, scores = np.loadtxt(file, unpack=True)
    area = roc_auc_score(labels, scores, sample_weight=weights)
    if abs(area - stored) > 1e-12:
        sys.exit(f"{path} has the area {stored}, scikit-learn finds {area}")
    print("the stored area is scikit-learn's")


main()
