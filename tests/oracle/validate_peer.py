#!/usr/bin/python3
"""validate_peer.py TROUPE GENERATED DATA: computes the figures of `troupe validate` anew with numpy
and scipy, from two files of schema lcd-fixed, and compares. Shares no code with Troupe. Figures that
follow from drawn samples (uncertainties, floors) are computed from other draws, so they agree within
their own spread."""

import json
import subprocess
import sys

import h5py
import numpy as np
from scipy import linalg, stats
from scipy.ndimage import gaussian_filter
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import StratifiedKFold
from sklearn.neighbors import NearestNeighbors
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

HIT_GEV = 3e-4
EXACT = 1e-5  # relative; the program tells six digits


def read(path):
    with h5py.File(path) as file:
        cells = file["ECAL"][:].astype(np.float64)
        energy = file["target"][:].reshape(len(cells), -1)[:, 1].astype(np.float64)
    return cells, energy


def observables(cells, energy):
    n = len(cells)
    ecal = cells.sum((1, 2, 3))
    profiles = [cells.sum((2, 3)), cells.sum((1, 3)), cells.sum((1, 2))]
    found = {"response": ecal / energy, "ecal": ecal, "hits": (cells > HIT_GEV).sum((1, 2, 3)),
             "hottest": cells.reshape(n, -1).max(1) / ecal,
             "maximum": profiles[2].argmax(1)}
    moments = []
    for profile in profiles:
        index = np.arange(profile.shape[1])
        first = (profile * index).sum(1) / ecal
        second = (profile * (index - first[:, None]) ** 2).sum(1) / ecal
        moments += [first, second]
    third = profiles[2].shape[1] // 3
    found["depth"], found["length"] = moments[4], np.sqrt(moments[5])
    found["front"] = profiles[2][:, :third].sum(1) / ecal
    found["middle"] = profiles[2][:, third:2 * third].sum(1) / ecal
    found["back"] = profiles[2][:, 2 * third:].sum(1) / ecal
    found["centre_x"], found["centre_y"] = moments[0], moments[2]
    found["width_x"], found["width_y"] = np.sqrt(moments[1]), np.sqrt(moments[3])
    features = np.stack(moments + [ecal, energy, found["hits"], found["front"], found["middle"],
                                   found["back"]])
    return found, profiles, features


def separation(a, b):
    a, b = a / a.sum(), b / b.sum()
    filled = a + b > 0
    return 0.5 * np.sum((a - b)[filled] ** 2 / (a + b)[filled])


def round_range(values):
    """The bins of the report: the data and a quarter of their range on either side."""
    low, high = values.min(), values.max()
    width = high - low
    if width <= 1e-9 * high:
        width = high
    if width < 1e-9:
        width = 1.0
    step = 10.0 ** (np.floor(np.log10(width)) - 1)
    begin = np.floor((low - width / 4) / step) * step
    return max(begin, 0.0), np.ceil((high + width / 4) / step) * step


def histograms(a, b, bins=40):
    low, high = round_range(a)
    place = lambda v: np.clip(np.floor((v - low) / (high - low) * bins), 0, bins - 1).astype(int)
    return np.bincount(place(a), minlength=bins), np.bincount(place(b), minlength=bins)


def off(a, b):
    return 100.0 * np.abs(b - a).sum() / a.sum()


def upper(matrix):
    return matrix[np.triu_indices(len(matrix), 1)]


def frechet(a, b):
    c, d = np.cov(a.T), np.cov(b.T)
    mean = a.mean(0) - b.mean(0)
    return mean @ mean + np.trace(c + d - 2 * linalg.sqrtm(c @ d).real)


def kernel(a, b):
    k = lambda p, q: (p @ q.T / a.shape[1] + 1) ** 4
    n, m = len(a), len(b)
    kaa, kbb = k(a, a), k(b, b)
    return ((kaa.sum() - np.trace(kaa)) / n / (n - 1) + (kbb.sum() - np.trace(kbb)) / m / (m - 1)
            - 2 * k(a, b).mean())


def spectrum(cells):
    edges = 2.0 ** (np.arange(49) / 2 - 20)
    values = cells[cells >= edges[0]]
    return np.histogram(np.minimum(values, edges[-1] * 0.999), edges)[0] / len(cells)


def spread(histogram):
    place = np.arange(len(histogram))
    mean = (histogram * place).sum() / histogram.sum()
    return np.sqrt((histogram * (place - mean) ** 2).sum() / histogram.sum())


def ssim(a, b, span=1e-2):
    smooth = lambda p: np.stack([gaussian_filter(p[:, :, z], 1.5, truncate=3.5)
                                 for z in range(p.shape[2])], 2)
    m, n = smooth(a), smooth(b)
    va, vb, cov = smooth(a * a) - m * m, smooth(b * b) - n * n, smooth(a * b) - m * n
    c1, c2 = (0.01 * span) ** 2, (0.03 * span) ** 2
    found = (2 * m * n + c1) * (2 * cov + c2) / ((m**2 + n**2 + c1) * (va + vb + c2))
    edge = 5 if min(found.shape[:2]) > 11 else 0
    return found[edge:found.shape[0] - edge, edge:found.shape[1] - edge].mean()


def pairs_ssim(cells):
    some = cells[:64]
    return np.mean([ssim(some[i], some[i + 1]) for i in range(len(some) - 1)])


def bin_masks(energy, bins):
    low, high = bins
    edges = [low + (high - low) / 5 * i for i in range(5)] + [high]
    return lambda e: [(e >= edges[i]) & (e <= edges[i + 1]) for i in range(5)]


def merit_terms(a, b, masks):
    """keras/misc/TestingObjective.py: moments, profiles, sampling fraction, by bins of energy."""
    (cells_a, energy_a), (cells_b, energy_b) = a, b
    terms = []
    for in_a, in_b in zip(masks(energy_a), masks(energy_b)):
        of_a, profiles_a, features_a = observables(cells_a[in_a], energy_a[in_a])
        of_b, profiles_b, features_b = observables(cells_b[in_b], energy_b[in_b])
        rel = lambda x, y: np.abs(y - x) / np.abs(x)
        moments = rel(features_a[:6].mean(1), features_b[:6].mean(1)).mean()
        profiles = []
        for p, q in zip(profiles_a, profiles_b):
            p, q = p.mean(0), q.mean(0)
            large = p >= 1e-6 * p.sum()
            profiles.append(rel(p[large], q[large]).mean())
        resolution = ((of_b["response"].std() / of_b["response"].mean())
                      / (of_a["response"].std() / of_a["response"].mean()))
        terms.append([moments, np.mean(profiles),
                      rel(of_a["response"].mean(), of_b["response"].mean()), resolution,
                      off(profiles_a[2].mean(0), profiles_b[2].mean(0)),
                      np.mean([off(profiles_a[i].mean(0), profiles_b[i].mean(0)) for i in (0, 1)])])
    return np.mean(terms, 0)


def expected(data, generated):
    (cells_a, energy_a), (cells_b, energy_b) = data, generated
    a, profiles_a, features_a = observables(*data)
    b, profiles_b, features_b = observables(*generated)
    means_a, means_b = [p.mean(0) for p in profiles_a], [p.mean(0) for p in profiles_b]
    masks = bin_masks(energy_a, (energy_a.min(), energy_a.max()))
    moments, profiles, response, resolution, along, across = merit_terms(data, generated, masks)
    ordered = lambda p: np.sort(p, 1)[:, ::-1].mean(0)
    levels = 10.0 ** np.arange(-6, 1)
    above_a = np.array([(cells_a > t).sum() / len(cells_a) for t in levels])
    above_b = np.array([(cells_b > t).sum() / len(cells_b) for t in levels])
    told = above_a >= 0.1
    rms = lambda x, y: np.sqrt(np.mean((upper(np.corrcoef(x.T)) - upper(np.corrcoef(y.T))) ** 2))
    spectrum_a, spectrum_b = spectrum(cells_a), spectrum(cells_b)
    table_a = np.stack([np.asarray(v, float) for v in a.values()], 1)
    table_b = np.stack([np.asarray(v, float) for v in b.values()], 1)
    largest = np.abs(table_a).max(0)
    table_a, table_b = table_a / largest, table_b / largest
    some = lambda t: t[np.arange(min(len(t), 1000)) * len(t) // min(len(t), 1000)]
    ratio = lambda name: b[name].mean() / a[name].mean()
    width = lambda name: b[name].std() / a[name].std()
    found = {
        "response": ratio("response"), "response_width": width("response"),
        "resolution": resolution, "response_energy": 100 * response,
        "merit": moments + profiles + response, "merit_moments": moments,
        "merit_profiles": profiles,
        "longitudinal": off(means_a[2], means_b[2]), "transverse_x": off(means_a[0], means_b[0]),
        "transverse_y": off(means_a[1], means_b[1]), "longitudinal_energy": along,
        "transverse_energy": across,
        "sorted_layers": off(ordered(profiles_a[2]), ordered(profiles_b[2])),
        "maximum": b["maximum"].mean() - a["maximum"].mean(),
        "depth": b["depth"].mean() - a["depth"].mean(), "depth_spread": width("depth"),
        "length": ratio("length"), "length_spread": width("length"),
        "width_x": ratio("width_x"), "width_y": ratio("width_y"), "width_spread": width("width_x"),
        "hits": ratio("hits"), "hits_width": width("hits"), "hottest": ratio("hottest"),
        "occupancy": 100 * np.mean(np.abs(above_b - above_a)[told] / above_a[told]),
        "cell_spectrum": separation(spectrum_a, spectrum_b),
        "cell_spread": spread(spectrum_b) / spread(spectrum_a),
        "moment_correlations": np.mean(np.abs(upper(np.corrcoef(features_a))
                                              - upper(np.corrcoef(features_b)))),
        "layer_correlations": rms(profiles_a[2], profiles_b[2]),
        "share_correlations": rms(profiles_a[2] / energy_a[:, None],
                                  profiles_b[2] / energy_b[:, None]),
        "layer_separation": np.mean([separation(*histograms(p, q)) for p, q in
                                     zip(profiles_a[2].T, profiles_b[2].T)]),
        "similarity": pairs_ssim(cells_b) - pairs_ssim(cells_a),
        "kernel": kernel(some(table_a), some(table_b)),
    }
    for name, values in a.items():
        counts_a, counts_b = histograms(values, b[name])
        filled = counts_a + counts_b > 0
        found[name + ".kolmogorov"] = stats.ks_2samp(values, b[name]).statistic
        found[name + ".wasserstein"] = stats.wasserstein_distance(values, b[name]) / values.std()
        found[name + ".separation"] = separation(counts_a, counts_b)
        found[name + ".chi_square"] = (
            stats.chi2_contingency(np.array([counts_a, counts_b])[:, filled], correction=False)[0]
            / (filled.sum() - 1))
    return found, table_a, table_b


def intercept(a, b, random):
    """jetnet's fpd, with sizes that small samples have, drawn without replacement."""
    most = min(len(a), len(b))
    sizes = np.round(1 / np.linspace(1 / (most // 4), 1 / most, 10)).astype(int)
    values = [np.mean([frechet(a[random.choice(len(a), size, False)],
                               b[random.choice(len(b), size, False)]) for _ in range(20)])
              for size in sizes]
    return np.polyfit(1 / sizes, values, 1)[1]


def shapes(cells):
    flat = cells.reshape(len(cells), -1)
    return np.sqrt(flat / flat.sum(1, keepdims=True)).astype(np.float32)


def neighbours(cells_a, cells_b):
    """Medians of distances of whole shapes, which Troupe estimates from sketches of 128 numbers."""
    a, b = shapes(cells_a), shapes(cells_b)
    within = lambda s: np.median(NearestNeighbors(n_neighbors=2, algorithm="brute")
                                 .fit(s).kneighbors(s)[0][:, 1])
    across = np.median(NearestNeighbors(n_neighbors=1, algorithm="brute").fit(a).kneighbors(b)[0])
    return across / within(a), within(b) / within(a)


def classifier_features(cells, energy):
    found, profiles, _ = observables(cells, energy)
    layers = np.log(profiles[2] / energy[:, None] + 1e-6)
    above = np.stack([np.log(1 + (cells > 10.0 ** level).sum((1, 2, 3))) for level in range(-6, 1)], 1)
    return np.concatenate([np.log(energy)[:, None], np.stack(list(found.values()), 1), layers, above], 1)


def area(data, generated):
    """Two networks of scikit-learn, each asked about the half that it has not seen."""
    values = np.concatenate([classifier_features(*data), classifier_features(*generated)])
    labels = np.repeat([0, 1], [len(data[0]), len(generated[0])])
    areas = []
    for known, asked in StratifiedKFold(2, shuffle=True, random_state=1).split(values, labels):
        network = make_pipeline(StandardScaler(), MLPClassifier((64, 64), max_iter=60, random_state=1))
        network.fit(values[known], labels[known])
        areas.append(roc_auc_score(labels[asked], network.predict_proba(values[asked])[:, 1]))
    return np.mean(areas)


def bootstrap(data, generated, random, times=300):
    """Spread of two ratios over samples drawn with all energies alike, as for files of one size each."""
    a, b = observables(*data)[0]["response"], observables(*generated)[0]["response"]
    draw = lambda v: v[random.integers(0, len(v), len(v))]
    means, widths = [], []
    for _ in range(times):
        p, q = draw(a), draw(b)
        means.append(q.mean() / p.mean())
        widths.append(q.std() / p.std())
    return np.std(means), np.std(widths)


def main():
    troupe, generated_path, data_path = sys.argv[1:4]
    out = subprocess.run([troupe, "validate", generated_path, "--against", data_path, "--json"],
                         check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    told = {f["name"]: f for f in json.loads(out.stdout.splitlines()[-1])["generated"][0]["figures"]}
    data, generated = read(data_path), read(generated_path)
    random = np.random.default_rng(1)
    values, table_a, table_b = expected(data, generated)
    nearest, diversity = neighbours(data[0], generated[0])
    mean_spread, width_spread = bootstrap(data, generated, random)
    # Within: relative, and absolute for what comes from other draws or from sketches.
    checks = [(name, told[name]["value"], value, EXACT * abs(value) + 1e-7)
              for name, value in values.items()]
    # In no more than one of ten runs by chance: three spreads of the fit.
    checks += [("frechet", told["frechet"]["value"], intercept(table_a, table_b, random),
                3 * told["frechet"]["uncertainty"]),
               ("nearest", told["nearest"]["value"], nearest, 0.1),
               ("diversity", told["diversity"]["value"], diversity, 0.1),
               ("response +-", told["response"]["uncertainty"], mean_spread, 0.2 * mean_spread),
               ("response_width +-", told["response_width"]["uncertainty"], width_spread,
                0.2 * width_spread)]
    # Networks learn differently; their areas differ by little more than those of other halves do.
    checks.append(("auc", told["auc"]["value"], area(data, generated),
                   0.02 + 2 * told["auc"]["uncertainty"]))
    wrong = 0
    for name, found, value, bound in checks:
        fits = found is not None and abs(found - value) <= bound
        wrong += not fits
        if not fits:
            print(f"{name}: troupe {found}, numpy and scipy {value}")
    print(f"{len(checks) - wrong} of {len(checks)} figures agree")
    missing = [n for n, f in told.items() if f["value"] is not None
               and n not in [c[0] for c in checks] + ["copies"]]
    if missing:
        print("not computed anew:", *missing)
    sys.exit(1 if wrong or missing else 0)


main()
