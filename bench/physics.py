#!/usr/bin/python3
"""physics.py TROUPE [FOLDER SHOWERS SEED CASE...]: what trainings on showers of a detector come to, by `troupe validate` and by
boosted trees. SHOWERS is a file of schema lcd-fixed with 25 x 25 x 25 cells. Two thirds of its events are trained on, in eight
copies (mirrored along x and y, x and y exchanged); the others judge. FOLDER keeps the trainings: one that is there goes on, or
is only judged. A CASE is one of those below; it prints a row for each checkpoint, the best by its own validations marked. Without
these, or with --small, it tries itself on made showers."""

import hashlib
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")  # threads of trees that are busy waiting stand in each other's way

import h5py  # noqa: E402
import numpy as np  # noqa: E402
from sklearn.ensemble import HistGradientBoostingClassifier  # noqa: E402
from sklearn.metrics import roc_auc_score  # noqa: E402
from sklearn.model_selection import StratifiedKFold, cross_val_predict  # noqa: E402

import runs  # noqa: E402

HIT_GEV = 3e-4
BINS = (10, 30), (30, 60), (60, 100)  # GeV, for the width of the response by energy
COLUMNS = ("response", "response_width", "longitudinal", "transverse_x", "transverse_y", "hits",
           "layer_correlations", "cell_spectrum", "frechet", "auc")
RATIOS = ("response", "response_width", "hits", "auc")


def exponential(rate, iterations):
    return f"{{policy: exponential, rate: {rate:.6g}, decay: 0.75, decay_iterations: {iterations}}}"


def case(topology, cells, events, rows, batch, rates, decays, micro_batches=1, further=()):
    """A training of `events` with steps of `batch` x `micro_batches`, judged at so many evenly spaced
    `rows`; its rates are 0.75 of themselves `decays` times, and grow as the root of the
    micro-batches."""
    step = batch * micro_batches
    iterations = max(events // step, 1)
    every = max(iterations // rows, 1)
    settings = {"train.micro_batch": batch, "train.micro_batches": micro_batches,
                "train.epochs": 1000, "train.iterations": every * rows,
                "actors.replica.count": 1,
                "actors.checkpointer": f"{{every: {every} iterations, keep: 1000}}",
                "actors.validator": f"{{every: {every} iterations, events: 600}}"}
    for network, rate in zip("gd", rates):
        settings["train.learning_rate." + network] = (
            exponential(rate * micro_batches ** 0.5, max(iterations // decays, 1)) if decays else rate)
    return topology, cells, step, [*(f"{k}={v}" for k, v in settings.items()), *further]


def small(micro_batches, further=()):
    return case("quickstart", 12, 200_000, 8, 8, (6e-4, 1e-3), 10, micro_batches, further)


# With cells in GeV all fakes of gan3d_25 were soon without energy.
IN_MEV = ["model.precision=bf16", "data.preprocessing.scale=1000"]
CASES = {
    "gan3d_12": small(1),
    "gan3d_12-bf16": small(1, ["model.precision=bf16"]),
    "gan3d_12-before": case("quickstart", 12, 8, 1, 8, (6e-4, 1e-3), 0),
    "gan3d_12-8-micro-batches": small(8),
    "gan3d_12-64-micro-batches": small(64),
    "gan3d_12_dense": case("gan3d_12_dense", 12, 600_000, 12, 32, (5e-4, 1e-3), 5),
    "gan3d_12_dense-before": case("gan3d_12_dense", 12, 32, 1, 32, (5e-4, 1e-3), 0),
    "gan3d_25": case("gan3d_25", 25, 32_000, 4, 8, (5e-4, 5e-4), 4, 1, IN_MEV),
    "gan3d_25-before": case("gan3d_25", 25, 8, 1, 8, (5e-4, 5e-4), 0, 1, IN_MEV),
    "small": case("quickstart", 12, 64, 2, 8, (6e-4, 1e-3), 10),
}


def read(path):
    with h5py.File(path) as file:
        return file["ECAL"][:], file["target"][:]


def write(path, cells, target):
    with h5py.File(path, "w") as file:
        file.create_dataset("ECAL", data=cells, chunks=(1, *cells.shape[1:]), compression=1)
        file.create_dataset("target", data=target)


def eight(cells):
    """The copies of each shower, side by side, so that no part of the file has a copy of another."""
    mirrored = [cells, cells[:, ::-1], cells[:, :, ::-1], cells[:, ::-1, ::-1]]
    copies = [copy for m in mirrored for copy in (m, m.transpose(0, 2, 1, 3))]
    return np.stack(copies, 1).reshape(-1, *cells.shape[1:])


def pairs(cells):
    """12 x 12 x 12 of 25 x 25 x 25: pairs are added, the last row, column and layer left out."""
    return cells[:, :24, :24, :24].reshape(-1, 12, 2, 12, 2, 12, 2).sum((2, 4, 6))


def prepare(showers, folder):
    """The files to train on and to judge by. A folder has those of one file of showers."""
    digest = hashlib.sha256(Path(showers).read_bytes()).hexdigest()
    source = folder / "showers.sha256"
    if source.exists() and source.read_text() != digest:
        sys.exit(f"{folder} has trainings on other showers than {showers}: take another folder")
    cells, target = read(showers)
    if cells.shape[1:] != (25, 25, 25):
        sys.exit(f"{showers}: showers of {cells.shape[1:]} cells, not of 25 x 25 x 25")
    source.write_text(digest)
    known = len(cells) * 1400 // 2066
    for size, rebin in ((25, lambda c: c), (12, pairs)):
        judge, train, once = (folder / f"{name}-{size}.h5" for name in ("judge", "train", "once"))
        if not train.exists():
            write(judge, rebin(cells[known:]), target[known:])
            write(once, rebin(cells[:known]), target[:known])
            write(folder / "part", rebin(eight(cells[:known])), np.repeat(target[:known], 8, 0))
            (folder / "part").rename(train)


def features(cells, energy, with_hits):
    """What the trees see: energy, response, layers' shares, means and widths along the axes."""
    cells, ecal = cells.astype(np.float64), cells.sum((1, 2, 3), dtype=np.float64)
    ecal = np.maximum(ecal, 1e-12)
    found = [energy, ecal / energy]
    for axes in ((2, 3), (1, 3), (1, 2)):
        shares = cells.sum(axes) / ecal[:, None]
        index = np.arange(shares.shape[1])
        mean = shares @ index
        found += [mean, np.sqrt((shares * (index - mean[:, None]) ** 2).sum(1))]
    found = np.concatenate([np.stack(found, 1), shares], 1)
    if with_hits:
        flat = cells.reshape(len(cells), -1)
        found = np.concatenate([found, np.stack([(flat > HIT_GEV).sum(1), flat.max(1) / ecal], 1)], 1)
    return found


def told_apart(data, generated, with_hits):
    """The area of 80 boosted trees, each shower judged by those that have not seen it (five folds)."""
    values = np.concatenate([features(*data, with_hits), features(*generated, with_hits)])
    labels = np.repeat([0, 1], [len(data[0]), len(generated[0])])
    judged = cross_val_predict(HistGradientBoostingClassifier(max_iter=80, random_state=1), values, labels,
                               cv=StratifiedKFold(5, shuffle=True, random_state=1), method="predict_proba")
    return roc_auc_score(labels, judged[:, 1])


def widths(cells, energy):
    response = cells.sum((1, 2, 3), dtype=np.float64) / energy
    inside = [response[(low <= energy) & (energy < high)] for low, high in BINS]
    return ", ".join(f"{r.std() / r.mean():.3f}" if len(r) > 1 and r.mean() else "-" for r in inside)


def row(name, events, cells, figures, what=""):
    """`what` stands behind numbers that are not 0 for equal samples."""
    numbers = [f"{figures[column]:.3g}{what if column in RATIOS else ''}" for column in COLUMNS]
    print("|", " | ".join([name, f"{events:,}" if events else "", *numbers, *cells]), "|", flush=True)


def answer(troupe, *words):
    out = subprocess.run([troupe, *words, "--json"], stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(out.stdout.splitlines()[-1])


def showers_of(path):
    cells, target = read(path)
    return cells, target.reshape(len(cells), -1)[:, 1].astype(np.float64)


def judge(troupe, folder, out, name, step, size):
    """A row for each checkpoint of a run, behind what the data have against themselves."""
    against = folder / f"judge-{size}.h5"
    data, known = showers_of(against), showers_of(folder / f"once-{size}.h5")
    compared = answer(troupe, "validate", out, "--rank", "--against", against, "--replicas", "50")["generated"]
    by_step = sorted(compared, key=lambda one: one["name"])
    best = os.path.basename(os.path.realpath(f"{out}/checkpoints/best"))
    schedule = runs.summary_of(out)
    for one in by_step:
        figures = {f["name"]: f for f in one["figures"]}
        if one is by_step[0]:
            row("data against data", 0, [widths(*data), *(f"{told_apart(data, known, h):.3f}" for h in (False, True))],
                {c: figures[c]["floor"] for c in COLUMNS}, " off")
        made = f"{folder}/made.h5"
        answer(troupe, "generate", one["name"], "--energy", ",".join(f"{e:.9g}" for e in data[1]), "--events",
               str(2 * len(data[1])), "--out", made, "--force", "--threads", "1")
        generated = showers_of(made)
        file = os.path.basename(one["name"])
        iteration = int(file[5:-3]) * schedule["iterations"] // schedule["steps"]
        row(name + (", best" if file == best else ""), iteration * step,
            [widths(*generated), *(f"{told_apart(data, generated, h):.3f}" for h in (False, True))],
            {c: figures[c]["value"] for c in COLUMNS})


def measure(troupe, folder, seed, name):
    topology, size, step, settings = CASES[name]
    out = folder / f"{name}-{seed}"
    words = [word for setting in settings for word in ("--set", setting)]
    if (out / "checkpoints").exists():
        words = ["--resume", out, *words]
    else:
        words = [topology, *words, "--set", f"data.train=[{folder}/train-{size}.h5]", "--set", f"train.seed={seed}",
                 "--out", out]
    with open(folder / f"{name}-{seed}.txt", "a") as log:
        subprocess.run([troupe, "run", *words], check=True, stdout=log, stderr=log)
    judge(troupe, folder, out, f"{name}, seed {seed}", step, size)


def main():
    words = [word for word in sys.argv[1:] if word != "--small"]
    usage = f"{__doc__}\n\ncases: {' '.join(CASES)}"
    if not words or 1 < len(words) < 5 or not all(os.path.isfile(file) for file in words[:3:2]):
        sys.exit(usage)
    troupe = os.path.abspath(words[0])
    with tempfile.TemporaryDirectory(prefix="troupe-bench-physics-") as scratch:
        if len(words) == 1:
            words += [scratch, f"{scratch}/showers.h5", "1", "small"]
            answer(troupe, "data", "make", words[2], "--detector", "lcd-fixed-25", "--events", "120", "--seed", "1",
                   "--max-energy", "100")
        elif not words[3].isdigit() or not set(words[4:]) <= set(CASES):
            sys.exit(usage)
        folder = Path(words[1]).absolute()
        folder.mkdir(parents=True, exist_ok=True)
        prepare(words[2], folder)
        print("| run | events |", " | ".join(COLUMNS), "| width by energy | trees | with hits |")
        print("|" + "---|" * (len(COLUMNS) + 5))
        for name in words[4:]:
            measure(troupe, folder, words[3], name)


if __name__ == "__main__":
    main()
