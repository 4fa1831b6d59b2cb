// The C encoder and decoder of libmsampi against the C++ definitions of the same messages.
#include "msa/base/wire.h"

#include <cstdint>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include "msa/jobd/task_messages.h"

extern "C" {
#include "wire.h"
}

namespace msa::wire {
namespace {

// C texts hold no zero byte.
std::string AnyText() { return *rc::gen::container<std::string>(rc::gen::nonZero<char>()); }

struct Buffer {
  msa_buffer b{};
  ~Buffer() { msa_buffer_free(&b); }
  std::string_view bytes() const { return {b.data, b.size}; }
};

// The one frame that the buffer holds.
Frame OnlyFrame(const Buffer& buffer) {
  FrameReader reader;
  reader.Append(buffer.bytes());
  auto frame = reader.Next();
  RC_ASSERT(frame.ok());
  RC_ASSERT(frame->has_value());
  RC_ASSERT(reader.buffered() == 0u);
  return **frame;
}

RC_GTEST_PROP(MpiWire, AHelloIsReadAsItWasWritten, ()) {
  const std::string nspace = AnyText();
  const auto rank = *rc::gen::arbitrary<std::uint32_t>();
  const auto id = *rc::gen::arbitrary<std::uint64_t>();
  Buffer out;
  msa_put_hello(&out.b, id, nspace.c_str(), rank);
  const Frame frame = OnlyFrame(out);
  RC_ASSERT(frame.type == TaskHello::kType);
  RC_ASSERT(frame.id == id);
  const auto hello = Decode<TaskHello>(frame.payload);
  RC_ASSERT(hello.ok());
  RC_ASSERT(hello->version == kProtocolVersion);
  RC_ASSERT(hello->nspace == nspace);
  RC_ASSERT(hello->rank.value == rank);
}

RC_GTEST_PROP(MpiWire, AnAskIsReadAsItWasWritten, ()) {
  const auto count = *rc::gen::inRange<std::size_t>(0, 5);
  std::vector<SpawnCommand> wanted(count);
  std::vector<msa_command> given(count);
  std::vector<std::vector<char*>> unknown(count);
  for (std::size_t i = 0; i < count; ++i) {
    SpawnCommand& w = wanted[i];
    std::string* values[] = {&w.arch,      &w.soft,    &w.host,     &w.wdir,     &w.path,   &w.file,
                             &w.msa_nodes, &w.msa_ppn, &w.msa_wait, &w.msa_time, &w.msa_nam};
    w.program = AnyText();
    w.maxprocs = *rc::gen::arbitrary<std::uint32_t>();
    given[i].program = w.program.c_str();
    given[i].maxprocs = w.maxprocs;
    for (int key = 0; key < kMsaKeys; ++key) {
      *values[key] = AnyText();
      given[i].values[key] = values[key]->empty() ? nullptr : values[key]->data();
    }
    for (auto n = *rc::gen::inRange(0, 3); n > 0; --n) w.unknown.push_back(AnyText());
    for (std::string& key : w.unknown) unknown[i].push_back(key.data());
    given[i].unknown = unknown[i].data();
    given[i].unknown_count = static_cast<std::uint32_t>(unknown[i].size());
  }
  const SpawnAsk whole{wanted, AnyText(), AnyText()};
  Buffer out;
  msa_put_ask(&out.b, 7, given.data(), static_cast<std::uint32_t>(count), whole.cwd.c_str(),
              whole.search_path.c_str());
  RC_ASSERT(std::string(out.bytes()) == Pack(whole, 7));
}

RC_GTEST_PROP(MpiWire, WithdrawalsAndDisconnectsAreReadAsTheyWereWritten, ()) {
  const std::string text = AnyText();
  Buffer out;
  msa_put_text_message(&out.b, kMsaSpawnWithdraw, text.c_str());
  msa_put_text_message(&out.b, kMsaDisconnected, text.c_str());
  RC_ASSERT(std::string(out.bytes()) == Pack(SpawnWithdraw{text}) + Pack(Disconnected{text}));
}

std::vector<std::string> AnyTexts() {
  std::vector<std::string> texts;
  for (auto n = *rc::gen::inRange(0, 4); n > 0; --n) texts.push_back(AnyText());
  return texts;
}

SpawnVerdict AnyVerdict() {
  SpawnVerdict v;
  v.refusal = static_cast<SpawnRefusal>(*rc::gen::inRange(0, 4));
  v.reason = AnyText();
  v.ticket = AnyText();
  v.nspace = AnyText();
  v.counts = *rc::gen::arbitrary<std::vector<std::uint32_t>>();
  v.programs = AnyTexts();
  v.wdirs = AnyTexts();
  return v;
}

struct CVerdict {
  msa_verdict v{};
  int result = 0;
  // From a copy of exact size, so that the address sanitizer sees one byte too far.
  explicit CVerdict(std::string_view bytes) {
    const std::vector<char> exact(bytes.begin(), bytes.end());
    result = msa_get_verdict(exact.data(), exact.size(), &v);
  }
  ~CVerdict() { msa_verdict_free(&v); }
  static std::vector<std::string> Texts(char** texts, std::uint32_t count) { return {texts, texts + count}; }
  SpawnVerdict Whole() const {
    return {static_cast<SpawnRefusal>(v.refusal),
            v.reason,
            v.ticket,
            v.nspace,
            {v.counts, v.counts + v.count_count},
            Texts(v.programs, v.program_count),
            Texts(v.wdirs, v.wdir_count)};
  }
};

RC_GTEST_PROP(MpiWire, AVerdictIsReadAsItWasWritten, ()) {
  const std::string bytes = Encode(AnyVerdict());
  const CVerdict read(bytes);
  RC_ASSERT(read.result == 0);
  RC_ASSERT(Encode(read.Whole()) == bytes);
}

RC_GTEST_PROP(MpiWire, ACutOrBentVerdictIsReadAsTheJobDaemonWouldReadIt, ()) {
  std::string bytes = Encode(AnyVerdict());
  bytes.resize(*rc::gen::inRange<std::size_t>(0, bytes.size() + 1));
  for (auto bends = *rc::gen::inRange(0, 3); bends > 0 && !bytes.empty(); --bends)
    bytes[*rc::gen::inRange<std::size_t>(0, bytes.size())] = *rc::gen::arbitrary<char>();
  const CVerdict read(bytes);
  const auto expected = Decode<SpawnVerdict>(bytes);
  // A text with a zero byte is good in C++ and malformed in C.
  if (read.result == 0) {
    RC_ASSERT(expected.ok());
    RC_ASSERT(Encode(read.Whole()) == Encode(*expected));
  } else if (expected.ok()) {
    RC_ASSERT(bytes.find('\0') != std::string::npos);
  }
}

RC_GTEST_PROP(MpiWire, AnyBytesAreAVerdictOrAnError, (const std::string& bytes)) {
  const CVerdict read(bytes);
  RC_ASSERT(read.result == 0 || read.result == -1);
}

RC_GTEST_PROP(MpiWire, AWelcomeIsReadAsItWasWritten, ()) {
  const TaskWelcome welcome{1, JobId(*rc::gen::arbitrary<std::uint64_t>()),
                            StepId(*rc::gen::arbitrary<std::uint32_t>()), AnyText(),
                            *rc::gen::arbitrary<std::uint32_t>()};
  const std::string bytes = Encode(welcome);
  msa_welcome read;
  RC_ASSERT(msa_get_welcome(bytes.data(), bytes.size(), &read) == 0);
  RC_ASSERT(read.job == welcome.job.value);
  RC_ASSERT(read.step == welcome.step.value);
  RC_ASSERT(read.world_size == welcome.world_size);
  // Whatever is cut off is missing or an error, never read.
  const auto cut = *rc::gen::inRange<std::size_t>(0, bytes.size() + 1);
  const std::vector<char> part(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(cut));
  const int result = msa_get_welcome(part.data(), part.size(), &read);
  RC_ASSERT((result == 0) == Decode<TaskWelcome>(std::string_view(part.data(), part.size())).ok());
}

TEST(MpiWire, NumbersOfTheMessagesAreTheSame) {
  EXPECT_EQ(+kMsaHello, TaskHello::kType);
  EXPECT_EQ(+kMsaWelcome, TaskWelcome::kType);
  EXPECT_EQ(+kMsaSpawnAsk, SpawnAsk::kType);
  EXPECT_EQ(+kMsaSpawnVerdict, SpawnVerdict::kType);
  EXPECT_EQ(+kMsaSpawnWithdraw, SpawnWithdraw::kType);
  EXPECT_EQ(+kMsaDisconnected, Disconnected::kType);
  EXPECT_EQ(+kMsaHeaderBytes, static_cast<int>(kHeaderBytes));
  EXPECT_EQ(static_cast<std::uint32_t>(kMsaProtocolVersion), kProtocolVersion);
  EXPECT_EQ(+kMsaRefusedSpawn, static_cast<int>(SpawnRefusal::kSpawn));
  EXPECT_EQ(+kMsaRefusedInfoValue, static_cast<int>(SpawnRefusal::kInfoValue));
}

}  // namespace
}  // namespace msa::wire
