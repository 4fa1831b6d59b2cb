#include <gtest/gtest.h>

#include "msa/adapters/grpc/convert_node_internal.h"
#include "msa/adapters/grpc/status_internal.h"

namespace msa::node_control {
namespace {

TEST(ConvertNode, RegistrationSurvivesTheWayThere) {
  RegisterNode in{.daemon_version = "0.1.0",
                  .protocol_version = 1,
                  .attach_address = "unix:/a",
                  .jobd_address = "unix:/j%J",
                  .pid = 42};
  in.description = {.name = "bn0",
                    .cores = 8,
                    .machine_cores = 2,
                    .memory = Bytes(1 << 30),
                    .synthetic = true,
                    .packages = 2,
                    .numa_nodes = 4,
                    .gpus = 1,
                    .cpu_model = "x",
                    .nam = Bytes(5)};
  in.jobds = {{JobId(7), Incarnation(2), 3, true, true}};
  const RegisterNode out = FromProto(ToProto(in).register_());
  EXPECT_EQ(out.daemon_version, "0.1.0");
  EXPECT_EQ(out.description.name, "bn0");
  EXPECT_EQ(out.description.cores, 8u);
  EXPECT_EQ(out.description.machine_cores, 2u);
  EXPECT_EQ(out.description.memory, Bytes(1 << 30));
  EXPECT_TRUE(out.description.synthetic);
  EXPECT_EQ(out.description.packages, 2u);
  EXPECT_EQ(out.description.numa_nodes, 4u);
  EXPECT_EQ(out.description.gpus, 1u);
  EXPECT_EQ(out.description.nam, Bytes(5));
  EXPECT_EQ(out.attach_address, "unix:/a");
  EXPECT_EQ(out.jobd_address, "unix:/j%J");
  EXPECT_EQ(out.pid, 42u);
  ASSERT_EQ(out.jobds.size(), 1u);
  EXPECT_EQ(out.jobds[0].job, JobId(7));
  EXPECT_EQ(out.jobds[0].member_index, 3u);
  EXPECT_TRUE(out.jobds[0].is_head);
  EXPECT_TRUE(out.jobds[0].ended);
}

TEST(ConvertNode, AHeartbeatSurvivesTheWayThere) {
  const Heartbeat out = FromProto(
      ToProto(Heartbeat{.load = 1.5, .jobd_warm = 2, .memory_free = Bytes(9), .clock_ms = 1'700'000'000'123})
          .heartbeat());
  EXPECT_EQ(out.load, 1.5);
  EXPECT_EQ(out.jobd_warm, 2u);
  EXPECT_EQ(out.memory_free, Bytes(9));
  EXPECT_EQ(out.clock_ms, 1'700'000'000'123);
}

TEST(ConvertNode, CommandsSurviveTheWayBack) {
  auto start =
      ToProto(StartJob{JobId(7), Incarnation(1), {1000, 100}, {0x0201, 0, 9, std::string("\0x", 2)}});
  const auto got = FromProto(std::move(*start.mutable_start_job()));
  ASSERT_TRUE(got.ok());
  EXPECT_EQ(got->job, JobId(7));
  EXPECT_EQ(got->user.uid, 1000u);
  EXPECT_EQ(got->frame.type, 0x0201);
  EXPECT_EQ(got->frame.id, 9u);
  EXPECT_EQ(got->frame.payload, std::string("\0x", 2));

  const auto registered = FromProto(
      ToProto(Registered{Millis(250), "local", {{JobId(1), Incarnation(1), 0, true, false}}}).registered());
  EXPECT_EQ(registered.heartbeat_interval, Millis(250));
  EXPECT_EQ(registered.keep.size(), 1u);
  EXPECT_EQ(FromProto(ToProto(QuitJob{JobId(3), Incarnation(1), "over"}).quit_job()).reason, "over");
}

TEST(ConvertNode, NamdsMessagesSurviveTheWay) {
  auto report = ToProto(FromNamd{{0x0901, 0, 3, "hello"}});
  const auto from = FromProto(std::move(*report.mutable_from_namd()));
  ASSERT_TRUE(from.ok());
  EXPECT_EQ(from->frame.type, 0x0901);
  EXPECT_EQ(from->frame.id, 3u);
  EXPECT_EQ(from->frame.payload, "hello");
  EXPECT_EQ(FromProto(ToProto(NamdGone{"killed"}).namd_gone()).reason, "killed");
  auto command = ToProto(ToNamd{{0x0921, 0, 4, "welcome"}});
  const auto to = FromProto(std::move(*command.mutable_to_namd()));
  ASSERT_TRUE(to.ok());
  EXPECT_EQ(to->frame.type, 0x0921);
  EXPECT_EQ(to->frame.id, 4u);
  EXPECT_EQ(to->frame.payload, "welcome");
}

TEST(ConvertNode, WordsOfSlurmsPluginSurviveTheWay) {
  auto report = ToProto(FromSlurm{{0x0b01, 0, 0, "begin"}});
  const auto from = FromProto(std::move(*report.mutable_from_slurm()));
  ASSERT_TRUE(from.ok());
  EXPECT_EQ(from->frame.type, 0x0b01);
  EXPECT_EQ(from->frame.payload, "begin");
  auto command = ToProto(ToSlurm{{0x0b02, 0, 0, "verdict"}});
  const auto to = FromProto(std::move(*command.mutable_to_slurm()));
  ASSERT_TRUE(to.ok());
  EXPECT_EQ(to->frame.payload, "verdict");
  Registered registered;
  EXPECT_FALSE(FromProto(ToProto(registered).registered()).slurm);
  registered.slurm = true;
  EXPECT_TRUE(FromProto(ToProto(registered).registered()).slurm);
}

TEST(ConvertNode, RefusesAFrameTypeBeyond16Bit) {
  v1::FromJobd in;
  in.mutable_frame()->set_type(0x10000);
  EXPECT_EQ(FromProto(std::move(in)).status().code(), Code::kInvalidArgument);
}

TEST(ConvertStatus, KeepsCodeAndMessageBothWays) {
  const Status in(Code::kOutOfRange, "12 nodes requested, 8 exist");
  EXPECT_EQ(FromGrpc(ToGrpc(in)), in);
  EXPECT_TRUE(FromGrpc(ToGrpc(Status::Ok())).ok());
}

TEST(ConvertStatus, CutsAnOverlongMessageBetweenCharacters) {
  std::string text;
  while (text.size() < 5000) text += "ä";
  const Status out = FromGrpc(ToGrpc(Status(Code::kInternal, text)));
  EXPECT_LE(out.message().size(), 2048u);
  EXPECT_TRUE(out.message().ends_with("ä..."));
}

}  // namespace
}  // namespace msa::node_control
