#!/usr/bin/env python3
"""job_submit in C++ and in Lua with a real slurmctld: the same table of submissions, the same answers. And #NAM directives.

Usage: job_submit_test.py BUILD_DIRECTORY [unittest's options]. Needs root; exit code 77: it is not root.
"""

import pathlib
import re

from hosts_support import USER, Hosts, HostsCase, main

HOSTS = Hosts("js")
SHARED = HOSTS.shared
ETC = pathlib.Path(f"/run/msa-vcluster/{HOSTS.name}/etc/slurm")
on, shell = HOSTS.on, HOSTS.shell

RESTART = """\
pkill -x slurmctld; while pgrep -x slurmctld >/dev/null; do sleep 0.02; done
slurmctld; for i in $(seq 3000); do scontrol ping 2>/dev/null | grep -q UP && exit 0; sleep 0.02; done; exit 1
"""


def setUpModule():
    # slurmctld runs as SlurmUser slurm, and becomes a job's user by sudo; slurm_examples_test.py has it as root.
    HOSTS.raise_for_module()


def script(name, *head, body="true"):
    path = SHARED / name
    path.write_text("\n".join(["#!/bin/bash", *head, body, ""]))
    path.chmod(0o755)
    return str(path)


# A submission and what to see of it: per component partition, features and licences, or what is refused.
def table():
    plain = script("plain.sh")
    late = script("late.sh", "#SBATCH -N1 --module=cluster", "#SBATCH hetjob", "#SBATCH -N1 --module=booster")
    parts = script("parts.sh", "#SBATCH -N1 --module=0:cluster,1:booster --nam=0:512M", "#SBATCH hetjob", "#SBATCH -N2")
    return [
        (["sbatch", plain], "cluster (null) (null)"),
        (["sbatch", "-p", "booster", "-N2", "--array=0-3", plain], "booster (null) (null)"),
        (["sbatch", "-p", "booster", "-L", "gateway", plain], "booster (null) gateway"),
        (["sbatch", "--module=booster", "-N2", plain], "booster (null) (null)"),
        (["sbatch", "--module=2", plain], "dam (null) (null)"),
        (["sbatch", "--module=cluster", "--nam=10M", "--gateways=1", plain], "cluster (null) nam:1,gateway:1"),
        (["sbatch", "--nam=1G", "-p", "dam", "-C", "dam", plain], "dam dam nam:16"),
        (["sbatch", "--module=boster", plain], "--module=boster: there is no such module; expected cluster, booster, dam, nam, gateway"),
        (["sbatch", "--module=nam", plain], "holds network attached memory and runs no tasks; ask for its memory by --nam=SIZE"),
        (["sbatch", "--module=booster", "-N3", plain], "module 'booster': 3 nodes requested, 2 exist, so the job could never start"),
        (["sbatch", "--module=booster", "-p", "dam", plain], "--partition=dam and --module=booster contradict each other"),
        (["sbatch", "--nam=2G", plain], "more than the 1G of network attached memory that exist"),
        (["sbatch", "--nam=1G", "-L", "nam", plain], "--licenses=nam and --nam both count 'nam'"),
        (["sbatch", "--gateways=2", plain], "--gateways=2: 1 exist, so the job could never start"),
        (["sbatch", "--gateways=0:0,1:1", "-p", "cluster", plain], "this job has no component 1"),
        (["sbatch", "-N1", ":", "-N3", "-p", "booster", plain], "component 1: module 'booster': 3 nodes requested, 2 exist"),
        (["sbatch", late], "write all of them into the first component, as in --module=0:cluster,1:booster"),
        (["sbatch", parts], "cluster (null) nam:8; booster (null) (null)"),
        (["srun", "--module=booster", "-N9", "true"], "module 'booster': 9 nodes requested, 2 exist"),
        (["salloc", "--module=nowhere", "true"], "--module=nowhere: there is no such module"),
    ]  # fmt: skip


def ask(command):
    """What is to be seen of a submission, held so that it does not start."""
    words = [command[0], "-H", *command[1:]] if command[0] == "sbatch" else command
    if ":" in words:
        words.insert(words.index(":") + 1, "-H")
    done = on("ctl", *words, check=False)
    match = re.fullmatch(r"Submitted batch job (\d+)\n", done.stdout)
    if not match:
        return done.stderr
    show = on("ctl", "squeue", "-h", "-j", match[1], "-o", "%i|%P %f %W").stdout.splitlines()
    on("ctl", "scancel", match[1])
    return "; ".join(line.split("|")[1] for line in sorted(show))


class JobSubmit(HostsCase):
    hosts = HOSTS

    def use_job_submit(self, plugin):
        conf = ETC / "slurm.conf"
        lines = [line for line in conf.read_text().splitlines() if not line.startswith("JobSubmitPlugins")]
        conf.write_text("\n".join(lines + ([f"JobSubmitPlugins={plugin}"] if plugin else [])) + "\n")
        shell("ctl", RESTART)
        # Until then a job waits for other reasons than the test's.
        self.eventually("slurmctld has heard of its nodes", HOSTS.idle)

    def answers(self, plugin):
        self.use_job_submit(plugin)
        given = []
        for command, wanted in table():
            with self.subTest(plugin=plugin, command=" ".join(command)):
                got = ask(command)
                if wanted.split(" ")[0] in ("cluster", "booster", "dam"):
                    self.assertEqual(got, wanted)
                else:
                    self.assertIn(wanted, got)
                given.append((command, re.sub(r"(?m)^\w+: ", "", got)))
        return given

    def test_both_languages_answer_alike(self):
        self.assertEqual(self.answers("msa"), self.answers("lua"))
        self.assertNotIn("the job goes on as it came", shell("ctl", "cat /var/log/slurmctld.log").stdout)

    def test_plain_jobs_are_the_same_with_and_without_the_plugin(self):
        seen = []
        for plugin in ("", "msa", "lua"):
            self.use_job_submit(plugin)
            job = on("ctl", "sbatch", "--parsable", "-H", "-N2", "-p", "booster", "-t", "7", "-C", "booster", script("plain.sh")).stdout.strip()
            show = on("ctl", "scontrol", "show", "job", job).stdout
            seen.append(re.sub(r"\b(\w*JobId|\w*Time|Priority|AllocNode:Sid|StdErr|StdOut|AccrueTime|LastSchedEval|Scheduler)=\S+", "", show))
            on("ctl", "scancel", job)
        self.assertEqual(seen[0], seen[1])
        self.assertEqual(seen[0], seen[2])

    def test_a_broken_site_file_stops_msas_jobs_alone(self):
        conf = ETC / "msa_job_submit.conf"
        text = conf.read_text()
        try:
            conf.write_text(text + "modul cluster\n")
            for plugin in ("msa", "lua"):
                self.use_job_submit(plugin)
                self.assertIn("'modul' is not known", ask(["sbatch", "--module=cluster", script("plain.sh")]))
                self.assertEqual(ask(["sbatch", script("plain.sh")]), "cluster (null) (null)")
        finally:
            conf.write_text(text)

    def test_a_licence_holds_a_second_job_back(self):
        self.use_job_submit("msa")
        sleeper = script("sleeper.sh", body=f"until [ -e {SHARED}/go ]; do sleep 0.05; done")
        first = on("ctl", "sbatch", "--parsable", "-o", "/dev/null", "--nam=1G", "-p", "cluster", sleeper).stdout.strip()
        second = on("ctl", "sbatch", "--parsable", "-o", "/dev/null", "--nam=1M", "-p", "booster", sleeper).stdout.strip()
        try:
            self.eventually("the second waits for the first", lambda: HOSTS.state(second) == "PENDING Licenses" and HOSTS.state(first).startswith("RUNNING"))
            (SHARED / "go").touch()
            self.eventually("the second has ended", lambda: HOSTS.state(second).startswith("COMPLETED"))
        finally:
            on("ctl", "scancel", first, second, check=False)
            (SHARED / "go").unlink(missing_ok=True)

    # ---- #NAM

    def test_directives_stage_files_through_a_region(self):
        self.use_job_submit("msa")
        shell("ctl", "head -c 100000 /dev/urandom >/tmp/input; chmod 644 /tmp/input; mkdir -p -m 777 /tmp/results")
        job = script("nam.sh", "#SBATCH -N1 -t 5 -p cluster -o /tmp/nam.out", "#NAM create scratch-%j 1M", "#NAM stage_in /tmp/input scratch-%j",
                     "#NAM stage_out scratch-%j /tmp/results/output", body="echo $MSA_SLURM_NAM_REGION $(hostname) >/tmp/seen")  # fmt: skip
        number = on("ctl", "sbatch", "--parsable", "-D", "/tmp", job, user=USER).stdout.strip()
        self.eventually("it ends", lambda: HOSTS.state(number).startswith("COMPLETED"))
        self.eventually("its region is gone", lambda: HOSTS.regions() == [])
        shell("ctl", "head -c 100000 /tmp/results/output | cmp - /tmp/input")
        self.assertEqual(shell("ctl", "stat -c %U /tmp/results/output").stdout.strip(), USER)
        seen = "".join(shell(host, "cat /tmp/seen", check=False).stdout for host in ("cn0", "cn1"))
        self.assertRegex(seen, rf"^scratch-{number}:rw cn\d\n$")

    def test_a_region_that_cannot_be_made_holds_the_job_with_the_reason(self):
        self.use_job_submit("msa")
        job = script("big.sh", "#SBATCH -N1 -t 5 -p cluster", "#NAM create big 64G")
        number = on("ctl", "sbatch", "--parsable", "-D", "/tmp", job, user=USER).stdout.strip()
        try:
            self.eventually("the reason is told", lambda: "64G of network attached memory asked" in HOSTS.state(number))
        finally:
            on("ctl", "scancel", number)
        self.assertEqual(HOSTS.regions(), [])

    def test_a_directive_that_is_none_is_refused_at_submission(self):
        self.use_job_submit("msa")
        done = on("ctl", "sbatch", "-D", "/tmp", script("bad.sh", "#NAM make scratch 1G"), user=USER, check=False)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("line 2: #NAM make scratch 1G: expected create NAME SIZE", done.stderr)

    def test_regions_of_a_job_whose_node_dies_are_saved_and_removed(self):
        self.use_job_submit("msa")
        shell("ctl", "mkdir -p -m 777 /tmp/results")
        job = script("dies.sh", "#SBATCH -N1 -t 5 -w bn1 -p booster -o /dev/null --no-requeue", "#NAM create dies-%j 1M",
                     "#NAM stage_out dies-%j /tmp/results/dies", body="sleep 600")  # fmt: skip
        number = on("ctl", "sbatch", "--parsable", "-D", "/tmp", job, user=USER).stdout.strip()
        self.eventually("it runs", lambda: HOSTS.state(number).startswith("RUNNING"))
        self.assertEqual(HOSTS.regions(), [f"dies-{number}"])
        try:
            self.kill_slurmd("bn1")
            on("ctl", "scontrol", "update", "node=bn1", "state=down", "reason=test")
            self.eventually("its region is gone", lambda: HOSTS.regions() == [])
            self.assertEqual(shell("ctl", "stat -c '%s %U' /tmp/results/dies").stdout.strip(), f"{1 << 20} {USER}")
            self.eventually("it has failed with its node", lambda: HOSTS.state(number).startswith("NODE_FAIL "))
        finally:
            on("bn1", "slurmd")
            self.eventually("slurmd is back", lambda: on("ctl", "sinfo", "-h", "-n", "bn1", "-o", "%T").stdout.split()[:1] in (["idle"], ["down"]))
            on("ctl", "scontrol", "update", "node=bn1", "state=resume", check=False)

    def test_persistent_regions_stay(self):
        self.use_job_submit("msa")
        job = script("stay.sh", "#SBATCH -N1 -t 5 -p cluster -o /tmp/stay.out", "#NAM create kept 1M persistent", "#NAM create gone 1M")
        number = on("ctl", "sbatch", "--parsable", "-D", "/tmp", job, user=USER).stdout.strip()
        self.eventually("it ends", lambda: HOSTS.state(number).startswith("COMPLETED"))
        self.eventually("one region is left", lambda: HOSTS.regions() == ["kept"])
        on("ctl", "msactl", "region", "rm", "kept", user=USER)


if __name__ == "__main__":
    main()
