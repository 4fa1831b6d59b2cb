#!/usr/bin/env python3
"""deploy/what_failed.awk tells of logs of deploy/test what failed, and nothing else; deploy/test names what passed only when run again."""
import re
import subprocess
import tempfile
import unittest
from pathlib import Path

PROGRAM = Path(__file__).resolve().parents[2] / "deploy/what_failed.awk"

GTEST = """\
 1/3 Test  #1: a_test/Sum.Adds ........   Passed    0.01 sec
 2/3 Test  #2: a_test/Sum.Takes .......***Failed    0.02 sec
[ RUN      ] Sum.Takes
/x/sum_test.cc:12: Failure
Expected equality
[  FAILED  ] Sum.Takes (3 ms)
[  FAILED  ] 1 test, listed below:
[  FAILED  ] Sum.Takes
 3/3 Test  #3: b_e2e ..................***Timeout 400.03 sec
[ RUN      ] B.One
[       OK ] B.One (3 ms)
[ RUN      ] B.Two

33% tests passed, 2 tests failed out of 3
"""
UNITTEST = """\
1/2 Test  #1: c_e2e ...***Failed   12.01 sec
======================================================================
FAIL: test_x (__main__.Steps.test_x)
----------------------------------------------------------------------
Traceback (most recent call last):
  File "/x/c_test.py", line 70, in test_x
    self.eventually("it is", lambda: 0)
  File "/x/hosts_support.py", line 170, in eventually
    self.fail("no")
AssertionError: not within 20 s: it is
1 RUNNING

----------------------------------------------------------------------
Ran 5 tests in 1.000s
2/2 Test  #2: s_test/A.B ...***Skipped   0.10 sec
"""
SANITIZER = """\
1/2 Test  #1: d_test/A.B ...Subprocess aborted***Exception:   0.10 sec
[ RUN      ] A.B
==12==ERROR: AddressSanitizer: heap-use-after-free on address 0x1
    #0 0x1 in f a.cc:1
SUMMARY: AddressSanitizer: heap-use-after-free a.cc:1 in f
2/2 Test  #2: lint/format ...***Failed   0.10 sec
a.cc: not formatted
"""


class WhatFailed(unittest.TestCase):
    def told(self, log, name="release", skips=1):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / name
            path.write_text(log)
            words = ["awk", "-v", f"skips={skips}", "-f", PROGRAM, path]
            return subprocess.run(words, capture_output=True, text=True, check=True).stdout.splitlines()

    def test_cases_of_gtest_and_the_one_that_did_not_end(self):
        self.assertEqual(self.told(GTEST), [
            "release: a_test/Sum.Takes: Failed 0.02 sec", "  [  FAILED  ] Sum.Takes (3 ms)",
            "    /x/sum_test.cc:12: Failure", "    Expected equality",
            "release: b_e2e: Timeout 400.03 sec", "  did not end: B.Two"])

    def test_cases_of_unittest_with_their_assertion(self):
        case = ["release: c_e2e: Failed 12.01 sec", "  FAIL: test_x (__main__.Steps.test_x)",
                "    c_test.py:70, in test_x: AssertionError: not within 20 s: it is", "    1 RUNNING"]
        self.assertEqual(self.told(UNITTEST), [*case, "release: s_test/A.B: Skipped 0.10 sec"])
        self.assertEqual(self.told(UNITTEST, skips=0), case)

    def test_sanitizers_and_what_is_neither(self):
        self.assertEqual(self.told(SANITIZER, "asan"), [
            "asan: d_test/A.B: Subprocess aborted***Exception: 0.10 sec", "  did not end: A.B",
            "    ==12==ERROR: AddressSanitizer: heap-use-after-free on address 0x1",
            "    SUMMARY: AddressSanitizer: heap-use-after-free a.cc:1 in f",
            "asan: lint/format: Failed 0.10 sec", "    a.cc: not formatted"])

    def test_fuzzers_and_compilers(self):
        self.assertEqual(self.told("INFO: x\n==7== ERROR: libFuzzer: deadly signal\n", "failed-fuzz-wire"),
                         ["failed-fuzz-wire", "    ==7== ERROR: libFuzzer: deadly signal"])
        self.assertEqual(self.told("[1/2] x\n/x/a.cc:3:1: error: expected ';'\n", "build-tsan"),
                         ["build-tsan", "    /x/a.cc:3:1: error: expected ';'"])

    def test_sixty_lines_at_most_and_none_where_nothing_failed(self):
        many = "".join(f"{i}/99 Test #{i}: a/b{i} ...***Failed  0.1 sec\nbad\nworse\n" for i in range(1, 100))
        self.assertEqual(len(self.told(many)), 60)
        self.assertEqual(self.told("1/1 Test  #1: a_test/Sum.Adds ...   Passed    0.01 sec\n\n100% tests passed\n"), [])

    def test_what_passed_only_when_run_again_is_named_without_what_failed_twice(self):
        log = """\
1/4 Test #1: a/B.C/fabric  # GetParam() = "fabric" ...***Failed  3.22 sec
    Test #1: a/B.C/fabric  # GetParam() = "fabric" ...***Failed  3.22 sec
2/4 Test #2: a/B.D/fabric  # GetParam() = "fabric" ...***Failed  3.22 sec
    Test #2: a/B.D/fabric  # GetParam() = "fabric" ...   Passed  3.22 sec
3/4 Test #3: c_e2e ...***Timeout 400.03 sec
    Test #3: c_e2e ...   Passed 10.03 sec
4/4 Test #4: d_test/A.B ...   Passed    0.01 sec

75% tests passed, 1 tests failed out of 4

The following tests FAILED:
\t  1 - a/B.C/fabric  # GetParam() = "fabric" (Failed)
"""
        script = PROGRAM.with_name("test").read_text()
        function = re.search(r"^second_runs\(\) \{.*?^\}$", script, re.M | re.S)[0]
        with tempfile.TemporaryDirectory() as logs:
            Path(logs, "release").write_text(log)
            words = ["bash", "-euc", f'logs=$1 failed=(x)\n{function}\nsecond_runs', "-", logs]
            told = subprocess.run(words, capture_output=True, text=True, check=True).stdout.splitlines()
        self.assertEqual(told[1:], ["a/B.D/fabric", "c_e2e", ""])


if __name__ == "__main__":
    unittest.main()
