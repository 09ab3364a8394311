#!/usr/bin/python3
"""Prints the numbers of tests/pipeline/image_judge_test.cpp, with numpy and scipy: a classifier of
images of 2 x 2 cells with 3 hidden values and 3 classes, 30 images of data and 25 generated ones."""

import numpy as np
from scipy import linalg


def images(count, of_event, of_cell, modulus):
    return np.float64([[(i * of_event + k * of_cell) % modulus / (modulus - 1) for k in range(4)]
                       for i in range(count)])


kernel = np.float64([[((5 * j + 3 * u) % 7 - 3) / 4 for u in range(3)] for j in range(4)])
bias = np.float64([0.1, -0.2, 0.3])
scores = np.float64([[((u + 2 * c) % 3 - 1) * 2 for c in range(3)] for u in range(3)])
offsets = np.float64([-0.2, 0.4, 0.3])


def classify(cells):
    features = np.maximum(cells @ kernel + bias, 0)
    score = features @ scores + offsets
    probability = np.exp(score - score.max(1, keepdims=True))
    probability /= probability.sum(1, keepdims=True)
    return features, probability.argmax(1), probability.max(1)


def frechet(a, b):
    of_a, of_b = np.cov(a, rowvar=False), np.cov(b, rowvar=False)
    root = linalg.sqrtm(of_a @ of_b)
    return np.sum((a.mean(0) - b.mean(0)) ** 2) + np.trace(of_a + of_b - 2 * root.real)


data, generated = classify(images(30, 7, 5, 11)), classify(images(25, 3, 2, 13))
shares = [np.bincount(side[1], minlength=3) / len(side[1]) for side in (data, generated)]
print("classes of the data", np.bincount(data[1], minlength=3))
print("classes of the generated", np.bincount(generated[1], minlength=3))
print("judge_frechet", repr(frechet(data[0], generated[0])))
print("judge_confidence", repr(100 * generated[2].mean()), "of the data", repr(100 * data[2].mean()))
print("judge_classes", repr(100 * np.abs(shares[0] - shares[1]).sum() / 2))
