#include "msa/job/shared_strings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace msa {
namespace {

using ::testing::ElementsAre;

TEST(SharedStrings, CopiesShareUntilOneIsChanged) {
  SharedStrings first = {"A=1", "B=2"};
  SharedStrings second = first;
  EXPECT_TRUE(second.SharesWith(first));
  second.push_back("C=3");
  EXPECT_THAT(first, ElementsAre("A=1", "B=2"));
  EXPECT_THAT(second, ElementsAre("A=1", "B=2", "C=3"));
  second.clear();
  EXPECT_TRUE(second.empty());
  EXPECT_EQ(first.size(), 2u);
}

struct Plain {
  std::uint32_t before = 7;
  std::vector<std::string> list = {"A=1", "", std::string("\0x", 2)};
  std::uint32_t behind = 9;
  template <class A>
  void Fields(A& a) {
    a(before, list, behind);
  }
};
struct Shared {
  std::uint32_t before = 0;
  SharedStrings list = {"gone"};
  std::uint32_t behind = 0;
  template <class A>
  void Fields(A& a) {
    a(before, list, behind);
  }
};

TEST(SharedStrings, TravelAsAPlainList) {
  const Plain plain;
  const std::string bytes = wire::Encode(plain);
  Shared shared;
  wire::Decoder decoder(bytes);
  shared.Fields(decoder);
  ASSERT_TRUE(decoder.ok());
  EXPECT_EQ(shared.list.list(), plain.list);
  EXPECT_EQ(shared.behind, 9u);
  EXPECT_EQ(wire::Encode(shared), bytes);
}

TEST(StringsPool, MakesEqualListsOneAndKeepsOthersApart) {
  StringsPool pool;
  SharedStrings a = {"A=1", "B=2"};
  SharedStrings same = {"A=1", "B=2"};
  SharedStrings other = {"A=1", "B=3"};
  SharedStrings none;
  for (SharedStrings* strings : {&a, &same, &other, &none}) pool.Intern(*strings);
  EXPECT_TRUE(same.SharesWith(a));
  EXPECT_FALSE(other.SharesWith(a));
  EXPECT_THAT(other, ElementsAre("A=1", "B=3"));
  EXPECT_TRUE(none.empty());
}

TEST(StringsPool, ForgetsListsThatNobodyHolds) {
  StringsPool pool;
  SharedStrings kept = {"KEPT"};
  pool.Intern(kept);
  for (int i = 0; i < 1000; ++i) {
    SharedStrings passing = {std::to_string(i)};
    pool.Intern(passing);
  }
  SharedStrings again = {"KEPT"};
  pool.Intern(again);
  EXPECT_TRUE(again.SharesWith(kept));
}

}  // namespace
}  // namespace msa
