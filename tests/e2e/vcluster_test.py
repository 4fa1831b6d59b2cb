#!/usr/bin/env python3
"""The daemons of one system between hosts: deploy/vcluster with real munge, TLS, MPI over the hosts' networks.

Usage: vcluster_test.py BUILD_DIRECTORY [unittest's options]. Needs root; exit code 77: it is not root.
"""

import os
import pathlib
import re
import signal
import subprocess
import tempfile
import time

from hosts_support import ALL, BUILD, PROGRAMS, USER, Hosts, HostsCase, main

HOSTS = Hosts("e2e", scheduler="msa")
LIFE_S = 8  # of certificates: several are renewed during the tests
SERVER = "tls:ctl:7701"
on, shell, up, log_of = HOSTS.on, HOSTS.shell, HOSTS.up, HOSTS.log_of

# Fails if whoever listens at HOST PORT answers a stranger with more than a TLS alert, or keeps the connection for 30 s.
PROBE = (
    "import socket,sys\n"
    "s=socket.create_connection((sys.argv[1],int(sys.argv[2])),30);s.settimeout(30)\n"
    "s.sendall(b'PRI * HTTP/2.0\\r\\n\\r\\nSM\\r\\n\\r\\n'+bytes(9))\n"
    "got=b''\n"
    "while True:\n"
    "  try: part=s.recv(4096)\n"
    "  except ConnectionResetError: break\n"
    "  if not part: break\n"
    "  got+=part\n"
    "assert got[:1] in (b'',b'\\x15'), got\n"  # a TLS alert is all that may come
)


def setUpModule():
    HOSTS.raise_for_module("--certificate-life-s", LIFE_S)


class BetweenHosts(HostsCase):
    hosts = HOSTS

    def setUp(self):
        self.all_nodes_are_up()

    # ---- nodes and users

    def test_every_host_lists_all_nodes(self):
        for host in ("ctl", "cn0", "bn1", "gw0", "nam0"):
            self.eventually(f"{host} lists all", lambda h=host: up(h) == ALL)

    def test_the_doctor_finds_nothing_wrong_with_a_node(self):
        done = on("bn0", "msactl", "doctor", check=False)
        self.assertRegex(done.stdout, r"OK +nodes +7 nodes up")
        self.assertRegex(done.stdout, r"OK +strays ")

    def test_the_nam_daemon_is_known_on_every_host(self):
        self.eventually("namd of nam0 is up", lambda: re.search(r"^nam0\b.*\bup\b", on("bn0", "msactl", "region", "df", user=USER).stdout, re.M | re.I))

    def test_node_daemons_reach_the_controller_by_tls(self):
        self.assertIn("tls:ctl:7701", log_of("cn0", "msa-noded"))

    def test_a_server_may_be_named_on_the_command_line(self):
        done = on("dn0", "msactl", "node", "list", "--server", SERVER, "-f", "name")
        self.assertEqual(sorted(done.stdout.split()), ALL)
        self.refused(on("dn0", "msactl", "node", "list", "--server", "tls:ctl", check=False), "tls:HOST:PORT")

    def test_a_user_runs_as_himself_and_has_no_other_rights(self):
        done = on("cn1", "msactl", "run", "-m", "booster", "-N", "2", "id", "-un", user=USER)
        self.assertEqual(done.stdout.split(), [USER, USER])
        self.refused(on("cn1", "msactl", "node", "drain", "bn0", "--reason", "no", user=USER, check=False), "operator")
        job = on("bn0", "msactl", "submit", "-o", "/tmp/job.out", "--wrap", "sleep 300").stdout.split()[-1]
        try:
            self.refused(on("cn1", "msactl", "job", "cancel", job, user=USER, check=False), job)
        finally:
            on("bn0", "msactl", "job", "cancel", job)

    def test_root_of_another_host_drains_and_resumes(self):
        on("bn1", "msactl", "node", "drain", "dn0", "--reason", "test")
        (dam,) = (row for row in HOSTS.rows("node", "list") if row["node"] == "dn0")
        self.assertIn("drain", dam["state"].lower())
        on("bn1", "msactl", "node", "resume", "dn0")

    # ---- certificates

    def test_certificates_are_renewed_below_a_job_and_its_terminal(self):
        sessions = log_of("bn0", "msa-noded").count("registered with") + log_of("cn1", "msa-noded").count("registered with")
        script = f"for i in $(seq {3 * LIFE_S}); do echo $i; sleep 1; done"
        done = on("cn0", "msactl", "run", "-m", "booster", "-N", "1", "bash", "-c", script)
        self.assertEqual(done.stdout.split(), [str(i) for i in range(1, 3 * LIFE_S + 1)])
        self.assertEqual(done.stderr, "")
        after = log_of("bn0", "msa-noded").count("registered with") + log_of("cn1", "msa-noded").count("registered with")
        self.assertEqual(after, sessions, "node daemons keep their sessions")

    def test_a_host_with_another_munge_key_is_nobody(self):
        key = "pkill -x munged; sed -i 's/^./X/' /tmp/key/munge.key; chown -R munge /tmp/key; while pgrep -x munged; do sleep 0.02; done; "
        try:
            shell(
                "bn1",
                "mkdir -p /tmp/key && head -c 128 /dev/urandom >/tmp/key/munge.key && chmod 700 /tmp/key && chmod 600 /tmp/key/munge.key; "
                + key.replace("sed -i 's/^./X/' /tmp/key/munge.key; ", "")
                + "setpriv --reuid=munge --regid=munge --clear-groups munged --key-file=/tmp/key/munge.key",
            )
            self.refused(on("bn1", "msactl", "node", "list", "--server", SERVER, check=False), "same munge key")
            # Its certificate ends, and no other is to be had.
            self.eventually("bn1 is down", lambda: "bn1" not in up(), limit=90)
            self.assertRegex(log_of("ctl", "msa-controllerd"), r"from=10\.77\.1\.\d+ refused: .*munge")
        finally:
            shell("bn1", "pkill -x munged; while pgrep -x munged; do sleep 0.02; done; rm -f /run/munge/*.lock; "
                  "setpriv --reuid=munge --regid=munge --clear-groups munged --num-threads=2")  # fmt: skip

    def test_a_node_daemon_speaks_for_the_node_of_its_host_alone(self):
        topology = f"/run/msa-vcluster/{HOSTS.name}/topology.toml"
        self.meanwhile("cn1", "bash", "-c", f"exec timeout 120 msa-noded --name cn0 --host 10.77.0.21 --port 7777 --dir /tmp/false "
                       f"--topology {topology} --controller {SERVER} 2>/tmp/false.log")  # fmt: skip
        self.addCleanup(shell, "cn1", "pkill -f 'msa-noded.* --dir /tmp/false'", check=False)
        refusal = "not the address of node 'cn0'"
        self.eventually("it is told", lambda: refusal in shell("cn1", "cat /tmp/false.log").stdout)
        self.eventually("the controller says so", lambda: refusal in log_of("ctl", "msa-controllerd"))

    def test_a_user_cannot_speak_for_a_node(self):
        topology = f"/run/msa-vcluster/{HOSTS.name}/topology.toml"
        self.meanwhile("cn1", "bash", "-c", f"exec timeout 120 msa-noded --name cn1 --port 7777 --dir /tmp/mine --topology {topology} "
                       f"--controller {SERVER} 2>/tmp/mine.log", user=USER)  # fmt: skip
        self.addCleanup(shell, "cn1", "pkill -f 'msa-noded.* --dir /tmp/mine'", check=False)
        self.eventually("it is told", lambda: "may not speak for node 'cn1'" in shell("cn1", "cat /tmp/mine.log").stdout)

    def test_listeners_answer_nobody_without_a_certificate(self):
        for host, port in (("ctl", 7701), ("ctl", 7702), ("bn0", 7710)):
            on("cn0", "python3", "-c", PROBE, host, str(port))

    # ---- faults

    def test_killed_daemons_come_back_and_the_job_goes_on(self):
        for host, daemon in (("ctl", "msa-controllerd"), ("bn0", "msa-noded")):
            with self.subTest(daemon=daemon):
                script = "echo begin; until [ -e /tmp/go ]; do sleep 0.05; done; rm /tmp/go; echo end"
                job = HOSTS.begin("cn0", "msactl", "run", "-m", "booster", "-w", "bn0", "bash", "-c", script)
                try:
                    self.assertEqual(job.stdout.readline(), "begin\n")
                    self.kill_daemon(host, daemon)
                    self.all_nodes_are_up()
                    on("bn0", "touch", "/tmp/go")
                    out, err = job.communicate(timeout=60)
                    self.assertEqual((job.returncode, out), (0, "end\n"), err)
                finally:
                    job.kill()

    # ---- MPI over hosts

    def test_one_mpi_world_spans_three_hosts_of_two_modules(self):
        hello = str(PROGRAMS / "mpi_hello")
        begin = time.monotonic()
        done = on("ctl", "msactl", "run", "-m", "cluster", "-N", "2", hello, ":", "-m", "booster", "-N", "1", hello)
        print(f"MPI hello over three hosts: {time.monotonic() - begin:.2f} s", flush=True)
        at = re.findall(r"rank=(\d+) size=3 node=(\w+) module=(\w+)", done.stdout)
        self.assertEqual(sorted(m for _, _, m in at), ["booster", "cluster", "cluster"], done.stdout + done.stderr)
        self.assertEqual(len({n for _, n, _ in at}), 3)

    def test_messages_go_between_the_modules(self):
        ring = str(PROGRAMS / "mpi_ring")
        done = on("cn0", "msactl", "run", "-m", "cluster", "-N", "2", "-n", "4", ring, ":", "-m", "booster", "-N", "2", "-n", "4", ring, user=USER)
        self.assertEqual(done.stdout, "ring ok size=8\n")

    def test_a_step_spawns_onto_the_booster(self):
        done = on("ctl", "msactl", "run", "-m", "cluster", "-N", "2", str(PROGRAMS / "mpi_spawn"), "--children", "4",
                  "--info", "arch=booster", user=USER)  # fmt: skip
        self.assertIn("spawned 4", done.stdout)
        children = re.findall(r"child rank=\d+ size=4 .*node=(\w+) module=booster", done.stdout)
        self.assertEqual(len(children), 4, done.stdout + done.stderr)

    def test_job_daemons_listen_to_nobody_without_the_secret(self):
        job = on("ctl", "msactl", "run", "--detach", "-o", "/tmp/job.out", "-m", "cluster", "-N", "1", "sleep", "60", ":", "-m", "booster", "-N", "1", "sleep", "60").stdout.split()[-1]
        ports = "ss -Hltn 'sport >= :20000 and sport <= :29999' | awk '{print $4}'"
        try:
            self.eventually("a job daemon listens", lambda: shell("cn0", ports).stdout + shell("bn0", ports).stdout)
            for address in (shell("cn0", ports).stdout + shell("bn0", ports).stdout).split():
                on("cn1", "python3", "-c", PROBE, *address.rsplit(":", 1))
        finally:
            on("ctl", "msactl", "job", "cancel", job)


class Down(HostsCase):
    hosts = HOSTS

    # ---- what vcluster refuses to begin with

    def test_up_misses_what_slurm_needs_of_msa_before_it_starts(self):
        with tempfile.TemporaryDirectory(dir="/var/tmp") as there:
            for program in (BUILD / "bin").glob("msa*"):
                if program.name not in ("msa-companion", "msa-slurm-agent"):
                    (pathlib.Path(there) / program.name).touch(mode=0o755)
            done = Hosts("e2eno").vcluster("up", "--bin", there, check=False)
            self.refused(done, "not all of ", "msa-companion, msa-slurm-agent are in", there)

    def test_up_refuses_programs_that_other_users_cannot_reach(self):
        with tempfile.TemporaryDirectory(dir="/var/tmp") as there:
            programs = pathlib.Path(there) / "closed/bin"
            programs.mkdir(parents=True)
            os.chmod(there, 0o755)
            programs.parent.chmod(0o700)
            for program in (BUILD / "bin").glob("msa*"):
                (programs / program.name).touch(mode=0o755)
            other = Hosts("e2eno")
            done = other.vcluster("up", "--bin", programs, "--scheduler", "msa", check=False)
            self.refused(done, f"{programs.parent} is closed to 'nobody'; run 'chmod o+x {programs.parent}'", "--bin DIR/bin")
            self.assertIn("is not up", other.vcluster("status", check=False).stderr)

    def test_nothing_is_left_after_a_kill_of_the_holder_and_down(self):
        other = Hosts("e2ex")
        name = other.name
        begin = time.monotonic()
        self.addCleanup(other.vcluster, "down")
        other.vcluster("up", "--bin", BUILD / "bin", "--share", BUILD, "--timeout", 480, timeout=600)
        print(f"up took {time.monotonic() - begin:.1f} s", flush=True)
        for line in subprocess.run(["pgrep", "-f", f"msa-vcluster:{name}:-"], capture_output=True, text=True, check=False).stdout.split():
            os.kill(int(line), signal.SIGKILL)
        other.vcluster("down")
        self.assertFalse(os.path.exists(f"/run/msa-vcluster/{name}"))
        left = ["pgrep", "-f", f"msa-vcluster[:/]{name}"]
        self.eventually("no process is left", lambda: subprocess.run(left, capture_output=True, check=False).stdout == b"")
        self.assertNotIn(f"msa-vcluster/{name}", pathlib.Path("/proc/self/mounts").read_text())


if __name__ == "__main__":
    main()
