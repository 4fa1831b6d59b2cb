#!/usr/bin/env python3
"""MPI_Comm_spawn under the real Slurm: deploy/vcluster, srun and sbatch, unmodified Open MPI programs.

Usage: slurm_spawn_test.py BUILD_DIRECTORY [--soak] [unittest's options]. With --soak: 200 spawns and 50 starts of 64 tasks, instead
of some of each. Needs root; exit code 77: it is not root.
"""

import pathlib
import re

from hosts_support import NODES, PROGRAMS, REQUEUE_SOON, USER, Hosts, JobsCase, main, taken

SOAK = taken("--soak")
HOSTS = Hosts("spawn")
SHARED = HOSTS.shared
SPAWN = str(PROGRAMS / "mpi_spawn")
PLAN = str(PROGRAMS / "mpi_spawn_plan")
HELLO = str(PROGRAMS / "mpi_hello")
THREADS = str(PROGRAMS / "mpi_spawn_threads")


def setUpModule():
    HOSTS.raise_for_module(*REQUEUE_SOON)


def queue(*options):
    """Slurm's jobs: their numbers to (name, state)."""
    lines = HOSTS.on("ctl", "squeue", "-h", "-o", "%A %j %T", *options).stdout.splitlines()
    return {line.split()[0]: tuple(line.split()[1:]) for line in lines}


def companions():
    return {job: row for job, row in queue().items() if row[0].startswith("msa:")}


class Case(JobsCase):
    hosts = HOSTS

    def setUp(self):
        self.all_nodes_are_up()
        self.plugins_find_node_daemons()
        self.eventually("Slurm's nodes are up", lambda: "down" not in HOSTS.on("ctl", "sinfo", "-h", "-o", "%T").stdout)

    def nothing_is_left(self):
        """Of jobs, of loans, of processes."""
        super().nothing_is_left()
        self.eventually("msa lends nothing", lambda: HOSTS.rows("alloc", "list") == [])
        self.eventually("no process is left", lambda: self.left() == "")

    def left(self):
        """Of the user's: programs, sruns, helpers. Job daemons that wait for their next job stay."""
        return "".join(HOSTS.shell(host, f"pgrep -l -u {USER} 'mpi_|srun|msa-companion|msa-exec' || true").stdout for host in NODES)

    def ran(self, script, *options, limit=60):
        """What a job's script has printed, standard error too."""
        job = self.batch(script + "\necho script over\n", *options)
        self.eventually(f"job {job} is over", lambda: job not in queue(), limit=limit)
        # The job's companions end after it; what comes next may want their nodes.
        self.eventually("no companion is left", lambda: companions() == {})
        text = self.output()
        self.assertIn("script over", text)
        return text.replace("script over\n", "")

    def children(self, text):
        """Rank to node; each once, all of one world."""
        found = re.findall(r"^child rank=(\d+) size=(\d+) depth=\S+ node=(\w+)", text, re.M)
        self.assertEqual(sorted(int(rank) for rank, _, _ in found), list(range(len(found))), text)
        self.assertEqual({int(size) for _, size, _ in found}, {len(found)}, text)
        return [node for _, _, node in sorted(found, key=lambda one: int(one[0]))]

    def staying(self, *words, count=2, options=("-p", "cluster", "-N1", "-n1"), step=()):
        """A job whose children are there and wait for the file `go`; returns its number and its companions'."""
        stay = f"{SHARED}/go"
        job = self.batch(f"srun -n1 {' '.join(step)} {PLAN} --maxprocs {count} --stay {stay} {' '.join(words)}\necho code $?\n", *options)
        self.eventually("the children are there", lambda: f"remote={count} " in self.output(), limit=60)
        return job, list(companions())

    def go_on(self, job):
        (SHARED / "go").touch()
        self.eventually(f"job {job} is over", lambda: job not in queue(), limit=60)
        return self.output()


class OwnSlots(Case):
    def test_children_run_in_free_slots_of_one_node(self):
        text = self.ran(f"srun -N1 -n1 {SPAWN} --children 3", "-p", "cluster", "-N1", "-n4")
        self.assertEqual(self.children(text), ["cn0"] * 3)
        self.assertIn("spawned 3\n", text)
        # msa itself has nothing to say, and Slurm neither.
        self.assertNotRegex(text, "srun:|msa:|slurmstepd")

    def test_children_run_in_free_slots_of_several_nodes_also_of_those_without_a_step(self):
        text = self.ran(f"srun -N1 -n1 {SPAWN} --children 6", "-p", "cluster", "-N2", "-n8")
        self.assertEqual(self.children(text), ["cn0"] * 3 + ["cn1"] * 3)
        text = self.ran(f"srun -N2 -n2 {SPAWN} --children 6", "-p", "cluster", "-N2", "-n8")
        self.assertEqual(self.children(text), ["cn0"] * 3 + ["cn1"] * 3)

    def test_children_in_a_heterogeneous_job_run_in_all_components(self):
        het = "#SBATCH -p cluster -N1 -n2\n#SBATCH hetjob\n#SBATCH -p booster -N2 -n4\n"
        text = self.ran(f"{het}srun --het-group=0,1 -N1 -n1 {SPAWN} --children 3")
        self.assertEqual(self.children(text), ["cn0", "bn0", "bn0"])
        with self.subTest("a component that has no step"):
            text = self.ran(f"{het}srun --het-group=0 -n1 {SPAWN} --children 4 --info arch=booster")
            self.assertEqual({node[:2] for node in self.children(text)}, {"bn"})
        with self.subTest("the leader's component alone"):
            text = self.ran(f"{het}srun --het-group=0 -n1 {SPAWN} --children 1")
            self.assertEqual(self.children(text), ["cn0"])

    def test_children_come_where_plugstack_conf_leaves_steps_to_slurm(self):
        plugstack = pathlib.Path(f"/run/msa-vcluster/{HOSTS.name}/etc/slurm/plugstack.conf.d/msa.conf")
        line = plugstack.read_text()
        plugstack.write_text(line.rstrip() + " default=no\n")
        try:
            text = self.ran(f"srun --msa=yes -N1 -n1 {SPAWN} --children 3", "-p", "cluster", "-N2", "-n8")
            self.assertEqual(self.children(text), ["cn0"] * 3)
            text = self.ran(f"srun --msa=yes -n1 {SPAWN} --children 2 --info arch=booster", "-p", "cluster", "-n1")
            self.assertEqual(self.children(text), ["bn0"] * 2)
        finally:
            plugstack.write_text(line)

    def test_several_commands_are_one_world(self):
        text = self.ran(f"srun -N2 -n2 {PROGRAMS}/mpi_spawn_multiple", "-p", "cluster", "-N2", "-n8")
        self.assertIn("spawned 3, sum 3\n", text)
        self.assertEqual(sorted(re.findall("appnum=(.) arg=(.*) tag=(.*)", text)), [("0", "first", "one")] + [("1", "second", "two")] * 2)

    def test_children_spawn_too(self):
        text = self.ran(f"srun -N1 -n1 {SPAWN} --children 1 --depth 2", "-p", "cluster", "-N1", "-n4")
        self.assertIn("child rank=0 size=1 depth=1", text)
        self.assertIn("child rank=0 size=1 depth=0", text)

    def test_a_child_that_ends_before_it_connects_fails_the_spawn_alone(self):
        text = self.ran(f"srun -N1 -n1 {PLAN} --maxprocs 2 --child-dies\necho code $?", "-p", "cluster", "-N1", "-n4")
        self.assertIn("parent 0: failed class=MPI_ERR_SPAWN", text)
        self.assertIn("code 0", text)


class Companions(Case):
    def test_a_spawn_onto_another_module_gets_a_companion_that_is_seen_and_goes(self):
        job, (companion,) = self.staying("--info", "arch=booster", count=3)
        self.assertEqual(queue()[companion], (f"msa:{job}.1", "RUNNING"))
        (grant,) = HOSTS.rows("alloc", "list")
        self.assertEqual((grant["job"], grant["state"].lower()), (job, "held"))
        shown = HOSTS.on("ctl", "msactl", "alloc", "show", grant["grant"]).stdout
        self.assertRegex(shown, rf"in Slurm: +job {companion}\n")
        (spawned,) = HOSTS.rows("spawn", "list")
        self.assertEqual((spawned["job"], spawned["nodelist"], spawned["grant"]), (job, "bn0", grant["grant"]))
        self.assertRegex(HOSTS.on("ctl", "msactl", "job", "show", job).stdout, rf"bn0 \(booster\) +cores 0-2 +grant {grant['grant']}\n")
        text = self.go_on(job)
        self.assertIn("code 0", text)
        self.nothing_is_left()

    def test_soft_takes_the_largest_member_that_can_be_had(self):
        text = self.ran(f"srun -n1 {SPAWN} --children 16 --info arch=booster", "-p", "cluster", "-n1")
        self.assertEqual(self.children(text), ["bn0"] * 8 + ["bn1"] * 8)
        text = self.ran(f"srun -n1 {PLAN} --maxprocs 40 --info arch=dam --info soft=1:40:3", "-p", "cluster", "-n1")
        self.assertIn("ok remote=4 inter=1", text)
        text = self.ran(f"srun -n1 {PLAN} --maxprocs 40 --info arch=dam --info soft=1:40:3 --info msa_wait=30", "-p", "cluster", "-n1")
        self.assertIn("ok remote=4 inter=1", text)
        text = self.ran(f"srun -n1 {PLAN} --maxprocs 40 --info arch=dam --info soft=0:40:40", "-p", "cluster", "-n1")
        self.assertIn("ok remote=0 inter=1", text)

    def test_refusals_have_slurms_reason(self):
        blocker = self.batch("sleep 600", "-p", "dam", "--exclusive", "-o", "/dev/null")
        self.eventually("dam is taken", lambda: queue()[blocker][1] == "RUNNING")
        for count, module, texts in (
            (1, "dam", ["Resources"]),
            (99, "booster", ["PartitionConfig"]),
            (1, "nowhere", ["module 'nowhere'", "modules are cluster, booster"]),
        ):
            with self.subTest(module=module):
                text = self.ran(f"srun -n1 {PLAN} --maxprocs {count} --info arch={module}", "-p", "cluster", "-n1")
                self.assertIn("failed class=MPI_ERR_SPAWN", text)
                said = re.search(r"^msa: MPI_Comm_spawn: .*", text, re.M)
                self.assertIsNotNone(said, text)
                for one in texts:
                    self.assertIn(one, said[0])
                self.assertEqual(companions(), {})

    def test_a_spawn_waits_with_slurms_reason_and_gets_what_comes_free(self):
        blocker = self.batch("sleep 600", "-p", "dam", "--exclusive", "-o", "/dev/null")
        self.eventually("dam is taken", lambda: queue()[blocker][1] == "RUNNING")
        job = self.batch(f"srun -n1 {PLAN} --maxprocs 2 --info arch=dam --info msa_wait=100", "-p", "cluster", "-n1")
        self.eventually("its companion waits", lambda: [row[1] for row in companions().values()] == ["PENDING"])
        self.eventually("Slurm's reason is shown", lambda: any("Resources" in str(row) or "resources" in str(row) or "free" in str(row)
                                                                for row in HOSTS.rows("alloc", "list")))  # fmt: skip
        HOSTS.on("ctl", "scancel", blocker)
        self.eventually("it is over", lambda: job not in queue(), limit=60)
        self.assertIn("ok remote=2", self.output())

    def test_two_threads_spawn_at_once(self):
        text = self.ran(f"srun -n1 {THREADS}\necho code $?", "-p", "cluster", "-n1")
        self.assertIn("code 0", text)

    def test_spawns_one_after_the_other_leave_nothing(self):
        times = 200 if SOAK else 8
        job = self.batch(f"srun -n1 {PLAN} --maxprocs 2 --info arch=booster --times {times + 100}", "-p", "cluster", "-n1")
        told = lambda: self.output().count("parent 0: ok remote=2 ")  # noqa: E731
        settled = min(20, times // 2)
        self.eventually("the first are over", lambda: told() >= settled, limit=120)
        early = self.footprint()
        self.eventually("the others are over", lambda: told() >= times, limit=10 * times)
        late = self.footprint()
        # One at most is there: the last one's goes while the next one's comes.
        self.assertLessEqual(len(companions()), 2)
        HOSTS.on("ctl", "scancel", job)
        print(f"{times} spawns: (descriptors, KiB) from {early} to {late}", flush=True)
        for before, after in zip(early, late, strict=True):
            self.assertLessEqual(after[0], before[0] + 8)
            self.assertLessEqual(after[1], before[1] + 4096)
        self.nothing_is_left()

    def footprint(self):
        """Descriptors and resident KiB of the head's job daemon and of the controller."""
        measure = 'for p; do echo $(ls /proc/$p/fd | wc -l) $(awk "/VmRSS/ {print \\$2}" /proc/$p/status); done'
        head = HOSTS.shell("cn0", "for p in $(pgrep -x mpi_spawn_plan); do grep -az ^MSA_JOB_SOCKET= /proc/$p/environ; done").stdout
        directory = re.search(r"MSA_JOB_SOCKET=(\S+)/job\.sock", head)[1]
        jobd = HOSTS.shell("cn0", f"pgrep -f 'msa-jobd .*--directory {directory}( |$)'").stdout.split()[0]
        out = HOSTS.on("cn0", "bash", "-c", measure, "-", jobd).stdout
        out += HOSTS.on("ctl", "bash", "-c", measure, "-", *HOSTS.pids("ctl", "msa-controllerd")).stdout
        return [tuple(map(int, line.split())) for line in out.splitlines()]

    def test_many_tasks_on_four_nodes_start_again_and_again(self):
        words = ["srun", "-Q", "-O", "-p", "cluster", "-N2", "-n32", HELLO, ":", "-O", "-p", "booster", "-N2", "-n32", HELLO]
        for turn in range(50 if SOAK else 3):
            with self.subTest(turn=turn):
                done = HOSTS.on("ctl", *words, user=USER, timeout=120)
                self.assertEqual(done.stdout.count("size=64 "), 64, done.stdout + done.stderr)


class Faults(Case):
    def test_scancel_of_the_companion_ends_children_and_parent_with_a_text(self):
        job, (companion,) = self.staying("--info", "arch=booster", "--parent-waits")
        HOSTS.on("ctl", "scancel", companion)
        self.eventually("the job is over", lambda: job not in queue(), limit=60)
        self.assertRegex(self.output(), rf"STEP {companion}.0 ON bn0 CANCELLED|companion job {companion} of Slurm is over")
        self.assertRegex(self.output(), "msa: step 0 is ended: spawn 1, which it is connected to, failed")
        self.assertNotRegex(self.output(), r"(?m)^code 0$")
        self.nothing_is_left()

    def test_each_step_of_a_job_has_its_own_way_with_a_childs_failure(self):
        """The first step's is no other's, and a step without the option has the default."""
        step = f"{PLAN} --maxprocs 1 --parent-waits --stay {SHARED}"
        job = self.batch(f"srun -n1 --on-child-failure=event {step}/go\n"
                         f"srun -n1 --on-child-failure=kill {step}/never\n"
                         f"srun -n1 {step}/never\n", "-p", "cluster", "-N1", "-n4")  # fmt: skip
        for number in range(3):
            self.eventually("the child is there", lambda n=number: self.output().count("remote=1 ") == n + 1, limit=60)
            HOSTS.shell("cn0", "pkill -KILL -n -x mpi_spawn_plan")
            if number > 0:
                # The children's sruns are steps too.
                ended = f"msa: step {2 * number} is ended: spawn {number + 1}, which it is connected to, failed"
                self.eventually("its parent is ended", lambda text=ended: text in self.output(), limit=60)
                continue
            self.eventually("the child's end is known", lambda: HOSTS.rows("spawn", "list") == [])
            (SHARED / "go").touch()
            self.eventually("the parent went on until it was told", lambda: "msa: step 0 is aborted by task 0" in self.output(), limit=60)
            self.assertNotIn("step 0 is ended", self.output())
        self.eventually(f"job {job} is over", lambda: job not in queue(), limit=60)
        self.nothing_is_left()

    def test_scancel_of_the_parent_takes_its_companion_along(self):
        job, (companion,) = self.staying("--info", "arch=booster")
        HOSTS.on("ctl", "scancel", job)
        self.eventually("both are over", lambda: queue() == {})
        self.nothing_is_left()

    def test_a_requeued_parent_starts_again_without_the_companions_of_before(self):
        job, (companion,) = self.staying("--info", "arch=booster", options=("-p", "cluster", "-n1", "--requeue", "--open-mode=append"))
        HOSTS.on("ctl", "scontrol", "requeue", job)
        self.eventually("the companion is over", lambda: companion not in queue())
        self.eventually("it has spawned again", lambda: self.output().count("remote=2 ") == 2, limit=150)
        (again,) = companions()
        self.assertNotEqual(again, companion)
        self.assertIn("code 0", self.go_on(job))

    def test_a_spawn_waits_through_an_outage_of_slurmctld(self):
        blocker = self.batch("sleep 600", "-p", "dam", "--exclusive", "-o", "/dev/null", "-J", "blocker")
        self.eventually("dam is taken", lambda: queue()[blocker][1] == "RUNNING")
        job = self.batch(f"srun -n1 {PLAN} --maxprocs 2 --info arch=dam --info msa_wait=100", "-p", "cluster", "-n1")
        self.eventually("its companion waits", lambda: [row[1] for row in companions().values()] == ["PENDING"])
        self.kill_slurmctld(f"msa:{job}.1")
        try:
            self.eventually("msactl says so", lambda: any("slurmctld" in str(row) for row in HOSTS.rows("alloc", "list")), limit=60)
        finally:
            self.start_slurmctld()
        HOSTS.on("ctl", "scancel", blocker)
        self.eventually("the job is over", lambda: job not in queue(), limit=90)
        self.assertIn("ok remote=2", self.output())

    def test_a_companion_that_never_starts_is_cancelled_at_the_deadline(self):
        blocker = self.batch("sleep 600", "-p", "dam", "--exclusive", "-o", "/dev/null")
        self.eventually("dam is taken", lambda: queue()[blocker][1] == "RUNNING")
        text = self.ran(f"srun -n1 {PLAN} --maxprocs 2 --info arch=dam --info msa_wait=10", "-p", "cluster", "-n1")
        self.assertRegex(text, r"msa: MPI_Comm_spawn: .* waited for Resources: .*msa_wait")
        self.assertEqual(companions(), {})

    def test_a_partition_that_the_user_may_not_use_is_refused_at_once_with_slurms_text(self):
        HOSTS.on("ctl", "scontrol", "update", "PartitionName=dam", "AllowGroups=slurm")
        try:
            text = self.ran(f"srun -n1 {PLAN} --maxprocs 2 --info arch=dam --info msa_wait=500", "-p", "cluster", "-n1", limit=60)
        finally:
            HOSTS.on("ctl", "scontrol", "update", "PartitionName=dam", "AllowGroups=ALL")
        self.assertRegex(text, "msa: MPI_Comm_spawn: .*User's group not permitted to use this partition")

    def test_the_end_of_a_job_daemon_with_children_is_told_and_leaves_nothing(self):
        for host in ("bn0", "cn0"):
            with self.subTest(host=host):
                job, _ = self.staying("--info", "arch=booster", "--parent-waits")
                HOSTS.shell(host, f"pkill -KILL -u {USER} -x msa-jobd")
                self.eventually("the job is over", lambda: job not in queue(), limit=60)
                self.assertRegex(self.output(), f"msa: .*{host}")
                self.nothing_is_left()

    def test_a_node_daemon_that_is_killed_and_comes_back_costs_no_children(self):
        job, _ = self.staying("--info", "arch=booster")
        for host in ("bn0", "cn0"):
            self.kill_daemon(host, "msa-noded")
        self.all_nodes_are_up()
        self.assertIn("code 0", self.go_on(job))

    def test_a_slurmd_that_is_killed_costs_no_children_that_run(self):
        job, _ = self.staying("--info", "arch=booster")
        HOSTS.on("bn0", "pkill", "-KILL", "-x", "slurmd")
        try:
            text = self.go_on(job)
        finally:
            HOSTS.on("bn0", "slurmd", "-N", "bn0")
        self.assertIn("code 0", text)
        self.nothing_is_left()


if __name__ == "__main__":
    main()
