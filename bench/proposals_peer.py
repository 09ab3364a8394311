#!/usr/bin/python3
"""proposals_peer.py SAMPLER SPACE: Optuna's side of bench_proposals.

SAMPLER is tpe, multivariate (TPE over all fields at once, conditional ones in groups), cmaes or random. SPACE is what
space_json() of proposal_tasks.h writes. Questions and answers: "begin SEED" begins a study; "ask" is
answered by the settings of the next trial, a JSON object of texts by path, and "tell COST" ends it;
"seconds" is answered by the processor time of all asks since "begin".
"""

import json
import sys
import time
import warnings

try:
    import optuna
except ImportError as error:
    print(f"missing {error.name}", flush=True)
    sys.exit()


def sampler(name, seed):
    if name == "tpe":
        return optuna.samplers.TPESampler(seed=seed)
    if name == "multivariate":
        return optuna.samplers.TPESampler(seed=seed, multivariate=True, group=True)
    if name == "cmaes":
        return optuna.samplers.CmaEsSampler(seed=seed, warn_independent_sampling=False)
    return optuna.samplers.RandomSampler(seed=seed)


def suggest(trial, field):
    path = field["path"]
    if "log" in field:
        return repr(trial.suggest_float(path, *field["log"], log=True))
    if "linear" in field:
        return repr(trial.suggest_float(path, *field["linear"]))
    if "integer" in field:
        return str(trial.suggest_int(path, *field["integer"], step=field["step"]))
    return trial.suggest_categorical(path, field["choice"])


class Peer:
    def __init__(self, name, space):
        self.name, self.space = name, json.loads(space)
        self.study = self.trial = None
        self.seconds = 0.0

    def ask(self):
        start = time.process_time()
        self.trial = self.study.ask()
        settings = {}
        for field in self.space:
            path, values = field.get("only_with", (None, ()))
            if path is None or settings.get(path) in values:
                settings[field["path"]] = suggest(self.trial, field)
        self.seconds += time.process_time() - start
        return settings

    def answer(self, request):
        word, _, rest = request.partition(" ")
        if word == "begin":
            self.study = optuna.create_study(sampler=sampler(self.name, int(rest)))
            self.seconds = 0.0
            return "ok"
        if word == "ask":
            return "ok " + json.dumps(self.ask())
        if word == "tell":
            self.study.tell(self.trial, float(rest))
            return "ok"
        if word == "seconds":
            return f"ok {self.seconds}"
        return f"error what is {request}"


def main():
    warnings.simplefilter("ignore")  # of what is called experimental
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    peer = Peer(*sys.argv[1:])
    print(f"ok Optuna {optuna.__version__}", flush=True)
    for request in sys.stdin:
        print(peer.answer(request.strip()), flush=True)


main()
