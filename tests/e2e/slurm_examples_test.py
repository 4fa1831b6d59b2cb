#!/usr/bin/env python3
"""The sbatch scripts of deploy/examples/slurm, as they are, on a virtual cluster with real Slurm.

Usage: slurm_examples_test.py BUILD_DIRECTORY [unittest's options]. Needs root; exit code 77: it is not root.
"""

import os
import re
import shutil
import subprocess

from hosts_support import BUILD, ROOT, USER, Hosts, HostsCase, main, without_waits

EXAMPLES = ROOT / "deploy/examples/slurm"
HOSTS = Hosts("ex")
on = HOSTS.on


def setUpModule():
    # burst_buffer.lua becomes a job's user by setpriv then; job_submit_test.py has SlurmUser slurm, and sudo.
    HOSTS.raise_for_module("--slurm-conf", "SlurmUser=root")
    for source in EXAMPLES.parent.glob("*.c"):
        shutil.copy(source, HOSTS.shared)


class Examples(HostsCase):
    hosts = HOSTS

    def prepare(self, *scripts, name=None):
        """A copy of the examples, with the programs that the scripts say how to compile."""
        there = HOSTS.shared / (name or scripts[0].split(".")[0])
        shutil.copytree(EXAMPLES, there)
        there.chmod(0o777)
        for script in scripts:
            for command in re.findall(r"(?m)^# (mpicc\S* .*?)(?:  .*)?$", (EXAMPLES / script).read_text()):
                subprocess.run([*command.split(), "-Wall", "-Wextra", "-Werror"], cwd=there, check=True,
                               env=dict(os.environ, CPATH=str(BUILD / "include")))  # fmt: skip
        return there

    def submit(self, script, there=None, options=""):
        """The outputs of the job, by file, when it has ended well."""
        there = there or self.prepare(script)
        done = on("ctl", "bash", "-c", f"cd {there} && exec timeout 300 sbatch --wait {options} {script}", user=USER, check=False, timeout=330)
        output = {path.name: without_waits(path.read_text()) for path in sorted(there.glob("*.out"))}
        self.assertEqual(done.returncode, 0, f"{done.stdout}{done.stderr}{output}")
        return output

    def lines(self, script):
        return sorted(line for text in self.submit(script).values() for line in text.splitlines())

    def test_lint_finds_nothing_in_them(self):
        topology = f"/run/msa-vcluster/{HOSTS.name}/topology.toml"
        scripts = sorted(EXAMPLES.glob("*.sh"))
        self.assertGreaterEqual(len(scripts), 13)
        for script in scripts:
            done = on("ctl", "msactl", "job", "lint", "--topology", topology, str(script), check=False)
            self.assertEqual((done.returncode, done.stdout), (0, f"{script}: no findings\n"), done.stderr)

    def test_lint_speaks_of_a_bad_script_by_line(self):
        bad = HOSTS.shared / "bad.sh"
        bad.write_text("#!/bin/bash\n#SBATCH -t 5 -N9 -p cluster\n#SBATCH hetjob\n#SBATCH -p booster\nsrun hostname\n")
        topology = f"/run/msa-vcluster/{HOSTS.name}/topology.toml"
        done = on("ctl", "msactl", "job", "lint", "--topology", topology, str(bad), check=False)
        self.assertEqual(done.returncode, 1)
        self.assertEqual(re.findall(r"(?m)^\S+:(\d+): ", done.stdout), ["2", "5"])
        done = on("ctl", "msactl", "job", "lint", "-f", "json", str(bad), check=False)
        self.assertIn('"trap": "missing-het-group"', done.stdout)

    def test_hetjob(self):
        lines = self.lines("hetjob.sh")
        self.assertEqual([line for line in lines if "task" not in line], ["booster"] * 4 + ["cluster"] * 4)
        at = {match[1]: match[2] for match in (re.match(r"task (\d) of 8 on (\w+)", line) for line in lines) if match}
        self.assertEqual(sorted(at), [str(i) for i in range(8)])
        self.assertEqual(sorted(at.values())[4:], ["cn0", "cn0", "cn1", "cn1"])

    def test_cross_module(self):
        self.assertEqual(self.lines("cross_module.sh"), [
            "analysis: 4 of 8 processes, on module booster", "solver: 4 of 8 processes, on module cluster", "sum 24000"])  # fmt: skip

    def test_client_server(self):
        self.assertEqual(self.lines("client_server.sh"), [
            "client: 5 processes together", "client: 6 processes together",
            "server: client 1 came, 6 processes together", "server: client 2 came, 5 processes together"])  # fmt: skip

    def test_coupled_model(self):
        on_module = {"atmosphere": (8, "booster"), "coupler": (1, "dam"), "land": (2, "cluster"), "ocean": (3, "cluster")}
        self.assertEqual(self.lines("coupled_model.sh"), [
            f"{role}: {tasks} of 14 processes on module {module}, boundary {0 if role == 'coupler' else 5:.2f} after 10 steps"
            for role, (tasks, module) in on_module.items()])  # fmt: skip

    def test_manager(self):
        lines = [line for line in self.lines("manager.sh") if line.startswith("bundle")]
        counts = [int(re.match(r"bundle \d: (\d) workers", line)[1]) for line in lines]
        self.assertEqual(lines, [f"bundle {i}: {n} workers, result {(i + 1) * n * (n + 1) // 2}" for i, n in enumerate(counts)])
        self.assertTrue(all(1 <= n <= 4 for n in counts) and len(counts) == 3, counts)
        # The nodes of the last bundle are given back, too.
        self.eventually("Slurm has ended all jobs", lambda: not on("ctl", "squeue", "-h", "-u", USER, "-o", "%j").stdout)

    def test_nam_buffers_between_two_jobs(self):
        there = self.prepare("nam_producer.sh", "nam_consumer.sh")
        done = on("ctl", "bash", "-c", f"cd {there} && sbatch --parsable nam_producer.sh", user=USER)
        output = self.submit("nam_consumer.sh", there, f"--dependency=afterok:{done.stdout.strip()}")
        lines = sorted(line for text in output.values() for line in text.splitlines())
        self.assertEqual(lines[0], "4 segments, sum 7998.000, read by 3 processes")
        self.assertRegex(lines[1], r"^port msa-nam:\w+$")
        self.assertEqual(len(lines), 2, lines)
        self.assertNotIn("buffer-", on("ctl", "msactl", "region", "list", user=USER).stdout)

    def test_packjob(self):
        self.assertRegex(" ".join(self.lines("packjob.sh")), r"^bn0 bn1 cn[01]$")

    def test_io_server(self):
        self.assertEqual(self.lines("io_server.sh"), ["8 lines written"])

    def test_storage_component(self):
        lines = self.lines("storage_component.sh")
        self.assertEqual([line for line in lines if "numbers" in line], ["cn0 read 1000 numbers", "cn1 read 1000 numbers"])
        self.assertNotIn("store.", on("dn0", "ls", "/tmp").stdout)

    def test_scratch_hooks(self):
        lines = self.lines("scratch_hooks.sh")
        self.assertEqual(len([line for line in lines if line.startswith("data.")]), 3)
        self.assertEqual(len([line for line in lines if line.endswith(" is clean, 1 files were there")]), 3, lines)

    def test_scratch_hooks_clean_up_after_an_early_end(self):
        there = self.prepare("scratch_hooks.sh", name="early")
        job = on("ctl", "bash", "-c", f"cd {there} && sbatch --parsable scratch_hooks.sh 250", user=USER).stdout.strip()
        output = there / f"scratch-{job}.out"
        lines = lambda part: [line for line in output.read_text().splitlines() if part in line]  # noqa: E731
        self.eventually("it has data", lambda: output.exists() and len(lines("data.")) == 3, limit=60)
        on("ctl", "scancel", "--batch", "--signal=TERM", job, user=USER)
        self.eventually("all is clean", lambda: len(lines(" is clean, 1 files were there")) == 3, limit=60)
        for node in ("cn0", "cn1", "bn0", "bn1"):
            self.assertNotIn("scratch.", on(node, "ls", "/tmp").stdout)

    def test_array(self):
        self.assertEqual([line.split(" on ")[0] for line in self.lines("array.sh")], [f"index {i}" for i in range(4)])

    def test_nam_stages(self):
        self.assertRegex(self.lines("nam_stages.sh")[0], r"^regions: stages-\d+:rw$")


if __name__ == "__main__":
    main()
