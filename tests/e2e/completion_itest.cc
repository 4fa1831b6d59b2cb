// Completion in the shells themselves, against a running system.
#include <cstdlib>

#include "shared_cluster.h"

namespace msa::e2e {
namespace {

class Completion : public SharedCluster {
 protected:
  static Command Shell(std::vector<std::string> argv) {
    Command command = cluster_->Msactl({});
    const std::string msactl = command.argv[0];
    command.argv = std::move(argv);
    command.env["PATH"] = msactl.substr(0, msactl.rfind('/')) + ":" + std::getenv("PATH");
    command.env["TERM"] = "dumb";
    command.env["HOME"] = cluster_->scratch().path();
    return command;
  }
  // A shell in a terminal of its own.
  static Command Terminal(const std::string& shell) {
    Command command = Shell({"script", "-q", "-e", "-c", shell, "/dev/null"});
    command.keep_input_open = true;
    return command;
  }
  // What bash gets for `line` and a tab, in order, separated by blanks.
  static std::string Bash(const std::string& line) {
    const std::string rc = cluster_->scratch().Write("bashrc", R"(source <(msactl completion bash)
PS1='ready> '
probe() { _msactl; printf 'REPLY<%s>%s\n' "${COMPREPLY[*]}" END >&2; }
complete -F probe msactl
)");
    Process bash(Terminal("bash --noprofile --rcfile " + rc + " -i"));
    EXPECT_TRUE(bash.ReadUntilText("ready> ")) << bash.out();
    bash.Write(line + "\t");
    EXPECT_TRUE(bash.ReadUntilText(">END")) << line << "\n" << bash.out();
    const std::string& out = bash.out();
    const auto begin = out.rfind("REPLY<");
    if (begin == std::string::npos) return "nothing was asked";
    return out.substr(begin + 6, out.find(">END", begin) - begin - 6);
  }
  // What a command line wrote that was typed into a shell, tabs and all; "%" in it stands for the file.
  static std::string Typed(const std::string& shell, const std::string& prompt, std::string line) {
    const std::string file = cluster_->scratch().Write("typed", "");
    line.replace(line.find('%'), 1, file);
    Process process(Terminal(shell));
    EXPECT_TRUE(process.ReadUntilText(prompt)) << process.out();
    process.Write(line + "; echo D''ONE\n");
    EXPECT_TRUE(process.ReadUntilText("DONE")) << process.out() << process.err();
    return support::ReadFile(file);
  }
  // Candidates of fish, sorted, with their explanations.
  static std::string Fish(const std::string& line) {
    const Outcome outcome = support::RunCommand(
        Shell({"fish", "--no-config", "-c", "msactl completion fish | source; complete -C \"$argv\"", line}));
    EXPECT_EQ(outcome.code, 0) << outcome.Text();
    std::string out;
    for (const std::string& text : Sorted(Lines(outcome.out))) out += text.substr(0, text.find('\t')) + " ";
    return out.substr(0, out.size() - std::min<std::size_t>(out.size(), 1));
  }
  static std::vector<std::string> Words(std::vector<std::string> words) {
    std::vector<std::string> arguments = {"completion", "words", "--"};
    arguments.insert(arguments.end(), words.begin(), words.end());
    const Outcome outcome = Run(arguments);
    EXPECT_EQ(outcome.code, 0) << outcome.Text();
    EXPECT_EQ(outcome.err, "");
    return Lines(outcome.out);
  }
};

TEST_F(Completion, BashCompletesNounsVerbsAndOptions) {
  EXPECT_EQ(Bash("msactl mod"), "module");
  EXPECT_EQ(Bash("msactl node "), "list show drain resume");
  EXPECT_EQ(Bash("msactl completion "), "bash zsh fish");
  EXPECT_EQ(Bash("msactl job list --for"), "--format");
  EXPECT_EQ(Bash("msactl job list -f j"), "json");
  EXPECT_EQ(Bash("msactl run --open-mode "), "append truncate");
  EXPECT_EQ(Bash("msactl help job sh"), "show");
}

TEST_F(Completion, BashCompletesModulesAndNodesOfTheRunningSystem) {
  EXPECT_EQ(Bash("msactl module show "), "cluster booster dam nam");
  EXPECT_EQ(Bash("msactl run -m b"), "booster");
  EXPECT_EQ(Bash("msactl run -mb"), "-mbooster");
  EXPECT_EQ(Bash("msactl run --module=b"), "booster") << "bash replaces what stands after '='";
  EXPECT_EQ(Bash("msactl node drain --reason 'bad fan' bn"), "bn0 bn1");
  EXPECT_EQ(Bash("msactl node drain cn0,cn"), "cn0,cn1") << "cn0 is named already";
  EXPECT_EQ(Bash("msactl run -w cn0,d"), "cn0,dn0");
  EXPECT_EQ(Bash("msactl run -m cluster -n 2 true -m x : -m d"), "dam")
      << "each component has its own options";
}

TEST_F(Completion, LeavesFilesAndProgramsToTheShell) {
  EXPECT_EQ(Words({"run", "--output", "/e"}), std::vector<std::string>{":files"});
  EXPECT_EQ(Words({"cluster", "up", "--dir", ""}), std::vector<std::string>{":directories"});
  EXPECT_EQ(Words({"run", "-n", "2", ""}), std::vector<std::string>{":commands"});
  EXPECT_EQ(Words({"run", "-n", "2", "cat", "--numb"}), std::vector<std::string>{":files"})
      << "that is cat's";
  const std::string bash =
      "bash --noprofile --rcfile " +
      cluster_->scratch().Write("filerc", "source <(msactl completion bash)\nPS1='ready> '\n") + " -i";
  EXPECT_EQ(Typed(bash, "ready> ", "msactl run -i /etc/host\tname cat > %"),
            support::ReadFile("/etc/hostname"));
  EXPECT_EQ(Typed(bash, "ready> ", "msactl module show clu\t-f name > %"), "cluster\n");
}

TEST_F(Completion, BashCompletesJobs) {
  const std::string ended = Detach({"-J", "short", "true"});
  ASSERT_EQ(Run({"job", "wait", ended}).code, 0);
  const std::string live = Detach({"-J", "long", "sleep", "600"});
  ASSERT_TRUE(Eventually(30s, "it runs", [&] { return JobIsIn(live, "RUNNING"); }));
  EXPECT_THAT(" " + Bash("msactl job show ") + " ",
              AllOf(HasSubstr(" " + ended + " "), HasSubstr(" " + live + " ")));
  EXPECT_EQ(Bash("msactl job cancel "), live) << "one that has ended cannot be cancelled";
  EXPECT_THAT(Bash("msactl job signal "), AllOf(HasSubstr("TERM"), HasSubstr("USR1")));
  EXPECT_EQ(Bash("msactl job signal TERM "), live);
  EXPECT_THAT(" " + Bash("msactl job wait " + live + " ") + " ",
              AllOf(HasSubstr(" " + ended + " "), Not(HasSubstr(" " + live + " "))))
      << "each is named once";
  ASSERT_EQ(Run({"job", "cancel", "--now", live}).code, 0);
}

TEST_F(Completion, ZshCompletesAsTyped) {
  const std::string folder = cluster_->scratch().path() + "/zsh";
  ASSERT_EQ(support::RunCommand({.argv = {"mkdir", "-p", folder}}).code, 0);
  cluster_->scratch().Write("zsh/.zshrc", R"(autoload -Uz compinit && compinit -D -u
source <(msactl completion zsh)
PS1='ready> '
)");
  const std::string zsh = "env ZDOTDIR=" + folder + " zsh -d -i";
  EXPECT_EQ(Typed(zsh, "ready> ", "msactl modu\tsh\tclu\t-f name > %"), "cluster\n");
  EXPECT_EQ(Typed(zsh, "ready> ", "msactl node show dn\t--form\tna\t > %"), "dn0\n");
  EXPECT_EQ(Typed(zsh, "ready> ", "msactl run --module=da\tsh -c 'echo $MSA_NODE' > %"), "dn0\n");
}

TEST_F(Completion, FishCompletesNounsOptionsAndThings) {
  EXPECT_EQ(Fish("msactl mod"), "module");
  EXPECT_EQ(Fish("msactl module show "), "booster cluster dam nam");
  EXPECT_EQ(Fish("msactl job list --for"), "--format");
  EXPECT_EQ(Fish("msactl job list --format=j"), "--format=json");
  EXPECT_EQ(Fish("msactl run -m cluster true : -m d"), "dam");
  EXPECT_EQ(Fish("msactl run --input=/etc/hostn"), "--input=/etc/hostname");
}

TEST_F(Completion, SaysNothingWhereNoSystemRuns) {
  EXPECT_TRUE(Words({"module", "show", "--dir", "/no/such/dir", ""}).empty());
  EXPECT_TRUE(Words({"run", "--dir=/no/such/dir", "-m", ""}).empty());
  EXPECT_TRUE(Words({"no", "such", ""}).empty());
  EXPECT_EQ(Words({"run", "--dir", cluster_->dir(), "-m", "clu"}).size(), 1u);
}

TEST_F(Completion, OffersNoOptionThatIsRefused) {
  const std::vector<std::string> options = Words({"run", "--"});
  EXPECT_GT(options.size(), 20u);
  EXPECT_THAT(options, testing::Each(Not(HasSubstr("not in this version"))));
}

}  // namespace
}  // namespace msa::e2e
