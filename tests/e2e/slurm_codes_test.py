#!/usr/bin/env python3
"""Exit codes of steps that Slurm starts and msa ends: what srun and sacct say, as deploy/doc/slurm.md has it.

Usage: slurm_codes_test.py BUILD_DIRECTORY [unittest's options]. Needs root; exit code 77: it is not root.
"""

import re

from hosts_support import BUILD, PROGRAMS, REQUEUE_SOON, USER, Hosts, JobsCase, main

HOSTS = Hosts("codes")
SHARED = HOSTS.shared
FAULT = str(PROGRAMS / "mpi_fault")
MPICH_FAULT = str(PROGRAMS / "mpich_fault")
# Its child, connected, aborts with code 9.
CHILD_ABORTS = f"{BUILD}/pmix-server/jobd/test/mpi_job childabort"


def setUpModule():
    HOSTS.raise_for_module(*REQUEUE_SOON, "--accounting", "--timeout", "150")  # a database comes up too
    HOSTS.on("ctl", "sacctmgr", "-i", "add", "user", USER, "account=vcluster")


class Codes(JobsCase):
    hosts = HOSTS
    names = 0

    def setUp(self):
        self.all_nodes_are_up()
        self.plugins_find_node_daemons()
        test = ["sbatch", "--test-only", "-D", "/", "--wrap", "true"]
        self.eventually("slurmctld knows the user", lambda: HOSTS.on("ctl", *test, user=USER, check=False).returncode == 0, limit=60)

    def run_step(self, *words, name=None):
        """Ended, by whatever; a step that hangs fails the test."""
        words = ["srun", "-Q", *(["-J", name] if name else []), *words]
        return HOSTS.on("ctl", *words, user=USER, check=False, timeout=120)

    def named(self):
        Codes.names += 1
        return f"codes{Codes.names}"

    def steps(self, *options):
        """Of jobs in accounting: step to its exit code, as sacct tells; {} until all have ended."""
        rows = HOSTS.on("ctl", "sacct", "-n", "-P", "-S", "now-1hour", "-o", "JobID,State,ExitCode,End", *options).stdout.splitlines()
        rows = [row.split("|") for row in rows]
        if any(end == "Unknown" for *_, end in rows):
            return {}
        return {step: code for step, _, code, _ in rows if re.search(r"\.\d+$", step)}

    def in_accounting(self, *options, count=1):
        return list(self.eventually("its steps are in accounting", lambda: len(self.steps(*options)) >= count and self.steps(*options), limit=60).values())

    def ends_with(self, code, *words, sacct=None, steps=1):
        """The step's code by srun, and by sacct."""
        name = self.named()
        done = self.run_step(*words, name=name)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        if sacct is not None:
            self.assertEqual(self.in_accounting("--name", name, count=steps), [sacct] * steps)
        return done

    def batch_ends_with(self, code, command, *options):
        """A job whose script goes on after a step of this code; returns its number."""
        job = self.batch(f"{command}\necho its code is $?", *options)
        ended = lambda: re.search(r"^its code is (\d+)\n", self.output(), re.M)  # noqa: E731
        self.assertEqual(self.eventually("its step has ended", ended, limit=60)[1], str(code), self.output())
        return job

    def test_the_code_of_mpi_abort_is_that_of_srun_and_sacct(self):
        done = self.ends_with(17, "-N2", "-n4", FAULT, "abort", "1", "17", sacct="17:0")
        self.assertIn("aborted by task 1 with code 17", done.stderr)
        with self.subTest("as Slurm's own plugin has it"):
            self.ends_with(17, "--mpi=pmix", "-N2", "-n4", FAULT, "abort", "1", "17")
        with self.subTest("MPICH"):
            self.ends_with(17, "-N2", "-n4", MPICH_FAULT, "abort", "1", "17", sacct="17:0")
        with self.subTest("code 0 is a failure all the same"):
            self.ends_with(1, "-N2", "-n2", FAULT, "abort", "1", "0", sacct="1:0")

    def test_an_abort_in_one_component_is_the_code_of_both(self):
        for rank in ("1", "2"):
            with self.subTest(rank=rank):
                fault = [FAULT, "abort", rank, "17"]
                self.ends_with(17, "-p", "cluster", "-N1", "-n2", *fault, ":", "-p", "booster", "-N2", "-n2", *fault, sacct="17:0", steps=2)

    def test_a_task_that_leaves_gives_its_code_and_one_that_dies_its_signal(self):
        self.ends_with(17, "-N2", "-n4", FAULT, "exit", "1", "17", sacct="17:0")
        self.ends_with(137, "-N2", "-n4", FAULT, "kill", "1")
        self.ends_with(1, "-N2", "-n4", FAULT, "exit", "1", "0")
        with self.subTest("all have finalised"):
            self.ends_with(17, "-N2", "-n4", FAULT, "return", "1", "17")

    def test_a_script_around_a_program_that_aborts_ends_by_sigterm(self):
        with self.subTest("in every task"):
            done = self.ends_with(143, "-N2", "-n4", "bash", "-c", f"{FAULT} abort 1 17; echo went on with $?")
            # The shell of the one that aborts may see its code before msa ends the others.
            self.assertNotRegex(done.stdout.replace("went on with 17\n", "", 1), "went on")
        with self.subTest("in all but the one that aborts"):
            script = f"[ $SLURM_PROCID = 1 ] && exec {FAULT} abort 1 17; {FAULT} abort 1 17; echo went on with $?"
            self.ends_with(143, "-N2", "-n4", "bash", "-c", script)
        programs = lambda: "".join(HOSTS.shell(host, f"pgrep -l -u {USER} mpi_fault || true").stdout for host in ("cn0", "cn1"))  # noqa: E731
        self.eventually("no program is left", lambda: programs() == "")

    def test_a_batch_script_goes_on_after_its_step_and_reads_the_code(self):
        job = self.batch_ends_with(17, f"srun -N2 -n4 {FAULT} abort 1 17", "-N2", "-n4")
        self.assertEqual(self.in_accounting("-j", job), ["17:0"])

    def test_a_step_that_scancel_ends_gives_143(self):
        name = self.named()
        step = self.meanwhile("ctl", "srun", "-Q", "-J", name, "-N2", "-n2", FAULT, "hang", "0", user=USER)
        self.assertRegex(step.stdout.readline(), r"^up \d")
        HOSTS.on("ctl", "scancel", "--name", name, user=USER)
        _, err = step.communicate(timeout=60)
        self.assertEqual(step.returncode, 143, err)

    def test_a_spawned_childs_abort_is_its_parents_code_and_its_step_stands_in_sacct(self):
        with self.subTest("in the job's own slots"):
            job = self.batch_ends_with(9, f"srun -N1 -n1 {CHILD_ABORTS}", "-p", "cluster", "-N1", "-n2")
            self.assertEqual(self.in_accounting("-j", job, count=2), ["9:0", "9:0"])
        with self.subTest("in a companion"):
            job = self.batch_ends_with(9, f"srun -N1 -n1 {CHILD_ABORTS}", "-p", "cluster", "-N1", "-n1")
            companions = lambda: [  # noqa: E731
                line.split("|")[0]
                for line in HOSTS.on("ctl", "sacct", "-n", "-P", "-S", "now-1hour", "-X", "-a", "-o", "JobID,JobName").stdout.splitlines()
                if line.split("|")[1].startswith(f"msa:{job}.")
            ]
            companion = self.eventually("its companion is in accounting", companions)[0]
            self.assertEqual(self.in_accounting("-j", companion), ["9:0"])


if __name__ == "__main__":
    main()
