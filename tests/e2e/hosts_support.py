"""What the tests of systems of several hosts share: a virtual cluster (deploy/vcluster) of their own, its users and its jobs.

A program takes BUILD_DIRECTORY as its first argument, makes one Hosts, raises it in setUpModule(), derives its tests from
HostsCase or JobsCase, and ends with main().
"""

import csv
import io
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(sys.argv.pop(1)).resolve() if len(sys.argv) > 1 else ROOT / "build/release"
PROGRAMS = BUILD / "tests/programs"
USER = "nobody"
ALL = ["bn0", "bn1", "cn0", "cn1", "dn0", "gw0", "nam0"]
NODES = [host for host in ALL if host != "nam0"]  # of Slurm
# A requeued job starts again after so many seconds, instead of 120, or with slurmctld's pass each minute. A step that a slurmd is
# told of later than this has an expired credential.
REQUEUE_SOON = ("--slurm-conf", "AuthInfo=cred_expire=20")
# Of srun, about a step that waits until the nodes of the step before it are free again.
WAITS = re.compile(r"(?m)^srun: (Job \d+ step creation (temporarily|still) disabled, retrying .*|Step created for job \d+)\n")


def without_waits(text):
    return WAITS.sub("", text)


def taken(option):
    """Whether the program was given an option of its own, which unittest is not to see."""
    given = option in sys.argv
    if given:
        sys.argv.remove(option)
    return given


class Unanswered(AssertionError):
    """A command failed, or msactl could not list: nothing is known, not even that there is nothing."""


class Hosts:
    def __init__(self, name, scheduler="slurm"):
        self.name = f"{name}-{os.getpid()}"
        self.scheduler = scheduler
        self.shared = pathlib.Path(f"/run/msa-e2e-{self.name}")  # of all hosts and users, while the cluster is up

    def raise_for_module(self, *words):
        """For setUpModule(): the cluster is up while the module's tests run, and is gone after them, also where it did not come up."""
        shutil.rmtree(self.shared, ignore_errors=True)  # of a process of this number that was killed
        self.shared.mkdir()
        unittest.addModuleCleanup(shutil.rmtree, self.shared)
        self.shared.chmod(0o1777)
        unittest.addModuleCleanup(self.vcluster, "down", timeout=180)
        done = self.vcluster("up", "--scheduler", self.scheduler, "--bin", BUILD / "bin", "--share", BUILD,
                             "--share", self.shared, "--timeout", 480, *words, timeout=600)  # fmt: skip
        print(done.stdout.splitlines()[0], flush=True)

    def words(self, verb, *words):
        return [str(ROOT / "deploy/vcluster"), verb, "--name", self.name, *map(str, words)]

    def vcluster(self, verb, *words, check=True, timeout=120):
        command = self.words(verb, *words)
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=timeout, check=False)
        if check and done.returncode != 0:
            raise Unanswered(f"{' '.join(command[1:])}: status {done.returncode}\n{done.stdout}{done.stderr}")
        return done

    def exec_words(self, host, *command, user=None):
        return [*(["--user", user] if user else []), host, *command]

    def on(self, host, *command, user=None, check=True, timeout=120):
        return self.vcluster("exec", *self.exec_words(host, *command, user=user), check=check, timeout=timeout)

    def shell(self, host, script, **options):
        return self.on(host, "bash", "-c", script, **options)

    def begin(self, host, *command, user=None):
        """A command that runs meanwhile."""
        return subprocess.Popen(
            self.words("exec", *self.exec_words(host, *command, user=user)),
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip

    def rows(self, *command, host="ctl"):
        """What a listing of msactl shows of msa's own jobs and nodes, row by row."""
        backend = ["env", "MSA_BACKEND=msa"] if self.scheduler == "slurm" else []
        listing = self.on(host, *backend, "msactl", *command, "-f", "csv", check=False)
        if listing.returncode != 0:
            raise Unanswered(f"msactl {' '.join(command)}: status {listing.returncode}: {listing.stderr}")
        return list(csv.DictReader(io.StringIO(listing.stdout)))

    def jobs(self):
        """msa's jobs that have not ended, by number."""
        return {row["job"]: row for row in self.rows("job", "list")}

    def up(self, host="ctl"):
        return sorted(row["node"] for row in self.rows("node", "list", host=host) if row["state"].lower() == "up")

    def idle(self):
        """Whether all of Slurm's nodes are."""
        states = self.on("ctl", "sinfo", "-h", "-N", "-o", "%N %T", check=False).stdout.splitlines()
        return sorted(states) == sorted(f"{node} idle" for node in NODES)

    def regions(self):
        return self.on("ctl", "msactl", "region", "list", "-f", "name", user=USER).stdout.split()

    def state(self, job):
        """And the reason, as Slurm tells them, also of a job that is over."""
        return self.on("ctl", "squeue", "-h", "-t", "all", "-j", job, "-o", "%T %r").stdout.strip()

    def log_of(self, host, daemon):
        return pathlib.Path(f"/run/msa-vcluster/{self.name}/log/{host}/{daemon}.log").read_text(errors="replace")

    def said(self):
        """For a test that fails: how things stand."""
        logs = "tail -n 30 /var/log/msa-controllerd.log"
        if self.scheduler == "slurm":
            logs = f"squeue -t all -o '%A %T %r %N %S'; sinfo -N -o '%N %P %T'; {logs}; tail -n 30 /var/log/slurmctld.log"
        done = self.shell("ctl", logs, check=False)
        return done.stdout + done.stderr

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


class HostsCase(unittest.TestCase):
    """A test on the hosts of its program."""

    maxDiff = None
    hosts = None  # a Hosts
    limit = 60  # seconds that are waited for what is given no other time

    def eventually(self, claim, condition, limit=None):
        """Waits for the condition and returns what it gave; the test fails if it never holds."""
        limit = self.limit if limit is None else limit
        end = time.monotonic() + limit
        pause = 0.05
        while True:
            unanswered = ""
            try:
                value = condition()
                if value:
                    return value
            except Unanswered as error:
                unanswered = f"\n{error}"
            if time.monotonic() > end:
                self.fail(f"not within {limit} s: {claim}{unanswered}\n{self.hosts.said()}")
            time.sleep(pause)
            pause = min(1.5 * pause, 0.5)  # each look costs processors what the cluster could have

    def refused(self, done, *parts):
        self.assertNotEqual(done.returncode, 0, done.stdout)
        for part in parts:
            self.assertIn(part, done.stderr)

    def all_nodes_are_up(self):
        self.eventually("all nodes are up", lambda: self.hosts.up() == ALL)

    def plugins_find_node_daemons(self):
        there = lambda host: self.hosts.on(host, "test", "-S", "/run/msa/plugin.sock", check=False).returncode == 0  # noqa: E731
        self.eventually("plugins find a node daemon", lambda: all(map(there, NODES)))

    def meanwhile(self, host, *command, user=None):
        """A command that runs beside the test, and no longer."""
        process = self.hosts.begin(host, *command, user=user)
        self.addCleanup(self.give_up, process)
        return process

    def give_up(self, process):
        process.kill()
        process.wait()
        process.stdout.close()
        process.stderr.close()

    def without(self, host, daemon):
        """Takes a daemon away for the rest of the test."""
        words = self.hosts.stop(host, daemon)
        self.away = [*getattr(self, "away", []), (host, daemon, words)]
        self.addCleanup(self.bring_back)

    def bring_back(self):
        for host, daemon, words in self.__dict__.pop("away", []):
            self.hosts.start(host, daemon, words)

    def kill_daemon(self, host, daemon):
        """Returns when another one is there."""
        before = self.eventually("it is there", lambda: self.hosts.pids(host, daemon))
        self.hosts.on(host, "kill", "-KILL", *before)
        self.eventually("it is back", lambda: self.hosts.pids(host, daemon) not in ([], before))

    def kill_slurmctld(self, *names):
        """Once it has the jobs of these names on disk, where it writes them some seconds later."""
        for name in names:
            saved = f"grep -aq '{name}' /var/spool/slurmctld/job_state"
            self.eventually(f"job {name} is on disk", lambda s=saved: self.hosts.shell("ctl", s, check=False).returncode == 0, limit=60)
        self.hosts.shell("ctl", "pkill -KILL -x slurmctld && while pgrep -x slurmctld >/dev/null; do sleep 0.02; done")

    def stop_slurmctld(self):
        """In order: it writes down what it knows. One that is killed comes back with what was on disk, a drain that was lifted say."""
        self.hosts.shell("ctl", "pkill -TERM -x slurmctld; while pgrep -x slurmctld >/dev/null; do sleep 0.02; done")

    def start_slurmctld(self):
        self.hosts.on("ctl", "slurmctld")
        self.eventually("slurmctld answers", lambda: "is UP" in self.hosts.on("ctl", "scontrol", "ping", check=False).stdout)

    def kill_slurmd(self, host):
        """With what it has started; a slurmd that is alone would end its jobs in order."""
        self.hosts.shell(host, "pkill -KILL -x slurmd; pkill -KILL -x slurmstepd; while pgrep -x slurmd; do sleep 0.02; done")


class JobsCase(HostsCase):
    """A test of jobs of Slurm's, whose scripts and outputs lie in the directory that the hosts share; it leaves none of them."""

    sbatch = ()  # options of each job

    def tearDown(self):
        self.bring_back()
        self.hosts.on("ctl", "scancel", "--user", USER, check=False)
        self.nothing_is_left()
        for entry in self.hosts.shared.iterdir():
            entry.unlink(missing_ok=True)

    def nothing_is_left(self):
        self.eventually("Slurm has ended all jobs", lambda: self.hosts.on("ctl", "squeue", "-h").stdout == "")
        self.eventually("msa has ended all jobs", lambda: self.hosts.jobs() == {})

    def batch(self, script, *options, name="out"):
        """Submits a script and returns the number of its job; what it prints is output(name)."""
        shared = self.hosts.shared
        path = shared / f"{name}.sh"
        path.write_text(f"#!/bin/bash\n{script}\n")
        (shared / name).unlink(missing_ok=True)  # of a job before
        words = ["sbatch", "--parsable", "-D", shared, "-o", shared / name, *self.sbatch, *options, path]
        return self.hosts.on("ctl", *words, user=USER).stdout.strip().split(";")[0]

    def output(self, name="out"):
        path = self.hosts.shared / name
        return without_waits(path.read_text()) if path.exists() else ""


def main(**options):
    """The program's tests, with unittest's options."""
    if os.geteuid() != 0:
        print(f"{pathlib.Path(sys.argv[0]).name}: needs root: namespaces, munge and slurmd do; run it with sudo", file=sys.stderr)
        sys.exit(77)
    unittest.main(**options)
