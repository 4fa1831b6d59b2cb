#!/usr/bin/env python3
"""Steps that Slurm starts: deploy/vcluster with real Slurm, its plugin msa_spank.so, msa's daemons and Open MPI.

Usage: slurm_test.py BUILD_DIRECTORY [unittest's options]. Needs root; exit code 77: it is not root.
"""

import re
import time

from hosts_support import ALL, PROGRAMS, REQUEUE_SOON, USER, Hosts, JobsCase, main

HOSTS = Hosts("slurm")
SHARED = HOSTS.shared
jobs = HOSTS.jobs
HELLO = str(PROGRAMS / "mpi_hello")
RING = str(PROGRAMS / "mpi_ring")
MPICH_RING = str(PROGRAMS / "mpich_ring")
MPICH_FAULT = str(PROGRAMS / "mpich_fault")


def setUpModule():
    HOSTS.raise_for_module(*REQUEUE_SOON)


def queue():
    """Slurm's jobs that run, by number."""
    return HOSTS.on("ctl", "squeue", "-h", "-t", "R", "-o", "%A").stdout.split()


class Case(JobsCase):
    hosts = HOSTS

    def setUp(self):
        self.all_nodes_are_up()
        self.plugins_find_node_daemons()
        self.eventually("Slurm's nodes are idle", HOSTS.idle)

    def run_step(self, *words, host="ctl", **options):
        # Quiet: that a job waits for the one before is no error.
        return HOSTS.on(host, "srun", "-Q", *words, user=USER, **options)

    def waiting_step(self, *words):
        """A step that runs until the file `go` is there; its first task says `begin` and `end`."""
        script = f"say() {{ [ $SLURM_PROCID != 0 ] || echo $1; }}; say begin; until [ -e {SHARED}/go ]; do sleep 0.05; done; say end"
        step = self.meanwhile("ctl", "srun", "-Q", *words, "bash", "-c", script, user=USER)
        self.assertEqual(step.stdout.readline(), "begin\n", step.poll() is not None and step.stderr.read())
        return step

    def go_on(self, step):
        (SHARED / "go").touch()
        out, err = step.communicate(timeout=60)
        return step.returncode, out, err


class Steps(Case):
    def test_a_step_is_a_job_of_msa_with_slurms_number_and_user_while_it_lasts(self):
        step = self.waiting_step("-N2", "-n3")
        row = self.eventually("the job is listed", lambda: jobs().get(queue()[0]))
        self.assertEqual((row["user"], row["nodes"], row["nodelist"], row["modules"]), (USER, "2", "cn[0-1]", "cluster"))
        self.assertEqual(self.go_on(step)[0], 0)
        self.eventually("the job is gone", lambda: jobs() == {})

    def test_a_program_that_is_no_mpi_program_runs_as_ever(self):
        done = self.run_step("-N2", "-n2", "hostname")
        self.assertEqual((sorted(done.stdout.split()), done.stderr), (["cn0", "cn1"], ""))
        failed = self.run_step("-N2", "-n2", "bash", "-c", "exit 3", check=False)
        self.assertEqual(failed.returncode, 3)

    def test_msa_no_leaves_a_step_to_slurm(self):
        step = self.waiting_step("--msa=no", "-N1")
        self.assertEqual(jobs(), {})
        self.assertEqual(self.go_on(step), (0, "end\n", ""))

    def test_steps_of_one_job_use_its_job_daemons_and_bring_new_nodes(self):
        script = f"srun -N1 -n1 hostname; srun -N2 -n2 hostname; touch {SHARED}/there; until [ -e {SHARED}/go ]; do sleep 0.05; done"
        job = self.batch(script, "-N2", "-n2")
        self.eventually("its steps are over", lambda: (SHARED / "there").exists(), limit=60)
        self.assertEqual(jobs()[job]["nodelist"], "cn[0-1]", self.output())
        self.assertEqual(sorted(self.output().split()), ["cn0", "cn0", "cn1"])
        daemons = HOSTS.rows("node", "list")
        self.assertEqual({row["node"] for row in daemons if row["state"].lower() == "up"}, set(ALL))
        (SHARED / "go").touch()
        self.eventually("the job is gone", lambda: job not in jobs())

    def test_submissions_and_ends_are_slurms(self):
        done = HOSTS.on("ctl", "msactl", "run", "--backend", "msa", "-m", "cluster", "true", user=USER, check=False)
        self.assertNotEqual(done.returncode, 0)
        self.assertRegex(done.stderr, "sbatch.*salloc.*srun")
        step = self.waiting_step("-N1")
        job = self.eventually("the job is listed", lambda: list(jobs()))[0]
        done = HOSTS.on("ctl", "msactl", "--backend", "msa", "job", "cancel", job, user=USER, check=False)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn(f"scancel {job}", done.stderr)
        HOSTS.on("ctl", "scancel", job, user=USER)
        step.wait(timeout=60)
        self.eventually("the job is gone", lambda: jobs() == {})


class Faults(Case):
    def test_without_msas_daemons_slurm_is_as_before(self):
        for host in ("cn0", "cn1"):
            self.without(host, "msa-noded")
        self.without("ctl", "msa-controllerd")
        begin = time.monotonic()
        done = self.run_step("-N2", "-n2", "hostname")
        self.assertEqual((sorted(done.stdout.split()), done.stderr), (["cn0", "cn1"], ""))
        self.assertLess(time.monotonic() - begin, 25)  # a verdict is waited for 30 s, a daemon that may come back 5 s
        refused = self.run_step("--msa=yes", "-N2", "-n2", "hostname", check=False)
        self.assertNotEqual(refused.returncode, 0)
        self.assertEqual(refused.stdout, "")
        self.assertRegex(refused.stderr, "msa: node cn[01] has no node daemon.*--msa=no")

    def test_a_node_without_node_daemon_refuses_the_step_and_is_named(self):
        self.without("cn1", "msa-noded")
        refused = self.run_step("--msa=yes", "-K", "-N2", "-n2", "hostname", check=False)
        self.assertNotEqual(refused.returncode, 0)
        self.assertRegex(refused.stderr, "msa: (step [0-9.]+: )?node cn1 has no node daemon")
        self.assertNotIn("cn0\n", refused.stdout)
        self.assertEqual(self.run_step("--msa=no", "-N2", "-n2", "echo", "x").stdout, "x\nx\n")

    def test_a_controller_that_is_away_when_a_step_begins_is_waited_for(self):
        words = HOSTS.stop("ctl", "msa-controllerd")
        script = "echo begin; echo $MSA_JOB_SOCKET"
        step = self.meanwhile("ctl", "srun", "-Q", "-N2", "-n2", "bash", "-c", script, user=USER)
        self.eventually("the step has begun", lambda: HOSTS.pids("cn0", "slurmstepd"))
        HOSTS.start("ctl", "msa-controllerd", words)
        out, err = step.communicate(timeout=60)
        self.assertEqual(step.returncode, 0, err)
        self.assertEqual(len(re.findall("/run/msa/n/cn[01]/w[0-9]+/job.sock", out)), 2, out)

    def between_two_steps(self, step='srun -N2 -n2 bash -c "echo \\$MSA_JOB_SOCKET"'):
        """A job that has had a step on two nodes; the next one begins when the test says so."""
        wait = f"until [ -e {SHARED}/go ]; do sleep 0.05; done"
        job = self.batch(f"{step}; touch {SHARED}/there; {wait}; {step} || echo code $?; touch {SHARED}/over; sleep 60", "-N2", "-n2")
        self.eventually("its first step is over", lambda: (SHARED / "there").exists())
        return job

    def the_second_step_is_over(self):
        (SHARED / "go").touch()
        self.eventually("its second step is over", lambda: (SHARED / "over").exists(), limit=90)

    def test_a_step_like_one_before_begins_while_the_controller_is_away(self):
        job = self.between_two_steps()
        words = HOSTS.stop("ctl", "msa-controllerd")
        self.the_second_step_is_over()
        HOSTS.start("ctl", "msa-controllerd", words)
        self.assertEqual(len(re.findall("/run/msa/n/cn[01]/w[0-9]+/job.sock", self.output())), 4, self.output())
        self.all_nodes_are_up()
        self.assertEqual(list(jobs()), [job])

    def test_a_step_goes_on_though_its_tasks_on_a_node_are_over_at_once(self):
        # Longer than the controller waits to hear of all parts of a step.
        self.between_two_steps("srun -N2 -n2 bash -c '[ $SLURM_PROCID = 1 ] || [ ! -e there ] || sleep 28; echo end'")
        self.the_second_step_is_over()
        self.assertEqual(self.output(), "end\n" * 4)

    def test_a_step_like_one_before_is_refused_where_a_node_daemon_has_gone_since(self):
        self.between_two_steps()
        self.without("cn1", "msa-noded")
        self.the_second_step_is_over()
        self.assertRegex(self.output(), "(?s)msa: .*node cn1 has no node daemon.*code [1-9]")

    def test_a_node_daemon_that_is_killed_while_a_step_waits_hears_of_it_again(self):
        job = HOSTS.on("ctl", "sbatch", "--parsable", "-p", "cluster", "-N2", "-n2", "-o", "/dev/null", "-D", "/", "--wrap",
                       f"until [ -e {SHARED}/go ]; do sleep 0.05; done", user=USER).stdout.strip()  # fmt: skip
        self.eventually("msa has the job", lambda: job in jobs())
        # Its step begins on cn1 alone, and waits for cn0.
        HOSTS.shell("cn0", "pkill -STOP -x slurmd")
        self.addCleanup(HOSTS.shell, "cn0", "pkill -CONT -x slurmd", check=False)
        script = "echo $MSA_JOB_SOCKET"
        step = self.meanwhile("ctl", "srun", "-Q", "--jobid", job, "--overlap", "-N2", "-n2", "bash", "-c", script, user=USER)
        told = lambda: HOSTS.on("cn1", "ss", "-xH").stdout.count("plugin.sock") == 1  # noqa: E731
        self.eventually("slurmstepd of cn1 waits for the verdict", told)
        self.kill_daemon("cn1", "msa-noded")
        self.eventually("it waits at the new node daemon", told)
        HOSTS.shell("cn0", "pkill -CONT -x slurmd")
        out, err = step.communicate(timeout=60)
        self.assertEqual((step.returncode, err), (0, ""))
        self.assertEqual(len(re.findall("/run/msa/n/cn[01]/w[0-9]+/job.sock", out)), 2, out)
        (SHARED / "go").touch()

    def test_a_controller_and_node_daemons_that_are_killed_come_back_and_the_step_goes_on(self):
        for host, daemon in (("ctl", "msa-controllerd"), ("cn1", "msa-noded"), ("cn0", "msa-noded")):
            with self.subTest(daemon=daemon, host=host):
                step = self.waiting_step("-N2", "-n2")
                job = self.eventually("the job is listed", lambda: list(jobs()))[0]
                self.kill_daemon(host, daemon)
                self.all_nodes_are_up()
                time.sleep(3)  # longer than the controller waits for job daemons that are not told of
                self.assertEqual(list(jobs()), [job])
                self.assertEqual(self.go_on(step), (0, "end\n", ""))
                self.eventually("the job is gone", lambda: jobs() == {})
                (SHARED / "go").unlink()

    def test_a_job_daemon_that_is_killed_ends_the_step_with_a_text(self):
        step = self.waiting_step("-N2", "-n2")
        job = self.eventually("the job is listed", lambda: list(jobs()))[0]
        HOSTS.shell("cn0", f"pkill -KILL -u {USER} -x msa-jobd")
        out, err = step.communicate(timeout=60)
        self.assertNotEqual(step.returncode, 0, out)
        self.assertRegex(err, rf"msa: the tasks on cn0 are killed: job daemon of job {job} on cn0 was killed by signal 9")
        self.eventually("the job is gone", lambda: jobs() == {})

    def test_a_requeued_job_begins_again(self):
        script = f"echo run $SLURM_RESTART_COUNT; srun hostname; until [ -e {SHARED}/go$SLURM_RESTART_COUNT ]; do sleep 0.05; done"
        job = self.batch(script, "--requeue", "--open-mode=append", "-N1")
        ran = lambda: len(re.findall(r"^cn\d$", self.output(), re.M))  # noqa: E731
        self.eventually("its step is over", lambda: ran() == 1, limit=60)
        self.assertIn(job, jobs())
        HOSTS.on("ctl", "scontrol", "requeue", job)
        self.eventually("it runs again", lambda: "run 1" in self.output() and ran() == 2, limit=150)
        self.assertIn(job, jobs())
        (SHARED / "go1").touch()
        self.eventually("the job is gone", lambda: job not in jobs(), limit=60)

    def test_a_job_that_ends_while_the_controller_is_away_is_gone_when_it_is_back(self):
        step = self.waiting_step("-N2", "-n2")
        self.eventually("the job is listed", lambda: list(jobs()))
        words = HOSTS.stop("ctl", "msa-controllerd")
        self.assertEqual(self.go_on(step)[0], 0)
        self.eventually("Slurm has ended it", lambda: HOSTS.on("ctl", "squeue", "-h").stdout == "")
        HOSTS.start("ctl", "msa-controllerd", words)
        self.all_nodes_are_up()
        self.eventually("the job is gone", lambda: jobs() == {})


class Mpi(Case):
    def placed(self, text):
        """Rank to node, as mpi_hello says; each rank once."""
        found = re.findall(r"hello rank=(\d+) size=(\d+) node=(\w+)", text)
        self.assertEqual(sorted(int(rank) for rank, _, _ in found), list(range(len(found))), text)
        self.assertEqual({int(size) for _, size, _ in found}, {len(found)}, text)
        return {int(rank): node for rank, _, node in found}

    def slurms(self, *words):
        """The same, as Slurm itself says."""
        done = self.run_step("--msa=no", *words, "bash", "-c", "echo $SLURM_PROCID $SLURMD_NODENAME")
        return {int(line.split()[0]): line.split()[1] for line in done.stdout.splitlines()}

    def test_a_step_is_one_world(self):
        self.assertEqual(self.run_step("-N2", "-n4", RING).stdout, "ring ok size=4\n")

    def test_ranks_are_where_slurm_puts_them(self):
        for words in (["-N2", "-n4"], ["-N2", "-n4", "-m", "cyclic"], ["-N2", "-n6", "-m", "plane=2"], ["-N2", "-n3"], ["-N1", "-n4"]):
            with self.subTest(words=words):
                self.assertEqual(self.placed(self.run_step(*words, HELLO).stdout), self.slurms(*words))

    def test_ranks_are_where_a_hostfile_puts_them(self):
        hosts = ["cn1", "cn0", "cn0", "cn1", "cn1"]
        (SHARED / "hosts").write_text("\n".join(hosts) + "\n")
        words = ["env", f"SLURM_HOSTFILE={SHARED}/hosts", "srun", "-Q", "-n5", "-m", "arbitrary"]
        of_slurm = HOSTS.on("ctl", *words, "--msa=no", "bash", "-c", "echo $SLURM_PROCID $SLURMD_NODENAME", user=USER).stdout
        placed = self.placed(HOSTS.on("ctl", *words, HELLO, user=USER).stdout)
        self.assertEqual(placed, {int(line.split()[0]): line.split()[1] for line in of_slurm.splitlines()})
        self.assertEqual(sorted(placed.values()), sorted(hosts))

    def test_a_step_of_mpich_is_one_world(self):
        # On one node: MPICH 4.0.2 over UCX hangs now and then in MPI_Finalize over several hosts, also under its own mpiexec.
        self.assertEqual(self.run_step("-N1", "-n4", MPICH_RING).stdout, "ring ok size=4\n")
        with self.subTest("over two nodes, a program that does not come to MPI_Finalize"):
            done = self.run_step("-N2", "-n4", MPICH_FAULT, "abort", "3", "7", check=False)
            self.assertEqual(sorted(done.stdout.split()), sorted(["up"] * 4 + list("0123")))
            self.assertIn("aborted by task 3 with code 7", done.stderr)

    def test_a_step_over_two_components_is_one_world(self):
        words = ["-p", "cluster", "-N2", "-n3", RING, ":", "-p", "booster", "-N1", "-n2", RING]
        self.assertEqual(self.run_step(*words).stdout, "ring ok size=5\n")
        done = self.run_step("-p", "cluster", "-N1", "-n2", HELLO, ":", "-p", "booster", "-N1", "-n2", HELLO)
        self.assertEqual([node[:2] for _, node in sorted(self.placed(done.stdout).items())], ["cn", "cn", "bn", "bn"])

    def test_a_het_jobs_groups_are_one_world_or_each_its_own(self):
        script = f"#SBATCH -p cluster -N1 -n2\n#SBATCH hetjob\n#SBATCH -p booster -N2 -n2\nsrun --het-group=0,1 {RING}\nsrun --het-group=1 {RING}\n"
        self.batch(script)
        self.eventually("both steps are over", lambda: self.output().count("\n") >= 2, limit=60)
        self.assertEqual(self.output(), "ring ok size=4\nring ok size=2\n")

    def test_two_steps_of_one_job_run_at_once(self):
        script = f"srun --exact -N2 -n2 {RING} &\nsrun --exact -N2 -n4 {RING} &\nwait\n"
        self.batch(script, "-N2", "-n8")
        self.eventually("both steps are over", lambda: self.output().count("\n") >= 2, limit=60)
        self.assertEqual(sorted(self.output().splitlines()), ["ring ok size=2", "ring ok size=4"])


if __name__ == "__main__":
    main()
