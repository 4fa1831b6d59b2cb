#include "msa/pmi1/line.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace msa::pmi1 {
namespace {

TEST(Pmi1Line, IsACommandWithFields) {
  const auto line = ParseLine("cmd=init pmi_version=1 pmi_subversion=1");
  ASSERT_TRUE(line.ok()) << line.status().message();
  EXPECT_EQ(line->command, "init");
  EXPECT_EQ(line->Find("pmi_version"), "1");
  EXPECT_EQ(line->Find("pmi_subversion"), "1");
  EXPECT_EQ(line->Find("cmd"), std::nullopt);
}

TEST(Pmi1Line, ValueAndPortReachToTheEnd) {
  EXPECT_EQ(ParseLine("cmd=put key=a value=b c=d  e")->Find("value"), "b c=d  e");
  EXPECT_EQ(ParseLine("cmd=publish_name service=s port=tag#0$a b$")->Find("port"), "tag#0$a b$");
  EXPECT_EQ(ParseLine("cmd=put key=a value=")->Find("value"), "");
}

TEST(Pmi1Line, SpacesMoreThanOneAreOne) {
  const auto line = ParseLine("  cmd=get  key=a   kvsname=k ");
  ASSERT_TRUE(line.ok());
  EXPECT_EQ(line->fields.size(), 2u);
  EXPECT_EQ(line->Find("kvsname"), "k");
}

TEST(Pmi1Line, WhatIsNoCommandIsRefused) {
  using namespace std::string_view_literals;
  for (const std::string_view text : {""sv, "   "sv, "hello"sv, "cmd=get key"sv, "=x"sv, "cmd=a =b"sv,
                                      "key=a cmd=get"sv, "cmd=a\0b"sv, "cmd=get word key=a"sv})
    EXPECT_EQ(ParseLine(text).status().code(), Code::kInvalidArgument) << text;
}

}  // namespace
}  // namespace msa::pmi1
