#include "launcher_fixture.h"

#include "msa/base/messages.h"
#include "msa/support/run_until.h"

#include "process_table.h"

namespace msa::launch {

LauncherFixture::LauncherFixture() {
  loop_ = std::move(*EventLoop::Create());
  TaskLauncher::Handlers handlers;
  handlers.on_output = [this](const std::string& nspace, Rank rank, wire::Stream stream, std::string data) {
    EXPECT_LE(data.size(), wire::kStdioChunkBytes);
    EXPECT_FALSE(exits_.contains({nspace, rank.value})) << "output after the exit";
    (stream == wire::Stream::kOut ? out_ : err_)[{nspace, rank.value}] += data;
    if (on_output_hook_) on_output_hook_();
  };
  handlers.on_exit = [this](const TaskExit& exit) {
    EXPECT_TRUE(exits_.emplace(Key(exit.nspace, exit.end.rank.value), exit).second) << "a second exit";
  };
  handlers.on_stdin = [this](const std::string& nspace, Rank rank, std::size_t taken, bool closed) {
    taken_[{nspace, rank.value}] += taken;
    if (closed) closed_[{nspace, rank.value}] = true;
  };
  auto launcher =
      TaskLauncher::Create(*loop_, {.trampoline = MSA_EXEC_PATH, .node = "cn0"}, std::move(handlers));
  EXPECT_TRUE(launcher.ok()) << launcher.status().message();
  launcher_ = std::move(*launcher);
}

LauncherFixture::~LauncherFixture() {
  launcher_->ResumeOutput(kNamespace);
  EXPECT_EQ(Kill(), 0);
}

TaskSpec LauncherFixture::Task(std::vector<std::string> argv, std::uint32_t rank) const {
  TaskSpec spec;
  spec.nspace = kNamespace;
  spec.rank = Rank(rank);
  spec.argv = std::move(argv);
  spec.env = {"PATH=/usr/local/bin:/usr/bin:/bin"};
  spec.cwd = directory_.path();
  return spec;
}

void LauncherFixture::Start(std::vector<TaskSpec> specs) {
  bool done = false;
  launcher_->Start(std::move(specs), [&](std::vector<pid_t> started, std::vector<StartFailure> failures) {
    EXPECT_FALSE(done);
    done = true;
    started_ = std::move(started);
    failures_ = std::move(failures);
  });
  EXPECT_FALSE(done) << "a handler ran inside Start";
  ASSERT_TRUE(Eventually([&] { return done; }));
}

void LauncherFixture::StartOne(TaskSpec spec) {
  std::vector<TaskSpec> specs;
  specs.push_back(std::move(spec));
  Start(std::move(specs));
}

bool LauncherFixture::Eventually(const std::function<bool()>& done, std::chrono::seconds limit) {
  return support::RunUntil(*loop_, limit, done);
}

TaskExit LauncherFixture::Exit(std::uint32_t rank, const std::string& nspace) {
  EXPECT_TRUE(Eventually([&] {
    return exits_.contains({nspace, rank});
  })) << "rank "
      << rank << " does not end";
  return exits_[{nspace, rank}];
}

std::string LauncherFixture::OutputOf(TaskSpec spec) {
  const Key key(spec.nspace, spec.rank.value);
  StartOne(std::move(spec));
  for (const StartFailure& failure : failures_) ADD_FAILURE() << failure.message;
  if (!failures_.empty()) return "";
  Exit(key.second, key.first);
  return out_[key];
}

int LauncherFixture::Kill(const std::string& nspace) {
  int survivors = -1;
  launcher_->KillAll(nspace, [&](int left) { survivors = left; });
  EXPECT_EQ(survivors, -1) << "a handler ran inside KillAll";
  EXPECT_TRUE(Eventually([&] { return survivors >= 0; }));
  return survivors;
}

bool IsAlive(pid_t pid) {
  const std::string stat = ReadProcFile(pid, "stat", 4096);
  const std::size_t close = stat.rfind(')');
  return close != std::string::npos && stat[close + 2] != 'Z' && stat[close + 2] != 'X';
}

}  // namespace msa::launch
