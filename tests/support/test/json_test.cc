#include "msa/support/json.h"

#include <gtest/gtest.h>

namespace msa::support {
namespace {

TEST(Json, ReadsNestedValues) {
  const auto json = Json::Parse(R"( {"a": [1, -2.5e1, {"b": "x\n\"\u0041"}], "c": true, "d": null} )");
  ASSERT_TRUE(json.has_value());
  EXPECT_EQ((*json)["a"].list().at(1).number(), -25);
  EXPECT_EQ((*json)["a"].list().at(2)["b"].text(), "x\n\"A");
  EXPECT_EQ((*json)["c"].text(), "true");
  EXPECT_TRUE((*json)["d"].is_null());
  EXPECT_TRUE((*json)["missing"]["deeper"].is_null());
}

TEST(Json, RefusesWhatIsNoJson) {
  for (const char* text : {"", "{", "[1,]", "{\"a\" 1}", "1 2", "\"open", "{} trailing", "nul"})
    EXPECT_FALSE(Json::Parse(text).has_value()) << text;
}

}  // namespace
}  // namespace msa::support
