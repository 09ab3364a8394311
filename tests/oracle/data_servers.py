#!/usr/bin/python3
"""data_servers.py nginx|s3|xrootd TROUPE: data files on servers that others have written, on free ports of loopback. A run that
trains on them ends with the state hash of one that trains on the local files; refusals, wrong names, slow and broken
connections and changed files end with a plain line, or are overcome. Exits with 77, saying what is missing, where the
server is not installed. S3's is s3rver of npm, in PATH or named by S3RVER. Shares no code with Troupe."""

import datetime
import hashlib
import hmac
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse
import urllib.request
from pathlib import Path

SKIPPED = 77
TROUPE = os.path.abspath([word for word in sys.argv if not word.startswith("--")][-1])
CHECKS = 0
FOLDER = Path(tempfile.mkdtemp(prefix="data-servers-"))
SERVED = FOLDER / "served"
ENVIRONMENT = {**os.environ, "HOME": str(FOLDER), "no_proxy": "127.0.0.1,localhost",
               "AWS_SHARED_CREDENTIALS_FILE": str(FOLDER / "none")}
CHILDREN = []


def need(program, package):
    found = shutil.which(program, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")
    if found is None:
        print(f"no program {program}: install {package}")
        sys.exit(SKIPPED)
    return found


def check(what, holds):
    global CHECKS
    CHECKS += 1
    if not holds:
        sys.exit(f"{what}: does not hold")


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def start(words, port, **more):
    log = open(FOLDER / "server.log", "ab")
    child = subprocess.Popen(words, stdout=log, stderr=log, start_new_session=True, **more)
    CHILDREN.append(child)
    for _ in range(1200):
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return child
        if child.poll() is not None:
            break
        time.sleep(0.05)
    sys.exit(f"{words[0]} does not listen: {(FOLDER / 'server.log').read_text()[-2000:]}")


def end(child):
    if child.poll() is None:
        os.killpg(child.pid, signal.SIGKILL)
    child.wait()


def troupe(*words, fails=None, **environment):
    ended = subprocess.run([TROUPE, *map(str, words)], capture_output=True, text=True, cwd=FOLDER,
                           env={**ENVIRONMENT, **environment}, timeout=300)
    if fails is None and ended.returncode != 0:
        sys.exit(f"{words}: {ended.stderr}")
    if fails is not None:
        check(f"{words} says \"{fails}\", and not {ended.stderr!r}", ended.returncode == 4 and fails in ended.stderr)
        check("one plain line", "secret" not in ended.stderr.lower())
    return ended.stdout


def state_hash(run):
    said = troupe("inspect", FOLDER / run / "checkpoints/latest")
    return next(line.split()[2] for line in said.splitlines() if line.strip().startswith("state hash"))


def train(run, data, **environment):
    """The state hash of a short run on these files."""
    (FOLDER / "t.yaml").write_text(f"""name: {run}
model: {{zoo: toy}}
data: {{train: {data}, schema: lcd-fixed}}
train: {{epochs: 1, micro_batch: 16, micro_batches: 2, seed: 1, schedule: [d_real, d_fake, g]}}
actors: {{replica: {{count: 1}}, validator: {{every: none}}, monitor: {{listen: none}}}}
""")
    troupe("run", "t.yaml", "--out", run, **environment)
    return state_hash(run)


def copied(name, place, stored, **environment):
    """Runs with copies of its files at the place: `stored` gives what the server has of one. A run that is made of them goes
    on to the hash of one that was never broken off."""
    whole = train("whole-" + name, f"\"{SERVED}/ele_*.h5\"")
    topology = (FOLDER / "t.yaml").read_text()
    (FOLDER / "t.yaml").write_text(topology.replace("epochs: 1", "epochs: 1, iterations: 3"))
    troupe("run", "t.yaml", "--out", name, "--set", f"actors.checkpointer.copies={place}", **environment)
    back = FOLDER / ("back-" + name)
    (back / "checkpoints").mkdir(parents=True)
    files = ["topology.yaml", "summary.json", "metrics.jsonl",
             *(f"checkpoints/{each.name}" for each in sorted((FOLDER / name / "checkpoints").glob("step-*.h5")))]
    check(f"{name} wrote a checkpoint", len(files) > 3)
    for file in files:
        same(FOLDER / name / file, stored(file))
        if not file.startswith(("summary", "metrics")):
            (back / file).write_bytes(stored(file))
    troupe("run", "--resume", back, "--set", "train.iterations=1000", **environment)
    check(f"state hash of {name} that went on from its copies", state_hash(back.name) == whole)


def same(path, wanted):
    check(f"{path} holds what the server has", Path(path).read_bytes() == wanted)


def make_data():
    SERVED.mkdir()
    for number in (1, 2):
        troupe("data", "make", SERVED / f"ele_{number}.h5", "--detector", "lcd-fixed-4", "--events", 100, "--seed", number)
    (SERVED / "large").write_bytes(hashlib.shake_256(b"large").digest(3_000_000))


def changed(content):
    return content[::-1]


class Nginx:
    def __init__(self):
        self.program, self.port = need("nginx", "nginx-light"), free_port()
        need("openssl", "openssl")
        self.certify("IP:127.0.0.1")
        (FOLDER / "users").write_text("reader:{PLAIN}secret\n")
        (FOLDER / "nginx.conf").write_text(f"""
daemon off; master_process off; pid {FOLDER}/nginx.pid; error_log stderr;
events {{}}
http {{
  access_log off; client_body_temp_path {FOLDER}/1; proxy_temp_path {FOLDER}/2; fastcgi_temp_path {FOLDER}/3;
  uwsgi_temp_path {FOLDER}/4; scgi_temp_path {FOLDER}/5;
  server {{
    listen 127.0.0.1:{self.port} ssl; ssl_certificate {FOLDER}/certificate; ssl_certificate_key {FOLDER}/key;
    location /plain/ {{ alias {SERVED}/; }}
    location /slow/ {{ alias {SERVED}/; limit_rate 1000k; }}
    location /private/ {{ alias {SERVED}/; auth_basic own; auth_basic_user_file {FOLDER}/users; }}
    location /results/ {{ root {FOLDER}; dav_methods PUT MKCOL; client_max_body_size 1g; }}
    location /signed/ {{ alias {SERVED}/; if ($request_method = HEAD) {{ return 403; }} }}
  }}
}}
""")
        self.start()
        self.address = f"https://127.0.0.1:{self.port}"

    def certify(self, name):
        subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=own", "-addext",
                        f"subjectAltName={name}", "-days", "2", "-keyout", FOLDER / "key", "-out", FOLDER / "certificate"],
                       check=True, capture_output=True)

    def start(self):
        self.child = start([self.program, "-c", str(FOLDER / "nginx.conf"), "-p", str(FOLDER)], self.port)

    def break_off(self, change, out):
        """Kills it while a file is copied, changes the file if asked to, and starts it again."""
        part = FOLDER / (out + ".part")

        def meanwhile():
            for _ in range(2000):
                if part.exists() and part.stat().st_size > 100_000:
                    break
                time.sleep(0.01)
            end(self.child)
            if change:
                (SERVED / "large").write_bytes(changed((SERVED / "large").read_bytes()))
            self.start()

        thread = threading.Thread(target=meanwhile)
        thread.start()
        troupe("data", "fetch", f"{self.address}/slow/large", "--force", CURL_CA_BUNDLE=str(FOLDER / "certificate"))
        thread.join()


def nginx():
    server = Nginx()
    trusts = {"CURL_CA_BUNDLE": str(FOLDER / "certificate")}
    local = train("local", f"\"{SERVED}/ele_*.h5\"")
    for way in ("plain", "signed"):
        files = ", ".join(f"{server.address}/{way}/ele_{number}.h5" for number in (2, 1))
        check(f"state hash by {way}", train(way, f"[{files}]", **trusts) == local)
    # A local file among them, wherever the cache is.
    mixed = f"[{server.address}/plain/ele_2.h5, {SERVED}/ele_1.h5]"
    check("state hash of a mixed list", train("mixed", mixed, **trusts) == local)
    # Three folders are made on the way.
    (FOLDER / "results").mkdir()
    copied("dav", f"{server.address}/results/lab/runs/a", lambda file: (FOLDER / "results/lab/runs/a" / file).read_bytes(),
           **trusts)
    large = (SERVED / "large").read_bytes()
    troupe("data", "fetch", f"{server.address}/slow/large", **trusts)
    same(FOLDER / "large", large)
    server.break_off(False, "large")
    same(FOLDER / "large", large)
    server.break_off(True, "large")
    same(FOLDER / "large", changed(large))
    troupe("data", "fetch", f"{server.address}/plain/none.h5?key=SECRET", **trusts, fails="there is no such file")
    private = f"{server.address}/private/ele_1.h5"
    troupe("data", "fetch", private, **trusts, fails="credentials are missing, or do not suffice")
    (FOLDER / ".netrc").write_text("machine 127.0.0.1 login reader password wrong-SECRET\n")
    troupe("data", "fetch", private, **trusts, fails="credentials are missing, or do not suffice")
    (FOLDER / ".netrc").write_text("machine 127.0.0.1 login reader password secret\n")
    troupe("data", "fetch", private, **trusts)
    same(FOLDER / "ele_1.h5", (SERVED / "ele_1.h5").read_bytes())
    troupe("data", "fetch", f"{server.address}/plain/ele_2.h5", fails="does not prove that it is the one")
    end(server.child)
    server.certify("DNS:elsewhere")
    server.start()
    troupe("data", "fetch", f"{server.address}/plain/ele_2.h5", **trusts, fails="does not prove that it is the one")


def ask_object(port, key, content=None):
    """What a store has of a key, or puts there; a request by AWS signature version 4, from its description."""
    now = datetime.datetime.now(datetime.timezone.utc).strftime("%Y%m%dT%H%M%SZ")
    hashed = hashlib.sha256(content or b"").hexdigest()
    method = "GET" if content is None else "PUT"
    path = f"/bucket/{urllib.parse.quote(key)}"
    headers = {"host": f"127.0.0.1:{port}", "x-amz-content-sha256": hashed, "x-amz-date": now}
    names = ";".join(headers)
    request = "\n".join([method, path, "", *(f"{name}:{value}" for name, value in headers.items()), "", names, hashed])
    scope = f"{now[:8]}/us-east-1/s3/aws4_request"
    text = "\n".join(["AWS4-HMAC-SHA256", now, scope, hashlib.sha256(request.encode()).hexdigest()])
    sign = b"AWS4S3RVER"
    for part in (*scope.split("/"), text):
        sign = hmac.new(sign, part.encode(), "sha256").digest()
    headers["Authorization"] = (f"AWS4-HMAC-SHA256 Credential=S3RVER/{scope}, SignedHeaders={names}, "
                                f"Signature={sign.hex()}")
    asked = urllib.request.Request(f"http://127.0.0.1:{port}{path}", content, headers, method=method)
    with urllib.request.urlopen(asked, timeout=60) as answer:
        return answer.read()


def start_s3():
    """The server, its port, and the environment of who asks it."""
    program = os.environ.get("S3RVER") or need("s3rver", "s3rver of npm, or name it by S3RVER")
    port = free_port()
    server = start([program, "-d", str(FOLDER / "store"), "-a", "127.0.0.1", "-p", str(port), "--configure-bucket",
                    "bucket"], port)
    return server, port, {"AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}", "AWS_ACCESS_KEY_ID": "S3RVER",
                          "AWS_SECRET_ACCESS_KEY": "S3RVER"}


def s3():
    server, port, asks = start_s3()
    for name in ("ele_1.h5", "ele_2.h5"):
        ask_object(port, f"showers/a b/{name}", (SERVED / name).read_bytes())
        ask_object(port, f"showers/deeper/{name}/x", b"another")
    local = train("local", f"\"{SERVED}/ele_*.h5\"")
    files = "[" + ", ".join(f"\"s3://bucket/showers/a b/ele_{number}.h5\"" for number in (1, 2)) + "]"
    check("state hash", train("named", files, **asks) == local)
    check("state hash by a pattern", train("matched", "\"s3://bucket/showers/a b/ele_*.h5\"", **asks) == local)
    troupe("data", "fetch", "s3://bucket/showers/none.h5", **asks, fails="there is no such file")
    troupe("data", "fetch", "s3://other/ele_1.h5", **asks, fails="there is no such file")
    # s3rver does not compute signatures of version 4 anew; tests/pipeline/file_server does.
    wrong = {**asks, "AWS_ACCESS_KEY_ID": "SECRET"}
    troupe("data", "fetch", "s3://bucket/showers/deeper/ele_1.h5/x", **wrong, fails="credentials are missing, or do not suffice")
    ask_object(port, "showers/a b/ele_2.h5", (SERVED / "ele_1.h5").read_bytes())
    check("another hash once an object has changed", train("changed", files, **asks) != local)
    copied("kept", "s3://bucket/runs/a", lambda file: ask_object(port, f"runs/a/{file}"), **asks)
    end(server)
    check("the copies are good without the server", train("alone", files, **asks) != local)


def start_xrootd():
    """The server, and the address of what it serves."""
    program, port = need("xrootd", "xrootd-server"), free_port()
    need("xrdcp", "xrootd-client")
    for folder in (FOLDER, SERVED):
        folder.chmod(0o755)
    admin = FOLDER / "admin"
    admin.mkdir()
    admin.chmod(0o777)
    (FOLDER / "xrootd.cf").write_text(f"all.export /\noss.localroot {SERVED}\nxrd.port {port}\n"
                                      f"all.adminpath {admin}\nall.pidpath {admin}\nxrd.network nodnr\n")
    words = [program, "-c", str(FOLDER / "xrootd.cf"), "-I", "v4"] + (["-R", "nobody"] if os.geteuid() == 0 else [])
    return start(words, port, cwd=admin), f"root://127.0.0.1:{port}/"


def xrootd():
    server, address = start_xrootd()
    local = train("local", f"\"{SERVED}/ele_*.h5\"")
    check("state hash", train("named", f"[{address}/ele_2.h5, {address}/ele_1.h5]") == local)
    check("state hash by a pattern", train("matched", f"\"{address}/ele_*.h5\"") == local)
    troupe("data", "fetch", f"{address}/large")
    same(FOLDER / "large", (SERVED / "large").read_bytes())
    troupe("data", "fetch", f"{address}/none.h5?authz=SECRET", fails="there is no such file on the server")
    (SERVED / "closed.h5").write_bytes(b"closed")
    (SERVED / "closed.h5").chmod(0)
    troupe("data", "fetch", f"{address}/closed.h5", fails="closed.h5: xrdcp says")
    troupe("data", "fetch", "root://reader:SECRET@127.0.0.1//a.h5", fails="an address with a name or a password")
    end(server)
    troupe("data", "fetch", f"{address}/ele_1.h5", fails="xrdfs says", XRD_CONNECTIONWINDOW="1", XRD_CONNECTIONRETRY="1")
    check("the copies are good without the server",
          train("alone", f"[{address}/ele_2.h5, {address}/ele_1.h5]", XRD_CONNECTIONWINDOW="1", XRD_CONNECTIONRETRY="1") == local)


def main():
    which = sys.argv[1]
    try:
        # Missing programs are told of before anything is made.
        if which != "s3":
            need(which, {"nginx": "nginx-light", "xrootd": "xrootd-server"}[which])
        elif "S3RVER" not in os.environ:
            need("s3rver", "s3rver of npm, or name it by S3RVER")
        make_data()
        {"nginx": nginx, "s3": s3, "xrootd": xrootd}[which]()
        print(f"{CHECKS} of {CHECKS} checks hold")
    finally:
        end_all()


def end_all():
    for left in CHILDREN:
        end(left)
    shutil.rmtree(FOLDER, ignore_errors=True)


if __name__ == "__main__":
    main()
