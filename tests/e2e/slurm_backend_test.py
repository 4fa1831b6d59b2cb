#!/usr/bin/env python3
"""msactl where Slurm schedules: deploy/vcluster with real Slurm, whose client.conf says backend = slurm.

Usage: slurm_backend_test.py BUILD_DIRECTORY [unittest's options]. Needs root; exit code 77: it is not root.
"""

import json

from hosts_support import ALL, BUILD, USER, Hosts, HostsCase, JobsCase, main, without_waits

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
        self.eventually("no job is left", lambda: jobs() == {})
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
        lines = without_waits((SHARED / "out").read_text()).splitlines()
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
        why = self.eventually("Slurm has planned its start", lambda: (lambda it: it if it["expected_start"] and it["reason"] == "Resources" else None)(
            shown("job", "why", str(second))))  # fmt: skip
        self.assertEqual((why["kind"], [one["job"] for one in why["blocked_by"]]), ("JobWhy", [first]))
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
        self.stop_slurmctld()
        try:
            done = msactl("job", "list", check=False)
        finally:
            self.start_slurmctld()
        self.refused(done, 1, "Unable to contact slurm controller")
        self.assertEqual(done.stdout, "")


class Verbs(Case):
    """Those that an earlier msactl asked msa's controller for, which knows no such job."""

    def output(self, part, times=1, name="out"):
        path = SHARED / name
        self.eventually(f"{times} times {part!r} in {name}", lambda: path.exists() and path.read_text().count(part) >= times)
        return path.read_text()

    def ends(self, job):
        self.eventually(f"job {job} has ended", lambda: jobs("-a")[job]["ended_at"])

    def test_signal_reaches_the_tasks_of_steps(self):
        task = "'trap \"echo caught; exit 3\" USR1; echo up; while :; do sleep 0.1; done'"
        job = submit("-m", "cluster", "-n2", "-o", "out", self.script(f"trap 'echo script' USR1\nsrun -n2 bash -c {task}\n"))
        self.output("up", 2)
        done = msactl("job", "signal", "USR1", str(job), user=OTHER, check=False)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("Access/permission denied", done.stderr)
        done = msactl("job", "signal", "SIGUSR1", str(job))
        self.assertEqual(done.stdout + done.stderr, "")
        self.assertNotIn("script", self.output("caught", 2))
        self.assertEqual(msactl("job", "wait", "-q", str(job), check=False).returncode, 3)
        self.refused(msactl("job", "signal", "USR1", str(job), check=False), 7, "has ended already")

    def test_signal_of_one_component_and_of_all(self):
        task = "'trap \"echo got $SLURM_JOB_PARTITION\" USR1; echo up; while :; do sleep 0.1; done'"
        lines = "#SBATCH -p cluster -N1 -o out\n#SBATCH hetjob\n#SBATCH -p booster -N1\n"
        job = submit(self.script(lines + f"srun --msa=no bash -c {task} & srun --msa=no --het-group=1 bash -c {task} & wait\n"))
        self.output("up", 2)
        msactl("job", "signal", "USR1", f"{job}+1")
        self.assertNotIn("got cluster", self.output("got booster"))
        msactl("job", "signal", "USR1", str(job))
        self.output("got booster", 2)
        self.assertEqual(self.output("got cluster").count("got cluster"), 1)
        self.refused(msactl("job", "signal", "USR1", f"{job}+2", check=False), 3, "no such job")

    def test_signal_is_refused_where_nobody_would_get_it(self):
        plain, held = submit("-m", "cluster", "--wrap", "sleep 60"), submit("-H", "--wrap", "true")
        self.eventually("it runs", lambda: running(plain))
        self.refused(msactl("job", "signal", "USR1", str(plain), check=False), 7, "no step that runs now", f"scancel --full --signal=USR1 {plain}")
        self.refused(msactl("job", "signal", "USR1", str(held), check=False), 7, "has not started")
        self.refused(msactl("job", "signal", "USR1", "999999", check=False), 3, "no such job")
        self.refused(msactl("job", "signal", "USRX", str(plain), check=False), 2, "USRX")
        msactl("job", "signal", "KILL", str(plain))
        self.ends(plain)

    def test_wait_ends_with_the_highest_code_of_the_jobs(self):
        five, good = submit("--wrap", "exit 5"), submit("-m", "booster", "--wrap", "sleep 1")
        done = msactl("job", "wait", str(good), str(five), check=False)
        self.refused(done, 5, f"job {five} ended as FAILED: NonZeroExitCode")
        self.assertEqual(msactl("job", "wait", "-q", str(five), check=False).stderr, "")
        self.assertEqual(msactl("job", "wait", str(good)).returncode, 0)
        array = submit("--array=1-3", "--wrap", "exit $SLURM_ARRAY_TASK_ID")
        self.assertEqual(msactl("job", "wait", "-q", str(array), check=False).returncode, 3)
        self.assertEqual(msactl("job", "wait", "-q", f"{array}_2", check=False).returncode, 2)
        het = submit(self.script("#SBATCH -p cluster -N1\n#SBATCH hetjob\n#SBATCH -p booster -N1\nexit 6\n"))
        self.assertEqual(msactl("job", "wait", "-q", str(het + 1), check=False).returncode, 6)
        held = submit("-H", "--wrap", "true")
        self.refused(msactl("job", "wait", "--timeout", "300ms", str(held), check=False), 6, f"job {held} has not ended in time; it goes on")
        msactl("job", "cancel", str(held))
        self.refused(msactl("job", "wait", str(held), str(good), check=False), 1, f"job {held} ended as CANCELLED")
        self.refused(msactl("job", "wait", "999999", check=False), 3, "no such job", "Slurm keeps no accounting here")
        self.refused(msactl("job", "wait", "999999", str(five), check=False), 5, "no such job")

    def test_logs_are_the_file_that_slurm_names_or_say_where_it_is(self):
        script = self.script("echo begin; echo bad >&2; until [ -e go ]; do sleep 0.1; done; echo end; exit 2\n")
        job = submit("-m", "cluster", "-w", "cn1", "-o", "o %j-%N", "-e", "errors", script)
        follows = HOSTS.begin("ctl", "env", "-C", SHARED, "msactl", "job", "logs", "-F", str(job), user=USER)
        self.output("bad", name="errors")
        self.assertEqual(msactl("job", "logs", str(job)).stdout, "begin\n")
        self.assertEqual(msactl("job", "logs", "-e", str(job)).stdout, "bad\n")
        (SHARED / "go").touch()
        self.assertEqual(follows.communicate(timeout=60), ("begin\nend\n", ""))
        self.assertEqual(follows.returncode, 0)
        (SHARED / "errors").chmod(0o600)
        done = msactl("job", "logs", "-e", str(job), user=OTHER, check=False)
        self.refused(done, 4, f"user '{OTHER}' may not read '{SHARED}/errors' on this host (ctl)", f"'{USER}'")
        local = submit("-m", "cluster", "-w", "cn1", "-o", "/tmp/alone", "--wrap", "echo here; sleep 60")
        self.eventually("it has written", lambda: msactl("job", "logs", str(local), host="cn1", check=False).stdout == "here\n")
        done = msactl("job", "logs", str(local), check=False)
        self.refused(done, 3, "'/tmp/alone' is not on this host (ctl); the job runs on cn1", f"srun --jobid={local} --overlap")
        self.assertEqual(HOSTS.shell("ctl", f"cd {SHARED}; {done.stderr.split(chr(39))[-2]}", user=USER).stdout, "here\n")
        held, array = submit("-H", "--wrap", "true"), submit("--array=1-2", "--wrap", "echo $SLURM_ARRAY_TASK_ID")
        self.refused(msactl("job", "logs", str(held), check=False), 7, "has not started yet; --follow waits")
        self.ends(array)
        self.assertEqual(msactl("job", "logs", "-F", f"{array}_2").stdout, "2\n")
        self.refused(msactl("job", "logs", str(array), check=False), 2, "is an array", f"as {array}_")
        self.refused(msactl("job", "logs", "999999", check=False), 3, "no such job")

    def test_logs_of_srun_are_its_own(self):
        runs = HOSTS.begin("ctl", "env", "-C", SHARED, "msactl", "run", "-J", "mine", "sleep", "60", user=USER)
        self.addCleanup(runs.communicate)
        job = self.eventually("it runs", lambda: next((i for i, it in jobs().items() if it["state"] == "RUNNING"), None))
        self.refused(msactl("job", "logs", str(job), check=False), 3, f"msactl job attach {job}")

    def test_attach_is_sattach_that_takes_no_input(self):
        task = f"'until [ -e {SHARED}/go ]; do echo tick; sleep 0.1; done; read -t 2 line; echo read $?; exit 3'"
        job = submit("-m", "cluster", "-o", "out", self.script(f"srun -n1 bash -c {task} < <(sleep 600)\n"))
        self.output("tick")
        attached = self.meanwhile("ctl", "bash", "-c", f"echo typed | msactl job attach -l {job}", user=USER)
        self.assertEqual(attached.stdout.readline(), "0: tick\n", attached.poll() is not None and attached.stderr.read())
        (SHARED / "go").touch()
        out, err = attached.communicate(timeout=60)
        self.assertEqual((attached.returncode, out.splitlines()[-1]), (3, "0: read 142"), err)
        self.ends(job)
        self.refused(msactl("job", "attach", str(job), check=False), 7, "has ended already")

    def test_attach_names_the_steps_where_there_is_not_one(self):
        step = "srun -n1 --exact -J {0} bash -c 'while :; do echo {0}; sleep 0.1; done' &\n"
        job = submit("-m", "cluster", "-n2", "-o", "out", self.script(step.format("one") + step.format("two") + "wait\n"))
        self.output("one")
        self.output("two")
        done = msactl("job", "attach", str(job), check=False)
        self.refused(done, 2, "has 2 running steps", f"{job}.0 (", f"{job}.1 (", "one", "two")
        first = "one" if f"{job}.0 (one" in done.stderr else "two"
        attached = self.meanwhile("ctl", "msactl", "job", "attach", f"{job}.0", user=USER)
        self.assertEqual({attached.stdout.readline() for _ in range(20)}, {f"{first}\n"})
        self.refused(msactl("job", "attach", f"{job}.7", check=False), 3, "has no step 7 that runs now")
        self.refused(msactl("job", "attach", f"{job}.batch", check=False), 2, f"msactl job logs {job} --follow")
        self.refused(msactl("job", "attach", str(job), user=OTHER, check=False), 4, f"is of user '{USER}'")
        msactl("job", "cancel", str(job))
        plain, held = submit("-m", "cluster", "--wrap", "sleep 60"), submit("-H", "--wrap", "true")
        self.eventually("it runs", lambda: running(plain))
        self.refused(msactl("job", "attach", str(plain), check=False), 7, "no step that runs now", f"msactl job logs {plain} --follow")
        self.refused(msactl("job", "attach", str(held), check=False), 7, "has not started")
        self.refused(msactl("job", "attach", "999999", check=False), 3, "no such job")

    def test_history_says_that_slurm_keeps_none(self):
        self.refused(msactl("job", "history", check=False), 3, "Slurm keeps no history here", "msactl job list --all")

    def test_modules_and_nodes_are_shown_with_all_of_slurms_and_msas(self):
        job = submit("-m", "booster", "-w", "bn1", "-n", "3", "--wrap", "sleep 60")
        self.eventually("it runs", lambda: running(job))
        module = shown("module", "show", "booster")
        self.assertEqual((module["kind"], module["cores"], module["cores_free"]), ("booster", 16, 13))
        self.assertEqual((module["slurm"]["shown"]["Nodes"], module["slurm"]["shown"]["State"]), ("bn[0-1]", "UP"))
        self.assertEqual([node["name"] for node in module["node_list"]], ["bn0", "bn1"])
        self.assertIn("Slurm says", msactl("module", "show", "booster").stdout)
        self.assertEqual(shown("module", "show", "nam")["slurm"]["partition_state"], None)
        node = shown("node", "show", "bn1")
        self.assertEqual((node["jobs"], node["cores_used"], node["slurm"]["msa"]), ([job], 3, "UP"))
        self.assertEqual((node["slurm"]["shown"]["CPUAlloc"], node["slurm"]["shown"]["NodeHostName"]), ("3", "bn1"))
        self.assertRegex(node["slurm"]["shown"]["BootTime"], r"^\d{4}-\d\d-\d\dT")
        self.assertIn("CPUAlloc = 3", msactl("node", "show", "bn1").stdout)
        self.assertIn("no such node", msactl("node", "show", "nam0").stdout)
        self.refused(msactl("module", "show", "boster", check=False), 3, "did you mean 'booster'?")
        self.refused(msactl("node", "show", "bn7", check=False), 3, "no node 'bn7'")
        picture = msactl("module", "topology").stdout
        self.assertIn(f"system '{HOSTS.name}'", picture)
        self.assertRegex(picture, rf"bn1 \[\S+\] 3/8 job {job}")

    def test_drain_and_resume_are_scontrols(self):
        done = msactl("node", "drain", "--reason", "new disk", "bn0", check=False)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("Invalid user id", done.stderr)
        self.addCleanup(HOSTS.on, "ctl", "scontrol", "update", "node=bn[0-1]", "state=resume", check=False)
        msactl("node", "drain", "--reason", "new disk", "bn[0-1]", user=None)
        nodes = {item["name"]: item for item in shown("node", "list", "-m", "booster")["items"]}
        self.assertEqual([(it["drained"], it["reason"]) for it in nodes.values()], [(True, "new disk")] * 2)
        self.refused(msactl("node", "drain", "-r", "x", "bn0,nam0", user=None, check=False), 3, "'nam0' is no node of Slurm's")
        msactl("node", "resume", "bn[0-1]", user=None)
        self.assertEqual([it["drained"] for it in shown("node", "list", "-m", "booster")["items"]], [False, False])

    def test_an_allocation_is_sallocs(self):
        inner = "msactl run -m cluster hostname; msactl run -m booster hostname; exit 4"
        done = msactl("job", "alloc", "-m", "cluster", "-t", "2", ":", "-m", "booster", "bash", "-c", inner, check=False)
        self.assertEqual((done.returncode, done.stdout.split()), (4, ["cn0", "bn0"]), done.stderr)
        self.refused(msactl("job", "alloc", "--propagate", "-m", "cluster", "true", check=False), 2, "salloc has none")

    def test_the_backend_may_stand_before_the_noun_and_completion_asks_it(self):
        job = submit("-H", "-J", "waits", "--wrap", "true")
        self.refused(msactl("--backend", "msa", "job", "wait", str(job), check=False), 3, str(job))
        self.refused(msactl("job", "--backend=msa", "logs", str(job), check=False), 3, str(job))
        self.refused(msactl("--backend", "slurm", "job", "wait", "--timeout", "100ms", str(job), check=False), 6)
        words = ("completion", "words", "--")
        self.assertIn(f"{job}\twaits, PENDING", msactl(*words, "job", "cancel", "").stdout.splitlines())
        self.assertEqual(msactl(*words, "--backend", "msa", "job", "cancel", "").stdout, "")
        self.assertEqual(msactl(*words, "module", "show", "boo").stdout.split("\t")[0], "booster")
        self.assertEqual([line.split("\t")[0] for line in msactl(*words, "--backend", "sl").stdout.splitlines()], ["slurm"])

    def test_without_slurmctld_its_text_is_passed_on_and_a_wait_goes_on(self):
        job = submit("-m", "cluster", "--wrap", f"until [ -e {SHARED}/go ]; do sleep 0.1; done; exit 5")
        self.eventually("it runs", lambda: running(job))
        waits = HOSTS.begin("ctl", "bash", "-c", f"cd {SHARED}; exec msactl job wait {job} 2>said", user=USER)
        asks = "sdiag | sed -n 's/.*REQUEST_JOB_INFO_SINGLE.*count:\\([0-9]*\\).*/\\1/p'"
        before = int(HOSTS.shell("ctl", asks).stdout or 0)
        self.eventually("it has asked twice", lambda: int(HOSTS.shell("ctl", asks).stdout or 0) >= before + 2)
        words = [("job", "signal", "USR1", str(job)), ("job", "wait", str(job)), ("job", "logs", str(job)),
                 ("job", "attach", str(job)), ("module", "show", "booster"), ("node", "show", "bn0")]  # fmt: skip
        self.stop_slurmctld()
        try:
            asked = [HOSTS.begin("ctl", "msactl", *one, user=USER) for one in words]
            ends = [one.communicate(timeout=100) + (one.returncode,) for one in asked]
            self.output("Slurm does not answer", name="said")
        finally:
            self.start_slurmctld()
        for one, (out, err, code) in zip(words, ends, strict=True):
            self.assertEqual((out, code), ("", 1), f"{one}: {err}")
            self.assertIn("Unable to contact slurm controller", err, one)
        (SHARED / "go").touch()
        waits.communicate(timeout=100)
        self.assertEqual(waits.returncode, 5, self.output("Slurm does not answer", name="said"))


class Accounting(HostsCase):
    """On a system of its own, with slurmdbd."""

    def setUp(self):
        self.hosts = Hosts("ba")
        self.addCleanup(self.hosts.vcluster, "down")
        # slurmctld forgets what has ended at once.
        self.hosts.vcluster("up", "--accounting", "--bin", BUILD / "bin", "--share", BUILD, "--share", SHARED,
                            "--slurm-conf", "MinJobAge=2", "--timeout", 480, timeout=600)  # fmt: skip
        for line in ("add account physics", f"add user {USER} account=physics"):
            self.hosts.on("ctl", "sacctmgr", "-i", *line.split())
        test = ["sbatch", "--test-only", "--account", "physics", "-D", "/", "--wrap", "true"]
        self.eventually("slurmctld knows the account", lambda: self.hosts.on("ctl", *test, user=USER, check=False).returncode == 0)

    def msactl(self, *words, check=True):
        return self.hosts.on("ctl", "env", "-C", SHARED, "msactl", *words, user=USER, check=check)

    def test_history_is_sacct_and_tells_the_code_of_a_job_that_slurmctld_has_forgotten(self):
        five = self.msactl("submit", "--parsable", "-J", "a|b\nc", "--wrap", "exit 5").stdout.strip()
        array = self.msactl("submit", "--parsable", "--array=1-2", "--wrap", "true").stdout.strip()
        self.assertEqual(self.msactl("job", "wait", array).returncode, 0)
        history = lambda: {it["slurm"]["id"]: it for it in json.loads(self.msactl("job", "history", "-f", "json").stdout)["items"]}  # noqa: E731
        # It may hear of an end before the start, which has the name.
        whole = lambda items: len(items) == 3 and items.get(five, {}).get("name", "").startswith("a|b")  # noqa: E731
        items = self.eventually("slurmdbd knows all of them", lambda: (lambda it: it if whole(it) else None)(history()))
        self.assertEqual(sorted(items), sorted([five, f"{array}_1", f"{array}_2"]))
        self.assertEqual((items[five]["name"], items[five]["state"], items[five]["exit_code"]), ("a|b\nc", "FAILED", 5))
        self.assertEqual((items[five]["slurm"]["account"], items[five]["mode"]), ("physics", "batch"))
        names = self.msactl("job", "history", "-s", "FAILED", "-S", "now-1hour", "-f", "name").stdout
        self.assertEqual(names.split(), [five])
        self.assertEqual(self.msactl("job", "history", "-u", "root").stdout, "no jobs have ended in the last 30 days; --since goes further back\n")
        forgets = lambda: "Invalid job id" in self.hosts.on("ctl", "squeue", "-j", five, check=False).stderr  # noqa: E731
        self.eventually("slurmctld has forgotten it", forgets, limit=120)
        done = self.msactl("job", "wait", five, check=False)
        self.assertEqual(done.returncode, 5, done.stderr)
        self.assertIn(f"job {five} ended as FAILED", done.stderr)
        done = self.msactl("job", "wait", "999999", check=False)
        self.assertEqual(done.returncode, 3)
        self.assertIn("Slurm's accounting knows no such job, either", done.stderr)


if __name__ == "__main__":
    main()
