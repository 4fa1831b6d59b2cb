#!/usr/bin/env python3
"""Network attached memory and gateways of jobs that Slurm schedules: counted, waited for, refused, and free again when nodes die.

Usage: slurm_resources_test.py BUILD_DIRECTORY [unittest's options]. Needs root; exit code 77: it is not root.
"""

import os
import pathlib
import shutil
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from hosts_support import ROOT, Hosts, eventually  # noqa: E402

BUILD = pathlib.Path(sys.argv.pop(1)).resolve() if len(sys.argv) > 1 else ROOT / "build/release"
HOLD = BUILD / "tests/programs/nam_hold"
USER = "nobody"
ALL = ["bn0", "bn1", "cn0", "cn1", "dn0", "gw0", "nam0"]
HOSTS = Hosts(f"res-{os.getpid()}")
SHARED = tempfile.mkdtemp(prefix="msa-resources-")  # all hosts see it


def setUpModule():
    os.chmod(SHARED, 0o1777)
    # slurmctld takes a node for dead when its slurmd has been silent for so long, instead of 300 s.
    timeout = ["--slurm-conf", "SlurmdTimeout=10"]
    done = HOSTS.vcluster("up", "--bin", str(BUILD / "bin"), "--share", str(BUILD), "--share", SHARED, *timeout)
    print(done.stdout.splitlines()[0], flush=True)


def tearDownModule():
    HOSTS.vcluster("down")
    shutil.rmtree(SHARED)


def jobs():
    """msa's jobs that have not ended, by number."""
    return {row["job"]: row for row in HOSTS.rows("job", "list")}


def regions():
    return HOSTS.on("ctl", "msactl", "region", "list", "-f", "name", user=USER).stdout.split()


def books():
    return HOSTS.on("ctl", "msactl", "region", "df", user=USER).stdout


class Case(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        eventually(self, "all nodes are up", lambda: HOSTS.up() == ALL)
        eventually(self, "Slurm's nodes are idle", self.all_idle, limit=60)

    def tearDown(self):
        HOSTS.on("ctl", "scancel", "--user", USER, check=False)
        eventually(self, "Slurm has ended all jobs", lambda: HOSTS.on("ctl", "squeue", "-h").stdout == "", limit=60)
        eventually(self, "msa has ended all jobs", lambda: jobs() == {}, limit=60)
        self.assertIn("no job uses NAM", books())
        for entry in pathlib.Path(SHARED).iterdir():
            entry.unlink()

    def all_idle(self):
        states = HOSTS.on("ctl", "sinfo", "-h", "-N", "-o", "%T", check=False).stdout.split()
        return len(states) == len(ALL) - 1 and set(states) == {"idle"}

    def batch(self, name, body, *options):
        """Submits a script; returns its job's number. What it writes is output(name)."""
        path = pathlib.Path(SHARED, name + ".sh")
        path.write_text("#!/bin/bash\n" + body + "\n")
        done = HOSTS.on("ctl", "sbatch", "--parsable", "--no-requeue", "-t", "10", "-D", SHARED, "-o", f"{SHARED}/{name}",
                        *options, str(path), user=USER)  # fmt: skip
        return done.stdout.strip()

    def output(self, name):
        path = pathlib.Path(SHARED, name)
        return path.read_text() if path.exists() else ""

    def state(self, job):
        return HOSTS.on("ctl", "squeue", "-h", "-t", "all", "-j", job, "-o", "%T %r").stdout.strip()

    def refused(self, *words):
        done = HOSTS.on("ctl", *words, user=USER, check=False)
        self.assertNotEqual(done.returncode, 0, done.stdout)
        return done.stderr


WAIT = f"until [ -e {SHARED}/go ]; do sleep 0.1; done"


def go():
    pathlib.Path(SHARED, "go").touch()


class Gateways(Case):
    def test_a_jobs_script_and_steps_have_the_names(self):
        job = self.batch("out", "echo script $MSA_GATEWAYS; srun bash -c 'echo step $MSA_GATEWAYS'", "--gateways=1")
        eventually(self, "it ends", lambda: self.state(job).startswith("COMPLETED"))
        self.assertEqual(self.output("out"), "script gw0\nstep gw0\n")

    def test_a_job_that_asks_for_none_has_none_and_runs_beside(self):
        holder = self.batch("holder", WAIT, "--gateways=1")
        eventually(self, "it runs", lambda: self.state(holder).startswith("RUNNING"))
        done = HOSTS.on("ctl", "srun", "-Q", "-p", "booster", "bash", "-c", "echo -$MSA_GATEWAYS-", user=USER)
        self.assertEqual(done.stdout, "--\n")

    def test_a_second_job_waits_until_the_first_has_ended(self):
        first = self.batch("first", f"srun bash -c 'echo $MSA_GATEWAYS; {WAIT}'", "--gateways=1", "-w", "cn0")
        eventually(self, "the first runs", lambda: self.output("first") == "gw0\n")
        second = self.batch("second", "srun printenv MSA_GATEWAYS", "--gateways=1", "-w", "cn1")
        eventually(self, "the second waits for it", lambda: self.state(second) == "PENDING Licenses")
        go()
        eventually(self, "the second has ended", lambda: self.state(second).startswith("COMPLETED"), limit=60)
        self.assertEqual(self.output("second"), "gw0\n")
        self.assertTrue(self.state(first).startswith("COMPLETED"))

    def test_they_are_given_by_component_too(self):
        done = HOSTS.on("ctl", "srun", "-Q", "--gateways=0:1,1:0", "-n1", "printenv", "MSA_GATEWAYS",
                        ":", "-p", "booster", "-n1", "printenv", "MSA_GATEWAYS", user=USER)  # fmt: skip
        self.assertEqual(done.stdout, "gw0\ngw0\n")

    def test_more_than_exist_are_refused_at_submission(self):
        self.assertIn("--gateways=2: 1 exist, so the job could never start", self.refused("srun", "--gateways=2", "true"))
        self.assertIn("--gateways=two", self.refused("srun", "--gateways=two", "true"))

    def test_a_step_that_asks_for_more_than_its_job_has_is_refused(self):
        job = self.batch("out", "srun --gateways=1 true")
        eventually(self, "it ends", lambda: self.state(job).startswith("FAILED"))
        self.assertIn(f"--gateways=1: job {job} has 0; give --gateways to sbatch or salloc", self.output("out"))


class Memory(Case):
    def hold(self, name, *options):
        """A job on cn0 that holds a region of its own, of that name."""
        job = self.batch(name, f"srun bash -c 'sleep 600 | {HOLD} {name}'", "--nam=100M", "-w", "cn0", *options)
        eventually(self, "it holds its region", lambda: name in regions(), limit=60)
        self.assertIn("100M", books())
        return job

    def kill_slurm(self, host):
        """slurmd and what it has started; a slurmd that is alone would end the job in order."""
        HOSTS.shell(host, "pkill -KILL -x slurmd; pkill -KILL -x slurmstepd; while pgrep -x slurmd; do sleep 0.02; done")
        self.addCleanup(HOSTS.on, host, "slurmd")

    def kill_node(self, host):
        self.kill_slurm(host)
        words = HOSTS.stop(host, "msa-noded")
        self.addCleanup(HOSTS.start, host, "msa-noded", words)
        HOSTS.shell(host, "pkill -KILL -x msa-jobd; pkill -KILL -u nobody; true")

    def is_over(self, job):
        eventually(self, "slurmctld ends the job", lambda: self.state(job).startswith("NODE_FAIL"), limit=90)
        eventually(self, "msa ends it", lambda: job not in jobs(), limit=60)

    def test_what_a_job_has_is_free_when_its_slurmd_died_and_no_epilog_ran(self):
        job = self.hold("leased")
        self.kill_slurm("cn0")
        self.is_over(job)
        eventually(self, "its region is gone", lambda: regions() == [])
        self.assertNotIn("100M", books())
        again = self.batch("again", "srun true", "--nam=1G", "-p", "booster")
        eventually(self, "another job has all of it", lambda: self.state(again).startswith("COMPLETED"), limit=60)

    def test_what_a_job_has_is_free_when_its_node_died(self):
        job = self.hold("leased")
        self.kill_node("cn0")
        self.is_over(job)
        eventually(self, "its region is gone", lambda: regions() == [])
        self.assertNotIn("100M", books())

    def test_persistent_regions_stay_and_stay_counted_when_the_node_of_their_job_died(self):
        HOSTS.on("ctl", "msactl", "region", "create", "kept", "--size", "300M", user=USER)
        self.addCleanup(HOSTS.on, "ctl", "msactl", "region", "rm", "--force", "kept", user=USER)
        job = self.hold("leased", "--nam-region=kept:rw")
        busy = HOSTS.on("cn1", "msactl", "region", "rm", "kept", user=USER, check=False)
        self.assertNotEqual(busy.returncode, 0, "a job uses it")
        self.kill_node("cn0")
        self.is_over(job)
        eventually(self, "the job's own region is gone", lambda: regions() == ["kept"])
        self.assertRegex(books(), r"nam0 +UP +1G +300M +724M")
        # Slurm's licences are not lowered by it: the controller counts.
        text = self.refused("srun", "-Q", "--nam=1G", "-p", "booster", "true")
        self.assertIn("--nam=1G: 724M of network attached memory are free for jobs", text)
        done = HOSTS.on("ctl", "srun", "-Q", "--nam=724M", "-p", "booster", "hostname", user=USER)
        self.assertIn(done.stdout, ("bn0\n", "bn1\n"))

    def test_a_job_waits_for_memory_that_another_has(self):
        first = self.batch("first", WAIT, "--nam=1000M", "-p", "cluster")
        eventually(self, "the first runs", lambda: self.state(first).startswith("RUNNING"))
        second = self.batch("second", "srun hostname", "--nam=100M", "-p", "booster")
        eventually(self, "the second waits for it", lambda: self.state(second) == "PENDING Licenses")
        go()
        eventually(self, "the second has ended", lambda: self.state(second).startswith("COMPLETED"), limit=60)
        self.assertRegex(self.output("second"), r"^bn\d\n$")

    def test_more_than_exists_is_refused_at_submission(self):
        self.assertIn("--nam=2G: more than the 1G of network attached memory that exist", self.refused("srun", "--nam=2G", "true"))


if __name__ == "__main__":
    if os.geteuid() != 0:
        print("slurm_resources_test: needs root: namespaces, munge and slurmd do; run it with sudo", file=sys.stderr)
        sys.exit(77)
    unittest.main()
