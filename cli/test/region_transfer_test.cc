#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "msa/support/scratch_directory.h"

#include "fake_regions.h"
#include "region/progress.h"
#include "region/still_there.h"
#include "region/transfer.h"
#include "region/transfer_sides.h"

namespace msa::cli {
namespace {

using namespace region_test;
using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr std::size_t kMiB = std::size_t{1} << 20;

std::string Text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// A file of 40 MiB and a bit, and a region of three segments that it fills but for 5 bytes.
class Transfers : public testing::Test {
 protected:
  Transfers() {
    file_ = dir_ / "data";
    data_ = Noise(40 * kMiB + 123, 1);
    WriteFile(file_, data_);
    region_ = &system_.Add(
        "fields", {{Bytes(30 * kMiB + 1), 1}, {Bytes(0), 1}, {Bytes(data_.size() + 5 - 30 * kMiB - 1), 8}});
  }

  static void WriteFile(const std::string& path, std::span<const std::byte> bytes) {
    std::ofstream(path, std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  }
  static std::string FileText(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  std::string RegionText() const { return Text(region_->content[0]) + Text(region_->content[2]); }
  std::string state() const { return file_ + ".msa-part"; }

  Result<TransferResult> Put(TransferOptions options = {}) {
    const auto source = FileSide::OpenSource(file_);
    if (!source.ok()) return source.status();
    FakeIo io = system_.Io("fields");
    const auto range = RangeOf({"fields", std::nullopt, 0}, (*source)->size(), io.info());
    if (!range.ok()) return range.status();
    RegionSide target(io, *range);
    options.length = range->length;
    options.state_path = state();
    Progress quiet;
    return RunTransfer(**source, target, options, quiet);
  }
  Result<TransferResult> Get(const std::string& path, TransferOptions options = {}) {
    const auto target =
        FileSide::OpenTarget(path, options.resume ? FileSide::Old::kKeep : FileSide::Old::kDrop);
    if (!target.ok()) return target.status();
    FakeIo io = system_.Io("fields");
    RegionSide source(io, {0, io.info().bytes.value});
    options.length = io.info().bytes.value;
    options.state_path = path + ".msa-part";
    Progress quiet;
    return RunTransfer(source, **target, options, quiet);
  }
  // True from the n-th time on that it is asked.
  static std::function<bool()> StopAfter(int n) {
    return [n]() mutable { return --n < 0; };
  }
  // The n-th operation of this kind fails, once.
  void FailOnce(const std::string& what, int n, Code code) {
    system_.before = [=](std::string_view now) mutable {
      if (now != what || --n != 0) return Status::Ok();
      return Error(code, "namd is away");
    };
  }

  support::ScratchDirectory dir_;
  std::string file_;
  std::vector<std::byte> data_;
  FakeSystem system_;
  FakeRegion* region_ = nullptr;
};

TEST_F(Transfers, FillTheSegmentsInOrderAndGiveTheChecksumOfXxhsum) {
  const auto result = Put();
  ASSERT_TRUE(result.ok()) << result.status().message();
  EXPECT_EQ(result->bytes, data_.size());
  EXPECT_EQ(RegionText(), Text(data_) + std::string(5, '\0'));
  EXPECT_EQ(result->checksum, ChecksumOf(data_));
  EXPECT_FALSE(std::filesystem::exists(state())) << "done: nothing is left";
  // From the specification's own test vectors: the empty input.
  EXPECT_EQ(ToText(ChecksumOf(std::string_view())), "99aa06d3014798d86001c324468d497f");
  EXPECT_EQ(ParseChecksum("99aa06d3014798d86001c324468d497f"), ChecksumOf(std::string_view()));
  EXPECT_FALSE(ParseChecksum("99AA06d3014798d86001c324468d497f"));
}

TEST_F(Transfers, GetBackWhatWasPut) {
  ASSERT_TRUE(Put().ok());
  const auto result = Get(dir_ / "out");
  ASSERT_TRUE(result.ok()) << result.status().message();
  EXPECT_TRUE(FileText(dir_ / "out") == RegionText());
  EXPECT_FALSE(std::filesystem::exists(dir_ / "out.msa-part"));
}

TEST_F(Transfers, KeepTheirStateWhereSomethingCanBeWritten) {
  EXPECT_EQ(PartPath(file_), state());
  const char* const before = std::getenv("XDG_STATE_HOME");
  const std::string restored = before == nullptr ? "" : before;
  ::setenv("XDG_STATE_HOME", (dir_ / "home").c_str(), 1);
  const std::string elsewhere = PartPath("/proc/1/no-place/data");
  EXPECT_EQ(std::filesystem::path(elsewhere).parent_path(), dir_ / "home/msa");
  EXPECT_EQ(PartPath("/proc/1/no-place/data"), elsewhere) << "--resume finds it";
  EXPECT_NE(PartPath("/proc/1/no-place/other"), elsewhere);
  restored.empty() ? ::unsetenv("XDG_STATE_HOME") : ::setenv("XDG_STATE_HOME", restored.c_str(), 1);
}

TEST_F(Transfers, FindOutWhetherWhatTheyWroteIsStillThere) {
  const wire::NamRegionInfo written = region_->info;
  EXPECT_TRUE(CheckStillThere(system_, written).ok());
  region_->info.generation = Generation(written.generation.value + 1);
  EXPECT_THAT(CheckStillThere(system_, written).message(), HasSubstr("was resized or restored"));
  system_.regions.clear();
  system_.Add("fields", {{Bytes(10), 1}});
  const Status removed = CheckStillThere(system_, written);
  EXPECT_EQ(removed.code(), Code::kAborted) << "another of its name";
  EXPECT_THAT(removed.message(), HasSubstr("region 'fields' was removed"));
}

TEST_F(Transfers, GoOnWhereTheyWereInterrupted) {
  const auto first = Put({.stop = StopAfter(6)});
  ASSERT_TRUE(first.ok()) << first.status().message();
  EXPECT_TRUE(first->interrupted);
  EXPECT_EQ(first->bytes, 24 * kMiB);
  ASSERT_TRUE(std::filesystem::exists(state()));
  int writes = 0;
  system_.before = [&](std::string_view what) {
    if (what == "write") ++writes;
    return Status::Ok();
  };
  const auto second = Put({.resume = true});
  ASSERT_TRUE(second.ok()) << second.status().message();
  EXPECT_EQ(second->resumed, 24 * kMiB);
  EXPECT_EQ(second->bytes, data_.size());
  EXPECT_EQ(second->checksum, ChecksumOf(data_));
  EXPECT_LE(writes, 6) << "what was there is not written again";
  EXPECT_TRUE(RegionText() == Text(data_) + std::string(5, '\0'));
  EXPECT_FALSE(std::filesystem::exists(state()));
}

TEST_F(Transfers, GoOnAfterAnErrorFromWhatWasWritten) {
  FailOnce("write", 4, Code::kUnavailable);
  const auto first = Put();
  EXPECT_EQ(first.status().code(), Code::kUnavailable);
  ASSERT_TRUE(std::filesystem::exists(state()));
  const auto second = Put({.resume = true});
  ASSERT_TRUE(second.ok()) << second.status().message();
  EXPECT_EQ(second->resumed, 12 * kMiB);
}

TEST_F(Transfers, KeepAStateForAKillAtAnyMoment) {
  // What a kill leaves is what the state says when the bytes are written.
  std::vector<std::uint64_t> positions;
  system_.before = [&](std::string_view what) {
    if (what != "write") return Status::Ok();
    const auto kept = ParsePartState(FileText(state()));
    EXPECT_TRUE(kept.ok()) << kept.status().message();
    if (kept.ok()) positions.push_back(kept->position);
    return Status::Ok();
  };
  ASSERT_TRUE(Put().ok());
  ASSERT_FALSE(positions.empty());
  EXPECT_EQ(positions.front(), 0U) << "there is one before the first byte";
  EXPECT_GE(positions.back(), 16 * kMiB) << "and it follows";
}

TEST_F(Transfers, StartFromTheBeginningIfNothingWasInterrupted) {
  const auto result = Put({.resume = true});
  ASSERT_TRUE(result.ok()) << result.status().message();
  EXPECT_EQ(result->resumed, 0U);
  EXPECT_EQ(result->bytes, data_.size());
}

TEST_F(Transfers, RefuseASourceThatHasChanged) {
  ASSERT_TRUE(Put({.stop = StopAfter(3)})->interrupted);
  struct stat before {};
  ASSERT_EQ(::stat(file_.c_str(), &before), 0);
  // The same size and time: the checksum alone tells.
  data_[100] ^= std::byte{1};
  WriteFile(file_, data_);
  const timespec times[2] = {before.st_atim, before.st_mtim};
  ASSERT_EQ(::utimensat(AT_FDCWD, file_.c_str(), times, 0), 0);
  const auto result = Put({.resume = true});
  EXPECT_EQ(result.status().code(), Code::kFailedPrecondition);
  EXPECT_THAT(result.status().message(),
              AllOf(HasSubstr("data' has changed"), HasSubstr("without --resume")));
  // Another time alone.
  ASSERT_EQ(::utimensat(AT_FDCWD, file_.c_str(), nullptr, 0), 0);
  EXPECT_EQ(Put({.resume = true}).status().code(), Code::kFailedPrecondition);
  EXPECT_TRUE(Put().ok()) << "without --resume";
}

TEST_F(Transfers, RefuseARegionThatIsAnotherNow) {
  ASSERT_TRUE(Put({.stop = StopAfter(3)})->interrupted);
  region_->info.generation = Generation(2);
  const auto result = Put({.resume = true});
  EXPECT_EQ(result.status().code(), Code::kFailedPrecondition);
  EXPECT_THAT(result.status().message(), HasSubstr("region 'fields' has changed"));
}

TEST_F(Transfers, RefuseASourceRegionThatWasWrittenToMeanwhile) {
  ASSERT_TRUE(Put().ok());
  ASSERT_TRUE(Get(dir_ / "out", {.stop = StopAfter(3)})->interrupted);
  region_->content[0][7] ^= std::byte{1};
  const auto result = Get(dir_ / "out", {.resume = true});
  EXPECT_EQ(result.status().code(), Code::kFailedPrecondition);
  EXPECT_THAT(result.status().message(), HasSubstr("region 'fields' has changed"));
}

TEST_F(Transfers, FindATargetThatWasChangedBeforeTheyWentOn) {
  ASSERT_TRUE(Put().ok());
  ASSERT_TRUE(Get(dir_ / "out", {.stop = StopAfter(3)})->interrupted);
  std::fstream(dir_ / "out", std::ios::in | std::ios::out | std::ios::binary).seekp(5).write("x", 1);
  const auto result = Get(dir_ / "out", {.resume = true});
  EXPECT_EQ(result.status().code(), Code::kDataLoss);
  EXPECT_THAT(result.status().message(), HasSubstr("out' does not hold what was moved"));
  EXPECT_FALSE(std::filesystem::exists(dir_ / "out.msa-part")) << "going on from it would not help";
}

TEST_F(Transfers, RefuseAStateThatIsTornOrDamaged) {
  ASSERT_TRUE(Put({.stop = StopAfter(3)})->interrupted);
  const std::string whole = FileText(state());
  for (const std::string& bad : {whole.substr(0, whole.size() - 1), whole.substr(0, 20), std::string(),
                                 "x" + whole.substr(1), std::string(5000, 'a')}) {
    std::ofstream(state(), std::ios::binary | std::ios::trunc) << bad;
    const auto result = Put({.resume = true});
    ASSERT_FALSE(result.ok()) << bad;
    EXPECT_THAT(result.status().message(), HasSubstr(".msa-part")) << bad;
  }
}

TEST_F(Transfers, NoticeBytesThatDidNotArrive) {
  int writes = 0;
  system_.before = [&](std::string_view what) {
    if (what == "write" && ++writes == 5) region_->content[0][3] ^= std::byte{1};  // somebody else's put
    return Status::Ok();
  };
  const auto result = Put();
  EXPECT_EQ(result.status().code(), Code::kDataLoss);
  EXPECT_THAT(result.status().message(), HasSubstr("somebody else writes to it"));
  writes = 0;
  EXPECT_TRUE(Put({.verify = false}).ok());
}

TEST_F(Transfers, TakeAPipeToItsEndAndNoFurtherThanThereIsRoom) {
  for (const std::size_t bytes : {std::size_t{0}, std::size_t{100}, std::size_t{1000}, std::size_t{1001}}) {
    int ends[2];
    ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
    const auto noise = Noise(bytes, 9);
    ASSERT_EQ(::write(ends[1], noise.data(), bytes), static_cast<ssize_t>(bytes));
    ::close(ends[1]);
    const auto source = FileSide::OpenSource("/proc/self/fd/" + std::to_string(ends[0]));
    ASSERT_TRUE(source.ok()) << source.status().message();
    EXPECT_FALSE((*source)->can_seek());
    FakeIo io = system_.Io("fields");
    RegionSide target(io, {10, 1000});
    Progress quiet;
    const auto result = RunTransfer(**source, target, {.length = 1000, .until_end = true}, quiet);
    ::close(ends[0]);
    if (bytes > 1000) {
      EXPECT_EQ(result.status().code(), Code::kOutOfRange);
      EXPECT_THAT(result.status().message(), HasSubstr("more than the 1000 bytes"));
      continue;
    }
    ASSERT_TRUE(result.ok()) << result.status().message();
    EXPECT_EQ(result->bytes, bytes);
    EXPECT_TRUE(std::equal(noise.begin(), noise.end(), region_->content[0].begin() + 10));
  }
}

TEST_F(Transfers, TellErrorsOfFiles) {
  EXPECT_EQ(FileSide::OpenSource(dir_ / "none").status().code(), Code::kNotFound);
  EXPECT_EQ(FileSide::OpenSource(dir_.path()).status().code(), Code::kInvalidArgument);
  const auto full = FileSide::OpenTarget("/dev/full", FileSide::Old::kKeep);
  ASSERT_TRUE(full.ok()) << full.status().message();
  EXPECT_EQ((*full)->Write(0, data_).code(), Code::kResourceExhausted);
}

TEST(PartFile, ReadsBackWhatItWrote) {
  PartState state;
  state.source = {.kind = PartSide::Kind::kFile, .bytes = 77, .mtime_ns = -5};
  state.target = {.kind = PartSide::Kind::kRegion, .uuid = {1, 2}, .generation = Generation(3), .begin = 4};
  state.length = 77;
  state.position = 50;
  state.checksum = {5, 6};
  const auto again = ParsePartState(ToText(state));
  ASSERT_TRUE(again.ok()) << again.status().message();
  EXPECT_EQ(*again, state);
  std::string text = ToText(state);
  for (std::size_t i = 0; i < text.size(); ++i) {
    std::string bad = text;
    bad[i] = static_cast<char>(bad[i] ^ 1);
    EXPECT_FALSE(ParsePartState(bad).ok()) << "a bit at " << i;
    EXPECT_FALSE(ParsePartState(std::string_view(text).substr(0, i)).ok()) << "cut at " << i;
  }
}

TEST(ProgressLine, TellsBytesShareRateAndTimeLeft) {
  EXPECT_EQ(ProgressText({"put a", 512 * kMiB, 1024 * kMiB, 256 * kMiB}),
            "put a  512M of 1G  50%  256M/s  2s left");
  EXPECT_EQ(ProgressText({"put a", 0, 1024 * kMiB, 0}), "put a  0 of 1G  0%");
  EXPECT_EQ(ProgressText({"put a", 1024 * kMiB - 1, 1024 * kMiB, 1}).substr(0, 24),
            "put a  1023M of 1G  99% ")
      << "not 100 before the end";
  EXPECT_EQ(ProgressText({"put a", 1024 * kMiB, 1024 * kMiB, 256 * kMiB}), "put a  1G of 1G  100%  256M/s");
  EXPECT_EQ(ProgressText({"put -", 3 * kMiB, std::nullopt, kMiB}), "put -  3M  1M/s") << "no end is known";
  EXPECT_EQ(ProgressText({"get a", 0, 0, 0}), "get a  0 of 0  100%");
  EXPECT_THAT(ProgressText({"get a", 1, ~std::uint64_t{0}, 1}), HasSubstr(" left")) << "does not overflow";
}

TEST(ProgressLine, RateForgetsWhatIsLongAgo) {
  RateWindow rate;
  SteadyTime now{};
  EXPECT_EQ(rate.per_second(), 0U);
  for (int i = 0; i <= 10; ++i) rate.Add(now + i * 1s, static_cast<std::uint64_t>(i) * 1000);
  EXPECT_EQ(rate.per_second(), 1000U);
  for (int i = 11; i <= 20; ++i) rate.Add(now + i * 1s, 10'000);
  EXPECT_EQ(rate.per_second(), 0U) << "it stands still";
}

TEST(ProgressLine, IsWrittenFiveTimesASecondAtMostAndGoesAway) {
  SteadyTime now{};
  std::vector<std::string> written;
  {
    Progress progress([&](std::string_view text) { written.emplace_back(text); }, [&] { return now; });
    progress.Begin("put \x1b[31m", 1000);
    for (int i = 0; i <= 100; ++i, now += 10ms) progress.Advance(static_cast<std::uint64_t>(i) * 10);
  }
  ASSERT_GE(written.size(), 5u);
  EXPECT_LE(written.size(), 8u);
  EXPECT_THAT(written[0], HasSubstr("\rput ?[31m  0 of 1000  0%"))
      << "no escape of a file's name gets through";
  EXPECT_THAT(written[3], HasSubstr("left"));
  EXPECT_EQ(written.back(), "\r\x1b[K");
  written.clear();
  {
    Progress none([&](std::string_view text) { written.emplace_back(text); }, [&] { return now; });
  }
  EXPECT_TRUE(written.empty()) << "nothing was shown, nothing is cleared";
}

}  // namespace
}  // namespace msa::cli
