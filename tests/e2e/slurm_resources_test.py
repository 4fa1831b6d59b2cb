#!/usr/bin/env python3
"""Network attached memory and gateways of jobs that Slurm schedules: counted, waited for, refused, and free again when nodes die.

Usage: slurm_resources_test.py BUILD_DIRECTORY [unittest's options]. Needs root; exit code 77: it is not root.
"""

import re

from hosts_support import PROGRAMS, USER, Hosts, JobsCase, main

HOLD = PROGRAMS / "nam_hold"
HOSTS = Hosts("res")
SHARED = HOSTS.shared


def setUpModule():
    # slurmctld takes a node for dead when its slurmd has been silent for so long, instead of 300 s.
    HOSTS.raise_for_module("--slurm-conf", "SlurmdTimeout=10")


def books():
    return HOSTS.on("ctl", "msactl", "region", "df", user=USER).stdout


class Case(JobsCase):
    hosts = HOSTS
    sbatch = ("--no-requeue", "-t", "10")

    def setUp(self):
        self.all_nodes_are_up()
        self.eventually("Slurm's nodes are idle", HOSTS.idle)

    def nothing_is_left(self):
        super().nothing_is_left()
        self.eventually("no job uses NAM", lambda: "no job uses NAM" in books())

    def refused(self, *words):
        done = HOSTS.on("ctl", *words, user=USER, check=False)
        self.assertNotEqual(done.returncode, 0, done.stdout)
        return done.stderr


WAIT = f"until [ -e {SHARED}/go ]; do sleep 0.1; done"


def go():
    (SHARED / "go").touch()


class Gateways(Case):
    def test_a_jobs_script_and_steps_have_the_names(self):
        job = self.batch("echo script $MSA_GATEWAYS; srun bash -c 'echo step $MSA_GATEWAYS'", "--gateways=1")
        self.eventually("it ends", lambda: HOSTS.state(job).startswith("COMPLETED"))
        self.assertEqual(self.output("out"), "script gw0\nstep gw0\n")

    def test_a_job_that_asks_for_none_has_none_and_runs_beside(self):
        holder = self.batch(WAIT, "--gateways=1", name="holder")
        self.eventually("it runs", lambda: HOSTS.state(holder).startswith("RUNNING"))
        done = HOSTS.on("ctl", "srun", "-Q", "-p", "booster", "bash", "-c", "echo -$MSA_GATEWAYS-", user=USER)
        self.assertEqual(done.stdout, "--\n")

    def test_a_second_job_waits_until_the_first_has_ended(self):
        first = self.batch(f"srun bash -c 'echo $MSA_GATEWAYS; {WAIT}'", "--gateways=1", "-w", "cn0", name="first")
        self.eventually("the first runs", lambda: self.output("first") == "gw0\n")
        second = self.batch("srun printenv MSA_GATEWAYS", "--gateways=1", "-w", "cn1", name="second")
        self.eventually("the second waits for it", lambda: HOSTS.state(second) == "PENDING Licenses")
        go()
        self.eventually("the second has ended", lambda: HOSTS.state(second).startswith("COMPLETED"), limit=60)
        self.assertEqual(self.output("second"), "gw0\n")
        self.assertTrue(HOSTS.state(first).startswith("COMPLETED"))

    def test_they_are_given_by_component_too(self):
        done = HOSTS.on("ctl", "srun", "-Q", "--gateways=0:1,1:0", "-n1", "printenv", "MSA_GATEWAYS",
                        ":", "-p", "booster", "-n1", "printenv", "MSA_GATEWAYS", user=USER)  # fmt: skip
        self.assertEqual(done.stdout, "gw0\ngw0\n")

    def test_more_than_exist_are_refused_at_submission(self):
        self.assertIn("--gateways=2: 1 exist, so the job could never start", self.refused("srun", "--gateways=2", "true"))
        self.assertIn("--gateways=two", self.refused("srun", "--gateways=two", "true"))

    def test_a_step_that_asks_for_more_than_its_job_has_is_refused(self):
        job = self.batch("srun --gateways=1 true")
        self.eventually("it ends", lambda: HOSTS.state(job).startswith("FAILED"))
        self.assertIn(f"--gateways=1: job {job} has 0; give --gateways to sbatch or salloc", self.output("out"))


class LostOptions(Case):
    """Of steps that are not msa's."""

    def test_what_a_step_would_lose_is_refused_with_the_reason_and_a_remedy(self):
        for words, text in (
            (["--msa=no", "--nam=1G"], "--nam=1G would be lost: --msa=no leaves the step to Slurm; leave out --msa=no"),
            (["--msa=no", "--nam-region=data"], "--nam-region=data would be lost: --msa=no"),
            (["--mpi=pmi2", "--gateways=1"], "--gateways=1 would be lost: --mpi=pmi2 leaves the step to Slurm; give srun --mpi=none"),
            (["--mpi=pmi2", "--on-child-failure=event"], "--on-child-failure=event would be lost: --mpi=pmi2"),
        ):
            with self.subTest(words=words):
                self.assertIn(text, self.refused("srun", "-Q", *words, "true"))

    def test_what_the_job_was_given_is_no_error_in_a_step_that_is_slurms(self):
        script = "srun --msa=no echo no; srun --mpi=pmi2 echo pmi2; srun printenv MSA_GATEWAYS; srun --msa=no --nam=100M true"
        job = self.batch(script, "--gateways=1", "--nam=100M", "--on-child-failure=event")
        self.eventually("it ends", lambda: HOSTS.state(job).startswith("FAILED"), limit=60)
        # Slurm's own word may stand between them: a step waits until the one before has left its cores.
        self.assertEqual([line for line in self.output().splitlines() if not line.startswith("srun: ")], ["no", "pmi2", "gw0"])
        self.assertIn("--nam=100M would be lost: --msa=no", self.output())

    def test_a_job_that_is_left_to_slurm_says_so_to_a_step_with_options(self):
        job = self.batch("srun --on-child-failure=event true", "--msa=no")
        self.eventually("it ends", lambda: HOSTS.state(job).startswith("FAILED"), limit=60)
        self.assertIn("would be lost: the job's --msa=no leaves the step to Slurm; give srun --msa=yes", self.output())

    def test_a_node_without_node_daemon_takes_no_step_with_options(self):
        self.without("bn0", "msa-noded")
        bn0 = ["-p", "booster", "-w", "bn0"]
        self.assertEqual(HOSTS.on("ctl", "srun", "-Q", *bn0, "hostname", user=USER).stdout, "bn0\n")
        text = self.refused("srun", "-Q", *bn0, "--on-child-failure=event", "hostname")
        self.assertRegex(text, "msa: --on-child-failure=event would be lost: node bn0 has no node daemon of msa .*start msa-noded there")
        with self.subTest("a script and its steps go on"):
            job = self.batch("srun hostname", *bn0, "--on-child-failure=event")
            self.eventually("it ends", lambda: HOSTS.state(job).startswith("COMPLETED"), limit=60)
            self.assertIn("bn0\n", self.output())
            self.assertIn("script runs without msa: --on-child-failure=event would be lost: node bn0", HOSTS.log_of("bn0", "slurmd"))


class Memory(Case):
    def hold(self, name, *options):
        """A job on cn0 that holds a region of its own, of that name."""
        job = self.batch(f"srun bash -c 'sleep 600 | {HOLD} {name}'", "--nam=100M", "-w", "cn0", *options, name=name)
        self.eventually("it holds its region", lambda: name in HOSTS.regions(), limit=60)
        self.assertIn("100M", books())
        return job

    def kill_slurm(self, host):
        self.kill_slurmd(host)
        self.addCleanup(HOSTS.on, host, "slurmd")

    def kill_node(self, host):
        self.kill_slurm(host)
        self.without(host, "msa-noded")
        HOSTS.shell(host, "pkill -KILL -x msa-jobd; pkill -KILL -u nobody; true")

    def is_over(self, job):
        self.eventually("slurmctld ends the job", lambda: HOSTS.state(job).startswith("NODE_FAIL"), limit=90)
        self.eventually("msa ends it", lambda: job not in HOSTS.jobs(), limit=60)

    def test_what_a_job_has_is_free_when_its_slurmd_died_and_no_epilog_ran(self):
        job = self.hold("leased")
        self.kill_slurm("cn0")
        self.is_over(job)
        self.eventually("its region is gone", lambda: HOSTS.regions() == [])
        self.eventually("the books are without it", lambda: "100M" not in books())
        again = self.batch("srun true", "--nam=1G", "-p", "booster", name="again")
        self.eventually("another job has all of it", lambda: HOSTS.state(again).startswith("COMPLETED"), limit=60)

    def test_what_a_job_has_is_free_when_its_node_died(self):
        job = self.hold("leased")
        self.kill_node("cn0")
        self.is_over(job)
        self.eventually("its region is gone", lambda: HOSTS.regions() == [])
        self.eventually("the books are without it", lambda: "100M" not in books())

    def test_persistent_regions_stay_and_stay_counted_when_the_node_of_their_job_died(self):
        HOSTS.on("ctl", "msactl", "region", "create", "kept", "--size", "300M", user=USER)
        self.addCleanup(HOSTS.on, "ctl", "msactl", "region", "rm", "--force", "kept", user=USER)
        job = self.hold("leased", "--nam-region=kept:rw")
        busy = HOSTS.on("cn1", "msactl", "region", "rm", "kept", user=USER, check=False)
        self.assertNotEqual(busy.returncode, 0, "a job uses it")
        self.kill_node("cn0")
        self.is_over(job)
        self.eventually("the job's own region is gone", lambda: HOSTS.regions() == ["kept"])
        self.eventually("the books have it alone", lambda: re.search(r"nam0 +UP +1G +300M +724M", books()))
        # Slurm's licences are not lowered by it: the controller counts.
        text = self.refused("srun", "-Q", "--nam=1G", "-p", "booster", "true")
        self.assertIn("--nam=1G: 724M of network attached memory are free for jobs", text)
        done = HOSTS.on("ctl", "srun", "-Q", "--nam=724M", "-p", "booster", "hostname", user=USER)
        self.assertIn(done.stdout, ("bn0\n", "bn1\n"))

    def test_a_job_waits_for_memory_that_another_has(self):
        first = self.batch(WAIT, "--nam=1000M", "-p", "cluster", name="first")
        self.eventually("the first runs", lambda: HOSTS.state(first).startswith("RUNNING"))
        second = self.batch("srun hostname", "--nam=100M", "-p", "booster", name="second")
        self.eventually("the second waits for it", lambda: HOSTS.state(second) == "PENDING Licenses")
        go()
        self.eventually("the second has ended", lambda: HOSTS.state(second).startswith("COMPLETED"), limit=60)
        self.assertRegex(self.output("second"), r"^bn\d\n$")

    def test_more_than_exists_is_refused_at_submission(self):
        self.assertIn("--nam=2G: more than the 1G of network attached memory that exist", self.refused("srun", "--nam=2G", "true"))


if __name__ == "__main__":
    main()
