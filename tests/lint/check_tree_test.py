#!/usr/bin/env python3
"""check_tree.py accuses what it should, and nothing else."""
import os
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import check_tree  # noqa: E402


class CheckTree(unittest.TestCase):
    def rules(self, files):
        with tempfile.TemporaryDirectory() as folder:
            for name, text in files.items():
                path = Path(folder) / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text)
            return [v.split(": ")[1] for v in check_tree.Tree(folder).check()]

    def test_accepts_a_clean_tree(self):
        self.assertEqual(self.rules({
            "daemon/base/include/msa/base/a.h": "#pragma once\n#include <string>\n#include <fmt/format.h>\n",
            "daemon/core/x/include/msa/x/x.h": '#pragma once\n#include "msa/base/a.h"\n',
            "daemon/adapters/sqlite/src/s.cc": '#include <sqlite3.h>\n#include "msa/x/x.h"\n',
            "daemon/controller/src/job_service.cc": '#include <grpcpp/grpcpp.h>\n',
        }), [])

    def test_third_party_headers_stay_at_home(self):
        self.assertEqual(self.rules({"cli/run/a.cc": "#include <grpcpp/grpcpp.h>\n"}), ["header-home"])
        self.assertEqual(self.rules({"daemon/node/src/a.cc": '#include "msa/v1/job.pb.h"\n'}), ["header-home"])
        self.assertEqual(self.rules({"daemon/node/src/a.cc": "#include <hwloc.h>\n"}), ["header-home"])
        self.assertEqual(self.rules({"daemon/adapters/grpc/src/a.cc": "#include <absl/status.h>\n"}), ["header-home"])
        self.assertEqual(self.rules({"daemon/controller/src/a.cc": "#include <sqlite3.h>\n"}), ["header-home"])

    def test_arrows_point_down(self):
        base = {"daemon/adapters/process/include/msa/adapters/process/p.h": "#pragma once\n",
                "pmix-server/include/msa/pmix/h.h": "#pragma once\n"}
        self.assertEqual(self.rules({**base, "daemon/core/j/src/j.cc": '#include "msa/adapters/process/p.h"\n'}), ["layer"])
        self.assertEqual(self.rules({**base, "daemon/node/src/n.cc": '#include "msa/pmix/h.h"\n'}), ["layer"])
        self.assertEqual(self.rules({**base, "pmix-server/jobd/src/n.cc": '#include "msa/adapters/process/p.h"\n'}), [])

    def test_the_core_is_pure(self):
        self.assertEqual(self.rules({"daemon/core/j/src/j.cc": "#include <thread>\n"}), ["purity"])
        self.assertEqual(self.rules({"daemon/core/j/src/j.cc": "auto t = SteadyNow();\n"}), ["purity"])
        self.assertEqual(self.rules({"daemon/core/j/src/j.cc": "// SteadyNow() is not for us\n"}), [])

    def test_sizes_have_limits(self):
        long_body = "int F() {\n" + "  G();\n" * 60 + "}\n"
        self.assertEqual(self.rules({"cli/run/a.cc": long_body}), ["function-length"])
        self.assertEqual(self.rules({"cli/run/a.cc": "int F() {\n" + "  G();\n" * 58 + "}\n"}), [])
        self.assertEqual(self.rules({"cli/run/a.cc": "int a;\n" * 601}), ["file-length"])
        self.assertEqual(self.rules({"cli/x/include/msa/x/a.h": "#pragma once\n" + "int a;\n" * 250}), ["header-length"])

    def test_unfinished_work_and_skips_are_named(self):
        self.assertEqual(self.rules({"cli/run/a.cc": "// TO" "DO: later\n"}), ["unfinished"])
        self.assertEqual(self.rules({"tests/e2e/a_itest.cc": "GTEST_" "SKIP();\n"}), ["skip"])
        self.assertEqual(self.rules({"tests/e2e/a_itest.cc": "  sleep(1);\n"}), ["sleep"])

    def test_style(self):
        self.assertEqual(self.rules({"cli/run/a.h": "int a;\n"}), ["pragma-once"])
        self.assertEqual(self.rules({"cli/run/a.cc": '#include "a.h"\n'}), ["include-style"])
        self.assertEqual(self.rules({"cli/run/a.cc": '#include "a.h"\n', "cli/run/a.h": "#pragma once\n"}), [])
        self.assertEqual(self.rules({"cli/run/a.cc": '#include "../x/a.h"\n', "cli/x/a.h": "#pragma once\n"}), ["include-style"])
        self.assertEqual(self.rules({"cli/run/A-b.cc": "int a;\n"}), ["file-name"])
        self.assertEqual(self.rules({"misc/a.cc": "int a;\n"}), ["top-folder"])
        self.assertEqual(self.rules({"cli/run/a.cc": 'auto p = "/wo' 'rk/x";\n'}), ["machine-path"])
        self.assertEqual(self.rules({"cli/run/a.cc": "  throw 1;\n"}), ["throw"])


if __name__ == "__main__":
    unittest.main()
