"""Starting `troupe run`, watching what it writes, and reading what it leaves."""

import json
import os
import random
import socket
import subprocess
import sys
import time

PORTS = 4  # the head's three, and the relay's


def arguments(usage, parts=()):
    """Of a bench's command line: the absolute path of TROUPE, whether --small is given, and the
    parts that are asked for. Ends the program where it is another one."""
    words = [word for word in sys.argv[1:] if word != "--small"]
    if not words or not set(words[1:]) <= set(parts):
        sys.exit(usage)
    return os.path.abspath(words[0]), "--small" in sys.argv, words[1:]


class Program:
    """A program under way in a folder; its output is kept for when it fails."""

    def __init__(self, words, folder, enter=None, **environment):
        """`enter` is called in its process before it begins."""
        self.words, self.output = words, open(f"{folder}/output-{time.monotonic_ns()}", "w+")
        self.process = subprocess.Popen(words, cwd=folder, env=dict(os.environ, **environment),
                                        stdout=self.output, stderr=subprocess.STDOUT,
                                        preexec_fn=enter)

    def runs(self):
        return self.process.poll() is None

    def finish(self, seconds=None):
        """Ends this program unless that one ends well in time."""
        try:
            code = self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            code = f"not within {seconds} s"
        if code != 0:
            self.fail(f"ended with {code}")

    def fail(self, what):
        sys.exit(f"{' '.join(self.words)}\n{what}\n{self.text()[-4000:]}")

    def text(self):
        self.output.seek(0)
        return self.output.read()

    def kill(self):
        if self.runs():
            self.process.kill()
            self.process.wait()
        self.output.close()


class Tail:
    """Lines of a growing file as they come."""

    def __init__(self, path):
        self.path, self.position, self.rest = path, 0, ""

    def lines(self):
        if not os.path.exists(self.path):
            return []
        with open(self.path) as file:
            file.seek(self.position)
            text = self.rest + file.read()
            self.position = file.tell()
        *whole, self.rest = text.split("\n")
        return whole


def write_topology(folder, text, **values):
    """Writes run.yaml, with the values in the place of their names in capitals; its path."""
    for name, value in values.items():
        text = text.replace(name.upper(), str(value))
    path = f"{folder}/run.yaml"
    with open(path, "w") as file:
        file.write(text)
    return path


def summary_of(out):
    with open(f"{out}/summary.json") as file:
        return json.load(file)


def free_port():
    """A port that is free with those behind it, as far as can be told."""
    for _ in range(100):
        port = random.randrange(20000, 32000)  # where the system hands out none by itself
        try:
            for offset in range(PORTS):
                with socket.socket() as probe:
                    probe.bind(("127.0.0.1", port + offset))
            return port
        except OSError:
            continue
    sys.exit("no port is free")
