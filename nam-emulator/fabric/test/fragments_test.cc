#include "fragments.h"

#include <gtest/gtest.h>

namespace msa::nam {
namespace {

FragmentHead Head(std::uint64_t id) { return {FragmentKind::kRequest, 0x0801, id, 77, "0123456789abcdef"}; }

Result<std::optional<Message>> Add(Reassembler& to, std::string_view bytes) {
  MSA_ASSIGN_OR_RETURN(const ParsedFragment fragment, ParseFragment(bytes));
  return to.Add(fragment);
}

TEST(Fragments, BecomeTheMessageAgainAtAnyLength) {
  for (const std::size_t bytes : {std::size_t{0}, std::size_t{1}, kPartBytes - 1, kPartBytes, kPartBytes + 1,
                                  5 * kPartBytes, kMaxMessageBytes}) {
    const std::string payload(bytes, 'p');
    Result<std::vector<std::string>> fragments = Fragment(Head(5), payload);
    ASSERT_TRUE(fragments.ok());
    Reassembler reassembler;
    for (std::size_t i = 0; i < fragments->size(); ++i) {
      EXPECT_LE((*fragments)[i].size(), kFragmentBytes);
      Result<std::optional<Message>> message = Add(reassembler, (*fragments)[i]);
      ASSERT_TRUE(message.ok()) << message.status().ToString();
      ASSERT_EQ(message->has_value(), i + 1 == fragments->size());
      if (!message->has_value()) continue;
      EXPECT_EQ((*message)->payload, payload);
      EXPECT_EQ((*message)->id, 5u);
      EXPECT_EQ((*message)->type, 0x0801);
      EXPECT_EQ((*message)->instance, 77u);
      EXPECT_EQ((*message)->address, "0123456789abcdef");
    }
    EXPECT_EQ(reassembler.unfinished(), 0u);
    EXPECT_EQ(reassembler.buffered(), 0u);
  }
}

TEST(Fragments, RefuseAMessageThatIsTooLong) {
  EXPECT_EQ(Fragment(Head(1), std::string(kMaxMessageBytes + 1, 'x')).status().code(),
            Code::kResourceExhausted);
}

TEST(Fragments, OfSeveralMessagesMayBeMixed) {
  const std::string a(3 * kPartBytes, 'a'), b(3 * kPartBytes, 'b');
  const Result<std::vector<std::string>> as = Fragment(Head(1), a), bs = Fragment(Head(2), b);
  Reassembler reassembler;
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(Add(reassembler, (*as)[i]).ok());
    ASSERT_TRUE(Add(reassembler, (*bs)[i]).ok());
  }
  EXPECT_EQ((**Add(reassembler, (*bs)[2])).payload, b);
  EXPECT_EQ((**Add(reassembler, (*as)[2])).payload, a);
}

TEST(Fragments, OutOfOrderDropTheirMessage) {
  const Result<std::vector<std::string>> parts = Fragment(Head(1), std::string(3 * kPartBytes, 'a'));
  Reassembler reassembler;
  EXPECT_FALSE(Add(reassembler, (*parts)[1]).ok());
  ASSERT_TRUE(Add(reassembler, (*parts)[0]).ok());
  EXPECT_FALSE(Add(reassembler, (*parts)[2]).ok());
  EXPECT_EQ(reassembler.unfinished(), 0u);
  EXPECT_EQ(reassembler.buffered(), 0u);
}

TEST(Fragments, ThatLieAreRefused) {
  const std::string good = Fragment(Head(1), std::string(2 * kPartBytes, 'a'))->front();
  ASSERT_TRUE(ParseFragment(good).ok());
  EXPECT_FALSE(ParseFragment(good.substr(0, kFragmentHeaderBytes - 1)).ok());
  EXPECT_FALSE(ParseFragment(good.substr(0, good.size() - 1)).ok());
  EXPECT_FALSE(ParseFragment(good + "x").ok());
  // Magic, kind, address's length, total, part, parts, payload's length.
  for (const std::size_t at : {0, 4, 5, 24, 28, 32, 36}) {
    std::string bad = good;
    bad[at] = static_cast<char>(bad[at] ^ 0x40);
    EXPECT_FALSE(ParseFragment(bad).ok()) << at;
  }
}

// Nobody can make the server keep more than its limits by beginning messages.
TEST(Fragments, OfUnfinishedMessagesAreKeptWithinLimits) {
  Reassembler reassembler({.messages = 8, .bytes = 4 * kPartBytes, .messages_of_one_sender = 3});
  const std::string payload(4 * kPartBytes, 'x');
  for (std::uint64_t id = 1; id < 100; ++id) {
    FragmentHead head = Head(id);
    head.instance = id % 10;
    const Result<std::vector<std::string>> parts = Fragment(head, payload);
    for (int i = 0; i < 2; ++i) ASSERT_TRUE(Add(reassembler, (*parts)[i]).ok());
    EXPECT_LE(reassembler.unfinished(), 8u);
    EXPECT_LE(reassembler.buffered(), 4 * kPartBytes);
  }
}

}  // namespace
}  // namespace msa::nam
