#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <memory>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "msa/support/scratch_directory.h"

#include "output/document.h"
#include "output/job_texts.h"
#include "output/line_splitter.h"
#include "output/listing.h"
#include "output/text.h"
#include "output/topology_picture.h"

namespace msa::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// All bytes that could break a format, and some that are not UTF-8.
std::string Nasty() {
  std::string out = "a\"b\\c,d\n\te\r'f': - #\x7f\xc2\x85 \xe2\x82\xac\xff\xc3(";
  for (char c = 1; c < 0x20; ++c) out += c;
  return out;
}

Document Sample() {
  return Envelope(
      "Thing",
      {{"text", Nasty()},
       {"empty", ""},
       {"yes", "yes"},
       {"number", std::uint64_t{18446744073709551615u}},
       {"negative", -5},
       {"ratio", 0.5},
       {"flag", true},
       {"nothing", Document()},
       {"list", Document::ListOf(std::vector<std::string>{"x", "1.0", "null"})},
       {"none", Document(Document::Array())},
       {"inner",
        Document::Object{{"k", Document(Document::Array{Document(Document::Object{{"z", 1}, {"y", 2}})})}}}});
}

// Feeds `text` to a Python program on its standard input; what it prints.
std::string Python(const std::string& program, const std::string& text) {
  const support::ScratchDirectory scratch;
  const std::string command = "python3 -c '" + program + "' < " + scratch.Write("input", text);
  std::unique_ptr<FILE, int (*)(FILE*)> pipe(::popen(command.c_str(), "r"), &::pclose);
  std::string out;
  for (int c = std::fgetc(pipe.get()); c != EOF; c = std::fgetc(pipe.get())) out += static_cast<char>(c);
  return out;
}

TEST(Document, IsJsonThatOthersReadBack) {
  const std::string program =
      "import json,sys; d=json.load(sys.stdin); "
      "print(d[\"apiVersion\"], d[\"kind\"], d[\"number\"], d[\"negative\"], d[\"ratio\"], d[\"flag\"], "
      "d[\"nothing\"], d[\"list\"][2], "
      "d[\"none\"], d[\"inner\"][\"k\"][0][\"y\"], d[\"text\"].encode().hex())";
  const std::string got = Python(program, Sample().ToJson());
  EXPECT_THAT(got, HasSubstr("msa/v1 Thing 18446744073709551615 -5 0.5 True None null [] 2 "));
  // The text itself, malformed bytes replaced.
  EXPECT_THAT(got, HasSubstr("6122625c632c640a0965"));
  EXPECT_THAT(got, HasSubstr("e282acefbfbdefbfbd28"));
}

TEST(Document, QuotesEveryStringInYaml) {
  const std::string yaml = Sample().ToYaml();
  EXPECT_THAT(yaml, HasSubstr("apiVersion: \"msa/v1\"\nkind: \"Thing\"\n"));
  EXPECT_THAT(yaml, HasSubstr("yes: \"yes\"\n"));
  EXPECT_THAT(yaml, HasSubstr("list:\n  - \"x\"\n  - \"1.0\"\n  - \"null\"\n"));
  EXPECT_THAT(yaml, HasSubstr("none: []\n"));
  EXPECT_THAT(yaml, HasSubstr("inner:\n  k:\n    - z: 1\n      y: 2\n"));
  EXPECT_THAT(yaml, HasSubstr("\\u0085"));
  EXPECT_THAT(yaml, HasSubstr("\\u007f"));
}

Listing TwoRows() {
  Listing out;
  out.kind = "ThingList";
  out.empty_text = "no things";
  out.columns = {{"NAME"}, {"CPUS USED", false, true}, {"EXTRA", true}, {"REASON"}};
  out.rows.push_back({"cn0", {"cn0", "4", "w", "a,\"b\"\nc"}, Document::Object{{"name", "cn0"}}});
  out.rows.push_back({"longer", {"longer", "16", "", ""}, Document::Object{{"name", "longer"}}});
  return out;
}

TEST(Listing, AlignsItsTableAndHidesControlCharacters) {
  EXPECT_EQ(Render(TwoRows(), {}),
            "NAME    CPUS USED  REASON\n"
            "cn0             4  a,\"b\"?c\n"
            "longer         16  -\n");
  EXPECT_EQ(Render(TwoRows(), {.format = Format::kWide, .no_header = true}),
            "cn0      4  w  a,\"b\"?c\n"
            "longer  16  -  -\n");
}

TEST(Listing, CountsWideAndCombiningCharactersAsTheTerminalDoes) {
  EXPECT_EQ(DisplayWidth("abc"), 3u);
  EXPECT_EQ(DisplayWidth("\xe4\xb8\xad\xe6\x96\x87"), 4u);
  EXPECT_EQ(DisplayWidth("e\xcc\x81"), 1u);
}

TEST(Listing, QuotesCsvAsRfc4180) {
  EXPECT_EQ(Render(TwoRows(), {.format = Format::kCsv}),
            "name,cpus_used,extra,reason\n"
            "cn0,4,w,\"a,\"\"b\"\"\nc\"\n"
            "longer,16,,\n");
  EXPECT_THAT(Render(TwoRows(), {.format = Format::kCsv, .no_header = true}), Not(HasSubstr("cpus_used")));
}

TEST(Listing, GivesMachinesTheRawValueInCsv) {
  Listing listing;
  listing.columns = {{"MEMORY"}, {"SINCE"}};
  listing.rows.push_back({"x", {Cell("1.5K", "1536"), Cell("-", "")}, Document()});
  EXPECT_EQ(Render(listing, {.format = Format::kCsv}), "memory,since\n1536,\n");
  EXPECT_EQ(Render(listing, {}), "MEMORY  SINCE\n1.5K    -\n");
}

TEST(Listing, PrintsNamesForOtherCommands) {
  EXPECT_EQ(Render(TwoRows(), {.format = Format::kName}), "cn0\nlonger\n");
}

TEST(Listing, PutsItemsIntoAnEnvelope) {
  EXPECT_EQ(
      Python(
          "import json,sys; d=json.load(sys.stdin); print(d[\"kind\"], [i[\"name\"] for i in d[\"items\"]])",
          Render(TwoRows(), {.format = Format::kJson})),
      "ThingList ['cn0', 'longer']\n");
  Listing empty = TwoRows();
  empty.rows.clear();
  EXPECT_EQ(Render(empty, {}), "no things\n");
  EXPECT_THAT(Render(empty, {.format = Format::kJson}), HasSubstr("\"items\": []"));
}

TEST(Listing, NamesTheNearestFormat) {
  EXPECT_EQ(*ParseFormat("yaml"), Format::kYaml);
  EXPECT_THAT(ParseFormat("jsn").status().message(), HasSubstr("'jsn' is no format; did you mean 'json'?"));
}

wire::Output Record(std::uint32_t rank, std::string data, wire::Stream stream = wire::Stream::kOut,
                    std::uint32_t spawn = 0) {
  wire::Output out;
  out.rank = Rank(rank);
  out.spawn = spawn;
  out.stream = stream;
  out.data = std::move(data);
  return out;
}

TEST(LineSplitter, LabelsEachLineAndHoldsParts) {
  LineSplitter labels(LineSplitter::Labels::kYes, 12);
  EXPECT_EQ(labels.Add(Record(1, "one\ntw")), " 1: one\n");
  EXPECT_EQ(labels.Add(Record(11, "x\n")), "11: x\n");
  EXPECT_EQ(labels.Add(Record(1, "o\n\n")), " 1: two\n 1: \n");
  EXPECT_EQ(labels.Add(Record(0, "rest", wire::Stream::kErr)), "");
  EXPECT_EQ(labels.Rest(wire::Stream::kOut), "");
  EXPECT_EQ(labels.Rest(wire::Stream::kErr), " 0: rest\n");
  EXPECT_EQ(labels.Rest(wire::Stream::kErr), "");
}

TEST(LineSplitter, NamesTheSpawnAndKeepsStreamsApart) {
  LineSplitter labels(LineSplitter::Labels::kYes, 2);
  EXPECT_EQ(labels.Add(Record(0, "a", wire::Stream::kOut, 1)), "");
  EXPECT_EQ(labels.Add(Record(0, "b\n", wire::Stream::kErr, 1)), "s1.0: b\n");
  EXPECT_EQ(labels.Add(Record(0, "c\n", wire::Stream::kOut, 1)), "s1.0: ac\n");
}

TEST(LineSplitter, CutsALineThatNeverEnds) {
  LineSplitter labels(LineSplitter::Labels::kYes, 1);
  const std::string part(600'000, 'x');
  EXPECT_EQ(labels.Add(Record(0, part)), "");
  const std::string cut = labels.Add(Record(0, part));
  EXPECT_EQ(cut.size(), 3 + 1'200'000 + 1u);
}

TEST(LineSplitter, KeepsTheLinesOfSeveralTasksWhole) {
  LineSplitter lines(LineSplitter::Labels::kNo, 2);
  EXPECT_EQ(lines.Add(Record(0, "a\nb")), "a\n");
  EXPECT_EQ(lines.Add(Record(1, "x\n")), "x\n");
  EXPECT_EQ(lines.Add(Record(0, "c\nd")), "bc\n");
  EXPECT_TRUE(lines.waits_for_idle());
  EXPECT_EQ(lines.Rest(wire::Stream::kOut), "d");
  EXPECT_FALSE(lines.waits_for_idle());
}

TEST(LineSplitter, GivesAPromptOutWhenNothingFollows) {
  LineSplitter lines(LineSplitter::Labels::kNo, 0);
  EXPECT_EQ(lines.Add(Record(0, "name? ")), "");
  EXPECT_EQ(lines.Idle(wire::Stream::kOut), "");
  EXPECT_EQ(lines.Idle(wire::Stream::kErr), "");
  EXPECT_EQ(lines.Idle(wire::Stream::kOut), "name? ");
  EXPECT_EQ(lines.Idle(wire::Stream::kOut), "");
}

TEST(LineSplitter, TakesAFullBufferOfStdioForNoPrompt) {
  LineSplitter lines(LineSplitter::Labels::kNo, 2);
  const std::string half(LineSplitter::kStdioBuffer / 2, 'x');
  EXPECT_EQ(lines.Add(Record(0, "line\n" + half.substr(5))), "line\n");
  EXPECT_EQ(lines.Add(Record(0, half)), "");
  EXPECT_FALSE(lines.waits_for_idle());
  for (std::uint32_t i = 0; i < 3 * LineSplitter::kBusyRounds; ++i)
    ASSERT_EQ(lines.Idle(wire::Stream::kOut), "") << i;
  EXPECT_EQ(lines.Add(Record(1, "other\n")), "other\n");
  EXPECT_EQ(lines.Add(Record(0, "rest\n? ")), half.substr(5) + half + "rest\n");
  EXPECT_TRUE(lines.waits_for_idle());
  EXPECT_EQ(lines.Idle(wire::Stream::kOut), "");
  EXPECT_EQ(lines.Idle(wire::Stream::kOut), "? ");
}

TEST(LineSplitter, CountsTheBuffersOfEachStreamByItself) {
  LineSplitter lines(LineSplitter::Labels::kNo, 2);
  EXPECT_EQ(lines.Add(Record(0, "error\n", wire::Stream::kErr)), "error\n");
  EXPECT_EQ(lines.Add(Record(0, std::string(LineSplitter::kStdioBuffer, 'x'))), "");
  EXPECT_FALSE(lines.waits_for_idle());
}

TEST(LineSplitter, GivesAPromptOutLaterWhereOtherTasksWriteMeanwhile) {
  LineSplitter lines(LineSplitter::Labels::kNo, 2);
  EXPECT_EQ(lines.Add(Record(0, "name? ")), "");
  EXPECT_EQ(lines.Idle(wire::Stream::kOut), "");
  EXPECT_EQ(lines.Add(Record(1, "other\n")), "other\n");
  for (std::uint32_t i = 1; i < LineSplitter::kBusyRounds; ++i)
    ASSERT_EQ(lines.Idle(wire::Stream::kOut), "") << i;
  EXPECT_EQ(lines.Idle(wire::Stream::kOut), "name? ");
  // What the task itself writes to its other stream makes no session busy.
  EXPECT_EQ(lines.Add(Record(0, "again? ")), "");
  EXPECT_EQ(lines.Add(Record(0, "hint\n", wire::Stream::kErr)), "hint\n");
  EXPECT_EQ(lines.Idle(wire::Stream::kOut), "");
  EXPECT_EQ(lines.Idle(wire::Stream::kOut), "again? ");
}

TEST(LineSplitter, PassesTheOutputOfOneTaskOnUntilItSpawns) {
  LineSplitter lines(LineSplitter::Labels::kNo, 1);
  EXPECT_EQ(lines.Add(Record(0, "part")), "part");
  EXPECT_EQ(lines.Add(Record(0, "child", wire::Stream::kOut, 1)), "");
  EXPECT_EQ(lines.Add(Record(0, "p")), "");
}

TEST(Text, ShowsQuantities) {
  EXPECT_EQ(ShowBytes(0), "0");
  EXPECT_EQ(ShowBytes(1536), "1.5K");
  EXPECT_EQ(ShowBytes(16ull << 30), "16G");
  EXPECT_EQ(ShowDuration(Millis(850)), "850ms");
  EXPECT_EQ(ShowDuration(Millis(12'345)), "12.3s");
  EXPECT_EQ(ShowDuration(Millis(60'000)), "1m");
  EXPECT_EQ(ShowDuration(Millis(2'000)), "2s");
  EXPECT_EQ(ShowDuration(Millis(3'725'000)), "1h 2m");
  EXPECT_EQ(ShowTimeLimit(0), "unlimited");
  EXPECT_EQ(ShowTimeLimit(90), "01:30");
  EXPECT_EQ(ShowTimeLimit(93784), "1-02:03:04");
  EXPECT_EQ(UtcTime(1'000'000'000'123), "2001-09-09T01:46:40.123Z");
  EXPECT_EQ(ShellWords({"a", "b c", "", "it's"}), "a 'b c' '' 'it'\\''s'");
}

TEST(JobTexts, ShowNamespacesAsATree) {
  JobInfo job;
  job.id = JobId(7);
  job.state = JobState::kRunning;
  job.namespaces = {{.name = "msa.7.1.0", .parent = "", .size = 2, .nodes = {"cn0", "cn1"}, .command = "./a"},
                    {.name = "msa.7.1.0.1",
                     .parent = "msa.7.1.0",
                     .size = 1,
                     .nodes = {"bn0"},
                     .command = "./c",
                     .ended = true,
                     .exit_code = 3}};
  const auto text = Render(JobDetails(job, 0), {});
  ASSERT_TRUE(text.ok());
  EXPECT_THAT(*text, HasSubstr("namespaces: msa.7.1.0  ./a  2 tasks on cn[0-1]  running\n"));
  EXPECT_THAT(*text, HasSubstr("            msa.7.1.0.1  ./c  1 task on bn0  ended with code 3\n"));
  EXPECT_FALSE(Render(JobDetails(job, 0), {.format = Format::kCsv}).ok());
}

TEST(JobTexts, ShowTheMemoryThatWasAskedForAndTheRegionsThatAreBound) {
  JobInfo job;
  job.id = JobId(7);
  job.spec.emplace();
  job.spec->nam = Bytes(64u << 20);
  job.spec->nam_regions = {{"field", NamRights::kRead | NamRights::kWrite}, {"mesh", NamRights::kRead}};
  const auto text = Render(JobDetails(job, 0), {});
  ASSERT_TRUE(text.ok());
  EXPECT_THAT(*text, HasSubstr("nam:         64M\n"));
  EXPECT_THAT(*text, HasSubstr("nam regions: field:rw\n"));
  EXPECT_THAT(*text, HasSubstr("mesh:ro\n"));
  const auto json = Render(JobDetails(job, 0), {.format = Format::kJson});
  ASSERT_TRUE(json.ok());
  EXPECT_THAT(*json, HasSubstr("\"nam_bytes\": 67108864"));
  EXPECT_THAT(*json, HasSubstr("\"rights\": \"ro\""));
}

TEST(JobTexts, NameTheGatewaysOfAJob) {
  JobInfo job;
  job.id = JobId(7);
  job.spec.emplace();
  job.spec->gateways = 2;
  EXPECT_THAT(*Render(JobDetails(job, 0), {}), HasSubstr("gateways:   2 asked\n"));
  job.gateways = {"gw0", "gw1"};
  EXPECT_THAT(*Render(JobDetails(job, 0), {}), HasSubstr("gateways:   gw0,gw1\n"));
}

// A job of cn0 and bn0 that has given cn1 back.
JobInfo Shrunk() {
  JobInfo job;
  job.id = JobId(7);
  job.state = JobState::kRunning;
  job.nodes = 2;
  job.allocations = {{.node = "cn0", .module = "cluster", .cores = {0, 1}, .tasks = 2, .held = true},
                     {.node = "bn0", .module = "booster", .cores = {0}, .tasks = 1, .held = true},
                     {.node = "cn1", .module = "cluster", .cores = {0}, .grant = 1}};
  return job;
}

TEST(JobTexts, ListTheNodesThatTheJobHoldsNow) {
  const JobInfo job = Shrunk();
  const std::string table = Render(JobListing({job}, 0), {});
  EXPECT_THAT(table, HasSubstr("cn0,bn0"));
  EXPECT_THAT(table, Not(HasSubstr("cn1")));
  const std::string json = Render(JobListing({job}, 0), {.format = Format::kJson});
  EXPECT_THAT(json, Not(HasSubstr("cn1")));
  const auto text = Render(JobDetails(job, 0), {});
  ASSERT_TRUE(text.ok());
  EXPECT_THAT(*text, HasSubstr("node count: 2\n"));
  EXPECT_THAT(*text, HasSubstr("bn0 (booster)  cores 0  1 task\n"));
  EXPECT_THAT(*text, HasSubstr("cn1 (cluster)  cores 0  grant 1, given back\n"));
}

TEST(JobTexts, ListAllTheNodesThatAnEndedJobHad) {
  JobInfo job = Shrunk();
  job.state = JobState::kCompleted;
  job.nodes = 3;
  for (AllocationInfo& share : job.allocations) share.held = false;
  const std::string table = Render(JobListing({job}, 0), {});
  EXPECT_THAT(table, HasSubstr("cn[0-1],bn0"));
  const auto text = Render(JobDetails(job, 0), {});
  ASSERT_TRUE(text.ok());
  EXPECT_THAT(*text, HasSubstr("cn1 (cluster)  cores 0  grant 1\n"));
}

TEST(JobTexts, ExpectedStartsOfOtherDaysHaveTheirDay) {
  JobInfo job;
  job.id = JobId(7);
  job.state = JobState::kPending;
  constexpr std::int64_t kNow = 1'800'000'000'000;
  job.expected_start_ms = kNow + 1000;
  EXPECT_THAT(Render(JobListing({job}, kNow), {}),
              HasSubstr("expected at " + ShowTime(kNow + 1000).substr(11)));
  job.expected_start_ms = kNow + 365LL * 86'400'000;
  EXPECT_THAT(Render(JobListing({job}, kNow), {}),
              HasSubstr("expected at " + ShowTime(job.expected_start_ms)));
}

TEST(JobTexts, SayThatOutputMayBeMissingWhyAndWhereItIs) {
  JobInfo job;
  job.id = JobId(7);
  job.interactive = true;
  const Status why(Code::kNotFound, "job 7 is over on node cn0: it was killed");
  EXPECT_EQ(
      MissingOutputText(job, why),
      "the last of the output of job 7 may be missing: job 7 is over on node cn0: it was killed; it was "
      "kept nowhere else");
  job.interactive = false;
  EXPECT_EQ(MissingOutputText(job, Status::Ok()),
            "the last of the output of job 7 may be missing: its node daemon did not answer in time; "
            "'msactl job logs 7' has what was written");
}

TEST(JobTexts, KnowWhatAnAttachedMsactlShows) {
  EXPECT_TRUE(CarriesOutput({}));
  EXPECT_TRUE(CarriesOutput({.out = "", .err = "file"}));
  EXPECT_TRUE(CarriesOutput({.out = "none", .err = ""}));
  EXPECT_FALSE(CarriesOutput({.out = "file", .err = ""}));
  EXPECT_FALSE(CarriesOutput({.out = "file", .err = "none"}));
  EXPECT_FALSE(CarriesOutput({.out = "none", .err = "none"}));
}

std::vector<NodeInfo> Nodes(const std::string& module, const std::string& prefix, std::uint32_t count,
                            std::uint32_t cores) {
  std::vector<NodeInfo> out;
  for (std::uint32_t i = 0; i < count; ++i) {
    NodeInfo node;
    node.name = fmt::format("{}{}", prefix, i);
    node.module = module;
    node.state = NodeState::kUp;
    node.cores = cores;
    node.cores_used = i % (cores + 1);
    if (node.cores_used > 0) node.jobs = {i};
    out.push_back(std::move(node));
  }
  return out;
}

TEST(TopologyPicture, DrawsFewNodesInFull) {
  SystemInfo system;
  system.system_name = "local";
  const std::vector<ModuleInfo> modules = {{.id = 0, .name = "cluster", .kind = "cluster", .nodes = 2},
                                           {.id = 3, .name = "nam", .kind = "nam", .nam_bytes = 1u << 30}};
  const std::string picture = DrawTopology(system, modules, Nodes("cluster", "cn", 2, 4), {.width = 80});
  EXPECT_THAT(picture, HasSubstr("+- cluster (id 0): 2 nodes, 8 cores, 1 used ---"));
  EXPECT_THAT(picture, HasSubstr("cn0 [....] 0/4"));
  EXPECT_THAT(picture, HasSubstr("cn1 [#...] 1/4 job 1"));
  EXPECT_THAT(picture, HasSubstr("NAM 1G"));
}

TEST(TopologyPicture, KeepsTwoHundredNodesOnAScreenAndWithinItsWidth) {
  SystemInfo system;
  const std::vector<ModuleInfo> modules = {{.id = 0, .name = "cluster", .kind = "cluster", .nodes = 200}};
  auto nodes = Nodes("cluster", "node", 200, 4);
  nodes[7].state = NodeState::kDown;
  nodes[8].drained = true;
  for (const std::size_t width : {40u, 80u, 132u}) {
    const std::string picture = DrawTopology(system, modules, nodes, {.width = width});
    std::size_t lines = 0;
    std::size_t start = 0;
    for (std::size_t end = picture.find('\n'); end != std::string::npos; end = picture.find('\n', start)) {
      const std::string line = picture.substr(start, end - start);
      const bool of_box = !line.empty() && (line[0] == '|' || line[0] == '+');
      EXPECT_TRUE(!of_box || DisplayWidth(line) == width) << line;
      start = end + 1;
      lines += 1;
    }
    EXPECT_LT(lines, width == 40 ? 28u : 16u);
    EXPECT_THAT(picture, HasSubstr(".+++#.+xd"));
    EXPECT_THAT(picture, HasSubstr("x down"));
  }
}

}  // namespace
}  // namespace msa::cli
