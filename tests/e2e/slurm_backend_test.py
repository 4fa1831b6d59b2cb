#!/usr/bin/env python3
"""msactl where Slurm schedules: deploy/vcluster with real Slurm, whose client.conf says backend = slurm.

Usage: slurm_backend_test.py BUILD_DIRECTORY [unittest's options]. Needs root; exit code 77: it is not root.
"""

import json

from hosts_support import ALL, USER, Hosts, JobsCase, main

OTHER = "daemon"  # a user, too
HOSTS = Hosts("be")
SHARED = HOSTS.shared


def setUpModule():
    # squeue gives a slurmctld that is gone up after so many seconds, instead of 10.
    HOSTS.raise_for_module("--slurm-conf", "MessageTimeout=4")


def msactl(*words, user=USER, check=True, host="ctl"):
    return HOSTS.on(host, "env", "-C", SHARED, "msactl", *words, user=user, check=check)


def shown(*words):
    """The document that a command prints."""
    return json.loads(msactl(*words, "-f", "json").stdout)


def jobs(*words):
    return {item["id"]: item for item in shown("job", "list", *words)["items"]}


def running(*ids):
    known = jobs("-a")
    return all(known[job]["state"] == "RUNNING" for job in ids)


def submit(*words):
    return int(msactl("submit", "--parsable", *words).stdout)


class Case(JobsCase):
    hosts = HOSTS

    def script(self, text, name="job.sh"):
        (SHARED / name).write_text("#!/bin/bash\n" + text)
        return name

    def refused(self, done, code, *parts):
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        for part in parts:
            self.assertIn(part, done.stderr)


class Launches(Case):
    def test_run_is_srun_on_the_modules_with_its_streams_and_code(self):
        done = msactl("run", "-m", "cluster", "-N2", "hostname", ":", "-m", "booster", "-n", "1", "hostname")
        self.assertEqual(sorted(done.stdout.split()), ["bn0", "cn0", "cn1"])
        done = HOSTS.shell("ctl", "echo through | msactl run -q -n1 sh -c 'cat; exit 7'", user=USER, check=False)
        self.assertEqual((done.stdout, done.returncode), ("through\n", 7))

    def test_what_srun_has_not_is_refused_and_its_own_options_pass(self):
        self.refused(msactl("run", "--detach", "true", check=False), 2, "--detach has no counterpart", "msactl submit --wrap")
        # By msactl (2), or by srun (1) where slurm.conf has a job_submit that knows other names than partitions'.
        known = "= (null)" not in HOSTS.shell("ctl", "scontrol show config | grep JobSubmitPlugins").stdout
        self.refused(msactl("run", "-m", "boster", "true", check=False), 1 if known else 2, "boster")
        self.assertEqual(jobs(), {})
        self.refused(msactl("run", "--reservation=none", "true", check=False), 1, "Requested reservation is invalid")
        self.refused(msactl("run", "--backend", "msa", "--reservation=none", "true", check=False), 2, "unknown option")

    def test_a_script_with_lines_of_msa_is_one_job_and_its_steps_find_their_modules(self):
        script = self.script(
            "#MSA -m cluster -N 2 -t 5 -o out\n#MSA hetjob\n#MSA -m booster -n 2\n"
            "msactl run -m booster -n1 hostname\nmsactl run -m cluster -N2 hostname : -m booster -n1 hostname\n"
            "msactl run -m dam true\nexit 4\n"
        )
        done = msactl("submit", "--wait", "-J", "two words", script, check=False)
        self.assertEqual(done.returncode, 4, done.stderr)
        self.assertRegex(done.stdout, r"^submitted job \d+\n$")
        lines = (SHARED / "out").read_text().splitlines()
        self.assertEqual(lines[0], "bn0")
        self.assertEqual(sorted(lines[1:4]), ["bn0", "cn0", "cn1"])
        self.assertIn("has no nodes in 'dam'", lines[4])
        job = jobs("-a")[int(done.stdout.split()[-1])]
        self.assertEqual((job["name"], job["state"], job["exit_code"], job["modules"]), ("two words", "FAILED", 4, ["cluster", "booster"]))

    def test_submissions_from_input_and_of_commands_and_what_is_wrong_in_them(self):
        job = int(HOSTS.shell("ctl", f"cd {SHARED}; printf '#!/bin/sh\\nsleep 60\\n' | msactl submit --parsable -m booster", user=USER).stdout)
        self.assertEqual(jobs()[job]["modules"], ["booster"])
        self.refused(msactl("submit", self.script("\n#MSA --ntsks 2\n"), check=False), 2, "job.sh:3: ", "'--ntasks'")
        self.refused(msactl("submit", "-A", "physics", "-p", "nowhere", "--wrap", "true", check=False), 2, "'nowhere' is no partition")
        self.refused(msactl("submit", "-m", "booster", "-N", "9", "--begin", "xyz", "--wrap", "true", check=False), 255, "sbatch: error:")


class Jobs(Case):
    def test_a_heterogeneous_job_is_one_with_msas_shape_and_what_msa_knows(self):
        script = self.script("#SBATCH -p cluster -N1\n#SBATCH hetjob\n#SBATCH -p booster -n2\nsrun sleep 60 : --het-group=1 sleep 60\n")
        job = submit("-t", "3", script)
        known = self.eventually("msa knows the job", lambda: shown("--backend", "msa", "job", "list")["items"])
        ours = jobs()
        self.assertEqual(list(ours), [job])
        self.assertEqual(list(ours[job])[:-1], list(known[0]))
        self.assertEqual((ours[job]["nodes"], ours[job]["tasks"], ours[job]["node_list"], ours[job]["time_limit_seconds"]), (2, 3, ["cn0", "bn0"], 180))
        parts = [(part["job"], part["partition"], part["node_list"]) for part in ours[job]["slurm"]["components"]]
        self.assertEqual(parts, [(job, "cluster", ["cn0"]), (job + 1, "booster", ["bn0"])])
        one = self.eventually("its world is shown", lambda: (lambda it: it if it["namespaces"] else None)(shown("job", "show", str(job))))
        self.assertEqual([(a["node"], a["module"], a["component"], len(a["cores"])) for a in one["allocations"]], [("cn0", "cluster", 0, 1), ("bn0", "booster", 1, 2)])
        self.assertEqual(one["stdout_path"], f"{SHARED}/slurm-{job}.out")
        text = msactl("job", "show", f"{job}+1").stdout
        for part in (f"job {job + 1}  bn0", "time limit:", "03:00", f"msa.{job}."):
            self.assertIn(part, text)
        self.assertEqual(msactl("job", "show", str(job), "-f", "name").stdout, f"{job}\n")

    def test_companions_stand_with_their_parent(self):
        parent = submit("-m", "cluster", "--wrap", "sleep 60")
        companion = submit("-m", "booster", "-J", f"msa:{parent}.1", "--comment", f"msa parent={parent} restart=0 request=1", "--wrap", "sleep 60")
        other = submit("-m", "dam", "-J", f"msa:{parent}.2", "--wrap", "sleep 60")
        self.eventually("all run", lambda: running(parent, companion, other))
        self.assertEqual(sorted(jobs()), [parent, other])
        told = jobs()[parent]["slurm"]["companions"]
        self.assertEqual([(one["job"], one["request"], one["partition"], one["node_list"]) for one in told], [(companion, 1, "booster", ["bn0"])])
        self.assertIn(f"companion {companion}: booster bn0", msactl("job", "list").stdout)
        rows = [line.split()[0] for line in msactl("job", "list", "-a", "--no-header").stdout.splitlines()]
        self.assertEqual(rows[rows.index(str(parent)) + 1], str(companion))
        self.assertIn(f"job {parent}, request 1", msactl("job", "show", str(companion)).stdout)

    def test_why_tells_the_reason_what_is_before_it_and_the_remedy(self):
        first = submit("-m", "booster", "-N", "2", "--exclusive", "-t", "9", "--wrap", "sleep 60")
        self.eventually("it runs", lambda: running(first))
        second = submit("-m", "booster", "-N", "2", "-t", "9", "--wrap", "true")
        third = submit("-m", "booster", "-N", "2", "-t", "9", "--wrap", "true")
        after = submit("-m", "cluster", "-d", f"afterok:{first}", "--wrap", "true")
        held = submit("-m", "cluster", "-H", "--wrap", "true")
        why = self.eventually("Slurm has planned its start", lambda: (lambda it: it if it["expected_start"] else None)(shown("job", "why", str(second))))
        self.assertEqual((why["kind"], why["reason"], [one["job"] for one in why["blocked_by"]]), ("JobWhy", "Resources", [first]))
        self.assertRegex(why["blocked_by"][0]["how"], "^runs until ")
        why = self.eventually("Slurm has looked at it", lambda: (lambda it: it if it["reason"] == "Priority" else None)(shown("job", "why", str(third))))
        self.assertEqual([one["job"] for one in why["blocked_by"]], [second])
        why = shown("job", "why", str(after))
        self.assertEqual((why["reason"], [one["job"] for one in why["blocked_by"]]), ("Dependency", [first]))
        self.assertIn(f"scontrol release {held}", msactl("job", "why", str(held)).stdout)
        self.assertIn("it runs since", msactl("job", "why", str(first)).stdout)
        self.refused(msactl("job", "why", "999999", check=False), 3, "no such job")

    def test_cancel_is_scancel_with_its_permissions(self):
        words = "msactl submit --parsable -m booster"
        done = HOSTS.shell("ctl", f"cd {SHARED}; for i in 1 2 3; do {words} --wrap 'sleep 60'; done; {words} -H --wrap true", user=USER)
        *mine, waits = map(int, done.stdout.split())
        self.eventually("they run", lambda: running(*mine))
        done = msactl("job", "cancel", str(mine[0]), user=OTHER, check=False)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("Access/permission denied", done.stderr)
        self.assertEqual(jobs()[mine[0]]["state"], "RUNNING")
        self.assertEqual(msactl("job", "cancel", str(mine[0]), str(waits)).stdout, f"job {mine[0]} is being cancelled\njob {waits} is cancelled\n")
        self.refused(msactl("job", "cancel", str(waits), check=False), 7, "has ended already")
        self.refused(msactl("job", "cancel", "999999", check=False), 3, "no such job")
        self.refused(msactl("job", "cancel", "--reason", "x", str(mine[1]), check=False), 2, "scancel keeps no text")
        self.assertEqual(msactl("job", "cancel", "--now", str(mine[1])).stdout, f"job {mine[1]} is being cancelled\n")
        self.assertEqual(msactl("job", "cancel", "--all").stdout, f"job {mine[2]} is being cancelled\n")
        self.eventually("all have ended", lambda: jobs() == {})


class Nodes(Case):
    def test_modules_and_nodes_are_slurms_with_msas_beside(self):
        self.without("dn0", "msa-noded")
        job = submit("-m", "cluster", "-n", "3", "--wrap", "sleep 60")
        self.eventually("it runs", lambda: running(job))
        modules = {item["name"]: item for item in shown("module", "list")["items"]}
        self.assertEqual((modules["cluster"]["cores"], modules["cluster"]["cores_free"], modules["cluster"]["slurm"]["partition_state"]), (8, 5, "up"))
        self.assertEqual((modules["nam"]["kind"], modules["nam"]["slurm"]["partition_state"]), ("nam", None))
        HOSTS.on("ctl", "scontrol", "update", "node=bn1", "state=drain", "reason=new disk")
        self.addCleanup(HOSTS.on, "ctl", "scontrol", "update", "node=bn1", "state=resume")
        nodes = self.eventually("msa misses dn0", lambda: (lambda it: it if it["dn0"]["slurm"]["msa"] == "DOWN" else None)(
            {item["name"]: item for item in shown("node", "list")["items"]}))  # fmt: skip
        self.assertEqual(sorted(nodes), ALL)
        self.assertEqual((nodes["cn0"]["cores_used"] + nodes["cn1"]["cores_used"], nodes["cn0"]["jobs"]), (3, [job]))
        self.assertEqual((nodes["dn0"]["state"], nodes["dn0"]["slurm"]["state"]), ("UP", "idle"))
        self.assertEqual((nodes["bn1"]["drained"], nodes["bn1"]["reason"], nodes["bn1"]["slurm"]["msa"]), (True, "new disk", "UP"))
        self.assertEqual((nodes["nam0"]["slurm"]["state"], nodes["nam0"]["nam_bytes"] > 0), (None, True))
        self.assertEqual(msactl("node", "list", "-m", "booster", "-f", "name").stdout.split(), ["bn0", "bn1"])
        self.refused(msactl("node", "list", "-m", "boster", check=False), 3, "did you mean 'booster'?")

    def test_the_backend_is_the_options_then_the_environments_then_the_client_files(self):
        # Of a job that waits msa's controller does not know.
        job = submit("-H", "--wrap", "true")
        self.assertEqual(HOSTS.rows("job", "list"), [])
        self.assertEqual([row["job"] for row in HOSTS.rows("job", "list", "--backend", "slurm")], [str(job)])
        self.refused(msactl("--backend", "slrum", "job", "list", check=False), 2, "expected msa, slurm or auto")

    def test_a_command_that_is_not_there_is_named_with_the_remedy(self):
        done = HOSTS.shell("ctl", "m=$(command -v msactl); PATH=/nowhere $m --backend slurm job list", check=False)
        self.refused(done, 3, "--backend slurm: 'squeue' was not found in PATH (/nowhere)", "slurm-client", "--backend msa")
        done = HOSTS.shell("ctl", "m=$(command -v msactl); PATH=/nowhere $m run true", check=False)
        self.refused(done, 3, "client.conf: backend = slurm: 'srun' was not found")


class Outages(Case):
    def test_without_msas_controller_slurm_still_answers(self):
        job = submit("--wrap", "sleep 60")
        self.eventually("it runs", lambda: running(job))
        self.without("ctl", "msa-controllerd")
        self.assertIn(str(job), msactl("job", "list").stdout)
        done = msactl("job", "show", str(job))
        self.assertIn("RUNNING", done.stdout)
        self.assertIn("without what msa itself knows", done.stderr)
        nodes = {item["name"]: item for item in shown("node", "list")["items"]}
        self.assertEqual((nodes["cn0"]["state"], nodes["cn0"]["slurm"]["msa"]), ("UP", None))
        self.assertIsNone({item["name"]: item for item in shown("module", "list")["items"]}["booster"]["kind"])

    def test_without_slurmctld_slurms_text_and_code_are_passed_on(self):
        self.kill_slurmctld()
        try:
            done = msactl("job", "list", check=False)
        finally:
            self.start_slurmctld()
        self.refused(done, 1, "Unable to contact slurm controller")
        self.assertEqual(done.stdout, "")


if __name__ == "__main__":
    main()
