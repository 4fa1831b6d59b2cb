#include "client/client_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace msa::cli {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(ClientFile, SaysWhereTheControllerIsAndWhoItIs) {
  const auto file = ParseClientFile(
      "# the machine's\n\n  server = tls:ctl:7701  # TLS\ncontroller_uid=117\r\nmunge_socket = \"/run/m\""
      "\nbackend = slurm",
      "f");
  ASSERT_TRUE(file.ok()) << file.status().message();
  EXPECT_EQ(file->server, "tls:ctl:7701");
  EXPECT_EQ(file->controller_uid, 117u);
  EXPECT_EQ(file->munge_socket, "/run/m");
  EXPECT_EQ(file->backend, "slurm");
}

TEST(ClientFile, MayBeEmpty) {
  const auto file = ParseClientFile("", "f");
  ASSERT_TRUE(file.ok());
  EXPECT_EQ(file->server, "");
  EXPECT_EQ(file->controller_uid, 0u);
}

TEST(ClientFile, NamesTheLineThatIsNone) {
  for (const auto& [text, part] :
       {std::pair{"\nserver", "'server'"}, std::pair{"\nserver = ctl:7701", "'ctl:7701'"},
        std::pair{"\nserfer = x", "'serfer'"}, std::pair{"\ncontroller_uid = root", "'root'"},
        std::pair{"\ncontroller_uid = -1", "'-1'"}, std::pair{"\ncontroller_uid =", "''"},
        std::pair{"\nbackend = slrum", "'slrum'"}}) {
    const auto file = ParseClientFile(text, "f");
    EXPECT_EQ(file.status().code(), Code::kInvalidArgument) << text;
    EXPECT_THAT(file.status().message(), AllOf(HasSubstr("f:2"), HasSubstr(part)));
  }
}

}  // namespace
}  // namespace msa::cli
