#include "companion_mark.h"

#include <gtest/gtest.h>

namespace msa::companion {
namespace {

TEST(CompanionMark, IsReadAsItWasWritten) {
  const Mark mark{.parent = JobId(12), .restarts = 3, .request = 45, .incarnation = {}};
  EXPECT_EQ(JobName(mark), "msa:12.45");
  EXPECT_EQ(JobComment(mark), "msa parent=12 restart=3 request=45");
  EXPECT_EQ(ParseMark(JobName(mark), JobComment(mark)), mark);
}

TEST(CompanionMark, SaysOfWhichIncarnationOfItsParentItIs) {
  Mark mark{.parent = JobId(12), .restarts = 0, .request = 1, .incarnation = Incarnation(2)};
  EXPECT_EQ(JobComment(mark), "msa parent=12 restart=0 request=1 run=2");
  EXPECT_EQ(ParseMark(JobName(mark), JobComment(mark)), mark);
  EXPECT_EQ(ParseMark(JobName(mark), JobComment(mark) + " project=x"), mark);
  EXPECT_EQ(ParseMark("msa:12.1", "msa parent=12 restart=0 request=1 run=x2")->incarnation, Incarnation(0));
  EXPECT_EQ(ParseMark("msa:12.1", "msa parent=12 restart=0 request=1 run=2x")->incarnation, Incarnation(0));
}

TEST(CompanionMark, MayBeFollowedByTheTextOfASite) {
  EXPECT_TRUE(ParseMark("msa:12.1", "msa parent=12 restart=0 request=1 project=x"));
  EXPECT_FALSE(ParseMark("msa:12.1", "msa parent=12 restart=0 request=1project=x"));
}

TEST(CompanionMark, IsNotSeenInOtherTexts) {
  const std::string good = "msa parent=12 restart=0 request=1";
  ASSERT_TRUE(ParseMark("msa:12.1", good));
  for (const std::string& comment :
       {std::string(), std::string("msa"), std::string("msa parent="), std::string("msa parent=12"),
        std::string("msa parent=-12 restart=0 request=1"), std::string("msa parent=0 restart=0 request=1"),
        std::string("msa parent=0x12 restart=0 request=1"), std::string("msa parent= 12 restart=0 request=1"),
        std::string("msa parent=99999999999999999999 restart=0 request=1"),
        std::string("msa parent=12 restart=4294967296 request=1"), " " + good, "x" + good,
        std::string("msa parent=12 request=1 restart=0"), std::string("MSA parent=12 restart=0 request=1")})
    EXPECT_FALSE(ParseMark("msa:12.1", comment)) << comment;
  for (const std::string name : {"", "msa:12", "msa:12.2", "msa:13.1", "msa:12.1 ", "msa:012.1", "wrap"})
    EXPECT_FALSE(ParseMark(name, good)) << name;
}

TEST(CompanionMark, OfAnAskNamesItsParentAndRequest) {
  wire::CompanionAsk ask;
  ask.parent = JobId(7);
  ask.restarts = 1;
  ask.request = 9;
  ask.incarnation = Incarnation(2);
  EXPECT_EQ(MarkOf(ask),
            (Mark{.parent = JobId(7), .restarts = 1, .request = 9, .incarnation = Incarnation(2)}));
}

}  // namespace
}  // namespace msa::companion
