"""A virtual cluster (deploy/vcluster) for the tests of one program."""

import csv
import io
import pathlib
import subprocess
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]


class Hosts:
    def __init__(self, name):
        self.name = name

    def words(self, verb, *words):
        return [str(ROOT / "deploy/vcluster"), verb, "--name", self.name, *words]

    def vcluster(self, verb, *words, check=True, timeout=120):
        done = subprocess.run(
            self.words(verb, *words), stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=timeout, check=False
        )
        if check and done.returncode != 0:
            raise AssertionError(f"vcluster {verb} {' '.join(words)}: status {done.returncode}\n{done.stdout}{done.stderr}")
        return done

    def on(self, host, *command, user=None, check=True, timeout=120):
        return self.vcluster("exec", *(["--user", user] if user else []), host, *command, check=check, timeout=timeout)

    def shell(self, host, script, **options):
        return self.on(host, "bash", "-c", script, **options)

    def begin(self, host, *command, user=None):
        """A command that runs meanwhile."""
        return subprocess.Popen(
            self.words("exec", *(["--user", user] if user else []), host, *command),
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip

    def rows(self, *command, host="ctl"):
        """What a listing of msactl shows of msa's own jobs and nodes, row by row."""
        listing = self.on(host, "env", "MSA_BACKEND=msa", "msactl", *command, "-f", "csv", check=False)
        return list(csv.DictReader(io.StringIO(listing.stdout)))

    def up(self):
        return sorted(row["node"] for row in self.rows("node", "list") if row["state"].lower() == "up")

    def log_of(self, host, daemon):
        return pathlib.Path(f"/run/msa-vcluster/{self.name}/log/{host}/{daemon}.log").read_text(errors="replace")

    def pids(self, host, daemon):
        """Of that host's PID namespace."""
        return self.shell(host, f"pgrep -x {daemon}", check=False).stdout.split()

    def stop(self, host, daemon):
        """Kills a daemon with the loop that starts it again; returns what start() takes."""
        loop = self.shell(host, f"pgrep -o -f 'starts again.* {daemon} '").stdout.split()[0]
        words = self.on(host, "cat", f"/proc/{loop}/cmdline").stdout.rstrip("\0").split("\0")
        self.shell(host, f"kill -KILL {loop}; pkill -KILL -x {daemon}; while pgrep -x {daemon}; do sleep 0.02; done")
        return words

    def start(self, host, daemon, words):
        self.on(host, "bash", "-c", f'setsid "$@" </dev/null >>/var/log/{daemon}.log 2>&1 &', daemon, *words)


def eventually(case, claim, condition, limit=20):
    """Waits for the condition and returns what it gave; the test fails if it never holds."""
    end = time.monotonic() + limit
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > end:
            case.fail(f"not within {limit} s: {claim}")
        time.sleep(0.05)
