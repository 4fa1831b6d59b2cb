#!/usr/bin/env python3
"""msa-companion and msa-slurm-agent with a real Slurm: deploy/vcluster, the programs driven over their sockets.

Usage: companion_test.py BUILD_DIRECTORY [--accounting] [unittest's options]. With --accounting: what slurmdbd's
accounts, QOS and limits change. Needs root; exit code 77: it is not root.
"""

import socket
import struct
import subprocess
import time
import unittest

from hosts_support import BUILD, USER, Hosts, HostsCase, main, taken

ACCOUNTING = taken("--accounting")
HOSTS = Hosts("co")
on = HOSTS.on

# ---- the wire format (daemon/base/include/msa/base/wire.h), as far as these messages need it

INTEGERS = {"u8": "<B", "bool": "<B", "u16": "<H", "u32": "<I", "i32": "<i", "u64": "<Q", "i64": "<q"}
CORES = [("node", "str"), ("cores", ["u16"])]
JOB = [
    ("job", "u64"), ("leader", "u64"), ("offset", "u32"), ("array_job", "u64"), ("array_tasks", "str"), ("uid", "u32"),
    ("gid", "u32"), ("user_name", "str"), ("account", "str"), ("partition", "str"), ("qos", "str"), ("state", "str"),
    ("over", "bool"), ("reason", "str"), ("message", "str"), ("nodes", ["str"]), ("num_nodes", "u32"), ("num_cpus", "u32"),
    ("submit", "u64"), ("start", "u64"), ("end", "u64"), ("time_limit_s", "u32"), ("name", "str"), ("comment", "str"),
    ("licenses", "str"), ("restarts", "u32"), ("exit_status", "i32"),
]  # fmt: skip
MESSAGES = {
    "CompanionAsk": (0x0B20, [
        ("version", "u32"), ("parent", "u64"), ("restarts", "u32"), ("request", "u64"), ("partition", "str"),
        ("features", "str"), ("nodes", ["str"]), ("slots", "u32"), ("alternatives", ["u32"]), ("slots_per_node", "u32"),
        ("nodes_exactly", "u32"), ("exclusive", "bool"), ("wait_ms", "i64"), ("settle_ms", "i64"), ("time_ms", "i64"),
        ("again", "bool")]),
    "CompanionShrink": (0x0B21, [("keep", ["str"])]),
    "CompanionRelease": (0x0B22, []),
    "CompanionPending": (0x0B28, [("job", "u64"), ("reason", "str"), ("message", "str"), ("expected_start", "u64")]),
    "CompanionGranted": (0x0B29, [
        ("job", "u64"), ("nodes", [CORES]), ("slots", "u32"), ("start", "u64"), ("end", "u64"), ("time_limit_s", "u32"),
        ("partition", "str"), ("account", "str"), ("qos", "str")]),
    "CompanionRefused": (0x0B2A, [("code", "u8"), ("job", "u64"), ("reason", "str"), ("message", "str")]),
    "CompanionKept": (0x0B2B, [("message", "str")]),
    "CompanionEnded": (0x0B2C, [("job", "u64"), ("state", "str"), ("message", "str")]),
    "SlurmAgentState": (0x0B30, [
        ("version", "u32"), ("slurmctld_up", "bool"), ("message", "str"), ("cluster", "str"), ("slurm_version", "str")]),
    "SlurmJobsChanged": (0x0B31, [("complete", "bool"), ("more", "bool"), ("jobs", [JOB]), ("gone", ["u64"])]),
    "SlurmJobQuestion": (0x0B32, [("job", "u64")]),
    "SlurmJobAnswer": (0x0B33, [("code", "u8"), ("message", "str"), ("job", JOB), ("cores", [CORES])]),
    "SlurmCancelOrphans": (0x0B34, [("parents", ["u64"])]),
    "SlurmOrphansCancelled": (0x0B35, [("jobs", ["u64"]), ("code", "u8"), ("message", "str")]),
    "SlurmKillStep": (0x0B36, [("job", "u64"), ("step", "u32"), ("signal", "i32")]),
    "SlurmCancelJob": (0x0B37, [("job", "u64"), ("signal", "i32")]),
    "SlurmDone": (0x0B38, [("code", "u8"), ("message", "str")]),
}  # fmt: skip
NAMES = {number: name for name, (number, _) in MESSAGES.items()}
OK, DEADLINE, NOT_FOUND, DENIED, EXHAUSTED, PRECONDITION, ABORTED, OUT_OF_RANGE = 0, 4, 5, 7, 8, 9, 10, 11


def put(kind, value):
    if isinstance(kind, str):
        if kind == "str":
            return struct.pack("<I", len(value.encode())) + value.encode()
        return struct.pack(INTEGERS[kind], value)
    if isinstance(kind[0], tuple):
        return b"".join(put(k, value[n]) for n, k in kind)
    return struct.pack("<I", len(value)) + b"".join(put(kind[0], v) for v in value)


def get(kind, data, at):
    if isinstance(kind, str):
        if kind == "str":
            (size,) = struct.unpack_from("<I", data, at)
            return data[at + 4 : at + 4 + size].decode(), at + 4 + size
        (value,) = struct.unpack_from(INTEGERS[kind], data, at)
        return value, at + struct.calcsize(INTEGERS[kind])
    if isinstance(kind[0], tuple):
        fields = {}
        for name, part in kind:
            fields[name], at = get(part, data, at)
        return fields, at
    (count,) = struct.unpack_from("<I", data, at)
    values, at = [], at + 4
    for _ in range(count):
        value, at = get(kind[0], data, at)
        values.append(value)
    return values, at


class Helper:
    """One of the two programs on a host of the cluster, and our end of its socket."""

    def __init__(self, program, host, user, *options):
        self.socket, theirs = socket.socketpair()
        self.data = b""
        fd = theirs.fileno()
        words = HOSTS.exec_words(host, BUILD / "bin" / program, "--fd", fd, *options, user=user)
        self.process = subprocess.Popen(HOSTS.words("exec", *words), pass_fds=[fd], stderr=subprocess.PIPE)
        theirs.close()

    def send(self, name, number=0, **fields):
        kind, parts = MESSAGES[name]
        payload = b"".join(put(k, fields[n]) for n, k in parts)
        self.socket.sendall(struct.pack("<IHHQ", len(payload), kind, 0, number) + payload)

    def next(self, limit=60):
        """(name, fields) of the next message, with its correlation id as "#"; None: the program closed its end."""
        end = time.monotonic() + limit
        while True:
            if len(self.data) >= 16:
                size, kind, _, number = struct.unpack_from("<IHHQ", self.data)
                if len(self.data) >= 16 + size:
                    payload, self.data = self.data[16 : 16 + size], self.data[16 + size :]
                    fields, at = {"#": number}, 0
                    for part, k in MESSAGES[NAMES[kind]][1]:
                        fields[part], at = get(k, payload, at)
                    return NAMES[kind], fields
            self.socket.settimeout(max(end - time.monotonic(), 0.001))
            try:
                more = self.socket.recv(65536)
            except TimeoutError as error:
                raise AssertionError(f"no message within {limit} s") from error
            if not more:
                return None
            self.data += more

    def expect(self, wanted, limit=60, **fields):
        """The next message of that kind whose fields are as given; others are passed over."""
        seen = []
        end = time.monotonic() + limit
        while True:
            message = self.next(max(end - time.monotonic(), 0.01))
            if message is None:
                raise AssertionError(f"the program closed its end before {wanted}; it sent {seen}")
            if message[0] == wanted and all(message[1][k] == v for k, v in fields.items()):
                return message[1]
            seen.append(message)

    def close(self):
        self.socket.close()

    def wait(self, limit=60):
        code = self.process.wait(limit)
        self.process.stderr.close()
        return code


def setUpModule():
    more = ["PartitionName=closed Nodes=dn0 AllowGroups=slurm", "PartitionName=billed Nodes=dn0 AllowAccounts=payers",
            "PartitionName=short Nodes=dn0 MaxTime=1"]  # fmt: skip
    HOSTS.raise_for_module(*(word for line in more for word in ("--slurm-conf", line)), *["--accounting"] * ACCOUNTING)
    if not ACCOUNTING:
        return
    for line in (
        "add account physics", "add qos fast", "add qos one set MaxJobsPerUser=1", "add qos single set MaxSubmitJobsPerUser=1",
        "add qos small set MaxTRESPerJob=cpu=4", "add user nobody account=vcluster",
        "add user nobody account=physics qos=normal,fast,one,single,small",
    ):  # fmt: skip
        on("ctl", "sacctmgr", "-i", *line.split())


class CompanionCase(HostsCase):
    hosts = HOSTS
    request = 0
    account = None  # of jobs, where there is accounting

    def setUp(self):
        self.helpers = []
        self.eventually("nothing is left of the test before", lambda: not self.queue())

    def tearDown(self):
        for helper in self.helpers:
            helper.close()
            if helper.process.poll() is None:
                helper.process.kill()
            helper.wait()
        on("ctl", "bash", "-c", "scancel $(squeue -h -o %A) 2>/dev/null; true")

    def queue(self):
        return on("ctl", "squeue", "-h", "-o", "%A %T %P %j %u %k").stdout.strip()

    def names(self):
        return sorted(line.split()[3] for line in self.queue().splitlines())

    def only(self, *names):
        """Waits until no other jobs are there than those of these names."""
        self.eventually(f"only {names} are left", lambda: self.names() == list(names))

    def submit(self, *options, user=USER):
        """A job that lives until it is cancelled."""
        word = ["--account", self.account] if self.account else []
        done = on("ctl", "sbatch", "--parsable", "-o", "/dev/null", "-D", "/", *word, *options, "--wrap", "sleep 600", user=user)
        return int(done.stdout)

    def running(self, job):
        self.eventually(f"job {job} runs", lambda: f"{job} RUNNING" in self.queue(), limit=120)
        return job

    def parent(self, *options):
        return self.running(self.submit("-p", "cluster", "-n", "1", *options))

    def ask(self, parent, slots, partition="booster", alternatives=(), wait_s=10, nodes=(), user=USER, **more):
        CompanionCase.request += 1
        helper = Helper("msa-companion", "cn0", user)
        self.helpers.append(helper)
        fields = {
            "version": 1, "parent": parent, "restarts": 0, "request": self.request, "partition": partition, "features": "",
            "nodes": list(nodes), "slots": slots, "alternatives": list(alternatives), "slots_per_node": 0, "nodes_exactly": 0,
            "exclusive": False, "wait_ms": int(wait_s * 1000), "settle_ms": 30000, "time_ms": 0, "again": False,
        }  # fmt: skip
        helper.send("CompanionAsk", **{**fields, **more})
        return helper

    def cores(self, granted):
        return {node["node"]: node["cores"] for node in granted["nodes"]}

    def released(self, helper, job):
        helper.send("CompanionRelease")
        ended = helper.expect("CompanionEnded")
        self.assertEqual((ended["job"], ended["state"]), (job, "CANCELLED"))
        self.assertEqual(helper.wait(), 0)

    def refused(self, helper, code, *parts, limit=60):
        refused = helper.expect("CompanionRefused", limit=limit)
        self.assertEqual(refused["code"], code, refused)
        for part in parts:
            self.assertIn(part, refused["message"])
        self.assertIsNone(helper.next(), "Refused is the last message")
        self.assertEqual(helper.wait(), 0)
        return refused

    def agent(self):
        helper = Helper("msa-slurm-agent", "ctl", "slurm")
        self.helpers.append(helper)
        state = helper.expect("SlurmAgentState")
        self.assertTrue(state["slurmctld_up"])
        self.assertEqual(state["cluster"], HOSTS.name)
        return helper


class Companions(CompanionCase):
    # ---- granted

    def test_cores_that_are_free_are_granted_at_once(self):
        parent = self.parent("-t", "10")
        helper = self.ask(parent, 10, wait_s=0)
        granted = helper.expect("CompanionGranted")
        self.assertEqual(self.cores(granted), {"bn0": list(range(8)), "bn1": [0, 1]})
        self.assertEqual((granted["slots"], granted["partition"]), (10, "booster"))
        shown = on("ctl", "scontrol", "show", "job", str(granted["job"])).stdout
        self.assertIn(f"JobName=msa:{parent}.{self.request}", shown)
        self.assertIn(f"Comment=msa parent={parent} restart=0 request={self.request}", shown)
        self.assertIn(f"UserId={USER}", shown)
        self.assertIn("Requeue=0", shown)
        # Slurm counts in minutes: at most one more than the parent has left.
        left = int(on("ctl", "squeue", "-h", "-j", str(parent), "-o", "%L").stdout.split(":")[0]) + 1
        self.assertLessEqual(granted["time_limit_s"], 60 * (left + 1))
        self.released(helper, granted["job"])
        self.only("wrap")

    def test_cores_beside_those_of_others_are_told_as_they_are(self):
        parent = self.parent()
        first = self.ask(parent, 3, partition="dam").expect("CompanionGranted")
        second = self.ask(parent, 1, partition="dam").expect("CompanionGranted")
        self.assertEqual(self.cores(first), {"dn0": [0, 1, 2]})
        self.assertEqual(self.cores(second), {"dn0": [3]})

    def test_nodes_are_chosen_as_asked(self):
        parent = self.parent()
        for wanted, more in (
            ({"bn1": 2}, {"slots": 2, "nodes": ["bn1"]}),
            ({"bn0": 2, "bn1": 2}, {"slots": 4, "slots_per_node": 2}),
            ({"bn0": 2, "bn1": 1}, {"slots": 3, "nodes_exactly": 2}),
            ({"bn0": 8}, {"slots": 1, "exclusive": True}),
        ):
            with self.subTest(**more):
                helper = self.ask(parent, **more)
                granted = helper.expect("CompanionGranted")
                self.assertEqual({node: len(cores) for node, cores in self.cores(granted).items()}, wanted)
                self.assertEqual(granted["slots"], more["slots"])
                self.released(helper, granted["job"])

    def test_a_grant_follows_a_release_though_its_nodes_are_still_cleaned(self):
        parent = self.parent()
        for _ in range(5):
            helper = self.ask(parent, 16, wait_s=0)
            self.released(helper, helper.expect("CompanionGranted")["job"])

    def test_it_waits_until_another_job_ends(self):
        parent = self.parent()
        other = self.running(self.submit("-p", "booster", "-N", "2", "--exclusive"))
        helper = self.ask(parent, 2, wait_s=60)
        pending = helper.expect("CompanionPending")
        self.assertIn(pending["reason"], ("Resources", "Priority", "None"))
        pending = pending if pending["reason"] == "Resources" else helper.expect("CompanionPending", reason="Resources")
        self.assertIn("what is free does not suffice", pending["message"])
        on("ctl", "scancel", str(other))
        self.assertEqual(helper.expect("CompanionGranted")["job"], pending["job"])

    def test_a_companion_that_waited_ends_with_its_parent(self):
        parent = self.parent("-t", "10")
        other = self.running(self.submit("-p", "booster", "-N", "2", "--exclusive"))
        helper = self.ask(parent, 1, wait_s=60)
        helper.expect("CompanionPending")
        # Its own limit is still ten minutes from its start on.
        on("ctl", "scontrol", "update", f"jobid={parent}", "TimeLimit=3")
        end = on("ctl", "squeue", "-h", "-j", str(parent), "-o", "%e").stdout.strip()
        on("ctl", "scancel", str(other))
        granted = helper.expect("CompanionGranted")
        self.assertLessEqual(granted["end"], time.mktime(time.strptime(end, "%Y-%m-%dT%H:%M:%S")) + 60)

    # ---- sets

    def test_of_a_soft_set_the_largest_that_is_free_is_taken(self):
        parent = self.parent()
        self.running(self.submit("-p", "booster", "-w", "bn1", "-N", "1", "--exclusive"))
        helper = self.ask(parent, 16, alternatives=[12, 6, 2], wait_s=0)
        granted = helper.expect("CompanionGranted")
        self.assertEqual(granted["slots"], 6)
        self.assertEqual(list(self.cores(granted)), ["bn0"])

    def test_nodes_beyond_the_member_that_fits_are_given_back(self):
        parent = self.parent()
        helper = self.ask(parent, 20, alternatives=[7], wait_s=0)
        granted = helper.expect("CompanionGranted")
        self.assertEqual((granted["slots"], self.cores(granted)), (7, {"bn0": list(range(8))}))
        self.eventually("bn1 is free", lambda: on("ctl", "sinfo", "-h", "-n", "bn1", "-p", "booster", "-o", "%T").stdout.strip() == "idle")

    def test_the_whole_set_is_waited_for_before_a_smaller_member_is_taken(self):
        parent = self.parent()
        self.ask(parent, 8, nodes=["bn1"]).expect("CompanionGranted")
        begin = time.monotonic()
        helper = self.ask(parent, 4, alternatives=[2], slots_per_node=2, wait_s=2)
        granted = helper.expect("CompanionGranted")
        self.assertGreaterEqual(time.monotonic() - begin, 2)
        self.assertEqual((granted["slots"], {n: len(c) for n, c in self.cores(granted).items()}), (2, {"bn0": 2}))
        self.eventually("the job for all of it is gone", lambda: len(self.names()) == 3)  # the parent and two companions

    def test_a_job_gives_nodes_back(self):
        parent = self.parent()
        helper = self.ask(parent, 16)
        granted = helper.expect("CompanionGranted")
        helper.send("CompanionShrink", keep=["cn0"])
        self.assertIn("some of job", helper.expect("CompanionKept")["message"])
        helper.send("CompanionShrink", keep=["bn1"])
        self.assertEqual(self.cores(helper.expect("CompanionGranted")), {"bn1": list(range(8))})
        self.released(helper, granted["job"])

    # ---- refused

    def test_at_the_deadline_it_is_refused_and_nothing_stays(self):
        parent = self.parent()
        self.running(self.submit("-p", "booster", "-N", "2", "--exclusive"))
        refused = self.refused(self.ask(parent, 2, wait_s=6), DEADLINE, "within 6 s", "Resources", "msa_wait")
        self.assertEqual(refused["reason"], "Resources")
        self.only("wrap", "wrap")

    def test_without_a_wait_it_is_refused_at_once(self):
        parent = self.parent()
        self.running(self.submit("-p", "booster", "-N", "2", "--exclusive"))
        helper = self.ask(parent, 2, wait_s=0, settle_ms=600_000)
        self.refused(helper, DEADLINE, "now", "Resources", limit=120)
        self.only("wrap", "wrap")

    def test_slurms_own_text_is_passed_on(self):
        parent = self.parent()
        for partition, code, part in (
            ("closed", DENIED, "User's group not permitted to use this partition"),
            ("billed", DENIED, "can't use this partition (billed allows payers)"),
            ("nowhere", NOT_FOUND, "nowhere"),
        ):
            with self.subTest(partition=partition):
                self.refused(self.ask(parent, 1, partition=partition), code, part)
        self.only("wrap")

    def test_what_can_never_start_does_not_wait(self):
        parent = self.parent()
        begin = time.monotonic()
        self.refused(self.ask(parent, 3, nodes_exactly=3, wait_s=600), OUT_OF_RANGE, "partition")
        self.refused(self.ask(parent, 1, partition="short", time_ms=600_000, wait_s=600), OUT_OF_RANGE, "PartitionTimeLimit", "msa_time")
        self.refused(self.ask(parent, 17, wait_s=600), OUT_OF_RANGE)
        self.assertLess(time.monotonic() - begin, 300)

    def test_nodes_that_are_not_there_are_named(self):
        self.refused(self.ask(self.parent(), 1, nodes=["bn1", "xn7"]), NOT_FOUND, "no node xn7")

    def test_a_parent_that_is_over_gets_nothing(self):
        parent = self.parent()
        on("ctl", "scancel", str(parent))
        self.eventually("the parent is over", lambda: not self.queue())
        self.refused(self.ask(parent, 1), PRECONDITION, f"job {parent}", "CANCELLED")
        self.refused(self.ask(4000000, 1), NOT_FOUND, "job 4000000")

    def test_a_queued_companion_that_someone_cancels_is_refused(self):
        parent = self.parent()
        self.running(self.submit("-p", "booster", "-N", "2", "--exclusive"))
        helper = self.ask(parent, 2, wait_s=60)
        on("ctl", "scancel", str(helper.expect("CompanionPending")["job"]))
        self.refused(helper, ABORTED, "scancel")

    # ---- ends

    def test_a_companion_that_someone_cancels_is_told(self):
        helper = self.ask(self.parent(), 2)
        job = helper.expect("CompanionGranted")["job"]
        on("ctl", "scancel", str(job))
        ended = helper.expect("CompanionEnded")
        self.assertEqual((ended["job"], ended["state"]), (job, "CANCELLED"))
        self.assertEqual(helper.wait(), 0)

    def test_the_end_of_the_job_daemon_cancels_what_waits_and_what_runs(self):
        parent = self.parent()
        granted = self.ask(parent, 8)
        granted.expect("CompanionGranted")
        waiting = self.ask(parent, 16, wait_s=60)
        waiting.expect("CompanionPending")
        for helper in (granted, waiting):
            helper.close()
            self.assertEqual(helper.wait(), 0)
        self.only("wrap")

    def test_a_signal_cancels_the_companion(self):
        helper = self.ask(self.parent(), 8)
        helper.expect("CompanionGranted")
        on("cn0", "pkill", "-TERM", "-x", "msa-companion")
        self.assertEqual(helper.wait(), 0)
        self.only("wrap")

    def test_another_program_goes_on_with_the_job_of_a_killed_one(self):
        parent = self.parent()
        helper = self.ask(parent, 8)
        job = helper.expect("CompanionGranted")["job"]
        on("cn0", "pkill", "-KILL", "-x", "msa-companion")
        self.assertIsNone(helper.next())
        CompanionCase.request -= 1
        again = self.ask(parent, 8, again=True)
        self.assertEqual(again.expect("CompanionGranted")["job"], job)
        self.released(again, job)


class Agent(CompanionCase):
    def test_it_tells_of_jobs_and_their_changes(self):
        agent = self.agent()
        agent.expect("SlurmJobsChanged", complete=1, more=0)
        job = self.submit("-p", "booster", "-N", "2", "-J", "hello", "--comment", "words", "-t", "5")
        told = {}
        while told.get("state") != "RUNNING":
            changed = agent.expect("SlurmJobsChanged", complete=0)
            told = next((one for one in changed["jobs"] if one["job"] == job), told)
        self.assertEqual((told["name"], told["comment"], told["partition"]), ("hello", "words", "booster"))
        self.assertEqual((told["nodes"], told["time_limit_s"], told["leader"]), (["bn0", "bn1"], 300, job))
        self.assertGreater(told["uid"], 0)
        on("ctl", "scancel", str(job))
        while told["state"] != "CANCELLED":
            changed = agent.expect("SlurmJobsChanged", complete=0)
            told = next((one for one in changed["jobs"] if one["job"] == job), told)
        self.assertTrue(told["over"])

    def test_it_knows_the_leader_of_a_component(self):
        agent = self.agent()
        on("ctl", "sbatch", "-o", "/dev/null", "-D", "/", "-p", "cluster", "-n1", ":", "-p", "booster", "-n1", "--wrap",
           "sleep 600", user=USER)  # fmt: skip
        parts = {}
        while len(parts) < 2:
            for job in agent.expect("SlurmJobsChanged")["jobs"]:
                if not job["over"]:
                    parts[job["offset"]] = job
        self.assertEqual(parts[1]["leader"], parts[0]["job"])
        self.assertEqual(parts[1]["job"], parts[0]["job"] + 1)

    def test_it_answers_questions(self):
        agent = self.agent()
        job = self.running(self.submit("-p", "booster", "-n", "3"))
        agent.send("SlurmJobQuestion", number=7, job=job)
        answer = agent.expect("SlurmJobAnswer")
        self.assertEqual((answer["#"], answer["code"], answer["job"]["state"]), (7, OK, "RUNNING"))
        self.assertEqual(answer["cores"], [{"node": "bn0", "cores": [0, 1, 2]}])
        agent.send("SlurmJobQuestion", number=8, job=4000000)
        answer = agent.expect("SlurmJobAnswer")
        self.assertEqual((answer["#"], answer["code"]), (8, NOT_FOUND))

    def test_it_cancels_jobs_and_kills_steps(self):
        agent = self.agent()
        job = self.running(self.submit("-p", "booster", "-n", "3"))
        words = ["srun", "--jobid", job, "--overlap", "-n1", "-N1", "bash", "-c", "echo begin; exec sleep 600"]
        step = self.meanwhile("ctl", *words, user=USER)
        # A kill that slurmstepd gets before it has started the task is lost: the task runs, and srun gives up after 7 s, with 0.
        self.assertEqual(step.stdout.readline(), "begin\n", step.poll() is not None and step.stderr.read())
        self.assertIn(f"{job}.0\n", on("ctl", "squeue", "-h", "-s", "-o", "%i").stdout)
        agent.send("SlurmKillStep", number=3, job=job, step=0, signal=9)
        self.assertEqual(agent.expect("SlurmDone")["code"], OK)
        self.assertNotEqual(step.wait(60), 0)
        self.assertIn(f"{job} RUNNING", self.queue())
        agent.send("SlurmCancelJob", number=4, job=job, signal=9)
        self.assertEqual(agent.expect("SlurmDone")["code"], OK)
        self.eventually("the job is cancelled", lambda: not self.queue())
        agent.send("SlurmCancelJob", number=5, job=4000000, signal=9)
        self.assertEqual(agent.expect("SlurmDone")["code"], NOT_FOUND)

    def test_a_companion_whose_program_was_killed_ends_after_its_parent(self):
        agent = self.agent()
        parent, other = self.parent(), self.parent()
        jobs = []
        for whose in (parent, other):
            helper = self.ask(whose, 4)
            jobs.append(helper.expect("CompanionGranted")["job"])
            on("cn0", "pkill", "-KILL", "-n", "-x", "msa-companion")
            self.assertIsNone(helper.next())
        agent.send("SlurmCancelOrphans", number=1, parents=[])
        self.assertEqual(agent.expect("SlurmOrphansCancelled")["jobs"], [], "both parents live")
        # The controller has an agent of its own, which would do the same.
        self.addCleanup(self.all_nodes_are_up)
        self.without("ctl", "msa-controllerd")
        self.eventually("one agent is left", lambda: len(HOSTS.pids("ctl", "msa-slurm-agent")) == 1)
        on("ctl", "scancel", str(parent))
        self.assertEqual(agent.expect("SlurmOrphansCancelled", limit=60)["jobs"], [jobs[0]])
        self.eventually("the first companion is gone", lambda: len(self.names()) == 2)
        agent.send("SlurmCancelOrphans", number=2, parents=[other])
        self.assertEqual(agent.expect("SlurmOrphansCancelled")["jobs"], [jobs[1]])
        self.only("wrap")

    def test_jobs_that_only_look_like_companions_are_left_alone(self):
        agent = self.agent()
        job = self.running(self.submit("-p", "booster", "-n", "1", "--comment", "msa parent=77", "-J", "msa:77.1"))
        agent.send("SlurmCancelOrphans", number=1, parents=[77])
        self.assertEqual(agent.expect("SlurmOrphansCancelled")["jobs"], [])
        self.assertIn(f"{job} RUNNING", self.queue())

    def test_it_ends_with_the_controller(self):
        agent = self.agent()
        agent.close()
        self.assertEqual(agent.wait(), 0)


class Outages(CompanionCase):
    """Last: they kill slurmctld, which then starts from what it had on disk."""

    def test_it_waits_through_a_restart_of_slurmctld(self):
        parent = self.parent()
        other = self.running(self.submit("-p", "booster", "-N", "2", "--exclusive"))
        helper = self.ask(parent, 2, wait_s=120)
        helper.expect("CompanionPending", reason="Resources")
        self.kill_slurmctld(f"msa:{parent}.{self.request}")
        try:
            down = helper.expect("CompanionPending", reason="")
            self.assertIn("slurmctld does not answer", down["message"])
            late = self.ask(parent, 1, partition="dam", wait_s=120)
            late.expect("CompanionPending", reason="")
        finally:
            self.start_slurmctld()
        self.assertEqual(list(self.cores(late.expect("CompanionGranted", limit=60))), ["dn0"])
        on("ctl", "scancel", str(other))
        self.assertIn(list(self.cores(helper.expect("CompanionGranted", limit=60))), (["bn0"], ["bn1"]), "whichever is cleaned first")

    def test_at_the_deadline_without_slurmctld_it_is_refused_and_cancelled_later(self):
        parent = self.parent()
        self.running(self.submit("-p", "booster", "-N", "2", "--exclusive"))
        helper = self.ask(parent, 2, wait_s=40)
        helper.expect("CompanionPending", reason="Resources")
        self.kill_slurmctld(f"msa:{parent}.{self.request}")
        try:
            refused = helper.expect("CompanionRefused", limit=90)
            self.assertIn("slurmctld", refused["message"])
        finally:
            self.start_slurmctld()
        self.assertEqual(helper.wait(60), 0)
        self.only("wrap", "wrap")

    def test_the_agent_tells_when_slurmctld_goes_and_comes_back(self):
        agent = self.agent()
        job = self.running(self.submit("-p", "booster", "-n", "1", "-J", "stays"))
        self.kill_slurmctld("stays")
        try:
            down = agent.expect("SlurmAgentState")
            self.assertFalse(down["slurmctld_up"])
            agent.send("SlurmJobQuestion", number=9, job=job)
            self.assertEqual(agent.expect("SlurmJobAnswer")["code"], 14)
        finally:
            self.start_slurmctld()
        self.assertTrue(agent.expect("SlurmAgentState", limit=60)["slurmctld_up"])
        complete = agent.expect("SlurmJobsChanged", complete=1)
        self.assertIn(job, [one["job"] for one in complete["jobs"]])


class Accounting(CompanionCase):
    account = "physics"

    def setUp(self):
        super().setUp()
        # slurmdbd tells slurmctld of users and QOS in its own time.
        for qos in ("fast", "one", "single", "small"):
            test = ["sbatch", "--test-only", "--account", "physics", "--qos", qos, "-D", "/", "--wrap", "true"]
            self.eventually(f"slurmctld knows qos {qos}", lambda t=test: on("ctl", *t, user=USER, check=False).returncode == 0)

    def test_account_and_qos_are_the_parents(self):
        granted = self.ask(self.parent("--qos", "fast"), 3).expect("CompanionGranted")
        self.assertEqual((granted["account"], granted["qos"]), ("physics", "fast"))
        shown = on("ctl", "scontrol", "show", "job", str(granted["job"])).stdout
        self.assertIn("Account=physics QOS=fast", shown)

    def test_a_limit_on_running_jobs_is_named_at_the_deadline(self):
        parent = self.parent("--qos", "one")
        refused = self.refused(self.ask(parent, 1, wait_s=8), DEADLINE, "a limit of the QOS is reached",
                               "wait longer (msa_wait) for the end of other jobs", "'sacctmgr show qos where name=one'")  # fmt: skip
        self.assertEqual(refused["reason"], "QOSMaxJobsPerUserLimit")
        self.only("wrap")

    def test_a_limit_on_running_jobs_is_no_reason_to_wait_without_a_wait(self):
        self.refused(self.ask(self.parent("--qos", "one"), 1, wait_s=0, settle_ms=600_000), DEADLINE, "QOSMaxJobsPerUserLimit", limit=120)

    def test_a_limit_on_submitting_is_slurms_refusal(self):
        self.refused(self.ask(self.parent("--qos", "single"), 1), EXHAUSTED, "Job violates accounting/QOS policy", "ask for less, or again when other jobs have ended")

    def test_a_limit_on_one_job_is_told_at_once(self):
        parent = self.parent("--qos", "small")
        refused = self.refused(self.ask(parent, 8, wait_s=600), OUT_OF_RANGE, "ask for less (cores)", "'sacctmgr show qos where name=small'")
        self.assertEqual(refused["reason"], "QOSMaxCpuPerJobLimit")
        self.assertNotIn("msa_wait", refused["message"])
        self.ask(parent, 4).expect("CompanionGranted")

    def test_a_smaller_member_fits_below_a_limit_on_one_job(self):
        parent = self.parent("--qos", "small")
        granted = self.ask(parent, 8, alternatives=[4], slots_per_node=4, wait_s=600).expect("CompanionGranted")
        self.assertEqual(granted["slots"], 4)

    def test_a_partition_of_other_accounts_is_denied(self):
        self.refused(self.ask(self.parent(), 1, partition="billed"), DENIED, "physics", "billed")

    def test_the_agent_tells_account_and_qos(self):
        job = self.parent("--qos", "fast")
        agent = self.agent()
        agent.send("SlurmJobQuestion", number=1, job=job)
        told = agent.expect("SlurmJobAnswer")["job"]
        self.assertEqual((told["account"], told["qos"], told["user_name"]), ("physics", "fast", USER))


def load_tests(loader, _tests, _pattern):
    cases = (Accounting,) if ACCOUNTING else (Companions, Agent, Outages)
    return unittest.TestSuite(loader.loadTestsFromTestCase(case) for case in cases)


if __name__ == "__main__":
    main(verbosity=2)
