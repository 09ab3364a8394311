#!/usr/bin/env python3
"""Prints what scikit-learn's Gaussian process says of the places in tests/study/gaussian_process_test.cpp.

usage: tests/oracle/gaussian_process.py

Each line: mean and standard deviation at a place, then the logarithm of the likelihood. For words, which
scikit-learn has none of, the same formulas by NumPy.
"""

import numpy as np
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import ConstantKernel, Matern

PLACES = np.array([[0.1, 0.2], [0.4, 0.9], [0.7, 0.3], [0.95, 0.6], [0.25, 0.55]])
VALUES = np.array([0.8, -0.5, 1.2, -1.4, 0.1])
ASKED = np.array([[0.1, 0.2], [0.5, 0.5], [0.9, 0.05]])
LENGTHS, SIGNAL, NOISE = np.array([0.3, 0.8]), 1.7, 0.01

model = GaussianProcessRegressor(ConstantKernel(SIGNAL) * Matern(LENGTHS, nu=2.5), alpha=NOISE, optimizer=None)
model.fit(PLACES, VALUES)
for mean, deviation in zip(*model.predict(ASKED, return_std=True)):
    print(f"{mean:.12f} {deviation:.12f}")
print(f"{model.log_marginal_likelihood_value_:.12f}\n")

WORDS = np.array([0, 1, 0, 2, 1])
LENGTHS3 = np.array([0.3, 0.8, 0.6])


def kernel(a, words_a, b, words_b):
    squares = (((a[:, None] - b[None]) / LENGTHS3[:2]) ** 2).sum(-1)
    squares += (words_a[:, None] != words_b[None]) / LENGTHS3[2] ** 2
    r = np.sqrt(5 * squares)
    return SIGNAL * (1 + r + r * r / 3) * np.exp(-r)


covariance = kernel(PLACES, WORDS, PLACES, WORDS) + NOISE * np.eye(5)
asked_words = np.array([1, 0, 2])
towards = kernel(ASKED, asked_words, PLACES, WORDS)
means = towards @ np.linalg.solve(covariance, VALUES)
variances = SIGNAL - np.einsum("ij,ji->i", towards, np.linalg.solve(covariance, towards.T))
for mean, variance in zip(means, variances):
    print(f"{mean:.12f} {np.sqrt(variance):.12f}")
likelihood = -0.5 * (VALUES @ np.linalg.solve(covariance, VALUES) + np.linalg.slogdet(covariance)[1] + 5 * np.log(2 * np.pi))
print(f"{likelihood:.12f}")
